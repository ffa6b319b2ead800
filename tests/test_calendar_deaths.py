"""When rows leave windows whose length follows the calendar: told from stretches of boundaries, the
same as from each boundary of the oracle, and without a look at each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.plan import deaths
from dsms.plan.boundaries import window_start
from dsms.plan.deaths import Deaths
from dsms.sql.window import Slide, Time
from dsms.storage.upgrades import UPGRADES
from tests.effort import examples
from tests.oracle.boundaries import all_boundaries, range_start
from tests.stories.cells import instant
from tests.test_left_out_days import DAY, HOUR, LENGTHS, PLACES, window

SECOND = HOUR // 3600
MONTH = Time(31 * DAY, calendar=(1, "month"), slide=Slide(2 * SECOND, zone="Europe/Berlin"))


def by_definition(spec: Time, ts: list[int]) -> list[int]:
    """exp of each row: just before the first boundary whose window begins after it."""
    assert spec.slide is not None
    reach = spec.length + 3 * DAY + spec.slide.every
    bounds = all_boundaries(spec.slide, ts[0], ts[-1] + reach)
    starts = [range_start(spec, b) for b in bounds]
    return [next(b for b, s in zip(bounds, starts, strict=True) if s > t) - 1 for t in ts]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(PLACES),
    st.sampled_from(("day", "week", "month")),
    st.sampled_from((HOUR // 2, HOUR, 5 * HOUR, 7 * HOUR // 3, 25 * HOUR)),
    st.none() | st.integers(-40, 40).map(lambda k: k * DAY // 8),
    st.booleans(),
    st.lists(st.integers(-96, 96), min_size=2, max_size=12),
)
def test_rows_leave_as_the_definition_says(
    place: tuple[str, str],
    unit: str,
    every: int,
    aligned: int | None,
    before: bool,
    half_hours: list[int],
) -> None:
    """Whether clocks change where boundaries are or where their windows begin."""
    zone, day = place
    change = instant(f"{day}T00:00") - before * LENGTHS[unit]
    align = None if aligned is None else change + aligned
    spec = window(1, unit, Slide(every, align=align, zone=zone))
    ts = sorted(change + k * HOUR // 2 for k in half_hours)
    one, two = Deaths(spec), Deaths(spec)
    found = one.exp(np.array(ts, np.int64)).tolist()
    cut = len(ts) // 2
    again = [*two.exp(np.array(ts[:cut], np.int64)), *two.exp(np.array(ts[cut:], np.int64))]
    assert found == again == by_definition(spec, ts)


@pytest.mark.parametrize("begin", ["2026-01-10T00:00", "2026-03-28T12:00", "2026-02-27T00:00"])
def test_few_of_a_million_boundaries_are_looked_at(
    begin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(
        deaths, "window_start", lambda spec, b: looks.append(b) or window_start(spec, b)
    )
    ts = instant(begin) + np.arange(0, 10 * DAY, HOUR)
    known = Deaths(MONTH)
    for some in np.split(ts, 24):
        known.exp(some)
        assert len(known.tops) < 20
    assert len(looks) < 300


def test_what_an_earlier_version_knew_is_learned_anew() -> None:
    assert UPGRADES["boundaries.deaths", 1]({"spec": MONTH, "bounds": [1], "starts": [0]}) == {
        "spec": MONTH
    }
