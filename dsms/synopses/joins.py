"""What the join synopses share (Golab 2006, §8.3.2): intervals of expiration times, flags, unions
of intervals.

Results    A result of a join of two windows has parts in sub-windows k1 and k2.  It is born in
           sub-window max(k1, k2) and, where both windows are b sub-windows long, expires with its
           older part: m = min(k1, k2) stands for the interval of expiration times ((m + b) s, (m +
           b + 1) s].
Windows    At boundary t the (n1 s, n2 s)-join holds the results with k1 >= t - n1 and k2 >= t - n2,
           and no others.  So the (n s, n s)-join is made of the intervals m >= t - n, for every n
           <= b.
Update     New results may expire in any of the b intervals: the oldest interval is dropped, a new
           one is appended, and what the buffer has pre-aggregated is merged into all.
Flags      Where n1 < n2, the (n1 s, n2 s)-join holds besides m >= t - n1 of each older interval m
           those results whose older part is in the second window and whose other part is in k1 >= t
           - n1 (and the other way about).  Fig 8.4 stores one such value per window and interval,
           which says k1 > m: enough for t - n1 = m + 1 alone.  `Flagged` stores one per step d = 1,
           ..., g, for k1 >= m + d, and so is exact for all b - g <= n1, n2 <= b.  They are kept for
           all b intervals and not for the g oldest alone: what a flag says of a result must be
           noted when the result is born, and an interval that is young now will be one of the
           oldest.  Space: b (1 + 2 g) cells a group (g = 1: the three values of Fig 8.4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dsms.aggregates.parts.cells import Algebra, State
from dsms.synopses.cells import SynopsisKind

Change = Callable[[State], State]
OLDER_FIRST, OLDER_SECOND, TIE = 0, 1, 2  # which window the older part is in


def spread(index: np.ndarray, groups: int) -> np.ndarray:
    """Cells of the intervals at `index` (-1: none), all groups of each."""
    cells = index[:, None] * groups + np.arange(groups)
    return np.where(index[:, None] < 0, -1, cells).ravel()


def unions(
    algebra: Algebra, state: State, groups: int, index: np.ndarray, starts: np.ndarray
) -> State:
    """For each i the union of intervals index[starts[i]:starts[i + 1]]: (len(starts) - 1) * groups
    cells.

    Halved over and over, so the verbs are called log2 of the most intervals times."""
    state = algebra.take(state, spread(index, groups))
    width = np.diff(starts)
    while len(width) and width.max() > 1:
        half = (width + 1) // 2
        new = np.concatenate([[0], np.cumsum(half)])
        left = np.repeat(starts[:-1] - 2 * new[:-1], half) + 2 * np.arange(new[-1])
        right = np.where(left + 1 < np.repeat(starts[1:], half), left + 1, -1)
        state = algebra.combine(
            algebra.take(state, spread(left, groups)), algebra.take(state, spread(right, groups))
        )
        starts, width = new, half
    return algebra.take(state, spread(np.where(width > 0, starts[:-1], -1), groups))


def suffixes(algebra: Algebra, state: State, groups: int, count: int) -> State:
    """For each of `count` intervals the union of itself and all behind it."""
    step, every = 1, np.arange(count)
    while step < count:
        ahead = np.where(every + step < count, every + step, -1)
        state = algebra.combine(state, algebra.take(state, spread(ahead, groups)))
        step *= 2
    return state


def shifted(algebra: Algebra, state: State, by: int, size: int, blocks: int, groups: int) -> State:
    """Blocks of `size` intervals, each without its first `by` and with as many empty ones at its
    end."""
    if by <= 0:
        return state
    index = np.arange(size) + by
    index = np.where(index < size, index, -1)
    return algebra.take(state, spread(_in_blocks(index, size, blocks), groups))


def _in_blocks(index: np.ndarray, size: int, blocks: int) -> np.ndarray:
    base = np.arange(blocks)[:, None] * size
    return np.where(index[None, :] < 0, -1, base + index[None, :]).ravel()


def regrouped(algebra: Algebra, state: State, index: np.ndarray, groups: int) -> State:
    """Of every interval the groups at `index` (-1: empty) out of `groups`."""
    count = algebra.size(state) // groups
    cells = np.arange(count)[:, None] * groups + index[None, :]
    return algebra.take(state, np.where(index[None, :] < 0, -1, cells).ravel())


@dataclass(slots=True)
class Flagged:
    """Values of flagged results, per window and step.

    running  False: of one interval m and step d, the results with k >= m + d (BIJ)
             True: of one threshold x and w, those with x - w <= m < x and k >= x, so that a query
             reads one of them (IJ, RJ)
    state    for step 1, ..., g, for either window of the older part, b intervals
    """

    algebra: Algebra
    b: int
    g: int
    running: bool
    state: State = field(init=False)

    def __post_init__(self) -> None:
        self.state = self.algebra.empty(2 * self.g * self.b)

    def update(self, born: State, by: int, groups: int) -> None:
        """`born`: by window of the older part and interval; all born in the youngest sub-window."""
        how, b = self.algebra, self.b
        kept = shifted(how, self.state, by, b, 2 * self.g, groups)
        self.state = how.combine(
            kept, self._runs(born, groups) if self.running else self._steps(born, groups)
        )

    def _steps(self, born: State, groups: int) -> State:
        """Results born in sub-window K with older part in m count for all steps d <= K - m."""
        place = np.arange(self.b)
        index = [np.where(place + d < self.b, place, -1) for d in range(1, self.g + 1)]
        cells = np.concatenate([_in_blocks(i, self.b, 2) for i in index])
        return self.algebra.take(born, spread(cells, groups))

    def _runs(self, born: State, groups: int) -> State:
        how, place = self.algebra, np.arange(self.b)
        run, out = how.empty(2 * self.b * groups), []
        for w in range(1, self.g + 1):
            before = _in_blocks(np.where(place >= w, place - w, -1), self.b, 2)
            run = how.combine(how.take(born, spread(before, groups)), run)
            out.append(run)
        return how.concat(out)

    def probe(self, low: np.ndarray, high: np.ndarray, side: np.ndarray, groups: int) -> State:
        """Results with low <= m < high, older part in window `side`, and the other one in k >=
        high."""
        width = high - low
        if self.running:
            known = (width > 0) & (high < self.b)
            place = ((width - 1) * 2 + side) * self.b + high
            return self.algebra.take(self.state, spread(np.where(known, place, -1), groups))
        starts = np.concatenate([[0], np.cumsum(width)])
        at = np.repeat(low - starts[:-1], width) + np.arange(starts[-1])
        step = np.repeat(high, width) - at
        place = ((step - 1) * 2 + np.repeat(side, width)) * self.b + at
        return unions(self.algebra, self.state, groups, np.where(at < self.b, place, -1), starts)


@dataclass(slots=True)
class JoinSynopsis(ABC):
    """Pre-aggregated results of a join, by intervals of expiration.

    b     intervals; windows are b sub-windows long at most
    g     windows of different lengths n1, n2 are answered where b - g <= n1, n2 <= b (0: none)
    next  results born in sub-windows before this one are in
    first the interval at place 0: what is before has expired
    """

    kind: ClassVar[SynopsisKind]
    algebra: Algebra
    b: int
    g: int = 0
    groups: int = 1
    next: int = 0
    first: int = field(init=False)
    flagged: Flagged | None = field(init=False)

    running = False  # whether flagged values are

    def __post_init__(self) -> None:
        self.first = self.next - self.b
        self.flagged = Flagged(self.algebra, self.b, self.g, self.running) if self.g else None
        self._begin()
        if self.groups > 1:
            groups, self.groups = self.groups, 1
            self.grow(groups)

    # -- the buffer --------------------------------------------------------------------------------

    @property
    def buffer(self) -> int:
        """Cells of a sub-window's results: a block of b * groups each for OLDER_FIRST, OLDER_SECOND
        and TIE; without flags one block."""
        return (3 if self.g else 1) * self.b * self.groups

    def cell(self, k1: np.ndarray, k2: np.ndarray, group: np.ndarray) -> np.ndarray:
        """int64[n]: the buffer's cells of results born in sub-window `next`; -1 where they have
        expired by its end."""
        m = np.minimum(k1, k2) - (self.next + 1 - self.b)
        side = np.where(k1 < k2, OLDER_FIRST, np.where(k1 > k2, OLDER_SECOND, TIE)) if self.g else 0
        return np.where(m < 0, -1, (side * self.b + m) * self.groups + group)

    # -- updates -----------------------------------------------------------------------------------

    def update(self, born: State) -> None:
        """Sub-window `next` is over: `born` are the buffer's cells."""
        by = self.next + 1 - self.b - self.first
        every = born
        if self.flagged is not None:
            how, block = self.algebra, self.b * self.groups
            sides = [how.take(born, np.arange(k * block, (k + 1) * block)) for k in range(3)]
            every = how.combine(how.combine(sides[0], sides[1]), sides[2])
            self.flagged.update(how.take(born, np.arange(2 * block)), by, self.groups)
        self._merge(every, by)
        self.next += 1
        self.first += by

    def begin(self, number: int) -> None:
        """The first sub-window is this one; only while nothing is in."""
        self.next, self.first = number, number - self.b

    def move(self, to: int) -> None:
        """Nothing was born in sub-windows `next`, ..., `to` - 1."""
        self.next = max(self.next, to)

    # -- probes ------------------------------------------------------------------------------------

    def answers(self, n1: int, n2: int) -> bool:
        """Whether (n1 s, n2 s)-joins can be answered (SS3)."""
        low, high = min(n1, n2), max(n1, n2)
        return low >= 1 and high <= self.b and (n1 == n2 or low >= self.b - self.g)

    def probe(self, at: np.ndarray, n1: np.ndarray, n2: np.ndarray) -> State:
        """For each i the (n1[i] s, n2[i] s)-join as of boundary at[i] >= `next`, nothing having
        been born since `next`: len(at) * groups cells."""
        places, back = np.unique(
            np.minimum(self._place(at - np.minimum(n1, n2)), self.b), return_inverse=True
        )
        state = self.algebra.take(self._suffixes(places), spread(back, self.groups))
        uneven = np.flatnonzero(n1 != n2)
        if not len(uneven):
            return state
        assert self.flagged is not None
        low, high = at - np.maximum(n1, n2), at - np.minimum(n1, n2)
        side = np.where(n1 < n2, OLDER_SECOND, OLDER_FIRST)
        asked = np.stack([self._place(low), self._place(high), side])[:, uneven]
        some, again = np.unique(asked, axis=1, return_inverse=True)
        more = self.flagged.probe(some[0], some[1], some[2], self.groups)
        where = np.full(len(at), -1)
        where[uneven] = again.ravel()
        return self.algebra.combine(self.algebra.take(more, spread(where, self.groups)), state)

    def _place(self, m: np.ndarray) -> np.ndarray:
        return m - self.first

    # -- groups ------------------------------------------------------------------------------------

    def grow(self, groups: int) -> None:
        """There are `groups` groups from now on; the new ones were empty in all intervals so
        far."""
        if groups > self.groups:
            index = np.arange(groups)
            self._regroup(np.where(index < self.groups, index, -1))

    def _regroup(self, index: np.ndarray) -> None:
        if self.flagged is not None:
            self.flagged.state = regrouped(self.algebra, self.flagged.state, index, self.groups)
        self._map(lambda state: regrouped(self.algebra, state, index, self.groups))
        self.groups = len(index)

    @property
    def nbytes(self) -> int:
        flags = 0 if self.flagged is None else self.algebra.nbytes(self.flagged.state)
        return flags + sum(map(self.algebra.nbytes, self._states()))

    # -- the plain part ----------------------------------------------------------------------------

    @abstractmethod
    def _begin(self) -> None:
        """Empty intervals of one group."""

    @abstractmethod
    def _merge(self, born: State, by: int) -> None:
        """Drop the `by` oldest intervals, append as many, and merge b * groups cells into all."""

    @abstractmethod
    def _suffixes(self, places: np.ndarray) -> State:
        """For each place (ascending, each once, 0 <= place <= b) the union of the intervals from
        there on."""

    @abstractmethod
    def _map(self, change: Change) -> None:
        """Change every column of intervals."""

    @abstractmethod
    def _states(self) -> list[State]:
        """The columns of intervals."""

    @abstractmethod
    def cost(self, pairs: int) -> float:
        """Intervals touched by one update and the probes of so many different windows."""
