"""Chains of items by buckets, of which there are always about two for an item (linear hashing:
Litwin 1980, Linear Hashing: A New Tool for File and Table Addressing).

There is no instant at which a table doubles: with each item that comes, the next bucket in turn
gives up those of its items that belong into the bucket that is new, and no item is moved but by
that.  Who has the items says what their hashes are, and walks the chains to find one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.state.lengthening import grown

END = -1
FEWEST = 256  # buckets


@njit(cache=True, nogil=True)
def mask_over(buckets):
    """The bits of a hash by which so many buckets (uint64) are told apart."""
    mask = buckets - np.uint64(1)
    mask |= mask >> np.uint64(1)
    mask |= mask >> np.uint64(2)
    mask |= mask >> np.uint64(4)
    mask |= mask >> np.uint64(8)
    mask |= mask >> np.uint64(16)
    return mask | (mask >> np.uint64(32))


@njit(cache=True, nogil=True)
def bucket_of(h, mask, buckets):
    """The bucket of a hash: where one bit too many leads behind the last one, the one that it will
    be split from."""
    b = h & mask
    if b >= buckets:
        b &= mask >> np.uint64(1)
    return b


@njit(cache=True, nogil=True)
def _split(head, link, mask, new):
    """The bucket `new`, which is the next one, gets what belongs there."""
    old = new & (mask >> np.uint64(1))
    item = head[old]
    stay = go = np.int64(END)
    while item != END:
        rest = link[item, 0]
        if np.uint64(link[item, 1]) & mask == new:
            link[item, 0], go = go, item
        else:
            link[item, 0], stay = stay, item
        item = rest
    head[old], head[new] = stay, go


@njit(cache=True, nogil=True)
def put(head, link, size, item, h):
    """Put an item of hash `h` into its chain; then there are buckets more.  There is room for it
    (`Chains.reserve`)."""
    buckets = np.uint64(size[0])
    mask = mask_over(buckets)
    at = bucket_of(h, mask, buckets)
    link[item, 0], link[item, 1], head[at] = head[at], np.int64(h), item
    size[1] += 1
    while size[0] < 2 * size[1]:
        new = np.uint64(size[0])
        if new > mask:
            mask = mask_over(new + np.uint64(1))
        _split(head, link, mask, new)
        size[0] += 1


@njit(cache=True, nogil=True)
def cut(head, link, size, at, before, item):
    """Take an item out of the chain of bucket `at`: it stands behind `before`, or (END) first."""
    if before == END:
        head[at] = link[item, 0]
    else:
        link[before, 0] = link[item, 0]
    size[1] -= 1


@dataclass(slots=True)
class Chains:
    """head   int64 by bucket: the first item of its chain, END: none
    link   int64[., 2] by item: the next one of the chain, and the item's hash
    size   int64[2]: buckets in use, items in chains; kernels count on in it

    kernel what kernels take

    It is not kept in states, but made anew of what it leads to: see `made`."""

    head: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    link: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int64))
    size: np.ndarray = field(default_factory=lambda: np.zeros(2, np.int64))

    @property
    def kernel(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.head, self.link, self.size

    @property
    def made(self) -> bool:
        """Whether there are buckets; else items are to be put in with `clear` before all."""
        return bool(self.size[0])

    def clear(self, items: int, more: int) -> None:
        """No items in chains; numbers of items are below `items`, and so many will be put in."""
        buckets = max(FEWEST, 2 * more)
        if buckets > len(self.head) or 4 * buckets < len(self.head):
            self.head = np.empty(buckets, np.int64)
        self.head[:buckets] = END
        if 4 * items < len(self.link):
            self.link = np.empty((items, 2), np.int64)
        self.size[:] = buckets, 0
        self.reserve(items, 0)

    def reserve(self, items: int, more: int) -> None:
        """Numbers of items are below `items`, and `more` of them will come."""
        self.link = grown(self.link, items, None)
        buckets = max(int(self.size[0]), 2 * (int(self.size[1]) + more))
        self.head = grown(self.head, buckets, None)

    def __getstate__(self) -> dict[str, np.ndarray]:
        return {}

    def __setstate__(self, state: dict[str, np.ndarray]) -> None:
        Chains.__init__(self)

    @property
    def nbytes(self) -> int:
        return int(self.head.nbytes + self.link.nbytes)
