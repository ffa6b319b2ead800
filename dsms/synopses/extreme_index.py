"""CI-MAX and CI-MIN: which groups had a value of at least v within the last sub-windows.

Arasu and Widom (2004, §4) leave these to the full version of their paper.  Here thresholds are
known: the index keeps, for each of a few bounds and each group, the newest sub-window with a value
that is not below the bound.

Use      GROUP BY key HAVING MAX(x) > v (or MIN(x) < v, with all signs changed).
State    an int64 for each bound and group: `MOST` bounds at most, the lowest threshold among them.
Cost     a comparison for each bound and group that occurs in a sub-window; one for each group a
         look-up.
Error    none where v is a bound; else groups of the next lower bound are found, too.  Values and
         bounds are doubles: those that are rounded to the same number count as equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

MOST = 16  # bounds
NEVER = -(2**63)


@dataclass(slots=True, eq=False)
class ExtremeIndex:
    """bounds  float64[b], ascending;  stamps: int64[b, groups];  next: the sub-window that comes
    next"""

    bounds: np.ndarray
    next: int = 0
    stamps: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.stamps = np.full((len(self.bounds), 0), NEVER, np.int64)

    @staticmethod
    def bounds_for(thresholds: Iterable[float]) -> np.ndarray:
        """The lowest of them, and others in equal distances."""
        all_of = np.unique(np.asarray(list(thresholds), np.float64))
        few = min(MOST, len(all_of))
        bounds: np.ndarray = all_of[np.arange(few) * len(all_of) // few]
        return bounds

    @property
    def levels(self) -> int:
        return len(self.bounds)

    @property
    def groups(self) -> int:
        return self.stamps.shape[1]

    def grow(self, groups: int) -> None:
        """There are so many groups now."""
        more = groups - self.groups
        if more > 0:
            none = np.full((self.levels, max(more, self.groups // 4)), NEVER, np.int64)
            self.stamps = np.concatenate([self.stamps, none], axis=1)

    def update(self, sub: int, group: np.ndarray, value: np.ndarray) -> None:
        """Sub-window `sub` is over: the highest values (float64) of these groups."""
        if len(group):
            self.grow(int(group.max()) + 1)
        for level, bound in enumerate(self.bounds.tolist()):
            some = np.flatnonzero(value >= bound)
            group, value = group[some], value[some]
            self.stamps[level, group] = sub
        self.next = sub + 1

    def exact_from(self, low: int) -> bool:
        """Look-ups never miss a group."""
        return True

    def above(self, low: int, v: float) -> np.ndarray:
        """int64[n]: groups, among them all with a value >= v (not below the lowest bound) in the
        sub-windows from `low` on."""
        level = int(np.searchsorted(self.bounds, v, side="right")) - 1
        assert level >= 0
        return np.flatnonzero(self.stamps[level] >= max(low, NEVER + 1))

    @property
    def nbytes(self) -> int:
        return int(self.bounds.nbytes + self.stamps.nbytes)
