"""A stream made for a file: what is inferred is shown before it is run."""

from __future__ import annotations

import sys
from dataclasses import replace

from dsms_client.files.infer import Inferred, flags, infer
from dsms_client.files.send import LoadJob
from dsms_client.files.source import FileSource
from dsms_client.visible import prose


def inferred_job(job: LoadJob, time: str | None) -> tuple[LoadJob, Inferred]:
    """The job with what its first file says of columns and options.  Raises DS530, DS532, DS533."""
    source = FileSource(job.paths[0], job.options)
    inferred = infer(source, job.renamed, time)
    return replace(job, renamed=inferred.renamed, options=inferred.options), inferred


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
