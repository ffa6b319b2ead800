"""Days, weeks, months and years where clocks skip midnights or whole days, or go through them
twice.

Windows as long as their SLIDE meet, so that every row is counted once; where they begin, the oracle
says, too.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.plan.boundaries import boundaries, left_out, window_start
from dsms.plan.deaths import Deaths
from dsms.sql.window import Slide, Time
from tests.effort import examples, sampled, thinned
from tests.oracle.boundaries import DAY, all_boundaries, range_start
from tests.stories.cells import instant
from tests.stories.play import rows_of

HOUR = DAY // 24
PLACES = (  # a zone, and a day about which its clocks are changed
    ("Pacific/Apia", "2011-12-30"),  # a day left out, as in the next five
    ("Pacific/Fakaofo", "2011-12-30"),
    ("Pacific/Kwajalein", "1993-08-21"),
    ("Pacific/Kiritimati", "1994-12-31"),
    ("Asia/Manila", "1844-12-31"),
    ("Pacific/Guam", "1844-12-31"),
    ("Pacific/Kwajalein", "1969-10-01"),  # a day that came twice, as in the next
    ("America/Juneau", "1867-10-18"),
    ("America/Sao_Paulo", "2018-11-04"),  # no midnight, as in the next three
    ("America/Havana", "2024-03-10"),
    ("Asia/Beirut", "2024-03-31"),
    ("America/Scoresbysund", "2024-03-31"),
    ("America/Sao_Paulo", "2018-02-18"),  # midnight twice, as in the next
    ("America/Havana", "2024-11-03"),
    ("Europe/Berlin", "2026-03-29"),
    ("UTC", "2024-02-29"),
)
LENGTHS = {"day": DAY, "week": 7 * DAY, "month": 31 * DAY, "year": 366 * DAY}
UNITS = st.tuples(st.sampled_from((1, 1, 2, 3, 7)), st.sampled_from(tuple(LENGTHS)))


def sliding(number: int, unit: str, zone: str, align: int | None = None) -> Slide:
    return Slide(number * LENGTHS[unit], align=align, zone=zone, calendar=(number, unit))


def window(number: int, unit: str, slide: Slide) -> Time:
    return Time(number * LENGTHS[unit], calendar=(number, unit), slide=slide)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from(PLACES),
    UNITS,
    st.none() | st.integers(-400, 400).map(lambda k: k * DAY // 8),
    st.integers(-8, 8).map(lambda k: k * DAY // 4),
)
def test_windows_as_long_as_their_slide_meet(
    place: tuple[str, str], step: tuple[int, str], aligned: int | None, off: int
) -> None:
    zone, day = place
    change = instant(f"{day}T00:00")
    align = None if aligned is None else change + aligned
    slide = sliding(*step, zone, align)
    tumbling, reach = window(*step, slide), 4 * step[0] * LENGTHS[step[1]]
    found = boundaries(slide, change - reach + off, change + reach + off).tolist()
    assert found == all_boundaries(slide, change - reach + off, change + reach + off)
    for earlier, later in pairwise(found):
        assert window_start(tumbling, later) == range_start(tumbling, later) == earlier


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from(PLACES),
    UNITS,
    st.sampled_from((1, 6, 12, 24, 25)),
    st.none() | st.integers(-40, 40).map(lambda k: k * DAY // 8),
)
def test_windows_of_any_slide_begin_where_the_calendar_says(
    place: tuple[str, str], length: tuple[int, str], hours: int, aligned: int | None
) -> None:
    zone, day = place
    change = instant(f"{day}T00:00")
    align = None if aligned is None else change + aligned
    slide = (
        sliding(1, "day", zone, align)
        if hours == 25
        else Slide(hours * HOUR, align=align, zone=zone)
    )
    spec = window(*length, slide)
    found = boundaries(slide, change - 3 * DAY, change + 3 * DAY).tolist()
    starts = [window_start(spec, b) for b in found]
    before = boundaries(slide, change - 9 * DAY, change - 3 * DAY).tolist()
    told = [range_start(spec, b) for b in before + found]
    assert starts == list(accumulate(told, max))[len(before) :]  # never back
    assert all(start < b for start, b in zip(starts, found, strict=True))


@pytest.mark.parametrize(("zone", "day"), sampled(PLACES, 6))
def test_a_row_leaves_before_the_first_boundary_that_has_not_got_it(zone: str, day: str) -> None:
    change = instant(f"{day}T00:00")
    slide = sliding(1, "day", zone)
    for number in (1, 2, 3):
        spec = window(number, "day", slide)
        ts = np.arange(change - 3 * DAY, change + 3 * DAY, HOUR)
        for row, exp in zip(ts.tolist(), Deaths(spec).exp(ts).tolist(), strict=True):
            after = [
                b for b in all_boundaries(slide, row, row + 9 * DAY) if range_start(spec, b) > row
            ]
            assert exp == after[0] - 1


MONTH_ENDS = ("2021-02-27", "2021-03-27", "2024-02-27", "2024-02-29", "2021-05-29", "2021-09-30")


@thinned()
@pytest.mark.parametrize("day", sampled(MONTH_ENDS, 2))
@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "Asia/Manila"])
@pytest.mark.parametrize("every", [HOUR, 6 * HOUR, 12 * HOUR])
def test_a_window_of_months_lets_each_row_go_once(day: str, zone: str | None, every: int) -> None:
    """A month before 29 March, 00:00, is earlier than one before 28 March, 23:00; what is gone
    stays away, on every path."""
    spec = window(1, "month", Slide(every, zone=zone))
    begin = instant(f"{day}T00:00")
    found = all_boundaries(spec.slide, begin - DAY, begin + 40 * DAY)
    starts = list(accumulate((range_start(spec, b) for b in found), max))
    ts = np.arange(begin, begin + 5 * DAY, HOUR // 3 + 1)
    gone = [next(b for b, s in zip(found, starts, strict=True) if s > row) for row in ts.tolist()]
    assert (Deaths(spec).exp(ts) + 1).tolist() == gone
    one_by_one = Deaths(spec)
    assert [int(one_by_one.exp(ts[k : k + 1])[0]) + 1 for k in range(len(ts))] == gone


def test_paths_agree_on_a_month_that_ends_early() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 100 days")
    ways = ("", " WITH (path = 'is')", " WITH (path = ws)", " WITH (synopsis = own)")
    for k, way in enumerate(ways):
        engine.execute(
            f"CREATE QUERY q{k} AS SELECT COUNT(*) AS n FROM s [RANGE 1 MONTH SLIDE 12 h]{way}"
        )
    ts = [instant(f"2021-02-28T{hour:02}:00") for hour in (1, 13, 23)]
    engine.ingest("s", {"v": [1, 2, 3], "t": ts})
    engine.heartbeat("s", instant("2021-04-03T00:00"))
    found = [
        [(p.at, p.data.to_pylist()) for p in engine.subscribe(f"q{k}", 0).take() if p.data]
        for k in range(len(ways))
    ]
    assert found[0] == found[1] == found[2] == found[3]
    told = {at: rows[0]["n"] for at, rows in found[0]}
    days = ("28T00:00", "28T12:00", "29T00:00", "31T12:00")
    assert [told[instant(f"2021-03-{day}")] for day in days] == [3, 2, 2, 2]


def test_a_long_window_with_a_short_slide_is_not_gone_through() -> None:
    """When a row leaves is found without the boundaries on the way: millions."""
    spec = window(2, "year", Slide(1000))
    deaths = Deaths(spec)
    ts = np.array([instant("2021-03-01T00:00"), instant("2024-03-01T00:00")])
    exp = deaths.exp(ts)
    assert exp.tolist() == [instant("2023-03-01T00:00") + 999, instant("2026-03-01T00:00") + 999]
    assert len(deaths.firsts) < 2000  # a few a day at most


def counted(
    select: str, rows: list[list[int]], until: int, retain: str = ""
) -> list[tuple[int | None, int]]:
    engine = Engine()
    engine.execute(f"CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t{retain}")
    if not retain:
        engine.execute(f"CREATE QUERY q AS {select}")
    engine.ingest("s", rows[: len(rows) // 2])
    if retain:
        engine.execute(f"CREATE QUERY q AS {select}")
    engine.ingest("s", rows[len(rows) // 2 :])
    engine.heartbeat("s", until)
    return [
        (p.at, *rows_of(p.data)[0]) for p in engine.subscribe("q", 0).take() if p.data is not None
    ]


@thinned()
@pytest.mark.parametrize(("zone", "day"), sampled(PLACES, 6))
@pytest.mark.parametrize(
    ("path", "step"),
    [("auto", "1 MONTH"), ("auto", "2 DAYS"), ("'is'", "1 DAY"), ("ws", "1 DAY"), ("ws", "1 WEEK")],
)
def test_every_row_is_counted_once(zone: str, day: str, path: str, step: str) -> None:
    """From the first boundary on, in whatever way the answers are got at."""
    change = instant(f"{day}T00:00")
    select = (
        f"SELECT COUNT(*) FROM s [RANGE {step} SLIDE {step} TIME ZONE '{zone}'] WITH (path = "
        f"{path})"
    )
    last = change + (40 if step == "1 MONTH" else 10) * DAY
    rows = [[k, t] for k, t in enumerate(range(change - 10 * DAY, last, HOUR))]
    told: Any = counted(select, rows, last + 35 * DAY)
    assert sum(n for _, n in told) == len(rows)
    late: Any = counted(select, rows, last + 35 * DAY, retain=" RETAIN 100 DAYS")
    assert late == told[-len(late) :] and late


def test_the_day_that_apia_left_out() -> None:
    """Its boundary is that of the next day; days and weeks across it."""
    rows = [
        [k, t]
        for k, t in enumerate(range(instant("2011-12-28T00:00"), instant("2012-01-01T10:00"), HOUR))
    ]
    days = [
        instant(f"{day}T10:00")
        for day in ("2011-12-28", "2011-12-29", "2011-12-30", "2011-12-31", "2012-01-01")
    ]
    for length, expected in (("1 DAY", [10, 24, 24, 24, 24]), ("2 DAYS", [10, 34, 48, 48, 48])):
        select = f"SELECT COUNT(*) FROM s [RANGE {length} SLIDE 1 DAY TIME ZONE 'Pacific/Apia']"
        assert counted(select, rows, days[-1]) == list(zip(days, expected, strict=True))


def test_which_days_were_left_out() -> None:
    assert [left_out(zone) for zone in ("Europe/Berlin", "America/Juneau", "UTC")] == [(), (), ()]
    assert left_out("Pacific/Apia") == (instant("2011-12-30T00:00") // DAY,)
    assert left_out("Asia/Manila") == (instant("1844-12-31T00:00") // DAY,)
