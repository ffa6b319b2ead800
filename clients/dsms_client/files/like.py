"""``CREATE ... LIKE FILE``: the plain CREATE that takes its place, inferred as `dsms load --create`
does.

Run as a process (`python -m dsms_client.files.like`) it does so for a server: a map with `text` and
`path` (JSON) comes in by standard input, one with `statement` and `notes`, or with an `error`, goes
out.  What a damaged file may do to it, it does not do to the server."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from dsms.errors import DsmsError, UsageError
from dsms.file_texts import LikeFile, has_key, like_file, offset, place
from dsms_client.files.infer import infer
from dsms_client.files.options import Options
from dsms_client.files.said import in_sql, in_statement, quoted_text, with_clause, with_option
from dsms_client.files.source import FileSource
from dsms_client.results import Done, Result

SECONDS = 60  # of work that a server waits for
BYTES = 4 << 30  # of memory


@dataclass(frozen=True, slots=True)
class Declared:
    """`notes` say why the statement is so."""

    statement: str
    notes: tuple[str, ...]


def declared(like: LikeFile) -> Declared:
    """Look at the file's beginning.  Raises DS214, DS215, DS530, DS532, DS533, with the place of
    what is wrong in the statement."""
    options, table = _options(like), like.kind == "TABLE"
    if like.key and not table:
        problem = UsageError(
            "DS101",
            "PRIMARY KEY is of tables",
            hint=f"a stream has a clause: LIKE FILE {quoted_text(like.path)} KEY ({like.key[0]})",
        )
        raise like.placed(problem, like.key_at[0])
    keyed = not table and has_key(like.clauses)
    try:
        source = FileSource(like.path, options)
        inferred = infer(source, dict(options.renamed), like.time, keyed, table)
    except DsmsError as problem:
        at = like.time_at if problem.code == "DS533" else None
        raise like.placed(in_statement(problem), at) from None
    notes = tuple(map(in_sql, inferred.notes))
    if said := with_clause(inferred.options):
        path = quoted_text(like.path)
        notes = (*notes, f"rows of the file are loaded by COPY {like.name} FROM {path} {said}")
    return Declared(inferred.created(like.head, like.clauses, like.key), notes)


def _options(like: LikeFile) -> Options:
    options = Options()
    for (name, value), at in zip(like.options, like.options_at, strict=True):
        try:
            options = with_option(options, name, value, "LIKE FILE")
        except DsmsError as problem:
            raise like.placed(in_statement(problem), at) from None
    return options


@contextmanager
def as_typed(like: LikeFile, found: Declared) -> Iterator[None]:
    """Errors of the plain statement point to where in what was typed it comes from."""
    try:
        yield
    except DsmsError as problem:
        if problem.line is not None and problem.column is not None:
            at = offset(found.statement, problem.line, problem.column)
            problem.line, problem.column = place(like.text, like.origin(found.statement, at))
        raise


def told(result: Result, found: Declared) -> Result:
    """What came of the statement, with that and why it is so."""
    if not isinstance(result, Done):
        return result
    return Done(f"{result.message}\n{found.statement};", (*result.warnings, *found.notes))


def main() -> None:
    """One request, as above."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
    request = json.load(sys.stdin)
    try:
        made = declared(replace(like_file(request["text"]), path=request["path"]))
        answer: dict[str, Any] = {"statement": made.statement, "notes": made.notes}
    except DsmsError as problem:
        answer = {"error": problem.fields()}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
