"""How rows come to and leave the groups: events in order, and where each group comes to rest.

A *touch* is a group at an instant at which it had events.  Live rows of a group are linked through their slots, oldest
first (rows are stored in order of (ts, arrival numbers in FROM order), so a younger row always goes to the end): the
head of the list is the row whose arrival numbers the group's answer carries.

LiveFeed   any input: the rows' lifetimes are kept by `dsms.state.live`
GrowFeed   rows never leave: nothing is kept of them but each group's first arrival numbers
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.operators.aggregates.base import Arg, Feed, grown
from dsms.operators.aggregates.links import NIL, append, remove, renamed
from dsms.operators.group_args import ArgColumn
from dsms.plan.physical import State
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch
from dsms.state.live import LiveInput
from dsms.state.vec import Vec


@dataclass(slots=True)
class Touches:
    """What happened in a step, by touch, in order of instants; t touches of u groups.

    code, at, live int64[t];  prev int64[t]: the group's touch before, t + k for none in this step (k: its place in
    `groups`);  groups int64[u]: codes;  final int64[u]: their last touches;
    oldest int64[t]: where in each array of `ids` the group's oldest row is (-1: none)
    """

    feed: Feed
    args: list[Arg]
    code: np.ndarray
    at: np.ndarray
    prev: np.ndarray
    groups: np.ndarray
    final: np.ndarray
    oldest: np.ndarray
    ids: tuple[np.ndarray, ...]


@njit(cache=True, nogil=True)
def touch(g, now, t, u, last, t_code, t_at, t_prev, groups):
    """The touch of group g at `now`: (its number, touches, groups so far)."""
    p = last[g]
    if p >= 0 and t_at[p] == now:
        return p, t, u
    if p < 0:
        groups[u] = g
        u += 1
        p = -u
    t_code[t], t_at[t], t_prev[t] = g, now, p
    last[g] = t
    return t, t + 1, u


@njit(cache=True, nogil=True)
def finish(t, u, last, t_prev, groups, final):
    """Spell out `prev` of first touches, note the last ones, and clear the marks."""
    for k in range(t):
        if t_prev[k] < 0:
            t_prev[k] = t - 1 - t_prev[k]
    for k in range(u):
        final[k] = last[groups[k]]
        last[groups[k]] = NIL


@njit(cache=True, nogil=True)
def _follow(at, sign, slot, code_of, seed, count, head, tail, last, before, after,
            code, emit, ends, t_code, t_at, t_prev, t_live, t_oldest, groups, final):  # fmt: skip
    """Walk the events: answers (touches, groups, change of the number of groups that have rows)."""
    t = u = alive = 0
    if seed:
        k, t, u = touch(0, ALWAYS, t, u, last, t_code, t_at, t_prev, groups)
        ends[k], t_live[k], t_oldest[k] = NIL, 0, NIL
    for i in range(len(at)):
        s = slot[i]
        g = code_of[s]
        code[i] = g
        if sign[i] > 0:
            append(s, g, head, tail, before, after)
            count[g] += 1
            alive += count[g] == 1
        else:
            remove(s, g, head, tail, before, after)
            count[g] -= 1
            alive -= count[g] == 0
        k, t, u = touch(g, at[i], t, u, last, t_code, t_at, t_prev, groups)
        ends[k], t_live[k], t_oldest[k] = i, count[g], head[g]
    for i in range(len(at)):
        emit[i] = NIL
    for k in range(t):
        if ends[k] >= 0:
            emit[ends[k]] = k
    finish(t, u, last, t_prev, groups, final)
    return t, u, alive


@njit(cache=True, nogil=True)
def _gather(at, code, seed, count, last, emit, ends, t_code, t_at, t_prev, t_live, groups, final, new):
    """As `_follow` for arrivals only; new[:alive] are the rows that were the first of their groups."""
    t = u = alive = 0
    if seed:
        k, t, u = touch(0, ALWAYS, t, u, last, t_code, t_at, t_prev, groups)
        ends[k], t_live[k] = NIL, 0
    for i in range(len(at)):
        g = code[i]
        count[g] += 1
        if count[g] == 1:
            new[alive] = i
            alive += 1
        k, t, u = touch(g, at[i], t, u, last, t_code, t_at, t_prev, groups)
        ends[k], t_live[k] = i, count[g]
    for i in range(len(at)):
        emit[i] = NIL
    for k in range(t):
        if ends[k] >= 0:
            emit[ends[k]] = k
    finish(t, u, last, t_prev, groups, final)
    return t, u, alive


def _room(n: int, arrays: int) -> list[np.ndarray]:
    return [np.empty(n, np.int64) for _ in range(arrays)]


@dataclass(slots=True)
class Groups:
    """Per group: live rows, and the marks of the step."""

    count: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    last: np.ndarray = field(default_factory=lambda: np.full(0, NIL, np.int64))
    alive: int = 0

    def grow(self, capacity: int) -> None:
        self.count, self.last = grown(self.count, capacity), grown(self.last, capacity, NIL)

    def has_rows(self, capacity: int) -> np.ndarray:
        """bool by code."""
        return self.count[:capacity] > 0

    @property
    def nbytes(self) -> int:
        return int(self.count.nbytes + self.last.nbytes)


@dataclass(slots=True)
class LiveFeed:
    """Events of an input whose rows leave."""

    width: int
    state: State
    strict: bool
    args: list[ArgColumn]
    eager_instants: bool
    groups: Groups = field(default_factory=Groups)
    rows: LiveInput = field(init=False)
    code: Vec = field(default_factory=Vec)  # by slot
    links: list[np.ndarray] = field(default_factory=lambda: _room(0, 2))  # by slot: before, after
    ends: list[np.ndarray] = field(default_factory=lambda: _room(0, 2))  # by group: head, tail

    def __post_init__(self) -> None:
        self.rows = LiveInput((), self.width, self.state, self.strict, None, self.eager_instants)

    def step(self, batch: Batch, codes: np.ndarray, lifted: list[Arg], capacity: int, upto: int, seed: bool) -> Touches:
        """`codes` and `lifted` are those of the insertions in the batch, in order."""
        _, spoken = self.rows.arrive(batch)
        self.code.extend(codes)
        for arg, new in zip(self.args, lifted, strict=True):
            arg.keep(new, len(codes))
        events = self.rows.depart(batch, spoken, upto)
        n, slots = len(events), self.code.n
        self.groups.grow(capacity)
        self.ends = [grown(e, capacity, NIL) for e in self.ends]
        self.links = [grown(k, slots, NIL) for k in self.links]
        code, emit = _room(n, 2)
        ends, t_code, t_at, t_prev, t_live, t_oldest, groups, final = _room(n + 1, 8)
        t, u, alive = _follow(
            events.at, events.sign, events.slot, self.code.view, seed, self.groups.count, *self.ends, self.groups.last,
            *self.links, code, emit, ends, t_code, t_at, t_prev, t_live, t_oldest, groups, final,
        )  # fmt: skip
        self.groups.alive += alive
        feed = Feed(code, events.sign, events.slot, emit, t, capacity, t_live[:t])
        ids = tuple(v.view for v in self.rows.store.ids)
        views = [a.view() for a in self.args]
        return Touches(feed, views, t_code[:t], t_at[:t], t_prev[:t], groups[:u], final[:u], t_oldest[:t], ids)

    def settle(self) -> np.ndarray | None:
        """End of a step: the new slot of each old one, or None if nothing moved."""
        where = self.rows.settle()
        if where is not None:
            kept = np.flatnonzero(where >= 0)
            self.code.keep(kept)
            for arg in self.args:
                arg.moved(kept)
            self.links = [renamed(k[kept], where) for k in self.links]
            self.ends = [renamed(e, where) for e in self.ends]
        return where

    def forget(self, live: np.ndarray) -> None:
        """Groups without rows are about to lose their codes."""
        return

    def held(self, arg: int) -> np.ndarray:
        """Words of live rows."""
        return self.args[arg].words.view[self.rows.store.alive.view]

    @property
    def live(self) -> int:
        return self.rows.store.live

    def next_due(self) -> int:
        return self.rows.expiry.next_due()

    @property
    def nbytes(self) -> int:
        own = sum(a.nbytes for a in (*self.links, *self.ends)) + self.code.nbytes + self.groups.nbytes
        return int(own + self.rows.nbytes + sum(a.nbytes for a in self.args))


@dataclass(slots=True)
class GrowFeed:
    """Events of an input whose rows never leave."""

    width: int
    args: list[ArgColumn]
    groups: Groups = field(default_factory=Groups)
    first: list[np.ndarray] = field(init=False)  # by group: arrival numbers of its first row

    def __post_init__(self) -> None:
        self.first = _room(0, self.width)

    def step(self, batch: Batch, codes: np.ndarray, lifted: list[Arg], capacity: int, upto: int, seed: bool) -> Touches:
        n = len(codes)
        self.groups.grow(capacity)
        self.first = [grown(f, capacity) for f in self.first]
        emit, new = _room(n, 2)
        ends, t_code, t_at, t_prev, t_live, groups, final = _room(n + 1, 7)
        t, u, alive = _gather(batch.ts, codes, seed, self.groups.count, self.groups.last, emit, ends, t_code, t_at,
                              t_prev, t_live, groups, final, new)  # fmt: skip
        self.groups.alive += alive
        for first, ids in zip(self.first, batch.ids, strict=True):
            first[codes[new[:alive]]] = ids[new[:alive]]
        feed = Feed(codes, np.ones(n, np.int8), np.arange(n, dtype=np.int64), emit, t, capacity, t_live[:t])
        oldest = np.where(t_live[:t] > 0, t_code[:t], NIL)
        return Touches(feed, lifted, t_code[:t], t_at[:t], t_prev[:t], groups[:u], final[:u], oldest, tuple(self.first))

    def settle(self) -> np.ndarray | None:
        return None

    def forget(self, live: np.ndarray) -> None:
        return

    def held(self, arg: int) -> np.ndarray:
        return np.empty(0, np.int64)

    @property
    def live(self) -> int:
        return self.groups.alive

    def next_due(self) -> int:
        return FOREVER

    @property
    def nbytes(self) -> int:
        return int(self.groups.nbytes + sum(f.nbytes for f in self.first))
