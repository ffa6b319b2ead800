"""CREATE ... LIKE FILE: whoever the engine runs in looks at the file, and says the plain CREATE
that is run in place of the statement."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dsms.api import Cancel, Done, Result
from dsms.commands.slices import Apart, Pieces, SeveralSlices
from dsms.errors import DsmsError, UsageError
from dsms.file_texts import LikeFile, is_like_file, like_file, offset, unquoted
from dsms.rights.check import check_statement
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.script import Piece


class Look(SeveralSlices):
    """What is found is the plain statement, and why it is so."""

    elsewhere = True


@dataclass(frozen=True, slots=True)
class Found:
    """What was typed (`like`, in the script the `piece`), and the plain statement in its place."""

    like: LikeFile
    piece: Piece
    done: Done


def plain(
    runtime: Runtime, piece: Piece, cancel: Cancel | None, user: str | None
) -> Generator[Look, None, tuple[Piece, Found | None]]:
    """The statement itself, or what takes its place and is said of that.  Raises DS101, DS422,
    DS670, and what is wrong with the file."""
    if not is_like_file(piece.text):
        return piece, None
    with _in_script(piece):
        like = like_file(piece.text)
        name = ast.Ident(unquoted(like.name), like.name.startswith('"'))
        check_statement(runtime.rights, runtime.catalog, user, ast.CreateStream(name, ()))
        look = Look(_looked(runtime, like, cancel))
        try:
            while not look.step():
                yield look
        finally:
            look.close()
    assert isinstance(look.result, Done)
    return replace(piece, text=look.result.message), Found(like, piece, look.result)


def _looked(runtime: Runtime, like: LikeFile, cancel: Cancel | None) -> Pieces[Result]:
    files = runtime.settings.files
    if files is None:
        problem = UsageError(
            "DS422",
            f"this engine reads no files, so it can't look at {like.path}",
            hint="Engine(files=[DIR]) and dsms serve --files DIR name folders whose files may be "
            "looked at; dsms shell looks at files of its own machine",
        )
        raise like.placed(problem)
    task = Apart(lambda: files(like.text, like.path, cancel))
    yield task
    try:
        found = task.result()
    except UsageError as problem:
        raise problem if problem.code.startswith("DS6") else like.placed(problem) from None
    return Done(*found)


@contextmanager
def _in_script(piece: Piece) -> Iterator[None]:
    """Errors whose place is one in the statement get that in the script."""
    try:
        yield
    except DsmsError as problem:
        if problem.line is not None and problem.column is not None:
            problem.line, problem.column = piece.place(
                offset(piece.text, problem.line, problem.column)
            )
        raise


@contextmanager
def as_typed(found: Found | None) -> Iterator[None]:
    """Errors of the plain statement point to where in what was typed it comes from."""
    try:
        yield
    except DsmsError as problem:
        if found is not None and problem.line is not None and problem.column is not None:
            line = problem.line - found.piece.line + 1
            column = problem.column - (found.piece.column - 1 if line == 1 else 0)
            text = found.done.message
            at = found.like.origin(text, offset(text, line, column))
            problem.line, problem.column = found.piece.place(at)
        raise


def told(result: Result, found: Found | None) -> Result:
    """What came of it, with the statement that was run."""
    if found is None or not isinstance(result, Done):
        return result
    message = f"{result.message}\n{found.done.message};"
    return Done(message, (*result.warnings, *found.done.warnings))
