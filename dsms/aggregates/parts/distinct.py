"""DISTINCT inside an aggregate: only a value's first arrival and last departure in its group are
events.

Input    any pattern.     State  a counter per (group, value), hashed; those at zero are dropped
         when the table is rebuilt.         Cost   O(1) an event, and then that of the aggregate
         inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts.base import Aggregate, Answers, Arg, ByGroup, GroupEvents
from dsms.state.lengthening import grown

EMPTY = -1
_EMPTY_HIGH = np.zeros(0, np.int64)


@njit(cache=True, nogil=True)
def find(table, g, w, h):
    """Row of (group, word, high word) in the table, or the free row where it belongs."""
    mask = np.uint64(len(table) - 1)
    x = np.uint64(w) * np.uint64(0x9E3779B97F4A7C15)
    x ^= (x >> np.uint64(29)) ^ np.uint64(g)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= (x >> np.uint64(32)) ^ np.uint64(h)
    x *= np.uint64(0x94D049BB133111EB)
    at = (x >> np.uint64(20)) & mask
    while table[at, 0] != EMPTY and (table[at, 0] != g or table[at, 1] != w or table[at, 2] != h):
        at = (at + np.uint64(1)) & mask
    return at


@njit(cache=True, nogil=True)
def _turns(code, sign, slot, words, high, valid, table, out):
    """Where a counter leaves or reaches zero `out` is the event's sign, elsewhere 0; answers the
    rows newly taken."""
    taken = 0
    for i in range(len(code)):
        g, s = code[i], slot[i]
        out[i] = 0
        if len(valid) and not valid[s]:
            continue
        w = words[s]
        h = high[s] if len(high) else np.int64(0)
        at = find(table, g, w, h)
        if table[at, 0] == EMPTY:
            table[at, 0], table[at, 1], table[at, 2] = g, w, h
            taken += 1
        if table[at, 3] == 0 or (table[at, 3] == 1 and sign[i] < 0):
            out[i] = sign[i]
        table[at, 3] += sign[i]
    return taken


@njit(cache=True, nogil=True)
def refill(old, table):
    count = 0
    for i in range(len(old)):
        if old[i, 0] != EMPTY and old[i, 3] > 0:
            at = find(table, old[i, 0], old[i, 1], old[i, 2])
            for k in range(4):
                table[at, k] = old[i, k]
            count += 1
    return count


@njit(cache=True, nogil=True)
def _add_signs(code, sign, slot, emit, valid, count, out):
    for i in range(len(code)):
        if len(valid) == 0 or valid[slot[i]]:
            count[code[i]] += sign[i]
        if emit[i] >= 0:
            out[emit[i]] = count[code[i]]


def new_table(rows: int) -> np.ndarray:
    """Columns: group (EMPTY: free), word, high word, counter."""
    out = np.zeros((rows, 4), np.int64)
    out[:, 0] = EMPTY
    return out


@dataclass(slots=True)
class Distinct:
    """`inside` over different values only."""

    inside: Aggregate
    table: np.ndarray = field(default_factory=lambda: new_table(256))
    used: int = 0

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        sign = np.empty(len(feed.sign), np.int8)
        self._make_room(int(np.count_nonzero(feed.sign > 0)))
        self.used += _turns(
            feed.code, feed.sign, feed.slot, a.words, a.high, a.valid, self.table, sign
        )
        turns = GroupEvents(
            feed.code, sign, feed.slot, feed.emit, feed.touches, feed.groups, feed.live
        )
        self.inside.run(turns, args, out)

    def _make_room(self, extra: int) -> None:
        if 2 * (self.used + extra) <= len(self.table):
            return
        live = int(np.count_nonzero(self.table[:, 3] > 0))
        rows = 256
        while rows < 3 * (live + extra):
            rows *= 2
        old, self.table = self.table, new_table(rows)
        self.used = refill(old, self.table)

    def moved(self, where: np.ndarray) -> None:
        self.inside.moved(where)

    def held(self) -> tuple[np.ndarray, ...]:
        return (self.table[self.table[:, 3] > 0, 1], *self.inside.held())

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes) + self.inside.nbytes


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
