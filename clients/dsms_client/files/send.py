"""Pieces of files -> a stream, a few batches on their way at any time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from dsms.errors import DsmsError, UsageError
from dsms_client.files.ahead import Ahead
from dsms_client.files.options import Options
from dsms_client.files.pieces import Mapping, Piece, Pieces
from dsms_client.files.several import PER_FILE, Files, in_turn, merged
from dsms_client.files.source import STDIN, FileSource
from dsms_client.files.timecolumn import instants_of, own_columns, time_column
from dsms_client.protocol import nearest
from dsms_client.results import IngestReport

if TYPE_CHECKING:
    import pyarrow as pa

    from dsms_client.aio import AsyncClient
    from dsms_client.files.report import Reporter

UNDER_WAY = 4  # batches sent and not yet acknowledged
Absent = dict[int, list[str]]  # by file, its columns with defaults that it does not have
PATIENCE = 5.0  # seconds for answers once the user has interrupted


@dataclass(frozen=True, slots=True)
class LoadJob:
    """What to load: `renamed` maps columns of the stream to columns of the files, which are read
    one after the other, or `merge`d by time; `first` is the line to begin with; after
    `max_rejects` it stops."""

    paths: tuple[str, ...]
    stream: str
    renamed: dict[str, str]
    options: Options = field(default_factory=Options)
    batch: int = 50_000
    end: bool = False
    merge: bool = False
    follow: bool = False
    first: int = 0
    max_rejects: int | None = None
    table: bool = False  # `stream` is the name of one
    upsert: bool = False  # rows take the place of those that have their keys


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
    absent: Absent = {}
    name, pieces, live = await open_files(client, job, reporter, absent)
    rows, enough = 0, False
    async with Ahead(pieces, live) as ahead, Sender(client, name, reporter, job) as sender:
        async for piece in ahead:
            reporter.piece(piece)
            batch = without(piece, absent)
            for first in range(0, batch.num_rows, job.batch):
                await sender.send(batch.slice(first, job.batch), piece.lines[first:])
            rows += piece.batch.num_rows
            reporter.progress(piece.done, rows)
            if enough := reporter.has_enough(job.max_rejects):
                break
        report = await finish(client, job, name, sender, enough)
    reporter.summary(name, report, rows, time.perf_counter() - began)
    return Outcome(report, reporter.rejected)


async def finish(
    client: AsyncClient, job: LoadJob, name: str, sender: Sender, enough: bool = False
) -> IngestReport:
    """Wait for the last batches; end the stream if asked, and if all was sent."""
    report = await sender.finish()
    if job.end and not enough:
        await client.end(name)
    return report


def without(piece: Piece, absent: Absent) -> pa.RecordBatch:
    """A piece without the columns that its file does not have, if they have defaults."""
    if not absent or not len(piece.lines):
        return piece.batch
    gone = absent.get(int(piece.lines[0]) // PER_FILE, [])
    return piece.batch.drop_columns([c for c in gone if c in piece.batch.schema.names])


async def open_files(
    client: AsyncClient, job: LoadJob, reporter: Reporter, absent: Absent | None = None
) -> tuple[str, Pieces, bool]:
    """The stream's name as declared, the files' pieces, and whether they may be waited for; says
    which columns are left out or NULL.

    absent  takes in which columns with defaults each file does not have"""
    names, kind = await client.names(), "table" if job.table else "stream"
    streams = names[f"{kind}s"]
    found = named(job.stream, streams)
    if not found:
        hint = nearest(job.stream, streams) or f"{kind}s are {', '.join(streams) or 'none yet'}"
        if not job.table and named(job.stream, names["tables"]):
            hint = f"it is a table: --table {job.stream}"
        raise UsageError("DS401", f"there is no {kind} {job.stream}", hint=hint)
    name = found[0]
    made, may = (set(), set()) if job.table else await own_columns(client, name)
    may = set() if absent is None or job.merge else may
    stop = threading.Event() if job.follow else None
    first = reporter.begin(job.paths)
    files = Files(
        job.paths,
        tuple(column for column in streams[name] if column[0] not in made),
        job.renamed,
        job.options,
        job.batch,
        lambda number, source, mapping: _tell(number, source, mapping, reporter, may, absent),
        reporter.say,
        stop,
        first,
    )
    pieces = in_turn(files)
    if job.merge and len(job.paths) > 1:
        column, unit = await time_column(client, name, None)
        pieces = merged(files, lambda batch: instants_of(batch, column, unit))
    if job.first > 1:
        pieces = _from_line(pieces, job.first)
    return name, pieces, job.follow or STDIN in job.paths


def named(name: str, known: Iterable[str]) -> list[str]:
    """What is called so, else what is in any case."""
    known = list(known)
    return [s for s in known if s == name] or [s for s in known if s.casefold() == name.casefold()]


def _from_line(pieces: Pieces, first: int) -> Pieces:
    """Without what stands before that line."""
    for piece in pieces:
        cut = int(np.searchsorted(piece.lines, first))
        rejects = [reject for reject in piece.rejects if reject.line >= first]
        yield replace(piece, batch=piece.batch.slice(cut), lines=piece.lines[cut:], rejects=rejects)


def _tell(
    number: int,
    source: FileSource,
    mapping: Mapping,
    reporter: Reporter,
    may: set[str],
    absent: Absent | None,
) -> None:
    reporter.file(number, source)
    own = [name for name in mapping.missing if name in may]
    if own and absent is not None:
        absent[number] = own
        reporter.once(f"not in the file, their default in every row: {', '.join(own)}")
    if missing := [name for name in mapping.missing if name not in own]:
        reporter.once(f"not in the file, NULL in every row: {', '.join(missing)}")
    if mapping.unused:
        reporter.once(f"not in the stream, left out: {', '.join(mapping.unused)}")


class Sender:
    """Batches in order, at most UNDER_WAY of them unanswered.  Left by an error, or interrupted, it
    says what has been sent."""

    def __init__(self, client: AsyncClient, stream: str, reporter: Reporter, job: LoadJob) -> None:
        self._client = client
        self._stream = stream
        self._reporter = reporter
        self._job = job
        self._tasks: list[tuple[asyncio.Task[IngestReport], int]] = []
        self._report = IngestReport()
        self._upto = 0  # the last line that is answered for

    async def __aenter__(self) -> Sender:
        return self

    async def __aexit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if not isinstance(problem, (DsmsError, asyncio.CancelledError)):
            return
        patience = PATIENCE if isinstance(problem, asyncio.CancelledError) else None
        tasks = [task for task, _ in self._tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=patience)
        whole = True  # so far
        for task, last in self._tasks:
            good = task.done() and not task.cancelled() and task.exception() is None
            self._report += task.result() if good else IngestReport()
            whole = whole and good
            self._upto = max(self._upto, last) if whole else self._upto
        for task in tasks:
            task.cancel()
        if not tasks and not self._upto and isinstance(problem, DsmsError):
            return  # nothing was sent
        open_ = "" if self._job.table else f"; {self._stream} is not ended"
        self._reporter.say(f"{self._report.accepted:,} rows were accepted before this{open_}")
        if self._upto and not self._job.merge and self._job.paths != (STDIN,):
            path = self._reporter.path(self._upto)
            self._reporter.say(f"to go on with {path}: --from-line {self._upto % PER_FILE + 1}")

    async def send(self, batch: object, lines: np.ndarray) -> None:
        """Send one batch, whose rows stand in these `lines` of the file; waits while too many are
        unanswered.  Raises what the server says of an earlier one."""
        if len(self._tasks) >= UNDER_WAY:
            await self._answered()
        task = asyncio.create_task(self._ingest(batch, lines))
        last = int(lines[min(len(lines), batch.num_rows) - 1])  # type: ignore[attr-defined]
        self._tasks.append((task, last))
        await asyncio.sleep(0)  # let it be written before the next one is read

    async def _answered(self) -> None:
        task, last = self._tasks[0]
        self._report += await asyncio.shield(task)  # sent, whatever becomes of us
        self._tasks.pop(0)
        self._upto = max(self._upto, last)

    async def _ingest(self, batch: object, lines: np.ndarray) -> IngestReport:
        ask = self._reporter.keeps
        report = await self._client.ingest(
            self._stream, batch, positions=ask, upsert=self._job.upsert
        )
        return self._reporter.refused(report, lines) if report.refused or report.late else report

    async def finish(self) -> IngestReport:
        """The report of everything."""
        while self._tasks:
            await self._answered()
        return self._report
