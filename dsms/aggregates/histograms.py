"""APPROX_HISTOGRAM(x, g) and APPROX_INTERSECT(x, side, g): counts of ranges of values (GROUP and
the G-index of Golab, Garg and Özsu 2004, §2.2, §4.3, §6.2).

Edges    theirs are given and stay.  Ours follow the values: ranges are those of the finest level
         (`parts.scales`) on which no more than g of them have values.  So the answer is a function
         of the values alone, and does not depend on how they came or were put together.
Cells    the ranges of each that have values, at most g, with exact counts.  Of cells with different
         levels the finer ones go up to the others', and their union up to where g will do: no set
         needs a finer level than a part of it, so that is the union's own.
Error    none of the counts.  Ranges of a linear scale are 2^e wide with
         2^e < 2 (largest - smallest) / (g - 1) (FLOAT: or as wide as the last binary digit of the
         largest number), and narrower where values leave gaps: outliers cost a range each.
Intersection  two counts a range, of the rows on each side: what both have lies in ranges that both
         have values in.  Such a range need have no value in common unless it is one value wide.
Not subtracted  when the oldest sub-window goes, narrower ranges may do, and what is left of a range
         is not known by halves.  So windows are put together from intervals, O(g) for each.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.fold import Folds, ranges
from dsms.aggregates.parts.items import places, starts_of
from dsms.aggregates.parts.scales import DEEPEST, Scale, bits
from dsms.aggregates.parts.texts import joined
from dsms.errors import InternalError
from dsms.sql.expr import AggCall
from dsms.sql.types import Kind
from dsms.state.columns import numpy_valid, numpy_values

COUNTED = "counts are exact; every value is in one range, from its first edge to below its second"
COMMON = (
    "values that both sides have are in these ranges, whose counts are exact; a range may have "
    "values of both sides and none in common"
)
NOWHERE = -(1 << 20)  # the level of cells without finite values
# the places of FLOATs that no range has, whatever the level
LEAST, MOST, NAN = np.iinfo(np.int64).min, np.iinfo(np.int64).max - 1, np.iinfo(np.int64).max
ODD = {LEAST: "-inf", MOST: "inf", NAN: "nan"}
TRIED = 4096  # rows of a piece from which a first level is taken
DENSE = 4  # places a row that may be counted in an array


@dataclass(frozen=True, slots=True)
class Ranged:
    """n cells: the ranges of cell i are those from starts[i] to starts[i + 1], in order.

    starts int64[n + 1];  level int64[n];  index int64[m];  counts int64[m, sides] >= 0
    """

    starts: np.ndarray
    level: np.ndarray
    index: np.ndarray
    counts: np.ndarray

    @property
    def cell(self) -> np.ndarray:
        """int64[m]: the cell of each range."""
        return np.repeat(np.arange(len(self.level)), np.diff(self.starts))


class Histogram(Folds):
    """The algebra: at most `g` ranges of a scale; `sides` counts each (2: an intersection)."""

    def __init__(self, scale: Scale, g: int, sides: int) -> None:
        self.scale, self.g, self.sides = scale, g, sides

    def empty(self, cells: int) -> Ranged:
        none = np.zeros(0, np.int64)
        counts = np.zeros((0, self.sides), np.int64)
        return Ranged(np.zeros(cells + 1, np.int64), np.full(cells, NOWHERE), none, counts)

    def lift(self, rows: CellRows, cells: int) -> Ranged:
        cell, side, values = self._given(rows)
        level = np.full(cells, NOWHERE)
        finite = np.isfinite(values) if values.dtype == np.float64 else np.ones(len(cell), np.bool_)
        odd = _odd(values[~finite])
        oddly = _tally(cell[~finite], odd, side[~finite], self.sides, cells)
        cell, side, values = cell[finite], side[finite], values[finite]
        first = self.scale.level(values, cell, cells)
        index = self.scale.index(values, first[cell])
        level[cell] = first[cell]
        if len(cell) > TRIED:  # no part of the rows needs a higher level than all of them
            tried = _tally(cell[:TRIED], index[:TRIED], side[:TRIED], self.sides, cells)
            least = self._fitted(*tried, level, cells).level
            index >>= np.minimum(least - level, DEEPEST)[cell]
            level = least
        parts = (oddly, _tally(cell, index, side, self.sides, cells))
        both = (np.concatenate(two) for two in zip(*parts, strict=True))
        return self._fitted(*_summed(*both), level, cells)

    def _given(self, rows: CellRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(cells, sides, values) of the rows that count."""
        keep = np.ones(len(rows.cell), np.bool_)
        for column in rows.args:
            valid = numpy_valid(column)
            keep &= True if valid is None else valid
        column = rows.args[0].filter(pa.array(keep))
        cell, values = rows.cell[keep], numpy_values(column)
        if self.sides == 1:
            return cell, np.zeros(len(cell), np.int64), values
        true = np.asarray(rows.args[1].filter(pa.array(keep)).cast(pa.int64()))
        return cell, 1 - true, values

    def _fitted(
        self,
        cell: np.ndarray,
        index: np.ndarray,
        counts: np.ndarray,
        level: np.ndarray,
        cells: int,
    ) -> Ranged:
        """Cells of such ranges, in order, on levels on which there are no more than g."""
        rise = self._rise(cell, index, cells)
        if rise.any():
            index = np.where(self._in_range(index), index >> rise[cell], index)
            cell, index, counts = _runs(cell, index, counts)
        return Ranged(starts_of(cell, cells), level + rise, index, counts)

    def _rise(self, cell: np.ndarray, index: np.ndarray, cells: int) -> np.ndarray:
        """int64[cells]: so many levels up no cell has more than g ranges.

        Neighbours that differ in b bits become one b levels up, not before: the g-th largest b."""
        rise = np.zeros(cells, np.int64)
        if len(cell) <= self.g or int(np.bincount(cell).max()) <= self.g:
            return rise
        pairs = np.flatnonzero(
            (cell[1:] == cell[:-1]) & self._in_range(index[1:]) & self._in_range(index[:-1])
        )
        apart = bits((index[pairs + 1] ^ index[pairs]).view(np.uint64))
        of = cell[pairs]
        order = np.lexsort((-apart, of))
        starts = starts_of(of, cells)
        many = np.flatnonzero(np.diff(starts) >= self.g)
        rise[many] = apart[order[starts[many] + self.g - 1]]
        return rise

    def combine(self, older: Ranged, newer: Ranged) -> Ranged:
        cells = len(older.level)
        target = np.tile(np.arange(cells), 2)
        return self._union(self.concat([older, newer]), target, cells)

    def merge(
        self,
        state: Ranged,
        group: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        base: np.ndarray,
        cells: int,
    ) -> Ranged:
        index = ranges(low, high)
        target = np.repeat(base, high - low) + group[index]
        return self._union(self.take(state, index), target, cells)

    def _union(self, state: Ranged, target: np.ndarray, cells: int) -> Ranged:
        """Out cell t is the union of the cells i with target[i] == t."""
        level = np.full(cells, NOWHERE)
        np.maximum.at(level, target, state.level)
        rise = np.minimum(level[target] - state.level, DEEPEST)
        cell = state.cell
        index = np.where(self._in_range(state.index), state.index >> rise[cell], state.index)
        return self._fitted(*_summed(target[cell], index, state.counts), level, cells)

    def _in_range(self, index: np.ndarray) -> np.ndarray:
        """Whether these are places of ranges: FLOATs that are not finite have others."""
        if self.scale.type.kind is not Kind.FLOAT:
            return np.ones(len(index), np.bool_)
        return (index > LEAST) & (index < MOST)

    def subtract(self, whole: Ranged, part: Ranged) -> Ranged:
        raise InternalError("DS905", "histograms can't be subtracted; please report this")

    def lower(self, state: Ranged) -> pa.Array:
        cell, cells = state.cell, len(state.level)
        kept = state.counts.min(axis=1, initial=np.iinfo(np.int64).max) > 0
        inside = self._in_range(state.index)
        shown, odd = np.flatnonzero(kept & inside), np.flatnonzero(kept & ~inside)
        low, high = self.scale.edges(state.index[shown], state.level[cell[shown]])
        listed = _entries([low, high], state.counts[shown], cell[shown], cells)
        names = pa.array([f'"{ODD[i]}"' for i in state.index[odd].tolist()], pa.string())
        others = _entries([names], state.counts[odd], cell[odd], cells)
        tail = json.dumps(COUNTED if self.sides == 1 else COMMON)
        text = pc.binary_join_element_wise(
            '{"ranges": [', listed, '], "others": [', others, f'], "guarantee": {tail}}}', ""
        )
        return pc.if_else(pa.array(np.diff(state.starts) > 0), text, pa.scalar(None, pa.string()))

    # -- columns of cells --------------------------------------------------------------------------

    def present(self, state: Ranged) -> np.ndarray:
        return np.diff(state.starts) > 0

    def size(self, state: Ranged) -> int:
        return len(state.level)

    def take(self, state: Ranged, index: np.ndarray) -> Ranged:
        where, starts = places(state.starts, index)
        level = np.full(len(index), NOWHERE)
        level[index >= 0] = state.level[index[index >= 0]]
        return Ranged(starts, level, state.index[where], state.counts[where])

    def concat(self, states: Sequence[Ranged]) -> Ranged:
        if not states:
            return self.empty(0)
        sizes = np.concatenate([np.diff(s.starts) for s in states])
        return Ranged(
            np.concatenate([[0], np.cumsum(sizes)]),
            np.concatenate([s.level for s in states]),
            np.concatenate([s.index for s in states]),
            np.concatenate([s.counts for s in states]),
        )

    def nbytes(self, state: Ranged) -> int:
        parts = (state.starts, state.level, state.index, state.counts)
        return int(sum(part.nbytes for part in parts))


def _odd(values: np.ndarray) -> np.ndarray:
    """The places of FLOATs that are not finite."""
    return np.where(np.isnan(values), NAN, np.where(values > 0, MOST, LEAST))


def _tally(
    cell: np.ndarray, index: np.ndarray, side: np.ndarray, sides: int, cells: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(cell, index, counts[:, sides]) of rows, sorted by cell and index."""
    low, high = (int(index.min()), int(index.max())) if len(index) else (0, 0)
    span = high - low + 1
    room = cells * span * sides
    if room > DENSE * len(index):
        counts = np.zeros((len(index), sides), np.int64)
        counts[np.arange(len(index)), side] = 1
        return _summed(cell, index, counts)
    place = (cell * span + (index - low)) * sides + side
    found = np.bincount(place, minlength=room).reshape(-1, sides)
    where = np.flatnonzero(found.any(axis=1))
    return where // span, where % span + low, found[where]


def _summed(
    cell: np.ndarray, index: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same ranges of a cell put together, all in order."""
    order = np.argsort(index)
    places = cell[order]
    if len(cell) and int(places.max()) < 1 << 16:
        places = places.astype(np.uint16)  # which are sorted by their digits
    order = order[np.argsort(places, kind="stable")]
    return _runs(cell[order], index[order], counts[order])


def _runs(
    cell: np.ndarray, index: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first = np.ones(len(cell), np.bool_)
    first[1:] = (cell[1:] != cell[:-1]) | (index[1:] != index[:-1])
    starts = np.flatnonzero(first)
    total = np.add.reduceat(counts, starts, axis=0) if len(starts) else counts
    return cell[starts], index[starts], total


def _entries(names: list[pa.Array], counts: np.ndarray, cell: np.ndarray, cells: int) -> pa.Array:
    """string[cells]: the entries [names..., counts...] of each cell."""
    numbers = [pa.array(side).cast(pa.string()) for side in counts.T]
    inner = pc.binary_join_element_wise(*names, *numbers, ", ")
    one = pc.binary_join_element_wise("[", inner, "]", "")
    return joined(one, starts_of(cell, cells), ", ")


def algebra(call: AggCall) -> Histogram:
    """The algebra of such a call (`params`: g, and for a histogram its scale)."""
    g, scale = (*call.params, "linear")[:2]
    assert isinstance(g, int)
    return Histogram(Scale(call.args[0].type, scale == "log"), g, len(call.args))
