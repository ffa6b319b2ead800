"""MIN, MAX, ARGMIN, ARGMAX: the best row of each group, by (rank of the value, age).

keep     rows never leave: only the best so far is kept.                        O(1) an event, O(1) a group
deque    rows leave in the order they came (WKS): a queue of those that no younger row beats, linked through the slots
         ("monotonic deque").                                                   O(1) amortised an event
heap     rows leave in any order: a pairing heap over the slots (Fredman, Sedgewick, Sleator, Tarjan 1986) from which
         any member can be cut out.                                             O(log n) amortised an event
All groups share the link arrays: 16 (deque) or 24 (heap) bytes a slot.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.operators.aggregates.base import NO_AGES, NO_BOOLS, Answers, Arg, Feed, grown
from dsms.operators.aggregates.links import NIL, moved_links, renamed


@njit(cache=True, nogil=True)
def older(a, b, ages):
    """Whether the row in slot a is older than that in slot b."""
    if len(ages):
        for k in range(ages.shape[1]):
            if ages[a, k] != ages[b, k]:
                return ages[a, k] < ages[b, k]
    return a < b


@njit(cache=True, nogil=True)
def better(a, b, words, rank, down, ages):
    """Whether slot a beats slot b: a smaller value (`down`: a greater one), among equals the older row.

    No words: the older row (`down`: the younger one)."""
    if not len(words):
        return older(b, a, ages) if down else older(a, b, ages)
    x, y = words[a], words[b]
    if x == y:
        return older(a, b, ages)
    if len(rank):
        x, y = rank[x], rank[y]
    return x > y if down else x < y


# ---------------------------------------------------------------- heap


NO_WORDS = np.empty(0, np.int64)
CHILD, AFTER, BEFORE = range(3)  # columns of a node: first child, next sibling, previous sibling (or parent)


@njit(cache=True, nogil=True)
def _meld(a, b, nodes, words, rank, down, ages):
    """The root of two heaps put together; roots have no siblings."""
    if a < 0:
        return b
    if b < 0:
        return a
    if better(b, a, words, rank, down, ages):
        a, b = b, a
    first = nodes[a, CHILD]
    nodes[b, AFTER] = first
    if first >= 0:
        nodes[first, BEFORE] = b
    nodes[b, BEFORE] = a
    nodes[a, CHILD] = b
    return a


@njit(cache=True, nogil=True)
def _meld_children(node, nodes, words, rank, down, ages):
    """The children of a node, paired left to right and then gathered right to left, as one heap."""
    pairs = np.int64(NIL)  # a stack linked by AFTER
    here = nodes[node, CHILD]
    while here >= 0:
        mate = nodes[here, AFTER]
        rest = np.int64(NIL)
        nodes[here, AFTER] = NIL
        if mate >= 0:
            rest = nodes[mate, AFTER]
            nodes[mate, AFTER] = NIL
            here = _meld(here, mate, nodes, words, rank, down, ages)
        nodes[here, AFTER] = pairs
        pairs = here
        here = rest
    root = np.int64(NIL)
    while pairs >= 0:
        rest = nodes[pairs, AFTER]
        nodes[pairs, AFTER] = NIL
        root = _meld(root, pairs, nodes, words, rank, down, ages)
        pairs = rest
    if root >= 0:
        nodes[root, BEFORE] = NIL
    return root


@njit(cache=True, nogil=True)
def _heap(code, sign, slot, emit, words, valid, also, rank, payload, down, ages, root, nodes, out, out_valid):
    for i in range(len(code)):
        g, s = code[i], slot[i]
        if (len(valid) == 0 or valid[s]) and (len(also) == 0 or also[s]):
            top = root[g]
            if sign[i] > 0:
                nodes[s, CHILD] = nodes[s, AFTER] = nodes[s, BEFORE] = NIL
                root[g] = _meld(top, s, nodes, words, rank, down, ages)
            else:  # cut the row out, and put what was below it back
                left, right, low = nodes[s, BEFORE], nodes[s, AFTER], nodes[s, CHILD]
                if s == top:
                    top = np.int64(NIL)
                elif nodes[left, CHILD] == s:
                    nodes[left, CHILD] = right
                else:
                    nodes[left, AFTER] = right
                if right >= 0:
                    nodes[right, BEFORE] = left
                if low >= 0:
                    low = _meld_children(s, nodes, words, rank, down, ages)
                    top = _meld(top, low, nodes, words, rank, down, ages)
                root[g] = top
        t = emit[i]
        if t >= 0 and root[g] >= 0:
            out[t] = payload[root[g]]
            out_valid[t] = True


# ---------------------------------------------------------------- deque


@njit(cache=True, nogil=True)
def _deque(code, sign, slot, emit, words, valid, also, rank, payload, down, front, back, after, before, out, out_valid):
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


# ---------------------------------------------------------------- keep


@njit(cache=True, nogil=True)
def _keep(code, slot, emit, words, valid, also, rank, payload, down, best, value, full, out, out_valid):
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


class Linked:
    """What deque and heap share: rows chained through their slots."""

    roots: list[np.ndarray]
    links: list[np.ndarray]

    def _grow(self, feed: Feed, slots: int) -> None:
        self.roots = [grown(r, feed.groups, NIL) for r in self.roots]
        self.links = [grown(k, slots, NIL) for k in self.links]

    def moved(self, where: np.ndarray) -> None:
        kept = np.flatnonzero(where >= 0)
        self.links = [moved_links(k, where, kept) for k in self.links]
        self.roots = [renamed(r, where) for r in self.roots]

    def held(self) -> tuple[np.ndarray, ...]:
        return ()

    @property
    def nbytes(self) -> int:
        return int(sum(a.nbytes for a in (*self.roots, *self.links)))


@dataclass(slots=True)
class BestHeap(Linked):
    """Rows leave in any order.  down: the greatest is wanted;  roots: one by group;  links: nodes by slot."""

    down: bool
    roots: list[np.ndarray] = field(default_factory=lambda: [np.empty(0, np.int64)])
    links: list[np.ndarray] = field(default_factory=lambda: [np.empty((0, 3), np.int64)])

    def run(self, feed: Feed, args: tuple[Arg, ...], out: Answers) -> None:
        told, by = sides(args)
        self._grow(feed, len(by.words))
        _heap(feed.code, feed.sign, feed.slot, feed.emit, by.words, by.valid, told.valid, by.rank, told.words,
              self.down, feed.ages, *self.roots, *self.links, out.words, out.valid)  # fmt: skip


@dataclass(slots=True)
class EndHeap(Linked):
    """FIRST and LAST of rows that neither come nor leave in the order of their ages.  down: the youngest is wanted."""

    down: bool
    roots: list[np.ndarray] = field(default_factory=lambda: [np.empty(0, np.int64)])
    links: list[np.ndarray] = field(default_factory=lambda: [np.empty((0, 3), np.int64)])

    def run(self, feed: Feed, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self._grow(feed, len(a.words))
        _heap(feed.code, feed.sign, feed.slot, feed.emit, NO_WORDS, a.valid, NO_BOOLS, a.rank, a.words, self.down,
              feed.ages, *self.roots, *self.links, out.words, out.valid)  # fmt: skip


@dataclass(slots=True)
class BestDeque(Linked):
    """Rows leave in the order they came.  down: the greatest is wanted;  roots: front, back by group;  links: next,
    previous by slot."""

    down: bool
    roots: list[np.ndarray] = field(default_factory=lambda: [np.empty(0, np.int64) for _ in range(2)])
    links: list[np.ndarray] = field(default_factory=lambda: [np.empty(0, np.int64) for _ in range(2)])

    def run(self, feed: Feed, args: tuple[Arg, ...], out: Answers) -> None:
        told, by = sides(args)
        self._grow(feed, len(by.words))
        _deque(feed.code, feed.sign, feed.slot, feed.emit, by.words, by.valid, told.valid, by.rank, told.words,
               self.down, *self.roots, *self.links, out.words, out.valid)  # fmt: skip


@dataclass(slots=True)
class BestKept:
    """Rows never leave."""

    down: bool
    best: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    value: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    full: np.ndarray = field(default_factory=lambda: np.zeros(0, np.bool_))

    def run(self, feed: Feed, args: tuple[Arg, ...], out: Answers) -> None:
        told, by = sides(args)
        self.best, self.value = grown(self.best, feed.groups), grown(self.value, feed.groups)
        self.full = grown(self.full, feed.groups)
        _keep(feed.code, feed.slot, feed.emit, by.words, by.valid, told.valid, by.rank, told.words, self.down,
              self.best, self.value, self.full, out.words, out.valid)  # fmt: skip

    def moved(self, where: np.ndarray) -> None:
        return

    def held(self) -> tuple[np.ndarray, ...]:
        return (self.value[self.full], self.best[self.full])

    @property
    def nbytes(self) -> int:
        return int(self.best.nbytes + self.value.nbytes + self.full.nbytes)
