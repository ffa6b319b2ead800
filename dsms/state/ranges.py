"""Rows of closed sub-windows whose values of a column lie in a range: a sorted list for each
(Golab, Garg, Özsu 2004, §4.1: L, sorted where order is asked for).

A list has the places of the rows in the order of their values, and none of the values: a binary
search looks these up in the column.  It goes by a word of each value that never falls where values
rise: the value itself, or of DECIMAL and texts what fits eight octets; rows that a search by such
words has found are compared as well.  NaN is above all numbers, and NULL in no range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms.state.batch import Batch
from dsms.state.columns import numpy_true, numpy_valid
from dsms.state.index import known
from dsms.state.memory import carray, pointer
from dsms.state.probing import place_at
from dsms.state.ring import Ring, SubWindow
from dsms.state.stores import NARROW

LARGE = 1 << 20  # rows from which a sub-window is not sorted: that would take too long at once
MOST = 8  # where more than an eighth of a sub-window's rows matter, it is read
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
INTS, FLOATS, DECIMALS, TEXTS = range(4)
COMPARE = {
    "eq": pc.equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}
_INFINITE = 0x7FF0000000000000
_SIGN = np.uint64(1 << 63)


@njit(cache=True, nogil=True)
def _word(kind, values, octets, i):
    """The word of the i-th value of a column; `values`, `octets`: addresses."""
    if kind == INTS:
        return carray(pointer(values), (1,), np.int64)[i]
    if kind == FLOATS:
        bits = carray(pointer(values), (1,), np.int64)[i]
        if bits & GREATEST > _INFINITE:
            return np.int64(GREATEST)  # NaN
        return bits if bits >= 0 else (bits ^ GREATEST) + 1  # -0.0 is 0.0
    if kind == DECIMALS:
        both = carray(pointer(values), (1,), np.int64)
        low, high = both[2 * i], both[2 * i + 1]
        if high == low >> 63:
            return low
        return np.int64(GREATEST) if high >= 0 else np.int64(LEAST)
    ends = carray(pointer(values), (1,), np.int32)
    text, start, length = carray(pointer(octets), (1,), np.uint8), ends[i], ends[i + 1] - ends[i]
    word = np.uint64(0)
    for k in range(8):
        word = word << np.uint64(8)
        if k < length:
            word |= np.uint64(text[start + k])
    return np.int64(word ^ _SIGN)


@njit(cache=True, nogil=True)
def _words(kind, values, octets, out):
    for i in range(len(out)):
        out[i] = _word(kind, values, octets, i)


@njit(cache=True, nogil=True)
def _of(list_, kind, i):
    """The word of the i-th row of a list."""
    return _word(kind, list_[3], list_[4], place_at(list_[0], list_[1], i))


@njit(cache=True, nogil=True)
def _first(list_, kind, word, low, high):
    """Where the first row stands whose word is not below `word`, from `low` on, before `high`."""
    while low < high:
        middle = (low + high) // 2
        if _of(list_, kind, middle) < word:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _search(lists, kind, least, most, out):
    """Of each list where the rows with words in [least, most] begin and end, int64[m, 2].

    lists: int64[m, 5]: address of places, whether they are wide, how many, addresses of the column
    and its octets."""
    for k in range(len(lists)):
        end = lists[k, 2]
        start = out[k, 0] = _first(lists[k], kind, least, np.int64(0), end)
        if least > most:
            end = start
        elif most < GREATEST:
            step, far = np.int64(8), start  # it is near, mostly
            while far < end and _of(lists[k], kind, far) <= most:
                start, far, step = far, far + step, 2 * step
            end = _first(lists[k], kind, most + 1, start, min(far, end))
        out[k, 1] = end


def _kind(type_: pa.DataType) -> int:
    if pa.types.is_int64(type_):
        return INTS
    if pa.types.is_float64(type_):
        return FLOATS
    return DECIMALS if pa.types.is_decimal128(type_) else TEXTS


def _column(col: pa.Array) -> tuple[int, int]:
    """Addresses of its words, or of where its texts begin and their octets."""
    buffers = col.buffers()
    if len(buffers) == 3:
        octets = 0 if buffers[2] is None else buffers[2].address
        return buffers[1].address + 4 * col.offset, octets
    return buffers[1].address + col.type.byte_width * col.offset, 0


def words_of(col: pa.Array) -> np.ndarray:
    """The word of each value, int64[n]; arbitrary where NULL."""
    out = np.empty(len(col), np.int64)
    if len(col):
        _words(_kind(col.type), *_column(col), out)
    return out


@dataclass(frozen=True, slots=True)
class Range:
    """Values that meet all `conditions`: an operator of `COMPARE`, and a value as an array of the
    column's type."""

    conditions: tuple[tuple[str, pa.Array], ...]

    @property
    def exact(self) -> bool:
        """Whether words tell all."""
        return _kind(self.conditions[0][1].type) in (INTS, FLOATS)

    def words(self) -> tuple[int, int]:
        """The least and the greatest word that values in the range may have; none: the least is
        above."""
        least, most, open_ = LEAST, GREATEST, int(self.exact)
        for op, value in self.conditions:
            word = int(words_of(value)[0])
            if op in ("eq", "ge", "gt"):
                least = max(least, word + open_ * (op == "gt"))
            if op in ("eq", "le", "lt"):
                most = min(most, word - open_ * (op == "lt"))
        return (least, most) if least <= GREATEST and most >= LEAST else (0, -1)

    def holds(self, col: pa.Array) -> np.ndarray:
        """Which values lie in it, bool[n]."""
        if self.exact:
            words, valid, (least, most) = words_of(col), numpy_valid(col), self.words()
            found: np.ndarray = (words >= least) & (words <= most)
            return found if valid is None else found & valid
        each = [COMPARE[op](col, value[0]) for op, value in self.conditions]
        return numpy_true(reduce(pc.and_, each))


@dataclass(frozen=True, slots=True)
class Words:
    """Values with words in [least, most], and NULL if `nulls`."""

    least: int = LEAST
    most: int = GREATEST
    nulls: bool = True
    exact: bool = True

    def words(self) -> tuple[int, int]:
        return self.least, self.most

    def holds(self, col: pa.Array) -> np.ndarray:
        words, valid = words_of(col), numpy_valid(col)
        found: np.ndarray = (words >= self.least) & (words <= self.most)
        if valid is None:
            return found
        return found | ~valid if self.nulls else found & valid


@dataclass(frozen=True, slots=True)
class Sorted:
    """Of a sub-window, by which it is `known`, the places of rows that are not NULL, as their
    values rise: uint16 or int32[n]."""

    known: tuple[int, int, int]
    places: np.ndarray

    @classmethod
    def of(cls, rows: Batch, column: int) -> Sorted:
        col = rows.cols[column]
        order, valid = np.argsort(words_of(col)), numpy_valid(col)
        order = order if valid is None else order[valid[order]]
        return cls(known(rows), order.astype(np.uint16 if len(col) <= NARROW else np.int32))


@dataclass(slots=True)
class SortedColumn:
    """column   position of the column in the stream
    parts    sorted sub-windows, by number
    version  another one whenever the parts change;  updates: sub-windows sorted so far
    seen     updates of the ring when that was last looked at;  asked: when a query was last read so
    """

    column: int
    parts: dict[int, Sorted] = field(default_factory=dict)
    version: int = 0
    updates: int = 0
    seen: int = -1
    asked: int = 0

    def follow(self, ring: Ring, most: int) -> bool:
        """Let go of what has left the ring and sort what was closed, youngest first, up to `most`
        rows (and one sub-window at least, if `most` is not 0).  True: all of it is sorted."""
        if ring.updates != self.seen:
            self.seen = ring.updates
            there = {sub.number for sub in ring.closed}
            self.parts = {n: part for n, part in self.parts.items() if n in there}
            self.version += 1
        done = True
        for sub in reversed(ring.closed):
            if self.covers(sub):
                continue
            if most <= 0 or len(sub.rows) >= LARGE:
                done = False
                continue
            self.parts[sub.number] = Sorted.of(sub.rows, self.column)
            self.version, self.updates = self.version + 1, self.updates + 1
            most -= len(sub.rows)
        return done

    def covers(self, sub: SubWindow) -> bool:
        """Whether that sub-window, as it is, is sorted."""
        part = self.parts.get(sub.number)
        return part is not None and part.known == known(sub.rows)

    def top(
        self, subs: Iterable[SubWindow], since: int, upto: int, count: int, descending: bool
    ) -> Words:
        """Words that the first `count` values (not NULL) in rows with ts in (since, upto] have."""
        found = [np.empty(0, np.int64)]
        for sub in subs:
            if self.covers(sub) and sub.rows.ts[0] > since and sub.rows.ts[-1] <= upto:
                places = self.parts[sub.number].places
                some = places[-count:] if descending else places[:count]
                found.append(words_of(sub.rows.cols[self.column].take(pa.array(some))))
        words = np.sort(np.concatenate(found))
        if not 0 < count <= len(words):
            return Words()
        if descending:
            return Words(least=int(words[-count]))
        return Words(most=int(words[count - 1]))

    def find(self, ring: Ring, wanted: Range | Words) -> FoundRange:
        """Where rows in that range are, in sub-windows that are sorted."""
        subs = [sub for sub in ring.closed if self.covers(sub)]
        spans = np.empty((len(subs), 2), np.int64)
        if subs:
            lists = np.array([self._list(sub) for sub in subs], np.int64)
            kind = _kind(subs[0].rows.cols[self.column].type)
            _search(lists, kind, *wanted.words(), spans)
        found, count = dict[int, np.ndarray](), 0
        for sub, (start, end) in zip(subs, spans.tolist(), strict=True):
            if MOST * (end - start) <= len(sub.rows):
                found[sub.number] = self.parts[sub.number].places[start:end]
                count += end - start
            else:
                count += len(sub.rows)
        return FoundRange(self, self.version, wanted, found, count)

    def _list(self, sub: SubWindow) -> tuple[int, bool, int, int, int]:
        places = self.parts[sub.number].places
        at, wide = places.__array_interface__["data"][0], places.itemsize == 4
        return (at, wide, len(places), *_column(sub.rows.cols[self.column]))

    @property
    def rows(self) -> int:
        """Rows of the sub-windows that are sorted."""
        return sum(p.known[0] for p in self.parts.values())

    @property
    def nbytes(self) -> int:
        return sum(p.places.nbytes for p in self.parts.values())


@dataclass(frozen=True, slots=True)
class FoundRange:
    """What was found: by number of a sub-window the places of rows that may lie in the range, where
    these are few; `count`: rows that are to be read, all of the other sub-windows among them."""

    index: SortedColumn
    version: int
    wanted: Range | Words
    places: dict[int, np.ndarray]
    count: int

    def covers(self, sub: SubWindow) -> bool:
        """Whether `rows` tells of that sub-window, as it is."""
        return sub.number in self.places and self.index.covers(sub)

    def has(self, sub: SubWindow) -> bool:
        """Whether it has such rows, perhaps."""
        return self._nulls(sub) or len(self.places[sub.number]) > 0

    def _nulls(self, sub: SubWindow) -> bool:
        """Whether rows with NULL are wanted, and there are some."""
        nulls = isinstance(self.wanted, Words) and self.wanted.nulls
        return nulls and sub.rows.cols[self.index.column].null_count > 0

    def matching(self, rows: Batch) -> np.ndarray:
        """Which rows lie in the range, ascending."""
        return np.flatnonzero(self.wanted.holds(rows.cols[self.index.column]))

    def rows(self, sub: SubWindow) -> np.ndarray:
        """The rows of a sub-window that do, ascending."""
        places = self._near(sub)
        if self.wanted.exact or not len(places):
            return places
        col = sub.rows.cols[self.index.column].take(pa.array(places))
        return places[self.wanted.holds(col)]

    def among(self, subs: Sequence[SubWindow]) -> list[tuple[Batch, np.ndarray]]:
        """Of sub-windows that it covers those that have such rows, as far as words tell, and these
        rows: whoever asks compares them."""
        return [(sub.rows, self._near(sub)) for sub in subs if self.has(sub)]

    def _near(self, sub: SubWindow) -> np.ndarray:
        places = np.sort(self.places[sub.number]).astype(np.int64)
        if not self._nulls(sub):
            return places
        valid = numpy_valid(sub.rows.cols[self.index.column])
        assert valid is not None
        return np.union1d(places, np.flatnonzero(~valid))


def ready() -> None:
    """Have the kernels compiled or loaded now."""
    for width in (1, NARROW + 1):
        rows = Batch(
            np.zeros(width, np.int64), None, None, (np.zeros(width, np.int64),), ()
        ).with_cols([pa.array(np.zeros(width, np.int64))])
        ring, index = Ring(), SortedColumn(0)
        ring.closed.append(SubWindow(0, rows))
        index.follow(ring, 1)
        index.find(ring, Range((("eq", pa.array([1])),)))
