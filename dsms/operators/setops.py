"""EXCEPT and INTERSECT [ALL]: multiplicities per value on both sides (Golab 2006, §2.2.2).

With v1 and v2 live duplicates of a value left and right, the answer holds of it
    EXCEPT ALL max(v1 - v2, 0)    INTERSECT ALL min(v1, v2)    EXCEPT 1 if v1 > 0 = v2    INTERSECT
    1 if both > 0
copies.  Rows have no parts: a copy that enters is placed by the oldest live left arrival of its
value, and of equal copies the one that entered first leaves first.  Output STR; ids are those of
that arrival and a copy number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.operators.basic import by_parts
from dsms.operators.pieces import InStretches, Look
from dsms.plan.identity import order, width
from dsms.plan.physical import State
from dsms.sql import logical as lp
from dsms.state.batch import Batch, in_order
from dsms.state.intern import Intern
from dsms.state.lists import Lists, cut, push
from dsms.state.live import Events, LiveInput
from dsms.state.rows import RowStore
from dsms.state.vec import Vec

EXCEPT_ALL, INTERSECT_ALL, EXCEPT, INTERSECT = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def copies(mode, v1, v2):
    """How many copies of a value the answer holds."""
    if mode == EXCEPT_ALL:
        return max(v1 - v2, 0)
    if mode == INTERSECT_ALL:
        return min(v1, v2)
    if mode == EXCEPT:
        return 1 if v1 > 0 and v2 == 0 else 0
    return 1 if v1 > 0 and v2 > 0 else 0


@njit(cache=True, nogil=True)
def _net(
    mode,
    at,
    sign,
    side,
    slot,
    code,
    head,
    tail,
    before,
    after,
    v1,
    v2,
    held,
    seen,
    o_at,
    o_code,
    o_slot,
    o_by,
):
    """Events of both sides in order; where an instant changes a value's copies: by how many, and
    the oldest left."""
    found = start = 0
    touched = np.empty(len(at), np.int64)
    while start < len(at):
        stop, n = start, 0
        while stop < len(at) and at[stop] == at[start]:
            c = code[stop]
            if not seen[c]:
                seen[c] = True
                touched[n] = c
                n += 1
            if side[stop] == 1:
                v2[c] += sign[stop]
            elif sign[stop] > 0:
                push(head, tail, before, after, c, slot[stop])
                v1[c] += 1
            else:
                cut(head, tail, before, after, c, slot[stop])
                v1[c] -= 1
            stop += 1
        for k in range(n):
            c = touched[k]
            seen[c] = False
            now = copies(mode, v1[c], v2[c])
            if now != held[c]:
                o_at[found], o_code[found], o_slot[found], o_by[found] = (
                    at[start],
                    c,
                    head[c],
                    now - held[c],
                )
                held[c] = now
                found += 1
        start = stop
    return found


@njit(cache=True, nogil=True)
def _queue(at, code, source, by, first, last, link, fresh, o_slot, o_at, o_sign, o_source):
    """Copies enter and leave the queue of their value; a new copy takes the next slot (from `fresh`
    on).

    o_source: the left row that places a new copy (deletions: -1)."""
    found = 0
    for i in range(len(at)):
        c = code[i]
        for _ in range(-by[i]):
            gone = first[c]
            first[c] = link[gone]
            if first[c] < 0:
                last[c] = -1
            o_slot[found], o_at[found], o_sign[found], o_source[found] = gone, at[i], -1, -1
            found += 1
        for _ in range(by[i]):
            link[fresh] = -1
            if last[c] >= 0:
                link[last[c]] = fresh
            else:
                first[c] = fresh
            last[c] = fresh
            o_slot[found], o_at[found], o_sign[found], o_source[found] = fresh, at[i], 1, source[i]
            fresh += 1
            found += 1
    return found


@dataclass(slots=True)
class SetOpOp(InStretches):
    """One operator for the four; inputs of any pattern."""

    node: lp.SetOp
    states: tuple[State, State]
    stricts: tuple[bool, bool]
    order: tuple[int, ...]
    eager_instants: bool = False
    sides: tuple[LiveInput, LiveInput] = field(init=False)
    codes: Intern = field(init=False)
    lists: Lists = field(default_factory=Lists)
    # v1, v2, held, first, last
    counts: list[Vec] = field(default_factory=lambda: [Vec() for _ in range(5)])
    out: RowStore = field(init=False)
    serial: int = 0

    def __post_init__(self) -> None:
        left, right = self.node.left, self.node.right
        self.sides = (
            LiveInput(
                left.schema, width(left), self.states[0], self.stricts[0], None, self.eager_instants
            ),
            LiveInput(
                right.schema, width(right), self.states[1], self.stricts[1], (), self.eager_instants
            ),
        )
        for side in self.sides:
            side.store.extra["code"] = Vec()
        self.codes = Intern(len(self.node.schema))
        self.out = RowStore(self.node.schema, width(self.node))
        self.out.extra.update(link=Vec(), code=Vec())

    @property
    def mode(self) -> int:
        if self.node.all:
            return EXCEPT_ALL if self.node.op == "except" else INTERSECT_ALL
        return EXCEPT if self.node.op == "except" else INTERSECT

    def stretch(self, inputs: Sequence[Batch], upto: int, look: Look) -> Batch:
        orders = (self.order, order(self.node.right))
        events = [self._events(k, by_parts(inputs[k], orders[k]), upto, look) for k in (0, 1)]
        for vec, empty in zip(self.counts, (0, 0, 0, -1, -1), strict=True):
            vec.extend_fill(self.codes.capacity - vec.n, empty)
        out = self._output(*self._changes(*both(*events)))
        self._settle()
        return out

    def _events(self, k: int, rows: Batch, upto: int, look: Look) -> Events:
        side = self.sides[k]
        born = rows if rows.sign is None else rows.take(np.flatnonzero(rows.sign > 0))
        _, spoken = side.arrive(rows)
        side.store.extra["code"].extend(self.codes.codes(born.cols, len(born), look))
        return side.depart(rows, spoken, upto)

    def _changes(self, events: Events, side: np.ndarray) -> tuple[np.ndarray, ...]:
        left, right = (s.store.extra["code"].view for s in self.sides)
        code = np.empty(len(events), np.int64)
        code[side == 0] = left[events.slot[side == 0]]
        code[side == 1] = right[events.slot[side == 1]]
        links = self.lists.reserve(self.codes.capacity, len(self.sides[0].store))
        v1, v2, held, _, _ = (v.data for v in self.counts)
        at, changed, slot, by = (np.empty(len(events), np.int64) for _ in range(4))
        seen = np.zeros(self.codes.capacity, np.bool_)
        n = _net(
            self.mode,
            events.at,
            events.sign,
            side,
            events.slot,
            code,
            *links,
            v1,
            v2,
            held,
            seen,
            at,
            changed,
            slot,
            by,
        )
        return at[:n], changed[:n], slot[:n], by[:n]

    def _output(
        self, at: np.ndarray, code: np.ndarray, source: np.ndarray, by: np.ndarray
    ) -> Batch:
        total, first = int(np.abs(by).sum()), len(self.out)
        births = int(by[by > 0].sum())
        link = self.out.extra["link"]
        link.reserve(births)
        slot, when, sign, left = (np.empty(total, np.int64) for _ in range(4))
        queues = (self.counts[3].data, self.counts[4].data, link.data)
        _queue(at, code, source, by, *queues, first, slot, when, sign, left)
        link.n += births
        born = sign > 0
        self._store(when[born], left[born], np.repeat(code, np.maximum(by, 0)))
        out = self.out.batch(slot, when, sign.astype(np.int8))
        self.out.bury(slot[~born])
        return by_parts(in_order(out), tuple(range(len(out.ids))))

    def _store(self, at: np.ndarray, left: np.ndarray, code: np.ndarray) -> None:
        store = self.sides[0].store
        number = np.arange(self.serial, self.serial + len(at), dtype=np.int64)
        self.serial += len(at)
        ids = (*(v.view[left] for v in store.ids), number)
        self.out.append(Batch(at, None, None, ids, store.columns(left)))
        self.out.extra["code"].extend(code)

    def _settle(self) -> None:
        where = self.sides[0].settle()
        if where is not None:
            self.lists.moved(where)
        self.sides[1].settle()
        where = self.out.compact()
        if where is not None:
            for vec in (self.counts[3], self.counts[4], self.out.extra["link"]):
                used = vec.view >= 0
                vec.view[used] = where[vec.view[used]]
        live = (self.counts[0].view > 0) | (self.counts[1].view > 0)
        if self.codes.wants_purge(int(np.count_nonzero(live))):
            self.codes.purge(live)

    def live(self) -> int:
        return sum(s.store.live for s in self.sides) + self.out.live

    def nbytes(self) -> int:
        return (
            sum(s.nbytes for s in self.sides)
            + self.out.nbytes
            + self.codes.nbytes
            + self.lists.nbytes
        )

    def next_due(self) -> int:
        return min(s.expiry.next_due() for s in self.sides)


def both(left: Events, right: Events) -> tuple[Events, np.ndarray]:
    """Events of two inputs in one order (instant, departures first), and which input (0, 1) each is
    of."""
    at = np.concatenate([left.at, right.at])
    sign = np.concatenate([left.sign, right.sign])
    side = np.repeat(np.array([0, 1], np.int8), [len(left), len(right)])
    by = np.lexsort((side, sign, at))
    return Events(at[by], sign[by], np.concatenate([left.slot, right.slot])[by]), side[by]
