"""Arrivals and departures of rows in groups, for any input: events in order, and the last event of
each group at an instant.

Live rows of a group are linked through their slots, oldest first (rows are stored in order of (ts,
arrival numbers in FROM order), so a younger row always goes to the end): the head of the list is
the row whose arrival numbers the group's answer carries.

LiveFeed   any input: the rows' lifetimes are kept by `dsms.state.live`
GrowFeed   rows never leave: nothing is kept of them but each group's first arrival numbers
(`group_fifo` has the one for rows that leave in the order they came.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numba import njit

from dsms.aggregates.ends import EndHeap
from dsms.aggregates.parts.base import NO_AGES, NO_BOOLS, Answers, Arg, GroupEvents
from dsms.aggregates.parts.heap import NO_WORDS
from dsms.aggregates.parts.links import NIL, moved_links, renamed
from dsms.aggregates.parts.words import Coding
from dsms.operators.ages import Age
from dsms.operators.group_args import ArgColumn
from dsms.operators.group_touch import Groups, Scratch, Touches
from dsms.plan.physical import State
from dsms.sql.types import FOREVER, INT
from dsms.state.batch import Batch
from dsms.state.lengthening import grown
from dsms.state.live import LiveInput
from dsms.state.vec import Vec


class Input(Protocol):
    """What GROUP BY asks of its input."""

    groups: Groups

    def step(
        self,
        batch: Batch,
        codes: np.ndarray,
        lifted: list[Arg],
        capacity: int,
        upto: int,
        seed: bool,
    ) -> Touches:
        """The events of a step.  `codes` and `lifted` are those of the insertions in the batch, in
        order; `seed`: the group 0 is touched at ALWAYS whether it has rows or not."""
        ...

    def settle(self) -> np.ndarray | None:
        """End of a step: the new slot of each old one, or None if nothing moved."""
        ...

    def held(self, arg: int) -> np.ndarray:
        """Words of an argument of live rows."""
        ...

    @property
    def live(self) -> int: ...

    @property
    def slots(self) -> int:
        """Slots in use, dead ones included."""
        ...

    def next_due(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


@njit(cache=True, nogil=True)
def _follow(sign, slot, code_of, count, head, tail, before, after, code, live, oldest):
    """Walk the events: group, its rows and its oldest one after each; answers by how many groups
    more have rows."""
    alive = 0
    for i in range(len(slot)):
        s = slot[i]
        g = code_of[s]
        if sign[i] > 0:  # to the end of the list
            before[s], after[s] = tail[g], NIL
            if tail[g] >= 0:
                after[tail[g]] = s
            else:
                head[g] = s
            tail[g] = s
            count[g] += 1
            alive += count[g] == 1
        else:  # out of it
            a, b = before[s], after[s]
            if a >= 0:
                after[a] = b
            else:
                head[g] = b
            if b >= 0:
                before[b] = a
            else:
                tail[g] = a
            count[g] -= 1
            alive -= count[g] == 0
        code[i], live[i], oldest[i] = g, count[g], head[g]
    return alive


@njit(cache=True, nogil=True)
def _gather(code, count, live, new):
    """As `_follow` for arrivals only; new[:answer] are the rows that were the first of their
    groups."""
    alive = 0
    for i in range(len(code)):
        g = code[i]
        count[g] += 1
        live[i] = count[g]
        if count[g] == 1:
            new[alive] = i
            alive += 1
    return alive


@dataclass(slots=True)
class LiveFeed:
    """Events of an input whose rows leave in any order."""

    width: int
    state: State
    strict: bool
    args: list[ArgColumn]
    eager_instants: bool
    age: Age | None = None  # of rows that do not come in that order
    groups: Groups = field(default_factory=Groups)
    rows: LiveInput = field(init=False)
    code: Vec = field(default_factory=Vec)  # by slot
    # by slot: before, after
    links: list[np.ndarray] = field(default_factory=lambda: [np.empty(0, np.int64)] * 2)
    # by group: head, tail
    ends: list[np.ndarray] = field(default_factory=lambda: [np.empty(0, np.int64)] * 2)
    ages: np.ndarray = field(default_factory=lambda: NO_AGES)  # by slot
    # in each group, where the list can't tell
    eldest: EndHeap = field(default_factory=lambda: EndHeap(down=False))
    places: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # 0, 1, ...
    scratch: Scratch = field(default_factory=Scratch)

    def __post_init__(self) -> None:
        self.rows = LiveInput((), self.width, self.state, self.strict, None, self.eager_instants)

    def step(
        self,
        batch: Batch,
        codes: np.ndarray,
        lifted: list[Arg],
        capacity: int,
        upto: int,
        seed: bool,
    ) -> Touches:
        _, spoken = self.rows.arrive(batch)
        if self.age is not None:
            self._keep_ages(self.age, len(codes))
        self.code.extend(codes)
        for arg, new in zip(self.args, lifted, strict=True):
            arg.keep(new, len(codes))
        events = self.rows.depart(batch, spoken, upto)
        self.groups.grow(capacity)
        self.ends = [grown(e, capacity, NIL) for e in self.ends]
        self.links = [grown(k, self.code.n, None) for k in self.links]
        code, live, oldest = self.scratch.ints(len(events), 3)
        self.groups.alive += _follow(
            events.sign,
            events.slot,
            self.code.view,
            self.groups.count,
            *self.ends,
            *self.links,
            code,
            live,
            oldest,
        )
        ids = tuple(v.view for v in self.rows.store.ids)
        views = [a.view() for a in self.args]
        touches = self.groups.trace(
            events.at, code, events.sign, events.slot, live, oldest, capacity, seed, views, ids
        )
        if self.age is not None:
            touches.feed.ages = self.ages
            touches.oldest = self._eldest(touches.feed)
        return touches

    def _eldest(self, feed: GroupEvents) -> np.ndarray:
        """By touch, the slot of the group's oldest row; -1: it has none."""
        if len(self.places) < self.code.n:
            self.places = np.arange(2 * self.code.n)
        out = Answers(
            np.full(feed.touches, NIL, np.int64), NO_WORDS, np.zeros(feed.touches, np.bool_)
        )
        self.eldest.run(
            feed, (Arg(self.places[: self.code.n], NO_WORDS, NO_BOOLS, Coding(INT)),), out
        )
        return out.words

    def _keep_ages(self, age: Age, count: int) -> None:
        """Those of the newest `count` slots."""
        slots = len(self.rows.store)
        new = age.of([v.view[slots - count :] for v in self.rows.store.ids])
        if not len(self.ages):
            self.ages = np.empty((0, age.width), np.int64)
        self.ages = grown(self.ages, slots, None)
        self.ages[slots - count : slots] = new

    def settle(self) -> np.ndarray | None:
        where = self.rows.settle()
        if where is not None:
            kept = np.flatnonzero(where >= 0)
            self.code.keep(kept)
            for arg in self.args:
                arg.moved(kept)
            self.links = [moved_links(k, where, kept) for k in self.links]
            self.ends = [renamed(e, where) for e in self.ends]
            if self.age is not None:
                self.ages = self.ages[kept]
                self.eldest.moved(where)
        return where

    def held(self, arg: int) -> np.ndarray:
        return self.args[arg].held(self.rows.store.alive.view)

    @property
    def live(self) -> int:
        return self.rows.store.live

    @property
    def slots(self) -> int:
        return self.code.n

    def next_due(self) -> int:
        return self.rows.expiry.next_due()

    @property
    def nbytes(self) -> int:
        own = (
            sum(a.nbytes for a in (*self.links, *self.ends)) + self.code.nbytes + self.groups.nbytes
        )
        own += self.ages.nbytes + self.eldest.nbytes + self.places.nbytes
        return int(own + self.scratch.nbytes + self.rows.nbytes + sum(a.nbytes for a in self.args))


@dataclass(slots=True)
class GrowFeed:
    """Events of an input whose rows never leave."""

    width: int
    groups: Groups = field(default_factory=Groups)
    first: list[np.ndarray] = field(init=False)  # by group: arrival numbers of its first row
    sign: np.ndarray = field(default_factory=lambda: np.ones(0, np.int8))
    slot: np.ndarray = field(default_factory=lambda: np.arange(0, dtype=np.int64))
    scratch: Scratch = field(default_factory=Scratch)

    def __post_init__(self) -> None:
        self.first = [np.empty(0, np.int64)] * self.width

    def step(
        self,
        batch: Batch,
        codes: np.ndarray,
        lifted: list[Arg],
        capacity: int,
        upto: int,
        seed: bool,
    ) -> Touches:
        n = len(codes)
        self.groups.grow(capacity)
        self.first = [grown(f, capacity) for f in self.first]
        if n > len(self.sign):
            self.sign, self.slot = np.ones(2 * n, np.int8), np.arange(2 * n, dtype=np.int64)
        live, new = self.scratch.ints(n, 2)
        alive = _gather(codes, self.groups.count, live, new)
        self.groups.alive += alive
        if alive:
            for first, ids in zip(self.first, batch.ids, strict=True):
                first[codes[new[:alive]]] = ids[new[:alive]]
        return self.groups.trace(
            batch.ts,
            codes,
            self.sign[:n],
            self.slot[:n],
            live,
            codes,
            capacity,
            seed,
            lifted,
            tuple(self.first),
        )

    def settle(self) -> np.ndarray | None:
        return None

    def held(self, arg: int) -> np.ndarray:
        return np.empty(0, np.int64)

    @property
    def live(self) -> int:
        return self.groups.alive

    @property
    def slots(self) -> int:
        return 0

    def next_due(self) -> int:
        return FOREVER

    @property
    def nbytes(self) -> int:
        return int(self.groups.nbytes + self.scratch.nbytes + sum(f.nbytes for f in self.first))
