"""BIJ, the basic interval synopsis over a join (Golab 2006, §8.3.2, Figs 8.3 and 8.4): one cell per
interval.

State    b intervals and, generalized, 2 g flagged values of each (`dsms.synopses.joins`).
Update   drops the interval that has just expired, appends one, merges what the buffer holds for
         each into all: O(b (1 + 2 g)).
Probe    from the youngest interval to the oldest; the answers of all windows come by on the way
         (CS5): O(b) for any number of (n s, n s)-joins, and at most g more for each (n1 s, n2
         s)-join.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dsms.aggregates.parts.cells import State
from dsms.synopses.cells import SynopsisKind
from dsms.synopses.joins import Change, JoinSynopsis, shifted, suffixes, unions


@dataclass(slots=True)
class BasicIntervalJoin(JoinSynopsis):
    """`state`: an interval each."""

    kind: ClassVar[SynopsisKind] = "basicintervaljoin"
    state: State = field(init=False)

    def _begin(self) -> None:
        self.state = self.algebra.empty(self.b)

    def _merge(self, born: State, by: int) -> None:
        kept = shifted(self.algebra, self.state, by, self.b, 1, self.groups)
        self.state = self.algebra.combine(kept, born)

    def _suffixes(self, places: np.ndarray) -> State:
        lengths = np.diff(np.append(places, self.b))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        index = np.arange(self.b - starts[-1], self.b) if len(places) else places
        stretches = unions(self.algebra, self.state, self.groups, index, starts)
        return suffixes(self.algebra, stretches, self.groups, len(places))

    def _map(self, change: Change) -> None:
        self.state = change(self.state)

    def _states(self) -> list[State]:
        return [self.state]

    def cost(self, pairs: int) -> float:
        return self.b * (1 + 2 * self.g) + self.b + pairs * (1 + self.g)
