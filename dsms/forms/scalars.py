"""One value of whatever library -> one of few plain kinds; what is none of them is named, for a
refusal.

    None          None, pandas' NA and NaT, NumPy's NaT
    Instant       datetime, date (its midnight, UTC), NumPy's datetime64 of any unit, pandas'
                  Timestamp and Period (its start); without a zone: UTC; finer than a microsecond:
                  rounded down
    Length        timedelta, NumPy's timedelta64 of any unit that has a length, pandas' Timedelta
    bool, int, float, Decimal, str, bytes   themselves, and NumPy's scalars of these
    dict          maps whose keys are texts, and Arrow's structs, whose values stay as they are
    list          lists, tuples and NumPy's arrays of one dimension, whose items stay as they are
    Other         anything else; times of a day and UUIDs by their texts

NumPy and pandas are never imported here: a value of theirs shows that they are there.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral
from typing import Any
from uuid import UUID

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
FAR = 2**62  # µs: outside the years 0001-9999 in both directions
_DAY = 86_400_000_000  # µs
_MICRO = dt.timedelta(microseconds=1)
MICROS = {  # NumPy's units of one length, in microseconds
    "us": 1,
    "ms": 10**3,
    "s": 10**6,
    "m": 60 * 10**6,
    "h": 3600 * 10**6,
    "D": 86_400 * 10**6,
    "W": 604_800 * 10**6,
}
_PARTS = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}  # of them in a microsecond


@dataclass(frozen=True, slots=True)
class Instant:
    """Microseconds since the epoch, as many as there are (perhaps more than 64 bits hold)."""

    us: int

    @property
    def near(self) -> int:
        """As much in 64 bits; ±FAR for what lies further away."""
        return max(-FAR, min(FAR, self.us))

    def __repr__(self) -> str:
        try:
            return repr(
                (EPOCH + dt.timedelta(microseconds=self.us)).replace(tzinfo=None).isoformat(" ")
            )
        except OverflowError:
            return f"{self.us} µs since 1970"


@dataclass(frozen=True, slots=True)
class Length:
    """Microseconds, as many as there are (perhaps more than 64 bits hold)."""

    us: int

    def __repr__(self) -> str:
        return f"{self.us} µs"


@dataclass(frozen=True, slots=True)
class Other:
    """A value that is of no type that a column has: the name of its class, and how it is shown."""

    kind: str
    text: str

    def __repr__(self) -> str:
        return self.text


_PLAIN = frozenset(
    {type(None), bool, int, float, str, bytes, Decimal, Instant, Length, Other, list, dict}
)
_NAMES = {Instant: "datetime", Length: "timedelta"}


def as_builtin(value: Any) -> Any:
    """The value as one of the plain kinds."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind.__name__ in ("NAType", "NaTType"):
        return None
    np = sys.modules.get("numpy")
    if np is not None and isinstance(value, (np.generic, np.ndarray)):
        return _from_numpy(value, np)
    if kind.__module__.partition(".")[0] == "pandas":
        return _from_pandas(value)
    if kind.__module__.partition(".")[0] == "pyarrow" and hasattr(value, "as_py"):
        return _from_arrow(value)
    return _from_python(value)


def a(noun: str) -> str:
    """The noun with its article."""
    return f"{'an' if noun[:1].lower() in tuple('aeiou') else 'a'} {noun}"


def kind_name(value: Any) -> str:
    """What messages call the kind of a value."""
    return value.kind if isinstance(value, Other) else _NAMES.get(type(value), type(value).__name__)


def shown(value: Any) -> str:
    """A value as an error message quotes it, cut short."""
    try:
        text = repr(_head(value))
    except Exception:  # an integer of thousands of digits, or whatever a class does
        text = a(type(value).__name__)
    return cut(text)


def _head(value: Any) -> Any:
    """What of a value is shown; of a list the items as plain kinds, as clients send them."""
    match value:
        case list():
            return [_head(as_builtin(item)) for item in value[:40]]
        case str() | bytes():
            return value[:40]
    return value


def cut(text: str) -> str:
    """What is shown of a text in an error message."""
    return text if len(text) <= 40 else text[:37] + "..."


def _other(value: Any) -> Other:
    return Other(type(value).__name__, shown(value))


def _from_python(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return Instant(
            ((value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - EPOCH) // _MICRO
        )
    if isinstance(value, dt.date):
        return Instant(
            (dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC) - EPOCH) // _MICRO
        )
    if isinstance(value, dt.time):
        return Other("time", value.isoformat())
    if type(value) is UUID:
        return Other("UUID", str(value))
    if isinstance(value, dt.timedelta):
        return Length(value // _MICRO)
    if isinstance(value, str):
        return str.__str__(value)  # an Enum's own would say its name
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Decimal):
        return Decimal(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (list, tuple)):  # as a tuple a list comes over a connection
        return list(value)
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        return dict(value)
    if isinstance(value, Other):  # a class of these
        return value
    return int(value) if isinstance(value, Integral) else _other(value)


def _from_arrow(value: Any) -> Any:
    """A scalar of Arrow."""
    if not value.is_valid:
        return None
    import numpy as np
    import pyarrow.types as kinds

    if hasattr(value, "value") and hasattr(value.value, "is_valid"):  # of a dictionary, or its like
        return _from_arrow(value.value)
    if kinds.is_date(value.type):  # one that Python's own has no year for, too
        return Instant(value.value * (_DAY if kinds.is_date32(value.type) else 1000))
    if kinds.is_time(value.type):
        per_second = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[value.type.unit]
        us = value.value * 10**6 // per_second
        return Other(
            "time",
            str(
                dt.time(
                    us // 3_600_000_000, us // 60_000_000 % 60, us // 1_000_000 % 60, us % 1_000_000
                )
            ),
        )
    if kinds.is_timestamp(value.type) or kinds.is_duration(value.type):
        form = np.datetime64 if kinds.is_timestamp(value.type) else np.timedelta64
        return _from_numpy_time(form(value.value, value.type.unit), np)
    found = value.as_py()
    return _other(value) if hasattr(found, "is_valid") else as_builtin(found)


def _from_pandas(value: Any) -> Any:
    """A Timestamp, Timedelta or Period; each tells NumPy's form of it (in UTC)."""
    if hasattr(value, "to_timestamp") and hasattr(value, "ordinal"):
        value = value.to_timestamp(how="start")
    for form in ("to_datetime64", "to_timedelta64"):
        if hasattr(value, form):
            return as_builtin(getattr(value, form)())
    return _from_python(value)


def _from_numpy(value: Any, np: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.ndim == 1:
            return list(value)
        return as_builtin(value[()]) if value.ndim == 0 else _other(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _from_numpy_time(value, np)
    if isinstance(value, np.longdouble) and value.dtype.itemsize > 8:
        number = float(value)
        return number if number == value or number != number else _other(value)
    found = value.item()
    return found if type(found) in _PLAIN else _other(value)


def _from_numpy_time(value: Any, np: Any) -> Any:
    if np.isnat(value):
        return None
    length = isinstance(value, np.timedelta64)
    unit, count = np.datetime_data(value.dtype)
    ticks = int(value.astype(np.int64)) * count
    if not length and unit in ("Y", "M"):
        ticks, unit = _first_day(ticks * 12 if unit == "Y" else ticks), "D"
    if unit in MICROS:
        micros = ticks * MICROS[unit]
    elif unit in _PARTS:
        micros = ticks // _PARTS[unit]
    else:
        return _other(value)  # years and months have no one length, and a bare count has no unit
    return Length(micros) if length else Instant(micros)


def _first_day(months: int) -> int:
    """Days from 1970-01-01 to the first day of that month after January 1970, however far: where
    NumPy's own count goes beyond 64 bits it begins anew."""
    centuries, month = divmod(months, 4800)  # of 400 years, of 146,097 days each
    return (
        centuries * 146_097 + dt.date(1970 + month // 12, month % 12 + 1, 1).toordinal() - 719_163
    )
