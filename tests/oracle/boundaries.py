"""Boundaries of periodic queries from first principles (design page, "Time" and "Corner rules").

Local time is looked up minute by minute: what the wall clock shows is all that is asked of a time
zone.  An instant that has been found is right to the minute where clocks skip, and exact everywhere
else.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import count
from zoneinfo import ZoneInfo

from dsms.sql.window import Slide, Time

MINUTE = 60_000_000
DAY = 1440 * MINUTE
WIDEST = 30 * 60 * MINUTE  # clocks are never further from UTC, a day that is left out included
DAYS = {"day": 1, "week": 7}
MONTHS = {"month": 1, "year": 12}


def all_boundaries(slide: Slide, after: int, upto: int) -> list[int]:
    """The boundaries in (after, upto], ascending."""
    years, far = away(after)
    if slide.calendar is not None:
        return [b - far for b in _on_days(slide, after + far, upto + far, years)]
    if slide.zone is not None and slide.align is None:
        return [b - far for b in _within_days(slide.zone, slide.every, after + far, upto + far)]
    align = slide.align or 0
    first = align + -(-(after + 1 - align) // slide.every) * slide.every
    return list(range(first, upto + 1, slide.every))


def away(instant: int) -> tuple[int, int]:
    """At the ends of time, where Python's calendar breaks off: how far it is to a like one, in
    years and µs."""
    first, last = -(1966 * 365 * DAY), 8026 * 365 * DAY
    years = 400 if instant < first else -400 if instant > last else 0
    return years, years // 400 * 146_097 * DAY


def boundary_after(slide: Slide, after: int) -> int:
    """The first boundary later than `after`."""
    far = slide.every
    while not (found := all_boundaries(slide, after, after + far)):
        far *= 2
    return found[0]


def range_start(spec: Time, boundary: int) -> int:
    """Where the window of a boundary begins: RANGE before it, by the calendar if RANGE is written
    in its units."""
    if spec.calendar is None:
        return boundary - spec.length
    assert spec.slide is not None
    number, unit = spec.calendar
    zone = spec.slide.zone or "UTC"
    _, far = away(boundary)
    shown = meant(spec.slide, boundary + far, zone)
    if unit in DAYS:
        return moment(shown - timedelta(days=number * DAYS[unit]), zone) - far
    day = months_later(shown.date(), -number * MONTHS[unit])
    return moment(datetime.combine(day, shown.time()), zone) - far


def meant(slide: Slide, boundary: int, zone: str) -> datetime:
    """The time of day that the boundary stands for: midnight, or that of ALIGN TO, even if clocks
    skip it that day."""
    shown = wall(boundary, zone)
    at = datetime.min if slide.align is None else wall(slide.align, zone)
    begins = datetime.combine(shown.date(), at.time())
    return begins if moment(begins, zone) == boundary else shown


# ---------------------------------------------------------------- wall clocks and calendars


def wall(instant: int, zone: str) -> datetime:
    """What the wall clock shows."""
    utc = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)
    return utc.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


@lru_cache(maxsize=100_000)
def moment(shown: datetime, zone: str) -> int:
    """The first instant at which the wall clock shows this or, if it never does, something
    later."""
    guess = (shown.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )
    found = next(t for t in count(guess - WIDEST, MINUTE) if wall(t, zone) >= shown)
    # local mean times have odd seconds
    earlier = found - (wall(found, zone) - shown) // timedelta(microseconds=1)
    return earlier if wall(earlier, zone) == shown else found


def midnight(day: date, zone: str) -> int:
    """The first instant of a day."""
    return moment(datetime(day.year, day.month, day.day), zone)


def months_later(day: date, number: int) -> date:
    """As many months later (or earlier), at the end of a shorter month if need be."""
    months = day.year * 12 + day.month - 1 + number
    year, month = months // 12, months % 12 + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


# ---------------------------------------------------------------- under TIME ZONE


def _within_days(zone: str, slide: int, after: int, upto: int) -> list[int]:
    """Elapsed time from each local midnight, which is a boundary itself."""
    found: set[int] = set()
    day = wall(after, zone).date() - timedelta(days=2)
    while midnight(day, zone) <= upto:
        begins, ends = midnight(day, zone), midnight(day + timedelta(days=1), zone)
        found |= set(range(begins, ends, slide)) | {ends}
        day += timedelta(days=1)
    return sorted(b for b in found if after < b <= upto)


def _on_days(slide: Slide, after: int, upto: int, years: int) -> list[int]:
    """Every so many days or months of the calendar, at midnight; ALIGN TO gives another day and
    time of day to count from."""
    assert slide.calendar is not None
    zone = slide.zone or "UTC"
    start = datetime(1970, 1, 1) if slide.align is None else wall(slide.align, zone)
    start = start.replace(year=start.year + years)
    number, unit = slide.calendar
    out: list[int] = []
    for day in _days(start.date(), number, unit, wall(after, zone).date()):
        b = moment(datetime.combine(day, start.time()), zone)
        if b > upto:
            return out
        if b > max([after, *out[-1:]]):  # a day that is left out begins with the next
            out.append(b)
    raise AssertionError("a calendar ends")


def _days(origin: date, number: int, unit: str, near: date) -> Iterator[date]:
    """The days that many units apart, from before `near` on."""
    if unit in DAYS:
        step = number * DAYS[unit]
        first = (near - origin).days // step - 2
        return (origin + timedelta(days=k * step) for k in count(first))
    step = number * MONTHS[unit]
    first = ((near.year - origin.year) * 12 + near.month - origin.month) // step - 2
    return (months_later(origin, k * step) for k in count(first))
