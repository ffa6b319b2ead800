"""What all jobs that keep an archive share: lease, Spark job, manifest, and what is reported.

A job holds the lease, sweeps what killed ones left, writes new files in one Spark job, publishes
one manifest, and removes what is not needed any more.  Killed anywhere, it leaves the archive as it
was, or finished.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dsms.errors import DsmsError
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.lease import Lease, leased, renew
from dsms.storage.archive.manifest import Archive, IndexFile, Manifest
from dsms.storage.archive.work import Work
from dsms_spark.failures import dsms_errors
from dsms_spark.frames import write_files
from dsms_spark.session import for_jobs
from dsms_spark.tasks import watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# called with a sentence, or with a sentence and how many of how many tasks are done
Progress = Callable[..., object]
AGAIN = "the archive is as it was; run the job again"
PULSE = 60.0  # seconds between two signs of life


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What a job did.

    upto      the index now holds what landed up to that instant, and not what expired by then
    touched   sub-indices that it may have changed;  rewritten: those for which it wrote files
    taken     rows taken over from the landing folder
    expired   rows that left, as far as they were in files that were read or dropped
    total     bytes of the index before
    damaged   landed files that could not be read, where they are now and why
    seconds   that writing took (Spark), and all of it
    """

    number: int
    upto: int
    touched: tuple[int, ...] = ()
    rewritten: tuple[int, ...] = ()
    taken: int = 0
    expired: int = 0
    files_read: int = 0
    bytes_read: int = 0
    files_written: int = 0
    bytes_written: int = 0
    rows: int = 0
    bytes: int = 0
    total: int = 0
    damaged: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def nothing(self) -> bool:
        """There was nothing to do."""
        return not self.touched and not self.damaged


def now_us() -> int:
    """The clock, µs since the epoch."""
    return time.time_ns() // 1000


def carry_out(
    spark: SparkSession,
    archive: Archive,
    job: str,
    plan: Callable[[Manifest, Landing], Work | None],
    progress: Progress | None = None,
) -> UpdateReport:
    """Do what `plan` says.  job: what messages to others call it.

    Raises DS951..DS955 (the archive can't be read or written), DS959 (another job is at work),
    DS654 (Spark failed); the archive is then as it was."""
    say: Progress = progress or _nothing
    began = time.monotonic()
    with leased(archive, job, now_us()) as lease, _alive(archive, lease):
        archive.sweep()
        manifest, landing = archive.manifest(), Landing(archive)
        work = plan(manifest, landing)
        if work is None:
            return UpdateReport(
                manifest.number,
                manifest.upto,
                rows=manifest.rows,
                bytes=manifest.bytes,
                total=manifest.bytes,
            )
        aside = tuple(f"{landing.set_aside(f)}: {f.damaged}" for f in work.damaged)
        made: tuple[IndexFile, ...] = ()
        if work.parts:
            say(
                f"{len(work.targets)} of {work.layout.count} sub-indices, {len(work.landed)} "
                "landed files"
            )
            made = _spark_job(spark, archive, manifest, work, say)
        done = manifest
        if work.changes(manifest):
            done = archive.commit(manifest, lambda newest: work.done(newest, made))
            landing.remove(manifest.landed)
            archive.sweep()
        return _report(manifest, work, made, done, aside, time.monotonic() - began)


def _spark_job(
    spark: SparkSession, archive: Archive, manifest: Manifest, work: Work, say: Progress
) -> Any:
    what = f"{manifest.name}: rows to sub-indices"
    with dsms_errors(AGAIN), for_jobs(spark) as session, watched(session, say, what):
        return write_files(session, archive, manifest, work)


@contextmanager
def _alive(archive: Archive, lease: Lease) -> Iterator[None]:
    """Say now and then that this job lives."""
    over = threading.Event()

    def pulse() -> None:
        while not over.wait(PULSE):
            try:
                renew(archive, lease, now_us())
            except DsmsError:  # publishing will tell
                return

    thread = threading.Thread(target=pulse, name="dsms-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()  # nothing is written about a lease that was given back


def _report(
    manifest: Manifest,
    work: Work,
    made: tuple[IndexFile, ...],
    done: Manifest,
    aside: tuple[str, ...],
    seconds: float,
) -> UpdateReport:
    gone = work.rows + sum(f.rows for f in work.drop) - sum(f.rows for f in made)
    return UpdateReport(
        number=done.number,
        upto=done.upto,
        touched=work.touched,
        rewritten=tuple(sorted({f.sub for f in made})),
        taken=sum(f.rows for f in work.landed),
        expired=gone,
        files_read=len(work.read) + len(work.landed),
        bytes_read=work.bytes,
        files_written=len(made),
        bytes_written=sum(f.bytes for f in made),
        rows=done.rows,
        bytes=done.bytes,
        total=manifest.bytes,
        damaged=aside,
        seconds=seconds,
    )


def _nothing(*_: object) -> None:
    """For jobs that are not watched."""
