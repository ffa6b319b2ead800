"""RJ, the running synopsis over a join (Golab 2006, §8.3.2, Fig 8.3): intervals of expiration that
share one end.

State    b running intervals and, generalized, 2 g b flagged values that run likewise.
         In Fig 8.3 all begin where the next result expires; so what expires must be taken out of
         every one, and a probe subtracts one from another.  Here all end where the last result
         expires: the oldest is dropped as it is, a probe reads one, and aggregates that can't be
         subtracted (MIN, MAX, counters) have this synopsis, too.
Update   the buffer's b values are run together and merged into all: O(b log b).
Probe    one interval for each (n s, n s)-join, one more for each (n1 s, n2 s)-join; queries over
         the same windows are answered together (CS4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dsms.aggregates.parts.cells import State
from dsms.synopses.cells import SynopsisKind
from dsms.synopses.joins import Change, JoinSynopsis, shifted, spread, suffixes


@dataclass(slots=True)
class RunningJoin(JoinSynopsis):
    """`state`: for each interval the union of itself and all that expire later."""

    kind: ClassVar[SynopsisKind] = "runningjoin"
    state: State = field(init=False)

    running = True

    def _begin(self) -> None:
        self.state = self.algebra.empty(self.b)

    def _merge(self, born: State, by: int) -> None:
        kept = shifted(self.algebra, self.state, by, self.b, 1, self.groups)
        self.state = self.algebra.combine(kept, suffixes(self.algebra, born, self.groups, self.b))

    def _suffixes(self, places: np.ndarray) -> State:
        return self.algebra.take(
            self.state, spread(np.where(places < self.b, places, -1), self.groups)
        )

    def _map(self, change: Change) -> None:
        self.state = change(self.state)

    def _states(self) -> list[State]:
        return [self.state]

    def cost(self, pairs: int) -> float:
        return self.b * (1 + self.b.bit_length()) + 4 * self.g * self.b + 2 * pairs
