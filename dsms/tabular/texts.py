"""A value as text for people."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

EPOCH = dt.datetime(1970, 1, 1)
_AFTER_ALL = 253_402_300_800_000_000  # where the last window of the year 9999 ends


def cell(value: Any, sql: str) -> str:
    """A value for people: instants as ISO 8601 (UTC), durations with units, NULL spelled out."""
    if value is None:
        return "NULL"
    if sql == "TIMESTAMP":
        return instant(value)
    if sql == "INTERVAL":
        return duration(value)
    if sql in ("DATE", "TIME"):
        return date(value) if sql == "DATE" else time(value)
    if sql == "BOOL":
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, float):
        return (
            repr(value)
            if math.isfinite(value)
            else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
        )
    return str(value)


def instant(us: int | None) -> str:
    """Microseconds since the epoch as ``2013-01-01 05:17:00``; what no calendar has stays a
    number."""
    if us is None:
        return "NULL"
    try:
        return str(EPOCH + dt.timedelta(microseconds=us))
    except OverflowError:
        return "10000-01-01 00:00:00" if us == _AFTER_ALL else str(us)


def date(us: int) -> str:
    """Microseconds since the epoch as ``2013-01-31``."""
    return str((EPOCH + dt.timedelta(microseconds=us)).date())


def time(us: int) -> str:
    """Microseconds since midnight as ``05:17:00.5``."""
    text = str((EPOCH + dt.timedelta(microseconds=us)).time())
    return text.rstrip("0") if "." in text else text


def duration(us: int) -> str:
    """Microseconds as ``1 d 2 h``, ``90 ms``, ``-1 d -2 h``: each part has its sign, as in
    statements."""
    if us == 0:
        return "0 s"
    parts, left = [], abs(us)
    for unit, size in (
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("min", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1000),
        ("us", 1),
    ):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{'-' * (us < 0)}{count} {unit}")
    return " ".join(parts)
