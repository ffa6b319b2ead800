"""ORDER BY ... LIMIT n PER k: of each key the rows that come first, as rows come and go.

Input    any pattern.
Output   STR: a row leaves the answer when one comes before it, at an instant that nothing told at
         its birth (Golab 2006, §3.2: a premature expiration); so it is taken back.  Where a row is
         in the answer until it dies, its `exp` says so.  When a row of the answer dies, the next
         one of its key comes in: an insertion at an expiration, as with MAX, whose new value
         replaces the old one of its group by being told.
State    skyband: a row is let go when n rows of its key stand before it that live at least as long:
         while it lives it can't be among the first n.  What is left is the n-skyband of order and
         expiry (Mouratidis, Bakiras and Papadias 2006), for n = 1 the monotone list of MAX; of
         W rows in random order n (1 + ln(W/n)) are expected.
         first: nothing leaves the input, so the first n are all that is kept.
         ordered: deaths are not known, or n is large: all rows, in a treap per key.
Cost     skyband: O(n) amortised an arrival (a row that is passed counts one more before it; what
         has counted n is gone), where rows die in the order they came; O(1) a death.  ordered:
         O(log d).
Ties     `dsms.plan.ranking`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.operators.base import Builds
from dsms.operators.basic import by_parts
from dsms.operators.group_keys import GroupKeys
from dsms.operators.pieces import InPieces, Look, Piece, stretches
from dsms.operators.sort_words import SortWords
from dsms.operators.top_kernels import FIRST, ORDERED, SKYBAND, follow
from dsms.plan.identity import order, width
from dsms.plan.physical import Phys, State
from dsms.plan.ranking import arrivals_of, keys_of
from dsms.plan.variants import MANY
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch
from dsms.state.lists import Lists
from dsms.state.live import Events, LiveInput
from dsms.state.trees import Trees
from dsms.state.vec import Matrix, Vec

KEEPS = {"skyband": SKYBAND, "first": FIRST, "ordered": ORDERED}
STRETCH = 1 << 14  # rows taken in at a time: with those that are kept, they fit a cache
Evaluate = Callable[[Sequence[pa.Array], int], pa.Array]


def top_op(builder: Builds, phys: Phys, node: lp.TopN) -> TopOp:
    """The operator of a TopN."""
    by = [builder.expr(e) for e in node.by]
    keys = [builder.expr(e) for e, _, _ in keys_of(node)]
    strict = phys.children[0].strict
    return TopOp(node, by, keys, KEEPS[phys.variant], phys.state(0), strict, builder.eager_instants)


@dataclass(slots=True)
class TopOp(InPieces):
    """The first rows of each key."""

    node: lp.TopN
    by: list[Evaluate]
    keys: list[Evaluate]
    keeps: int
    state: State
    strict: bool
    eager_instants: bool = False
    input: LiveInput = field(init=False)
    groups: GroupKeys = field(init=False)
    sort: SortWords = field(init=False)
    lists: Lists = field(default_factory=Lists)
    trees: Trees = field(default_factory=Trees)
    members: Vec = field(default_factory=Vec)  # by key: how many are in the answer
    last: Vec = field(default_factory=Vec)  # by key: the last of them
    longest: Vec = field(default_factory=Vec)  # by key: the latest death of any row so far

    def __post_init__(self) -> None:
        child = self.node.child
        self.input = LiveInput(
            child.schema, width(child), self.state, self.strict, None, self.eager_instants
        )
        self.groups = GroupKeys(tuple(e.type for e in self.node.by))
        keys = keys_of(self.node)
        self.sort = SortWords(
            tuple(expr.type for expr, _, _ in keys),
            tuple(down for _, down, _ in keys),
            tuple(first for _, _, first in keys),
            len(arrivals_of(self.node)),
        )
        self.input.store.extra.update(
            code=Vec(), words=Matrix(width=self.sort.width), above=Vec(),
            member=Vec(np.bool_), told=Vec(np.bool_), kept=Vec(np.bool_),
        )  # a row  # fmt: skip

    @property
    def treed(self) -> bool:
        """Whether places are found in a tree; else from the end of a short list."""
        return self.keeps == ORDERED or self.node.limit > MANY

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        for given, until in stretches(inputs, upto, STRETCH):
            look()
            yield self.stretch(given, until, look), until

    def stretch(self, inputs: Sequence[Batch], upto: int, look: Look) -> Batch:
        """`Operator.step`, of a stretch."""
        rows = by_parts(inputs[0], order(self.node.child))
        born = rows if rows.sign is None else rows.take(np.flatnonzero(rows.sign > 0))
        _, spoken = self.input.arrive(rows)
        self._learn(born, look)
        events = self.input.depart(rows, spoken, upto)
        look()
        out = self._ranked(events)
        self._settle()
        return out

    def _learn(self, born: Batch, look: Look) -> None:
        """Keys, words and marks of new rows."""
        n, extra = len(born), self.input.store.extra
        extra["code"].extend(self.groups.codes([by(born.cols, n) for by in self.by], n, look))
        ids = [born.ids[k] for k in arrivals_of(self.node)]
        extra["words"].extend(self.sort.of([key(born.cols, n) for key in self.keys], ids, n))
        for name in ("above", "member", "told", "kept"):
            extra[name].extend_fill(n, 0)

    def _ranked(self, events: Events) -> Batch:
        store, n = self.input.store, len(events)
        extra, codes, slots = store.extra, self.groups.capacity, len(store)
        self.members.extend_fill(codes - self.members.n, 0)
        self.last.extend_fill(codes - self.last.n, -1)
        self.longest.extend_fill(codes - self.longest.n, ALWAYS)
        out, gone = np.empty((3 * n, 3), np.int64), np.empty(slots, np.int64)
        found, dropped = follow(
            (min(self.node.limit, 1 << 62), self.keeps, int(self.treed)),
            self.strict,
            (events.at, events.sign, events.slot),
            extra["code"].view[events.slot],
            store.exp.view,
            (extra["words"].view, *self.sort.ranks()),
            self.lists.reserve(codes, slots),
            self.trees.reserve(codes, slots if self.treed else 0),
            (self.members.view, self.last.view, self.longest.view),
            tuple(extra[name].view for name in ("above", "member", "told", "kept")),
            out,
            gone,
            np.empty(2 * n, np.int64),
        )
        at, sign, slot = out[:found, 0].copy(), out[:found, 1].astype(np.int8), out[:found, 2]
        rows = by_parts(store.batch(slot.copy(), at, sign), order(self.node.child))
        gone = gone[:dropped]
        store.bury(gone[store.alive.view[gone]])
        return rows

    def _settle(self) -> None:
        where = self.input.settle()
        if where is None:
            return
        self.lists.moved(where)
        if self.treed:
            self.trees.moved(where)
        self.last.view[self.last.view >= 0] = where[self.last.view[self.last.view >= 0]]
        self.sort.purge(self.input.store.extra["words"].view)
        there = self.lists.head.view[: self.groups.capacity] >= 0
        if self.groups.wants_purge(int(np.count_nonzero(there))):
            self.groups.purge(there)

    def live(self) -> int:
        return self.input.store.live

    def nbytes(self) -> int:
        by_key = self.members.nbytes + self.last.nbytes + self.longest.nbytes
        own = self.lists.nbytes + self.trees.nbytes + by_key
        return own + self.input.nbytes + self.groups.nbytes + self.sort.nbytes

    def next_due(self) -> int:
        return self.input.expiry.next_due()
