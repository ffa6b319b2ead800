"""Rows by whether they have a match: what outer joins pad, and EXISTS under conditions other than
equality.

An inner join below finds the pairs; here each row of one side counts its live pairs.  A row is
*shown* while the count is 0 (padding, NOT EXISTS) or above 0 (EXISTS), judged at the end of each
instant, so a match of the same instant leaves no trace.  Pairs die by the exp of their parts or by
announced deletions, whichever structure the planner chose.
Cost     O(1) per pair that comes or goes.
State    The rows of the side and all live pairs.  Not pairs that nothing ends, and not rows that
         have such a one, nor those to which no other comes (`not_coming`), where rows stay for
         ever: about them all is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit

from dsms.operators.base import Builds
from dsms.operators.basic import by_parts
from dsms.operators.either_join import EitherJoinOp, either_join
from dsms.operators.join import JoinOp, inner_join
from dsms.operators.not_coming import may_go
from dsms.operators.pieces import InPieces, Look, Piece, parted
from dsms.operators.semijoin import null_aware_residual
from dsms.plan.either import ways
from dsms.plan.identity import order, width
from dsms.plan.physical import Phys, State
from dsms.sql import logical as lp
from dsms.sql.types import FOREVER, Schema
from dsms.state.batch import Batch
from dsms.state.chains import put
from dsms.state.ids import IdIndex, find, hash_ids, remove
from dsms.state.live import LiveInput
from dsms.state.vec import Vec

Final = Callable[[np.ndarray], np.ndarray]  # of slots of rows, those of which that is so


@njit(cache=True, nogil=True)
def _judge(
    when_zero,
    strict,
    r_at,
    r_sign,
    r_slot,
    p_at,
    p_sign,
    p_slot,
    head,
    link,
    size,
    row_ids,
    pair_ids,
    owner,
    count,
    inside,
    alive,
    exp,
    o_at,
    o_sign,
    o_slot,
):
    """Events of rows and of pairs, each in order -> rows shown or taken back.

    owner[pair] is the slot of the row that a pair belongs to;  inside[slot] whether the row is
    shown."""
    found = i = j = 0
    touched = np.empty(len(r_at) + len(p_at), np.int64)
    while i < len(r_at) or j < len(p_at):
        now = r_at[i] if j == len(p_at) or (i < len(r_at) and r_at[i] <= p_at[j]) else p_at[j]
        n = 0
        while i < len(r_at) and r_at[i] == now:
            s = r_slot[i]
            if r_sign[i] < 0:
                remove(head, link, size, row_ids, s)
                alive[s] = False
                if inside[s] and strict and exp[s] > now:
                    o_at[found], o_sign[found], o_slot[found] = now, -1, s
                    found += 1
            else:
                put(head, link, size, s, hash_ids(row_ids, s))
                alive[s], inside[s], count[s] = True, False, 0
                touched[n] = s
                n += 1
            i += 1
        while j < len(p_at) and p_at[j] == now:
            p = p_slot[j]
            if p_sign[j] > 0:
                owner[p] = find(head, link, size, row_ids, pair_ids, p)
            s = owner[p]
            if s >= 0 and alive[s]:
                count[s] += p_sign[j]
                touched[n] = s
                n += 1
            j += 1
        for k in range(n):
            s = touched[k]
            show = (count[s] == 0) == when_zero
            if alive[s] and show != inside[s]:
                inside[s] = show
                o_at[found], o_sign[found], o_slot[found] = now, 1 if show else -1, s
                found += 1
    return found


@dataclass(slots=True)
class MatchCounter:
    """One side of a join and the number of live pairs of each of its rows.

    schema, width  of the side;  part  positions, among a pair's ids, of this side's ids;  pairs
                   state of live pairs
    when_zero      show rows without a match (else rows with one)
    """

    schema: Schema
    width: int
    part: tuple[int, ...]
    pair_width: int
    state: State
    strict: bool
    pair_state: State
    pair_strict: bool
    when_zero: bool
    eager_instants: bool = False
    rows: LiveInput = field(init=False)
    pairs: LiveInput = field(init=False)
    index: IdIndex = field(default_factory=IdIndex)

    def __post_init__(self) -> None:
        self.rows = LiveInput(
            self.schema, self.width, self.state, self.strict, None, self.eager_instants
        )
        self.rows.store.extra.update(count=Vec(), inside=Vec(np.bool_), here=Vec(np.bool_))
        self.pairs = LiveInput(
            (), self.pair_width, self.pair_state, self.pair_strict, (), self.eager_instants
        )
        self.pairs.store.extra["owner"] = Vec()

    def step(self, rows: Batch, pairs: Batch, upto: int, final: Final | None = None) -> Batch:
        """Rows shown (sign +1, at the instant) and taken back (-1); deaths foretold by exp are not
        announced.  `final`: of new rows those to which no pair comes any more."""
        new, spoken = self.rows.arrive(rows)
        for vec in self.rows.store.extra.values():
            vec.extend_fill(len(new), 0)
        row_events = self.rows.depart(rows, spoken, upto)
        bare = Batch(pairs.ts, pairs.exp, pairs.sign, pairs.ids, ())
        slots, spoken = self.pairs.arrive(bare)
        self.pairs.store.extra["owner"].extend_fill(len(slots), -1)
        pair_events = self.pairs.depart(bare, spoken, upto)
        out = self._judge(row_events, pair_events)
        self._drop_pairs(slots)
        if final is not None:
            self._drop(final(new))
        self._settle()
        return out

    def _drop_pairs(self, new: np.ndarray) -> None:
        """New pairs that nothing ends need not be kept, nor rows that have one."""
        store = self.pairs.store
        lasting = new[store.exp.view[new] == FOREVER]
        if self.pair_strict or not len(lasting):
            return
        store.bury(lasting)
        if may_go(self):
            owner = store.extra["owner"].view[lasting]
            self._drop(np.unique(owner[owner >= 0]))

    def _drop(self, slots: np.ndarray) -> None:
        """Forget rows, of which there may be some no more."""
        slots = slots[self.rows.store.alive.view[slots]]
        self.rows.store.bury(slots)
        self.rows.store.extra["here"].view[slots] = False

    def let_go(self, slots: np.ndarray) -> None:
        """To these rows no pair comes any more, and none that they have ends."""
        self._drop(slots)
        self._settle()

    def _judge(self, row_events: Any, pair_events: Any) -> Batch:
        store, extra = self.rows.store, self.rows.store.extra
        self._make_room(len(row_events))
        n = len(row_events) + len(row_events) + len(pair_events)
        at, sign, slot = (np.empty(n, np.int64) for _ in range(3))
        row_ids = tuple(v.view for v in store.ids)
        pair_ids = tuple(self.pairs.store.ids[k].view for k in self.part)
        found = _judge(
            self.when_zero,
            self.strict,
            row_events.at,
            row_events.sign,
            row_events.slot,
            pair_events.at,
            pair_events.sign,
            pair_events.slot,
            *self.index.chains.kernel,
            row_ids,
            pair_ids,
            self.pairs.store.extra["owner"].data,
            extra["count"].data,
            extra["inside"].data,
            extra["here"].data,
            store.exp.view,
            at,
            sign,
            slot,
        )
        return store.batch(slot[:found], at[:found], sign[:found].astype(np.int8))

    def _make_room(self, more: int) -> None:
        if not self.index.made:
            self._index_anew()
        self.index.chains.reserve(len(self.rows.store), more)

    def _index_anew(self) -> None:
        store = self.rows.store
        here = np.flatnonzero(store.extra["here"].view)
        self.index.rebuild([v.view for v in store.ids], here, len(store))

    def _settle(self) -> None:
        where = self.rows.settle()
        if where is not None:
            owner = self.pairs.store.extra["owner"].view
            held = owner >= 0
            owner[held] = where[owner[held]]
            self._index_anew()
        self.pairs.settle()

    def live(self) -> int:
        return self.rows.store.live + self.pairs.store.live

    def nbytes(self) -> int:
        return self.rows.nbytes + self.pairs.nbytes + self.index.nbytes

    def next_due(self) -> int:
        return min(self.rows.expiry.next_due(), self.pairs.expiry.next_due())


@dataclass(slots=True)
class MatchingSemiJoinOp(InPieces):
    """EXISTS / NOT EXISTS under any condition."""

    inner: JoinOp | EitherJoinOp
    counter: MatchCounter
    order: tuple[int, ...]

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        later = inputs
        for pairs, until in self.inner.pieces(inputs, upto, look):
            rows, later = parted(later, until)
            yield by_parts(self.counter.step(rows[0], pairs, until), self.order), until

    def live(self) -> int:
        return self.inner.live() + self.counter.live()

    def nbytes(self) -> int:
        return self.inner.nbytes() + self.counter.nbytes()

    def next_due(self) -> int:
        return self.counter.next_due()


def pair_state(phys: Phys) -> tuple[State, bool]:
    """How to keep the live pairs of a join's inputs: (state, whether their deaths may be
    announced)."""
    announced = any(c.strict for c in phys.children)
    if phys.strategy == "nt":
        return State("hash"), True
    return State("list") if phys.strategy == "direct" else State("calendar"), announced


def matching_semijoin(builder: Builds, phys: Phys, node: lp.SemiJoin) -> MatchingSemiJoinOp:
    """A SemiJoin whose condition is not equality alone."""
    keys, residual = null_aware_residual(node) if node.null_aware else (node.keys, node.residual)
    each = not node.null_aware and ways(node)
    inner = either_join(builder, phys, node) if each else inner_join(builder, phys, keys, residual)
    kept, announced = pair_state(phys)
    wide = width(node.left)
    counter = MatchCounter(
        node.left.schema,
        wide,
        tuple(range(wide)),
        wide + width(node.right),
        phys.state(0),
        phys.children[0].strict,
        kept,
        announced,
        node.anti,
        builder.eager_instants,
    )
    return MatchingSemiJoinOp(inner, counter, order(node.left))
