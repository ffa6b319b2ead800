"""Functions of instants and lengths (µs), by Python's calendar and time zones."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from fractions import Fraction
from zoneinfo import ZoneInfo

from dsms.sql.expr import Call
from dsms.sql.types import Kind
from tests.oracle.functions import Failed, check, truncated
from tests.oracle.values import Value

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICRO = dt.timedelta(microseconds=1)
LENGTHS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
EPOCH_UNITS = {
    "s": Fraction(1_000_000),
    "ms": Fraction(1_000),
    "us": Fraction(1),
    "ns": Fraction(1, 1_000),
}


def unit_name(text: str) -> str:
    low = text.strip().lower()
    return (
        low[:-1]
        if low.endswith("s") and low[:-1] in (*LENGTHS, "month", "quarter", "year")
        else low
    )


def utc(t: int) -> dt.datetime:
    try:
        return EPOCH + dt.timedelta(microseconds=t)
    except OverflowError:
        raise Failed("outside of years 0001 to 9999") from None


def micros(t: dt.datetime) -> int:
    """µs since the epoch of an aware datetime."""
    return (t - EPOCH) // MICRO


def place(zone: str) -> dt.tzinfo:
    """The zone of that name, or with that offset: a sign, hours, and perhaps minutes."""
    if zone[0] not in "+-":
        return ZoneInfo(zone)
    digits = zone[1:].replace(":", "")
    ahead = dt.timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return dt.timezone(-ahead if zone[0] == "-" else ahead)


def local(t: int, zone: str | None) -> dt.datetime:
    """The wall clock there, without zone."""
    try:
        return utc(t).astimezone(place(zone) if zone else dt.UTC).replace(tzinfo=None, fold=0)
    except OverflowError:
        raise Failed("outside of years 0001 to 9999") from None


def first_at(wall: dt.datetime, zone: str | None) -> int:
    """The first instant whose local time there is at or past `wall`."""
    try:
        high = micros(wall.replace(tzinfo=place(zone) if zone else dt.UTC, fold=0))
    except OverflowError:
        raise Failed("outside of years 0001 to 9999") from None
    low = high - 4 * LENGTHS["hour"]  # clocks are put forward by less
    if local(high, zone) == wall:
        return high
    while high - low > 1:  # a gap: local time passes `wall` at its end
        middle = (low + high) // 2
        low, high = (low, middle) if local(middle, zone) >= wall else (middle, high)
    return high


def _field(read: Callable[[dt.datetime], int]) -> Callable[..., int]:
    return lambda call, t, zone=None: read(local(t, zone))


FIELDS: dict[str, Callable[[dt.datetime], int]] = {
    "year": lambda d: d.year,
    "quarter": lambda d: (d.month + 2) // 3,
    "month": lambda d: d.month,
    "week": lambda d: d.isocalendar().week,
    "isoyear": lambda d: d.isocalendar().year,
    "day": lambda d: d.day,
    "dow": lambda d: d.isoweekday() % 7,
    "isodow": lambda d: d.isoweekday(),
    "doy": lambda d: d.timetuple().tm_yday,
    "hour": lambda d: d.hour,
    "minute": lambda d: d.minute,
    "second": lambda d: d.second,
    "millisecond": lambda d: d.second * 1000 + d.microsecond // 1000,
    "microsecond": lambda d: d.second * 1_000_000 + d.microsecond,
}


def _date_trunc(call: Call, unit: str, t: int, zone: str | None = None) -> int:
    unit = unit_name(unit)
    if call.type.kind is Kind.INTERVAL:
        return check(t // LENGTHS[unit] * LENGTHS[unit], call.type)
    wall = local(t, zone)
    if unit in LENGTHS and LENGTHS[unit] < LENGTHS["day"]:
        start = first_at(dt.datetime.combine(wall, dt.time()), zone)
        return t if t < start else start + (t - start) // LENGTHS[unit] * LENGTHS[unit]
    return check(
        first_at(dt.datetime.combine(_first_day(unit, wall.date()), dt.time()), zone), call.type
    )


def _first_day(unit: str, day: dt.date) -> dt.date:
    match unit:
        case "day":
            return day
        case "week":
            try:
                return day - dt.timedelta(days=day.weekday())
            except OverflowError:
                raise Failed("before year 0001") from None
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case _:
            return day.replace(month=1, day=1)


def _date_bin(call: Call, size: int, t: int, origin: int = 0) -> int:
    if size <= 0:
        raise Failed("bins of no length")
    return check(origin + (t - origin) // size * size, call.type)


def _to_timestamp(call: Call, n: float, unit: str = "s") -> int:
    if not math.isfinite(n):
        raise Failed("not finite")
    if isinstance(n, float):
        return (
            check(round(Fraction(n * 1e6)), call.type)
            if math.isfinite(n * 1e6)
            else check(2**62, call.type)
        )
    return check(math.floor(n * EPOCH_UNITS[unit.strip().lower()]), call.type)


def _date_diff(call: Call, unit: str, a: int, b: int) -> int:
    return truncated(b - a, LENGTHS[unit_name(unit)])


def _at_zone(call: Call, t: int, zone: str) -> int:
    return check(micros(local(t, zone).replace(tzinfo=dt.UTC)), call.type)


def _from_zone(call: Call, t: int, zone: str) -> int:
    return check(first_at(utc(t).replace(tzinfo=None), zone), call.type)


TIMES: dict[str, Callable[..., Value]] = {
    **{name: _field(read) for name, read in FIELDS.items()},
    "epoch": lambda call, t, zone=None: t / 1_000_000.0,
    "epoch_us": lambda call, t: t,
    "epoch_ms": lambda call, t: t // 1000,
    "date_trunc": _date_trunc,
    "date_bin": _date_bin,
    "to_timestamp": _to_timestamp,
    "make_interval": lambda call, n, unit: check(n * LENGTHS[unit_name(unit)], call.type),
    "date_diff": _date_diff,
    "at_zone": _at_zone,
    "from_zone": _from_zone,
}
