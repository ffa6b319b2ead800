"""GEOMEAN: the mean of logarithms, and back.

Cost     that of AVG, and a logarithm an event.     Space  that of AVG (`sums`, `parts.doubles`).
Error    each logarithm is rounded once, their mean once (they are added exactly), and its
         exponential once.
A value that has no logarithm counts as NaN among them; once it has left, nothing of it is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.aggregates.parts.additive import Numbers
from dsms.aggregates.parts.base import Answers, Arg, ByGroup, GroupEvents, Leaving
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.doubles import DoubleCells
from dsms.aggregates.parts.words import NONE, float_words, floats_at
from dsms.aggregates.sums import DoubleRows
from dsms.sql.expr import AggCall


def _logs(column: pa.Array) -> pa.Array:
    """Of a FLOAT column; NaN where there are none, NULL where it is."""
    return pc.if_else(pc.greater(column, 0.0), pc.ln(column), float("nan"))


@dataclass(slots=True)
class GeomeanRows(ByGroup):
    """GEOMEAN by group."""

    logs: DoubleRows = field(default_factory=lambda: DoubleRows(divided=True))

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        words = float_words(_logs(pa.array(floats_at(a.words, feed.slot))).to_numpy())
        valid = a.valid[feed.slot] if len(a.valid) else a.valid
        events = replace(feed, slot=np.arange(len(words)))
        self.logs.run(events, (Arg(words, NONE, valid, a.coding),), out)
        means = floats_at(out.words, np.arange(len(out.words)))
        out.words[:] = float_words(pc.exp(pa.array(means)).to_numpy())
        out.valid &= ~np.isnan(means)

    @property
    def nbytes(self) -> int:
        return self.logs.nbytes


class GeomeanCells(DoubleCells):
    """GEOMEAN in cells."""

    def __init__(self) -> None:
        super().__init__("avg")

    def lift(self, rows: CellRows, cells: int) -> Numbers:
        (column,) = rows.args
        return super().lift(replace(rows, args=(_logs(column.cast(pa.float64())),)), cells)

    def lower(self, state: Numbers) -> pa.Array:
        means = super().lower(state)
        return pc.if_else(pc.is_nan(means), pa.scalar(None, pa.float64()), pc.exp(means))


def follow(call: AggCall, leaving: Leaving) -> GeomeanRows:
    """The state that follows single rows."""
    return GeomeanRows()


def algebra(call: AggCall) -> GeomeanCells:
    """The algebra of such a call."""
    return GeomeanCells()
