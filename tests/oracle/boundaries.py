"""Boundaries of periodic queries from first principles (design page, "Time" and "Corner rules").

Local time is looked up minute by minute: what the wall clock shows is all that is asked of a time
zone.  An instant that has been found is right to the minute where clocks skip, and exact everywhere
else.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import count

from dsms.sql.window import Slide, Time
from tests.oracle.times import place

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
    years, far = away(boundary)
    begun = [
        k
        for k, day in _counted(spec.slide, boundary + far, years)
        if moment(day, zone) == boundary + far
    ]
    if (
        begun
        and unit in MONTHS
        and spec.slide.calendar is not None
        and spec.slide.calendar[1] in MONTHS
    ):
        start, months = (
            _first(spec.slide, years),
            begun[0] * months_of(spec.slide.calendar) - months_of(spec.calendar),
        )
        return (
            moment(datetime.combine(months_later(start.date(), months), start.time()), zone) - far
        )
    shown = meant(spec.slide, boundary + far, zone, years)
    day = _later(shown.date(), -number, unit, zone, years)
    return moment(datetime.combine(day, shown.time()), zone) - far


def meant(slide: Slide, boundary: int, zone: str, years: int = 0) -> datetime:
    """The time of day that the boundary stands for: midnight, or that of ALIGN TO, even if clocks
    skip it that day.

    Of a SLIDE by the calendar: that of the first of its days that begins there, even if the zone
    skips that day."""
    shown = wall(boundary, zone)
    if slide.calendar is not None:
        return next(
            (day for _, day in _counted(slide, boundary, years) if moment(day, zone) == boundary),
            shown,
        )
    at = datetime.min if slide.align is None else wall(slide.align, zone)
    begins = datetime.combine(shown.date(), at.time())
    return begins if moment(begins, zone) == boundary else shown


# ---------------------------------------------------------------- wall clocks and calendars


def wall(instant: int, zone: str) -> datetime:
    """What the wall clock shows."""
    utc = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)
    return utc.astimezone(place(zone)).replace(tzinfo=None)


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
    out: list[int] = []
    for b in (moment(day, slide.zone or "UTC") for _, day in _counted(slide, after, years, upto)):
        # what begins on a day that is left out begins with the next
        if after < b <= upto and b not in out:
            out.append(b)
    return out


def _counted(
    slide: Slide, after: int, years: int, upto: int | None = None
) -> list[tuple[int, datetime]]:
    """The steps of a SLIDE by the calendar and when they begin, from before `after` to behind
    `upto`."""
    if slide.calendar is None:
        return []
    zone = slide.zone or "UTC"
    start = _first(slide, years)
    number, unit = slide.calendar
    near, last = (
        wall(after, zone).date(),
        wall(after if upto is None else upto, zone).date() + timedelta(days=3),
    )
    out: list[tuple[int, datetime]] = []
    for k in count(_before(start.date(), number, unit, near)):
        day = _later(start.date(), k * number, unit, zone, years)
        out.append((k, datetime.combine(day, start.time())))
        if day > last:
            return out
    raise AssertionError("a calendar ends")


def _first(slide: Slide, years: int) -> datetime:
    """What its steps are counted from."""
    start = datetime(1970, 1, 1) if slide.align is None else wall(slide.align, slide.zone or "UTC")
    return start.replace(year=start.year + years)


def months_of(calendar: tuple[int, str]) -> int:
    return calendar[0] * MONTHS[calendar[1]]


def _before(origin: date, number: int, unit: str, near: date) -> int:
    """How many steps of the calendar lead from the origin to shortly before that day."""
    if unit in DAYS:
        return (near - origin).days // (number * DAYS[unit]) - 4
    return ((near.year - origin.year) * 12 + near.month - origin.month) // (
        number * MONTHS[unit]
    ) - 2


def _later(day: date, number: int, unit: str, zone: str, years: int) -> date:
    """So many units later (or earlier): days that there were, others by the calendar.  All is
    `years` later."""
    if unit == "day":
        return _existing_later(
            day, number, {gone.replace(year=gone.year + years) for gone in _left_out(zone)}
        )
    return (
        day + timedelta(weeks=number)
        if unit == "week"
        else months_later(day, number * MONTHS[unit])
    )


def _existing_later(day: date, number: int, left_out: set[date]) -> date:
    target, step = day + timedelta(days=number), timedelta(days=1 if number > 0 else -1)
    target += step * sum(
        min(day, target) <= gone <= max(day, target) and gone != day for gone in left_out
    )
    while target in left_out:
        target += step
    return target


@lru_cache(maxsize=1000)
def _left_out(zone: str) -> frozenset[date]:
    """The days that the wall clock has never shown, from 1840 to 2039, looked at twice a day."""
    first, there = datetime(1840, 1, 1, tzinfo=UTC), place(zone)
    shown = {
        (first + timedelta(hours=12 * k)).astimezone(there).date() for k in range(2 * 365 * 200)
    }
    return frozenset(
        d for k in range(365 * 199) if (d := date(1840, 1, 3) + timedelta(days=k)) not in shown
    )
