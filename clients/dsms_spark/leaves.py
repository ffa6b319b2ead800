"""An archive's files as the rows of a leaf: numbered columns, and what tells the rows' ages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dsms.oneshot.dialect import SPARK
from dsms.oneshot.pushdown import SIGNS, Condition, Needed
from dsms.oneshot.scalars import literal
from dsms.sql.expr import Lit
from dsms.sql.types import ALWAYS, FOREVER, Field, Kind, Schema
from dsms.storage.archive.job import ArchiveSource
from dsms.storage.archive.manifest import Archive
from dsms.storage.archive.schema import EXP, ID, TS
from dsms.typed_texts import DAY
from dsms_spark.frames import read_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def archived_rows(spark: SparkSession, source: ArchiveSource, needed: Needed) -> DataFrame:
    """The rows of the files that the plan needs: c0, c1, ... and t, b, i0.

    Columns that are not used are NULL and never read."""
    frame = read_files(spark, Archive(source.url), source.schema, source.paths)
    for text in _wanted(source, needed):
        frame = frame.where(text)
    schema = needed.scan.schema
    columns = [_column(f, k, k in needed.columns) for k, f in enumerate(schema)]
    return frame.selectExpr(*columns, f"{TS} AS t", f"{TS} AS b", f"{ID} AS i0")


def _wanted(source: ArchiveSource, needed: Needed) -> list[str]:
    read = source.read
    out = []
    if read.since > ALWAYS:
        out.append(f"{TS} > {read.since}")
    if read.upto < FOREVER:
        out.append(f"{TS} <= {read.upto}")
    out += [f"{EXP} > {read.as_of}"] if read.as_of > ALWAYS else []
    return [*out, *_asked(needed.conditions, needed.scan.schema)]


def _asked(conditions: Iterable[Condition], schema: Schema) -> Iterable[str]:
    for c in conditions:
        field = schema[c.column]
        values = [_spelled(v, field) for v in c.values]
        if None in values:
            continue
        tail = (
            f"IN ({', '.join(map(str, values))})" if c.op == "in" else f"{SIGNS[c.op]} {values[0]}"
        )
        yield f"{quoted(field.name)} {tail}"


def _spelled(value: object, field: Field) -> str | None:
    """A constant as it is compared with a Parquet column."""
    text = literal(Lit(value, field.type), SPARK)
    if text is not None and field.type.kind is Kind.TIMESTAMP:
        return f"timestamp_micros({text})"
    if text is not None and field.type.kind is Kind.DATE:
        return f"date_from_unix_date(CAST({text} DIV {DAY} AS INT))"
    return text


def _column(field: Field, place: int, wanted: bool) -> str:
    """A column as plans have it.  FLOATs are wrapped, lest Spark compare them with statistics that
    know no NaN and tell -0.0 from 0.0."""
    name = quoted(field.name)
    if not wanted:
        return f"CAST(NULL AS {SPARK.type(field.type)}) AS c{place}"
    match field.type.kind:
        case Kind.TIMESTAMP:
            return f"unix_micros({name}) AS c{place}"
        case Kind.DATE:
            return f"unix_date({name}) * {DAY}L AS c{place}"
        case Kind.FLOAT:
            return f"nanvl({name}, {name}) AS c{place}"
        case _:
            return f"{name} AS c{place}"


def quoted(name: str) -> str:
    """A column's name in Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"
