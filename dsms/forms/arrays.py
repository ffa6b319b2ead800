"""Lists and NumPy arrays -> Arrow arrays that lose nothing, or lists of values where Arrow has no
form.

lists  an array if all values are of one kind that Arrow has, else as they are
NumPy  any byte order, masks, times of any unit (finer than µs: rounded down)
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dsms.forms.scalars import FAR, MICROS, Instant, Length, as_builtin

Values: TypeAlias = "pa.Array | pa.ChunkedArray | list[Any]"
PROBLEMS = (pa.ArrowException, ValueError, TypeError, OverflowError, NotImplementedError)
_ARROW_UNITS = ("s", "ms", "us", "ns")
_ALIKE = frozenset({bool, int, float, str, bytes, Decimal, dt.datetime, dt.date, dt.timedelta})
_MONTHS = {"Y": 366 * MICROS["D"], "M": 31 * MICROS["D"]}  # at most, in microseconds
_NO_LENGTH = "years and months have no one length: use days, or seconds"
_UNREADABLE = {  # units of lengths that are none
    "Y": _NO_LENGTH,
    "M": _NO_LENGTH,
    "generic": "a count needs a unit: timedelta64[s], for example",
}


@dataclass
class Unreadable(Exception):
    """A column that is of no form that is known: what it is, and what to do."""

    got: str
    hint: str | None = None


def inferred(values: Sequence[Any]) -> pa.Array | None:
    """A list as an array if its values are of one kind, NULLs aside; None if they aren't, or Arrow
    can't hold them."""
    kinds = set(map(type, values)) - {type(None)}
    try:
        if not kinds:
            return pa.nulls(len(values))
        if len(kinds) == 1:
            return _alike(values, kinds.pop())
        return pa.array(values, pa.float64()) if kinds == {int, float} else None
    except PROBLEMS:
        return None


def from_numpy(array: np.ndarray) -> Values:
    """Raises Unreadable for what is no column, or one of numbers that have no SQL type."""
    if array.ndim != 1:
        raise Unreadable(f"an array of {array.ndim} dimensions", "a column has one dimension")
    kind = array.dtype.kind
    if kind == "O":
        return listed(array.tolist())
    if kind == "c" or kind == "V":
        raise Unreadable(f"an array of {array.dtype}")
    if kind in "SU":  # Arrow would end each at its first NUL
        return listed(array.tolist())
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if kind in "mM":
        return _times(array)
    if kind == "f" and array.dtype.itemsize > 8:
        return listed(array.tolist()) if np.ma.isMaskedArray(array) else listed(list(array))
    return pa.array(array)


def sound(array: Values) -> Values:
    """The column, if its buffers hold what its type says: text in UTF-8, offsets and indices within
    bounds, whole days.  Raises ArrowInvalid.  Costs nothing for numbers."""
    if isinstance(array, list) or _anything_is_sound(array.type):
        return array
    array.validate(full=True)
    return array


def _anything_is_sound(type_: pa.DataType) -> bool:
    date64: bool = pa.types.is_date64(type_)
    fixed: bool = pa.types.is_primitive(type_)
    return fixed and not date64


def listed(values: list[Any]) -> Values:
    """An array where Arrow has a form for them."""
    array = inferred(values)
    return values if array is None else array


def _alike(values: Sequence[Any], kind: type) -> pa.Array | None:
    if kind in _ALIKE:
        return pa.array(values)
    if kind is Instant or kind is Length:  # as far as 64 bits hold them
        to = pa.timestamp("us") if kind is Instant else pa.duration("us")
        return pa.array([None if v is None else v.us for v in values], pa.int64()).cast(to)
    if (
        issubclass(kind, np.generic)
        and np.dtype(kind).kind in "biuf"
        and np.dtype(kind).itemsize <= 8
    ):
        return pa.array(values)
    if kind is np.str_ or kind is np.bytes_:
        return pa.array([None if v is None else v.item() for v in values])
    if kind in (list, tuple, np.ndarray):
        return pa.array(values)
    return None


def _times(array: np.ndarray) -> Values:
    """datetime64 or timedelta64 of any unit; instants one by one where one is very far away."""
    unit, count = np.datetime_data(array.dtype)
    if unit in _ARROW_UNITS and count == 1:
        return pa.array(array)
    missing = np.isnat(array) | np.ma.getmaskarray(array)
    if array.dtype.kind == "m" and unit in _UNREADABLE:
        if missing.all():
            return pa.nulls(len(array), pa.duration("us"))
        raise Unreadable(f"an array of {array.dtype}", _UNREADABLE[unit])
    array = np.ma.getdata(array)
    ticks = np.where(missing, 0, array.astype(np.int64))
    if array.dtype.kind == "M" and _far(ticks, unit, count):
        return [None if no else as_builtin(v) for no, v in zip(missing, array, strict=True)]
    if unit in ("Y", "M"):
        array, unit, count = array.astype("datetime64[D]"), "D", 1
        ticks = np.where(missing, 0, array.astype(np.int64))
    if array.dtype.kind == "m":
        micros = _lengths(ticks, unit, count)
    else:
        micros = _micros(ticks, unit, count)
    return pa.array(micros, mask=missing).cast(
        pa.timestamp("us") if array.dtype.kind == "M" else pa.duration("us")
    )


def _lengths(ticks: np.ndarray, unit: str, count: int) -> np.ndarray:
    """Whole microseconds.  Raises OverflowError."""
    if unit not in MICROS:
        return _micros(ticks, unit, count)
    factor, most = MICROS[unit] * count, np.iinfo(np.int64).max
    if len(ticks) and max(int(ticks.max()), -int(ticks.min())) > most // factor:
        raise OverflowError("lengths of over 292,000 years")
    return ticks * factor


def _far(ticks: np.ndarray, unit: str, count: int) -> bool:
    """Whether some are further from 1970 than their microseconds may be, which lie within 64
    bits."""
    size = _MONTHS.get(unit) or MICROS.get(unit)
    if size is None or not len(ticks):
        return False
    return max(int(ticks.max()), -int(ticks.min())) > FAR // (size * count)


def _micros(ticks: np.ndarray, unit: str, count: int) -> np.ndarray:
    """Whole microseconds, rounded down, of what is not `_far`."""
    size, parts = np.timedelta64(count, unit), np.timedelta64(1, "us")  # type: ignore[call-overload]
    if unit in ("ns", "ps", "fs", "as"):
        per = int(parts / np.timedelta64(1, unit))  # type: ignore[call-overload]
        return np.array([int(t) * count // per for t in ticks], np.int64)
    return ticks * int(size / parts)
