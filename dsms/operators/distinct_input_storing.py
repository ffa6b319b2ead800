"""DISTINCT from a store of the whole input; any input (Golab 2006, §3.2.2).

When the output row of a value dies, another of its live duplicates takes its place: see
`dsms.operators.distinct`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.operators.basic import by_parts
from dsms.operators.distinct import Values, begun
from dsms.operators.pieces import InStretches, Look
from dsms.plan.identity import order, width
from dsms.plan.physical import State
from dsms.sql import logical as lp
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch, in_order
from dsms.state.lists import Lists, cut, push
from dsms.state.live import Events, LiveInput
from dsms.state.vec import Vec


@njit(cache=True, nogil=True)
def _store_input(at, sign, slot, code, exp, announce, links, cur, died, out):
    """Output rows handed from row to row of a value; `cur[c]` is the slot that the output row
    stands for, or -1.

    links    the arrays of `Lists`
    died[c]  the instant at which the value was last left without a row
    out      at, sign, code, slot of each output row, and 1 where it begins a life, else 0

    Answers how many rows were written."""
    head, tail, before, after = links
    o_at, o_sign, o_code, o_slot, o_new = out
    found = start = 0
    touched = np.empty(len(at), np.int64)
    while start < len(at):
        stop, n, now = start, 0, at[start]
        while stop < len(at) and at[stop] == now:
            c, s = code[stop], slot[stop]
            if sign[stop] > 0:
                push(head, tail, before, after, c, s)
            else:
                cut(head, tail, before, after, c, s)
                if cur[c] == s:
                    if announce or exp[s] > now:
                        o_at[found], o_sign[found], o_new[found] = now, -1, 0
                        o_code[found], o_slot[found] = c, s
                        found += 1
                    cur[c], died[c] = -1, now
            touched[n] = c
            n += 1
            stop += 1
        for k in range(n):
            c = touched[k]
            if cur[c] < 0 and tail[c] >= 0:
                new = 0 if died[c] == now else 1
                s = head[c] if new else tail[c]
                o_at[found], o_sign[found], o_new[found] = now, 1, new
                o_code[found], o_slot[found] = c, s
                found += 1
                cur[c] = s
        start = stop
    return found


@dataclass(slots=True)
class InputStoringOp(InStretches):
    """The straightforward form: input and output stored; a dying output row is replaced by the
    youngest duplicate."""

    node: lp.Distinct
    state: State
    strict: bool
    eager_instants: bool
    kept: LiveInput = field(init=False)
    values: Values = field(init=False)
    lists: Lists = field(default_factory=Lists)
    cur: Vec = field(default_factory=Vec)
    died: Vec = field(default_factory=Vec)

    def __post_init__(self) -> None:
        child = self.node.child
        self.kept = LiveInput(
            child.schema, width(child), self.state, self.strict, None, self.eager_instants
        )
        self.kept.store.extra["code"] = Vec()
        self.values = Values(self.node)

    def stretch(self, inputs: Sequence[Batch], upto: int, look: Look) -> Batch:
        rows = by_parts(inputs[0], order(self.node.child))
        born = rows if rows.sign is None else rows.take(np.flatnonzero(rows.sign > 0))
        codes = self.values.learn(born, look)
        first, store = len(self.kept.store), self.kept.store
        _, spoken = self.kept.arrive(rows)
        store.extra["code"].extend(codes)
        events = self.kept.depart(rows, spoken, upto)
        self.cur.extend_fill(self.values.codes.capacity - self.cur.n, -1)
        # it was never there
        self.died.extend_fill(self.values.codes.capacity - self.died.n, FOREVER)
        code = store.extra["code"].view[events.slot]
        out = self._emit(events, code, first, born)
        self._settle()
        return out

    def _emit(self, events: Events, code: np.ndarray, first: int, born: Batch) -> Batch:
        store, cur, died = self.kept.store, self.cur.data, self.died.data
        links = self.lists.reserve(self.values.codes.capacity, len(store))
        rows = tuple(np.empty(2 * len(events), np.int64) for _ in range(5))
        found = _store_input(
            events.at,
            events.sign,
            events.slot,
            code,
            store.exp.view,
            self.strict,
            links,
            cur,
            died,
            rows,
        )
        o_at, o_sign, o_code, o_slot, o_new = (column[:found] for column in rows)
        arrival = np.where(o_new > 0, o_slot - first, -1)
        ids = begun(self.values, o_code, arrival, o_sign, self.values.beginners(born))
        exp, sign = store.exp.view[o_slot], o_sign.astype(np.int8) if self.strict else None
        return in_order(self.values.batch(o_code, o_at, exp, sign, ids))

    def _settle(self) -> None:
        where = self.kept.settle()
        if where is not None:
            self.lists.moved(where)
            held = self.cur.view >= 0
            self.cur.view[held] = where[self.cur.view[held]]
        live = self.lists.head.view[: self.cur.n] >= 0
        self.values.purge(live, int(np.count_nonzero(live)))

    def live(self) -> int:
        return self.kept.store.live

    def nbytes(self) -> int:
        return self.kept.nbytes + self.values.nbytes + self.lists.nbytes + self.cur.nbytes * 2

    def next_due(self) -> int:
        return self.kept.expiry.next_due()
