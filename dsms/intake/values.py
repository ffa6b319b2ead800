"""One value -> its physical form: the slow way, for lists that can't be taken as a whole column."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any
from uuid import UUID

import pyarrow as pa

from dsms import lists, structs, typed_texts
from dsms.forms.scalars import EPOCH, Instant, Length, Other, as_builtin, kind_name, shown
from dsms.instants import MAX_INSTANT, MIN_INSTANT, instant, why_not
from dsms.lengths import interval_of
from dsms.sql.types import INTERVAL, Kind, Type, item_of

__all__ = ["duration_text", "instant_text", "physical", "shown"]

_INT64 = 1 << 63
_TOO_LARGE = ", which needs more than 64 bits"
_LENGTHS = ": a length is written '1 h 30 min' or '1:30:00'"
_NO_UNICODE = "\ud800"
_UNITS = (
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1000),
)
# Python takes 1_000, too
_DECIMAL = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?\s*")
_EXACT = Context(prec=76, traps=[Inexact, InvalidOperation])
_WHOLE = 2**53  # floats up to here are what they were before they became floats


class WrongValue(ValueError):
    """A value that its column can't hold; `why`: more than its kind tells."""

    def __init__(self, message: str, why: str = "") -> None:
        super().__init__(message)
        self.why = why


def physical(value: Any, type_: Type) -> Any:
    """The value as `pa.array(..., type_.arrow)` takes it; None for NULL.  ValueError says what was
    wrong."""
    value = as_builtin(value)
    if value is None:
        return None
    try:
        return _PHYSICAL[type_.kind](value, type_)
    except ArithmeticError:
        raise _wrong(value, type_) from None


def instant_text(instant: int) -> str:
    """An instant (µs) as ISO 8601 in UTC, for messages."""
    try:
        moment = EPOCH + dt.timedelta(microseconds=instant)
    except OverflowError:
        return "10000-01-01T00:00:00Z" if instant == MAX_INSTANT + 1 else f"{instant} µs"
    return moment.replace(tzinfo=None).isoformat() + "Z"


def duration_text(micros: int) -> str:
    """A length of time (µs) in the largest unit that divides it, e.g. ``90 s``, for messages."""
    for unit, size in _UNITS:
        if micros and micros % size == 0:
            return f"{micros // size} {unit}"
    return f"{micros} µs"


def _wrong(value: Any, type_: Type, why: str = "") -> WrongValue:
    return WrongValue(
        f"expected {type_}, got {kind_name(value)} {shown(value)}{why}", why.lstrip(":, ")
    )


def _bool(value: Any, type_: Type) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(value, type_)


def _int(value: Any, type_: Type) -> int:
    if (
        isinstance(value, Decimal)
        and value.is_finite()
        and value.adjusted() < 20
        and value == int(value)
    ):
        value = int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) <= _WHOLE:
        value = int(value)
    return _count(value, type_)


def _count(value: Any, type_: Type) -> int:
    if type(value) is not int:
        raise _wrong(value, type_, _TOO_LARGE if _was_number(value, type_) else "")
    if not -_INT64 <= value < _INT64:
        raise _wrong(value, type_, _TOO_LARGE)
    return value


def _was_number(value: Any, type_: Type) -> bool:
    """A number so large that a client could send nothing but its kind and its first digits."""
    return isinstance(value, Other) and (
        value.kind == "int" or (value.kind == "timedelta" and type_ == INTERVAL)
    )


def _was_text(value: Any) -> bool:
    """Text that a client could not send as it is no Unicode."""
    return isinstance(value, Other) and value.kind == "str"


def _float(value: Any, type_: Type) -> float:
    if type(value) is not int and type(value) is not float:
        raise _wrong(value, type_)
    if isinstance(value, int) and int(float(value)) != value:
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
    # Inexact, InvalidOperation
    exact = number.quantize(Decimal((0, (1,), -type_.scale)), context=_EXACT)
    if len(exact.as_tuple().digits) > type_.precision:
        raise _wrong(value, type_, f", which has more than {type_.precision} digits")
    return exact


def _string(value: Any, type_: Type) -> str:
    if not isinstance(value, str):
        raise _wrong(value, type_)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _wrong(value, type_) from None
    return value


def _bytes(value: Any, type_: Type) -> bytes:
    if isinstance(value, bytes):
        return value
    raise _wrong(value, type_)


def _timestamp(value: Any, type_: Type) -> int:
    if isinstance(value, str):
        found = instant(value)
        if found is None:
            raise _wrong(value, type_, f": {why_not(value)}")
        return found
    if _was_text(value):
        raise _wrong(value, type_, f": {why_not(_NO_UNICODE)}")
    return _count(value.near if isinstance(value, Instant) else value, type_)


def _interval(value: Any, type_: Type) -> int:
    if isinstance(value, str):
        found = interval_of(value.strip())
        if found is None:
            raise _wrong(value, type_, _LENGTHS)
        return found
    if _was_text(value):
        raise _wrong(value, type_, _LENGTHS)
    if isinstance(value, Length) and not -_INT64 <= value.us < _INT64:
        raise _wrong(value, type_, _TOO_LARGE)
    return _count(value.us if isinstance(value, Length) else value, type_)


def _typed(value: Any, type_: Type) -> int | str:
    """A DATE, TIME or UUID."""
    sql = str(type_)
    if isinstance(value, Other) and value.kind == _OWN.get(sql):
        value = value.text
    if isinstance(value, str):
        found = typed_texts.value_of(value, sql)
        if found is None:
            raise _wrong(value, type_, f": {typed_texts.why_not(value, sql)}")
        return found
    if _was_text(value):
        raise _wrong(value, type_, f": {typed_texts.why_not(_NO_UNICODE, sql)}")
    if type_.kind is Kind.UUID and isinstance(value, bytes) and len(value) == 16:
        return str(UUID(bytes=value))
    if type_.kind is Kind.UUID:
        raise _wrong(value, type_)
    instant = isinstance(value, Instant) and type_.kind is Kind.DATE
    count = _count(value.near if instant else value, type_)
    if why := typed_texts.why_not_count(count, sql):
        raise _wrong(value, type_, f": {why}")
    return count


_OWN = {"TIME": "time", "UUID": "UUID"}  # Python's classes for them


def _list(value: Any, type_: Type) -> str:
    """The list's one text."""
    if isinstance(value, str):
        found, bad = lists.canonical(pa.array([_string(value, type_)]), str(type_.item), exact=True)
        if bad[0]:
            raise _wrong(value, type_, ": a list is written [1, 2, 3]")
        text: str = found[0].as_py()
        return text
    if not isinstance(value, list):
        raise _wrong(value, type_)
    if len(value) > lists.MOST:
        raise _wrong(value, type_, f", which has {len(value)} items: {lists.MOST} are the most")
    item = item_of(type_)
    found = [physical(v, item) for v in value]
    if item.kind is Kind.TIMESTAMP and not all(
        v is None or MIN_INSTANT <= v <= MAX_INSTANT for v in found
    ):
        raise _wrong(value, type_, ", where an instant is outside the years 0001-9999")
    items = pa.array(found, item.arrow)
    spelled = lists.spelled_items(items, str(item)).to_pylist()
    return f"[{', '.join(spelled)}]"


def _struct(value: Any, type_: Type) -> str:
    """The struct's one text."""
    fields = type_.spelled_fields
    if isinstance(value, str):
        found, bad = structs.canonical(pa.array([_string(value, type_)]), fields)
        if bad[0]:
            raise _wrong(value, type_, ": a struct is written " + structs.example(fields))
        text: str = found[0].as_py()
        return text
    if not isinstance(value, dict) or not all(type(key) is str for key in value):
        raise _wrong(value, type_)
    given = _by_field(value, type_)
    columns = []
    for name, of in type_.fields:
        inside = physical(given.get(name), of)
        far = of.kind is Kind.TIMESTAMP and inside is not None
        if far and not MIN_INSTANT <= inside <= MAX_INSTANT:
            raise _wrong(value, type_, ", where an instant is outside the years 0001-9999")
        columns.append(pa.array([inside], of.arrow))
    made: str = structs.made(columns, fields)[0].as_py()
    return made


def _by_field(value: dict[str, Any], type_: Type) -> dict[str, Any]:
    """The values by the names of fields, which are matched as they are spelled, else in any
    case."""
    names = {name: name for name, _ in type_.fields}
    folded = {name.casefold(): name for name in names}
    given: dict[str, Any] = {}
    for key, inside in value.items():
        name = names.get(key) or folded.get(str(key).casefold())
        if name is None:
            raise _wrong(value, type_, f", which has a field {shown(key)}")
        if name in given:
            raise _wrong(value, type_, f", which has field {name} twice")
        given[name] = inside
    return given


_PHYSICAL = {
    Kind.BOOL: _bool,
    Kind.INT: _int,
    Kind.FLOAT: _float,
    Kind.DECIMAL: _decimal,
    Kind.STRING: _string,
    Kind.BYTES: _bytes,
    Kind.TIMESTAMP: _timestamp,
    Kind.INTERVAL: _interval,
    Kind.DATE: _typed,
    Kind.TIME: _typed,
    Kind.UUID: _typed,
    Kind.LIST: _list,
    Kind.STRUCT: _struct,
}
