"""Boundaries of periodic queries: the instants b at which one answers, and where its windows begin.

Without a zone b = align + k * slide.  Under TIME ZONE a SLIDE in DAYS or longer steps through the
local calendar, and a shorter one counts elapsed time from local midnight; a day begins at its first
existing instant.  The window of boundary b is [start, b), where a RANGE in calendar units goes back
by the calendar.  All instants are µs since 1970, UTC.

A day that a zone has left out, as Apia did 30 December 2011, is no day: DAYS are counted without
it.  A week, month or year that would begin on it begins with the next day, and the boundary there
still stands for the day left out, so that windows as long as their SLIDE meet.

Local times are int64 µs and local days numbers from 1970 on, since the calendars of Python end
where rows may still come: a day of the year 9999 ends in the year 10000, and the day before the
first one belongs to the year 0.  Calendars, weekdays included, repeat after 400 years, and so does
what any zone says of times that far away.  Boundaries end long behind the last row (FOREVER), and a
window that reaches back as far begins with time itself (ALWAYS).
"""

from __future__ import annotations

from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import count as counted
from itertools import pairwise, takewhile

import numpy as np

from dsms.sql.types import ALWAYS, FOREVER
from dsms.sql.window import Slide, Time
from dsms.sql.zones import zone_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICRO = timedelta(microseconds=1)
DAY = 86_400_000_000
UNIT_DAYS = {"day": 1, "week": 7}
UNIT_MONTHS = {"month": 1, "year": 12}
ERA_DAYS = 146_097  # of 400 years
ERA = ERA_DAYS * DAY
EARLIEST = (datetime(3, 1, 1, tzinfo=UTC) - EPOCH) // MICRO
# between them Python's calendars are at ease
LATEST = (datetime(9998, 1, 1, tzinfo=UTC) - EPOCH) // MICRO
END = FOREVER // 8  # no calendar goes on behind it, nor before its opposite
ORIGIN = date(1970, 1, 1).toordinal()
# clocks of one place are set back by no more, but across the date line
HOURS_TWICE = 2 * 3_600_000_000
# days, some in every year in which a zone may cross the date line
MAPPED = range(-170 * 365, 130 * 365, 365)


def next_boundary(slide: Slide, after: int) -> int:
    """The first boundary later than `after`."""
    if slide.regular:
        align = slide.align or 0
        return align + ((after - align) // slide.every + 1) * slide.every
    if after >= END:
        return FOREVER
    found = (_within_day if slide.calendar is None else _by_calendar)(slide, max(after, -END))
    return found if found < END else FOREVER


def boundaries(slide: Slide, after: int, upto: int, most: int = 1 << 62) -> np.ndarray:
    """int64[k]: the boundaries in (after, upto], the first `most` of them."""
    first = next_boundary(slide, after)
    if first > upto:
        return np.empty(0, np.int64)
    if slide.regular:
        count = min((upto - first) // slide.every + 1, most)
        return first + slide.every * np.arange(count, dtype=np.int64)
    found = [first]
    while len(found) < most and (b := next_boundary(slide, found[-1])) <= upto:
        found.append(b)
    return np.array(found, np.int64)


def window_start(window: Time, boundary: int) -> int:
    """The first instant of a time window as of its boundary.  It never goes back: where clocks are
    set back, or a day has no like in a shorter month, it stays where it had come to."""
    if window.calendar is None:
        return boundary - window.length
    earlier = _would_go_back(window, boundary)
    return max([_earlier_by(window, boundary), *(window_start(window, b) for b in earlier)])


def _would_go_back(window: Time, boundary: int) -> Iterator[int]:
    """Boundaries before it whose windows may begin later than by the calendar its own does."""
    slide = window.slide
    assert slide is not None and window.calendar is not None
    if slide.calendar is not None or not -END < boundary < END:
        return  # one a day, or none: no other is later
    count, unit = window.calendar
    zone = slide.zone or "UTC"
    if unit in UNIT_MONTHS:
        day = wall_time(boundary, zone_of(zone)) // DAY
        gone = _of_month(day) - _of_month(_months_before(day, count * UNIT_MONTHS[unit]))
        if gone > 0:
            yield _boundary_before(slide, midnight(day - gone + 1, zone))
    back = _set_back(boundary, slide.zone)
    if back is not None:
        yield _boundary_before(slide, back)


def _boundary_before(slide: Slide, instant: int) -> int:
    """The last boundary before that instant, of a SLIDE shorter than a day."""
    origin = slide.align or 0
    if slide.zone is not None and slide.align is None:
        origin = midnight(day_of(instant - 1, slide.zone), slide.zone)
    return origin + (instant - 1 - origin) // slide.every * slide.every


def _set_back(instant: int, zone: str | None) -> int | None:
    """When clocks were set back that show what they have shown before; None if they do not."""
    if zone is None:
        return None
    place = zone_of(zone)
    low, high = instant - most_repeated(zone), instant
    ahead = wall_time(low, place) - low
    if wall_time(high, place) - high >= ahead:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wall_time(middle, place) - middle >= ahead else (low, middle)
    return high


def _earlier_by(window: Time, boundary: int) -> int:
    """The instant that lies a window's length before its boundary, by the calendar."""
    assert window.slide is not None  # a window that follows the calendar has a SLIDE
    assert window.calendar is not None
    count, unit = window.calendar
    zone = window.slide.zone or "UTC"
    day, months, time = _meant(window.slide, boundary)
    if unit in UNIT_MONTHS:
        earlier = _months_before(day, count * UNIT_MONTHS[unit] - months) * DAY + time
    else:
        earlier = _earlier(_months_before(day, -months), count, unit, zone) * DAY + time
    return _instant(earlier, zone_of(zone)) if earlier > -END else ALWAYS


# ---------------------------------------------------------------- local time


def _era(micros: int) -> int:
    """How far to go, in whole eras, so that Python's calendars know that time."""
    if EARLIEST <= micros < LATEST:
        return 0
    return -((micros - (EARLIEST if micros < EARLIEST else LATEST - ERA)) // ERA) * ERA


def wall_time(instant: int, zone: tzinfo) -> int:
    """What the wall clock shows, in µs since it showed 1970."""
    offset = (EPOCH + (instant + _era(instant)) * MICRO).astimezone(zone).utcoffset()
    assert offset is not None
    return instant + offset // MICRO


def _instant(local: int, zone: tzinfo) -> int:
    """The first instant at which the wall clock shows that time; where it skips it, the instant of
    the skip."""
    era = _era(local)
    shown = (EPOCH + (local + era) * MICRO).replace(tzinfo=zone, fold=0)
    known = (shown.astimezone(UTC) - EPOCH) // MICRO - era
    if wall_time(known, zone) == local:
        return known
    low, high = known - DAY // 4, known + DAY // 4
    if wall_time(low, zone) >= local:
        low -= DAY  # a whole day is left out
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wall_time(middle, zone) < local else (low, middle)
    return high


@lru_cache(maxsize=4096)
def _start(day: int, time: int, name: str) -> int:
    """The instant at which a day gets to that time, in µs."""
    return _instant(day * DAY + time, zone_of(name))


def midnight(day: int, name: str) -> int:
    return _start(day, 0, name)


def day_of(instant: int, name: str) -> int:
    """The local day that has begun last: clocks set back at midnight do not begin the day before
    again."""
    day = wall_time(instant, zone_of(name)) // DAY
    return day + 1 if midnight(day + 1, name) <= instant else day


def _meant(slide: Slide, boundary: int) -> tuple[int, int, int]:
    """What a boundary stands for, a day, months later, a time of day: where clocks skip it, the
    wall shows a later one.

    Months are counted from the first day of all, as 31 March, not 28 February, is a month before 30
    April."""
    zone = slide.zone or "UTC"
    day, shown = divmod(wall_time(boundary, zone_of(zone)), DAY)
    time = _time_of_day(slide, zone)
    steps: Iterable[tuple[int, int, int]] = ((day, day, 0),)
    if slide.calendar is not None:
        steps = takewhile(
            lambda step: _start(step[0], time, zone) <= boundary,
            _steps(slide, day_of(boundary, zone)),
        )
    found = (step for step in steps if _start(step[0], time, zone) == boundary)
    return next(((origin, months, time) for _, origin, months in found), (day, 0, shown))


def _time_of_day(slide: Slide, zone: str) -> int:
    """When on its days a calendar SLIDE has its boundaries."""
    return 0 if slide.align is None else wall_time(slide.align, zone_of(zone)) % DAY


# ---------------------------------------------------------------- boundaries of local calendars


def _within_day(slide: Slide, after: int) -> int:
    assert slide.zone is not None
    if slide.align is not None:
        return slide.align + ((after - slide.align) // slide.every + 1) * slide.every
    day = day_of(after, slide.zone)
    begun, ends = midnight(day, slide.zone), midnight(day + 1, slide.zone)
    return min(begun + ((after - begun) // slide.every + 1) * slide.every, ends)


def _by_calendar(slide: Slide, after: int) -> int:
    zone = slide.zone or "UTC"
    time = _time_of_day(slide, zone)
    starts = (_start(day, time, zone) for day, _, _ in _steps(slide, day_of(after, zone)))
    return next(start for start in starts if start > after)


def _steps(slide: Slide, near: int) -> Iterator[tuple[int, int, int]]:
    """The days on which a calendar SLIDE has its boundaries, from shortly before `near` on; each
    also as a day and how many months that is before it."""
    assert slide.calendar is not None
    zone = slide.zone or "UTC"
    count, unit = slide.calendar
    origin = 0 if slide.align is None else wall_time(slide.align, zone_of(zone)) // DAY
    if unit in UNIT_MONTHS:
        step = count * UNIT_MONTHS[unit]
        months = (k * step for k in counted((_month(near) - _month(origin)) // step - 1))
        return ((_months_before(origin, -n), origin, n) for n in months)
    first = (near - origin) // (count * UNIT_DAYS[unit]) - 2
    days = (_earlier(origin, -k * count, unit, zone) for k in counted(first))
    return ((day, day, 0) for day in days)


def _earlier(day: int, count: int, unit: str, zone: str) -> int:
    """The day that many days or weeks earlier."""
    return day - 7 * count if unit == "week" else _existing(day, count, zone)


def _existing(day: int, count: int, zone: str) -> int:
    """The day `count` days earlier, without those that the zone has left out."""
    gone = left_out(zone)
    wanted = day - bisect_left(gone, day) - count
    found = wanted
    for k, out in enumerate(gone):
        if out - k <= wanted:
            found = wanted + k + 1
    return found


@lru_cache(maxsize=1024)
def left_out(zone: str) -> tuple[int, ...]:
    """The days that a zone has never had, since it went over to the other side of the date line."""
    found: list[int] = []
    for day, leap in _leaps(zone):
        if leap > DAY // 2:
            found += _days_skipped(day * DAY, (day + MAPPED.step) * DAY, zone_of(zone))
    return tuple(found)


@lru_cache(maxsize=1024)
def most_repeated(zone: str) -> int:
    """µs by which a span of local days may be longer than they are in a zone: hours, or a day, that
    come twice."""
    crosses = any(leap < -(DAY // 2) for _, leap in _leaps(zone))
    return HOURS_TWICE + DAY * crosses


def _leaps(zone: str) -> Iterator[tuple[int, int]]:
    """Days, a year apart, and how far clocks go forward in the year from there."""
    place = zone_of(zone)
    offsets = [wall_time(day * DAY, place) - day * DAY for day in MAPPED]
    return (
        (day, after - before)
        for day, (before, after) in zip(MAPPED, pairwise(offsets), strict=False)
    )


def _days_skipped(low: int, high: int, zone: tzinfo) -> range:
    """Those that no wall clock there has shown, since it leapt between the two instants."""
    first = wall_time(low, zone) - low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if wall_time(middle, zone) - middle - first < DAY // 2 else (low, middle)
        )
    return range(-(-(wall_time(low, zone) + 1) // DAY), wall_time(high, zone) // DAY)


def _month(day: int) -> int:
    """The number of the month, from the year 0 on."""
    era, rest = divmod(day, ERA_DAYS)
    found = date.fromordinal(ORIGIN + rest)
    return (era * 400 + found.year) * 12 + found.month - 1


def _of_month(day: int) -> int:
    """Which day of its month it is."""
    return date.fromordinal(ORIGIN + day % ERA_DAYS).day


def _months_before(day: int, count: int) -> int:
    """The same day `count` months earlier, or the last one of that month."""
    year, month = divmod(_month(day) - count, 12)
    era, rest = divmod(year - 1970, 400)
    longest = monthrange(1970 + rest, month + 1)[1]
    found = date(1970 + rest, month + 1, min(_of_month(day), longest))
    return found.toordinal() - ORIGIN + era * ERA_DAYS
