"""SAMPLE(x, id, k): of any set of rows the k whose ids have the smallest hashes ("bottom-k", Cohen
and Kaplan 2007).

Where ids tell rows apart, these are k rows drawn without replacement, all sets of
k alike; and since the row alone decides, every cut of a window, restart and path draws the same.
Cells    k entries (hash, text of the value) at most, in order.  A union's are among those of its
parts, so cells merge: O(k log k).
Not subtracted: what comes up when a row goes has been dropped before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms import lists
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.fold import Folds, ranges
from dsms.aggregates.parts.items import places, starts_of
from dsms.aggregates.parts.words import validity
from dsms.errors import InternalError
from dsms.operators.expressions.hashes import mixed
from dsms.sql.expr import AggCall
from dsms.sql.types import Type
from dsms.state.columns import numpy_values


@dataclass(slots=True, eq=False, weakref_slot=True)
class Drawn:
    """n cells: the entries of cell i are from starts[i] to starts[i + 1], by (key, text).

    starts int64[n + 1];  keys int64[m];  texts string[m]: the values as they stand in lists
    """

    starts: np.ndarray
    keys: np.ndarray
    texts: pa.Array


@dataclass(slots=True)
class SampleCells(Folds):
    """SAMPLE in cells."""

    item: Type
    k: int

    def empty(self, cells: int) -> Drawn:
        none = np.zeros(0, np.int64)
        return Drawn(np.zeros(cells + 1, np.int64), none, pa.array([], pa.string()))

    def lift(self, rows: CellRows, cells: int) -> Drawn:
        values, ids = rows.args
        cell, keep = rows.cell, np.ones(len(rows.cell), np.bool_)
        for column in rows.args:
            valid = validity(column)
            keep &= True if valid is None else valid
        numbers = mixed(numpy_values(ids).view(np.uint64)).view(np.int64)
        keep[keep] = _smallest(cell[keep], numbers[keep], self.k, cells)
        texts = lists.spelled_items(values.filter(pa.array(keep)), str(self.item))
        return self._fitted(cell[keep], numbers[keep], texts, cells)

    def _fitted(self, cell: np.ndarray, keys: np.ndarray, texts: pa.Array, cells: int) -> Drawn:
        """The first k entries of each cell, in order."""
        if not len(cell):
            return self.empty(cells)
        table = pa.table({"cell": cell, "key": keys, "text": texts})
        order = pc.sort_indices(table, [(name, "ascending") for name in table.column_names])
        index = order.to_numpy()
        cell = cell[index]
        starts = starts_of(cell, cells)
        kept = index[np.arange(len(cell)) - starts[cell] < self.k]
        sizes = np.minimum(np.diff(starts), self.k)
        return Drawn(
            np.concatenate([[0], np.cumsum(sizes)]), keys[kept], texts.take(pa.array(kept))
        )

    def combine(self, older: Drawn, newer: Drawn) -> Drawn:
        cells = self.size(older)
        return self._union(self.concat([older, newer]), np.tile(np.arange(cells), 2), cells)

    def merge(
        self,
        state: Drawn,
        group: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        base: np.ndarray,
        cells: int,
    ) -> Drawn:
        index = ranges(low, high)
        target = np.repeat(base, high - low) + group[index]
        return self._union(self.take(state, index), target, cells)

    def _union(self, state: Drawn, target: np.ndarray, cells: int) -> Drawn:
        """Out cell t is the union of the cells i with target[i] == t."""
        cell = np.repeat(target, np.diff(state.starts))
        return self._fitted(cell, state.keys, state.texts, cells)

    def subtract(self, whole: Drawn, part: Drawn) -> Drawn:
        raise InternalError("DS905", "samples can't be subtracted; please report this")

    def present(self, state: Drawn) -> np.ndarray:
        return np.diff(state.starts) > 0

    def size(self, state: Drawn) -> int:
        return len(state.starts) - 1

    def take(self, state: Drawn, index: np.ndarray) -> Drawn:
        place, starts = places(state.starts, index)
        return Drawn(starts, state.keys[place], state.texts.take(pa.array(place)))

    def concat(self, states: Sequence[Drawn]) -> Drawn:
        if not states:
            return self.empty(0)
        sizes = np.concatenate([np.diff(s.starts) for s in states])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        keys = np.concatenate([s.keys for s in states])
        return Drawn(starts, keys, pa.concat_arrays([s.texts for s in states]))

    def lower(self, state: Drawn) -> pa.Array:
        there = pa.array(self.present(state))
        made = lists.joined(state.starts, state.texts)
        return pc.if_else(there, made, pa.scalar(None, pa.string()))

    def nbytes(self, state: Drawn) -> int:
        return int(state.starts.nbytes + state.keys.nbytes + state.texts.nbytes)


def _smallest(cell: np.ndarray, keys: np.ndarray, k: int, cells: int) -> np.ndarray:
    """bool: which rows may be among the k with the smallest keys of their cell (ties are)."""
    order = np.lexsort((keys, cell))
    starts = starts_of(cell[order], cells)
    last = keys[order[np.minimum(starts[:-1] + k, starts[1:])[cell] - 1]]
    found: np.ndarray = keys <= last
    return found


def algebra(call: AggCall) -> SampleCells:
    """The algebra of such a call."""
    (k,) = call.params
    assert isinstance(k, int)
    return SampleCells(call.args[0].type, k)
