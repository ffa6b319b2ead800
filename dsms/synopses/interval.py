"""B-INT: base intervals (Arasu and Widom 2004, §3.1.1), those of 2^n sub-windows that begin at a multiple of 2^n.

Use      any aggregate, any span.  Over sorted arrays (`quantile`) it is their B-INT-QNT.
State    a cell for each group that occurs in a base interval: up to twice as many as there are in sub-windows, or log b
         times as many values where cells are lists.
Cost     O(1) amortised a sub-window, O(log W) a span of W sub-windows, for each group.  A span is cut from left to
         right with the trailing zeros of where it stands and the length of what is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.synopses.cells import Algebra, State
from dsms.synopses.fold import folds
from dsms.synopses.tape import Tape


@njit(cache=True, nogil=True)
def cut(low, high, levels, span, level, number):
    """Spans as base intervals of the levels there are, left to right: `number` of `level`, for `span`; how many."""
    n = 0
    for i in range(len(low)):
        a, b = low[i], high[i]
        while a < b:
            most = 0
            while most + 1 < levels and (a >> most) & 1 == 0 and a + (2 << most) <= b:
                most += 1
            span[n], level[n], number[n] = i, most, a >> most
            a += 1 << most
            n += 1
    return n


@dataclass(slots=True)
class Level:
    """Base interval first + i has the cells from low[i] to high[i]."""

    first: int = 0
    low: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    high: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def next(self) -> int:
        return self.first + len(self.low)

    def add(self, starts: np.ndarray) -> None:
        """The next intervals, one behind the other."""
        self.low, self.high = np.append(self.low, starts[:-1]), np.append(self.high, starts[1:])

    def trim(self, first: int) -> None:
        """Those before `first` go."""
        gone = max(0, min(first - self.first, len(self.low)))
        self.low, self.high = self.low[gone:], self.high[gone:]
        self.first = max(first, self.first) if len(self.low) == 0 else self.first + gone


class Interval:
    """`levels` grow with the longest run of sub-windows held at once."""

    def __init__(self, algebra: Algebra, groups: int = 1) -> None:
        self.algebra = folds(algebra)
        self.groups = groups
        self.first = self.next = 0
        self.tape = Tape(self.algebra)
        self.levels = [Level()]

    def grow(self, groups: int) -> None:
        self.groups = groups

    def append(self, state: State, count: int) -> None:
        if not count:
            return
        self.levels[0].add(self.tape.keep(state, self.groups, count))
        self.next += count
        n = 1
        while self.next >> n > -(-self.first >> n):  # a whole one is held
            if n == len(self.levels):
                self.levels.append(Level(-(-self.first >> n)))
            if not self._complete(n):
                break
            n += 1

    def _complete(self, n: int) -> bool:
        """Put the intervals of level n together whose halves are there now; whether there are such."""
        level, halves = self.levels[n], self.levels[n - 1]
        level.first = level.first if len(level.low) else max(level.first, -(-halves.first // 2))
        old, new = level.next, self.next >> n
        if new <= old:
            return False
        half = np.arange(2 * old, 2 * new) - halves.first
        base = (np.arange(2 * (new - old)) >> 1) * self.groups
        state = self.tape.merge(halves.low[half], halves.high[half], base, (new - old) * self.groups)
        level.add(self.tape.keep(state, self.groups, new - old))
        return True

    def trim(self, first: int) -> None:
        first = min(first, self.next)
        if first <= self.first:
            return
        self.first = first
        for n, level in enumerate(self.levels):
            level.trim(-(-first >> n))
        if len(self.levels[0].low):
            self.tape.drop(int(self.levels[0].low[0]))
        else:
            self.tape.drop(self.tape.end)

    def probe(self, low: np.ndarray, high: np.ndarray) -> State:
        low = np.clip(low, self.first, self.next)
        high = np.maximum(low, np.clip(high, self.first, self.next))
        span, begin, end = self._runs(low, high)
        return self.tape.merge(begin, end, span * self.groups, len(low) * self.groups)

    def _runs(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(span, beginning, end) of runs of cells that spans are made of, left to right."""
        levels = len(self.levels)
        width = high - low
        bits = int(width.max(initial=0)).bit_length()
        room = int(width.sum()) if bits < 3 else 2 * min(bits, levels) * len(low)
        if bits > levels:
            room += int((width >> levels - 1).sum())
        span, level, number = (np.empty(room, np.int64) for _ in range(3))
        n = cut(low, high, levels, span, level, number)
        span, level, number = span[:n], level[:n], number[:n]
        offsets = np.cumsum([0, *(len(k.low) for k in self.levels[:-1])]) - np.array([k.first for k in self.levels])
        place = offsets[level] + number
        begin = np.concatenate([k.low for k in self.levels])[place]
        return span, begin, np.concatenate([k.high for k in self.levels])[place]

    def forget(self, keep: np.ndarray) -> None:
        nodes = self.tape.forget(keep, [a for k in self.levels for a in (k.low, k.high)])
        for n, level in enumerate(self.levels):
            level.low, level.high = nodes[2 * n], nodes[2 * n + 1]
        self.groups = len(keep)

    def cost(self, width: int) -> float:
        return float(max(1, 2 * max(0, width).bit_length() - 2))

    @property
    def nbytes(self) -> int:
        return self.tape.nbytes + sum(int(k.low.nbytes + k.high.nbytes) for k in self.levels)
