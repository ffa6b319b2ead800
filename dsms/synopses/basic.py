"""The basic interval synopsis: sub-windows and nothing else (Golab 2006, §2.3.4).

Use      many spans that end together: one scan from the youngest sub-window to the oldest passes
         all of them (§8.3.1, CS2).  And where groups are many and rows are few: a sub-window's
         cells that are empty take no space.
State    a cell for each group that occurs in a sub-window.
Cost     O(1) a sub-window; a probe reads each sub-window once for all spans with the same end, and
         combines once a span and group on top.  The answer has a cell for every group, present or
         not.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dsms.aggregates.parts.cells import Algebra, State
from dsms.aggregates.parts.fold import EMPTY, folds, ranges
from dsms.synopses.cells import SynopsisKind
from dsms.synopses.tape import Queue, Tape


class Basic:
    """Sub-window k has the cells from starts[k - first] to starts[k - first + 1]."""

    kind: ClassVar[SynopsisKind] = "basic"

    def __init__(self, algebra: Algebra, groups: int = 1) -> None:
        self.algebra = folds(algebra)
        self.groups = groups
        self.first = self.next = 0
        self.tape = Tape(self.algebra)
        self.starts = Queue(np.zeros(1, np.int64))

    def grow(self, groups: int) -> None:
        self.groups = groups

    def append(self, state: State, count: int) -> None:
        if count:
            starts = self.tape.keep(state, self.groups, count)
            self.starts.append(starts[1:])
            self.next += count

    def cells(self, sub: np.ndarray) -> State:
        """The cells of those sub-windows (held), one below the other."""
        starts = self.starts.view
        at = starts[sub - self.first], starts[sub - self.first + 1]
        return self.tape.merge(*at, np.arange(len(sub)) * self.groups, len(sub) * self.groups)

    def trim(self, first: int) -> None:
        first = min(first, self.next)
        if first > self.first:
            self.starts.drop(first - self.first)
            self.first = first
            self.tape.drop(int(self.starts.view[0]))

    def probe(self, low: np.ndarray, high: np.ndarray) -> State:
        low = np.clip(low, self.first, self.next)
        high = np.maximum(low, np.clip(high, self.first, self.next))
        order = np.lexsort((-low, high))
        low, high = low[order], high[order]
        new = np.ones(len(low), np.bool_)
        new[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        state = self._passed(low[new], high[new])
        if new.all() and (order[1:] > order[:-1]).all():
            return state
        node = np.empty(len(low), np.int64)
        node[order] = np.cumsum(new) - 1
        return self.algebra.take(
            state, (node[:, None] * self.groups + np.arange(self.groups)).ravel()
        )

    def _passed(self, low: np.ndarray, high: np.ndarray) -> State:
        """Different spans in order of their end, those with the same end from the shortest to the
        longest."""
        spans, groups = len(low), self.groups
        follows = np.zeros(spans, np.bool_)
        follows[1:] = high[1:] == high[:-1]
        stop = np.where(follows, np.roll(low, 1), high)  # what lies beyond has been passed already
        sub = ranges(low, stop) - self.first
        base = np.repeat(np.arange(spans) * groups, stop - low)
        starts = self.starts.view
        state = self.tape.merge(starts[sub], starts[sub + 1], base, spans * groups)
        if not follows.any():
            return state
        prev = np.arange(spans * groups) - groups
        prev[~np.repeat(follows, groups)] = EMPTY
        return self.algebra.chain(state, prev, False)

    def probe_part(self, low: np.ndarray, high: np.ndarray, first: int, stop: int) -> State:
        low = np.clip(low, self.first, self.next)
        high = np.maximum(low, np.clip(high, self.first, self.next))
        sub, starts, groups = ranges(low, high) - self.first, self.starts.view, stop - first
        at = self.tape.cut(starts[sub], starts[sub + 1], np.array([first, stop]))
        base = np.repeat(np.arange(len(low)) * groups - first, high - low)
        return self.tape.merge(at[0], at[1], base, len(low) * groups)

    def probe_some(self, low: np.ndarray, high: np.ndarray, group: np.ndarray) -> State:
        low = np.clip(low, self.first, self.next)
        high = np.maximum(low, np.clip(high, self.first, self.next))
        starts, place = self.starts.view, np.full(self.groups, EMPTY, np.int32)
        place[group] = np.arange(len(group), dtype=np.int32)
        spans = zip(starts[low - self.first], starts[high - self.first], high - low, strict=True)
        return self.algebra.concat(
            [self.tape.merge_some(int(a), int(b), place, len(group), int(n)) for a, b, n in spans]
        )

    def cells_of(self, number: int) -> tuple[np.ndarray, State]:
        starts = self.starts.view
        return self.tape.cells(
            int(starts[number - self.first]), int(starts[number - self.first + 1])
        )

    def cost(self, width: int) -> float:
        return float(width)

    @property
    def nbytes(self) -> int:
        return self.tape.nbytes + self.starts.nbytes
