"""What an index keeps of one sub-window: its rows sorted out by the value of a column (Golab, Garg,
Özsu 2004, §5).

`Buckets` are the auxiliary index of a sub-window (AUX, §5.2) as two arrays instead of rings: the
places of the rows, bucket after bucket, and where each bucket begins.  A bucket has all rows whose
values share a hash, so none of the values is kept, and what is found there has to be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.state.columns import numpy_values
from dsms.state.memory import carray, pointer

BITS = 12
BUCKETS = 1 << BITS  # more cost as much room as they save rows to compare
_SHIFT = np.uint64(64 - BITS)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
NARROW = 1 << 16  # rows whose places fit 16 bits
GROUP_BITS = 6
GROUP = 1 << GROUP_BITS  # buckets
TWICE = range(1 << 15, 1 << 26)  # rows that are sorted in two passes; more don't fit what is left


@njit(cache=True, nogil=True)
def _of_words(words, out):
    for i in range(len(words)):
        out[i] = (np.uint64(words[i]) * _FACTOR) >> _SHIFT


@njit(cache=True, nogil=True)
def _word(address):
    """The eight octets that begin there, as a word (anywhere: processors of today load it so)."""
    return carray(pointer(address), (1,), np.uint64)[0]


@njit(cache=True, nogil=True)
def _of_texts(offsets, address, out):
    octets = carray(pointer(address), (1,), np.uint8)
    for i in range(len(out)):
        at, end = np.int64(offsets[i]), np.int64(offsets[i + 1])
        h = np.uint64(end - at)
        if end - at >= 8:
            h = (h ^ _word(address + at)) * _FACTOR
            h ^= h >> np.uint64(29)
            at += 8
            while at + 8 < end:  # not asked for most texts, whose lengths nobody could foretell
                h = (h ^ _word(address + at)) * _FACTOR
                h ^= h >> np.uint64(29)
                at += 8
            word = _word(address + end - 8)  # perhaps some octets again
        else:
            word = np.uint64(0)
            for k in range(at, end):
                word = (word << np.uint64(8)) | np.uint64(octets[k])
        h = (h ^ word) * _FACTOR
        out[i] = ((h ^ (h >> np.uint64(29))) * _FACTOR) >> _SHIFT


@njit(cache=True, nogil=True)
def _sort_many(found, below, present, starts, places):
    """As `_sort_out`, where most buckets have rows: these come in ascending order."""
    n = _begin(found, below, present, starts)
    for i in range(len(found)):
        at = below[found[i]]
        places[at] = i
        below[found[i]] = at + 1
    below[:] = -1
    return n


@njit(cache=True, nogil=True)
def _begin(found, below, present, starts):
    """Where each bucket begins; how many have rows."""
    below[:] = 0
    for i in range(len(found)):
        below[found[i]] += 1
    n = start = 0
    for bucket in range(len(below)):
        rows = below[bucket]
        below[bucket] = start
        if rows:
            present[n] = bucket
            starts[n] = start
            n += 1
        start += rows
    starts[n] = start
    return n


@njit(cache=True, nogil=True)
def _sort_twice(found, below, present, starts, places):
    """As `_sort_many`, of so many rows that they are sorted by groups of 64 buckets first: so each
    pass writes to few places at a time, which a cache holds."""
    n = _begin(found, below, present, starts)
    bits, low, one = np.uint32(GROUP_BITS), np.uint32(GROUP - 1), np.uint32(1)
    there, halfway = below.astype(np.uint32), np.empty(len(found), np.uint32)
    ends = there[::GROUP].copy()
    for i in range(len(found)):
        bucket = np.uint32(found[i])
        at = ends[bucket >> bits]
        ends[bucket >> bits] = at + one
        halfway[at] = (np.uint32(i) << bits) | (bucket & low)
    i = 0
    for group in range(len(ends)):
        first = np.uint32(group) << bits
        while i < ends[group]:
            bucket = first + (halfway[i] & low)
            at = there[bucket]
            there[bucket] = at + one
            places[at] = halfway[i] >> bits
            i += 1
    below[:] = -1
    return n


@njit(cache=True, nogil=True)
def _sort_out(found, slot, present, starts, places):
    """Sort rows by bucket, stably; how many buckets there are.

    slot: int32[BUCKETS], -1 before and after.  present, starts: room for all that may be there."""
    n = 0
    for i in range(len(found)):
        at = slot[found[i]]
        if at < 0:
            at = n
            slot[found[i]] = n
            present[n] = found[i]
            starts[n] = 0
            n += 1
        starts[at] += 1
    below = 0
    for at in range(n):  # where each begins
        starts[at], below = below, below + starts[at]
    for i in range(len(found)):
        at = slot[found[i]]
        places[starts[at]] = i
        starts[at] += 1
    for at in range(n, 0, -1):  # each has moved on to where the next begins
        starts[at] = starts[at - 1]
    starts[0] = 0
    for at in range(n):
        slot[present[at]] = -1
    return n


@njit(cache=True, nogil=True)
def _gather(places, starts, at, out):
    """The places of the rows of those buckets."""
    n = 0
    for k in range(len(at)):
        for i in range(starts[at[k]], starts[at[k] + 1]):
            out[n] = places[i]
            n += 1


def buckets_of(col: pa.Array) -> np.ndarray:
    """The bucket of each value, uint16[n]; arbitrary where NULL.  The type is INT, TIMESTAMP,
    INTERVAL, DECIMAL, STRING or BYTES in its physical form."""
    out = np.empty(len(col), np.uint16)
    if not len(col):
        return out
    if pa.types.is_int64(col.type):
        _of_words(numpy_values(col), out)
    elif pa.types.is_decimal128(col.type):
        both = np.frombuffer(col.buffers()[1], np.int64)
        lower = both[2 * col.offset : 2 * (col.offset + len(col)) : 2].copy()
        lower.flags.writeable = False  # as other columns are, so that one kernel will do
        _of_words(lower, out)
    else:
        _, offsets, octets = col.buffers()
        ends = np.frombuffer(offsets, np.int32)[col.offset : col.offset + len(col) + 1]
        _of_texts(ends, 0 if octets is None else octets.address, out)
    return out


@dataclass(frozen=True, slots=True)
class Buckets:
    """n rows in d buckets.

    present  uint16[d]: the buckets
    starts   int32[d + 1]: where the rows of each begin in `places`
    places   uint16 or int32[n]: the rows, bucket after bucket, ascending in each
    """

    present: np.ndarray
    starts: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, col: pa.Array, slot: np.ndarray) -> Buckets:
        """The rows of a column; `slot`: int32[BUCKETS] of -1, to work with."""
        n = len(col)
        places = np.empty(n, np.uint16 if n <= NARROW else np.int32)
        return cls._sorted_out(buckets_of(col), slot, places)

    @classmethod
    def _sorted_out(cls, found: np.ndarray, slot: np.ndarray, places: np.ndarray) -> Buckets:
        most = min(len(found), BUCKETS)
        present, starts = np.empty(most, np.uint16), np.empty(most + 1, np.int32)
        sort = _sort_out if len(found) < BUCKETS else _sort_many
        sort = _sort_twice if len(found) in TWICE else sort
        d = sort(found, slot, present, starts, places)
        return cls(present[:d].copy(), starts[: d + 1].copy(), places)

    def rows(self, at: int) -> np.ndarray:
        """The rows of the `at`-th bucket."""
        return self.places[self.starts[at] : self.starts[at + 1]]

    def rows_of(self, at: np.ndarray) -> np.ndarray:
        """The rows of some buckets, int64, ascending."""
        out = np.empty(self.counted(at), np.int64)
        _gather(self.places, self.starts, at, out)
        out.sort()
        return out

    def counted(self, at: np.ndarray) -> int:
        """How many rows those buckets have."""
        return int((self.starts[at + 1] - self.starts[at]).sum())

    @property
    def nbytes(self) -> int:
        return int(self.present.nbytes + self.starts.nbytes + self.places.nbytes)

    @classmethod
    def ready(cls) -> None:
        """Have the kernels compiled or loaded now."""
        slot = np.full(BUCKETS, -1, np.int32)
        for col in (pa.array([1]), pa.array(["a"])):
            found = buckets_of(col)
            for width in (np.uint16, np.int32):
                cls._sorted_out(found, slot, np.empty(1, width)).rows_of(np.zeros(1, np.int64))
                for rows in (BUCKETS, TWICE.start):
                    many = np.zeros(rows, np.uint16)
                    cls._sorted_out(many, slot, np.empty(rows, width))
