"""CI-COUNT and CI-SUM: a collective index, which finds the groups of which more than v came within
the last sub-windows without looking at each group's sum (Arasu and Widom 2004, §4.1 and §4.2).

Use      GROUP BY key HAVING COUNT(*) > v (or SUM of numbers that are not negative) with many groups
         or many thresholds; any v and any suffix of the stream, from one structure.
State    for each group and level the sub-window of one element that the level has now: `levels`
         int32, and the group's sum so far.
Cost     O(levels) for each group that occurs in a sub-window; one comparison a group for a look-up,
         sixteen of them an instruction, where the paper descends a search tree: at 10^6 groups that
         is a third of a millisecond.
Error    a look-up gives all groups that are right, and of the others only some whose count is above
         v (1 - e), e = 2 / (p + 2) (p = 1: 3/4; the paper says about 2 / p), less a unit.

A group's elements have positions 1..m; a SUM of a counts as a elements.  Level `l` = p j + r holds
2^j neighbouring distances from the end (`start`), among them exactly one position that is a
multiple of 2^j: that is the one whose sub-window is known.  A sub-window's elements come together:
a level's new position is among them, or it was, a multiple of a smaller power then, that of a lower
level, which gives its sub-window.  So one step does what UPDATE of Figure 7 does element by
element.  (Its LOOKUP needs `> now - T`, as Example 4.1 has it, and has no level for v = 1; here
counts above v are sought by the (v + 1)-th element from the end, so all v >= 0 have one.)

Where all thresholds are high the lowest levels are of no use: positions are counted in units of
2^unit then.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

ABSENT = np.int32(-(2**31))  # a level that has no element yet
ROOM = 1 << 20  # sub-windows after which stamps are told from a later one
MOST = 1 << 60  # elements of one sub-window and group, at most
LIMIT, KEPT = 1 << 62, 1 << 61  # of a group's sum, before and after it is told from a later one


@njit(cache=True, nogil=True)
def start(p, level):
    """The least distance from the end (the last element: 1) in a level."""
    j, r = level // p, level % p
    return p * ((1 << j) - 1) + (r << j) + 1


@njit(cache=True, nogil=True)
def level_of(p, distance):
    """The level that has this distance."""
    q, j = (distance - 1) // p + 1, 0
    while q > 1:
        q >>= 1
        j += 1
    return p * j + ((distance - 1 - p * ((1 << j) - 1)) >> j)


@njit(cache=True, nogil=True)
def _update(group, amount, sub, oldest, p, unit, total, stamps):
    """A sub-window: amount[i] more elements of group[i].  What came before `oldest` is gone."""
    levels = len(stamps)
    for i in range(len(group)):
        g = group[i]
        if stamps[0, g] < oldest:  # of the group no unit is left
            total[g] &= (1 << unit) - 1
            stamps[:, g] = ABSENT
        before = total[g] >> unit
        total[g] += amount[i]
        now = total[g] >> unit
        for level in range(levels - 1, -1, -1):
            j, first = level // p, start(p, level) - 1
            at = ((now - first) >> j) << j
            if at <= 0 or (before - first) >> j == at >> j:
                continue  # as it was
            if at > before:
                stamps[level, g] = sub
            else:
                stamps[level, g] = stamps[level_of(p, before - at + 1), g]
        if total[g] > LIMIT:  # positions keep what they are modulo the powers of two
            total[g] = KEPT + total[g] % KEPT


def last_within(p: int, distance: int) -> int:
    """The last level all of whose distances are at most that; `distance` >= 1."""
    level = int(level_of(p, distance))
    return level if start(p, level + 1) - 1 <= distance else level - 1


def first_beyond(p: int, distance: int) -> int:
    """The first level all of whose distances are at least that."""
    level = int(level_of(p, distance))
    return level if start(p, level) >= distance else level + 1


@dataclass(slots=True, eq=False)
class CollectiveIndex:
    """p       levels of each size;  unit: elements are counted by 2^unit
    levels  so many are kept, the first ones
    next    the sub-window that comes next; those before `clean` have had negative sums
    origin  stamps count sub-windows from here
    """

    p: int = 1
    unit: int = 0
    levels: int = 16
    next: int = 0
    clean: int = -(2**63)
    origin: int = 0
    total: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    stamps: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int32))

    def __post_init__(self) -> None:
        self.origin = self.next
        self.stamps = np.full((self.levels, len(self.total)), ABSENT, np.int32)

    @staticmethod
    def between(least: int, most: int, p: int, first: int = 0) -> CollectiveIndex:
        """One for thresholds from `least` to `most` (>= 0), of which sub-window `first` is the
        first; `least` is at least 4 p units, so that units cost no more than levels do."""
        unit = max(0, ((least + 1) // (4 * p)).bit_length() - 1)
        return CollectiveIndex(p, unit, last_within(p, max(1, (most + 1) >> unit)) + 1, first)

    def serves(self, least: int, most: int) -> bool:
        """Whether it is as good for these thresholds as one made for them."""
        made = CollectiveIndex.between(least, most, self.p)
        needed = last_within(self.p, max(1, (most + 1) >> self.unit)) + 1
        return made.unit >= self.unit and needed <= self.levels

    @property
    def groups(self) -> int:
        return len(self.total)

    def grow(self, groups: int) -> None:
        """There are so many groups now."""
        more = groups - self.groups
        if more > 0:
            room = max(more, self.groups // 4)  # whole arrays are copied
            self.total = np.concatenate([self.total, np.zeros(room, np.int64)])
            absent = np.full((self.levels, room), ABSENT, np.int32)
            self.stamps = np.concatenate([self.stamps, absent], axis=1)

    def update(self, sub: int, oldest: int, group: np.ndarray, amount: np.ndarray) -> None:
        """Sub-window `sub` is over: so many elements, not 0, came to these groups (each once).  No
        look-up will ask for sub-windows before `oldest`."""
        if len(group) and not 0 < int(amount.min()) <= int(amount.max()) <= MOST:
            self.clean = sub + 1
            some = np.flatnonzero((amount > 0) & (amount <= MOST))
            group, amount = group[some], amount[some]
        if len(group):
            self.grow(int(group.max()) + 1)
        if oldest - self.origin > ROOM:
            self._told_from(oldest)
        at, from_ = sub - self.origin, max(oldest - self.origin, -1)
        _update(group, amount, np.int32(at), from_, self.p, self.unit, self.total, self.stamps)
        self.next = sub + 1

    def _told_from(self, origin: int) -> None:
        """Stamps count from there on; what is older is as good as absent."""
        by = min(origin - self.origin, 2**31 - 1)  # no stamp is beyond that: all are gone
        gone = self.stamps < by
        self.stamps -= np.int32(by) * ~gone
        self.stamps[gone] = ABSENT
        self.origin = origin

    # -- look-ups ----------------------------------------------------------------------------------

    def spoil(self, sub: int) -> None:
        """Sub-window `sub` is over, and what came in it is not known."""
        self.clean, self.next = sub + 1, sub + 1

    def exact_from(self, low: int) -> bool:
        """Whether look-ups of the sub-windows from `low` on miss no group."""
        return low >= self.clean

    def above(self, low: int, v: int) -> np.ndarray:
        """int64[n]: groups, among them all with more than `v` >= 0 elements in the sub-windows from
        `low` on."""
        stamps = self._level(last_within(self.p, max(1, (v + 1) >> self.unit)))
        return np.flatnonzero(stamps >= self._at(low))

    def below(self, low: int, v: int) -> np.ndarray:
        """int64[n]: groups, among them all with at least one and less than `v` elements in the
        sub-windows from `low` on.  Where `unit` is 0."""
        level, at = first_beyond(self.p, max(1, v)), self._at(low)
        there = self.stamps[0] >= at
        return np.flatnonzero(there & (self.stamps[level] < at) if level < self.levels else there)

    def _level(self, level: int) -> np.ndarray:
        return self.stamps[min(level, self.levels - 1)]

    def _at(self, low: int) -> np.int32:
        return np.int32(min(max(low - self.origin, 0), 2**31 - 1))

    @property
    def nbytes(self) -> int:
        return int(self.total.nbytes + self.stamps.nbytes)
