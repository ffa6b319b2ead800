"""One column of whatever library -> an Arrow array that loses nothing, or a list of values where Arrow has no form.

lists           an array if all values are of one kind that Arrow has, else as they are
NumPy           any byte order, masks, times of any unit (finer than µs: rounded down)
pandas          missing values (NaN, NaT, NA, None) are NULL; sparse, nullable, Arrow-backed and categorical
                columns; a Period is its start; columns of objects as lists
polars, Arrow   as they are
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dsms.forms.scalars import Instant, Length

Values: TypeAlias = "pa.Array | pa.ChunkedArray | list[Any]"
PROBLEMS = (pa.ArrowException, ValueError, TypeError, OverflowError, NotImplementedError)
_ARROW_UNITS = ("s", "ms", "us", "ns")
_ALIKE = frozenset({bool, int, float, str, bytes, Decimal, dt.datetime, dt.date, dt.timedelta})
_FAR = 2**62


@dataclass
class Unreadable(Exception):
    """A column that is of no form that is known: what it is, and what to do."""

    got: str
    hint: str | None = None


def array_of(column: Any) -> Values:
    """The column of a table, a dict or a frame.  Raises Unreadable."""
    try:
        return _read(column)
    except PROBLEMS as problem:
        lines = str(problem).splitlines()
        why = f" ({lines[0]})" if lines and lines[0] else ""
        raise Unreadable(f"{_named(column)} that can't be read{why}") from None


def inferred(values: Sequence[Any]) -> pa.Array | None:
    """A list as an array if its values are of one kind, NULLs aside; None if they aren't, or Arrow can't hold them."""
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
        return _listed(array.tolist())
    if kind == "c" or kind == "V":
        raise Unreadable(f"an array of {array.dtype}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if kind in "mM":
        return _times(array)
    if kind == "f" and array.dtype.itemsize > 8:
        return _listed(array.tolist()) if np.ma.isMaskedArray(array) else _listed(list(array))
    return pa.array(array)


def _read(column: Any) -> Values:
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column
    if isinstance(column, np.ndarray):
        return from_numpy(column)
    if is_from(column, "pandas"):
        from dsms.forms.pandas import from_pandas

        return from_pandas(column)
    if is_from(column, "polars"):
        return _from_polars(column)
    for form, read in (("__arrow_c_stream__", pa.chunked_array), ("__arrow_c_array__", pa.array)):
        if hasattr(column, form):
            return read(column)
    if hasattr(column, "__array__"):
        return from_numpy(np.asarray(column))
    return _listed(list(column))


def _from_polars(series: Any) -> Values:
    if str(series.dtype) == "Object":  # whose export holds addresses
        return _listed(series.to_list())
    try:
        return pa.chunked_array(series)
    except PROBLEMS:
        return _listed(series.to_list())


def _listed(values: list[Any]) -> Values:
    array = inferred(values)
    return values if array is None else array


def _alike(values: Sequence[Any], kind: type) -> pa.Array | None:
    if kind in _ALIKE:
        return pa.array(values)
    if kind is Instant or kind is Length:
        to = pa.timestamp("us") if kind is Instant else pa.duration("us")
        return pa.array([None if v is None else v.us for v in values], pa.int64()).cast(to)
    if issubclass(kind, np.generic) and np.dtype(kind).kind in "biufUS" and np.dtype(kind).itemsize <= 8:
        return pa.array(values)
    return None


def _times(array: np.ndarray) -> pa.Array:
    """datetime64 or timedelta64 of any unit."""
    unit, count = np.datetime_data(array.dtype)
    if unit in _ARROW_UNITS and count == 1:
        return pa.array(array)
    if array.dtype.kind == "m" and unit in ("Y", "M", "generic"):
        raise Unreadable(f"an array of {array.dtype}", "years and months have no one length: use days, or seconds")
    missing = np.isnat(array) | np.ma.getmaskarray(array)
    array = np.ma.getdata(array)
    if unit in ("Y", "M"):
        array, unit, count = array.astype("datetime64[D]"), "D", 1
    ticks = np.where(missing, 0, array.astype(np.int64))
    micros = _micros(ticks, unit, count)
    if array.dtype.kind == "m" and np.abs(micros).max(initial=0) > _FAR // 2:
        raise OverflowError("lengths of over 70,000 years")
    return pa.array(micros, mask=missing).cast(pa.timestamp("us") if array.dtype.kind == "M" else pa.duration("us"))


def _micros(ticks: np.ndarray, unit: str, count: int) -> np.ndarray:
    """Whole microseconds, rounded down; ±2^62 for what is further away."""
    size, parts = np.timedelta64(count, unit), np.timedelta64(1, "us")  # type: ignore[call-overload]
    if unit in ("ns", "ps", "fs", "as"):
        per = int(parts / np.timedelta64(1, unit))  # type: ignore[call-overload]
        return np.array([int(t) * count // per for t in ticks], np.int64)
    factor = int(size / parts)
    return np.clip(ticks, -(_FAR // factor), _FAR // factor) * factor


def _named(column: Any) -> str:
    dtype = getattr(column, "dtype", None)
    return f"a {type(column).__name__}" + ("" if dtype is None else f" of {dtype}")


def is_from(thing: Any, package: str) -> bool:
    """Whether the thing's class belongs to the package, without importing it."""
    return type(thing).__module__.partition(".")[0] == package
