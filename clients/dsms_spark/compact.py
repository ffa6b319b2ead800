"""Sub-indices written anew, one file each, without what has expired."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dsms.storage.archive.manifest import Archive
from dsms.storage.archive.work import rewrite_work
from dsms_spark.jobs import Progress, UpdateReport, carry_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compact(
    spark: SparkSession,
    archive: Archive,
    progress: Progress | None = None,
    subs: Iterable[int] | None = None,
) -> UpdateReport:
    """Write these sub-indices anew (None: all).  What has landed stays where it is.  Raises as
    `carry_out` does."""
    return carry_out(
        spark,
        archive,
        "a compaction",
        lambda manifest, _: rewrite_work(manifest, subs=subs),
        progress,
    )
