"""Pieces of text by code points, for whole columns: where each row starts and ends, then one gather
of bytes.

Arrow slices text only at constant places; here every row has its own.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms.operators.expressions.arrays import buffer_of

_HUGE = 2**31 - 1
_LONG = 4096  # bytes of a row, on the average, from which rows are copied one by one


def offsets_of(x: pa.Array) -> np.ndarray:
    """n + 1 byte offsets (int64) into the data of a STRING or BYTES array."""
    if len(x) == 0:
        return np.zeros(1, np.int64)
    return np.frombuffer(x.buffers()[1], np.int32, len(x) + 1, x.offset * 4).astype(np.int64)


def data_of(x: pa.Array) -> np.ndarray:
    """The bytes that those offsets point into."""
    data = x.buffers()[2] if len(x) else None
    return np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


class Points:
    """Where the code points of a STRING array begin: `first[i]` is row i's first one, counted over
    all rows."""

    __slots__ = ("bounds", "data", "first", "starts")

    def __init__(self, x: pa.Array) -> None:
        self.bounds, self.data = offsets_of(x), data_of(x)
        low, high = int(self.bounds[0]), int(self.bounds[-1])
        heads = (self.data[low:high] & 0xC0) != 0x80
        if heads.all():  # ASCII: a byte is a code point
            self.starts: np.ndarray | None = None
            self.first = self.bounds
        else:
            self.starts = np.append(np.flatnonzero(heads) + low, high)
            self.first = np.searchsorted(self.starts, self.bounds)

    def lengths(self) -> np.ndarray:
        """Code points of each row."""
        return np.diff(self.first)

    def byte_of(self, point: np.ndarray) -> np.ndarray:
        """Byte at which the code point (counted over all rows) begins."""
        return point if self.starts is None else self.starts[point]

    def before(self, byte: np.ndarray) -> np.ndarray:
        """Code points (over all rows) that begin before the byte."""
        return byte if self.starts is None else np.searchsorted(self.starts, byte)


def gather(
    data: np.ndarray, starts: np.ndarray, ends: np.ndarray, valid: np.ndarray | None
) -> pa.Array:
    """The STRING array of the byte ranges [start, end) of the data."""
    sizes = ends - starts
    if valid is not None:
        sizes = np.where(valid, sizes, 0)
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    if bounds[-1] > _HUGE:
        raise UsageError(
            "DS615",
            "a column of text in one batch holds 2 GiB at most",
            hint="send smaller batches",
        )
    taken = (
        _long(data, starts, bounds)
        if bounds[-1] > _LONG * len(sizes)
        else _short(data, starts, bounds)
    )
    buffers = [buffer_of(valid), pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(taken)]
    return pa.Array.from_buffers(pa.string(), len(sizes), buffers)


def _short(data: np.ndarray, starts: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    return data[np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], np.diff(bounds))]


def _long(data: np.ndarray, starts: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Row by row, as an index of every byte would be eight times as large."""
    out = np.empty(bounds[-1], np.uint8)
    for start, low, high in zip(
        starts.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True
    ):
        out[low:high] = data[start : start + high - low]
    return out


def slice_points(
    x: pa.Array, start: np.ndarray, stop: np.ndarray, valid: np.ndarray | None
) -> pa.Array:
    """Code points [start, stop) of each row, from 0, cut to what there is; NULL where not
    `valid`."""
    points = Points(x)
    size = points.lengths()
    low = np.clip(start, 0, size)
    high = np.maximum(np.clip(stop, 0, size), low)
    return gather(
        points.data,
        points.byte_of(points.first[:-1] + low),
        points.byte_of(points.first[:-1] + high),
        valid,
    )
