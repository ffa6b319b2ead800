"""Statistics of streams for the planner, measured as rows pass: rates, distinct values, common
values, NULLs.

Rates come from all rows; the columns from a sample of whole batches (at most SAMPLE rows, one in
every EVERY rows that pass), so measuring costs a small share of taking rows in.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from dsms.plan.statistics import Statistics
from dsms.sql.catalog import StreamDef
from dsms.sql.types import Kind
from dsms.state.batch import Batch

LOG = logging.getLogger("dsms")
SAMPLE = 4096  # rows
# rows between two samples, once so many have come; before, thrice as many as have come
EVERY = 1 << 20
COMMON = 8  # most common values remembered of a column


@dataclass(slots=True)
class ColumnFigures:
    """Of the last sample: `distinct` is scaled up where nearly all values were new."""

    distinct: float
    nulls: float
    common: tuple[tuple[object, float], ...]


@dataclass(slots=True)
class StreamFigures:
    """Running figures of one stream.  Instants µs."""

    definition: StreamDef
    rows: int = 0
    first: int | None = None
    last: int | None = None
    next_sample: int = 64
    columns: dict[int, ColumnFigures] = field(default_factory=dict)

    def see(self, batch: Batch) -> None:
        """Rows that were released."""
        if not len(batch):
            return
        self.first = int(batch.ts[0]) if self.first is None else self.first
        self.last = int(batch.ts[-1])
        self.rows += len(batch)
        if self.rows >= self.next_sample:
            self.next_sample = self.rows + min(EVERY, 3 * self.rows)
            try:
                self.columns = {
                    k: figures(column.slice(0, SAMPLE)) for k, column in enumerate(batch.cols)
                }
            except Exception:  # a bug of ours: plans are made with the figures of before
                name = self.definition.name
                LOG.exception("the columns of stream %s can't be measured; please report", name)

    @property
    def rate(self) -> float | None:
        """Rows per second of event time; None before two instants have been seen."""
        if self.first is None or self.last is None or self.last <= self.first:
            return None
        return 1e6 * self.rows / (self.last - self.first)


def figures(column: pa.Array) -> ColumnFigures:
    """Figures of a sample.

    With n values of which d differ and s occur once, about d · n / (n - s) differ in the whole
    (Good's estimate of the unseen mass s / n), at most ten times as many as were seen."""
    n = len(column) - column.null_count
    nulls = column.null_count / max(1, len(column))
    if not n:
        return ColumnFigures(1.0, nulls, ())
    counts = pc.value_counts(column.drop_null())
    times = counts.field("counts")
    singles = pc.sum(pc.equal(times, 1)).as_py() or 0
    distinct = len(counts) * min(10.0, n / max(1, n - singles))
    top = pc.select_k_unstable(times, k=min(COMMON, len(counts)), sort_keys=[("", "descending")])
    values, shares = counts.field("values").take(top), times.take(top)
    common = tuple(
        (v, t / n) for v, t in zip(values.to_pylist(), shares.to_pylist(), strict=True) if t > 1
    )
    return ColumnFigures(distinct, nulls, common)


def statistics(streams: Iterable[StreamFigures], table_rows: dict[str, float]) -> Statistics:
    """All figures in the planner's form."""
    rates, distinct, common, nulls = {}, {}, {}, {}
    for s in streams:
        name = s.definition.address
        if s.rate is not None:
            rates[name] = s.rate
        for k, c in s.columns.items():
            distinct[name, k], nulls[name, k] = c.distinct, c.nulls
            if s.definition.schema[k].type.kind not in (Kind.FLOAT, Kind.DECIMAL):
                common[name, k] = c.common
    return Statistics(rates=rates, rows=table_rows, distinct=distinct, common=common, nulls=nulls)
