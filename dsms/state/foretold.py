"""Instants that are known before they come: when rows leave that say so themselves.

Whoever passes time over in which nothing comes asks when something last left, and when something
leaves next.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dsms.sql.types import ALWAYS, FOREVER

NONE = np.empty(0, np.int64)
FEW = 1024  # instants that may lie unsorted


@dataclass(slots=True)
class Foretold:
    """past   the latest instant that has passed
    sorted    int64[n]: instants to come, ascending, without doubles
    more      others, as they were told
    """

    past: int = ALWAYS
    sorted: np.ndarray = field(default_factory=lambda: NONE)
    more: list[np.ndarray] = field(default_factory=list)
    waiting: int = 0  # in `more`

    def tell(self, instants: np.ndarray, now: int) -> None:
        """Something will happen at these instants (int64[n]; FOREVER: never); time is at `now`."""
        if len(instants):
            self.more.append(instants)
            self.waiting += len(instants)
        if self.waiting > FEW + len(self.sorted):
            self._settle(now)

    def _settle(self, now: int) -> None:
        found = np.unique(np.concatenate([self.sorted, *self.more]))
        found = found[found != FOREVER]
        gone = int(np.searchsorted(found, now, side="right"))
        if gone:
            self.past = max(self.past, int(found[gone - 1]))
        self.sorted, self.more, self.waiting = found[gone:], [], 0

    def before(self, instant: int) -> int:
        """The latest before `instant`, which is not earlier than one asked for before; ALWAYS:
        there is none."""
        self._settle(instant - 1)
        return self.past

    def after(self, instant: int) -> int:
        """The earliest later than `instant`; FOREVER: none is known."""
        self._settle(instant)
        return int(self.sorted[0]) if len(self.sorted) else FOREVER

    @property
    def last(self) -> int:
        """The latest that is known; ALWAYS: none is."""
        parts = (part[part != FOREVER] for part in (self.sorted, *self.more))
        return max([self.past, *(int(part.max(initial=ALWAYS)) for part in parts)])

    @property
    def nbytes(self) -> int:
        return int(self.sorted.nbytes) + 8 * self.waiting
