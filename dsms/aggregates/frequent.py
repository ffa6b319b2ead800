"""FREQUENT(item, k): frequent items of a window from the top k of its sub-windows (Golab 2006, ch.
6, Algorithm 6).

Open     cells as lifted: exact counts of one sub-window.  Combined, they are still one sub-window
         (its rows may come in pieces).
Closed   what `close` makes of them: the k most frequent values (ties: the smaller value) and delta,
         the count of the k-th (0 if there are fewer than k).  Combined, counters are added up, and
         so are deltas; `subtract` takes a sub-window out again.  Whatever meets a closed cell is
         closed first.
Lowered  the values whose counter exceeds delta, as JSON text.  NULL over no values.
Error    no false positives: a counter never exceeds the true count, so what is listed occurs more
         than delta times.  A value in no list occurs delta times at most; others may be missing
         although they occur more often.
State    at most k counters a closed sub-window and cell.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.items import back, counted, no_values, places, starts_of, summed, texts
from dsms.aggregates.parts.texts import joined
from dsms.sql.expr import AggCall
from dsms.sql.types import Kind, Type

GUARANTEE = (
    "every item listed occurs at least as often as its count says, which is more than delta; "
    "items that are not listed may occur more than delta times, too"
)


@dataclass(frozen=True, slots=True)
class Counters:
    """n cells: the counters of cell i are those from starts[i] to starts[i + 1], by value
    ascending.

    starts int64[n + 1];  values plain values;  counts int64[m] > 0;  delta int64[n];  open bool[n]
    (empty ones, too)
    """

    starts: np.ndarray
    values: pa.Array
    counts: np.ndarray
    delta: np.ndarray
    open: np.ndarray

    @property
    def cell(self) -> np.ndarray:
        """int64[m]: the cell of each counter."""
        return np.repeat(np.arange(len(self.delta)), np.diff(self.starts))


@dataclass(slots=True)
class Frequent:
    """The algebra.  `k` values are kept of each sub-window, `type` is that of the values."""

    k: int
    type: Type
    subtractable: bool = True
    duplicate_insensitive: bool = False

    def empty(self, cells: int) -> Counters:
        zeros = np.zeros(cells + 1, np.int64)
        return Counters(zeros, no_values(self.type), zeros[:0], zeros[1:], np.ones(cells, np.bool_))

    def lift(self, rows: CellRows, cells: int) -> Counters:
        found = counted(rows.cell, rows.args[0], self.type)
        values = found.values.take(pa.array(found.code))
        all_open = np.ones(cells, np.bool_)
        return Counters(
            starts_of(found.cell, cells), values, found.count, np.zeros(cells, np.int64), all_open
        )

    def close(self, state: Counters, which: np.ndarray | None = None) -> Counters:
        """The sub-windows of the open cells (those in `which`, bool[n]) are complete: the top k of
        each are kept."""
        cell, cells = state.cell, len(state.delta)
        now = state.open if which is None else state.open & which
        place = np.empty(len(cell), np.int64)  # by count, within the cell
        place[np.lexsort((-state.counts, cell))] = np.arange(len(cell)) - state.starts[cell]
        last = np.flatnonzero((place == self.k - 1) & now[cell])
        delta = state.delta.copy()
        delta[cell[last]] = state.counts[last]
        kept = np.flatnonzero((place < self.k) | ~now[cell])
        values = state.values.take(pa.array(kept))
        return Counters(
            starts_of(cell[kept], cells), values, state.counts[kept], delta, state.open & ~now
        )

    def combine(self, older: Counters, newer: Counters) -> Counters:
        return self._added(older, newer, 1)

    def subtract(self, whole: Counters, part: Counters) -> Counters:
        return self._added(whole, part, -1)

    def _added(self, a: Counters, b: Counters, sign: int) -> Counters:
        """Cell by cell a + sign * b; counters that come to 0 are dropped."""
        mixed = a.open != b.open
        if mixed.any():
            a, b = self.close(a, mixed), self.close(b, mixed)
        values = pa.concat_arrays([a.values, b.values])
        found = summed(
            np.concatenate([a.cell, b.cell]), values, np.concatenate([a.counts, sign * b.counts])
        )
        starts = starts_of(found.cell, len(a.delta))
        return Counters(
            starts,
            found.values.take(pa.array(found.code)),
            found.count,
            a.delta + sign * b.delta,
            a.open,
        )

    def lower(self, state: Counters) -> pa.Array:
        state = self.close(state)
        cell, cells = state.cell, len(state.delta)
        kept = np.flatnonzero(state.counts > state.delta[cell])
        kept = kept[np.lexsort((kept, -state.counts[kept], cell[kept]))]
        values, counts = (
            state.values.take(pa.array(kept)),
            pa.array(state.counts[kept]).cast(pa.string()),
        )
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
        delta, open_ = np.zeros(len(index), np.int64), np.ones(len(index), np.bool_)
        delta[index >= 0], open_[index >= 0] = (
            state.delta[index[index >= 0]],
            state.open[index[index >= 0]],
        )
        return Counters(
            starts, state.values.take(pa.array(where)), state.counts[where], delta, open_
        )

    def concat(self, states: Sequence[Counters]) -> Counters:
        if not states:
            return self.empty(0)
        sizes = np.concatenate([np.diff(s.starts) for s in states])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        values = pa.concat_arrays([s.values for s in states])
        counts, delta = (
            np.concatenate([s.counts for s in states]),
            np.concatenate([s.delta for s in states]),
        )
        return Counters(starts, values, counts, delta, np.concatenate([s.open for s in states]))

    def nbytes(self, state: Counters) -> int:
        return int(
            state.starts.nbytes + state.values.nbytes + state.counts.nbytes + 9 * len(state.delta)
        )


def algebra(call: AggCall) -> Frequent:
    """The algebra of a FREQUENT call (`params`: k)."""
    (k,) = call.params
    assert isinstance(k, int)
    return Frequent(k, call.args[0].type)
