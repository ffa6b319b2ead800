"""Rows of an archive on Spark: one key (a probe), or all (a scan), in a stretch of time; what was
read and skipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dsms.errors import UsageError
from dsms.intake.values import physical
from dsms.sql.types import ALWAYS, FOREVER, Field, Kind
from dsms.storage.archive.landing import Landing, snapshot
from dsms.storage.archive.manifest import Archive, Manifest
from dsms.storage.archive.prune import KeyRange, ReadPlan, plan
from dsms.storage.archive.schema import EXP, TS, kept, stored_schema
from dsms.typed_texts import DAY
from dsms_spark.frames import read_files
from dsms_spark.tasks import watched

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Progress = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Reading:
    """What is to be read.

    plan   the files, and how many there are besides
    key    the value that is looked for, as Parquet has it (None: all rows)
    """

    archive: Archive
    manifest: Manifest
    plan: ReadPlan
    key: Any = None

    def figures(self) -> dict[str, int]:
        """Files and bytes that are read and skipped."""
        p = self.plan
        return {
            "files_read": len(p.files) + len(p.landed),
            "files_skipped": p.skipped_files,
            "bytes_read": p.read_bytes,
            "bytes_skipped": p.skipped_bytes,
            "subs_read": len(p.subs),
            "subs": p.all_subs,
        }


def reading(
    archive: Archive,
    since: int | None = None,
    until: int | None = None,
    key: str | None = None,
    keys: KeyRange | None = None,
) -> Reading:
    """A reading of the rows that came in [since, until), with that key, and have not expired;
    `keys`: files without such a key are left out.

    Raises DS960 where the archive has no key, DS961 where the text is none of its type,
    DS951..DS955."""
    manifest, landed = snapshot(archive)
    damaged = [f"{archive.path(f.path)}: {f.damaged}" for f in landed if f.damaged is not None]
    if damaged:
        raise UsageError(
            "DS958",
            f"landed files can't be read: {'; '.join(damaged)}",
            hint="dsms archive update sets them aside",
        )
    asked, value = (keys, None) if key is None else _key(manifest, key)
    first = ALWAYS if since is None else since - 1
    last = FOREVER if until is None else until - 1
    as_of = max(manifest.upto, Landing(archive).upto())
    return Reading(archive, manifest, plan(manifest, landed, first, last, as_of, asked), value)


def _key(manifest: Manifest, text: str) -> tuple[KeyRange, Any]:
    """The value of the key column that a text stands for, for files and for Spark."""
    field = next((f for f in manifest.schema if f.name == manifest.key), None)
    if field is None:
        raise UsageError(
            "DS960",
            f"the archive {manifest.name} is clustered by no column, so there is none to probe",
            hint="CLUSTER BY c in its declaration, or: dsms archive compact --cluster-by c",
        )
    value = key_value(field, text)
    return KeyRange(values=(value,)), value


def key_value(field: Field, text: str) -> Any:
    """A text as a value of a column.  Raises DS961."""
    value: Any = (
        {"true": True, "false": False}.get(text.lower(), text)
        if field.type.kind is Kind.BOOL
        else text
    )
    try:
        if field.type.kind in (Kind.INT, Kind.INTERVAL):
            value = int(text)
        elif field.type.kind is Kind.FLOAT:
            value = float(text)
        elif field.type.kind is Kind.BYTES:
            value = bytes.fromhex(text.removeprefix("\\x"))
        return physical(value, field.type)
    except ValueError as problem:
        raise UsageError(
            "DS961", f"{text} is no {field.type}, which {field.name} is: {problem}"
        ) from None


def rows(spark: SparkSession, reading: Reading) -> DataFrame:
    """The rows, with the archive's columns and marks."""
    frame = read_files(spark, reading.archive, reading.manifest.schema, reading.plan.paths)
    return frame.where(_wanted(reading))


def _wanted(reading: Reading) -> Column:
    from pyspark.sql import functions as f

    p = reading.plan
    wanted = f.col(EXP) > p.as_of
    if p.since != ALWAYS:
        wanted &= f.col(TS) > p.since
    if p.upto != FOREVER:
        wanted &= f.col(TS) <= p.upto
    if reading.key is not None:
        assert reading.manifest.key is not None
        field = next(c for c in reading.manifest.schema if c.name == reading.manifest.key)
        value = f.lit(reading.key)
        if field.type.kind is Kind.TIMESTAMP:
            value = f.timestamp_micros(value)
        elif field.type.kind is Kind.DATE:
            value = f.date_from_unix_date(f.lit(reading.key // DAY))
        wanted &= f.col("`" + field.name.replace("`", "``") + "`") == value
    return wanted


def probe(
    spark: SparkSession, reading: Reading, limit: int, progress: Progress
) -> tuple[pa.Table, int]:
    """The first rows with the key, in the order they came (at most `limit`), and how many there
    are."""
    with watched(spark, progress, "probing"):
        found = rows(spark, reading)
        first = found.orderBy(TS).limit(limit).toArrow()
        count = first.num_rows if first.num_rows < limit else found.count()
    return first.cast(stored_schema(reading.manifest.schema)), count


def shown(table: pa.Table, reading: Reading) -> tuple[list[str], list[str], pa.Table]:
    """Names, SQL types and physical columns of rows, for printing."""
    schema = reading.manifest.schema
    columns = [kept(table.column(i), f.type) for i, f in enumerate(schema)]
    names = [f.name for f in schema]
    return names, [str(f.type) for f in schema], pa.table(columns, names=names)


def scan(spark: SparkSession, reading: Reading, progress: Progress) -> dict[str, Any]:
    """Read every row, all columns: how many, when they came, and a checksum that all of it went
    into."""
    from pyspark.sql import functions as f

    names = ["`" + c.name.replace("`", "``") + "`" for c in reading.manifest.schema]
    figures = [
        f.count(f.lit(1)).alias("rows"),
        f.min(TS).alias("first"),
        f.max(TS).alias("last"),
        f.expr("bit_xor(xxhash64(" + ", ".join([*names, TS]) + "))").alias("checksum"),
    ]
    with watched(spark, progress, "scanning"):
        (row,) = rows(spark, reading).agg(*figures).collect()
    return {
        "rows": row["rows"],
        "first": row["first"],
        "last": row["last"],
        "checksum": row["checksum"],
    }
