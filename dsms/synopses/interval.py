"""B-INT: base intervals (Arasu and Widom 2004, §3.1.1), those of 2^n sub-windows that begin at a
multiple of 2^n.

Use      any aggregate, any span.  Over sorted arrays (`quantile`) it is their B-INT-QNT.
State    a cell for each group that occurs in a base interval: up to twice as many as there are in
         sub-windows, or log b times as many values where cells are lists.
Cost     O(1) amortised a sub-window, O(log W) a span of W sub-windows, for each group.  A span is
         cut from left to right with the trailing zeros of where it stands and the length of what is
         left.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numba import njit

from dsms.aggregates.parts.cells import Algebra, State
from dsms.aggregates.parts.fold import folds
from dsms.synopses.cells import PART, SynopsisKind, all_cells, some_cells
from dsms.synopses.tape import Tape

LEAST = 16  # sub-windows in a ring at first


def place(ring: int, level: int, number: Any) -> Any:
    """Where a base interval is (or several are), in rings for ring, ring / 2, ring / 4, ...
    intervals, one level behind the other."""
    return 2 * ring - (2 * ring >> level) + (number & ((ring >> level) - 1))


@njit(cache=True, nogil=True)
def _runs(low, high, ring, begins, ends, span, begin, end):
    """Spans as base intervals, left to right: the cells from begin[n] to end[n], for span[n]; how
    many."""
    n = 0
    for i in range(len(low)):
        a, b = low[i], high[i]
        while a < b:
            level = 0
            while (a >> level) & 1 == 0 and a + (2 << level) <= b:
                level += 1
            at = 2 * ring - (2 * ring >> level) + ((a >> level) & ((ring >> level) - 1))  # `place`
            span[n], begin[n], end[n] = i, begins[at], ends[at]
            a += 1 << level
            n += 1
    return n


class Interval:
    """Base intervals in rings (`place`), each with the cells from begins to ends; `ring` is a power
    of two, and never less than the sub-windows held."""

    kind: ClassVar[SynopsisKind] = "interval"

    def __init__(self, algebra: Algebra, groups: int = 1) -> None:
        self.algebra = folds(algebra)
        self.groups = groups
        self.first = self.next = 0
        self.tape = Tape(self.algebra)
        self.ring = LEAST
        self.begins, self.ends = np.zeros(2 * LEAST, np.int64), np.zeros(2 * LEAST, np.int64)

    def grow(self, groups: int) -> None:
        self.groups = groups

    def append(self, state: State, count: int) -> None:
        for _ in self.appending(state, count):
            pass

    def appending(self, state: State, count: int) -> Iterator[None]:
        """`append`, a piece at a time; nobody may see it before the last."""
        if not count:
            return
        if self.next + count - self.first > self.ring:
            self._enlarge(self.next + count - self.first)
        old, self.next = self.next, self.next + count
        self._enter(0, np.arange(old, self.next), self.tape.keep(state, self.groups, count))
        level = 1
        while len(new := np.arange(max(old >> level, -(-self.first >> level)), self.next >> level)):
            half = place(self.ring, level - 1, np.arange(2 * new[0], 2 * new[-1] + 2))
            if len(new) == 1 and self.groups > self._part:
                yield from self._united(level, new, half)
            else:
                base = (np.arange(2 * len(new)) >> 1) * self.groups
                cells = len(new) * self.groups
                both = self.tape.merge(self.begins[half], self.ends[half], base, cells)
                self._enter(level, new, self.tape.keep(both, self.groups, len(new)))
            level += 1

    @property
    def _part(self) -> int:
        """Groups that are put together in one go."""
        return max(1, PART // self.algebra.breadth)

    def _united(self, level: int, new: np.ndarray, half: np.ndarray) -> Iterator[None]:
        """One base interval of two, some of the groups at a time."""
        edges = np.append(np.arange(0, self.groups, self._part), self.groups)
        at = self.tape.cut(self.begins[half], self.ends[half], edges)
        begin = self.tape.end
        for k, (first, stop) in enumerate(pairwise(edges.tolist())):
            yield
            base = np.full(2, -first)
            self.tape.keep_part(self.tape.merge(at[k], at[k + 1], base, stop - first), first)
        self._enter(level, new, np.array([begin, self.tape.end]))

    def _enter(self, level: int, number: np.ndarray, starts: np.ndarray) -> None:
        """These base intervals are complete, and their cells lie from one start to the next."""
        at = place(self.ring, level, number)
        self.begins[at], self.ends[at] = starts[:-1], starts[1:]

    def _enlarge(self, held: int) -> None:
        old, begins, ends = self.ring, self.begins, self.ends
        while self.ring < held:
            self.ring *= 2
        self.begins, self.ends = (
            np.zeros(2 * self.ring, np.int64),
            np.zeros(2 * self.ring, np.int64),
        )
        for level in range(old.bit_length()):
            number = np.arange(-(-self.first >> level), self.next >> level)
            here, there = place(old, level, number), place(self.ring, level, number)
            self.begins[there], self.ends[there] = begins[here], ends[here]

    def trim(self, first: int) -> None:
        first = min(first, self.next)
        if first > self.first:
            self.first = first
            oldest = (
                int(self.begins[place(self.ring, 0, first)]) if first < self.next else self.tape.end
            )
            self.tape.drop(oldest)

    def probe(self, low: np.ndarray, high: np.ndarray) -> State:
        low = np.clip(low, self.first, self.next)
        high = np.maximum(low, np.clip(high, self.first, self.next))
        span, begin, end = self.cut(low, high)
        return self.tape.merge(begin, end, span * self.groups, len(low) * self.groups)

    def probe_part(self, low: np.ndarray, high: np.ndarray, first: int, stop: int) -> State:
        low = np.clip(low, self.first, self.next)
        high = np.maximum(low, np.clip(high, self.first, self.next))
        span, begin, end = self.cut(low, high)
        at, groups = self.tape.cut(begin, end, np.array([first, stop])), stop - first
        return self.tape.merge(at[0], at[1], span * groups - first, len(low) * groups)

    def cut(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(span, begin, end) of the runs of cells that spans of what is held are made of."""
        room = 2 * int((high - low).max(initial=0)).bit_length() * len(low)
        span, begin, end = (np.empty(room, np.int64) for _ in range(3))
        n = _runs(low, high, self.ring, self.begins, self.ends, span, begin, end)
        return span[:n], begin[:n], end[:n]

    def probe_some(self, low: np.ndarray, high: np.ndarray, group: np.ndarray) -> State:
        return some_cells(self, low, high, group)

    def cells_of(self, number: int) -> tuple[np.ndarray, State]:
        return all_cells(self, number)

    def cost(self, width: int) -> float:
        return float(max(1, 2 * max(0, width).bit_length() - 2))

    @property
    def nbytes(self) -> int:
        return self.tape.nbytes + int(self.begins.nbytes + self.ends.nbytes)
