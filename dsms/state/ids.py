"""Hashed state by identity: finds the slot that a deletion speaks of.

Chains of slots by buckets (`dsms.state.chains`); the ids themselves are compared, so a hash
collision costs time only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.state.batch import Batch
from dsms.state.chains import END, Chains, bucket_of, cut, mask_over, put


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
def same_ids(a, i, b, j):
    """Whether row i of ids has those of row j of others."""
    for k in range(len(a)):  # noqa: SIM110  (any() over a generator does not compile)
        if a[k][i] != b[k][j]:
            return False
    return True


@njit(cache=True, nogil=True)
def put_all(head, link, size, store, slots):
    for slot in slots:
        put(head, link, size, slot, hash_ids(store, slot))


@njit(cache=True, nogil=True)
def find(head, link, size, store, ids, i):
    """The slot whose ids equal ids[i]; END if there is none."""
    buckets = np.uint64(size[0])
    slot = head[bucket_of(hash_ids(ids, i), mask_over(buckets), buckets)]
    while slot != END and not same_ids(store, slot, ids, i):
        slot = link[slot, 0]
    return slot


@njit(cache=True, nogil=True)
def _take(head, link, size, store, exp, ids, i, now):
    """Find and remove the slot whose ids equal ids[i] and which is not dead of age at `now`; END if
    there is none.

    A row may come back under the same ids at the instant at which it died, in the same batch."""
    buckets = np.uint64(size[0])
    at = bucket_of(hash_ids(ids, i), mask_over(buckets), buckets)
    slot, before = head[at], np.int64(END)
    while slot != END and not (exp[slot] > now and same_ids(store, slot, ids, i)):
        before, slot = slot, link[slot, 0]
    if slot != END:
        cut(head, link, size, at, before, slot)
    return slot


@njit(cache=True, nogil=True)
def remove(head, link, size, store, slot):
    """Remove this very slot, if it is there."""
    buckets = np.uint64(size[0])
    at = bucket_of(hash_ids(store, slot), mask_over(buckets), buckets)
    found, before = head[at], np.int64(END)
    while found != END and found != slot:
        before, found = found, link[found, 0]
    if found != END:
        cut(head, link, size, at, before, slot)


@njit(cache=True, nogil=True)
def take_slots(head, link, size, store, slots):
    for slot in slots:
        remove(head, link, size, store, slot)


@njit(cache=True, nogil=True)
def follow(head, link, size, store, exp, ts, sign, ids, first):
    """Insertions and deletions in batch order: the slot each row speaks of (-1: unknown deletion).

    The insertions have been stored at slots first, first + 1, ... in their order; `exp` is by
    slot."""
    out = np.empty(len(sign), np.int64)
    slot = first
    for i in range(len(sign)):
        if sign[i] > 0:
            put(head, link, size, slot, hash_ids(store, slot))
            out[i] = slot
            slot += 1
        else:
            out[i] = _take(head, link, size, store, exp, ids, i, ts[i])
    return out


@dataclass(slots=True)
class IdIndex:
    """Live rows of a RowStore by their ids.  `store` in every call is the tuple of the store's id
    arrays (views)."""

    chains: Chains = field(default_factory=Chains)

    @property
    def made(self) -> bool:
        """Whether it knows the live rows; else it must be given them by `rebuild`."""
        return self.chains.made

    def follow(
        self, store: Sequence[np.ndarray], exp: np.ndarray, batch: Batch, first: int
    ) -> np.ndarray:
        """See `follow`."""
        sign = batch.signs()
        self.chains.reserve(len(exp), len(sign))
        return follow(
            *self.chains.kernel, tuple(store), exp, batch.ts, sign, tuple(batch.ids), first
        )

    def remove(self, store: Sequence[np.ndarray], slots: np.ndarray) -> None:
        """Forget slots (rows that died by themselves)."""
        if self.made:
            take_slots(*self.chains.kernel, tuple(store), slots)

    def rebuild(self, store: Sequence[np.ndarray], live: np.ndarray, slots: int) -> None:
        """Start again with the given live ones of `slots` slots (after compaction)."""
        self.chains.clear(slots, len(live))
        put_all(*self.chains.kernel, tuple(store), live)

    @property
    def nbytes(self) -> int:
        return self.chains.nbytes
