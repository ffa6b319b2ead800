"""One column of whatever form -> an Arrow array of the physical type, without losing anything.

What is accepted for each SQL type (all others are a `Mismatch`):

  BOOL       bool
  INT        ints of any width, unsigned ones that fit, decimals without a fraction; whole floats from pandas only,
             which turns INT columns with gaps into floats
  FLOAT      floats of any width, ints up to ±2^53
  DECIMAL    decimals and ints that fit exactly; text in lists and rows
  STRING     strings, large strings, string views, dictionary-encoded strings
  BYTES      binary, large binary, views, fixed size binary
  TIMESTAMP  timestamps of any unit and zone, dates (midnight UTC), ints (µs); ISO 8601 text in lists and rows.
             Without a zone: UTC.  Finer than µs: rounded down, also before 1970.
  INTERVAL   durations of any unit, ints (µs)

No Python per value here: `values.py` does that for lists that fail as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.sql.types import Kind, Type
from dsms.untrusted.types import why_not
from dsms.untrusted.views import without_views

TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # per second
_FAR = 2**62  # µs: outside the years 0001-9999 in both directions


@dataclass
class Mismatch(Exception):
    """A column can't be taken: what came, and why."""

    got: str
    why: str = ""
    hint: str | None = None


def to_physical(array: pa.Array, type_: Type, *, text: bool = False, whole: bool = False) -> pa.Array:
    """The column with the physical type of `type_`; the same object where it has that already.

    `text` admits ISO 8601 text for TIMESTAMP and text for DECIMAL, `whole` floats without a fraction for INT.
    Instants too far for int64 µs become ±2^62, which lies outside every year that is allowed.  Raises Mismatch.
    """
    if array.type == type_.arrow:
        return array
    why = why_not(array.type)
    if why is not None:
        raise Mismatch(_shown(array.type), why)
    try:
        array = _plain(array)
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), type_.arrow)
        out = _CONVERT[type_.kind](array, type_, text, whole)
    except (pa.ArrowException, ValueError, OverflowError) as err:
        raise Mismatch(str(array.type), _first_line(err)) from None
    if out is None:
        raise Mismatch(str(array.type), hint=_hint(array.type, type_))
    return out


def joined(array: pa.ChunkedArray) -> pa.Array:
    """All chunks as one array; dictionaries and runs are written out, which Arrow can't join for all their values."""
    if array.num_chunks == 1:
        return array.chunk(0)
    why = why_not(array.type)
    if why is not None:
        raise Mismatch(_shown(array.type), why)
    plain = _plain_type(array.type)
    if plain == array.type and array.num_chunks:
        return array.combine_chunks()
    return pa.concat_arrays([_plain(c) for c in array.chunks]) if array.num_chunks else pa.array([], plain)


def from_list(values: Sequence[object], type_: Type) -> pa.Array:
    """The physical column of a list of Python values, by inference and then `to_physical`.  Raises Mismatch."""
    try:
        array = pa.array(values)
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as err:
        raise Mismatch("a list of mixed or unknown values", _first_line(err)) from None
    if not pa.types.is_integer(array.type):
        kinds = set(map(type, values)) - {type(None)}
        if len(kinds) > 1 and not (pa.types.is_floating(array.type) and kinds <= {int, float}):
            raise Mismatch("a list of mixed values")  # Arrow takes text for bytes, bools and instants for floats
    return to_physical(array, type_, text=True)


def int_values(array: pa.Array) -> np.ndarray:
    """The int64 values as NumPy, NULLs as 0; no copy where there are none."""
    return (array.fill_null(0) if array.null_count else array).to_numpy()


class _Unlocked:
    """The memory of an array that may not be written to, offered as if it might; keeps the array alive."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        told = array.__array_interface__
        self.__array_interface__ = {**told, "data": (told["data"][0], False)}


def unlocked(array: np.ndarray) -> np.ndarray:
    """The same array, no copy, writable as far as Numba can see: it compiles every kernel anew for arrays that are not.

    Arrow's memory is shared: nobody writes to it."""
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
    """Without extension types, dictionaries, run-end encoding and views, of which Arrow's kernels know too little."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return without_views(array.dictionary).take(array.indices)
    if pa.types.is_run_end_encoded(array.type):
        runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, without_views(array.values))
        return pc.run_end_decode(runs.slice(array.offset, len(array)))
    return without_views(array)


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    encoded = pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_)
    return without_views(pa.array([], type_.value_type)).type if encoded else type_


def _shown(type_: pa.DataType) -> str:
    try:
        return str(type_)
    except UnicodeDecodeError:
        return "a type whose names are not UTF-8"


def _bool(a: pa.Array, t: Type, text: bool, whole: bool) -> pa.Array | None:
    return a if pa.types.is_boolean(a.type) else None


def _int(a: pa.Array, t: Type, text: bool, whole: bool) -> pa.Array | None:
    if pa.types.is_integer(a.type) or pa.types.is_decimal(a.type) or (whole and pa.types.is_floating(a.type)):
        return a.cast(pa.int64())
    return None


def _float(a: pa.Array, t: Type, text: bool, whole: bool) -> pa.Array | None:
    return a.cast(pa.float64()) if pa.types.is_floating(a.type) or pa.types.is_integer(a.type) else None


def _decimal(a: pa.Array, t: Type, text: bool, whole: bool) -> pa.Array | None:
    if pa.types.is_integer(a.type):
        wide = 19 + t.scale  # digits that Arrow asks for; beyond 38 it takes the 256-bit form
        return a.cast(pa.decimal128(wide, t.scale) if wide <= 38 else pa.decimal256(wide, t.scale)).cast(t.arrow)
    if pa.types.is_decimal(a.type) or (text and _is_text(a.type)):
        return a.cast(t.arrow)
    return None


def _string(a: pa.Array, t: Type, text: bool, whole: bool) -> pa.Array | None:
    return a.cast(pa.string()) if _is_text(a.type) else None


def _bytes(a: pa.Array, t: Type, text: bool, whole: bool) -> pa.Array | None:
    tt = pa.types
    ok = tt.is_binary(a.type) or tt.is_large_binary(a.type) or tt.is_fixed_size_binary(a.type)
    return a.cast(pa.binary()) if ok or tt.is_binary_view(a.type) else None


def _timestamp(a: pa.Array, t: Type, text: bool, whole: bool) -> pa.Array | None:
    if text and _is_text(a.type):
        a = _instants(a)
    if pa.types.is_date(a.type):
        return _micros(a.cast(pa.timestamp("s" if pa.types.is_date32(a.type) else "ms")))
    return _micros(a) if pa.types.is_timestamp(a.type) or pa.types.is_integer(a.type) else None


def _interval(a: pa.Array, t: Type, text: bool, whole: bool) -> pa.Array | None:
    return _micros(a) if pa.types.is_duration(a.type) or pa.types.is_integer(a.type) else None


def _micros(a: pa.Array) -> pa.Array:
    if pa.types.is_integer(a.type) or a.type.unit == "us":
        return a.cast(pa.int64())
    ticks = a.cast(pa.int64())
    return with_nulls_of(to_micros(int_values(ticks), TICKS[a.type.unit]), ticks)


def _instants(a: pa.Array) -> pa.Array:
    """ISO 8601 text, all with a zone or all without."""
    try:
        return a.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return a.cast(pa.timestamp("us", "UTC"))


def _is_text(t: pa.DataType) -> bool:
    return pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t)


def _hint(got: pa.DataType, wanted: Type) -> str | None:
    if wanted.kind is Kind.DECIMAL and pa.types.is_floating(got):
        return "binary floats are not exact: send decimals or text"
    if wanted.kind is Kind.INT and pa.types.is_floating(got):
        return "convert the column to int64 before it is sent, or declare it FLOAT"
    if wanted.kind is Kind.FLOAT and pa.types.is_decimal(got):
        return "convert the column to float64 before it is sent, or declare it DECIMAL"
    if _is_text(got) and wanted.kind is not Kind.BYTES:
        return "text is not taken for other types here: convert the column before it is sent"
    return None


_CONVERT = {
    Kind.BOOL: _bool,
    Kind.INT: _int,
    Kind.FLOAT: _float,
    Kind.DECIMAL: _decimal,
    Kind.STRING: _string,
    Kind.BYTES: _bytes,
    Kind.TIMESTAMP: _timestamp,
    Kind.INTERVAL: _interval,
}
