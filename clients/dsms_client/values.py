"""Values that msgpack has no form for, as its extension types: what they are is not lost on the way
to intake.

    1  an instant: int64 microseconds since the epoch, UTC; of one that no column takes more bytes
    2  a length: int64 microseconds
    3  a decimal: its text
    4  an integer of more than 64 bits, signed
    5  a value that no column takes: the name of its class, a NUL, how it is shown

In `rows` and `columns` of `ingest` only.  All numbers are big-endian.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgpack

from dsms.forms.scalars import Instant, Length, Other, as_builtin, cut, kind_name, shown

INSTANT, LENGTH, DECIMAL, INTEGER, OTHER = 1, 2, 3, 4, 5
MAX_BYTES = 128  # of an integer: FLOAT reaches as far
MOST_SHOWN = 40  # pairs of a map in an error message, which is cut short
_INT64 = 1 << 63
_FAREST = 24  # bytes of an instant: the furthest of NumPy's lies within these
_TEXT = 200  # characters of a decimal


def to_wire(value: Any) -> Any:
    """What stands for a value that msgpack doesn't know (the packer's `default`)."""
    value = as_builtin(value)
    if isinstance(value, Instant):
        return msgpack.ExtType(INSTANT, _bytes(value.us))
    if isinstance(value, Length) and -_INT64 <= value.us < _INT64:
        return msgpack.ExtType(LENGTH, value.us.to_bytes(8, "big", signed=True))
    if isinstance(value, Decimal) and len(str(value)) <= _TEXT:
        return msgpack.ExtType(DECIMAL, str(value).encode())
    if type(value) is int:
        return value if -_INT64 <= value < 2 * _INT64 else _integer(value)
    if isinstance(value, (Length, Decimal, Other)):
        return _other(value)
    return value  # a list, whose items have their turn


def sendable(value: Any) -> Any:
    """`to_wire` for any value of a row or a column, text that is no Unicode and things that hold
    others among them."""
    value = as_builtin(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return _other(value)
    if isinstance(value, list):
        items = map(as_builtin, value)
        return [_other(v) if isinstance(v, list | dict) else sendable(v) for v in items]
    if isinstance(value, dict):
        fields = {key: as_builtin(v) for key, v in value.items()}
        return {
            k: _other(v) if isinstance(v, list | dict) else sendable(v) for k, v in fields.items()
        }
    return to_wire(value)


def all_sendable(message: dict[str, Any]) -> dict[str, Any]:
    """An `ingest` with a stand-in for each value of its rows and columns that msgpack can't
    write."""
    rows, columns = message.get("rows"), message.get("columns")
    if rows is not None:
        message = {**message, "rows": [_row(row) for row in rows]}
    if columns is not None:
        message = {
            **message,
            "columns": {key: [sendable(v) for v in values] for key, values in columns.items()},
        }
    return message


def _row(row: Any) -> Any:
    if isinstance(row, dict):
        return {key: sendable(value) for key, value in row.items()}
    return [sendable(value) for value in row] if isinstance(row, (list, tuple)) else sendable(row)


@dataclass(frozen=True, slots=True, repr=False)
class Pairs(Other):
    """A map with keys that are no text, which no column takes.  It is no dict, as one of numbers
    can be made slow by who knows their hashes."""

    pairs: tuple[tuple[Any, Any], ...] = ()

    def row(self) -> Any:
        """As a row, whose names may be told if they are few."""
        return dict(self.pairs) if len(self.pairs) <= MOST_SHOWN else self


def map_of(pairs: list[tuple[Any, Any]]) -> Any:
    """A map of msgpack, whose keys may be anything."""
    if all(type(key) is str for key, _ in pairs):
        return dict(pairs)
    text = ", ".join(f"{key!r}: {value!r}" for key, value in pairs[:MOST_SHOWN])
    return Pairs("dict", cut(f"{{{text}}}"), tuple(pairs))


def from_wire(code: int, data: bytes) -> Any:
    """The value of an extension type (the unpacker's `ext_hook`).  Raises ValueError for what none
    has."""
    if code == INSTANT and 8 <= len(data) <= _FAREST:
        return Instant(int.from_bytes(data, "big", signed=True))
    if code == LENGTH and len(data) == 8:
        return Length(int.from_bytes(data, "big", signed=True))
    if code == DECIMAL and 0 < len(data) <= _TEXT:
        try:
            return Decimal(data.decode())
        except ArithmeticError:
            raise ValueError("an extension of a decimal that is none") from None
    if code == INTEGER and 0 < len(data) <= MAX_BYTES:
        return int.from_bytes(data, "big", signed=True)
    if code == OTHER:
        kind, _, text = data.decode().partition("\0")
        return Other(kind, text)
    raise ValueError(f"msgpack extension type {code} of {len(data)} bytes has no meaning here")


def _bytes(micros: int) -> bytes:
    """Those of an instant: 8, or more for one so far away that no column takes it."""
    size = max(8, micros.bit_length() // 8 + 1)
    return micros.to_bytes(size, "big", signed=True)


def _integer(value: int) -> Any:
    size = value.bit_length() // 8 + 1
    if size > MAX_BYTES:
        return _other(value)
    return msgpack.ExtType(INTEGER, value.to_bytes(size, "big", signed=True))


def _other(value: Any) -> Any:
    described = f"{kind_name(value)}\0{shown(value)}"
    return msgpack.ExtType(OTHER, described.encode(errors="backslashreplace"))
