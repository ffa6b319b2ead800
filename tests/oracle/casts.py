"""CAST, by the table in `dsms.sql.functions.times`."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from uuid import UUID

from dsms.sql.expr import Call
from dsms.sql.types import Kind, Type
from tests.oracle.functions import DAY, Failed, check
from tests.oracle.times import LENGTHS, micros, utc
from tests.oracle.values import Value

WORDS = {
    "true": 1,
    "t": 1,
    "yes": 1,
    "y": 1,
    "on": 1,
    "1": 1,
    "false": 0,
    "f": 0,
    "no": 0,
    "n": 0,
    "off": 0,
    "0": 0,
}
UNITS = {
    "us": 1, "usec": 1, "usecs": 1, "microsecond": 1, "microseconds": 1,
    "ms": 10**3, "msec": 10**3, "msecs": 10**3, "millisecond": 10**3, "milliseconds": 10**3,
    "s": 10**6, "sec": 10**6, "secs": 10**6, "second": 10**6, "seconds": 10**6,
    "min": 6 * 10**7, "mins": 6 * 10**7, "minute": 6 * 10**7, "minutes": 6 * 10**7,
    "h": 36 * 10**8, "hr": 36 * 10**8, "hrs": 36 * 10**8, "hour": 36 * 10**8, "hours": 36 * 10**8,
    "d": 864 * 10**8, "day": 864 * 10**8, "days": 864 * 10**8,
    "w": LENGTHS["week"], "week": LENGTHS["week"], "weeks": LENGTHS["week"],
}  # a table  # fmt: skip
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.I | re.A)
STAMP = re.compile(
    r"(?:(\d{4})-(\d\d?)-(\d\d?)|(\d{4})(\d\d)(\d\d))(?:(?:T| +)([\d:.,]+))? "
    r"*(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?",
    re.I | re.A,
)
CLOCK = re.compile(r"(\d\d?)(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?", re.A)  # behind any date
# behind one without dashes
BASIC_CLOCK = re.compile(r"(\d\d):?(?:(\d\d):?(?:(\d\d)(?:[.,](\d+))?)?)?", re.A)

# parts of a length; no part of one is tried twice, whatever the text
PART = re.compile(r"([+-]?)\s*+(\d++(?:\.\d*+)?|\.\d++)\s*+([a-z]++)", re.A | re.I)
LENGTH = re.compile(rf"(?:{PART.pattern}\s*+)++", re.A | re.I)


def cast(call: Call, x: Value) -> Value:
    """CAST(x AS call.type), x not NULL."""
    source, target = call.args[0].type, call.type
    if source.kind is target.kind and target.kind is not Kind.DECIMAL:
        return x
    if (source.kind, target.kind) in _OF_INSTANTS:
        return _OF_INSTANTS[source.kind, target.kind](x)
    if source.kind is Kind.STRING:
        return check(_FROM_TEXT[target.kind](x.strip(" \t\n\v\f\r"), x, target), target)
    if target.kind is Kind.STRING:
        return to_text(x, source)
    return check(_NUMERIC[target.kind](x, target), target)


_OF_INSTANTS: dict[tuple[Kind, Kind], Callable[[int], int]] = {
    (Kind.DATE, Kind.TIMESTAMP): lambda x: x,
    (Kind.TIMESTAMP, Kind.DATE): lambda x: x // DAY * DAY,
    (Kind.TIMESTAMP, Kind.TIME): lambda x: x % DAY,
}


def _to_int(x: Value, target: Type) -> int:
    if isinstance(x, float):
        if not math.isfinite(x):
            raise Failed("not finite")
        return round(x)
    return int(to_decimal(x, target)) if isinstance(x, Decimal) else int(x)


def to_decimal(x: Value, target: Type) -> Decimal:
    """Rounded half away from zero; a FLOAT counts as its shortest text."""
    if isinstance(x, float):
        if not math.isfinite(x):
            raise Failed("not finite")
        x = Decimal(repr(x))
    with localcontext() as context:
        context.prec = 800
        try:
            found = Decimal(x).quantize(Decimal(1).scaleb(-target.scale), rounding=ROUND_HALF_UP)
        except InvalidOperation:
            raise Failed("more than 800 digits") from None
        return found or abs(found)  # a DECIMAL has one zero


_NUMERIC: dict[Kind, Callable[[Value, Type], Value]] = {
    Kind.INT: _to_int,
    Kind.FLOAT: lambda x, target: float(x),
    Kind.DECIMAL: to_decimal,
    Kind.BOOL: lambda x, target: x != 0,
}

# ---------------------------------------------------------------- to and from text


def to_text(x: Value, source: Type) -> str:
    match source.kind:
        case Kind.BOOL:
            return "true" if x else "false"
        case Kind.FLOAT:
            return repr(x)
        case Kind.DECIMAL:
            return f"{x:.{source.scale}f}"
        case Kind.BYTES:
            return _utf8(x)
        case Kind.TIMESTAMP:
            return _digits(utc(x).strftime("%H:%M:%S"), x % 10**6, f"{utc(x):%m-%d} ", utc(x).year)
        case Kind.DATE:
            return utc(x).date().isoformat()
        case Kind.TIME:
            return _digits(utc(x).strftime("%H:%M:%S"), x % 10**6)
        case Kind.INTERVAL:
            seconds, rest = divmod(abs(x), 10**6)
            clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
            return ("-" if x < 0 else "") + _digits(clock, rest)
        case _:
            return str(x)


def _digits(clock: str, rest: int, day: str = "", year: int | None = None) -> str:
    start = f"{year:04}-{day}" if year is not None else ""
    return start + clock + (f".{rest:06}".rstrip("0") if rest else "")


def _utf8(x: bytes) -> str:
    try:
        return x.decode()
    except UnicodeDecodeError:
        raise Failed("not UTF-8") from None


def _int_text(s: str, raw: str, target: Type) -> int:
    if re.fullmatch(r"[+-]?\d+", s, re.A) is None:
        raise Failed("no INT")
    return int(s)


def _float_text(s: str, raw: str, target: Type) -> float:
    if re.fullmatch(r"[+-]?(inf|infinity|nan)", s, re.I) is None and NUMBER.fullmatch(s) is None:
        raise Failed("no FLOAT")
    if math.isinf(float(s)) and NUMBER.fullmatch(s) is not None:
        raise Failed("too large for FLOAT")
    return float(s)


def _decimal_text(s: str, raw: str, target: Type) -> Decimal:
    if NUMBER.fullmatch(s) is None:
        raise Failed("no DECIMAL")
    try:
        return to_decimal(Decimal(s), target)
    except InvalidOperation:
        raise Failed("no exponent") from None


def _bool_text(s: str, raw: str, target: Type) -> bool:
    if s.lower() not in WORDS:
        raise Failed("no BOOL")
    return bool(WORDS[s.lower()])


def _stamp_text(s: str, raw: str, target: Type) -> int:
    found = STAMP.fullmatch(s)
    if found is None:
        raise Failed("no TIMESTAMP")
    dashed, clock, offset = found[1] is not None, found[7], found[8]
    time = (CLOCK if dashed else BASIC_CLOCK).fullmatch(clock or "00")
    if (
        time is None
        or (clock or "").endswith(":")
        or (clock is None and offset is not None and len(offset) == 3 and offset[0] in "+-")
    ):
        raise Failed("no TIMESTAMP")
    year, month, day = (int(g) for g in (found.groups()[:3] if dashed else found.groups()[3:6]))
    hour, minute, second = (int(g or 0) for g in time.groups()[:3])
    fraction = (time[4] or "")[:6].ljust(6, "0")
    try:
        at = micros(dt.datetime(year, month, day, hour, minute, second, int(fraction), dt.UTC))
    except ValueError:
        raise Failed("no such day or time") from None
    return at - _offset(offset)


def _offset(text: str | None) -> int:
    if text is None or text.upper() in ("Z", "UTC", "GMT"):
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    if int(digits[:2]) > 23 or int(digits[2:]) > 59:
        raise Failed("no such offset")
    return (int(digits[:2]) * 60 + int(digits[2:])) * 60_000_000 * (-1 if text[0] == "-" else 1)


def _date_text(s: str, raw: str, target: Type) -> int:
    if ":" in s or STAMP.fullmatch(s) is None or STAMP.fullmatch(s).group(7, 8) != (None, None):  # type: ignore[union-attr]
        raise Failed("no DATE")
    return _stamp_text(s, raw, target)


def _time_text(s: str, raw: str, target: Type) -> int:
    if re.fullmatch(r"\d\d?:\d\d(:\d\d([.,]\d+)?)?", s, re.A) is None:
        raise Failed("no TIME")
    return _stamp_text(f"1970-01-01 {s}", raw, target)


def _uuid_text(s: str, raw: str, target: Type) -> str:
    digits = s.removeprefix("{").removesuffix("}") if s[:1] + s[-1:] == "{}" else s
    if re.fullmatch("-?".join(f"[0-9a-fA-F]{{{n}}}" for n in (8, 4, 4, 4, 12)), digits) is None:
        raise Failed("no UUID")
    return str(UUID(digits))


def _length_text(s: str, raw: str, target: Type) -> int:
    clock = re.fullmatch(r"([+-]?)\s*(\d+):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?", s, re.A)
    if clock is not None:
        seconds = (int(clock[2]) * 60 + int(clock[3])) * 60 + Fraction(clock[4] or 0)
        return math.floor(seconds * 10**6 * (-1 if clock[1] == "-" else 1))
    if LENGTH.fullmatch(s) is None:
        raise Failed("no INTERVAL")
    total = Fraction(0)
    for sign, number, unit in PART.findall(s):
        if unit.lower() not in UNITS:
            raise Failed("no unit")
        total += Fraction(sign + number) * UNITS[unit.lower()]
    return math.floor(total)


_FROM_TEXT: dict[Kind, Callable[[str, str, Type], Value]] = {
    Kind.INT: _int_text,
    Kind.FLOAT: _float_text,
    Kind.DECIMAL: _decimal_text,
    Kind.BOOL: _bool_text,
    Kind.BYTES: lambda s, raw, target: raw.encode(),
    Kind.TIMESTAMP: _stamp_text,
    Kind.INTERVAL: _length_text,
    Kind.DATE: _date_text,
    Kind.TIME: _time_text,
    Kind.UUID: _uuid_text,
}
