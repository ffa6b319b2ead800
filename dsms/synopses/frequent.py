"""FREQUENT(item, k): frequent items of a window from the top k of its sub-windows (Golab 2006, ch. 6, Algorithm 6).

Lifted   a whole sub-window: its k most frequent values with exact counts (ties: the smaller value), and delta_i, the
         count of the k-th (0 if there are fewer than k).  Two halves lifted apart are two sub-windows.
Combined counters are added up, and so is delta; `subtract` takes a sub-window out again.
Lowered  the values whose counter exceeds delta, as JSON text.  NULL over no values.
Error    no false positives: a counter never exceeds the true count, so what is listed occurs more than delta times.  A
         value in no list occurs delta times at most; others may be missing although they occur more often.
State    at most k counters a sub-window and cell.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.sql.expr import AggCall
from dsms.sql.types import Kind, Type
from dsms.synopses.cells import Rows
from dsms.synopses.items import back, counted, joined, no_values, places, starts_of, summed, texts

GUARANTEE = (
    "every item listed occurs at least as often as its count says, which is more than delta; "
    "items that are not listed may occur more than delta times, too"
)


@dataclass(frozen=True, slots=True)
class Counters:
    """n cells: the counters of cell i are those from starts[i] to starts[i + 1], by value ascending.

    starts int64[n + 1];  values plain values;  counts int64[m] > 0;  delta int64[n]
    """

    starts: np.ndarray
    values: pa.Array
    counts: np.ndarray
    delta: np.ndarray

    @property
    def cell(self) -> np.ndarray:
        """int64[m]: the cell of each counter."""
        return np.repeat(np.arange(len(self.delta)), np.diff(self.starts))


@dataclass(frozen=True, slots=True)
class Frequent:
    """The algebra.  `k` values are kept of each sub-window, `type` is that of the values."""

    k: int
    type: Type
    subtractable: bool = True
    duplicate_insensitive: bool = False

    def empty(self, cells: int) -> Counters:
        zeros = np.zeros(cells + 1, np.int64)
        return Counters(zeros, no_values(self.type), zeros[:0], zeros[1:])

    def lift(self, rows: Rows, cells: int) -> Counters:
        found = counted(rows.cell, rows.args[0], self.type)
        order = np.lexsort((found.code, -found.count, found.cell))
        starts = starts_of(found.cell, cells)
        place = np.arange(len(order)) - starts[found.cell]  # in the order by count, within the cell
        delta = np.zeros(cells, np.int64)
        last = order[place == self.k - 1]
        delta[found.cell[last]] = found.count[last]
        kept = np.sort(order[place < self.k])
        values = found.values.take(pa.array(found.code[kept]))
        return Counters(starts_of(found.cell[kept], cells), values, found.count[kept], delta)

    def combine(self, older: Counters, newer: Counters) -> Counters:
        return _added(older, newer, 1)

    def subtract(self, whole: Counters, part: Counters) -> Counters:
        return _added(whole, part, -1)

    def lower(self, state: Counters) -> pa.Array:
        cell, cells = state.cell, len(state.delta)
        kept = np.flatnonzero(state.counts > state.delta[cell])
        kept = kept[np.lexsort((kept, -state.counts[kept], cell[kept]))]
        values, counts = state.values.take(pa.array(kept)), pa.array(state.counts[kept]).cast(pa.string())
        pairs = pc.binary_join_element_wise("[", self._json(values), ", ", counts, "]", "")
        items = joined(pairs, starts_of(cell[kept], cells), ", ")
        delta = pa.array(state.delta).cast(pa.string())
        end = f'], "guarantee": {json.dumps(GUARANTEE)}}}'
        text = pc.binary_join_element_wise('{"delta": ', delta, ', "items": [', items, end, "")
        seen = pa.array(np.diff(state.starts) > 0)
        return pc.if_else(seen, text, pa.scalar(None, pa.string()))

    def _json(self, values: pa.Array) -> pa.Array:
        """INT, BOOL and finite FLOATs as JSON writes them, all others as strings."""
        shown = texts(values, self.type)
        match self.type.kind:
            case Kind.INT | Kind.BOOL:
                return shown
            case Kind.FLOAT:
                quoted = pc.binary_join_element_wise('"', shown, '"', "")
                return pc.if_else(pc.is_finite(back(values, self.type)), shown, quoted)
        coded = shown.dictionary_encode()
        distinct = [json.dumps(text, ensure_ascii=False) for text in coded.dictionary.to_pylist()]
        return pa.array(distinct, pa.string()).take(coded.indices)

    def size(self, state: Counters) -> int:
        return len(state.delta)

    def take(self, state: Counters, index: np.ndarray) -> Counters:
        where, starts = places(state.starts, index)
        delta = np.where(index < 0, 0, state.delta[index]) if len(state.delta) else np.zeros(len(index), np.int64)
        return Counters(starts, state.values.take(pa.array(where)), state.counts[where], delta)

    def concat(self, states: Sequence[Counters]) -> Counters:
        if not states:
            return self.empty(0)
        sizes = np.concatenate([np.diff(s.starts) for s in states])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        values = pa.concat_arrays([s.values for s in states])
        counts, delta = np.concatenate([s.counts for s in states]), np.concatenate([s.delta for s in states])
        return Counters(starts, values, counts, delta)

    def nbytes(self, state: Counters) -> int:
        return int(state.starts.nbytes + state.values.nbytes + state.counts.nbytes + state.delta.nbytes)


def _added(a: Counters, b: Counters, sign: int) -> Counters:
    """Cell by cell a + sign * b; counters that come to 0 are dropped."""
    cell = np.concatenate([a.cell, b.cell])
    values = pa.concat_arrays([a.values, b.values])
    found = summed(cell, values, np.concatenate([a.counts, sign * b.counts]))
    starts = starts_of(found.cell, len(a.delta))
    return Counters(starts, found.values.take(pa.array(found.code)), found.count, a.delta + sign * b.delta)


def frequent(call: AggCall) -> Frequent:
    """The algebra of a FREQUENT call (`params`: k)."""
    (k,) = call.params
    assert isinstance(k, int)
    return Frequent(k, call.args[0].type)
