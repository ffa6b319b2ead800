"""MIN, MAX, ARGMIN, ARGMAX: the best row of each group, by (rank of the value, age).

keep     rows never leave: only the best so far is kept.                        O(1) an event, O(1)
         a group
deque    rows leave in the order they came (WKS): a queue of those that no younger row beats, linked
         through the slots ("monotonic deque"). These are the checkpoints of Dani and Getta (2005,
         §7.4), who leave the last of them to a buffer; of random rows there are as many as the
         harmonic number of the window.
         O(1) amortised an event
heap     rows leave in any order: a pairing heap over the slots (Fredman, Sedgewick, Sleator, Tarjan
         1986) from which any member can be cut out.
         O(log n) amortised an event
All groups share the link arrays: 16 (deque) or 24 (heap) bytes a slot.

As cells (`picks`) they are compared as words, in the order of SQL (NaN above all numbers, strings
by code point); strings and wide DECIMALs through the ranks of a dictionary.  Sets may overlap for
MIN and MAX, not where other values are reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts.base import NO_AGES, Aggregate, Answers, Arg, GroupEvents, Leaving
from dsms.aggregates.parts.coded import Words
from dsms.aggregates.parts.heap import Heap, Linked, better
from dsms.aggregates.parts.links import NIL
from dsms.aggregates.parts.picks import GREATEST, LEAST, Picks
from dsms.aggregates.parts.words import arg_coding
from dsms.sql.expr import AggCall
from dsms.state.lengthening import grown


@njit(cache=True, nogil=True)
def _deque(
    code,
    sign,
    slot,
    emit,
    words,
    valid,
    also,
    rank,
    payload,
    down,
    front,
    back,
    after,
    before,
    out,
    out_valid,
):
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if sign[i] < 0:
            if front[g] == s:
                front[g] = after[s]
                if after[s] < 0:
                    back[g] = NIL
                else:
                    before[after[s]] = NIL
        elif (len(valid) == 0 or valid[s]) and (len(also) == 0 or also[s]):
            last = back[g]
            while last >= 0 and better(s, last, words, rank, down, NO_AGES):
                last = before[last]
            before[s], after[s] = last, NIL
            back[g] = s
            if last >= 0:
                after[last] = s
            else:
                front[g] = s
        t = emit[i]
        if t >= 0 and front[g] >= 0:
            out[t] = payload[front[g]]
            out_valid[t] = True


@njit(cache=True, nogil=True)
def _keep(
    code, slot, emit, words, valid, also, rank, payload, down, best, value, full, out, out_valid
):
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if (len(valid) == 0 or valid[s]) and (len(also) == 0 or also[s]):
            x = words[s]
            if not full[g]:
                full[g], best[g], value[g] = True, x, payload[s]
            else:
                y = best[g]
                if len(rank):
                    x, y = rank[x], rank[y]
                if (x > y) if down else (x < y):
                    best[g], value[g] = words[s], payload[s]
        t = emit[i]
        if t >= 0 and full[g]:
            out[t] = value[g]
            out_valid[t] = True


def sides(args: tuple[Arg, ...]) -> tuple[Arg, Arg]:
    """(the argument that is reported, the one that orders): the same for MIN and MAX."""
    return args[0], args[-1]


@dataclass(slots=True)
class BestHeap(Heap):
    """Rows leave in any order."""

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        reported, by = sides(args)
        self._run(feed, by, by.words, reported.words, reported.valid, out)


@dataclass(slots=True)
class BestDeque(Linked):
    """Rows leave in the order they came.  down: the greatest is wanted;  roots: front, back by
    group;  links: next, previous by slot."""

    down: bool
    roots: list[np.ndarray] = field(
        default_factory=lambda: [np.empty(0, np.int64) for _ in range(2)]
    )
    links: list[np.ndarray] = field(
        default_factory=lambda: [np.empty(0, np.int64) for _ in range(2)]
    )

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        reported, by = sides(args)
        self._grow(feed, len(by.words))
        _deque(
            *feed.events,
            by.words,
            by.valid,
            reported.valid,
            by.rank,
            reported.words,
            self.down,
            *self.roots,
            *self.links,
            out.words,
            out.valid,
        )


@dataclass(slots=True)
class BestKept:
    """Rows never leave."""

    down: bool
    best: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    value: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    full: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        reported, by = sides(args)
        self.best, self.value = grown(self.best, feed.groups), grown(self.value, feed.groups)
        self.full = grown(self.full, feed.groups)
        _keep(
            feed.code,
            feed.slot,
            feed.emit,
            by.words,
            by.valid,
            reported.valid,
            by.rank,
            reported.words,
            self.down,
            self.best,
            self.value,
            self.full,
            out.words,
            out.valid,
        )

    def moved(self, where: np.ndarray) -> None:
        return

    def held(self) -> tuple[np.ndarray, ...]:
        return (self.value[self.full], self.best[self.full])

    @property
    def nbytes(self) -> int:
        return int(self.best.nbytes + self.value.nbytes + self.full.nbytes)


def extreme(down: bool, leaving: Leaving) -> Aggregate:
    """The least (`down`: the greatest) of a group."""
    kinds = {"never": BestKept, "in order": BestDeque, "anyhow": BestHeap, "out of age": BestHeap}
    return kinds[leaving](down)


def follow(call: AggCall, leaving: Leaving) -> Aggregate:
    """The state that follows single rows."""
    return extreme(call.fn.endswith("max"), leaving)


def algebra(call: AggCall) -> Picks:
    """The algebra of such a call."""
    rule = GREATEST if call.fn.endswith("max") else LEAST
    reported = Words(arg_coding(call, 0))
    if len(call.args) == 1:
        return Picks(rule, reported, duplicate_insensitive=True)
    return Picks(rule, reported, Words(arg_coding(call, 1)))
