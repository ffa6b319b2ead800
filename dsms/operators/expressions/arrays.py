"""Between Arrow arrays and NumPy: views of values without copying, arrays from values, rows made
NULL.

The value of a NULL row is unspecified in every view: code that reads values must also read
validity.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Value: TypeAlias = "pa.Array | pa.Scalar"  # a constant argument stays a scalar
_INT64 = pa.int64()
_FLOAT64 = pa.float64()


def ints(x: Value) -> np.ndarray:
    """int64 values, a view (a scalar: an array of one, to be broadcast; 0 for NULL)."""
    if isinstance(x, pa.Scalar):
        return np.array([x.as_py() or 0], np.int64)
    if len(x) == 0:
        return np.empty(0, np.int64)
    return np.frombuffer(x.buffers()[1], np.int64, len(x), x.offset * 8)


def floats(x: Value) -> np.ndarray:
    """float64 values, a view (a scalar: an array of one; 0 for NULL)."""
    if isinstance(x, pa.Scalar):
        return np.array([x.as_py() or 0.0], np.float64)
    if len(x) == 0:
        return np.empty(0, np.float64)
    return np.frombuffer(x.buffers()[1], np.float64, len(x), x.offset * 8)


def bits(x: pa.BooleanArray) -> np.ndarray:
    """bool values, a copy; False for NULL."""
    if x.null_count:
        x = x.fill_null(False)
    return x.to_numpy(zero_copy_only=False)


def present(x: Value) -> np.ndarray | None:
    """Which rows are not NULL (bool); None: all of them."""
    if isinstance(x, pa.Scalar):
        return None if x.is_valid else np.zeros(1, np.bool_)
    if not x.null_count:
        return None
    return x.is_valid().to_numpy(zero_copy_only=False)


def both(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    """The AND of two masks, where None is all true."""
    if a is None:
        return b
    return a if b is None else a & b


def absent(x: Value) -> np.ndarray | bool:
    """Which rows are NULL."""
    here = present(x)
    return False if here is None else ~here


def buffer_of(mask: np.ndarray | None) -> pa.Buffer | None:
    """The validity bitmap of a mask."""
    return None if mask is None else pa.py_buffer(np.packbits(mask, bitorder="little"))


def _from(
    values: np.ndarray, valid: np.ndarray | None, dtype: type, arrow: pa.DataType
) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(values, dtype))
    return pa.Array.from_buffers(arrow, len(values), [buffer_of(valid), data])


def from_ints(values: np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    """An INT array over the values, without copying if they are int64."""
    return _from(values, valid, np.int64, _INT64)


def from_floats(values: np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    """A FLOAT array over the values, without copying if they are float64."""
    return _from(values, valid, np.float64, _FLOAT64)


def from_bits(values: np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    """A BOOL array of the values."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [buffer_of(valid), buffer_of(values)])


NO = from_bits(np.zeros(1, np.bool_))[0]  # pa.scalar would import pandas


def blank(x: pa.Array, bad: np.ndarray) -> pa.Array:
    """The array with NULL in the `bad` rows."""
    return either(from_bits(~bad), x, None)


def either(chosen: pa.Array, x: Value | None, y: Value | None) -> pa.Array:
    """`x` where chosen (which has no NULLs), else `y`; None or a scalar stands for all rows.

    Arrow's if_else (23.0) returns wrong bytes for a NULL constant beside a slice of text, so a NULL
    is an array here.
    """
    some = (
        x
        if isinstance(x, pa.Array)
        else y
        if isinstance(y, pa.Array)
        else x
        if x is not None
        else y
    )
    assert some is not None
    x, y = (_nothing(v, some.type, len(chosen)) for v in (x, y))
    return pc.if_else(chosen, x, y)


def _nothing(x: Value | None, type_: pa.DataType, n: int) -> Value:
    if x is None or (isinstance(x, pa.Scalar) and not x.is_valid):
        return pa.nulls(n, type_)
    return x


def spread(x: Value, n: int) -> pa.Array:
    """A constant as an array of n."""
    return pa.repeat(x, n) if isinstance(x, pa.Scalar) else x


def scatter(x: pa.Array, rows: np.ndarray, n: int) -> pa.Array:
    """n rows: those at `rows` from `x` in order, the others NULL."""
    where = np.zeros(n, np.int64)
    where[rows] = np.arange(len(rows))
    here = np.zeros(n, np.bool_)
    here[rows] = True
    return x.take(from_ints(where, here))


def relabel(x: pa.Array, to: pa.DataType) -> pa.Array:
    """The same buffers under another type of the same layout."""
    return pa.Array.from_buffers(to, len(x), x.buffers(), offset=x.offset)


def has_nan(x: Value) -> bool:
    """Whether a FLOAT value may be NaN (NULL rows may say yes by accident, never hide one)."""
    return bool(np.isnan(floats(x)).any())


_SIGN = np.int64(2**63 - 1)


def order_keys(x: Value) -> Value:
    """int64 keys of FLOAT values in SQL's order: -0.0 and 0.0 have one key, NaN one above all;
    NULLs stay."""
    values = floats(x) + 0.0  # -0.0 + 0.0 is 0.0
    values[np.isnan(values)] = np.nan  # one NaN of all
    raw = values.view(np.int64)
    keys = raw ^ ((raw >> 63) & _SIGN)
    if isinstance(x, pa.Scalar):
        return pa.scalar(int(keys[0]) if x.is_valid else None, _INT64)
    return from_ints(keys, present(x))


def from_order_keys(keys: pa.Array) -> pa.Array:
    """The FLOAT values of such keys."""
    raw = ints(keys)
    return from_floats((raw ^ ((raw >> 63) & _SIGN)).view(np.float64), present(keys))
