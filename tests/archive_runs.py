"""Runs a bound plan once over archives that hold given rows: the same input as
`tests.oneshot_runs`, through Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.oneshot.pushdown import needed
from dsms.oneshot.reads import reads
from dsms.sql import logical as lp
from dsms.sql.types import FOREVER, Schema
from dsms.storage.archive.job import ArchiveJob, ArchiveSource, source
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import Archive, create
from dsms.storage.archive.schema import stored, stored_schema
from dsms_spark.execute import run_job
from tests.oneshot_runs import _leaf, _parted
from tests.oracle import Change, Row


def archive(
    folder: Path, name: str, schema: Schema, rows: Sequence[Row], every: int, key: str | None = None
) -> Archive:
    """An archive in which those rows have landed; they are kept for good."""
    made = create(
        str(folder / name.casefold()), name, "stream", schema, key, Layout(2, 1, every), None
    )
    landing = Landing(made)
    steps: dict[int, list[Row]] = {}
    for row in rows:
        steps.setdefault(row.ts // every, []).append(row)
    for step in sorted(steps):
        landing.write(table(schema, steps[step]), max(r.ts for r in steps[step]))
    return made


def table(schema: Schema, rows: Sequence[Row], exp: int = FOREVER) -> pa.Table:
    """Rows as they land."""
    given = (pa.array([r.values[k] for r in rows], f.type.arrow) for k, f in enumerate(schema))
    columns = [stored(values, f.type) for values, f in zip(given, schema, strict=True)]
    marks = [[r.ts for r in rows], [exp] * len(rows), [r.arrival for r in rows]]
    columns += [pa.array(np.array(m, np.int64)) for m in marks]
    wanted = stored_schema(schema)
    return pa.table([c.cast(f.type) for c, f in zip(columns, wanted, strict=True)], schema=wanted)


def from_archives(node: Any, only: frozenset[str] | None = None) -> Any:
    """The plan with its streams (those named) read from archives."""
    if isinstance(node, lp.Append):
        return node  # what was appended is given
    if isinstance(node, lp.StreamScan) and (only is None or node.stream.name in only):
        return replace(node, archive=lp.Archived("stream"))
    return lp.with_children(node, tuple(from_archives(c, only) for c in lp.children(node)))


def run(
    spark: Any,
    folder: Path,
    plan: lp.Node,
    streams: Mapping[str, Sequence[Row]],
    tables: Mapping[str, Sequence[Change]],
    at: int,
    every: int = 10_000_000,
) -> pa.RecordBatch:
    """The plan's answer at `at`, its streams read from archives that are made for it."""
    return run_job(spark, job_of(folder, from_archives(plan), streams, tables, at, every))


def job_of(
    folder: Path,
    plan: lp.Node,
    streams: Mapping[str, Sequence[Row]],
    tables: Mapping[str, Sequence[Change]],
    at: int,
    every: int,
) -> ArchiveJob:
    sources: dict[int, ArchiveSource] = {}
    given = {}
    need = needed(plan, at)
    for leaf, read in reads(plan).items():
        if leaf not in need:
            given[leaf] = _parted(_leaf(read, streams, tables, at), 3)
            continue
        scan, n = need[leaf].scan, need[leaf]
        made = folder / scan.stream.name.casefold()
        if not made.exists():
            archive(
                folder,
                scan.stream.name,
                scan.stream.schema,
                streams.get(scan.stream.name, ()),
                every,
            )
        sources[leaf] = source(str(made), None, n.since, n.upto, at, n.bounds())
    return ArchiveJob(plan, at, sources, given, 1 << 30)
