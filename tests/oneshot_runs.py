"""Runs a bound plan once over given input: what `dsms.oneshot` is handed, made from the oracle's
rows and changes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from dsms.oneshot.reads import Read, reads
from dsms.oneshot.run import OneShot
from dsms.operators.expressions import ErrorCounter
from dsms.sql import logical as lp
from dsms.sql.types import FOREVER, Schema
from dsms.state.batch import Batch
from tests.oracle import Change, Oracle, Row

ADHOC = OneShot(memory_limit=1 << 30)


def run(
    plan: lp.Node,
    streams: Mapping[str, Sequence[Row]],
    tables: Mapping[str, Sequence[Change]],
    at: int,
    errors: ErrorCounter | None = None,
    identity: bool = False,
    cut: int = 3,
) -> pa.RecordBatch:
    """The plan's answer at `at`; leaves come in batches of `cut` rows."""
    given = {leaf: _parted(_leaf(r, streams, tables, at), cut) for leaf, r in reads(plan).items()}
    return ADHOC.run(plan, given, at, errors or ErrorCounter(), identity=identity)


def values(rows: pa.RecordBatch) -> list[tuple]:
    return (
        [tuple(r) for r in zip(*(c.to_pylist() for c in rows.columns), strict=True)]
        if rows.num_columns
        else []
    )


def _leaf(
    read: Read,
    streams: Mapping[str, Sequence[Row]],
    tables: Mapping[str, Sequence[Change]],
    at: int,
) -> Batch:
    match read.kind:
        case "stream":
            rows = [
                r for r in streams.get(read.node.stream.name, ()) if read.since(at) < r.ts <= at
            ]
            rows = rows[-read.rows :] if read.rows is not None else rows
            return batch(read.node.schema, [(r.values, r.ts, r.arrival) for r in rows])
        case "appended":
            oracle = Oracle(
                lp.Output(read.node, "rstream", True, False, None, read.node.schema),
                streams,
                tables,
            )
            facts = oracle._evaluator.at(read.node, bisect_right(oracle.instants, at) - 1)
            return batch(read.node.schema, [(f.values, f.ts, f.ident[0]) for f in facts])
        case _:
            ended = {
                c.version: c.at for c in tables.get(read.node.table.name, ()) if c.kind == "delete"
            }
            born = [c for c in tables.get(read.node.table.name, ()) if c.kind == "insert"]
            if read.kind == "table":
                born = [c for c in born if c.at <= at < ended.get(c.version, FOREVER)]
            out = batch(read.node.schema, [(c.values, c.at, c.version) for c in born])
            out.exp = np.array([ended.get(c.version, FOREVER) for c in born], np.int64)
            return out


def batch(schema: Schema, rows: Sequence[tuple[tuple, int, int]]) -> Batch:
    """Rows as (values, ts, number)."""
    cols = tuple(pa.array([v[k] for v, _, _ in rows], f.type.arrow) for k, f in enumerate(schema))
    ts, ids = (np.array([r[k] for r in rows], np.int64) for k in (1, 2))
    return Batch(ts, None, None, (ids,), cols)


def _parted(rows: Batch, cut: int) -> list[Batch]:
    return [rows.slice(k, min(k + cut, len(rows))) for k in range(0, len(rows), cut)]
