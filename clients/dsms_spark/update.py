"""The update of an archive, every Δ: what has landed comes in, what has expired goes (Golab 2006,
Algorithm 1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dsms.errors import DsmsError
from dsms.storage.archive.landing import LandedFile, Landing
from dsms.storage.archive.manifest import Archive, Manifest
from dsms.storage.archive.work import Work, update_work
from dsms_spark.compact import compact
from dsms_spark.jobs import Progress, UpdateReport, carry_out
from dsms_spark.migrate import migrate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READING = ("DS654", "DS954", "DS955")  # what comes of a file that can't be read
__all__ = ["Progress", "UpdateReport", "compact", "migrate", "update"]


def update(
    spark: SparkSession, archive: Archive, upto: int | None = None, progress: Progress | None = None
) -> UpdateReport:
    """Take over what has landed, and let go what has expired, up to the last step of Δ that is
    over.

    upto  at most up to this instant (µs)
    A landed file that can't be read is set aside and reported; the others are taken over.  Raises
    as `carry_out` does."""
    bad: dict[int, str] = {}

    def plan(manifest: Manifest, landing: Landing) -> Work | None:
        landed = [_marked(f, bad) for f in landing.files(manifest.landed)]
        return update_work(manifest, landed, landing.upto(), upto)

    try:
        return carry_out(spark, archive, "an update", plan, progress)
    except DsmsError as error:
        if error.code not in READING:
            raise
        bad |= _found(archive)
        if not bad:
            raise
    return carry_out(spark, archive, "an update", plan, progress)


def _marked(file: LandedFile, bad: dict[int, str]) -> LandedFile:
    return (
        file if file.number not in bad else replace(file, rows=0, bytes=0, damaged=bad[file.number])
    )


def _found(archive: Archive) -> dict[int, str]:
    """Landed files whose footers are right and whose contents are damaged, which only reading them
    shows."""
    try:
        landing = Landing(archive)
        files = landing.files(archive.manifest().landed)
    except DsmsError:
        return {}
    return {
        f.number: why
        for f in files
        if f.damaged is None and (why := landing.verified(f)) is not None
    }
