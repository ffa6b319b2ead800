"""DISTINCT by counting the live duplicates of each value; any input (Golab 2006, §2.2.2).

A value's output row stays for as long as its count is not 0: see `dsms.operators.distinct`.
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
from dsms.state.batch import Batch, in_order
from dsms.state.live import LiveInput
from dsms.state.vec import Vec


@njit(cache=True, nogil=True)
def _count(at, sign, row, code, count, seen, o_at, o_sign, o_code, o_row):
    """Live duplicates per value over ordered events; an output row where an instant changes whether
    there are any.

    `row[i]` is the batch row of an arrival.  seen[c] is scratch: 1 + place in the instant's list of
    touched values."""
    found = start = 0
    touched = np.empty(len(at), np.int64)
    before = np.empty(len(at), np.int64)
    first = np.empty(len(at), np.int64)
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
    """The live duplicates of each value, counted."""

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
        ids = begun(self.values, o_code, o_row, o_sign, self.values.beginners(born))
        out = self.values.batch(o_code, o_at, None, o_sign.astype(np.int8), ids)
        return in_order(out)

    def live(self) -> int:
        return self.kept.store.live

    def nbytes(self) -> int:
        return self.kept.nbytes + self.values.nbytes + self.count.nbytes

    def next_due(self) -> int:
        return self.kept.expiry.next_due()
