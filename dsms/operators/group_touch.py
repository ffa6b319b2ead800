"""Touches: a group at an instant at which it had events; numbered in order of instants, chained by
group.

The feeds find the arrivals and departures; the touches that these make are found here, for all
feeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts.base import Arg, GroupEvents
from dsms.aggregates.parts.links import NIL
from dsms.sql.types import ALWAYS
from dsms.state.lengthening import grown


@dataclass(slots=True)
class Touches:
    """What happened in a step, by touch; t touches of u groups.  Arrays are scratch: valid until
    the next step.

    code, at int64[t];  prev int64[t]: the group's touch before, t + k for none in this step (k: its
    place in `groups`) groups int64[u]: codes;  final int64[u]: their last touches oldest int64[t]:
    where in each array of `ids` the group's oldest row is (-1: none)
    """

    feed: GroupEvents
    args: list[Arg]
    code: np.ndarray
    at: np.ndarray
    prev: np.ndarray
    groups: np.ndarray
    final: np.ndarray
    oldest: np.ndarray
    ids: tuple[np.ndarray, ...]


@njit(cache=True, nogil=True)
def trace(
    at,
    code,
    live,
    oldest,
    seed,
    last,
    emit,
    ends,
    t_code,
    t_at,
    t_prev,
    t_live,
    t_oldest,
    groups,
    final,
):
    """Number the touches of the events (at, code; live, oldest: as they stand after the event):
    (touches, groups).

    emit[i] becomes the touch that event i ends, or -1.  `last` (by group) is -1 before and
    after."""
    t = u = 0
    if seed:
        t_code[0], t_at[0], t_prev[0], t_live[0], t_oldest[0], ends[0] = 0, ALWAYS, NIL, 0, NIL, NIL
        groups[0], last[0] = 0, 0
        t = u = 1
    for i in range(len(at)):
        g, now = code[i], at[i]
        k = last[g]
        if k >= 0 and t_at[k] == now:
            if ends[k] >= 0:
                emit[ends[k]] = NIL
        else:
            if k < 0:
                groups[u] = g
                u += 1
                k = -u
            t_code[t], t_at[t], t_prev[t] = g, now, k
            k = t
            t += 1
            last[g] = k
        ends[k] = i
        emit[i] = k
        t_live[k], t_oldest[k] = live[i], oldest[i]
    for k in range(t):
        if t_prev[k] < 0:
            t_prev[k] = t - 1 - t_prev[k]
    for k in range(u):
        final[k] = last[groups[k]]
        last[groups[k]] = NIL
    return t, u


@dataclass(slots=True)
class Scratch:
    """Arrays that are used anew in every step, so that large ones are not mapped and faulted in
    each time."""

    arrays: list[np.ndarray] = field(default_factory=list)
    room: int = 0
    signs: np.ndarray = field(default_factory=lambda: np.empty(0, np.int8))

    def ints(self, n: int, count: int) -> list[np.ndarray]:
        """`count` int64 arrays of length n with any content; the same ones each time."""
        if n > self.room or count > len(self.arrays):
            self.room = max(n + n // 2, self.room)
            self.arrays = [
                np.empty(self.room, np.int64) for _ in range(max(count, len(self.arrays)))
            ]
        return [a[:n] for a in self.arrays[:count]]

    def signs8(self, n: int) -> np.ndarray:
        """An int8 array of length n with any content."""
        if len(self.signs) < n:
            self.signs = np.empty(n + n // 2, np.int8)
        return self.signs[:n]

    @property
    def nbytes(self) -> int:
        return int(sum(a.nbytes for a in self.arrays) + self.signs.nbytes)


@dataclass(slots=True)
class Groups:
    """Per group: live rows, and the marks of the step."""

    count: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    last: np.ndarray = field(default_factory=lambda: np.full(0, NIL, np.int64))
    alive: int = 0
    scratch: Scratch = field(default_factory=Scratch)

    def grow(self, capacity: int) -> None:
        self.count, self.last = grown(self.count, capacity), grown(self.last, capacity, NIL)

    def trace(
        self,
        at: np.ndarray,
        code: np.ndarray,
        sign: np.ndarray,
        slot: np.ndarray,
        live: np.ndarray,
        oldest: np.ndarray,
        capacity: int,
        seed: bool,
        args: list[Arg],
        ids: tuple[np.ndarray, ...],
    ) -> Touches:
        """The touches of these events; see `trace`, Feed and Touches."""
        n = len(at)
        emit, ends, t_code, t_at, t_prev, t_live, t_oldest, groups, final = self.scratch.ints(
            n + 1, 9
        )
        t, u = trace(
            at,
            code,
            live,
            oldest,
            seed,
            self.last,
            emit,
            ends,
            t_code,
            t_at,
            t_prev,
            t_live,
            t_oldest,
            groups,
            final,
        )
        feed = GroupEvents(code, sign, slot, emit[:n], t_live[:t], touches=t, groups=capacity)
        return Touches(
            feed, args, t_code[:t], t_at[:t], t_prev[:t], groups[:u], final[:u], t_oldest[:t], ids
        )

    def has_rows(self, capacity: int) -> np.ndarray:
        """bool by code."""
        return self.count[:capacity] > 0

    @property
    def nbytes(self) -> int:
        return int(self.count.nbytes + self.last.nbytes) + self.scratch.nbytes
