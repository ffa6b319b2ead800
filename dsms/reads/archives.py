"""What a one-time query reads of archives: up to which instant they are archived, their files, and
what runs the plan.

A leaf that reads live rows beside archived ones gets those behind the seam from the ring, where
they stay as long as the seam of this query's beginning is held; those up to it come from the files
that had landed then.  So no row is missing and none comes twice, however the window moves and the
seam with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol, assert_never

import pyarrow as pa

from dsms.api import Cancel
from dsms.archiving import Archiving, Hold
from dsms.archiving.queries import edge
from dsms.errors import INSTALL_SPARK, UsageError
from dsms.oneshot.now import as_of
from dsms.oneshot.pushdown import Needed, needed
from dsms.oneshot.reads import Read
from dsms.plan.text import duration
from dsms.reads.small_archives import run_here, size
from dsms.running.runtime import Runtime
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
)
from dsms.state.batch import Batch
from dsms.storage.archive.job import ArchiveJob, ArchiveSource, nothing, source


class ArchiveRunner(Protocol):
    """Runs plans that read archives: `dsms_spark.execute.Runner`, or a server's Spark process.  Any
    thread calls it."""

    def run(self, job: ArchiveJob, cancel: Cancel | None = None) -> pa.RecordBatch:
        """The answer: physical types, in its order.  Raises DsmsError."""
        ...


def reads_archives(reads: Mapping[int, Read]) -> bool:
    """Whether a plan reads any."""
    return any(r.kind == "archive" for r in reads.values())


def moved_up(runtime: Runtime) -> set[str]:
    """Keys of streams with rows whose instants are later than their timestamp column says."""
    return {s.definition.home for s in list(runtime.inputs.values()) if s.moved_up}


def archived_clock(runtime: Runtime, scan: lp.StreamScan) -> int:
    """The instant up to which that archive could hold rows: the clock of what it is the archive
    of."""
    assert scan.archive is not None
    key = scan.stream.home
    clock = (
        edge(runtime, runtime.queries[key])
        if scan.archive.kind == "query"
        else runtime.clock_of([key])
    )
    archiving = runtime.archivings.get(key)
    return clock if archiving is None else max(clock, archiving.seam)


@dataclass(slots=True)
class Archives:
    """The archives of one query, from its beginning on.

    needed  what the plan reads, by leaf
    seams   of each archive leaf
    found   its archive, which is read also where it is dropped meanwhile
    by      what is to run the plan: duckdb (in this process), spark, or (auto) the former where few
            bytes of files are read
    """

    runtime: Runtime
    plan: lp.Node
    needed: Mapping[int, Read]
    by: str = "auto"
    seams: dict[int, int] = field(init=False)
    found: dict[int, Archiving] = field(init=False)
    holds: list[Hold] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raises DS412 where Spark is asked for, and not known."""
        if self.by == "spark" and self.runtime.settings.archive_runner is None:
            raise no_runner()
        self.seams, self.found = {}, {}
        for leaf, read in self.needed.items():
            if read.kind == "archive":
                self.found[leaf] = archiving_of(self.runtime, _scan(read))
                hold = self.found[leaf].hold()
                self.holds.append(hold)
                self.seams[leaf] = hold.seam

    def live(self) -> dict[int, Read]:
        """What is to be read besides the archives: other leaves, and what is live of these."""
        out = {}
        for leaf, read in self.needed.items():
            if read.kind != "archive":
                out[leaf] = read
            elif _scan(read).archive.live:  # type: ignore[union-attr]
                out[leaf] = replace(read, kind="stream", floor=self.seams[leaf])
        return out

    def release(self) -> None:
        """What is live has been read.  In the engine's thread."""
        for hold in self.holds:
            hold.release()
        self.holds = []

    def run(
        self,
        given: Mapping[int, Sequence[Batch]],
        at: int,
        limit: int | None,
        cancel: Cancel | None,
        lent: Callable[[], AbstractContextManager[int]],
    ) -> pa.RecordBatch:
        """The answer as of `at`.  In any thread.  `lent`: memory for what runs in this process."""
        plan = as_of(self.plan, at)
        wanted = needed(plan, at, moved_up(self.runtime))
        sources = {leaf: self.source(leaf, need, at) for leaf, need in wanted.items()}
        short = frozenset(leaf for leaf, need in wanted.items() if self._check_kept(need, at))
        job = ArchiveJob(plan, at, sources, dict(given), limit, short)
        if is_here(self.runtime, sources, self.by):
            with lent() as most, self.runtime.adhocs.lent(most) as oneshot:
                return run_here(oneshot, replace(job, limit=most), wanted, cancel)
        runner: ArchiveRunner | None = self.runtime.settings.archive_runner
        if runner is None:
            raise no_runner()
        return runner.run(job, cancel)

    def source(self, leaf: int, need: Needed, at: int) -> ArchiveSource:
        """The files that are read for a leaf."""
        return source_of(self.found[leaf], self.seams[leaf], need, at)

    def _check_kept(self, need: Needed, at: int) -> bool:
        """Whether rows have expired that a window without an end in time might hold; DS392 where
        one does hold them."""
        scan, spec = need.scan, need.read.spec
        assert scan.archive is not None
        first = self.runtime.first_rows.get(scan.stream.home, ALWAYS)
        kept = scan.stream.archive_for
        if not scan.archive.live or kept is None or first > at - kept:
            return False
        match spec:
            case Landmark() if spec.since <= at - kept:
                text = duration(kept)
                message = (
                    f"the archive of {scan.stream.name} keeps rows for {text}, and this "
                    "window began earlier"
                )
                raise UsageError(
                    "DS392", message, hint=f"write [RANGE {text} ARCHIVE], or FROM ARCHIVE"
                )
            case Rows():
                return True
            case Time() | Now() | Partitioned() | Unbounded() | Landmark() | Latest():
                return False
            case Session() | When() | Lasting() | Throttled() | First():
                return False
            case _:
                assert_never(spec)


def archiving_of(runtime: Runtime, scan: lp.StreamScan) -> Archiving:
    """The archive that a leaf reads."""
    return runtime.archivings[scan.stream.home]


def is_here(runtime: Runtime, sources: Mapping[int, ArchiveSource], by: str) -> bool:
    """Whether DuckDB runs it in this process, and not Spark."""
    return by == "duckdb" or (
        by == "auto" and size(sources) <= runtime.settings.archive_local_bytes
    )


def source_of(archiving: Archiving, seam: int, need: Needed, at: int) -> ArchiveSource:
    """The files of an archive up to a seam that may hold what is needed.  Raises DS95x."""
    if seam == ALWAYS:
        return nothing(archiving.url, archiving.schema, need.scan.stream.archive_cluster)
    return source(archiving.url, seam, need.since, need.upto, at, need.bounds())


def no_runner() -> UsageError:
    """DS412."""
    return UsageError(
        "DS412",
        "archives of this size are read by Spark, and this engine knows none",
        hint=f"{INSTALL_SPARK}; then give it one: "
        "Settings(archive_runner=dsms_spark.execute.Runner()); a server finds it by itself",
    )


def _scan(read: Read) -> lp.StreamScan:
    assert isinstance(read.node, lp.StreamScan)
    return read.node
