"""BOOL_AND, BOOL_OR: two counters by group, or a cell.  O(1) a row."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts.additive import Additive, Layout, Numbers
from dsms.aggregates.parts.base import Answers, Arg, ByGroup, GroupEvents, Leaving
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.coded import counting, fixed
from dsms.sql.expr import AggCall
from dsms.state.columns import arrow_values, numpy_values
from dsms.state.lengthening import grown


@njit(cache=True, nogil=True)
def _tally(code, sign, slot, emit, words, valid, tally, which, out, out_valid):
    """tally[g] = (false ones, true ones); the answer is whether there is none of the first
    (which=0) or any of the second (which=1)."""
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if len(valid) == 0 or valid[s]:
            tally[g, words[s]] += sign[i]
        t = emit[i]
        if t >= 0:
            out_valid[t] = tally[g, 0] + tally[g, 1] > 0
            out[t] = tally[g, 1] > 0 if which else tally[g, 0] == 0


@dataclass(slots=True)
class BoolRows(ByGroup):
    """BOOL_AND (which=0), BOOL_OR (which=1)."""

    which: int
    tally: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        self.tally = grown(self.tally, feed.groups)
        (arg,) = args
        _tally(
            *feed.events,
            arg.words,
            arg.valid,
            self.tally,
            self.which,
            out.words,
            out.valid,
        )

    @property
    def nbytes(self) -> int:
        return int(self.tally.nbytes)


@njit(cache=True, nogil=True)
def _add_bools(cell, values, valid, out):
    for i in range(len(cell)):
        if len(valid) == 0 or valid[i]:
            out[cell[i], 0] += 1
            out[cell[i], 1] += values[i]


class BoolCells(Additive):
    """BOOL_AND, or BOOL_OR if `any_`."""

    def __init__(self, any_: bool) -> None:
        super().__init__(Layout(1))
        self.any = any_

    def lift(self, rows: CellRows, cells: int) -> Numbers:
        out = np.zeros((cells, 2), np.int64)
        (column,) = rows.args
        if not pa.types.is_null(column.type):
            _add_bools(rows.cell, fixed(numpy_values(column)), counting(column), out)
        return Numbers(out, self.layout, 1)

    def lower(self, state: Numbers) -> pa.Array:
        n, true = state.words[:, 0], state.words[:, 1]
        return arrow_values(true > 0 if self.any else true == n, n > 0)


def follow(call: AggCall, leaving: Leaving) -> BoolRows:
    """The state that follows single rows."""
    return BoolRows(int(call.fn == "bool_or"))


def algebra(call: AggCall) -> BoolCells:
    """The algebra of such a call."""
    return BoolCells(call.fn == "bool_or")
