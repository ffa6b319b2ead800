"""[PARTITION BY c EVERY t]: of each partition at most one row at a time, for t.

Input    append-only (MON).
State    of each partition the instant at which its last row entered, for t.
Cost     O(1) a row.
Output   the rows that enter; a window in time gives them their lifetimes [ts, ts + t) (WKS).

A row enters if no row of its partition is in the window; of rows of one instant the first by
arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.operators.timeline import Timeline
from dsms.operators.window import dated
from dsms.sql.types import ALWAYS, FOREVER
from dsms.sql.window import Throttled
from dsms.state.batch import Batch
from dsms.state.intern import Intern
from dsms.state.vec import Vec


@njit(cache=True, nogil=True)
def let_in(code, born, length, entered):
    """Which rows, in order of (instant, arrival), enter a window that holds one of each partition
    for `length`: bool[n].

    entered[c]  the instant at which the last row of partition c entered; ALWAYS: none has"""
    enters = np.empty(len(code), np.bool_)
    for i in range(len(code)):
        c = code[i]
        enters[i] = entered[c] == ALWAYS or born[i] - entered[c] >= length
        if enters[i]:
            entered[c] = born[i]
    return enters


@dataclass(slots=True)
class ThrottleOp:
    """`timeline`: instants of the input are points; `left`: partitions that had a row in the window
    when that was last counted."""

    window: Throttled
    timeline: Timeline | None = None
    left: int = 0
    codes: Intern = field(init=False)
    entered: Vec = field(default_factory=Vec)

    def __post_init__(self) -> None:
        self.codes = Intern(len(self.window.by))

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        rows = dated(inputs[0])
        code = self.codes.codes([rows.cols[k] for k in self.window.by], len(rows))
        self.entered.extend_fill(self.codes.capacity - self.entered.n, ALWAYS)
        born, now = rows.ts, upto
        if self.timeline is not None:
            born, now = self.timeline.instant(born), self.timeline.instant_of(upto)
        enters = let_in(code, born, self.window.length, self.entered.view)
        if self.codes.wants_purge(self.left):
            self._purge(now)
        return rows if enters.all() else rows.take(np.flatnonzero(enters))

    def _purge(self, now: int) -> None:
        """Forget partitions without a row in the window."""
        live = self.entered.view > now - self.window.length
        self.left = int(live.sum())
        if self.codes.wants_purge(self.left):
            self.entered.view[~live] = ALWAYS
            self.codes.purge(live)

    def live(self) -> int:
        return 0

    def nbytes(self) -> int:
        return self.codes.nbytes + self.entered.nbytes

    def next_due(self) -> int:
        return FOREVER
