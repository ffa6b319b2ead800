"""A stream made for a file: what is inferred is shown before it is run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from dsms.errors import DsmsError
from dsms.file_texts import has_key, offset, place
from dsms_client.files.infer import Inferred, infer, quoted
from dsms_client.files.said import flags
from dsms_client.files.send import LoadJob
from dsms_client.files.source import FileSource
from dsms_client.visible import prose


def inferred_job(job: LoadJob, time: str | None, clauses: str) -> tuple[LoadJob, Inferred]:
    """The job with what its first file says of columns and options.  Raises DS530, DS532, DS533."""
    source = FileSource(job.paths[0], job.options)
    inferred = infer(source, job.renamed, time, has_key(clauses))
    return replace(job, renamed=inferred.renamed, options=inferred.options), inferred


@contextmanager
def as_said(statement: str, name: str, clauses: str) -> Iterator[None]:
    """Errors of the statement speak of the options that it was made of."""
    try:
        yield
    except DsmsError as problem:
        if problem.line is not None and problem.column is not None:
            at = offset(statement, problem.line, problem.column)
            problem.line, problem.column = None, None
            begin = len(statement) - len(clauses.strip())
            if clauses.strip() and at >= begin:
                problem.line, problem.column = place(clauses.strip(), at - begin)
                problem.message = f"in --clauses: {problem.message}"
            elif at <= len(f"CREATE STREAM {quoted(name)} ("):
                problem.message = f"in --create: {problem.message}"
            else:
                problem.message = f"in the statement made for the file: {problem.message}"
        raise


def show(inferred: Inferred, statement: str, only: bool, quiet: bool) -> None:
    """The statement, why it is so, and how more files of this form are loaded; `only` that: to
    standard output, with the first rows."""
    if quiet and not only:
        return
    out = sys.stdout if only else sys.stderr
    print(prose(statement) + ";", file=out)
    for note in inferred.notes:
        print(prose(f"-- {note}"), file=out)
    said = flags(inferred.options)
    if said:
        print(prose(f"-- loaded with {said}"), file=out)
    for row in inferred.rows if only else ():
        print(prose("-- " + " | ".join(row)), file=out)
