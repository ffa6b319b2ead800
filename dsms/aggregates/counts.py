"""COUNT(*), COUNT(x): a counter by group, or a cell.  O(1) a row, one word a group or cell."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts.additive import Additive, Layout, Numbers
from dsms.aggregates.parts.base import Answers, Arg, ByGroup, GroupEvents, Leaving
from dsms.aggregates.parts.cells import CellRows
from dsms.sql.expr import AggCall
from dsms.state.columns import numpy_valid
from dsms.state.lengthening import grown


@njit(cache=True, nogil=True)
def _subtract_missing(code, sign, slot, emit, valid, missing, out):
    for i in range(len(code)):
        g = code[i]
        if len(valid) and not valid[slot[i]]:
            missing[g] += sign[i]
        if emit[i] >= 0:
            out[emit[i]] -= missing[g]


@dataclass(slots=True)
class CountRows(ByGroup):
    """The group's rows less those whose argument is NULL or filtered out."""

    missing: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        out.valid[:] = True
        out.words[:] = feed.live
        if args and (len(args[0].valid) or len(self.missing)):
            self.missing = grown(self.missing, feed.groups)
            _subtract_missing(
                feed.code, feed.sign, feed.slot, feed.emit, args[0].valid, self.missing, out.words
            )

    @property
    def nbytes(self) -> int:
        return int(self.missing.nbytes)


class CountCells(Additive):
    """COUNT(*), COUNT(x)."""

    def __init__(self) -> None:
        super().__init__(Layout(0))

    def lift(self, rows: CellRows, cells: int) -> Numbers:
        valid = numpy_valid(rows.args[0]) if rows.args else None
        cell = rows.cell if valid is None else rows.cell[valid]
        return Numbers(
            np.bincount(cell, minlength=cells).astype(np.int64, copy=False)[:, None], self.layout, 1
        )

    def lower(self, state: Numbers) -> pa.Array:
        return pa.array(state.words[:, 0])


def follow(call: AggCall, leaving: Leaving) -> CountRows:
    """The state that follows single rows."""
    return CountRows()


def algebra(call: AggCall) -> CountCells:
    """The algebra of such a call."""
    return CountCells()
