"""Archives' files as Spark data frames, and back: rows clustered into the files of sub-indices."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from dsms.sql.types import Kind, Schema
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import INDEX, Archive, IndexFile
from dsms.storage.archive.schema import EXP, MARKS, TS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SUB = "__sub"
GROUP_BYTES = 8 << 20  # of a row group: what statistics and Bloom filters let a probe skip


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
    }
    fields = [
        t.StructField(
            f.name, t.DecimalType(f.type.precision, f.type.scale) if f.type.kind is Kind.DECIMAL else kinds[f.type.kind]
        )
        for f in schema
    ]
    return t.StructType([*fields, *(t.StructField(name, t.LongType()) for name in MARKS)])


def read_files(spark: SparkSession, archive: Archive, schema: Schema, paths: Sequence[str]) -> DataFrame:
    """The rows of some files; columns that a file does not have are NULL."""
    columns = spark_schema(schema)
    if not paths:
        return spark.createDataFrame([], columns)
    return spark.read.schema(columns).parquet(*(archive.location(p) for p in paths))


def with_sub(rows: DataFrame, layout: Layout) -> DataFrame:
    """The rows with the sub-index that each belongs to (as `Layout.sub` has it, in Spark's words)."""
    from pyspark.sql import functions as f

    generation = _partition(f.col(TS), layout, layout.generations)
    place = generation * layout.expirations
    if layout.expirations > 1:
        place = place + _partition(f.col(EXP), layout, layout.expirations)
    return rows.withColumn(SUB, place.cast("int"))


def _partition(x: Column, layout: Layout, partitions: int) -> Column:
    from pyspark.sql import functions as f

    step = _floor(x - f.lit(layout.origin), layout.every)
    return f.pmod(_floor(step, layout.width(partitions)), f.lit(partitions))


def _floor(x: Column, by: int) -> Column:
    """Floor division of whole numbers, exactly."""
    from pyspark.sql import functions as f

    return ((x - f.pmod(x, f.lit(by))) / f.lit(by)).cast("long") if by == 1 else _divided(x - f.pmod(x, f.lit(by)), by)


def _divided(x: Column, by: int) -> Column:
    from pyspark.sql import functions as f

    return f.call_function("div", x, f.lit(by))


def write_files(
    rows: DataFrame, archive: Archive, layout: Layout, key: str | None, number: int, subs: int
) -> tuple[IndexFile, ...]:
    """Write rows as files of sub-indices, clustered by key, with statistics and Bloom filters; what was written."""
    target = f"{INDEX}/{number:012d}"
    order = [SUB, *([_quoted(key)] if key is not None else []), EXP]
    placed = with_sub(rows, layout).repartition(max(1, subs), SUB).sortWithinPartitions(*order)
    out = placed.write.partitionBy(SUB).option("parquet.block.size", GROUP_BYTES).option("compression", "zstd")
    if key is not None:
        out = out.option(f"parquet.bloom.filter.enabled#{key}", "true")
    out.parquet(archive.location(target))
    return written(archive, target, key)


def written(archive: Archive, folder: str, key: str | None) -> tuple[IndexFile, ...]:
    """What the files in a folder hold, from their footers."""
    out = []
    for info in archive.infos(folder, recursive=True):
        if info.type == pafs.FileType.File and info.base_name.endswith(".parquet"):
            sub = int(info.path.rsplit(f"{SUB}=", 1)[1].split("/")[0])
            out.append(_told(archive, info.path[len(archive.root) + 1 :], sub, info.size, key))
    return tuple(out)


def _told(archive: Archive, path: str, sub: int, size: int, key: str | None) -> IndexFile:
    with archive.fs.open_input_file(archive.path(path)) as file:
        told = pq.read_metadata(file)
    ts, exp = _range(told, TS), _range(told, EXP)
    assert ts is not None and exp is not None
    return IndexFile(path, sub, told.num_rows, size, ts, exp, None if key is None else _range(told, key))


def _range(told: pq.FileMetaData, column: str) -> tuple[Any, Any] | None:
    """Smallest and largest value of a column; None where the file does not say, or JSON can't."""
    names = [told.schema.column(i).path for i in range(told.num_columns)]
    stats = [told.row_group(g).column(names.index(column)).statistics for g in range(told.num_row_groups)]
    if not stats or any(s is None or not s.has_min_max for s in stats):
        return None
    low, high = min(s.min for s in stats), max(s.max for s in stats)
    low, high = _plain(low), _plain(high)
    return None if low is None or high is None else (low, high)


def _plain(value: Any) -> Any:
    match value:
        case datetime.datetime():
            return round(value.replace(tzinfo=datetime.UTC).timestamp() * 1_000_000)
        case bool() | int() | float() | str():
            return value
    return None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
