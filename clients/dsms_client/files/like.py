"""``CREATE ... LIKE FILE``: the plain CREATE that takes its place, inferred as `dsms load --create`
does.

Run as a process (`python -m dsms_client.files.like`) it does so for a server: a map with `text` and
`path` (JSON) comes in by standard input, one with `statement` and `notes`, or with an `error`, goes
out.  What a damaged file may do to it, it does not do to the server."""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import dataclass, replace
from typing import Any

from dsms.errors import DsmsError
from dsms.file_texts import LikeFile, like_file
from dsms_client.files.infer import flags, infer
from dsms_client.files.options import Options
from dsms_client.files.said import with_option
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
    """Look at the file's beginning.  Raises DS214, DS215, DS530, DS532, DS533."""
    options = Options()
    for name, value in like.options:
        options = with_option(options, name, value, "LIKE FILE")
    inferred = infer(FileSource(like.path, options), None, like.time)
    exists = "IF NOT EXISTS " if like.if_not_exists else ""
    head = f"CREATE {like.kind} {exists}{like.name}"
    if like.kind == "TABLE":
        inferred = replace(inferred, time=None)
    renamed = [f"--map {column}={name}" for column, name in inferred.renamed.items() if name]
    said = " ".join(filter(None, (*renamed, flags(inferred.options))))
    notes = (*inferred.notes, *([f"rows of the file are loaded with {said}"] if said else []))
    return Declared(inferred.created(head, like.clauses, like.key), notes)


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
