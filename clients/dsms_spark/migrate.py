"""An archive in another layout, or clustered by another column (Golab 2006, §4.4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsms.errors import UsageError
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import Archive, Manifest
from dsms.storage.archive.work import Work, rewrite_work
from dsms_spark.jobs import Progress, UpdateReport, carry_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def migrate(
    spark: SparkSession,
    archive: Archive,
    layout: Layout | None = None,
    key: str | bool | None = False,
    progress: Progress | None = None,
) -> UpdateReport:
    """Write the whole index anew, in another layout (None: the same) or clustered by another column
    (False: by the same; None: by insertion time).  Readers use the old index until the new one is
    there.

    Raises DS950 for a column that is not there, and as `carry_out` does."""

    def plan(manifest: Manifest, _: object) -> Work:
        by = manifest.key if isinstance(key, bool) else key
        names = [f.name for f in manifest.schema]
        if by is not None and by not in names:
            raise UsageError(
                "DS950",
                f"there is no column {by} to cluster {archive.url} by",
                hint=f"its columns: {', '.join(names)}",
            )
        return rewrite_work(manifest, layout or manifest.layout, by)

    return carry_out(spark, archive, "a migration", plan, progress)
