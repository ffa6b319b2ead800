"""DISTINCT in its three forms (Golab 2006, §2.2.2, §3.2.2, §3.5.2).

delta-star     Keeps of each value its output row and, of the duplicates since, only the instant at
               which the longest-lived dies.  Input without deletions.  When the output row expires
               the value goes on to that duplicate: a new output row.  Space O(distinct values).
input-storing  The same answers from a store of the whole input; any input.  Space O(window).
counting       Counts live duplicates of each value; sends a deletion when the count falls to 0
               (STR), so a value that stays has one output row however often it comes.  Any input.
               Space O(window).

In all forms a value's row keeps for its whole life (until an instant at which it is in the window
no more) the ids of the arrival that began it, and if need be (`plan.identity.timed`) when that was,
so the three forms give the same results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numba import njit

from dsms.operators.basic import by_parts
from dsms.operators.pieces import InStretches, Look
from dsms.plan.identity import order, timed, width
from dsms.plan.physical import State
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch, in_order
from dsms.state.intern import Intern
from dsms.state.lists import Lists, cut, push
from dsms.state.live import LiveInput
from dsms.state.rows import RowStore
from dsms.state.vec import Vec


@njit(cache=True, nogil=True)
def _delta_star(ts, exp, code, out_exp, aux_exp, life, o_at, o_exp, o_code, o_life):
    """Arrivals in order of ts; answers the number of output rows written to o_*.

    out_exp[c]  death of the value's output row (ALWAYS: none yet);  aux_exp[c]  death of its
                longest-lived duplicate
    life[c]     row of this batch that began the value's life, -1: an earlier batch;  o_life
                likewise"""
    found = 0
    for i in range(len(ts)):
        c, now = code[i], ts[i]
        if out_exp[c] <= now and aux_exp[c] > out_exp[c]:
            o_at[found], o_exp[found], o_code[found], o_life[found] = (
                out_exp[c],
                aux_exp[c],
                c,
                life[c],
            )
            found += 1
            out_exp[c], aux_exp[c] = aux_exp[c], ALWAYS
        if out_exp[c] > now:
            if exp[i] > out_exp[c] and exp[i] > aux_exp[c]:
                aux_exp[c] = exp[i]
            continue
        if out_exp[c] < now or now == ALWAYS:
            life[c] = i
        out_exp[c], aux_exp[c] = exp[i], ALWAYS
        o_at[found], o_exp[found], o_code[found], o_life[found] = now, exp[i], c, life[c]
        found += 1
    return found


@njit(cache=True, nogil=True)
def _hand_over(upto, out_exp, aux_exp, life, o_at, o_exp, o_code, o_life, found):
    """Values whose output row is dead by `upto` go on to their longest-lived duplicate."""
    for c in range(len(out_exp)):
        if out_exp[c] <= upto and aux_exp[c] > out_exp[c]:
            o_at[found], o_exp[found], o_code[found], o_life[found] = (
                out_exp[c],
                aux_exp[c],
                c,
                life[c],
            )
            found += 1
            out_exp[c], aux_exp[c] = aux_exp[c], ALWAYS
    return found


@dataclass(slots=True)
class Values:
    """The distinct values known: a code each, its columns, and the ids that began its present
    life."""

    node: lp.Distinct
    codes: Intern = field(init=False)
    rows: RowStore = field(init=False)
    slot: Vec = field(default_factory=Vec)  # by code: where its columns are
    life: list[Vec] = field(init=False)  # by code, an id column each

    def __post_init__(self) -> None:
        self.codes = Intern(len(self.node.schema))
        self.rows = RowStore(self.node.schema, 0)
        self.life = [Vec() for _ in range(width(self.node))]

    def learn(self, batch: Batch, look: Look) -> np.ndarray:
        """Codes of the rows; columns of new values are stored."""
        n = len(batch)
        codes = self.codes.codes(batch.cols, n, look)
        for vec in (self.slot, *self.life):
            vec.extend_fill(self.codes.capacity - vec.n, -1)
        unknown = np.flatnonzero(self.slot.view[codes] < 0)
        if len(unknown):
            new, at = np.unique(codes[unknown], return_index=True)
            first = unknown[at]
            self.slot.view[new] = self.rows.append(
                Batch(batch.ts[first], None, None, (), batch.take(first).cols)
            )
        return codes

    def beginners(self, born: Batch) -> Batch:
        """Arrivals with the ids by which rows are identified here."""
        return replace(born, ids=(*born.ids, born.ts)) if timed(self.node) else born

    def begin(self, codes: np.ndarray, batch: Batch, rows: np.ndarray) -> None:
        """Those values' present lives were begun by those rows of the batch."""
        for vec, ids in zip(self.life, batch.ids, strict=True):
            vec.view[codes] = ids[rows]

    def batch(
        self,
        codes: np.ndarray,
        at: np.ndarray,
        exp: np.ndarray | None,
        sign: np.ndarray | None,
        ids: tuple[np.ndarray, ...] | None = None,
    ) -> Batch:
        """Output rows of those values."""
        cols = self.rows.columns(self.slot.view[codes])
        return Batch(at, exp, sign, ids or tuple(v.view[codes] for v in self.life), cols)

    def purge(self, live: np.ndarray, alive: int) -> bool:
        """Forget values that are not live (bool by code) if there are many; True if so."""
        if not self.codes.wants_purge(alive):
            return False
        dead = np.flatnonzero(~live & (self.slot.view >= 0))
        self.rows.bury(self.slot.view[dead])
        self.slot.view[dead] = -1
        self.codes.purge(live)
        where = self.rows.compact()
        if where is not None:
            kept = self.slot.view >= 0
            self.slot.view[kept] = where[self.slot.view[kept]]
        return True

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.rows.nbytes + self.slot.nbytes * (1 + len(self.life))


@dataclass(slots=True)
class DeltaStarOp(InStretches):
    """δ*."""

    node: lp.Distinct
    values: Values = field(init=False)
    out_exp: Vec = field(default_factory=Vec)
    aux_exp: Vec = field(default_factory=Vec)
    alive: int = 0

    def __post_init__(self) -> None:
        self.values = Values(self.node)

    def stretch(self, inputs: Sequence[Batch], upto: int, look: Look) -> Batch:
        rows = by_parts(inputs[0], order(self.node.child))
        codes = self.values.learn(rows, look)
        for vec in (self.out_exp, self.aux_exp):
            vec.extend_fill(self.values.codes.capacity - vec.n, ALWAYS)
        room = 2 * len(rows) + 2 * self.out_exp.n
        life = np.full(self.out_exp.n, -1, np.int64)
        at, exp, code, began = (np.empty(room, np.int64) for _ in range(4))
        state = (self.out_exp.view, self.aux_exp.view, life, at, exp, code, began)
        found = _delta_star(rows.ts, rows.exps(), codes, *state)
        found = _hand_over(upto, *state, found)
        out = self._output(rows, at[:found], exp[:found], code[:found], began[:found])
        started = np.flatnonzero(life >= 0)
        self.values.begin(started, rows, life[started])
        live = self.out_exp.view > upto
        self.alive = int(np.count_nonzero(live))
        if self.values.purge(live, self.alive):
            self.out_exp.view[~live] = self.aux_exp.view[~live] = ALWAYS
        return out

    def _output(
        self, rows: Batch, at: np.ndarray, exp: np.ndarray, code: np.ndarray, began: np.ndarray
    ) -> Batch:
        here = began >= 0
        ids = []
        for vec, arrived in zip(self.values.life, rows.ids, strict=True):
            column = vec.view[code]
            column[here] = arrived[began[here]]
            ids.append(column)
        return in_order(self.values.batch(code, at, exp, None, tuple(ids)))

    def live(self) -> int:
        return self.alive

    def nbytes(self) -> int:
        return self.values.nbytes + self.out_exp.nbytes + self.aux_exp.nbytes

    def next_due(self) -> int:
        waiting = self.aux_exp.view > self.out_exp.view
        return int(self.out_exp.view[waiting].min()) if waiting.any() else FOREVER


@njit(cache=True, nogil=True)
def _count(at, sign, row, code, count, seen, o_at, o_sign, o_code, o_row):
    """Live duplicates per value over ordered events; an output row where an instant changes whether
    there are any.

    `row[i]` is the batch row of an arrival.  seen[c] is scratch: 1 + place in the instant's list of
    touched values."""
    found = start = 0
    touched, before, first = (
        np.empty(len(at), np.int64),
        np.empty(len(at), np.int64),
        np.empty(len(at), np.int64),
    )
    while start < len(at):
        stop, n = start, 0
        while stop < len(at) and at[stop] == at[start]:
            c = code[stop]
            if seen[c] == 0:
                touched[n], before[n], first[n] = c, count[c], -1
                n += 1
                seen[c] = n
            count[c] += sign[stop]
            if sign[stop] > 0 and first[seen[c] - 1] < 0:
                first[seen[c] - 1] = row[stop]
            stop += 1
        for k in range(n):
            c = touched[k]
            seen[c] = 0
            if (before[k] > 0) != (count[c] > 0):
                o_at[found], o_code[found], o_row[found] = at[start], c, first[k]
                o_sign[found] = 1 if count[c] > 0 else -1
                found += 1
        start = stop
    return found


@dataclass(slots=True)
class CountingDistinctOp(InStretches):
    """Multiplicities."""

    node: lp.Distinct
    state: State
    strict: bool
    eager_instants: bool
    kept: LiveInput = field(init=False)
    values: Values = field(init=False)
    count: Vec = field(default_factory=Vec)

    def __post_init__(self) -> None:
        child = self.node.child
        self.kept = LiveInput(
            child.schema, width(child), self.state, self.strict, (), self.eager_instants
        )
        self.kept.store.extra["code"] = Vec()
        self.values = Values(self.node)

    def stretch(self, inputs: Sequence[Batch], upto: int, look: Look) -> Batch:
        rows = by_parts(inputs[0], order(self.node.child))
        born = rows if rows.sign is None else rows.take(np.flatnonzero(rows.sign > 0))
        codes = self.values.learn(born, look)
        self.count.extend_fill(self.values.codes.capacity - self.count.n, 0)
        first = len(self.kept.store)
        _, spoken = self.kept.arrive(rows)
        self.kept.store.extra["code"].extend(codes)
        events = self.kept.depart(rows, spoken, upto)
        code = self.kept.store.extra["code"].view[events.slot]
        out = self._emit(events.at, events.sign, events.slot - first, code, born)
        self.kept.settle()
        live = self.count.view > 0
        self.values.purge(live, int(np.count_nonzero(live)))
        return out

    def _emit(
        self, at: np.ndarray, sign: np.ndarray, row: np.ndarray, code: np.ndarray, born: Batch
    ) -> Batch:
        n = len(at)
        o_at, o_code, o_row, o_sign = (np.empty(n, np.int64) for _ in range(4))
        seen = np.zeros(self.count.n, np.int64)
        found = _count(at, sign, row, code, self.count.data, seen, o_at, o_sign, o_code, o_row)
        o_at, o_code, o_row, o_sign = o_at[:found], o_code[:found], o_row[:found], o_sign[:found]
        ids = lives(self.values, o_code, o_row, o_sign, self.values.beginners(born))
        out = self.values.batch(o_code, o_at, None, o_sign.astype(np.int8), ids)
        return in_order(out)

    def live(self) -> int:
        return self.kept.store.live

    def nbytes(self) -> int:
        return self.kept.nbytes + self.values.nbytes + self.count.nbytes

    def next_due(self) -> int:
        return self.kept.expiry.next_due()


@njit(cache=True, nogil=True)
def _last_begun(code, row, sign, last, out):
    """For each output row in order, the batch row that began the value's life (-1: before this
    batch)."""
    for i in range(len(code)):
        if sign[i] > 0 and row[i] >= 0:
            last[code[i]] = row[i]
        out[i] = last[code[i]]


def lives(
    values: Values, code: np.ndarray, row: np.ndarray, sign: np.ndarray, born: Batch
) -> tuple[np.ndarray, ...]:
    """ids of output rows in instant order, and the beginnings noted; a birth with row >= 0 begins a
    life."""
    last, began = np.full(values.slot.n, -1, np.int64), np.empty(len(code), np.int64)
    _last_begun(code, row, sign, last, began)
    here = began >= 0
    ids = []
    for vec, arrived in zip(values.life, born.ids, strict=True):
        column = vec.view[code]
        column[here] = arrived[began[here]]
        ids.append(column)
    started = np.flatnonzero(last >= 0)
    values.begin(started, born, last[started])
    return tuple(ids)


@njit(cache=True, nogil=True)
def _store_input(
    at,
    sign,
    slot,
    code,
    exp,
    announce,
    head,
    tail,
    before,
    after,
    cur,
    died,
    o_at,
    o_sign,
    o_code,
    o_slot,
    o_new,
):
    """Output rows handed from row to row of a value; `cur[c]` is the slot that the output row
    stands for, or -1.

    o_new[i] = 1: this row begins a life.  died[c] is the instant at which the value was last left
    without a row."""
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
                        o_at[found], o_sign[found], o_code[found], o_slot[found], o_new[found] = (
                            now,
                            -1,
                            c,
                            s,
                            0,
                        )
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
                o_at[found], o_sign[found], o_code[found], o_slot[found], o_new[found] = (
                    now,
                    1,
                    c,
                    s,
                    new,
                )
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
        n = 2 * len(events)
        o_at, o_sign, o_code, o_slot, o_new = (np.empty(n, np.int64) for _ in range(5))
        code = store.extra["code"].view[events.slot]
        links = self.lists.reserve(self.values.codes.capacity, len(store))
        found = _store_input(
            events.at,
            events.sign,
            events.slot,
            code,
            store.exp.view,
            self.strict,
            *links,
            self.cur.data,
            self.died.data,
            o_at,
            o_sign,
            o_code,
            o_slot,
            o_new,
        )
        o_at, o_sign, o_code, o_slot, o_new = (
            a[:found] for a in (o_at, o_sign, o_code, o_slot, o_new)
        )
        row = np.where(o_new > 0, o_slot - first, -1)
        ids = lives(self.values, o_code, row, o_sign, self.values.beginners(born))
        exp = store.exp.view[o_slot]
        out = in_order(
            self.values.batch(
                o_code, o_at, exp, o_sign.astype(np.int8) if self.strict else None, ids
            )
        )
        self._settle()
        return out

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
