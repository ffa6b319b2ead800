"""Lengths of time as the plan wants them: microseconds, positive, of fixed length unless a calendar
is at hand."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.codes import error

YEARS = 1000
MONTH_AT_MOST = 31 * 86_400_000_000
_DAYS = {ast.Unit.DAY: 86_400_000_000, ast.Unit.WEEK: 7 * 86_400_000_000}


def fixed(duration: ast.Duration, what: str, zero: bool = False) -> int:
    """Microseconds of a duration that must have a fixed length and be positive (or zero, if
    `zero`); DS227."""
    if duration.months:
        hint = "write it in DAY or WEEK"
        raise error(
            "DS227", f"{what} needs a fixed length, and a month or year has none", duration, hint
        )
    if duration.micros < 0 or (duration.micros == 0 and not zero):
        expected = "zero or positive" if zero else "positive"
        raise error(
            "DS227", f"{what} must be {expected}", duration, "write a length such as 10 SECONDS"
        )
    return duration.micros


def maybe_fixed(duration: ast.Duration | None, what: str, zero: bool = False) -> int | None:
    return None if duration is None else fixed(duration, what, zero)


def calendar(duration: ast.Duration, zoned: bool) -> tuple[int, str] | None:
    """(count, unit) of a duration that follows the calendar: MONTH and YEAR always, DAY and WEEK
    under a TIME ZONE.

    Raises DS227 for one that is longer than calendars are good for."""
    if duration.months > 12 * YEARS or duration.micros > 366 * YEARS * _DAYS[ast.Unit.DAY]:
        raise error(
            "DS227",
            f"a calendar is followed for {YEARS} years at most",
            duration,
            f"write {YEARS} YEARS or less",
        )
    if duration.months:
        per = 12 if duration.unit is ast.Unit.YEAR else 1
        return duration.months // per, duration.unit.value
    if zoned and duration.unit in _DAYS:
        return duration.micros // _DAYS[duration.unit], duration.unit.value
    return None


def at_most(duration: ast.Duration) -> int:
    """Microseconds; for MONTH and YEAR an upper bound."""
    return duration.months * MONTH_AT_MOST if duration.months else duration.micros
