"""A hash index for each attribute of a window's rows: what answers probes of any attributes fastest
where memory is no concern.

State    for each attribute a chain of slots by hash of the value, youngest first; two words a row
         and attribute.
Probe    walks the chain of the given attribute with the most values, and compares the others: O(1 +
         rows of that value).
Answers  as `BitIndex`, which has one order of rows for all attributes.
Twin     a filter over all rows, tests/test_bit_index.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.state.bit_kernels import GONE, listed, matches, mixed
from dsms.state.bits import IndexedRows, Probes
from dsms.state.vec import Matrix

LEAST = 1024  # chains of an attribute


@njit(cache=True, nogil=True)
def chain_attributes(head, link, start, words, ends):
    """Put slots [start, ...) on top of the chains of all their attributes."""
    shift = np.uint64(64)
    size = len(head)
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    for slot in range(start, len(words)):
        for a in range(words.shape[1]):
            link[slot, a] = -1
            if ends[slot] != GONE:
                bucket = np.int64(mixed(words[slot, a]) >> shift)
                link[slot, a] = head[bucket, a]
                head[bucket, a] = slot


@njit(cache=True, nogil=True)
def probe_chains(
    head, link, by, first, keys, given, when, sign, tied, start, enough, words, ts, ends, told,
    seen,
):  # many arrays  # fmt: skip
    """As `bit_kernels.probe`, by the chains of attribute `by` (one of those given); no slot before
    `first` is alive."""
    shift = np.uint64(64)
    size = len(head)
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    rows, slots = np.empty(256, np.int64), np.empty(256, np.int64)
    n, r = 0, start
    while r < len(keys) and n < enough:
        seen[1] += 1
        slot = head[np.int64(mixed(keys[r, by]) >> shift), by]
        while slot >= first:
            seen[0] += 1
            if matches(slot, r, keys, given, when, sign, tied, words, ts, ends, told):
                rows, slots = listed(rows, slots, n, r, slot)
                n += 1
            slot = link[slot, by]
        r += 1
    return rows[:n], slots[:n], r


@njit(cache=True, nogil=True)
def different(words, start):
    """float64[attributes]: how many values each has in the rows from `start` on."""
    size = 2
    while size < 2 * (len(words) - start):
        size *= 2
    mask = np.uint64(size - 1)
    out = np.zeros(words.shape[1], np.float64)
    for a in range(words.shape[1]):
        table, there = np.empty(size, np.int64), np.zeros(size, np.bool_)
        for row in range(start, len(words)):
            at = mixed(words[row, a]) >> np.uint64(7) & mask
            while there[at] and table[at] != words[row, a]:
                at = (at + np.uint64(1)) & mask
            if not there[at]:
                table[at], there[at] = words[row, a], True
                out[a] += 1
    return out


def ready() -> None:
    """Have the kernel that few rows don't meet compiled or loaded now."""
    different(np.zeros((1, 1), np.int64), 0)


@dataclass(slots=True)
class HashChains:
    """values  different values of each attribute, of late
    filed   slots that are in the chains"""

    attributes: int
    values: tuple[float, ...] = ()
    head: np.ndarray = field(init=False)
    link: Matrix = field(init=False)
    filed: int = 0
    fresh: int = 0

    def __post_init__(self) -> None:
        self.values = (1.0,) * self.attributes
        self.head = np.full((LEAST, self.attributes), -1, np.int64)
        self.link = Matrix(width=self.attributes)

    @property
    def open_rows(self) -> int:
        """Rows since values were counted."""
        return self.fresh

    def file(self, rows: IndexedRows) -> None:
        """Slots that have come behind those that are filed."""
        n = len(rows.ts)
        self.fresh += n - self.filed
        self.link.reserve(n - self.filed)
        self.link.n = n
        if n > len(self.head):
            size = len(self.head)
            while size < 2 * n:
                size *= 2
            self.head = np.full((size, self.attributes), -1, np.int64)
            self.filed = 0
        chain_attributes(self.head, self.link.view, self.filed, rows.words, rows.ends)
        self.filed = n

    def probe(
        self, rows: IndexedRows, probes: Probes, start: int, enough: int, seen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """See `BitIndex.probe`; some attribute must be given."""
        return probe_chains(
            *(self.head, self.link.view, self._by(probes.given), rows.first, probes.keys),
            *(probes.given, probes.when, probes.sign, probes.tied, start, enough),
            *(rows.words, rows.ts, rows.ends, rows.told, seen),
        )

    def _by(self, given: int) -> int:
        return max(
            (a for a in range(self.attributes) if given >> a & 1),
            key=lambda a: (self.values[a], -a),
        )

    def share(self, given: int) -> float:
        """The share of all rows that a probe looks at, about."""
        return 1.0 / self.values[self._by(given)]

    def count(self, rows: IndexedRows) -> None:
        """Count the values of the rows that have come of late."""
        start = max(0, len(rows.words) - self.fresh)
        self.values = tuple(different(rows.words, start).tolist())
        self.fresh = 0

    def renumber(self, rows: IndexedRows) -> None:
        """Slots are others now."""
        self.head = np.full((LEAST, self.attributes), -1, np.int64)
        self.link, self.filed = Matrix(width=self.attributes), 0
        fresh = min(self.fresh, len(rows.ts))
        self.file(rows)
        self.fresh = fresh

    @property
    def nbytes(self) -> int:
        return int(self.head.nbytes + self.link.nbytes)
