"""One column -> an Arrow array of the physical type, without losing anything.

What is accepted for each SQL type, whichever way it comes (all else is a `Mismatch`):

  BOOL       bool
  INT        ints of any width, unsigned ones that fit; decimals and floats without a fraction
             (floats up to ±2^53)
  FLOAT      floats of any width, ints that a float holds exactly
  DECIMAL    decimals, ints and text that fit exactly
  STRING     strings, large strings, string views, dictionary-encoded strings
  BYTES      binary, large binary, views, fixed size binary
  TIMESTAMP  timestamps of any unit and zone, dates (midnight UTC), text of `dsms.instants`, ints
             (µs).  Without a zone: UTC.  Finer than µs: rounded down, also before 1970.
  LIST       lists, large lists, list views and lists of one size, of what their items take; text
             of JSON
  INTERVAL   durations of any unit (finer than µs: rounded down), text of `dsms.lengths`, ints (µs)

No Python per value here but for rare text; `values.py` does that for lists that fail as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from dsms import lists
from dsms.decimals import decimals, resized, whole
from dsms.forms.encodings import plain_type, without_encodings
from dsms.forms.frames import without_extension
from dsms.instants import MAX_INSTANT, MIN_INSTANT, instants
from dsms.instants import why_not as why_no_instant
from dsms.intake.values import physical, shown
from dsms.lengths import lengths
from dsms.sql.types import Kind, Type, item_of
from dsms.untrusted.contents import check_items
from dsms.untrusted.types import is_list, why_not
from dsms.untrusted.views import is_view

TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # per second
_FAR = 2**62  # µs: outside the years 0001-9999 in both directions
_EXACT = 2**53  # whole floats up to here are what they were before they became floats


@dataclass
class Mismatch(Exception):
    """A column can't be taken: what came, and why."""

    got: str
    why: str = ""
    hint: str | None = None


def to_physical(array: pa.Array, type_: Type) -> pa.Array:
    """The column with the physical type of `type_`; the same object where it has that already.

    Instants too far for int64 µs become ±2^62, which lies outside every year that is allowed.
    Raises Mismatch.
    """
    if array.type == type_.arrow and type_.kind is not Kind.LIST:
        return array
    why = why_not(array.type)
    if why is not None:
        raise Mismatch(_shown(array.type), why)
    try:
        array = _plain(array)
        if kinds.is_null(array.type) or (len(array) and array.null_count == len(array)):
            return pa.nulls(len(array), type_.arrow)
        out = _CONVERT[type_.kind](array, type_)
    except (pa.ArrowException, ValueError, OverflowError) as err:
        raise Mismatch(_shown(array.type), _first_line(err), hint_for(array.type, type_)) from None
    if out is None:
        raise Mismatch(_shown(array.type), hint=hint_for(array.type, type_))
    return out


def joined(array: pa.ChunkedArray) -> pa.Array:
    """All chunks as one array; dictionaries and runs are written out, which Arrow can't join for
    all their values."""
    if array.num_chunks == 1:
        return array.chunk(0)
    why = why_not(array.type)
    if why is not None:
        raise Mismatch(_shown(array.type), why)
    plain = _plain_type(array.type)
    if plain == array.type and array.num_chunks:
        return array.combine_chunks()
    return (
        pa.concat_arrays([_plain(c) for c in array.chunks])
        if array.num_chunks
        else pa.array([], plain)
    )


def int_values(array: pa.Array) -> np.ndarray:
    """The int64 values as NumPy, NULLs as 0; no copy where there are none."""
    return (array.fill_null(0) if array.null_count else array).to_numpy()


class _Unlocked:
    """The memory of an array that may not be written to, offered as if it might; keeps the array
    alive."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def unlocked(array: np.ndarray) -> np.ndarray:
    """The same array, no copy, writable as far as Numba can see: it compiles every kernel anew for
    arrays that are not.

    Arrow's memory is shared: it is never written to."""
    return array if array.flags.writeable else np.asarray(_Unlocked(array))


def with_nulls_of(values: np.ndarray, like: pa.Array) -> pa.Array:
    """An int64 column of `values` that is NULL where `like` is."""
    mask = like.is_null().to_numpy(zero_copy_only=False) if like.null_count else None
    return pa.array(values, pa.int64(), mask=mask)


def to_micros(values: np.ndarray, per_second: int) -> np.ndarray:
    """Counts of 1/`per_second` seconds -> whole µs, rounded down; what is too far becomes ±2^62."""
    if per_second == 1_000_000:
        return values
    if per_second > 1_000_000:
        return np.floor_divide(values, per_second // 1_000_000)
    factor = 1_000_000 // per_second
    limit = _FAR // factor
    return np.clip(values, -limit, limit) * factor


def _first_line(err: Exception) -> str:
    lines = str(err).strip().splitlines()
    return lines[0] if lines else type(err).__name__


def _plain(array: pa.Array) -> pa.Array:
    """Without extension types, dictionaries, run-end encoding and views, of which Arrow's kernels
    know too little."""
    array = without_extension(array)
    if kinds.is_dictionary(array.type):
        return _whole_decimals(array.dictionary).take(array.indices)
    return _whole_decimals(array)


def _whole_decimals(array: pa.Array) -> pa.Array:
    """Of a negative scale those of none, as Arrow's casts count no digits of others."""
    array = without_encodings(array)
    return whole(array) if kinds.is_decimal(array.type) and array.type.scale < 0 else array


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    return type_ if is_view(type_) else plain_type(type_)  # Arrow joins views


def _shown(type_: pa.DataType) -> str:
    try:
        return str(type_)
    except UnicodeDecodeError:
        return "a type whose names are not UTF-8"


def _bool(a: pa.Array, t: Type) -> pa.Array | None:
    return a if kinds.is_boolean(a.type) else None


def _int(a: pa.Array, t: Type) -> pa.Array | None:
    if kinds.is_floating(a.type):
        return _whole(a.cast(pa.float64()))
    return a.cast(pa.int64()) if kinds.is_integer(a.type) or kinds.is_decimal(a.type) else None


def _whole(a: pa.Array) -> pa.Array:
    """Floats without a fraction; beyond 2^53 they may not be what was meant.  Raises ValueError."""
    values = a.fill_null(0).to_numpy()
    wrong = ~((values == np.floor(values)) & (np.abs(values) <= _EXACT))
    if wrong.any():
        raise ValueError(f"{values[wrong][0]} is no whole number up to 2^53")
    return with_nulls_of(values.astype(np.int64), a)


def _float(a: pa.Array, t: Type) -> pa.Array | None:
    if kinds.is_integer(a.type):
        return _exact_floats(a)
    return a.cast(pa.float64()) if kinds.is_floating(a.type) else None


def _exact_floats(a: pa.Array) -> pa.Array:
    """Integers that a float holds: all up to ±2^53, and some beyond.  Raises ArrowInvalid for
    others."""
    try:
        return a.cast(pa.float64())
    except pa.ArrowInvalid:
        values = a.fill_null(0).to_numpy()
        floats = values.astype(np.float64)
        least, end = (0.0, 2.0**64) if values.dtype.kind == "u" else (-(2.0**63), 2.0**63)
        inside = (floats >= least) & (floats < end)  # else what comes back may be anything
        if not (inside.all() and (floats.astype(values.dtype) == values).all()):
            raise
        return a.cast(pa.float64(), safe=False)


def _decimal(a: pa.Array, t: Type) -> pa.Array | None:
    if kinds.is_integer(a.type):
        wide = 20 + t.scale  # digits that Arrow asks for; beyond 38 it takes the 256-bit form
        return a.cast(
            pa.decimal128(wide, t.scale) if wide <= 38 else pa.decimal256(wide, t.scale)
        ).cast(t.arrow)
    if is_text(a.type):
        return _decimals(a, t)
    return resized(a, t.arrow) if kinds.is_decimal(a.type) else None


def _decimals(texts: pa.Array, t: Type) -> pa.Array:
    try:
        return decimals(texts, t.arrow)
    except pa.ArrowInvalid:  # some text is none, or is written in a way that Arrow does not know
        return pa.array(
            [_decimal_of(text, row, t) for row, text in enumerate(texts.to_pylist())], t.arrow
        )


def _decimal_of(text: str | None, row: int, t: Type) -> Decimal | None:
    try:
        return physical(text, t)
    except ValueError:
        raise ValueError(f"str {shown(text)} in row {row}") from None


def _string(a: pa.Array, t: Type) -> pa.Array | None:
    return a.cast(pa.string()) if is_text(a.type) else None


def _bytes(a: pa.Array, t: Type) -> pa.Array | None:
    ok = (
        kinds.is_binary(a.type)
        or kinds.is_large_binary(a.type)
        or kinds.is_fixed_size_binary(a.type)
    )
    return a.cast(pa.binary()) if ok or kinds.is_binary_view(a.type) else None


def _timestamp(a: pa.Array, t: Type) -> pa.Array | None:
    if is_text(a.type):
        return _read(a, instants, why_no_instant)
    if kinds.is_date(a.type):
        return _micros(a.cast(pa.timestamp("s" if kinds.is_date32(a.type) else "ms")))
    return _micros(a) if kinds.is_timestamp(a.type) or kinds.is_integer(a.type) else None


def _interval(a: pa.Array, t: Type) -> pa.Array | None:
    if is_text(a.type):
        return _read(a, lengths, lambda text: "a length is written '1 h 30 min' or '1:30:00'")
    if kinds.is_duration(a.type) and a.type.unit in ("s", "ms") and len(a):
        return a.cast(pa.duration("us")).cast(pa.int64())  # an error where that is too long
    return _micros(a) if kinds.is_duration(a.type) or kinds.is_integer(a.type) else None


def _list(a: pa.Array, t: Type) -> pa.Array | None:
    if is_text(a.type):
        return _json(a.cast(pa.string()), t)
    if not is_list(a.type):
        return None
    item = item_of(t)
    count = pc.list_value_length(a).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if len(count) and count.max() > lists.MOST:
        row = int(np.argmax(count))
        raise ValueError(f"{count[row]} items in row {row}: {lists.MOST} are the most")
    items = a.flatten()
    check_items(items)
    values = to_physical(items, item) if len(items) else pa.array([], item.arrow)
    if item.kind is Kind.TIMESTAMP:
        _within_years(values)
    found = lists.made(np.concatenate([[0], np.cumsum(count)]), values, str(item))
    return pc.if_else(a.is_valid(), found, pa.nulls(len(a), pa.string())) if a.null_count else found


def _json(texts: pa.Array, t: Type) -> pa.Array:
    found, bad = lists.canonical(texts, str(t.item), exact=True)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"str {shown(texts[row].as_py())} in row {row}: a list is written [1, 2, 3]"
        )
    return found


def _within_years(instants_: pa.Array) -> None:
    low, high = pc.min_max(instants_).values()
    if low.is_valid and (low.as_py() < MIN_INSTANT or high.as_py() > MAX_INSTANT):
        raise ValueError("an instant is outside the years 0001-9999")


def _read(
    texts: pa.Array, read: Callable[[pa.Array], pa.Array], why: Callable[[str], str]
) -> pa.Array:
    """What all the texts stand for.  Raises ValueError for the first that stands for nothing."""
    found = read(texts.cast(pa.string()))
    if found.null_count != texts.null_count:
        wrong = pc.and_(found.is_null(), texts.is_valid())
        row = pc.index(wrong, True).as_py()
        text = texts[row].as_py()
        raise ValueError(f"str {shown(text)} in row {row}: {why(text)}")
    return found


def _micros(a: pa.Array) -> pa.Array:
    if kinds.is_integer(a.type) or a.type.unit == "us":
        return a.cast(pa.int64())
    ticks = a.cast(pa.int64())
    return with_nulls_of(to_micros(int_values(ticks), TICKS[a.type.unit]), ticks)


def is_text(t: pa.DataType) -> bool:
    """Whether values are strings of one form or another."""
    return bool(kinds.is_string(t) or kinds.is_large_string(t) or kinds.is_string_view(t))


def hint_for(got: pa.DataType, wanted: Type) -> str | None:
    """What to do where a column of the one type can't be the other."""
    if kinds.is_run_end_encoded(got):
        got = got.value_type
    if kinds.is_floating(got):
        return _FLOAT_HINTS.get(wanted.kind)
    if kinds.is_decimal(got) and wanted.kind is Kind.FLOAT:
        return "convert the column to float64 before it is sent, or declare it DECIMAL"
    if is_text(got) and wanted.kind in (Kind.BOOL, Kind.INT, Kind.FLOAT):
        return f"text is not taken for {wanted}: convert the column before it is sent"
    return None


_FLOAT_HINTS = {
    Kind.DECIMAL: "binary floats are not exact: send decimals, integers or text",
    Kind.INT: "round the column before it is sent (in pandas .round().astype('Int64') keeps its "
    "gaps), or declare it FLOAT",
    Kind.TIMESTAMP: "a number of seconds has no unit here: send timestamps, or integers of "
    "microseconds",
    Kind.INTERVAL: "a number has no unit here: send durations, or integers of microseconds",
}
_CONVERT = {
    Kind.BOOL: _bool,
    Kind.INT: _int,
    Kind.FLOAT: _float,
    Kind.DECIMAL: _decimal,
    Kind.STRING: _string,
    Kind.BYTES: _bytes,
    Kind.TIMESTAMP: _timestamp,
    Kind.INTERVAL: _interval,
    Kind.LIST: _list,
}
