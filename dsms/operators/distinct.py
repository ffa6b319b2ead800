"""DISTINCT in its three forms, and the values that each of them knows (Golab 2006, §2.2.2, §3.2.2,
§3.5.2).

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

from dataclasses import dataclass, field, replace

import numpy as np
from numba import njit

from dsms.operators.pieces import Look
from dsms.plan.identity import timed, width
from dsms.sql import logical as lp
from dsms.state.batch import Batch
from dsms.state.intern import Intern
from dsms.state.rows import RowStore
from dsms.state.vec import Vec


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

    def lives(self, codes: np.ndarray, began: np.ndarray, batch: Batch) -> tuple[np.ndarray, ...]:
        """The ids of those values' lives: of the batch row that began each, or, where that is -1,
        as they are known."""
        here = began >= 0
        ids = tuple(vec.view[codes] for vec in self.life)
        for column, arrived in zip(ids, batch.ids, strict=True):
            column[here] = arrived[began[here]]
        return ids

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


@njit(cache=True, nogil=True)
def _last_begun(code, row, sign, last, out):
    """For each output row in order, the batch row that began the value's life (-1: before this
    batch)."""
    for i in range(len(code)):
        if sign[i] > 0 and row[i] >= 0:
            last[code[i]] = row[i]
        out[i] = last[code[i]]


def begun(
    values: Values, code: np.ndarray, row: np.ndarray, sign: np.ndarray, born: Batch
) -> tuple[np.ndarray, ...]:
    """ids of output rows in instant order, and the beginnings noted; a birth with row >= 0 begins a
    life."""
    last, began = np.full(values.slot.n, -1, np.int64), np.empty(len(code), np.int64)
    _last_begun(code, row, sign, last, began)
    ids = values.lives(code, began, born)
    started = np.flatnonzero(last >= 0)
    values.begin(started, born, last[started])
    return ids
