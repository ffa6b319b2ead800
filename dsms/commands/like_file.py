"""CREATE ... LIKE FILE: whoever the engine runs in looks at the file, and says the plain CREATE
that is run in place of the statement."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from dsms.api import Cancel, Done, Result
from dsms.commands.slices import Apart, Pieces, SeveralSlices
from dsms.errors import UsageError
from dsms.file_texts import LikeFile, is_like_file, like_file, unquoted
from dsms.rights.check import check_statement
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.script import Piece


class Look(SeveralSlices):
    """What is found is the plain statement, and why it is so."""

    elsewhere = True


def plain(
    runtime: Runtime, piece: Piece, cancel: Cancel | None, user: str | None
) -> Generator[Look, None, tuple[Piece, Done | None]]:
    """The statement itself, or what takes its place and is said of that.  Raises DS101, DS422,
    DS670, and what is wrong with the file."""
    if not is_like_file(piece.text):
        return piece, None
    like = like_file(piece.text)
    name = ast.Ident(unquoted(like.name), like.name.startswith('"'))
    check_statement(runtime.rights, runtime.catalog, user, ast.CreateStream(name, ()))
    look = Look(_looked(runtime, like, piece.text, cancel))
    try:
        while not look.step():
            yield look
    finally:
        look.close()
    assert isinstance(look.result, Done)
    return replace(piece, text=look.result.message), look.result


def _looked(runtime: Runtime, like: LikeFile, text: str, cancel: Cancel | None) -> Pieces[Result]:
    files = runtime.settings.files
    if files is None:
        raise UsageError(
            "DS422",
            f"this engine reads no files, so it can't look at {like.path}",
            hint="dsms serve --files DIR names folders whose files may be read; dsms shell looks "
            "at files of its own machine",
        )
    task = Apart(lambda: files(text, like.path, cancel))
    yield task
    return Done(*task.result())


def told(result: Result, found: Done | None) -> Result:
    """What came of it, with the statement that was run."""
    if found is None or not isinstance(result, Done):
        return result
    return Done(f"{result.message}\n{found.message};", (*result.warnings, *found.warnings))
