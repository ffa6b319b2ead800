"""Hashed state by identity: finds the slot that a deletion speaks of.

Open addressing with linear probing over slots; the ids themselves are compared, so a hash collision
costs time only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.state.batch import Batch

FREE, TOMB = -1, -2


@njit(cache=True, nogil=True)
def hash_ids(ids, i):
    """64-bit mix of the ids of row i; `ids` is a tuple of int64 arrays."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for part in ids:
        h ^= np.uint64(part[i])
        h *= np.uint64(0xFF51AFD7ED558CCD)
        h ^= h >> np.uint64(32)
    return h


@njit(cache=True, nogil=True)
def _same(a, i, b, j):
    for k in range(len(a)):  # noqa: SIM110  (any() over a generator does not compile)
        if a[k][i] != b[k][j]:
            return False
    return True


@njit(cache=True, nogil=True)
def _put(table, store, slot):
    mask = np.uint64(len(table) - 1)
    at = hash_ids(store, slot) & mask
    while table[at] >= 0:
        at = (at + np.uint64(1)) & mask
    table[at] = slot


@njit(cache=True, nogil=True)
def put_all(table, store, slots):
    for slot in slots:
        _put(table, store, slot)


@njit(cache=True, nogil=True)
def _take(table, store, exp, ids, i, now):
    """Find and remove the slot whose ids equal ids[i] and which is not dead of age at `now`; -1 if
    there is none.

    A row may come back under the same ids at the instant at which it died, in the same batch."""
    mask = np.uint64(len(table) - 1)
    at = hash_ids(ids, i) & mask
    while table[at] != FREE:
        slot = table[at]
        if slot >= 0 and exp[slot] > now and _same(store, slot, ids, i):
            table[at] = TOMB
            return slot
        at = (at + np.uint64(1)) & mask
    return np.int64(-1)


@njit(cache=True, nogil=True)
def _remove(table, store, slot):
    """Remove this very slot, if it is there."""
    mask = np.uint64(len(table) - 1)
    at = hash_ids(store, slot) & mask
    while table[at] != FREE:
        if table[at] == slot:
            table[at] = TOMB
            return
        at = (at + np.uint64(1)) & mask


@njit(cache=True, nogil=True)
def take_slots(table, store, slots):
    for slot in slots:
        _remove(table, store, slot)


@njit(cache=True, nogil=True)
def follow(table, store, exp, ts, sign, ids, first):
    """Insertions and deletions in batch order: the slot each row speaks of (-1: unknown deletion).

    The insertions have been stored at slots first, first + 1, ... in their order; `exp` is by
    slot."""
    out = np.empty(len(sign), np.int64)
    slot = first
    for i in range(len(sign)):
        if sign[i] > 0:
            _put(table, store, slot)
            out[i] = slot
            slot += 1
        else:
            out[i] = _take(table, store, exp, ids, i, ts[i])
    return out


@dataclass(slots=True)
class IdIndex:
    """Live rows of a RowStore by their ids.  `store` in every call is the tuple of the store's id
    arrays (views)."""

    table: np.ndarray = field(default_factory=lambda: np.full(256, FREE, np.int64))
    used: int = 0  # places that are not FREE, at most

    def follow(
        self,
        store: Sequence[np.ndarray],
        exp: np.ndarray,
        batch: Batch,
        first: int,
        live: np.ndarray,
    ) -> np.ndarray:
        """See `follow`; `live` are the slots alive before this batch, used if the table must
        grow."""
        sign = batch.signs()
        if 2 * (self.used + len(sign)) > len(self.table):
            self.rebuild(store, live, room=len(sign))
        self.used += len(sign)
        return follow(self.table, tuple(store), exp, batch.ts, sign, tuple(batch.ids), first)

    def remove(self, store: Sequence[np.ndarray], slots: np.ndarray) -> None:
        """Forget slots (rows that died by themselves)."""
        take_slots(self.table, tuple(store), slots)

    def rebuild(self, store: Sequence[np.ndarray], live: np.ndarray, room: int = 0) -> None:
        """Start again with the given live slots (after growth or compaction)."""
        size = 256
        while size < 4 * (len(live) + room):
            size *= 2
        self.table = np.full(size, FREE, np.int64)
        self.used = len(live)
        put_all(self.table, tuple(store), live)

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes)
