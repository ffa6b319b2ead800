"""One Python value -> its physical form: the slow way, for lists that can't be taken as a whole column."""

from __future__ import annotations

import datetime as dt
import numbers
import re
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

from dsms.sql.types import Kind, Type

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO = dt.timedelta(microseconds=1)
_INT64 = 1 << 63
_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000))
_DECIMAL = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?\s*")  # Python takes 1_000, too
_EXACT = Context(prec=76, traps=[Inexact, InvalidOperation])


def physical(value: Any, type_: Type) -> Any:
    """The value as `pa.array(..., type_.arrow)` takes it; None for NULL.  ValueError says what was wrong."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "item") and hasattr(value, "dtype") and type_.kind not in (Kind.TIMESTAMP, Kind.INTERVAL):
        value = value.item()  # a NumPy scalar
    try:
        return _PHYSICAL[type_.kind](value, type_)
    except ArithmeticError:
        raise _wrong(value, type_) from None


def shown(value: Any) -> str:
    """A value as an error message quotes it, cut short."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def instant_text(instant: int) -> str:
    """An instant (µs) as ISO 8601 in UTC, for messages."""
    try:
        moment = EPOCH + dt.timedelta(microseconds=instant)
    except OverflowError:
        return f"{instant} µs"
    return moment.replace(tzinfo=None).isoformat() + "Z"


def duration_text(micros: int) -> str:
    """A length of time (µs) in the largest unit that divides it, e.g. ``90 s``, for messages."""
    for unit, size in _UNITS:
        if micros and micros % size == 0:
            return f"{micros // size} {unit}"
    return f"{micros} µs"


def _wrong(value: Any, type_: Type, why: str = "") -> ValueError:
    return ValueError(f"expected {type_}, got {type(value).__name__} {shown(value)}{why}")


def _bool(value: Any, type_: Type) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(value, type_)


def _int(value: Any, type_: Type) -> int:
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise _wrong(value, type_)
    number = int(value)
    if not -_INT64 <= number < _INT64:
        raise _wrong(value, type_, ", which needs more than 64 bits")
    return number


def _float(value: Any, type_: Type) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise _wrong(value, type_)
    if isinstance(value, numbers.Integral) and int(float(value)) != value:
        raise _wrong(value, type_, ", which is not exact as a FLOAT")
    return float(value)


def _decimal(value: Any, type_: Type) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (Decimal, int, str)):
        raise _wrong(value, type_)
    if isinstance(value, str) and not _DECIMAL.fullmatch(value):
        raise _wrong(value, type_)
    number = Decimal(value)
    if not number.is_finite():
        raise _wrong(value, type_)
    exact = number.quantize(Decimal((0, (1,), -type_.scale)), context=_EXACT)  # Inexact, InvalidOperation
    if len(exact.as_tuple().digits) > type_.precision:
        raise _wrong(value, type_, f", which has more than {type_.precision} digits")
    return exact


def _string(value: Any, type_: Type) -> str:
    if not isinstance(value, str):
        raise _wrong(value, type_)
    value.encode()  # lone surrogates can't be stored: UnicodeEncodeError is a ValueError
    return value


def _bytes(value: Any, type_: Type) -> bytes:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _wrong(value, type_)


def _timestamp(value: Any, type_: Type) -> int:
    if isinstance(value, str):
        value = _parsed(value, type_)
    if isinstance(value, dt.datetime):
        return ((value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - EPOCH) // _MICRO
    if isinstance(value, dt.date):
        return (dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC) - EPOCH) // _MICRO
    if type(value).__name__ == "datetime64":
        value = _numpy_micros(value, "datetime64", type_)
    return _int(value, type_)


def _parsed(value: str, type_: Type) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(value.strip())
    except ValueError:
        raise _wrong(value, type_, ": not ISO 8601") from None


def _interval(value: Any, type_: Type) -> int:
    if isinstance(value, dt.timedelta):
        value = value // _MICRO
    elif type(value).__name__ == "timedelta64":
        value = _numpy_micros(value, "timedelta64", type_)
    return _int(value, type_)


def _numpy_micros(value: Any, kind: str, type_: Type) -> int:
    import numpy as np

    if np.isnat(value):
        raise _wrong(value, type_)
    unit, count = np.datetime_data(value.dtype)
    if unit in ("ns", "us", "ms", "s", "m", "h", "D", "W"):
        micros = {"ms": 10**3, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6, "D": 86400 * 10**6, "W": 604800 * 10**6}
        ticks = int(value.astype(np.int64)) * count
        return ticks // 1000 if unit == "ns" else ticks * micros.get(unit, 1)
    return int(value.astype(f"{kind}[us]").astype(np.int64))


_PHYSICAL = {
    Kind.BOOL: _bool,
    Kind.INT: _int,
    Kind.FLOAT: _float,
    Kind.DECIMAL: _decimal,
    Kind.STRING: _string,
    Kind.BYTES: _bytes,
    Kind.TIMESTAMP: _timestamp,
    Kind.INTERVAL: _interval,
}
