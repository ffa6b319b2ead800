"""DISTINCT inside an aggregate: only a value's first arrival and last departure in its group are
events.

Input    any pattern.     State  a counter per (group, value), hashed; one that reaches zero goes.
Cost     O(1) an event, and then that of the aggregate inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts.base import Aggregate, Answers, Arg, ByGroup, GroupEvents, Sheds
from dsms.aggregates.parts.valued import Valued, enter, find, leave
from dsms.state.chains import END
from dsms.state.lengthening import grown


@njit(cache=True, nogil=True)
def _turns(code, sign, slot, words, high, valid, head, link, size, rows, state, out):
    """Where a counter leaves or reaches zero `out` is the event's sign, elsewhere 0."""
    for i in range(len(code)):
        g, s = code[i], slot[i]
        out[i] = 0
        if len(valid) and not valid[s]:
            continue
        w = words[s]
        h = high[s] if len(high) else np.int64(0)
        at = find(head, link, size, rows, g, w, h)
        if at == END:
            at = enter(head, link, size, rows, state, g, w, h)
        if rows[at, 3] == 0 or (rows[at, 3] == 1 and sign[i] < 0):
            out[i] = sign[i]
        rows[at, 3] += sign[i]
        if rows[at, 3] == 0:
            leave(head, link, size, rows, state, at)


@njit(cache=True, nogil=True)
def _add_signs(code, sign, slot, emit, valid, count, out):
    for i in range(len(code)):
        if len(valid) == 0 or valid[slot[i]]:
            count[code[i]] += sign[i]
        if emit[i] >= 0:
            out[emit[i]] = count[code[i]]


def turns(feed: GroupEvents, a: Arg, values: Valued) -> np.ndarray:
    """int8: by event its sign, where it is the first of its value to come or the last to go; else
    0."""
    sign = np.empty(len(feed.sign), np.int8)
    values.reserve(len(feed.sign))
    _turns(feed.code, feed.sign, feed.slot, a.words, a.high, a.valid, *values.kernel, sign)
    return sign


@dataclass(slots=True)
class Distinct:
    """`inside` over different values only."""

    inside: Aggregate
    values: Valued = field(default_factory=Valued)

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        some = GroupEvents(
            feed.code,
            turns(feed, a, self.values),
            feed.slot,
            feed.emit,
            feed.live,
            touches=feed.touches,
            groups=feed.groups,
        )
        self.inside.run(some, args, out)

    def let_go(self, closed: np.ndarray) -> None:
        self.values.let_go(closed)
        if isinstance(self.inside, Sheds):
            self.inside.let_go(closed)

    def moved(self, where: np.ndarray) -> None:
        self.inside.moved(where)

    def held(self) -> tuple[np.ndarray, ...]:
        return (self.values.words, *self.inside.held())

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.inside.nbytes


@dataclass(slots=True)
class CountTurns(ByGroup):
    """COUNT inside DISTINCT."""

    count: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        self.count = grown(self.count, feed.groups)
        out.valid[:] = True
        _add_signs(feed.code, feed.sign, feed.slot, feed.emit, args[0].valid, self.count, out.words)

    @property
    def nbytes(self) -> int:
        return int(self.count.nbytes)
