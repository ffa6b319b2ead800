"""Rows that come a few at a time and are wanted as one batch, at any moment.

To put a million rows one behind the other takes a tenth of a second.  So it is done as they come:
columns lie in arrays with room behind them, and where that gets scarce the rows move to longer ones
along with those that come, a few at a time.  No call does more than in proportion to the rows that
it is given.  What has been handed out stays as it is: only what lies behind it is written.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.state.batch import Batch, concat
from dsms.state.columns import numpy_valid, numpy_values
from dsms.state.probing import is_text

LONG = 1 << 13  # rows that wait until they are joined to the others
MUCH = 8 * LONG  # rows that are joined before they are asked for
LEAST = 1 << 21  # rows that arrays have room for at first: memory comes with what is written
SHORT = 1 << 12  # rows of a batch that is worth a call of its own
MANY = 256  # batches that are put together, however short they are
MOST = 1 << 24  # rows that there is room for at first, at most
MOVED = 4  # places that move for each that comes
OCTETS = 8  # of a text, on average, that there is room for at first
WIDEST = 2  # times eight bytes that a value of any type takes at most, at first
_PRIVATE: dict[str, Any] = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
)
DECIMAL = np.dtype([("low", np.int64), ("high", np.int64)])


@dataclass(slots=True)
class Column:
    """The first `n` places of `data` are in use; the first `moved` of them are in `longer`, too."""

    data: np.ndarray
    n: int = 0
    longer: np.ndarray | None = None
    moved: int = 0

    def add(self, values: np.ndarray) -> None:
        """Behind the others."""
        end = self.n + len(values)
        if end > len(self.data):
            self._switch(end)
        self.data[self.n : end] = values
        self.n = end
        self._move(MOVED * len(values))

    def _move(self, most: int) -> None:
        """With a third of the room left, begin to move."""
        if 3 * self.n < 2 * len(self.data):
            return
        if self.longer is None:
            self.longer, self.moved = _place(_more(len(self.data)), self.data.dtype), 0
        stop = min(self.n, self.moved + most)
        self.longer[self.moved : stop] = self.data[self.moved : stop]
        self.moved = stop

    def _switch(self, least: int) -> None:
        longer, moved = self.longer, self.moved
        if longer is None or len(longer) < least:
            longer, moved = _place(_more(least), self.data.dtype), 0
        longer[moved : self.n] = self.data[moved : self.n]
        self.data, self.longer, self.moved = longer, None, 0

    @property
    def view(self) -> np.ndarray:
        """What is there, not a copy."""
        return self.data[: self.n]


def _more(room: int) -> int:
    return room + room // 2


def _place(room: int, dtype: Any) -> np.ndarray:
    """An array that is written from front to back.  NumPy and Arrow ask the system for huge pages:
    a few rows might then wait for tens of milliseconds until it has made one."""
    size = room * np.dtype(dtype).itemsize
    found: np.ndarray = np.frombuffer(mmap.mmap(-1, max(size, 1), **_PRIVATE), np.uint8)
    return found[:size].view(dtype)


Take = Callable[[int, Any], np.ndarray]


def _carving(size: int) -> Take:
    """Gives arrays out of so many bytes: the system is asked once."""
    place, used = _place(size, np.uint8), [0]

    def take(room: int, dtype: Any) -> np.ndarray:
        start, end = used[0], used[0] + room * np.dtype(dtype).itemsize
        used[0] = -(-end // 64) * 64
        return place[start:end].view(dtype)

    return take


class Values:
    """The values of a column, whose type has a fixed width or is of texts, or NULL."""

    def __init__(self, type_: pa.DataType, room: int, take: Take) -> None:
        self.type, self.n = type_, 0
        self.valid: Column | None = None  # bool; None: nothing is NULL
        self.places: Column | None = None  # words, or where texts end
        self.octets: Column | None = None
        if is_text(type_):
            self.places, self.octets = (
                Column(_place(room + 1, np.int32)),
                Column(_place(OCTETS * room, np.uint8)),
            )
            self.places.add(np.zeros(1, np.int32))
        elif not pa.types.is_null(type_):
            self.places = Column(take(room, _dtype(type_)))

    def add(self, values: pa.Array) -> None:
        """Behind the others.  Raises OverflowError if texts are longer than a column holds."""
        ok = numpy_valid(values)
        if self.places is not None:
            if ok is not None and self.valid is None:
                self.valid = Column(_place(len(self.places.data), np.bool_))
                self.valid.add(np.ones(self.n, np.bool_))
            if self.valid is not None:
                self.valid.add(np.ones(len(values), np.bool_) if ok is None else ok)
            self._add_words(self.places, values)
        self.n += len(values)

    def _add_words(self, places: Column, values: pa.Array) -> None:
        if self.octets is None:
            places.add(_words(values))
            return
        ends, octets = _texts(values)
        if self.octets.n + len(octets) > np.iinfo(np.int32).max:
            raise OverflowError
        places.add(ends + np.int32(self.octets.n))
        self.octets.add(octets)

    def view(self) -> pa.Array:
        """What is there, not a copy."""
        if self.places is None:
            return pa.nulls(self.n, self.type)
        nulls = 0 if self.valid is None else self.n - int(np.count_nonzero(self.valid.view))
        buffers: list[Any] = [None if not nulls or self.valid is None else _bits(self.valid.view)]
        bits = pa.types.is_boolean(self.type)
        buffers.append(_bits(self.places.view) if bits else pa.py_buffer(self.places.view))
        if self.octets is not None:
            buffers.append(pa.py_buffer(self.octets.view))
        return pa.Array.from_buffers(self.type, self.n, buffers, nulls)


def _dtype(type_: pa.DataType) -> Any:
    if pa.types.is_decimal(type_):
        return DECIMAL
    return {pa.int64(): np.int64, pa.float64(): np.float64, pa.bool_(): np.bool_}[type_]


def _words(values: pa.Array) -> np.ndarray:
    if not pa.types.is_decimal(values.type):
        return numpy_values(values)
    if not len(values):
        return np.empty(0, DECIMAL)
    raw: np.ndarray = np.frombuffer(values.buffers()[1], DECIMAL)
    return raw[values.offset : values.offset + len(values)]


def _texts(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Where each text ends among the octets of all (int32), and these."""
    if not len(values):
        return np.empty(0, np.int32), np.empty(0, np.uint8)
    _, places, octets = values.buffers()
    ends: np.ndarray = np.frombuffer(places, np.int32)
    ends = ends[values.offset : values.offset + len(values) + 1]
    first, last = int(ends[0]), int(ends[-1])
    if octets is None or first == last:
        return ends[1:] - ends[0], np.empty(0, np.uint8)
    return ends[1:] - ends[0], np.frombuffer(octets, np.uint8)[first:last]


def _bits(flags: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


@dataclass(slots=True)
class Joining:
    """Rows of a stream, without exp, sign and life.

    first    the batch from which on they are joined; None: there is none
    done     how many of them are
    waiting  rows that have come since somebody looked
    loose    batches among them that are not together yet
    total    rows that came
    room     rows that there is to be room for at first"""

    first: Batch | None = None
    done: int = 0
    waiting: int = 0
    loose: int = 0
    total: int = 0
    room: int = LEAST
    stamps: list[Column] = field(default_factory=list)  # ts, and the numbers
    columns: list[Values] = field(default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        """The rows are kept where they were handed to."""
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.room = LEAST
        self.forget()

    def gathered(self, batches: list[Batch]) -> list[Batch]:
        """The batches, of which the last has just come, fewer if there are many to be joined."""
        self.waiting += len(batches[-1])
        self.total += len(batches[-1])
        self.loose += 1
        if self.waiting >= LONG and self.total >= MUCH:
            return list(self.ahead(batches, MOVED * self.waiting))
        if self.loose >= MANY:
            batches[-MANY:] = [concat(batches[-MANY:])]
            self.loose = 0
        return batches

    def joined(self, batches: Sequence[Batch]) -> Batch:
        """The batches, at least one, as one."""
        return self.ahead(batches, 1 << 62)[0]

    def ahead(self, batches: Sequence[Batch], most: int) -> Sequence[Batch]:
        """The batches, at least one, as one if that takes no more than to join `most` rows to those
        that are joined; else as they are, and so many more are joined."""
        self.waiting = self.loose = 0
        if len(batches) == 1:
            return batches
        if self.first is not batches[0]:
            if sum(map(len, batches)) < MUCH:
                return [concat(batches)]
            self._begin(batches[0])
        try:
            for rows in _behind(batches, self.done, most):
                self._add(rows)
        except OverflowError:  # one column does not hold so many texts
            self.forget()
            return [concat(batches)]
        if self.done < sum(map(len, batches)):
            return batches
        self.first = self._now()
        return [self.first]

    def forget(self) -> None:
        """The rows to come have nothing to do with those that came."""
        self.first, self.stamps, self.columns = None, [], []
        self.done = self.waiting = self.loose = self.total = 0

    def over(self, rows: int) -> None:
        """`forget`; there were so many rows, and there may be as many again."""
        self.forget()
        self.room = max(LEAST, min(rows + rows // 4, MOST))

    def _begin(self, first: Batch) -> None:
        self.first, self.done, room = first, 0, max(self.room, _more(len(first)))
        take = _carving((1 + len(first.ids) + sum(WIDEST for _ in first.cols)) * 8 * (room + 64))
        self.stamps = [Column(take(room, np.int64)) for _ in range(1 + len(first.ids))]
        self.columns = [Values(c.type, room, take) for c in first.cols]

    def _add(self, rows: Batch) -> None:
        for values, column in zip(rows.cols, self.columns, strict=True):
            column.add(values)
        for words, place in zip((rows.ts, *rows.ids), self.stamps, strict=True):
            place.add(words)
        self.done += len(rows)

    def _now(self) -> Batch:
        ts, *ids = (column.view for column in self.stamps)
        return Batch(ts, None, None, tuple(ids), tuple(c.view() for c in self.columns))


def _behind(batches: Sequence[Batch], done: int, most: int) -> Iterator[Batch]:
    """Up to `most` rows behind the first `done`; short batches together."""
    short: list[Batch] = []
    for rows in batches:
        if done >= len(rows):
            done -= len(rows)
            continue
        some = rows if not done and len(rows) <= most else rows.slice(done, done + most)
        done, most = 0, most - len(some)
        short.append(some)
        if len(some) >= SHORT:
            yield concat(short)
            short = []
        if not most:
            break
    if short:
        yield concat(short)
