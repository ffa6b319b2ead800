"""When rows leave a window whose length follows the calendar.

A window of [RANGE 1 MONTH SLIDE 2 SECONDS] passes over a million boundaries before its first row
leaves.  So they are known by stretches: boundaries of one local day under one offset of the zone,
whose windows begin as far apart as they are themselves.  (No zone has changed its clocks twice in a
week.)  Where clocks change, stretches are halved until that is so.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import tzinfo

import numpy as np

from dsms.plan.boundaries import (
    DAY,
    END,
    UNIT_DAYS,
    UNIT_MONTHS,
    day_of,
    midnight,
    next_boundary,
    wall_time,
    window_start,
)
from dsms.sql.types import ALWAYS
from dsms.sql.window import Time
from dsms.sql.zones import zone_of

LEAP = 2  # days by which a zone may make any span shorter


@dataclass(slots=True)
class Deaths:
    """Rows leave just before the first boundary whose window begins after them.  (Between two
    boundaries it is not evaluated.)

    firsts   the first boundary of each stretch
    starts   where its window begins
    tops     where that of the last one begins, ascending: where clocks are set back windows begin
             earlier again, and no row leaves there
    reached  up to here boundaries are known; none of them has a window that begins later than tops
    """

    spec: Time
    firsts: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    tops: list[int] = field(default_factory=list)
    reached: int = ALWAYS

    def exp(self, ts: np.ndarray) -> np.ndarray:
        """int64[n]: the instant at which a row of `ts` (ascending) is no longer in the window."""
        if not len(ts):
            return ts
        assert self.spec.slide is not None
        self._forget(int(ts[0]))
        while not self.tops or self.tops[-1] <= int(ts[-1]):
            self._learn()
        where = np.searchsorted(np.array(self.tops, np.int64), ts, side="right")
        first, start = (np.array(known, np.int64)[where] for known in (self.firsts, self.starts))
        every = self.spec.slide.every
        behind = np.where(ts < start, 0, (np.maximum(ts, start) - start) // every + 1)
        exp: np.ndarray = np.maximum(first + behind * every - 1, ts + 1)
        return exp

    def _forget(self, oldest: int) -> None:
        """What no row from now on needs."""
        gone = bisect_right(self.tops, oldest)
        for known in (self.firsts, self.starts, self.tops):
            del known[:gone]
        if not self.tops:
            self.reached = max(self.reached, oldest + self._shortest())

    def _shortest(self) -> int:
        """µs that the window has at least."""
        assert self.spec.calendar is not None
        count, unit = self.spec.calendar
        days = UNIT_DAYS[unit] * count if unit in UNIT_DAYS else 30 * UNIT_MONTHS[unit] * count - 3
        return max(days - LEAP, 0) * DAY

    def _learn(self) -> None:
        """The next stretch."""
        assert self.spec.slide is not None
        first = next_boundary(self.spec.slide, self.reached)
        start = window_start(self.spec, first)
        self.reached, top = self._stretch(first, start)
        if not self.tops or top > self.tops[-1]:
            self.firsts.append(first)
            self.starts.append(start)
            self.tops.append(top)

    def _stretch(self, first: int, start: int) -> tuple[int, int]:
        """The last boundary of a stretch, and where its window begins."""
        slide = self.spec.slide
        assert slide is not None
        if slide.calendar is not None or not -END < first < END:
            return first, start
        zone = slide.zone or "UTC"
        more = (midnight(day_of(first, zone) + 1, zone) - 1 - first) // slide.every
        while more > 0:
            last = first + more * slide.every
            top = window_start(self.spec, last)
            if top - start in (last - first, 0) and _evenly(first, last, zone_of(zone)):
                return last, top
            more //= 2
        return first, start


def _evenly(first: int, last: int, zone: tzinfo) -> bool:
    """Whether clocks go on from one instant to the other, of the same day, without a change."""
    begun, ended = wall_time(first, zone), wall_time(last, zone)
    return ended - begun == last - first and ended // DAY == begun // DAY
