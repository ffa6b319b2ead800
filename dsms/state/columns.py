"""Stored value columns: append batches, gather by position, drop what is dead.

Fixed-width columns live in one growable NumPy array (validity apart, only once a NULL has come);
the others as Arrow chunks merged like a binary counter, so that there are at most log(n) of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.state.vec import Vec

LONG = 1 << 12  # positions that are worth a look at whether they follow each other
_FIXED = {pa.int64(): np.int64, pa.float64(): np.float64, pa.bool_(): np.bool_}
_WORDS = {t.id: _FIXED[t] for t in (pa.int64(), pa.float64())}  # a number is found sooner
EIGHT_BYTES = (pa.int64(), pa.float64())


def numpy_values(col: pa.Array) -> np.ndarray:
    """The values of an int64/float64/bool array as NumPy, arbitrary where NULL; no copy for 8-byte
    types."""
    n, dtype = len(col), _WORDS.get(col.type.id)
    if dtype is None:
        assert pa.types.is_boolean(col.type)
        return _bits(col.buffers()[1], col.offset, n)
    if not n:
        return np.empty(0, dtype)
    raw: np.ndarray = np.frombuffer(col.buffers()[1], dtype)
    return raw[col.offset : col.offset + n]


def _bits(buffer: Any, offset: int, n: int) -> np.ndarray:
    """n bits of an Arrow bitmap as bool[n]."""
    if not n or buffer is None:
        return np.empty(0, np.bool_)
    octets = np.frombuffer(buffer, np.uint8)[offset // 8 : (offset + n + 7) // 8]
    return np.unpackbits(octets, count=offset % 8 + n, bitorder="little")[offset % 8 :].view(
        np.bool_
    )


def numpy_valid(col: pa.Array) -> np.ndarray | None:
    """Validity as bool[n], or None when nothing is NULL."""
    if not col.null_count:
        return None
    if pa.types.is_null(col.type):
        return np.zeros(len(col), np.bool_)
    return _bits(col.buffers()[0], col.offset, len(col))


def numpy_true(mask: pa.BooleanArray) -> np.ndarray:
    """Where a boolean array is true, bool[n]; NULL counts as false."""
    valid = numpy_valid(mask)
    return numpy_values(mask) if valid is None else numpy_values(mask) & valid


def taken(col: pa.Array, index: np.ndarray) -> pa.Array:
    """The values at those positions."""
    if col.type in EIGHT_BYTES and not col.null_count:
        return pa.array(numpy_values(col)[index])
    return col.take(pa.array(index))


def run_of(index: np.ndarray) -> slice | None:
    """Many positions that follow each other, as a slice; None: they do not, or are few."""
    if len(index) < LONG or index[-1] - index[0] != len(index) - 1:
        return None
    rising = bool((index[1:] > index[:-1]).all())
    return slice(int(index[0]), int(index[-1]) + 1) if rising else None


def all_taken(cols: Sequence[pa.Array], index: np.ndarray) -> tuple[pa.Array, ...]:
    """Of each column the values at those positions."""
    return tuple([taken(c, index) for c in cols])


def all_sliced(cols: Sequence[pa.Array], start: int, stop: int) -> tuple[pa.Array, ...]:
    """Of each column the values [start, stop), without copying."""
    return tuple([c.slice(start, stop - start) for c in cols])


def all_joined(parts: Iterable[Sequence[pa.Array]]) -> tuple[pa.Array, ...]:
    """The columns of the parts one after the other."""
    return tuple([pa.concat_arrays(list(c)) for c in zip(*parts, strict=True)])


def arrow_values(values: np.ndarray, valid: np.ndarray | None) -> pa.Array:
    """The way back: no copy of the values where nothing is NULL."""
    return pa.array(values) if valid is None or bool(valid.all()) else pa.array(values, mask=~valid)


@dataclass(slots=True)
class FixedColumn:
    """int64, float64 or bool."""

    type: pa.DataType
    values: Vec = field(init=False)
    valid: Vec | None = None

    def __post_init__(self) -> None:
        self.values = Vec(_FIXED[self.type])

    def append(self, col: pa.Array) -> None:
        ok = numpy_valid(col)
        if ok is not None and self.valid is None:
            self.valid = Vec(np.bool_)
            self.valid.extend_fill(self.values.n, True)
        self.values.extend(numpy_values(col))
        if self.valid is not None:
            self.valid.extend(np.ones(len(col), np.bool_) if ok is None else ok)

    def gather(self, index: np.ndarray) -> pa.Array:
        """The values at those positions."""
        if (run := run_of(index)) is not None:
            valid = None if self.valid is None else self.valid.view[run]
            return arrow_values(self.values.view[run].copy(), valid)
        valid = None if self.valid is None else self.valid.view[index]
        return arrow_values(self.values.view[index], valid)

    def unite(self) -> None:
        """They always are in one piece."""

    def cut(self, count: int) -> None:
        """Only the first `count` values stay."""
        for vec in (self.values, self.valid):
            if vec is not None:
                vec.n = min(vec.n, count)

    def keep(self, index: np.ndarray) -> None:
        self.values.keep(index)
        if self.valid is not None:
            self.valid.keep(index)

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (0 if self.valid is None else self.valid.nbytes)


@dataclass(slots=True)
class ArrowColumn:
    """Any other type, as chunks of falling size."""

    type: pa.DataType
    chunks: list[pa.Array] = field(default_factory=list)

    def append(self, col: pa.Array) -> None:
        if not len(col):
            return
        self.chunks.append(col)
        while len(self.chunks) > 1 and len(self.chunks[-2]) < 2 * len(self.chunks[-1]):
            last = self.chunks.pop()
            self.chunks[-1] = pa.concat_arrays([self.chunks[-1], last])

    def unite(self) -> None:
        """Have the values in one piece, for who gathers some of them again and again."""
        self._whole()

    def _whole(self) -> pa.Array:
        if len(self.chunks) > 1:
            self.chunks = [pa.concat_arrays(self.chunks)]
        return self.chunks[0] if self.chunks else pa.array([], self.type)

    def gather(self, index: np.ndarray) -> pa.Array:
        """The values at those positions; where these follow each other nothing is copied, but to
        put chunks together."""
        if (run := run_of(index)) is not None:
            return self._between(run)
        total = sum(len(c) for c in self.chunks)
        if len(self.chunks) < 2 or 8 * len(index) >= total:
            return self._whole().take(pa.array(index))
        starts = np.cumsum([0] + [len(c) for c in self.chunks[:-1]])
        which = np.searchsorted(starts, index, side="right") - 1
        order = np.argsort(which, kind="stable")
        picked = [index[order[which[order] == k]] - starts[k] for k in range(len(self.chunks))]
        parts = [c.take(pa.array(p)) for c, p in zip(self.chunks, picked, strict=True)]
        back = np.empty(len(index), np.int64)
        back[order] = np.arange(len(index))
        return pa.concat_arrays(parts).take(pa.array(back)) if parts else pa.array([], self.type)

    def _between(self, run: slice) -> pa.Array:
        parts, first = [], 0
        for chunk in self.chunks:
            start, stop = max(run.start - first, 0), min(run.stop - first, len(chunk))
            if start < stop:
                parts.append(chunk.slice(start, stop - start))
            first += len(chunk)
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    def cut(self, count: int) -> None:
        """Only the first `count` values stay."""
        kept: list[pa.Array] = []
        for chunk in self.chunks:
            if count > 0:
                kept.append(chunk.slice(0, count))
            count -= len(chunk)
        self.chunks = kept

    def keep(self, index: np.ndarray) -> None:
        self.chunks = [self._whole().take(pa.array(index))] if len(index) else []

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.chunks)


Column = FixedColumn | ArrowColumn


def column_store(type_: pa.DataType) -> Column:
    """The store that fits an Arrow type."""
    return FixedColumn(type_) if type_ in _FIXED else ArrowColumn(type_)
