"""Rows of an archive as files for others: Parquet, CSV or Arrow IPC; in the order they came, in one
file or a folder.

Spark sorts the rows and writes them as Parquet beside the target; what has to have another form, or
to be one file, is then written from that, a piece at a time.  The target appears when it is
complete.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from dsms.errors import UsageError
from dsms.lists import from_edge
from dsms.sql.types import Kind, Schema
from dsms.storage.archive.schema import ID, MARKS, TS
from dsms_spark.reads import Progress, Reading, rows
from dsms_spark.tasks import watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".arrows": "arrow",
}
ENDINGS = {"parquet": "parquet", "csv": "csv", "arrow": "arrow"}
PIECE = 100_000  # rows that are rewritten at a time


def format_of(target: str, said: str | None) -> tuple[str, bool]:
    """The format of a target, and whether it is one file: that is what a known ending means.
    Raises DS640."""
    by_name = FORMATS.get(Path(target).suffix.lower())
    form = said or by_name or "parquet"
    if form not in ENDINGS:
        raise UsageError(
            "DS640", f"there is no format {form}", hint=f"formats are {', '.join(ENDINGS)}"
        )
    return form, by_name is not None and not target.endswith(("/", os.sep))


def edge_schema(schema: Schema, marks: bool) -> pa.Schema:
    """The columns as others see them: INTERVAL is a duration, TIMESTAMP an instant in UTC, DATE and
    TIME are Arrow's."""
    edge = {
        Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
        Kind.INTERVAL: pa.duration("us"),
        Kind.DATE: pa.date32(),
        Kind.TIME: pa.time64("us"),
    }
    fields = [pa.field(f.name, edge.get(f.type.kind, f.type.arrow)) for f in schema]
    return pa.schema(fields + [pa.field(name, pa.int64()) for name in MARKS] * marks)


def export(
    spark: SparkSession,
    reading: Reading,
    target: str,
    form: str,
    single: bool,
    marks: bool,
    progress: Progress,
) -> dict[str, Any]:
    """Write the rows; answers with rows, files and bytes.  `marks`: insertion, expiry and number of
    each row, too.

    Raises DS531 where the target is there already or can't be written."""
    place = Path(target)
    with _written(place) as folder:
        parts = folder / "parts"
        _sorted_parts(spark, reading, parts, marks, progress)
        files = sorted(parts.glob("*.parquet"))
        schema = edge_schema(reading.manifest.schema, marks)
        if single:
            done = folder / f"one.{ENDINGS[form]}"
            count = _rewritten(files, done, form, schema, progress)
        else:
            done = folder / "all"
            done.mkdir()
            count = sum(
                _rewritten([file], done / f"part-{i:05d}.{ENDINGS[form]}", form, schema, progress)
                for i, file in enumerate(files)
            )
        done.rename(place)
    made = [place] if single else sorted(place.iterdir())
    return {
        "rows": count,
        "files": len(made),
        "bytes": sum(f.stat().st_size for f in made),
        "target": target,
    }


def _sorted_parts(
    spark: SparkSession, reading: Reading, parts: Path, marks: bool, progress: Progress
) -> None:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    names = ["`" + c.name.replace("`", "``") + "`" for c in reading.manifest.schema]
    seen = Observation()
    with watched(spark, progress, "sorting"):
        found = rows(spark, reading).orderBy(TS, ID).select(*names, *(MARKS if marks else ()))
        counted = found.observe(seen, f.count(f.lit(1)).alias("rows"))
        counted.write.option("compression", "zstd").parquet(parts.resolve().as_uri())
    here = sum(pq.read_metadata(file).num_rows for file in parts.glob("*.parquet"))
    if here != seen.get["rows"]:
        raise UsageError(
            "DS531",
            f"of {seen.get['rows']} rows that Spark wrote to {parts.parent}, {here} are here",
            hint="on a cluster, name a folder that its machines and this one share",
        )


@contextmanager
def _written(place: Path) -> Iterator[Path]:
    """A folder beside the target to write in, gone afterwards."""
    if place.exists():
        raise UsageError(
            "DS531", f"{place} is there already", hint="name another target, or remove it first"
        )
    folder = place.absolute().parent / f".{place.name}.{uuid.uuid4().hex[:8]}.part"
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as problem:
        raise UsageError("DS531", f"cannot write {place}: {problem.strerror or problem}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _rewritten(
    files: list[Path], target: Path, form: str, schema: pa.Schema, progress: Progress
) -> int:
    count = 0
    with _writer(target, form, schema) as write:
        for number, file in enumerate(files):
            progress("writing", number, len(files))
            with pq.ParquetFile(file, page_checksum_verification=True) as source:
                for batch in source.iter_batches(PIECE):
                    write(_edge(batch, schema, form))
                    count += batch.num_rows
    return count


def _edge(batch: pa.RecordBatch, schema: pa.Schema, form: str) -> pa.RecordBatch:
    """The rows in the types of the edge; CSV has no durations and no bytes."""
    fields = _csv_fields(schema) if form == "csv" else schema
    columns = []
    for column, field in zip(batch.columns, fields, strict=True):
        if pa.types.is_binary(column.type) and pa.types.is_string(field.type):
            column = pa.array(
                [None if v is None else "\\x" + v.hex() for v in column.to_pylist()], pa.string()
            )
        if pa.types.is_list(column.type) and pa.types.is_string(field.type):
            column = from_edge(column)
        columns.append(column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=fields)


def _csv_fields(schema: pa.Schema) -> pa.Schema:
    """As `dsms load` reads them: instants of UTC without saying so, lengths of time in µs, bytes as
    \\x..."""

    def field(f: pa.Field) -> pa.Field:
        if pa.types.is_duration(f.type):
            return pa.field(f.name, pa.int64())
        if pa.types.is_timestamp(f.type):
            return pa.field(f.name, pa.timestamp("us"))
        as_text = pa.types.is_binary(f.type) or pa.types.is_list(f.type)
        return pa.field(f.name, pa.string()) if as_text else f

    return pa.schema([field(f) for f in schema])


@contextmanager
def _writer(
    target: Path, form: str, schema: pa.Schema
) -> Iterator[Callable[[pa.RecordBatch], None]]:
    if form == "parquet":
        with pq.ParquetWriter(target, schema, compression="zstd") as parquet:
            yield parquet.write_batch
    elif form == "arrow":
        with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, schema) as arrow:
            yield arrow.write_batch
    else:
        with pc.CSVWriter(target, _csv_fields(schema)) as text:
            yield text.write_batch
