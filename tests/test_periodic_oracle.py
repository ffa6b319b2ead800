"""The oracle of periodic queries against plain loops, calendars written out by hand, and DuckDB.

What it answers to whole stories, read by people, is in tests/golden/periodic.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from random import Random

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.sql import logical as lp
from dsms.sql.types import INT, STRING
from dsms.sql.window import Slide, Time
from tests.effort import examples
from tests.oracle import Periodic, Row
from tests.oracle import plans as p
from tests.oracle.boundaries import DAY, all_boundaries, midnight, moment, months_later, range_start
from tests.stories.cells import instant, shown_instant

SECOND = 1_000_000
HOUR = 3_600 * SECOND
S, T = (p.stream(n, a=STRING, x=INT) for n in "st")


def told(
    plan: lp.Node,
    slide: Slide | None,
    kind: str,
    rows: Sequence[tuple[str, int, str, int]],
    upto: int,
    restore: bool = False,
) -> list[tuple[int, list[tuple]]]:
    streams: dict[str, list[Row]] = {}
    for number, (name, ts, *values) in enumerate(rows):
        streams.setdefault(name, []).append(Row(ts, number, tuple(values)))
    output = lp.Output(plan, kind, True, restore, slide, plan.schema)  # type: ignore[arg-type]
    return [(a.at, list(a.rows)) for a in Periodic(output, streams, None, upto).pushes()]


def win(node: lp.Node, length: int, slide: int, **more: object) -> lp.Window:
    return p.window(node, "time", length, slide=slide, **more)


# ---------------------------------------------------------------- boundaries


def test_boundaries_are_multiples_from_the_alignment():
    assert all_boundaries(Slide(5), 0, 15) == [5, 10, 15]
    assert all_boundaries(Slide(5), -11, -1) == [-10, -5]
    assert all_boundaries(Slide(5, align=12), 0, 15) == [2, 7, 12]
    assert all_boundaries(Slide(5, align=12), 2, 7) == [7]


def _days(
    zone: str,
    first: str,
    last: str,
    calendar: tuple[int, str] = (1, "day"),
    align: str | None = None,
) -> list[str]:
    slide = Slide(1, align=None if align is None else instant(align), zone=zone, calendar=calendar)
    return [shown_instant(b) for b in all_boundaries(slide, instant(first) - 1, instant(last))]


@pytest.mark.parametrize(
    ("zone", "first", "days"),
    [
        (
            "Europe/Berlin",
            "2026-03-27T23:00",
            ["2026-03-27T23", "2026-03-28T23", "2026-03-29T22", "2026-03-30T22"],
        ),
        (
            "Europe/Berlin",
            "2026-10-23T22:00",
            ["2026-10-23T22", "2026-10-24T22", "2026-10-25T23", "2026-10-26T23"],
        ),
        (
            "America/Sao_Paulo",
            "2018-11-03T03:00",
            ["2018-11-03T03", "2018-11-04T03", "2018-11-05T02"],
        ),
        (
            "America/Sao_Paulo",
            "2018-02-17T02:00",
            ["2018-02-17T02", "2018-02-18T03", "2018-02-19T03"],
        ),
        ("Pacific/Apia", "2011-12-29T10:00", ["2011-12-29T10", "2011-12-30T10", "2011-12-31T10"]),
    ],
)
def test_local_days(zone: str, first: str, days: list[str]) -> None:
    wanted = [f"{day}:00:00" for day in days]
    assert _days(zone, first, wanted[-1]) == wanted


def test_a_day_aligned_to_an_hour_keeps_its_wall_clock_time():
    found = _days("Europe/Berlin", "2026-03-28T00:00", "2026-03-30T12:00", align="2020-01-01T05:00")
    assert found == ["2026-03-28T05:00:00", "2026-03-29T04:00:00", "2026-03-30T04:00:00"]


def test_weeks_months_and_years_count_from_1970():
    assert _days("UTC", "1970-01-01T00:00", "1970-01-15T00:00", (1, "week")) == [
        "0s",
        "604800s",
        "1970-01-15T00:00:00",
    ]
    months = _days("UTC", "2026-01-01T00:00", "2026-08-01T00:00", (3, "month"))
    assert months == ["2026-01-01T00:00:00", "2026-04-01T00:00:00", "2026-07-01T00:00:00"]
    ends = _days("UTC", "2026-01-01T00:00", "2026-05-01T00:00", (1, "month"), "2024-01-31T00:00")
    assert ends == [f"2026-{end}T00:00:00" for end in ("01-31", "02-28", "03-31", "04-30")]


def test_hours_begin_anew_at_midnight():
    spec = Slide(6 * HOUR, zone="Europe/Berlin")
    found = [
        shown_instant(b)
        for b in all_boundaries(spec, instant("2026-10-24T22:00"), instant("2026-10-26T05:00"))
    ]
    # the last period but one is an hour long
    hours = ["25T04", "25T10", "25T16", "25T22", "25T23", "26T05"]
    assert found == [f"2026-10-{hour}:00:00" for hour in hours]


def test_ranges_of_calendar_units_end_where_days_do():
    spec = Time(DAY, calendar=(1, "day"), slide=Slide(HOUR, zone="Europe/Berlin"))
    assert range_start(spec, instant("2026-03-29T22:00")) == instant("2026-03-28T23:00")
    assert range_start(spec, instant("2026-03-30T04:00")) == instant("2026-03-29T04:00")
    month = Time(31 * DAY, calendar=(1, "month"), slide=Slide(HOUR))
    assert range_start(month, instant("2026-03-31T12:00")) == instant("2026-02-28T12:00")
    assert range_start(
        Time(731 * DAY, calendar=(2, "year"), slide=Slide(HOUR)), instant("2024-02-29T00:00")
    ) == instant("2022-02-28")


def test_months_later_stays_in_the_month():
    assert months_later(dt.date(2024, 1, 31), 1) == dt.date(2024, 2, 29)
    assert months_later(dt.date(2024, 3, 31), -13) == dt.date(2023, 2, 28)


@settings(max_examples=examples(60))
@given(
    st.datetimes(dt.datetime(1995, 1, 1), dt.datetime(2035, 1, 1)),
    st.sampled_from(("Europe/Berlin", "America/Lima")),
)
def test_moments_and_duckdb(shown: dt.datetime, zone: str) -> None:
    """Where the wall clock shows a time once, DuckDB's time zones say the same."""
    shown = shown.replace(second=0, microsecond=0)
    if _shown_once(shown, zone):
        sql = f"SELECT epoch_us(TIMESTAMP '{shown}' AT TIME ZONE '{zone}')"
        assert [(moment(shown, zone),)] == duckdb.connect().execute(sql).fetchall()
    day = shown.date()
    assert midnight(day, zone) < midnight(day + dt.timedelta(days=1), zone)


def _shown_once(shown: dt.datetime, zone: str) -> bool:
    from zoneinfo import ZoneInfo

    offsets = {shown.replace(tzinfo=ZoneInfo(zone), fold=fold).utcoffset() for fold in (0, 1)}
    return len(offsets) == 1


# ---------------------------------------------------------------- answers, by plain loops


@pytest.mark.parametrize("seed", range(20))
def test_sums_over_windows_and_plain_loops(seed: int) -> None:
    random = Random(seed)
    slide, length, until = random.randint(1, 7), random.randint(2, 12), random.choice((0, 0, 1))
    rows = [("s", t, "a", random.randint(0, 9)) for t in sorted(random.choices(range(40), k=25))]
    window = win(S, length, slide, until=until)
    total = p.group(window, (), p.agg(window, "count_star", type=INT), p.agg(window, "sum", "x"))
    first = next(b for b in range(1, 99) if b % slide == 0 and b > rows[0][1])
    wanted = []
    for b in range(first, 52, slide):
        inside = [x for _, t, _, x in rows if b - length <= t < b - until]
        wanted.append((b, [(len(inside), sum(inside) if inside else None)]))
    assert told(total, window.spec.slide, "rstream", rows, 50) == [
        w for w in wanted if w[0] - 1 <= 50
    ]


@pytest.mark.parametrize("seed", range(20))
def test_joins_and_plain_loops(seed: int) -> None:
    """Whole answers, what entered and what was lost between, computed from the lifetimes of
    pairs."""
    random = Random(seed)
    slide, w1, w2 = random.randint(2, 9), random.randint(1, 9), random.randint(1, 9)
    rows = [
        (random.choice("st"), t, random.choice("ab"), 0)
        for t in sorted(random.choices(range(30), k=16))
    ]
    plan = p.project(p.join(win(S, w1, slide), win(T, w2, slide), "a"), "a")
    pairs = [
        (max(t, u), min(t + w1, u + w2), i, j, a)
        for i, (n, t, a, _) in enumerate(rows)
        if n == "s"
        for j, (m, u, b, _) in enumerate(rows)
        if m == "t" and a == b
    ]
    lives = [pair for pair in pairs if pair[0] < pair[1]]
    bounds = [b for b in range(slide, 51, slide) if b > rows[0][1]]
    answers = [[q for q in sorted(lives, key=lambda q: q[2:4]) if q[0] < b <= q[1]] for b in bounds]
    assert _letters(told(plan, Slide(slide), "rstream", rows, 49)) == [
        [q[4] for q in now] for now in answers
    ]
    came = [
        [q[4] for q in now if q not in old]
        for old, now in zip([[], *answers], answers, strict=False)
    ]
    assert _letters(told(plan, Slide(slide), "istream", rows, 49)) == came
    left = [
        [q[4] for q in old if q not in now]
        for old, now in zip([[], *answers], answers, strict=False)
    ]
    assert _letters(told(plan, Slide(slide), "dstream", rows, 49)) == left
    since = [(q0, b) for q0, b in zip([-99, *bounds], bounds, strict=False)]
    all_that_came = [
        [q[4] for q in sorted(lives, key=lambda q: (q[0], q[2], q[3])) if a <= q[0] < b]
        for a, b in since
    ]
    assert _letters(told(plan, Slide(slide), "istream", rows, 49, restore=True)) == all_that_came
    restored = [
        [q[4] for q in sorted(lives, key=lambda q: q[2:4]) if q in now or a <= q[0] < q[1] < b]
        for (a, b), now in zip(since, answers, strict=True)
    ]
    assert _letters(told(plan, Slide(slide), "rstream", rows, 49, restore=True)) == restored


def _letters(found: list[tuple[int, list[tuple]]]) -> list[list[str]]:
    return [[row[0] for row in rows] for _, rows in found]


@pytest.mark.parametrize("seed", range(10))
def test_rows_counted_and_plain_loops(seed: int) -> None:
    random = Random(seed)
    n, m, skip = random.randint(2, 6), random.randint(1, 5), random.choice((0, 1))
    times = sorted(random.choices(range(9), k=20))
    rows = [("s", t, "a", k) for k, t in enumerate(times)]
    window = p.window(S, "rows", n, until=skip, slide=m)
    wanted = [
        (times[k - 1], [(x,) for x in range(max(0, k - n), k - skip)]) for k in range(m, 21, m)
    ]
    assert told(p.project(window, "x"), window.spec.slide, "rstream", rows, 99) == wanted


def test_rows_counted_beside_another_stream():
    """The other stream is read as of the whole instant of the row that completes the count."""
    window = p.window(S, "rows", 9, slide=2)
    both = p.join(window, p.window(T, "rows", 1), "a")
    plan = lp.Project(both, (p.col(S, "x"), lp_col(both, 3)), (both.schema[1], both.schema[3]))
    rows = [
        ("s", 1, "a", 1),
        ("s", 2, "a", 2),
        ("s", 2, "a", 3),
        ("t", 2, "a", 7),
        ("s", 3, "a", 4),
    ]
    assert told(plan, window.spec.slide, "rstream", rows, 9) == [
        (2, [(1, 7), (2, 7)]),
        (3, [(1, 7), (2, 7), (3, 7), (4, 7)]),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_restored_rows_beside_another_stream_and_plain_loops(seed: int) -> None:
    """Pairs of the newest rows of one stream with those of another in a window in time, point by
    point."""
    random = Random(seed)
    n, m, length = random.randint(1, 3), random.randint(1, 4), random.randint(1, 6)
    times = sorted(random.choices(range(12), k=18))
    rows = [(random.choice("st"), t, "a", k) for k, t in enumerate(times)]
    window = p.window(S, "rows", n, slide=m)
    both = p.join(window, p.window(T, "time", length), "a")
    plan = lp.Project(both, (p.col(S, "x"), lp_col(both, 3)), (both.schema[1], both.schema[3]))
    come: list[int] = []
    before: set[tuple[int, int]] = set()
    since: list[tuple[int, int]] = []
    wanted = []
    for t in range(12):
        for x in [None, *(x for name, at, _, x in rows if (name, at) == ("s", t))]:
            come += [] if x is None else [x]
            others = [y for name, at, _, y in rows if name == "t" and t - length < at <= t]
            now = {(x, y) for x in come[-n:] for y in others}
            since += sorted(now - before)
            before = now
            if x is not None and len(come) % m == 0:
                wanted.append((t, since))
                since = []
    assert told(plan, window.spec.slide, "istream", rows, 11, restore=True) == wanted


def lp_col(node: lp.Node, index: int):
    from dsms.sql.expr import Col

    return Col(index, node.schema[index].type, node.schema[index].name)


def test_appended_sums_are_those_of_the_chunks():
    """SUM over the newest three of sums of six: the sum of the last eighteen, where all are
    full."""
    rows = [("s", t, "a", 1 + t % 4) for t in range(0, 60, 2)]
    inner = win(S, 6, 6, internal=True)
    sums = p.append(p.group(inner, (), p.agg(inner, "sum", "x")))
    outer = p.window(sums, "rows", 3)
    total = p.group(outer, (), p.agg(outer, "sum", "sum"))
    whole = win(S, 18, 6)
    direct = p.group(whole, (), p.agg(whole, "sum", "x"))
    assert told(total, inner.spec.slide, "rstream", rows, 59) == told(
        direct, whole.spec.slide, "rstream", rows, 59
    )


def test_restore_loses_nothing_that_no_restore_tells():
    rows = [("s", t, "ab"[t % 2], t) for t in range(20)]
    window = win(S, 3, 5)
    top = p.group(window, ("a",), p.agg(window, "max", "x"))
    plain = told(top, window.spec.slide, "istream", rows, 30)
    restored = told(top, window.spec.slide, "istream", rows, 30, restore=True)
    assert all(set(a[1]) <= set(b[1]) for a, b in zip(plain, restored, strict=True))


def test_a_query_registered_later_answers_later():
    window = win(S, 5, 5)
    output = lp.Output(window, "rstream", True, False, window.spec.slide, window.schema)
    rows = {"s": [Row(1, 0, ("a", 1)), Row(11, 1, ("b", 2))]}
    assert [a.at for a in Periodic(output, rows, None, 20, registered=9).pushes()] == [10, 15, 20]
    assert [a.at for a in Periodic(output, rows, None, 20, registered=10).pushes()] == [15, 20]
