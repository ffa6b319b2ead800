"""Rows that leave in any order, and the best of those that are there: pairing heaps over the slots
(Fredman, Sedgewick, Sleator, Tarjan 1986) from which any member can be cut out.

All groups share the link array: 24 bytes a slot.     Cost  O(log n) amortised an event.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts.base import Answers, Arg, GroupEvents
from dsms.aggregates.parts.links import NIL, moved_links, renamed
from dsms.state.lengthening import grown

NO_WORDS = np.empty(0, np.int64)
# columns of a node: first child, next sibling, previous sibling (or parent)
CHILD, AFTER, BEFORE = range(3)


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
    """Whether slot a beats slot b: a smaller value (`down`: a greater one), among equals the older
    row.

    No words: the older row (`down`: the younger one)."""
    if not len(words):
        return older(b, a, ages) if down else older(a, b, ages)
    x, y = words[a], words[b]
    if x == y:
        return older(a, b, ages)
    if len(rank):
        x, y = rank[x], rank[y]
    return x > y if down else x < y


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
def run_heap(
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
    ages,
    root,
    nodes,
    out,
    out_valid,
):
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


class Linked:
    """What deque and heap share: rows chained through their slots."""

    roots: list[np.ndarray]
    links: list[np.ndarray]

    def _grow(self, feed: GroupEvents, slots: int) -> None:
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
class Heap(Linked):
    """Rows leave in any order.  down: the greatest is wanted, or the youngest;  roots: one by
    group;  links: nodes by slot."""

    down: bool
    roots: list[np.ndarray] = field(default_factory=lambda: [np.empty(0, np.int64)])
    links: list[np.ndarray] = field(default_factory=lambda: [np.empty((0, 3), np.int64)])

    def _run(
        self,
        feed: GroupEvents,
        by: Arg,
        words: np.ndarray,
        told: np.ndarray,
        valid: np.ndarray,
        out: Answers,
    ) -> None:
        """`words` that compare (none: ages do);  `told`, `valid`: what is reported of the best
        row."""
        self._grow(feed, len(told))
        run_heap(
            *feed.events,
            words,
            by.valid,
            valid,
            by.rank,
            told,
            self.down,
            feed.ages,
            *self.roots,
            *self.links,
            out.words,
            out.valid,
        )
