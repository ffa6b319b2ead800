"""DISTINCT over input without deletions, in space O(distinct values) (Golab 2006, §3.5.2).

The death of a row is known when it comes, so of a value's duplicates only the longest-lived is
kept: see `dsms.operators.distinct`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.operators.basic import by_parts
from dsms.operators.distinct import Values
from dsms.operators.letting_go import Promise, equal_to, merged
from dsms.operators.pieces import InStretches, Look, go_on
from dsms.operators.sweeping import Sweep
from dsms.plan.identity import order
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch, in_order
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
            o_at[found], o_exp[found] = out_exp[c], aux_exp[c]
            o_code[found], o_life[found] = c, life[c]
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
            o_at[found], o_exp[found] = out_exp[c], aux_exp[c]
            o_code[found], o_life[found] = c, life[c]
            found += 1
            out_exp[c], aux_exp[c] = aux_exp[c], ALWAYS
    return found


@dataclass(slots=True)
class DeltaStarOp(InStretches):
    """δ*: of each value its output row, and the death of its longest-lived duplicate.

    sweep  promises by which values have to be looked for"""

    node: lp.Distinct
    values: Values = field(init=False)
    out_exp: Vec = field(default_factory=Vec)
    aux_exp: Vec = field(default_factory=Vec)
    alive: int = 0
    sweep: Sweep[Promise] = field(default_factory=Sweep)

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
        if not self.sweep.idle:
            self._sweep(look=look)
        return out

    def _output(
        self, rows: Batch, at: np.ndarray, exp: np.ndarray, code: np.ndarray, began: np.ndarray
    ) -> Batch:
        ids = self.values.lives(code, began, rows)
        return in_order(self.values.batch(code, at, exp, None, ids))

    def let_go(self, columns: Sequence[int], values: Sequence[pa.Array]) -> None:
        """No row comes any more whose `columns` have one of the combinations of `values`: what
        stays for ever is not asked for again."""
        if sorted(columns) == list(range(len(self.node.schema))):
            in_order = [values[columns.index(c)] for c in range(len(columns))]
            codes = np.unique(self.values.codes.lookup(in_order, len(values[0])))
            self._forget(self._lasting(codes[codes >= 0]))
            return
        self.sweep.promised((tuple(columns), list(values), None), len(values[0]))
        self._sweep(len(values[0]))

    def _sweep(self, many: int = 0, look: Look = go_on) -> None:
        """Let go of values of which something was promised, if it is time to look for some."""
        found = list[np.ndarray]()
        for _, codes in self.sweep.places([self.out_exp.n], many, look):
            if len(self.sweep.walking) > 1:
                self.sweep.walking = merged(self.sweep.walking)
            live = self._lasting(codes)
            slots = self.values.slot.view[live]
            for columns, values, _ in self.sweep.walking:
                known = [self.values.rows.cols[c].gather(slots) for c in columns]
                found.append(live[equal_to(known, values)])
        self.sweep.ended()
        if found:
            self._forget(dead := np.unique(np.concatenate(found)))
            self.sweep.freed(len(dead))

    def _lasting(self, codes: np.ndarray) -> np.ndarray:
        """Those of these values that stay for ever."""
        return codes[self.out_exp.view[codes] == FOREVER]

    def _forget(self, dead: np.ndarray) -> None:
        self.out_exp.view[dead] = self.aux_exp.view[dead] = ALWAYS
        self.alive -= len(dead)
        if self.values.codes.wants_purge(self.alive):
            left = self.out_exp.view > ALWAYS
            self.alive = int(np.count_nonzero(left))
            self.values.purge(left, self.alive)

    def live(self) -> int:
        return self.alive

    def nbytes(self) -> int:
        return self.values.nbytes + self.out_exp.nbytes + self.aux_exp.nbytes

    def next_due(self) -> int:
        waiting = self.aux_exp.view > self.out_exp.view
        return int(self.out_exp.view[waiting].min()) if waiting.any() else FOREVER
