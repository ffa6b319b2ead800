"""Archives' files as Spark data frames, and back: rows clustered into the files of sub-indices."""

from __future__ import annotations

import datetime
import math
import re
import uuid
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from dsms.errors import UsageError
from dsms.sql.types import FOREVER, Field, Kind, Schema
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import INDEX, Archive, IndexFile, Manifest
from dsms.storage.archive.schema import EXP, MARKS, TS, Filled, in_files, names_of
from dsms.storage.archive.work import PartitionFiles, Work
from dsms.typed_texts import DAY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SUB = "__sub"
# of the rows of a page, all columns together: what a probe unpacks
PAGE_BYTES, MOST_LINES = 32 << 10, 20_000
# what a footer says of a column of a row group, and an index of a page, about
CHUNK_BYTES, ENTRY_BYTES = 150, 40
SMALLEST, LARGEST = 128 << 10, 32 << 20  # bytes of a row group
CHECKED_ROWS = 16  # after so many rows it is looked whether a row group is full
BLOOM_BYTES = 64 << 10  # of a row group's Bloom filter, at most
# of the bounds that a row group has for text and bytes: longer ones would make footers long
BOUND_BYTES = 64
PRECISE = 1000  # of the instant at which half of a file's rows have expired: one part in that many
EPOCH = datetime.datetime(1970, 1, 1)


def spark_schema(schema: Schema) -> Any:
    """The Parquet columns of an archive as Spark's types."""
    from pyspark.sql import types as t

    kinds = {
        Kind.BOOL: t.BooleanType(),
        Kind.INT: t.LongType(),
        Kind.FLOAT: t.DoubleType(),
        Kind.STRING: t.StringType(),
        Kind.BYTES: t.BinaryType(),
        Kind.TIMESTAMP: t.TimestampType(),
        Kind.INTERVAL: t.LongType(),
        Kind.DATE: t.DateType(),
        Kind.TIME: t.LongType(),
        Kind.UUID: t.StringType(),
        Kind.LIST: t.StringType(),
        Kind.STRUCT: t.StringType(),
    }
    fields = [
        t.StructField(
            f.name,
            t.DecimalType(f.type.precision, f.type.scale)
            if f.type.kind is Kind.DECIMAL
            else kinds[f.type.kind],
        )
        for f in schema
    ]
    return t.StructType([*fields, *(t.StructField(name, t.LongType()) for name in MARKS)])


def read_files(
    spark: SparkSession, archive: Archive, schema: Schema, paths: Sequence[str]
) -> DataFrame:
    """The rows of some files; columns that a file does not have have their default, or NULL."""
    if not paths:
        return spark.createDataFrame([], spark_schema(schema))
    columns = spark_schema(in_files(schema))
    rows = spark.read.schema(columns).parquet(*(_escaped(archive.location(p)) for p in paths))
    made = {f.name: _filled(f, f.default) for f in schema if isinstance(f.default, Filled)}
    others = [name for f in schema for name in names_of(f)[1:]]
    return rows.withColumns(made).drop(*others) if made else rows


def _filled(field: Field, default: Filled) -> Column:
    """As `filled` of `dsms.storage.archive.schema`."""
    from pyspark.sql import functions as f

    said, names = f.lit(default.value), (n.replace("`", "``") for n in names_of(field))
    here = f.coalesce(*(f.col(f"`{name}`") for name in names))
    match field.type.kind:
        case Kind.TIMESTAMP:
            value = f.timestamp_micros(said)
        case Kind.DATE:
            value = f.date_from_unix_date((said / DAY).cast("int"))
        case _:
            value = said.cast(spark_schema((field,))[0].dataType)
    return f.when(here.isNull() & (f.col(TS) <= default.upto), value).otherwise(here)


def _escaped(path: str) -> str:
    """A path that Spark does not take for a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


# -- the rows of a job, and where they go


def placed(spark: SparkSession, archive: Archive, manifest: Manifest, work: Work) -> DataFrame:
    """All rows that a job reads, with the sub-index that each belongs to."""
    frames = [_part(spark, archive, manifest, work.layout, part) for part in work.parts]
    return reduce(lambda a, b: a.unionByName(b), frames)


def _part(
    spark: SparkSession, archive: Archive, manifest: Manifest, layout: Layout, part: PartitionFiles
) -> DataFrame:
    from pyspark.sql import functions as f

    rows = read_files(spark, archive, manifest.schema, part.paths)
    fixed = part.generation
    generation = (
        f.lit(fixed) if fixed is not None else _partition(f.col(TS), layout, layout.generations)
    )
    sub = generation * layout.expirations
    if layout.expirations > 1:
        finite = f.when(f.col(EXP) == FOREVER, f.lit(layout.origin)).otherwise(f.col(EXP))
        sub = sub + _partition(finite, layout, layout.expirations)
    return rows.withColumn(SUB, sub.cast("int"))


def _partition(x: Column, layout: Layout, partitions: int) -> Column:
    """As `Layout.generation` and `Layout.expiration` have it, in Spark's words."""
    from pyspark.sql import functions as f

    step = _floor(x - f.lit(layout.origin), layout.every)
    return f.pmod(_floor(step, layout.width(partitions)), f.lit(partitions))


def _floor(x: Column, by: int) -> Column:
    """Floor division of whole numbers, exactly."""
    from pyspark.sql import functions as f

    return x if by == 1 else f.call_function("div", x - f.pmod(x, f.lit(by)), f.lit(by))


# -- writing


def write_files(
    spark: SparkSession, archive: Archive, manifest: Manifest, work: Work
) -> tuple[IndexFile, ...]:
    """Do a job's work: one Spark job that writes one file for each sub-index, clustered by key,
    with statistics and Bloom filters in small row groups.  What was written; no manifest names it
    yet.

    Raises DS955 if Spark has not read or written all rows."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    folder = f"{INDEX}/{manifest.number + 1:012d}-{uuid.uuid4().hex[:8]}"
    seen = Observation()
    alive = f.col(EXP) > work.upto
    counts = [
        f.count(f.lit(1)).alias("read"),
        f.count(f.when(alive, 1)).alias("alive"),
        *map(_half(alive), work.targets),
    ]
    rows = placed(spark, archive, manifest, work).observe(seen, *counts).where(alive)
    _writer(_by_sub(rows, work), work, manifest.schema).parquet(archive.location(folder))
    found = seen.get
    made = written(archive, folder, work.key, {s: found.get(f"half{s}") for s in work.targets})
    _compare(archive, work.rows, found["read"], "read")
    _compare(archive, found["alive"], sum(m.rows for m in made), "written")
    archive.sync(m.path for m in made)
    return made


def _half(alive: Column) -> Any:
    from pyspark.sql import functions as f

    def of(sub: int) -> Column:
        exp = f.when(alive & (f.col(SUB) == sub), f.col(EXP))
        return f.percentile_approx(exp, 0.5, PRECISE).alias(f"half{sub}")

    return of


def _by_sub(rows: DataFrame, work: Work) -> DataFrame:
    """One partition for each sub-index, clustered."""
    from pyspark.sql import functions as f

    place = {sub: n for n, sub in enumerate(work.targets)}
    dense = f.element_at(
        f.create_map(*(f.lit(x) for pair in place.items() for x in pair)), f.col(SUB)
    )
    if hasattr(rows, "repartitionById"):
        parted = rows.repartitionById(len(place), dense.cast("int"))
    else:  # before Spark 4.1: two sub-indices may share a partition
        parted = rows.repartition(len(place), f.col(SUB))
    return parted.sortWithinPartitions(
        SUB, *([_quoted(work.key)] if work.key is not None else [TS]), EXP
    )


def _writer(rows: DataFrame, work: Work, schema: Schema) -> Any:
    size = group_bytes(work.bytes // max(1, len(work.targets)))
    out = rows.write.partitionBy(SUB).option("compression", "zstd")
    out = out.option("parquet.block.size", str(size)).option(
        "parquet.page.size.row.check.min", str(CHECKED_ROWS)
    )
    lines = max(CHECKED_ROWS, min(MOST_LINES, PAGE_BYTES * work.rows // max(1, work.bytes)))
    out = out.option("parquet.page.row.count.limit", str(lines))
    out = out.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    out = out.option("parquet.statistics.truncate.length", str(BOUND_BYTES))
    # 0.0 and -0.0 are the same key
    if any(f.name == work.key and f.type.kind is not Kind.FLOAT for f in schema):
        values = max(16, size * work.rows // max(1, work.bytes))
        out = out.option(f"parquet.bloom.filter.enabled#{work.key}", "true")
        out = out.option(f"parquet.bloom.filter.expected.ndv#{work.key}", str(values))
        out = out.option("parquet.bloom.filter.max.bytes", str(BLOOM_BYTES))
    return out


def group_bytes(file_bytes: int) -> int:
    """The size of row groups: a probe reads the footer (row groups), the index of one row group
    (pages), and some pages; that is least where the first two are as large."""
    return max(
        SMALLEST, min(LARGEST, math.isqrt(file_bytes * PAGE_BYTES * CHUNK_BYTES // ENTRY_BYTES))
    )


def _compare(archive: Archive, expected: int, found: int, what: str) -> None:
    if expected != found:
        raise UsageError(
            "DS955",
            f"of {expected} rows at {archive.url} Spark has {what} {found}",
            hint="the archive is as it was; look for damaged files, and run the job again",
        )


def written(
    archive: Archive, folder: str, key: str | None, halves: dict[int, int | None]
) -> tuple[IndexFile, ...]:
    """What the files in a folder hold, from their footers."""
    out = []
    for info in archive.infos(folder, recursive=True):
        if info.type == pafs.FileType.File and info.base_name.endswith(".parquet"):
            path, sub = (
                info.path[len(archive.root) + 1 :],
                int(info.path.rsplit(f"{SUB}=", 1)[1].split("/")[0]),
            )
            made = _index_file(archive, path, sub, info.size, key, halves.get(sub))
            out += [made] if made.rows else []
    return tuple(out)


def _index_file(
    archive: Archive, path: str, sub: int, size: int, key: str | None, half: int | None
) -> IndexFile:
    with archive.open(path) as file:
        counts = pq.read_metadata(file)
    ts, exp = _range(counts, TS), _range(counts, EXP)
    assert ts is not None and exp is not None
    return IndexFile(
        path,
        sub,
        counts.num_rows,
        size,
        ts,
        exp,
        None if key is None else _range(counts, key),
        half,
    )


def _range(metadata: pq.FileMetaData, column: str) -> tuple[Any, Any] | None:
    """Smallest and largest value of a column; None where the file does not say (or has only
    NULLs)."""
    names = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    if column not in names:
        return None
    stats = [
        metadata.row_group(g).column(names.index(column)).statistics
        for g in range(metadata.num_row_groups)
    ]
    if any(
        s is None or not (s.has_min_max or (s.has_null_count and s.num_values == 0)) for s in stats
    ):
        return None
    bounds = [_plain(v) for s in stats if s.has_min_max for v in (s.min, s.max)]
    # NaN is above all numbers, but not for Python
    if not bounds or any(v is None or v != v for v in bounds):
        return None
    return min(bounds), max(bounds)


def _plain(value: Any) -> Any:
    match value:
        case datetime.datetime():
            return (value.replace(tzinfo=None) - EPOCH) // datetime.timedelta(microseconds=1)
        case datetime.date():
            return (value - EPOCH.date()).days * DAY
        case bool() | int() | float() | str() | bytes() | Decimal():
            return value
    return None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
