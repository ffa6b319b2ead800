"""Pieces of a file -> a stream, a few batches on their way at any time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dsms.errors import DsmsError, UsageError
from dsms_client.files.open import read
from dsms_client.files.pieces import Mapping, Pieces
from dsms_client.files.source import NULLS, FileSource
from dsms_client.protocol import nearest
from dsms_client.results import IngestReport

if TYPE_CHECKING:
    from dsms_client.aio import AsyncClient
    from dsms_client.files.report import Reporter

UNDER_WAY = 4  # batches sent and not yet acknowledged


@dataclass(frozen=True, slots=True)
class LoadJob:
    """What to load: `renamed` maps columns of the stream to columns of the file."""

    path: str
    stream: str
    renamed: dict[str, str]
    nulls: list[str] | None = None
    delimiter: str | None = None
    batch: int = 50_000
    end: bool = True
    unit: str | None = None  # of numbers that are instants


@dataclass(frozen=True, slots=True)
class Outcome:
    report: IngestReport
    rejected: int

    @property
    def clean(self) -> bool:
        return not self.rejected and not self.report.refused


async def load(client: AsyncClient, job: LoadJob, reporter: Reporter) -> Outcome:
    """Send everything as fast as the server takes it.  Raises DS530, DS532 and whatever the server
    says."""
    began = time.perf_counter()
    name, pieces = await open_file(client, job, reporter)
    rows = 0
    async with Sender(client, name, reporter) as sender:
        for piece in pieces:
            reporter.piece(piece)
            for first in range(0, piece.batch.num_rows, job.batch):
                await sender.send(piece.batch.slice(first, job.batch), piece.lines[first:])
            rows += piece.batch.num_rows
            reporter.progress(piece.done, rows)
            await asyncio.sleep(0)
        report = await finish(client, job, name, sender)
    reporter.summary(name, report, rows, time.perf_counter() - began)
    return Outcome(report, reporter.rejected)


async def finish(client: AsyncClient, job: LoadJob, name: str, sender: Sender) -> IngestReport:
    """Wait for the last batches; end the stream if asked."""
    report = await sender.finish()
    if job.end:
        await client.end(name)
    return report


async def open_file(client: AsyncClient, job: LoadJob, reporter: Reporter) -> tuple[str, Pieces]:
    """The stream's name as declared, and the file's pieces; says which columns are left out or
    NULL."""
    source = FileSource(job.path)
    streams = (await client.names())["streams"]
    found = [s for s in streams if s == job.stream] or [
        s for s in streams if s.casefold() == job.stream.casefold()
    ]
    if not found:
        hint = nearest(job.stream, streams) or f"streams are {', '.join(streams) or 'none yet'}"
        raise UsageError("DS401", f"there is no stream {job.stream}", hint=hint)
    nulls = tuple(job.nulls) if job.nulls is not None else NULLS
    mapping, pieces = read(
        source, streams[found[0]], job.renamed, nulls, job.delimiter, job.batch, job.unit
    )
    _tell(mapping, reporter)
    reporter.begin(job.path, source.size)
    return found[0], pieces


def _tell(mapping: Mapping, reporter: Reporter) -> None:
    if mapping.missing:
        reporter.note(f"not in the file, NULL in every row: {', '.join(mapping.missing)}")
    if mapping.unused:
        reporter.note(f"not in the stream, left out: {', '.join(mapping.unused)}")


class Sender:
    """Batches in order, at most UNDER_WAY of them unanswered.  Left by an error, it says what has
    been sent."""

    def __init__(self, client: AsyncClient, stream: str, reporter: Reporter) -> None:
        self._client = client
        self._stream = stream
        self._reporter = reporter
        self._tasks: list[asyncio.Task[IngestReport]] = []
        self._report = IngestReport()

    async def __aenter__(self) -> Sender:
        return self

    async def __aexit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if not isinstance(problem, DsmsError):
            return
        with contextlib.suppress(DsmsError):
            accepted = (await self.finish()).accepted
            self._reporter.say(
                f"{accepted:,} rows were accepted before this; {self._stream} is not ended"
            )

    async def send(self, batch: object, lines: np.ndarray) -> None:
        """Send one batch, whose rows stand in these `lines` of the file; waits while too many are
        unanswered.  Raises what the server says of an earlier one."""
        if len(self._tasks) >= UNDER_WAY:
            self._report += await self._tasks.pop(0)
        self._tasks.append(asyncio.create_task(self._ingest(batch, lines)))
        await asyncio.sleep(0)  # let it be written before the next one is read

    async def _ingest(self, batch: object, lines: np.ndarray) -> IngestReport:
        report = await self._client.ingest(self._stream, batch)
        return self._reporter.refused(report, lines) if report.refused else report

    async def finish(self) -> IngestReport:
        """The report of everything."""
        for task in self._tasks:
            self._report += await task
        self._tasks.clear()
        return self._report
