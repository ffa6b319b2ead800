"""What an eager operator knows of one input: its live rows, and the order in which they came and
went.

Turns a batch into events: arrivals, announced deletions, and the expirations that fall due, all in
one order (instant, departures before arrivals), each naming the slot of its row.  This is where the
strategies differ and all operators above are the same: which structure finds the expired rows is
the planner's choice (`dsms.state.expiry`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.plan.physical import State
from dsms.sql.types import Schema
from dsms.state.batch import Batch
from dsms.state.expiry import Expiry, Searched, expiry_of
from dsms.state.ids import IdIndex
from dsms.state.rows import RowStore


@dataclass(slots=True)
class Events:
    """at int64[n] instants, sign int8[n], slot int64[n]; by (at, departures first).

    Departures of one instant stand in order of their expiry structure or batch; arrivals in batch
    order.
    """

    at: np.ndarray
    sign: np.ndarray
    slot: np.ndarray

    def __len__(self) -> int:
        return len(self.at)


@njit(cache=True, nogil=True)
def merge_events(at, sign, slot, due_at, due_slot):
    """Merge batch events with expirations; at equal instants expirations stand before arrivals."""
    n, m = len(at), len(due_at)
    out_at, out_sign, out_slot = (
        np.empty(n + m, np.int64),
        np.empty(n + m, np.int8),
        np.empty(n + m, np.int64),
    )
    i = j = k = 0
    while i < n or j < m:
        if j < m and (i == n or due_at[j] < at[i] or (due_at[j] == at[i] and sign[i] > 0)):
            out_at[k], out_sign[k], out_slot[k] = due_at[j], -1, due_slot[j]
            j += 1
        else:
            out_at[k], out_sign[k], out_slot[k] = at[i], sign[i], slot[i]
            i += 1
        k += 1
    return out_at, out_sign, out_slot


@dataclass(slots=True)
class LiveInput:
    """Live rows of one input, kept as `state` says.

    schema, width  of the input edge;  keep  positions of the value columns that must be stored
                   (None: all)
    strict         the input may carry deletions
    eager_instants look for expired rows at every instant of the batch instead of once a step
    (benchmarks)
    look_every     µs between two looks instead (benchmarks set it on a filled window); 0: as said
                   by the others
    """

    schema: Schema
    width: int
    state: State
    strict: bool
    keep: tuple[int, ...] | None = None
    eager_instants: bool = False
    look_every: int = 0
    looked: int | None = None
    store: RowStore = field(init=False)
    expiry: Expiry = field(init=False)
    index: IdIndex | None = field(init=False)

    def __post_init__(self) -> None:
        self.store = RowStore(self.schema, self.width, self.keep)
        self.expiry = expiry_of(self.state, self.store)
        self.index = IdIndex() if self.strict else None

    def arrive(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Store the insertions and find the deleted rows: (slots of the new rows, slot of each
        batch row; -1 unknown).

        `store.extra` columns of the new slots are the caller's to extend before `depart` is
        called."""
        if self.index is not None and not self.index.made:
            live = np.flatnonzero(self.store.alive.view)
            self.index.rebuild(self._ids(), live, len(self.store))
        born = batch
        if self.index is not None and batch.sign is not None:
            born = batch.take(np.flatnonzero(batch.sign > 0))
        slots = spoken = self.store.append(born)
        if self.index is not None:
            first = len(self.store) - len(slots)
            spoken = self.index.follow(self._ids(), self.store.exp.view, batch, first)
        self.expiry.insert(slots)
        return slots, slots if batch.sign is None else spoken

    def _ids(self) -> Sequence[np.ndarray]:
        return [v.view for v in self.store.ids]

    def depart(self, batch: Batch, spoken: np.ndarray, upto: int) -> Events:
        """The events of this step up to `upto`; the departed rows are buried (still readable until
        `settle`)."""
        sign = batch.signs()
        at = batch.ts
        if self.strict and batch.sign is not None:
            known = spoken >= 0
            if not known.all():
                at, sign, spoken = at[known], sign[known], spoken[known]
            self.store.bury(spoken[sign < 0])
        due = self.expiry.due(self._checks(batch, upto))
        if len(due):
            self.store.bury(due)
            if self.index is not None:
                self.index.remove(self._ids(), due)
        return Events(*merge_events(at, sign, spoken, self.store.exp.view[due], due))

    def _checks(self, batch: Batch, upto: int) -> np.ndarray:
        if self.look_every:
            first = upto if self.looked is None else self.looked + self.look_every
            self.looked = upto
            return np.append(np.arange(first, upto, self.look_every), upto)
        if not self.eager_instants or not len(batch):
            return np.array([upto], np.int64)
        return np.unique(np.append(batch.ts, upto))

    def settle(self) -> np.ndarray | None:
        """End of a step: close gaps if worth it; the new slot of each old one, or None if nothing
        moved."""
        searched = self.look_every > 0 and isinstance(self.expiry, Searched)
        # else the list would be longer than what it is said to hold
        where = self.store.compact(tight=searched)
        if where is not None:
            self._moved()
        return where

    def let_go(self, slots: np.ndarray) -> np.ndarray:
        """Forget these rows (distinct, alive) and all dead ones at once: the new slot of each old
        one (-1: forgotten)."""
        self.store.bury(slots)
        where = self.store.close()
        self._moved()
        return where

    def _moved(self) -> None:
        self.expiry.moved()
        if self.index is not None:
            n = len(self.store)
            self.index.rebuild(self._ids(), np.arange(n, dtype=np.int64), n)

    @property
    def nbytes(self) -> int:
        return (
            self.store.nbytes
            + self.expiry.nbytes
            + (self.index.nbytes if self.index is not None else 0)
        )
