"""[PARTITION BY c FIRST n]: the first n rows of each partition, for good.

Input    append-only (MON).
State    a counter for each partition that there ever was.
Cost     O(1) a row.
Output   MON: a selection of the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.sql.types import FOREVER
from dsms.sql.window import First
from dsms.state.batch import Batch
from dsms.state.intern import Intern
from dsms.state.vec import Vec


@njit(cache=True, nogil=True)
def first_of(code, count, seen):
    """Which rows, in order of (instant, arrival), are among the first `count` of their partition:
    bool[n].  seen[c]: how many of partition c were before, `count` at most."""
    among = np.empty(len(code), np.bool_)
    for i in range(len(code)):
        c = code[i]
        among[i] = seen[c] < count
        if among[i]:
            seen[c] += 1
    return among


@dataclass(slots=True)
class FirstWindowOp:
    """The first rows of each partition by (ts, arrival)."""

    window: First
    codes: Intern = field(init=False)
    seen: Vec = field(default_factory=Vec)

    def __post_init__(self) -> None:
        self.codes = Intern(len(self.window.by))

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        code = self.codes.codes([rows.cols[k] for k in self.window.by], len(rows))
        self.seen.extend_fill(self.codes.capacity - self.seen.n, 0)
        among = first_of(code, self.window.count, self.seen.view)
        return rows if among.all() else rows.take(np.flatnonzero(among))

    def live(self) -> int:
        return 0

    def nbytes(self) -> int:
        return self.codes.nbytes + self.seen.nbytes

    def next_due(self) -> int:
        return FOREVER
