"""A runner of archive queries without Spark: files read by pyarrow, the plan run as one over live
rows is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dsms.api import Cancel
from dsms.oneshot.pushdown import needed
from dsms.oneshot.run import OneShot
from dsms.operators.expressions import ErrorCounter
from dsms.sql import logical as lp
from dsms.sql.types import Schema
from dsms.state.batch import Batch
from dsms.storage.archive.job import ArchiveJob, ArchiveSource
from dsms.storage.archive.manifest import Archive
from dsms.storage.archive.schema import (
    EXP,
    ID,
    MARKS,
    TS,
    filled,
    in_files,
    kept,
    stored_schema,
    unlike,
)


class Local:
    """`jobs`: what it was given, the last one last."""

    def __init__(self) -> None:
        self.jobs: list[ArchiveJob] = []

    def run(self, job: ArchiveJob, cancel: Cancel | None = None) -> pa.RecordBatch:
        self.jobs.append(job)
        if cancel is not None:
            cancel.check()
        leaves = {leaf: list(rows) for leaf, rows in job.given.items()}
        for leaf, need in needed(job.plan, job.at).items():
            found = archived_rows(job.sources[leaf], need.scan)
            leaves[leaf] = [*found, *leaves.get(leaf, [])]
        return OneShot(job.limit).run(job.plan, leaves, job.at, ErrorCounter("stop"), cancel)


def conformed(table: pa.Table, schema: Schema) -> pa.Table:
    """The rows of a file that fits an archive, with the archive's columns: those that it lacks are
    NULL."""
    assert unlike(table.schema, schema) is None
    there = set(table.schema.names)
    columns = [
        table.column(f.name).cast(f.type) if f.name in there else pa.nulls(table.num_rows, f.type)
        for f in stored_schema(in_files(schema))
    ]
    found = pa.table(columns, schema=stored_schema(in_files(schema)))
    meant = [filled(f, found) for f in schema]
    return pa.table([*meant, *(found[m] for m in MARKS)], schema=stored_schema(schema))


def archived_rows(source: ArchiveSource, scan: lp.StreamScan) -> list[Batch]:
    """The rows that a source means, in order of (ts, arrival)."""
    archive, read = Archive(source.url), source.read
    tables = []
    for path in source.paths:
        with archive.open(path) as file:
            tables.append(conformed(pq.ParquetFile(file).read(), source.schema))
    if not tables:
        return []
    rows = pa.concat_tables(tables)
    ts, exp = rows.column(TS), rows.column(EXP)
    there = pc.and_(
        pc.and_(pc.greater(ts, read.since), pc.less_equal(ts, read.upto)),
        pc.greater(exp, read.as_of),
    )
    rows = rows.filter(there).sort_by([(TS, "ascending"), (ID, "ascending")]).combine_chunks()
    if not rows.num_rows:
        return []
    cols = tuple(kept(pa.concat_arrays(rows.column(f.name).chunks), f.type) for f in scan.schema)
    ts, ids = (np.array(rows.column(name), np.int64) for name in (TS, ID))
    return [Batch(ts, None, None, (ids,), cols)]
