"""Frequency counters: how often each value occurs in a cell, for all aggregates that need no more
than that.

COUNT(DISTINCT x) and every other DISTINCT, TOPK, MODE, ENTROPY, QUANTILE and MEDIAN over anything.
State    a sorted list of (word, count) a cell: 16 bytes for each different value of a cell.
Cost     O(v log v) to lift v values of a cell, O(v log p) to combine p cells of v different values
         in all.
Sets may overlap where only the different values matter.  Subtractable, but not of constant size: a
running synopsis would remember every value that ever came (Golab 2006, §2.3.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms.aggregates.cards import CARDS
from dsms.aggregates.parts.cells import Algebra, CellRows
from dsms.aggregates.parts.coded import Words, counting
from dsms.aggregates.parts.entropy import entropies
from dsms.aggregates.parts.fold import Folds, ranges
from dsms.aggregates.parts.items import places
from dsms.aggregates.parts.lists import gathered, less, tallied, union
from dsms.aggregates.parts.ranked import AtShare
from dsms.aggregates.parts.texts import joined, shown
from dsms.aggregates.parts.words import coding
from dsms.sql.expr import AggCall
from dsms.state.lengthening import grown

FEW = 64  # values that are found by insertion
HEAVY = 1 << 20  # words of lists


@dataclass(slots=True, eq=False, weakref_slot=True)
class Tally:
    """n cells: cell i has the entries from starts[i] to starts[i + 1], by word ascending
    (`lists`)."""

    starts: np.ndarray
    words: np.ndarray
    before: np.ndarray


@njit(cache=True, nogil=True)
def _top(starts, words, before, rank, k, best, out_starts, out):
    """The k most frequent words of each cell, the smaller first among equals; out_starts are their
    beginnings."""
    m = 0
    for g in range(len(starts) - 1):
        out_starts[g] = m
        n = 0
        for i in range(starts[g], starts[g + 1]):
            count, x = before[i + 1] - before[i], words[i]
            x = rank[x] if len(rank) else x
            j = n
            while j > 0:
                y = words[best[j - 1]]
                y = rank[y] if len(rank) else y
                other = before[best[j - 1] + 1] - before[best[j - 1]]
                if other > count or (other == count and y < x):
                    break
                if j < k:
                    best[j] = best[j - 1]
                j -= 1
            if j < k:
                best[j] = i
                n = min(n + 1, k)
        for j in range(n):
            out[m] = words[best[j]]
            m += 1
    out_starts[len(starts) - 1] = m
    return m


class Counters(Folds):
    """The algebra.  `inside` answers DISTINCT aggregates over the different values of each cell."""

    subtractable = True

    def __init__(self, call: AggCall, inside: Algebra | None) -> None:
        self.call, self.inside = call, inside
        card = CARDS[call.fn]
        self.words = Words(coding(call.args[0].type, ordered=card.tallied or card.ranked))
        self.ranked = AtShare(call) if card.ranked else None
        self.duplicate_insensitive = call.distinct

    def _made(self, starts: np.ndarray, words: np.ndarray, before: np.ndarray) -> Tally:
        out = Tally(starts, words, before)
        self.words.enter(out, "words")
        return out

    def empty(self, cells: int) -> Tally:
        return self._made(
            np.zeros(cells + 1, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64)
        )

    def lift(self, rows: CellRows, cells: int) -> Tally:
        (column,) = rows.args
        return self._made(*tallied(rows.cell, self.words.encode(column), counting(column), cells))

    def combine(self, older: Tally, newer: Tally) -> Tally:
        both, n = self.concat([older, newer]), len(older.starts) - 1
        index = np.arange(2 * n).reshape(2, n).T.ravel()
        low, high = both.starts[index], both.starts[index + 1]
        return self._made(*union(both.words, both.before, low, high, np.arange(0, 2 * n + 1, 2)))

    def subtract(self, whole: Tally, part: Tally) -> Tally:
        starts = np.empty_like(whole.starts)
        words, before = np.empty_like(whole.words), np.zeros(len(whole.words) + 1, np.int64)
        m = less(
            whole.starts,
            whole.words,
            whole.before,
            part.starts,
            part.words,
            part.before,
            starts,
            words,
            before,
        )
        return self._made(starts, words[:m].copy(), before[: m + 1].copy())

    def size(self, state: Tally) -> int:
        return len(state.starts) - 1

    def take(self, state: Tally, index: np.ndarray) -> Tally:
        place, starts = places(state.starts, index)
        return self._made(starts, *gathered(state.words, state.before, place))

    def concat(self, states: Sequence[Tally]) -> Tally:
        if not states:
            return self.empty(0)
        sizes = np.concatenate([np.diff(s.starts) for s in states])
        counts = np.concatenate([np.diff(s.before) for s in states])
        starts, before = (np.concatenate([[0], np.cumsum(x)]) for x in (sizes, counts))
        return self._made(starts, np.concatenate([s.words for s in states]), before)

    def nbytes(self, state: Tally) -> int:
        return int(state.starts.nbytes + state.words.nbytes + state.before.nbytes)

    # -- over many cells ---------------------------------------------------------------------------

    def present(self, state: Tally) -> np.ndarray:
        return np.diff(state.starts) > 0

    def merge(
        self,
        state: Tally,
        group: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        base: np.ndarray,
        cells: int,
    ) -> Tally:
        index, starts = dealt(group, low, high, base, cells)
        return self._made(
            *union(state.words, state.before, state.starts[index], state.starts[index + 1], starts)
        )

    def heavy(self, state: Tally) -> bool:
        return is_heavy(state.words)

    def write(self, state: Tally, at: int, more: Tally) -> Tally:
        used, n, cells = int(state.starts[at]), len(more.words), len(more.starts) - 1
        state.words, state.before = (
            grown(state.words, used + n),
            grown(state.before, used + n + 1),
        )
        state.words[used : used + n] = more.words
        state.before[used + 1 : used + n + 1] = more.before[1:] + state.before[used]
        state.starts[at + 1 : at + cells + 1] = more.starts[1:] + used
        return state

    # -- answers -----------------------------------------------------------------------------------

    def lower(self, state: Tally) -> pa.Array:
        match self.call.fn:
            case "count":
                return pa.array(np.diff(state.starts))
            case "mode":
                return self._mode(state)
            case "entropy":
                return entropies(state.starts, state.before)
        if CARDS[self.call.fn].tallied:
            return self._most_frequent(state)
        if self.ranked is not None:
            return self._by_rank(state, self.ranked)
        return self._inside(state)

    def _inside(self, state: Tally) -> pa.Array:
        assert self.inside is not None
        cells = len(state.starts) - 1
        cell = np.repeat(np.arange(cells), np.diff(state.starts))
        column = self.words.decode(state.words, np.ones(len(cell), np.bool_))
        return self.inside.lower(self.inside.lift(CellRows(cell, cell, cell, (column,)), cells))

    def _by_rank(self, state: Tally, ranked: AtShare) -> pa.Array:
        words, before = state.words, state.before
        if self.call.distinct:
            before = np.arange(len(before))
        if len(self.words.rank):
            cell = np.repeat(np.arange(len(state.starts) - 1), np.diff(state.starts))
            words, before = gathered(words, before, np.lexsort((self.words.rank[words], cell)))
        low, high = state.starts[:-1].copy(), state.starts[1:].copy()
        return ranked.answer(words, before, low, high, np.arange(len(state.starts)), self.words)

    def _most_frequent(self, state: Tally) -> pa.Array:
        words, starts = self._best(state, int(str(self.call.params[0])))
        column = self.words.decode(words, np.ones(len(words), np.bool_))
        lists = joined(shown(column, self.call.args[0].type), starts, ", ")
        texts = pc.binary_join_element_wise("[", lists, "]", "")
        return pc.if_else(pa.array(np.diff(state.starts) > 0), texts, pa.scalar(None, pa.string()))

    def _mode(self, state: Tally) -> pa.Array:
        words, starts = self._best(state, 1)
        valid = np.diff(starts) > 0
        found = np.zeros(len(valid), np.int64)
        found[valid] = words
        return self.words.decode(found, valid)

    def _best(self, state: Tally, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(the k most frequent words of each cell, where those of each begin)."""
        rank = self.words.rank
        if k <= FEW:
            starts, out = np.empty_like(state.starts), np.empty(len(state.words), np.int64)
            m = _top(
                state.starts, state.words, state.before, rank, k, np.empty(k, np.int64), starts, out
            )
            return out[:m], starts
        size = np.diff(state.starts)
        cell = np.repeat(np.arange(len(size)), size)
        value = rank[state.words] if len(rank) else state.words
        order = np.lexsort((value, -np.diff(state.before), cell))
        kept = order[np.arange(len(order)) - state.starts[:-1][cell] < k]
        return state.words[kept], np.concatenate([[0], np.cumsum(np.minimum(size, k))])


def dealt(
    group: np.ndarray, low: np.ndarray, high: np.ndarray, base: np.ndarray, cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """(stored cells in the order of what they go into, int64[cells + 1] where those of each begin):
    `Folds.merge`."""
    index = ranges(low, high)
    target = np.repeat(base, high - low) + group[index]
    starts = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=cells))])
    return index[np.argsort(target, kind="stable")], starts


def is_heavy(words: np.ndarray) -> bool:
    """Whether lists have so many words that the next ones should go into another array."""
    return len(words) > HEAVY
