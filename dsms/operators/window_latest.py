"""What a stream with KEY holds: of each key the last row of the window below, unless it deletes.

Input    rows that leave in the order in which they came (MON, WKS; NT: announced).
State    the last row of each key that is there: what is replaced, deletes or is deleted is gone.
Cost     O(1) a row.
Output   STR: a row leaves when the next one with its key comes, or as the window lets go of it.

It is [PARTITION BY key ROWS 1] (Golab 2006, §2.1) over that window, less the rows that delete; of
the rows of one instant the last one counts, and the others never enter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
from numba import njit

from dsms.plan.physical import State
from dsms.sql.keyed import DELETE
from dsms.sql.types import FOREVER, Schema
from dsms.sql.window import Latest
from dsms.state.batch import Batch
from dsms.state.columns import numpy_values
from dsms.state.intern import Intern
from dsms.state.live import LiveInput
from dsms.state.vec import Vec


@njit(cache=True, nogil=True)
def _replace(at, sign, slot, code, deletes, first, ts, exp, current, enter, leave, gone):
    """Events in order; answers the number of deletions that have met no row.

    first       slots from there on are of this batch, whose events are places in `came`
    current[c]  slot of the key's row, -1: it has none
    enter[i], leave[i]  slots that enter and leave with event i, -1: none; gone[i] the slot that
                event i makes nobody's: a row that is replaced, or the deletion itself"""
    came = np.full(len(at), -1, np.int64)
    missed = 0
    for i in range(len(at)):
        s = slot[i]
        c = code[s]
        old = current[c]
        if sign[i] < 0:
            if old == s:
                current[c] = -1
                if exp[s] > at[i]:
                    leave[i] = s
            continue
        if old >= 0:
            if old >= first and ts[old] == at[i]:
                enter[came[old - first]] = -1
            else:
                leave[i] = old
            gone[i] = old
        if deletes[s]:
            missed += old < 0
            current[c] = -1
            continue
        came[s - first] = i
        current[c] = s
        enter[i] = s
    return missed


@dataclass(slots=True)
class LatestWindowOp:
    """The last row of each key, by (ts, arrival), unless it deletes.

    unmatched  how many deletions have met no row"""

    window: Latest
    schema: Schema
    width: int
    state: State
    strict: bool
    unmatched: int = 0
    kept: LiveInput = field(init=False)
    codes: Intern = field(init=False)
    current: Vec = field(default_factory=Vec)

    def __post_init__(self) -> None:
        self.kept = LiveInput(self.schema, self.width, self.state, self.strict)
        self.kept.store.extra.update(code=Vec(), deletes=Vec(np.bool_))
        self.codes = Intern(len(self.window.by))

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        born = rows if rows.sign is None else rows.take(np.flatnonzero(rows.sign > 0))
        store, extra = self.kept.store, self.kept.store.extra
        first = len(store)
        _, spoken = self.kept.arrive(rows)
        extra["code"].extend(self.codes.codes([born.cols[k] for k in self.window.by], len(born)))
        deletes = pc.equal(born.cols[self.window.operation], DELETE)
        extra["deletes"].extend(numpy_values(deletes))
        self.current.extend_fill(self.codes.capacity - self.current.n, -1)
        events = self.kept.depart(rows, spoken, upto)
        enter, leave, gone = (np.full(len(events), -1, np.int64) for _ in range(3))
        self.unmatched += _replace(
            events.at,
            events.sign,
            events.slot,
            extra["code"].data,
            extra["deletes"].data,
            first,
            store.ts.data,
            store.exp.data,
            self.current.data,
            enter,
            leave,
            gone,
        )
        out = self._output(events.at, enter, leave)
        self._bury(events.slot[(events.sign > 0) & extra["deletes"].view[events.slot]], gone)
        return out

    def _output(self, at: np.ndarray, enter: np.ndarray, leave: np.ndarray) -> Batch:
        entered, left = np.flatnonzero(enter >= 0), np.flatnonzero(leave >= 0)
        slots = np.concatenate([leave[left], enter[entered]])
        at = np.concatenate([at[left], at[entered]])
        sign = np.ones(len(slots), np.int8)
        sign[: len(left)] = -1
        exp = self.kept.store.exp.view[slots]
        exp[: len(left)] = FOREVER
        order = np.lexsort((sign, at))
        return self.kept.store.batch(slots[order], at[order], sign[order], exp[order])

    def _bury(self, deleting: np.ndarray, gone: np.ndarray) -> None:
        store = self.kept.store
        dead = np.concatenate([deleting, gone[gone >= 0]])
        dead = dead[store.alive.view[dead]]  # others have expired by now
        store.bury(dead)
        if self.kept.index is not None:
            self.kept.index.remove([v.view for v in store.ids], dead)
        where = self.kept.settle()
        live = self.current.view >= 0
        if where is not None:
            self.current.view[live] = where[self.current.view[live]]
        if self.codes.wants_purge(store.live):
            self.codes.purge(live)

    def live(self) -> int:
        return self.kept.store.live

    def nbytes(self) -> int:
        return self.kept.nbytes + self.codes.nbytes + self.current.nbytes

    def next_due(self) -> int:
        return self.kept.expiry.next_due()
