"""RANK and DENSE_RANK of OVER: the place of each row among those up to it, in an order of values.

State    A sorted multiset for each group (`aggregates.parts.treap`), of DENSE_RANK of its different
         values, with a counter of each; and how many NULLs there are.
Cost     O(log d) a row that comes or leaves, for d different values in its frame.
NULLs are alike, and stand behind all values or before them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts.base import Answers, Arg, ByGroup, GroupEvents
from dsms.aggregates.parts.distinct import turns
from dsms.aggregates.parts.treap import SIZE, Multisets, below, put, take, times
from dsms.aggregates.parts.valued import Valued
from dsms.sql.expr import AggCall
from dsms.state.lengthening import grown


@njit(cache=True, nogil=True)
def place(
    code,
    sign,
    slot,
    emit,
    words,
    valid,
    rank,
    change,
    nodes,
    root,
    state,
    nulls,
    down,
    first,
    dense,
    out,
):
    """change: by event what it does to the multiset of its group: a value comes (1), goes (-1)."""
    for i in range(len(code)):
        g, s = code[i], slot[i]
        there = len(valid) == 0 or valid[s]
        if not there:
            nulls[g] += sign[i]
        elif change[i] > 0:
            put(nodes, root, g, words[s], rank, state)
        elif change[i] < 0:
            take(nodes, root, g, words[s], rank, state)
        if emit[i] < 0:
            continue
        x = root[g]
        before = nodes[x, SIZE] if x >= 0 else 0
        if there:
            smaller = below(nodes, x, words[s], rank)
            before = before - smaller - times(nodes, x, words[s], rank) if down else smaller
            if first and nulls[g] > 0:
                before += 1 if dense else nulls[g]
        elif first:
            before = 0
        out[emit[i]] = before + 1


@dataclass(slots=True)
class Places(ByGroup):
    """The answers of one call."""

    down: bool
    first: bool  # NULLs stand before values
    dense: bool
    sets: Multisets = field(default_factory=Multisets)
    counted: Valued = field(default_factory=Valued)
    nulls: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # by group

    @classmethod
    def of(cls, call: AggCall) -> Places:
        return cls("desc" in call.params, "nulls first" in call.params, call.fn == "dense_rank")

    def run(self, feed: GroupEvents, args: tuple[Arg, ...], out: Answers) -> None:
        (a,) = args
        self.sets.make_room(int(np.count_nonzero(feed.sign > 0)), feed.groups)
        self.nulls = grown(self.nulls, feed.groups)
        change = turns(feed, a, self.counted) if self.dense else feed.sign
        out.valid[:] = True
        place(
            *feed.events,
            a.words,
            a.valid,
            a.rank,
            change,
            self.sets.nodes,
            self.sets.root,
            self.sets.state,
            self.nulls,
            self.down,
            self.first,
            self.dense,
            out.words,
        )

    def held(self) -> tuple[np.ndarray, ...]:
        return (self.sets.words(),)

    @property
    def nbytes(self) -> int:
        return int(self.sets.nbytes + self.counted.nbytes + self.nulls.nbytes)
