"""A one-time query that reads archives, with all that it needs, for the program that runs it
(`dsms_spark.execute`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsms.errors import UsageError
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, Schema
from dsms.state.batch import Batch
from dsms.storage.archive.landing import LandedFile, snapshot
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import Archive, Manifest
from dsms.storage.archive.prune import KeyRange, ReadPlan, plan

OVERTAKEN = "DS954"  # two updates were faster than the read of the archive
TRIES = 5  # of a query that is overtaken


@dataclass(frozen=True, slots=True)
class ArchiveSource:
    """What is read of one archive: its columns, the one that its files are clustered by, and the
    files.

    seam  the rows up to that instant are in it; the rest is live
    """

    url: str
    schema: Schema
    key: str | None
    layout: Layout | None
    seam: int
    read: ReadPlan

    @property
    def paths(self) -> list[str]:
        return self.read.paths


@dataclass(frozen=True, slots=True)
class ArchiveJob:
    """plan     a bound query as the optimizer left it: an Output, or what is below one
    at       the instant as of which it answers
    sources  of each leaf that reads an archive
    given    rows of the other leaves, and of those that read live rows beside archived ones, by
             leaf number
    limit    bytes of rows that may be held at once where they can't stay distributed; None: no
             limit
    short    leaves whose window of ROWS n fails (DS392) where there are fewer rows, since others
             have expired
    """

    plan: lp.Node
    at: int
    sources: Mapping[int, ArchiveSource]
    given: Mapping[int, Sequence[Batch]]
    limit: int | None = None
    short: frozenset[int] = field(default=frozenset())


Bounds = tuple[Any, Any, tuple[Any, ...] | None]  # least, largest, or the values themselves


def source(
    url: str, seam: int | None, since: int, upto: int, as_of: int, keys: Mapping[str, Bounds]
) -> ArchiveSource:
    """The files of an archive that may hold rows inserted in (since, upto] that have not expired by
    `as_of`.

    seam  rows up to that instant, as of when those had landed; None: all that have landed now
    keys  what is asked of columns, by name: that of the key counts
    Raises DS95x, and DS958 where a landed file is damaged."""
    archive = Archive(url)
    manifest, landed = snapshot(archive, seam)
    _check(archive, landed)
    asked = keys.get(manifest.key) if manifest.key is not None else None
    read = plan(manifest, landed, since, upto, as_of, None if asked is None else KeyRange(*asked))
    reached = max([manifest.upto, *(f.mark for f in landed)]) if seam is None else seam
    return ArchiveSource(url, manifest.schema, manifest.key, manifest.layout, reached, read)


def overtaken() -> UsageError:
    """DS954."""
    return UsageError(
        OVERTAKEN,
        "the archive was updated while it was read, and files that were left are gone",
        hint="ask again",
    )


def too_few(name: str, wanted: int, found: int) -> UsageError:
    """DS392: a window of ROWS n has fewer rows, since others may have expired."""
    message = (
        f"the archive of {name} has let go of rows that this window of {wanted} rows would hold"
    )
    less = f"ask for at most {found} rows, or for a RANGE" if found else "ask for a RANGE"
    return UsageError("DS392", message, hint=less)


def nothing(url: str, schema: Schema, key: str | None) -> ArchiveSource:
    """An archive to which nothing has come."""
    return ArchiveSource(
        url, schema, key, None, ALWAYS, ReadPlan((), (), ALWAYS, ALWAYS, ALWAYS, 0, 0, 0)
    )


def declared(url: str) -> tuple[Manifest, int]:
    """What an archive is, and up to which instant it goes.  Raises DS95x."""
    manifest, landed = snapshot(Archive(url))
    return manifest, max([manifest.upto, *(f.mark for f in landed)])


def _check(archive: Archive, landed: Sequence[LandedFile]) -> None:
    damaged = [f"{archive.path(f.path)}: {f.damaged}" for f in landed if f.damaged is not None]
    if damaged:
        raise UsageError(
            "DS958",
            f"landed files can't be read: {'; '.join(damaged)}",
            hint="dsms archive update sets them aside",
        )
