"""The jobs that keep an archive's index: update (Golab 2006, Algorithm 1), compaction, migration to another layout.

Each is one Spark job over the files that it must read, and one new manifest.  Rows never pass through the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from dsms.errors import UsageError
from dsms.sql.types import ALWAYS
from dsms.storage.archive.landing import LandedFile, Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.lease import leased
from dsms.storage.archive.manifest import Archive, IndexFile, Manifest
from dsms.storage.archive.schema import EXP
from dsms_spark.frames import read_files, write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]
LIVE = 0.5  # share of a file's rows that must live, else `no rebuild` rewrites it, too


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What a job did.

    upto      the index now holds what was inserted up to that instant, and not what expired by then
    touched   sub-indices that it may have changed;  rewritten: those whose files it wrote
    taken     rows taken over from the landing folder
    expired   rows that left, as far as they were in files that were read or dropped
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
    total: int = 0  # bytes of the index before

    @property
    def nothing(self) -> bool:
        """There was nothing to do."""
        return not self.touched


@dataclass(frozen=True, slots=True)
class Work:
    """What an update has to do: landed files to take over, index files to read and replace, to drop, to keep."""

    upto: int
    touched: tuple[int, ...]
    landed: tuple[LandedFile, ...]
    read: tuple[IndexFile, ...]
    drop: tuple[IndexFile, ...]
    keep: tuple[IndexFile, ...]


def work_of(manifest: Manifest, landed: Sequence[LandedFile], landed_upto: int, upto: int | None = None) -> Work | None:
    """The work of an update to the last step that is over; None if there is none."""
    layout = manifest.layout
    known = landed_upto if upto is None else min(upto, landed_upto)
    if known == ALWAYS:
        return None
    end = layout.start(known + 1) - 1
    fresh = [f for f in landed if f.number > manifest.landed]
    taken = tuple(takewhile(lambda f: f.ts[1] <= end, fresh))  # none is left behind, in whatever order rows were born
    after = (
        manifest.upto
        if manifest.upto != ALWAYS
        else min([layout.start(f.ts[0]) - 1 for f in taken], default=end - layout.every)
    )
    if end <= after:
        return None
    inserting = layout.inserting(after, end) if taken else set()
    touched = tuple(sorted(inserting | layout.expiring(after, end)))
    read, drop, keep = [], [], []
    for file in manifest.files:
        if file.exp[1] <= end:
            drop.append(file)
        elif file.sub in touched and _rewritten(file, layout, end, file.sub in inserting):
            read.append(file)
        else:
            keep.append(file)
    return Work(end, touched, taken, tuple(read), tuple(drop), tuple(keep))


def _rewritten(file: IndexFile, layout: Layout, upto: int, inserted: bool) -> bool:
    """Whether an update must read and replace a file of a sub-index that it touches."""
    if layout.strategy == "rebuild":
        return inserted or file.exp[0] <= upto
    low, high = file.exp
    return low <= upto and (high - upto) < LIVE * (high - low + 1)  # as many of its rows live as of its times, about


def update(
    spark: SparkSession, archive: Archive, upto: int | None = None, progress: Progress | None = None
) -> UpdateReport:
    """Take over what has landed, and let go what has expired, up to the last step of Δ that is over.

    upto  at most up to this instant (µs)
    Raises DS959 (somebody else is at work), DS95x (the archive can't be read or written), DS653 (Spark failed); the
    archive is then as it was."""
    say = progress or _nothing
    with leased(archive, "an update"):
        archive.sweep()
        manifest, landing = archive.manifest(), Landing(archive)
        work = work_of(manifest, landing.files(manifest.landed), landing.upto(), upto)
        if work is None:
            return UpdateReport(manifest.number, manifest.upto, rows=manifest.rows, bytes=manifest.bytes)
        say(f"{len(work.touched)} of {manifest.layout.count} sub-indices, {len(work.landed)} landed files")
        made: tuple[IndexFile, ...] = ()
        if work.landed or work.read:
            made = _rewrite(spark, archive, manifest, work)
        last = max([manifest.landed, *(f.number for f in work.landed)])
        done = manifest.next(files=(*work.keep, *made), upto=work.upto, landed=last)
        archive.publish(done)
        landing.remove(manifest.landed)
        archive.sweep()
        return _report(manifest, work, made, done)


def _rewrite(spark: SparkSession, archive: Archive, manifest: Manifest, work: Work) -> tuple[IndexFile, ...]:
    from pyspark.sql import functions as f

    paths = [x.path for x in work.read] + [x.path for x in work.landed]
    rows = read_files(spark, archive, manifest.schema, paths).where(f.col(EXP) > work.upto)
    return run(
        lambda: write_files(rows, archive, manifest.layout, manifest.key, manifest.number + 1, len(work.touched))
    )


def run(job: Callable[[], tuple[IndexFile, ...]]) -> tuple[IndexFile, ...]:
    """A Spark job; what goes wrong in Spark is DS653."""
    try:
        return job()
    except UsageError:
        raise
    except Exception as error:
        text = str(error).strip().splitlines()
        raise UsageError("DS653", f"the Spark job failed: {text[0] if text else type(error).__name__}",
                         hint="the archive is as it was; run the job again") from error  # fmt: skip


def _report(manifest: Manifest, work: Work, made: tuple[IndexFile, ...], done: Manifest) -> UpdateReport:
    taken, read = sum(f.rows for f in work.landed), [*work.read, *work.drop]
    return UpdateReport(
        done.number, done.upto, work.touched, tuple(sorted({f.sub for f in made})), taken,
        sum(f.rows for f in read) + taken - sum(f.rows for f in made), len(work.read) + len(work.landed),
        sum(f.bytes for f in work.read) + sum(f.bytes for f in work.landed), len(made), sum(f.bytes for f in made),
        done.rows, done.bytes, manifest.bytes,
    )  # fmt: skip


def migrate(spark: SparkSession, archive: Archive, layout: Layout | None = None, key: str | bool | None = False,
            progress: Progress | None = None) -> UpdateReport:  # fmt: skip
    """Write the whole index anew, in another layout or clustered by another column (False: by the same).

    With nothing said it is a compaction: one file per sub-index, without what has expired.  Raises as `update` does."""
    from pyspark.sql import functions as f

    with leased(archive, "a migration"):
        archive.sweep()
        manifest = archive.manifest()
        new = layout or manifest.layout
        by = manifest.key if isinstance(key, bool) else key
        if by is not None and by not in {c.name for c in manifest.schema}:
            raise UsageError("DS950", f"there is no column {by} to cluster {archive.url} by")
        (progress or _nothing)(f"{manifest.layout} becomes {new}: {manifest.rows} rows")
        made: tuple[IndexFile, ...] = ()
        if manifest.files:
            rows = read_files(spark, archive, manifest.schema, [x.path for x in manifest.files])
            rows = rows.where(f.col(EXP) > manifest.upto)
            made = run(lambda: write_files(rows, archive, new, by, manifest.number + 1, new.count))
        done = manifest.next(files=made, layout=new, key=by)
        archive.publish(done)
        archive.sweep()
        everything = tuple(range(new.count))
        work = Work(manifest.upto, everything, (), manifest.files, (), ())
        return _report(manifest, work, made, done)


def compact(spark: SparkSession, archive: Archive, progress: Progress | None = None) -> UpdateReport:
    """`migrate` to the layout that it has."""
    return migrate(spark, archive, progress=progress)


def _nothing(line: str) -> None:
    """For jobs that nobody watches."""
