"""Archives that are small enough are read in this process: their rows become those of the plan's
leaves, and DuckDB runs the plan as over live rows, so it means the same.

The files of a query's archives are read whole, as far as their plan names them
(`dsms.storage.archive.prune`); more bytes of files than `Settings.archive_local_bytes` are left to
Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dsms.api import Cancel
from dsms.errors import UsageError
from dsms.oneshot.limits import Room
from dsms.oneshot.pushdown import Needed
from dsms.oneshot.run import OneShot
from dsms.operators.expressions import ErrorCounter
from dsms.operators.pieces import go_on
from dsms.sql.types import Field, Schema
from dsms.state.batch import Batch
from dsms.storage.archive.job import ArchiveJob, ArchiveSource, overtaken, too_few
from dsms.storage.archive.manifest import Archive
from dsms.storage.archive.schema import EXP, ID, MARKS, TS, filled, in_files, kept, stored_type

Look = Callable[[], object]
RESTORE = "restore the file, or the archive's folder, from a copy"


def size(sources: Mapping[int, ArchiveSource]) -> int:
    """Bytes of the files that are read."""
    return sum(source.read.read_bytes for source in sources.values())


def run_here(
    oneshot: OneShot, job: ArchiveJob, needed: Mapping[int, Needed], cancel: Cancel | None
) -> pa.RecordBatch:
    """The answer of a job.  Raises DS610, DS633, DS7xx, DS392 (rows of a window have expired),
    DS954 (the archive was updated twice meanwhile) and DS955 (a file can't be read)."""
    look = go_on if cancel is None else cancel.check
    room, given = Room(job.limit), dict(job.given)
    for leaf, source in job.sources.items():
        rows = archived_rows(source, needed[leaf], room, look)
        given[leaf] = [*([rows] if len(rows) else ()), *given.get(leaf, ())]
    for leaf in job.short:
        found, wanted = sum(map(len, given[leaf])), needed[leaf].rows
        if wanted is not None and found < wanted:
            raise too_few(needed[leaf].scan.stream.name, wanted, found)
    return oneshot.run(
        job.plan,
        given,
        job.at,
        ErrorCounter("stop") if job.limit is None else ErrorCounter.once(job.limit),
        cancel,
    )


def archived_rows(source: ArchiveSource, needed: Needed, room: Room, look: Look) -> Batch:
    """The rows of the files that the plan needs, in order of (instant, arrival).  Columns that it
    does not look at are NULL and not read."""
    schema = needed.scan.schema
    own = {f.name: f for f in source.schema}
    used = tuple(own.get(f.name, f) for k, f in enumerate(schema) if k in needed.columns)
    parts = [_read(source, path, used, room, look) for path in source.paths]
    marks = [np.concatenate([np.empty(0, np.int64), *(p[k] for p, _ in parts)]) for k in (0, 1)]
    order = np.lexsort((marks[1], marks[0]))
    ts, ids = (m[order] for m in marks)
    columns = []
    places = iter(range(len(used)))
    for k, f in enumerate(schema):
        if k not in needed.columns or not parts:
            columns.append(pa.nulls(len(order), f.type.arrow))
            continue
        place = next(places)
        columns.append(pa.concat_arrays([cols[place] for _, cols in parts]).take(pa.array(order)))
    return Batch(ts, None, None, (ids,), tuple(columns))


Part = tuple[tuple[np.ndarray, np.ndarray], list[pa.Array]]  # instants, arrivals; columns


def _read(source: ArchiveSource, path: str, used: Schema, room: Room, look: Look) -> Part:
    """What one file has of the rows inserted in (since, upto] that have not expired."""
    look()
    archive, columns = Archive(source.url), {f.name: f.type for f in in_files(used)}
    try:
        with (
            archive.open(path) as file,
            pq.ParquetFile(file, page_checksum_verification=True) as parquet,
        ):
            there = set(parquet.schema_arrow.names)
            table = parquet.read([*MARKS, *(name for name in columns if name in there)])
    except (FileNotFoundError, UsageError) as problem:
        raise _gone(archive, path) from problem
    except (pa.ArrowException, OSError) as problem:
        what = f"{archive.path(path)} can't be read: {problem}"
        raise UsageError("DS955", what, hint=RESTORE) from None
    ts, exp, ids = (table.column(name).to_numpy() for name in (TS, EXP, ID))
    read = source.read
    inside = np.flatnonzero((ts > read.since) & (ts <= read.upto) & (exp > read.as_of))
    table = table.take(pa.array(inside)).combine_chunks()
    room.take(table.nbytes)
    for name in columns.keys() - there:  # the file is older than it, or has it by another name
        none = pa.nulls(table.num_rows, stored_type(columns[name]))
        table = table.append_column(name, none)
    return (ts[inside], ids[inside]), [_column(table, f) for f in used]


def _column(table: pa.Table, field: Field) -> pa.Array:
    """A column as it is meant, with its physical type."""
    column = filled(field, table)
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays([pa.array([], column.type), *column.chunks])
    return kept(column, field.type)


def _gone(archive: Archive, path: str) -> UsageError:
    """A file that was to be read is not there: because of an update, or because it was removed."""
    if any(file.path == path for file in archive.manifest().files):
        return UsageError("DS955", f"{archive.path(path)} is missing", hint=RESTORE)
    return overtaken()
