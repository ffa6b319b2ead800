"""Boundaries of periodic queries: the instants b at which one answers, and where its windows begin.

Without a zone b = align + k * slide.  Under TIME ZONE a SLIDE in DAYS or longer steps through the local calendar, and a
shorter one counts elapsed time from local midnight; a day begins at its first existing instant.  The window of boundary
b is [start, b), where a RANGE in calendar units goes back by the calendar.  All instants are µs since 1970, UTC.

Calendars end with the year 9999: behind its last days there is no boundary (FOREVER), and a window that reaches back
beyond the year 1 begins with time itself (ALWAYS).
"""

from __future__ import annotations

import calendar as months
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from datetime import time as Time
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from dsms.sql.logical import WindowSpec
from dsms.sql.types import ALWAYS, FOREVER

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_DAY = date(1970, 1, 1)
MICRO = timedelta(microseconds=1)
DAY = 86_400_000_000
UNIT_DAYS = {"day": 1, "week": 7}
UNIT_MONTHS = {"month": 1, "year": 12}
EARLIEST, LATEST = date(1, 1, 3), date(9999, 12, 29)  # days whose neighbours any zone can tell


def _first_of(day: date) -> int:
    return (datetime(day.year, day.month, day.day, tzinfo=UTC) - EPOCH) // MICRO


FIRST, LAST = _first_of(EARLIEST), _first_of(LATEST)


def next_boundary(spec: WindowSpec, after: int) -> int:
    """The first boundary later than `after`."""
    assert spec.slide is not None
    if spec.slide_calendar is None and spec.zone is None:
        align = spec.align or 0
        return align + ((after - align) // spec.slide + 1) * spec.slide
    if spec.slide_calendar is None:
        return _within_day(spec, after)
    return _by_calendar(spec, after)


def boundaries(spec: WindowSpec, after: int, upto: int, most: int = 1 << 62) -> np.ndarray:
    """int64[k]: the boundaries in (after, upto], the first `most` of them."""
    first = next_boundary(spec, after)
    if first > upto:
        return np.empty(0, np.int64)
    if spec.slide_calendar is None and spec.zone is None:
        assert spec.slide is not None
        count = min((upto - first) // spec.slide + 1, most)
        return first + spec.slide * np.arange(count, dtype=np.int64)
    found = [first]
    while len(found) < most and (b := next_boundary(spec, found[-1])) <= upto:
        found.append(b)
    return np.array(found, np.int64)


def window_start(spec: WindowSpec, boundary: int) -> int:
    """The first instant of a time window as of its boundary."""
    if spec.calendar is None:
        return boundary - spec.length
    count, unit = spec.calendar
    shown = _shown(spec, boundary)
    try:
        if unit in UNIT_DAYS:
            earlier = shown - timedelta(days=count * UNIT_DAYS[unit])
        else:
            earlier = datetime.combine(_months_before(shown.date(), count * UNIT_MONTHS[unit]), shown.time())
    except (OverflowError, ValueError):
        return ALWAYS
    return ALWAYS if earlier.date() < EARLIEST else _instant(earlier, ZoneInfo(spec.zone or "UTC"))


@dataclass(slots=True)
class Deaths:
    """When rows leave a window whose length follows the calendar: just before the first boundary whose window begins
    after them.  (Between two boundaries nobody looks.)"""

    spec: WindowSpec
    bounds: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def exp(self, ts: np.ndarray) -> np.ndarray:
        """int64[n]: the instant at which a row of `ts` (ascending) is no longer in the window."""
        if not len(ts):
            return ts
        if not self.bounds:
            self._learn(next_boundary(self.spec, int(ts[0])))
        while self.starts[-1] <= int(ts[-1]):
            self._learn(next_boundary(self.spec, self.bounds[-1]))
        forgotten = bisect_right(self.starts, int(ts[0]))
        self.starts, self.bounds = self.starts[max(0, forgotten - 1) :], self.bounds[max(0, forgotten - 1) :]
        where = np.searchsorted(np.array(self.starts, np.int64), ts, side="right")
        exp: np.ndarray = np.maximum(np.array(self.bounds, np.int64)[where] - 1, ts + 1)
        return exp

    def _learn(self, boundary: int) -> None:
        self.bounds.append(boundary)
        self.starts.append(window_start(self.spec, boundary))


# ---------------------------------------------------------------- local calendars


def _shown(spec: WindowSpec, boundary: int) -> datetime:
    """The local time that a boundary stands for: where clocks skip it, the wall shows a later one."""
    zone = spec.zone or "UTC"
    local = _local(boundary, ZoneInfo(zone))
    meant = datetime.combine(local.date(), _time_of_day(spec, zone))
    return meant if _start(meant.date(), meant.time(), zone) == boundary else local


def _time_of_day(spec: WindowSpec, zone: str) -> Time:
    """When on its days a calendar SLIDE has its boundaries."""
    return Time.min if spec.align is None else _local(spec.align, ZoneInfo(zone)).time()


def _local(instant: int, zone: ZoneInfo) -> datetime:
    """Wall clock time, without a zone, within the calendar."""
    return (EPOCH + min(max(instant, FIRST), LAST) * MICRO).astimezone(zone).replace(tzinfo=None)


def _instant(local: datetime, zone: ZoneInfo) -> int:
    """The first instant at which the wall clock shows that time; where it skips it, the instant of the skip."""
    known = (local.replace(tzinfo=zone, fold=0).astimezone(UTC) - EPOCH) // MICRO
    if _local(known, zone) == local:
        return known
    low, high = known - DAY // 4, known + DAY // 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _local(middle, zone) < local else (low, middle)
    return high


@lru_cache(maxsize=4096)
def _start(day: date, time: Time, name: str) -> int:
    return _instant(datetime.combine(day, time), ZoneInfo(name))


def _midnight(day: date, name: str) -> int:
    return _start(day, datetime.min.time(), name)


def _day_of(instant: int, name: str) -> date:
    """The local day that has begun last: clocks set back at midnight do not begin the day before again."""
    day = _local(instant, ZoneInfo(name)).date()
    following = day + timedelta(days=1)
    return following if _midnight(following, name) <= instant else day


def _within_day(spec: WindowSpec, after: int) -> int:
    assert spec.slide is not None and spec.zone is not None
    after = max(after, FIRST)
    if after >= LAST:
        return FOREVER
    if spec.align is not None:
        return spec.align + ((after - spec.align) // spec.slide + 1) * spec.slide
    day = _day_of(after, spec.zone)
    begun, ends = _midnight(day, spec.zone), _midnight(day + timedelta(days=1), spec.zone)
    return min(begun + ((after - begun) // spec.slide + 1) * spec.slide, ends)


def _by_calendar(spec: WindowSpec, after: int) -> int:
    assert spec.slide_calendar is not None
    zone = spec.zone or "UTC"
    count, unit = spec.slide_calendar
    origin = FIRST_DAY if spec.align is None else _local(spec.align, ZoneInfo(zone)).date()
    time = _time_of_day(spec, zone)
    for day in _steps(origin, count, unit, _day_of(after, zone)):
        found = _start(day, time, zone)
        if found > after:
            return found
    return FOREVER


def _steps(origin: date, count: int, unit: str, near: date) -> Iterator[date]:
    """Days of the calendar `count` units apart, from shortly before `near` on."""
    if unit in UNIT_DAYS:
        step = count * UNIT_DAYS[unit]
        k = (near - origin).days // step - 1
        while (day := origin.toordinal() + k * step) <= LATEST.toordinal():
            if day >= EARLIEST.toordinal():
                yield date.fromordinal(day)
            k += 1
        return
    step = count * UNIT_MONTHS[unit]
    k = ((near.year - origin.year) * 12 + near.month - origin.month) // step - 1
    while origin.year * 12 + origin.month - 1 + k * step < 12 * LATEST.year + 11:  # the last month has too few days
        if origin.year * 12 + origin.month - 1 + k * step > 12 * EARLIEST.year:
            yield _months_before(origin, -k * step)
        k += 1


def _months_before(day: date, count: int) -> date:
    """The same day `count` months earlier, or the last one of that month."""
    year, month = divmod(day.year * 12 + day.month - 1 - count, 12)
    return date(year, month + 1, min(day.day, months.monthrange(year, month + 1)[1]))
