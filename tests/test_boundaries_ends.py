"""Calendar days, weeks, months and years at both ends of time: the years 1 and 9999, in every
zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest

from dsms.engine import Engine
from dsms.plan.boundaries import boundaries, next_boundary, window_start
from dsms.sql.types import FOREVER, MAX_INSTANT, MIN_INSTANT
from dsms.sql.window import Slide, Time
from tests.effort import thinned
from tests.oracle.boundaries import DAY, all_boundaries, range_start
from tests.stories.cells import instant
from tests.stories.play import rows_of

HOUR = DAY // 24
DAYS = {"day": 6, "week": 30, "month": 400, "year": 1_400}
SLIDES = [(1, "day"), (2, "day"), (1, "week"), (5, "month"), (1, "year"), (3, "year")]
FEW = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Tokyo",
    "Africa/Casablanca",
    "Pacific/Apia",
)


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@thinned(4)
@pytest.mark.parametrize("zone", sorted(available_timezones()))
def test_every_zone_begins_the_first_and_ends_the_last_day(zone: str) -> None:
    """Midnights as zoneinfo has them, wherever Python can say it."""
    spec = Slide(DAY, zone=zone, calendar=(1, "day"))
    first = [micros(datetime(1, 1, day, tzinfo=ZoneInfo(zone)).astimezone(UTC)) for day in (3, 4)]
    found = boundaries(spec, MIN_INSTANT - 1, first[-1]).tolist()
    assert found[-2:] == first
    assert MIN_INSTANT <= found[0] < MIN_INSTANT + DAY and {b - a for a, b in pairwise(found)} <= {
        DAY
    }
    last = micros(datetime(9999, 12, 30, tzinfo=ZoneInfo(zone)).astimezone(UTC))
    assert [next_boundary(spec, last + k * DAY - 1) - last for k in range(3)] == [0, DAY, 2 * DAY]


@thinned()
@pytest.mark.parametrize("zone", FEW)
@pytest.mark.parametrize("slide", SLIDES)
@pytest.mark.parametrize("align", [None, instant("2010-01-31T06:30")])
@pytest.mark.parametrize("first", [True, False], ids=["year 1", "year 9999"])
def test_calendars_at_both_ends(
    zone: str, slide: tuple[int, str], align: int | None, first: bool
) -> None:
    days = DAYS[slide[1]]
    begin = MIN_INSTANT if first else MAX_INSTANT - (days - 2) * DAY
    spec = Slide(days * DAY, align=align, zone=zone, calendar=slide)
    window = Time(days * DAY, calendar=slide, slide=spec)
    found = boundaries(spec, begin - 1, begin + days * DAY).tolist()
    assert found == all_boundaries(spec, begin - 1, begin + days * DAY)
    for b in found[:2] + found[-2:]:
        assert window_start(window, b) == range_start(window, b)


@pytest.mark.parametrize("zone", FEW)
@pytest.mark.parametrize("hours", [1, 6, 24])
@pytest.mark.parametrize("begin", [MIN_INSTANT, MAX_INSTANT - 4 * DAY])
def test_hours_of_days(zone: str, hours: int, begin: int) -> None:
    spec = Slide(hours * HOUR, zone=zone)
    found = boundaries(spec, begin - 1, begin + 5 * DAY).tolist()
    assert found == all_boundaries(spec, begin - 1, begin + 5 * DAY)


def test_calendars_end_somewhere() -> None:
    far = Slide(FOREVER, calendar=(200_000, "year"))
    assert next_boundary(far, MAX_INSTANT) == FOREVER
    back = Time(FOREVER, calendar=(200_000, "year"), slide=Slide(DAY, calendar=(1, "day")))
    assert window_start(back, MAX_INSTANT + 1) < MIN_INSTANT


def told(engine: Engine, ends: bool) -> list[tuple[int | None, list[tuple]]]:
    reader = engine.subscribe("q", 0)
    if ends:
        engine.end("s")
    return [(p.at, rows_of(p.data)) for p in reader.take() if p.data is not None]


@pytest.mark.parametrize("path", ["auto", "'is'", "ws", "ss"])
def test_the_first_days_have_their_own_rows(path: str) -> None:
    engine = Engine()
    engine.execute(
        "CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t; CREATE QUERY q AS SELECT COUNT(*) "
        f"FROM s [RANGE 1 DAY SLIDE 1 DAY TIME ZONE 'UTC'] WITH (path = {path})"
    )
    engine.ingest("s", [[n, MIN_INSTANT + n * 6 * HOUR] for n in range(12)])
    days = [MIN_INSTANT + k * DAY for k in (1, 2, 3, 4)]
    assert told(engine, ends=True) == [
        (day, [(n,)]) for day, n in zip(days, (4, 4, 4, 0), strict=True)
    ]


@pytest.mark.parametrize("path", ["auto", "'is'", "ws", "ss"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_the_last_days_are_told_when_the_stream_ends(zone: str, path: str) -> None:
    engine = Engine()
    engine.execute(
        "CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t; CREATE QUERY q AS SELECT COUNT(*) "
        f"FROM s [RANGE 1 DAY SLIDE 1 DAY TIME ZONE '{zone}'] WITH (path = {path})"
    )
    engine.ingest("s", [[n, MAX_INSTANT - 3 * DAY + n * 6 * HOUR] for n in range(13)])
    answers = told(engine, ends=True)
    assert sum(rows[0][0] for _, rows in answers) == 13
    spec = Slide(DAY, zone=zone, calendar=(1, "day"))
    bounds = boundaries(spec, MAX_INSTANT - 3 * DAY, MAX_INSTANT + 2 * DAY)[: len(answers)]
    assert [at for at, _ in answers] == bounds.tolist()
