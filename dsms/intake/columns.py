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
  DATE       dates, timestamps at midnight (UTC), text of `dsms.typed_texts`, ints (µs)
  TIME       times of any unit (finer than µs: rounded down), text, ints (µs since midnight)
  UUID       values of 16 bytes, Arrow's UUIDs, text
  STRUCT     structs of what their fields take, which may lack some (NULL); text of JSON
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

from dsms.decimals import decimals, resized, whole
from dsms.forms.encodings import plain_type, without_encodings
from dsms.forms.frames import without_extension
from dsms.instants import instants
from dsms.instants import why_not as why_no_instant
from dsms.intake import containers
from dsms.intake.hints import hint_for, is_text
from dsms.intake.values import physical, shown
from dsms.lengths import lengths
from dsms.sql.types import NESTED, Kind, Type
from dsms.typed_texts import READ, from_edge, odd_counts, uuids_of, why_not_count
from dsms.typed_texts import why_not as why_no_value
from dsms.untrusted.types import why_not
from dsms.untrusted.views import is_view

TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # per second
_FAR = 2**62  # µs: outside the years 0001-9999 in both directions
_EXACT = 2**53  # whole floats up to here are what they were before they became floats


# kinds of which not every value of their physical type is one
_JUDGED = (*NESTED, Kind.DATE, Kind.TIME, Kind.UUID)


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
    if array.type == type_.arrow and type_.kind not in _JUDGED:
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


def _date(a: pa.Array, t: Type) -> pa.Array | None:
    return a if is_text(a.type) else _timestamp(a, t)


def _time(a: pa.Array, t: Type) -> pa.Array | None:
    if kinds.is_time(a.type) and a.type.unit == "ns":
        ticks = a.cast(pa.int64())
        return with_nulls_of(int_values(ticks) // 1000, ticks)
    if kinds.is_time(a.type):
        return from_edge(a)
    return a if is_text(a.type) else _int(a, t) if kinds.is_integer(a.type) else None


def _uuid(a: pa.Array, t: Type) -> pa.Array | None:
    if is_text(a.type):
        return a
    blobs = _bytes(a, t)
    if blobs is not None and pc.any(pc.not_equal(pc.binary_length(blobs), 16)).as_py():
        raise ValueError("a UUID has 16 bytes")
    return None if blobs is None else uuids_of(blobs)


def _typed(as_text: Callable[[pa.Array, Type], pa.Array | None]) -> Callable[..., pa.Array | None]:
    """A DATE, TIME or UUID of what `as_text` leaves as text, or as microseconds to be judged."""

    def convert(a: pa.Array, t: Type) -> pa.Array | None:
        found = as_text(a, t)
        if found is None or (t.kind is Kind.UUID and not is_text(a.type)):
            return found
        if is_text(found.type):
            return _read(found, READ[str(t)], lambda text: why_no_value(text, str(t)))
        wrong = odd_counts(found, str(t))
        if pc.any(wrong, min_count=0).as_py():
            row = pc.index(wrong, True).as_py()
            count = found[row].as_py()
            raise ValueError(f"{a[row]} in row {row}: {why_not_count(count, str(t))}")
        return found

    return convert


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


_CONVERT = {
    Kind.BOOL: _bool,
    Kind.INT: _int,
    Kind.FLOAT: _float,
    Kind.DECIMAL: _decimal,
    Kind.STRING: _string,
    Kind.BYTES: _bytes,
    Kind.TIMESTAMP: _timestamp,
    Kind.INTERVAL: _interval,
    Kind.DATE: _typed(_date),
    Kind.TIME: _typed(_time),
    Kind.UUID: _typed(_uuid),
    Kind.LIST: lambda a, t: containers.lists_of(a, t, to_physical),
    Kind.STRUCT: lambda a, t: containers.structs_of(a, t, to_physical),
}
