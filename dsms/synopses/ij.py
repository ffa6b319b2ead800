"""IJ, the interval synopsis over a join (Golab 2006, §8.3.2): intervals of expiration of lengths s,
2 s, 4 s, ...

State    about 2 b intervals, aligned to powers of two as in the interval synopsis (§2.3.4), and,
         generalized, 2 g b flagged values that run towards the oldest interval, so that a probe
         reads one of them.
Update   all 2 b intervals: those of each length merge the pre-computed values of two of half their
         length.
Probe    log2 b intervals for each (n s, n s)-join, one more for each (n1 s, n2 s)-join; queries
         over the same windows are answered together (CS4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dsms.aggregates.parts.cells import State
from dsms.synopses.cells import SynopsisKind
from dsms.synopses.joins import Change, JoinSynopsis, shifted, spread


@dataclass(slots=True)
class IntervalJoin(JoinSynopsis):
    """`levels[l]`: intervals (j << l) <= m < (j + 1 << l), from j = first >> l on, `_size(l)` of
    them."""

    kind: ClassVar[SynopsisKind] = "intervaljoin"
    levels: list[State] = field(init=False)

    running = True

    def _begin(self) -> None:
        self.levels = [
            self.algebra.empty(self._size(level)) for level in range(self.b.bit_length() + 1)
        ]

    def _size(self, level: int) -> int:
        return self.b if level == 0 else ((self.b - 1) >> level) + 2

    def _merge(self, born: State, by: int) -> None:
        how, groups = self.algebra, self.groups
        old, new = self.first, self.first + by
        for level, state in enumerate(self.levels):
            if level:
                left = 2 * (np.arange(self._size(level)) + (new >> level)) - (new >> level - 1)
                below = self._size(level - 1)
                parts = [np.where((at >= 0) & (at < below), at, -1) for at in (left, left + 1)]
                born = how.combine(*(how.take(born, spread(at, groups)) for at in parts))
            steps = (new >> level) - (old >> level)
            self.levels[level] = how.combine(
                shifted(how, state, steps, self._size(level), 1, groups), born
            )

    def _suffixes(self, places: np.ndarray) -> State:
        """Of the absolute span [low, end): at each length the interval that begins where the next
        length can't."""
        how, groups = self.algebra, self.groups
        low, end, out = places + self.first, self.first + self.b, how.empty(len(places) * groups)
        top = len(self.levels) - 1
        for level, state in enumerate(self.levels):
            inside = (low << level < end) & ((low & 1 == 1) | (level == top))
            at = np.where(inside, low - (self.first >> level), -1)
            out = how.combine(out, how.take(state, spread(at, groups)))
            low = low + 1 >> 1
        return out

    def _map(self, change: Change) -> None:
        self.levels = [change(state) for state in self.levels]

    def _states(self) -> list[State]:
        return self.levels

    def cost(self, pairs: int) -> float:
        return 2 * self.b + 4 * self.g * self.b + pairs * (self.b.bit_length() + 1)
