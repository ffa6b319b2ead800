"""Arrow arrays of bytes, made of NumPy's without a loop."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

EMPTY = pa.scalar(b"", pa.binary())


def fixed(values: np.ndarray) -> pa.Array:
    """Each item's bytes as they lie in memory (n items of one size)."""
    width = values.dtype.itemsize
    offsets = np.arange(len(values) + 1, dtype=np.int32) * width
    data = pa.py_buffer(np.ascontiguousarray(values).tobytes())
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), data])


def varied(data: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """Stretches of `data` (uint8) of these lengths, one behind the other."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data).tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def as_binary(values: pa.Array) -> pa.Array:
    """Texts as their UTF-8."""
    return values if values.type == pa.binary() else values.cast(pa.binary())


def without_nulls(values: pa.Array, nulls: np.ndarray | None) -> pa.Array:
    """As bytes, with nothing where `nulls` (or the values themselves) say so."""
    values = as_binary(values)
    if nulls is not None:
        values = pc.if_else(pa.array(nulls), EMPTY, values)
    return pc.fill_null(values, EMPTY) if values.null_count else values


def numbers(array: pa.Array, kind: pa.DataType | None = None) -> np.ndarray:
    """As NumPy's, 0 for NULL."""
    if kind is not None and array.type != kind:
        array = array.cast(kind)
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0, array.type))
    found: np.ndarray = array.to_numpy(zero_copy_only=False)
    return found


def join(*parts: pa.Array) -> pa.Array:
    """Bytes put together row by row; NULL where a part is."""
    return pc.binary_join_element_wise(*(as_binary(p) for p in parts), EMPTY)


def in_brackets(values: pa.Array, before: bytes, behind: bytes = b"") -> pa.Array:
    """Each with the same bytes around it."""
    return pc.binary_join_element_wise(
        pa.scalar(before, pa.binary()), as_binary(values), pa.scalar(behind, pa.binary()), EMPTY
    )
