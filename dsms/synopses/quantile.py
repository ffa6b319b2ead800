"""B-INT-QNT's cells: sorted arrays that are put together by name and searched where they lie (Arasu and Widom 2004,
§3.3).  In base intervals (`interval`) each is merged once; a span is a list of O(log W) of them.

Use      QUANTILE, QUANTILE_CONT and MEDIAN over values whose words are in order (all but strings and long DECIMALs).
State    16 bytes a different value of a sorted array, once a level.     Cost  O(log n) a value and level to merge; a
         combined cell copies nothing; an answer selects (`ranked`).     Error  none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.errors import InternalError
from dsms.operators.aggregates.words import Codes, coding
from dsms.sql.expr import AggCall
from dsms.synopses.cells import Rows
from dsms.synopses.coded import Words, counting
from dsms.synopses.counters import dealt, longer
from dsms.synopses.fold import Folds, ranges
from dsms.synopses.items import places
from dsms.synopses.lists import gathered, tallied, union
from dsms.synopses.ranked import AtShare

MANY = 32  # arrays of a cell, on average, that are merged before more come


@dataclass(slots=True, eq=False)
class Sorted:
    """n cells: cell i has the arrays low[r] .. high[r] for starts[i] <= r < starts[i + 1], stretches of `words` (and
    `before`, see `lists`), which columns share."""

    starts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    words: np.ndarray
    before: np.ndarray

    @property
    def single(self) -> bool:
        """Whether each cell has one array."""
        return len(self.low) == len(self.starts) - 1 and bool((np.diff(self.starts) == 1).all())


class Ranks(Folds):
    """The algebra."""

    def __init__(self, call: AggCall) -> None:
        self.words = Words(coding(call.args[0].type))
        self.ranked = AtShare(call)

    def empty(self, cells: int) -> Sorted:
        zeros = np.zeros(cells, np.int64)
        return Sorted(np.arange(cells + 1), zeros, zeros.copy(), np.zeros(0, np.int64), np.zeros(1, np.int64))

    def lift(self, rows: Rows, cells: int) -> Sorted:
        (column,) = rows.args
        starts, words, before = tallied(rows.cell, self.words.encode(column), counting(column), cells)
        return Sorted(np.arange(cells + 1), starts[:-1], starts[1:], words, before)

    def combine(self, older: Sorted, newer: Sorted) -> Sorted:
        both, n = self.concat([older, newer]), len(older.starts) - 1
        index = np.arange(2 * n).reshape(2, n).T.ravel()
        place, starts = places(both.starts, index)
        out = Sorted(starts[::2].copy(), both.low[place], both.high[place], both.words, both.before)
        return self.settled(out) if len(out.low) > MANY * n else out

    def subtract(self, whole: Sorted, part: Sorted) -> Sorted:
        raise InternalError("DS905", "sorted arrays can't be subtracted; please report this")

    def lower(self, state: Sorted) -> pa.Array:
        return self.ranked.answer(state.words, state.before, state.low, state.high, state.starts, self.words)

    def size(self, state: Sorted) -> int:
        return len(state.starts) - 1

    def take(self, state: Sorted, index: np.ndarray) -> Sorted:
        place, starts = places(state.starts, index)
        return Sorted(starts, state.low[place], state.high[place], state.words, state.before)

    def concat(self, states: Sequence[Sorted]) -> Sorted:
        if not states:
            return self.empty(0)
        starts = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(s.starts) for s in states]))])
        words, before, shift = states[0].words, states[0].before, [0] * len(states)
        if any(s.words is not words or s.before is not before for s in states):
            states = [self._cut_out(s) for s in states]
            words = np.concatenate([s.words for s in states])
            counts = np.concatenate([np.diff(s.before) for s in states])
            before = np.concatenate([[0], np.cumsum(counts)])
            shift = np.cumsum([0, *(len(s.words) for s in states[:-1])]).tolist()
        low = np.concatenate([s.low + k for s, k in zip(states, shift, strict=True)])
        high = np.concatenate([s.high + k for s, k in zip(states, shift, strict=True)])
        return Sorted(starts, low, high, words, before)

    def _cut_out(self, state: Sorted) -> Sorted:
        """The same arrays one behind the other, with nothing else around them."""
        ends = np.cumsum(state.high - state.low)
        low = ends - (state.high - state.low)
        whole = len(ends) > 0 and ends[-1] == len(state.words) == len(state.before) - 1
        if whole and (low == state.low).all():
            return state
        words, before = gathered(state.words, state.before, ranges(state.low, state.high))
        return Sorted(state.starts, low, ends, words, before)

    def nbytes(self, state: Sorted) -> int:
        return int(state.starts.nbytes + 2 * state.low.nbytes + state.words.nbytes + state.before.nbytes)

    # -- over many cells ----------------------------------------------------------------------------------------------

    def present(self, state: Sorted) -> np.ndarray:
        full = np.concatenate([[0], np.cumsum(state.high > state.low)])
        return full[state.starts[1:]] > full[state.starts[:-1]]

    def merge(self, state: Sorted, group: np.ndarray, low: np.ndarray, high: np.ndarray, base: np.ndarray,
              cells: int) -> Sorted:  # fmt: skip
        index, starts = dealt(group, low, high, base, cells)  # stored cells have one array each
        return Sorted(starts, state.low[index], state.high[index], state.words, state.before)

    def settled(self, state: Sorted) -> Sorted:
        if state.single:
            return state
        starts, words, before = union(state.words, state.before, state.low, state.high, state.starts)
        return Sorted(np.arange(len(starts)), starts[:-1], starts[1:], words, before)

    def write(self, state: Sorted, at: int, more: Sorted) -> Sorted:
        more = self._cut_out(more)
        used, n, cells = int(state.high[at - 1]) if at else 0, len(more.words), len(more.starts) - 1
        state.words, state.before = longer(state.words, used + n), longer(state.before, used + n + 1)
        state.words[used : used + n] = more.words
        state.before[used + 1 : used + n + 1] = more.before[1:] + state.before[used]
        state.low[at : at + cells], state.high[at : at + cells] = more.low + used, more.high + used
        return state


def quantile(call: AggCall) -> Ranks | None:
    """The algebra of such a call; None if its values have no words in order."""
    return None if isinstance(coding(call.args[0].type), Codes) else Ranks(call)
