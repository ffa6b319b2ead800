"""Long silences, and the ends of the calendar: what is reported depends on what came, not on how;
nothing gets stuck."""

from __future__ import annotations

import numpy as np
import pytest

import dsms
from dsms.errors import QueryError
from dsms.periodic import silence
from dsms.periodic.silence import Arrivals

S = 1_000_000
YEAR_1, YEAR_9999 = -62_135_596_800 * S, 253_402_300_799 * S
DECLARED = """CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t; CREATE STREAM u (v INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE TABLE r (v INT PRIMARY KEY, w INT)"""  # noqa: E501
QUERIES = [
    "SELECT COUNT(*) FROM s [RANGE 10 s SLIDE 1 s]",
    "SELECT COUNT(*), MAX(v) FROM s [RANGE 30 s UNTIL 5 s AGO SLIDE 1 s] WHERE v > 2",
    "SELECT COUNT(*) FROM s [RANGE 10 s SLIDE 3 s] HAVING COUNT(*) = 0",
    "SELECT COUNT(*) FROM s [RANGE 10 s SLIDE 1 s], u [RANGE 5 s] WHERE s.v = u.v",
    "SELECT v, COUNT(*) FROM s [RANGE UNBOUNDED SLIDE 2 s] GROUP BY v",
    "SELECT Istream(COUNT(*)) FROM s [RANGE 10 s SLIDE 1 s]",
    "SELECT COUNT(w) FROM s [RANGE UNBOUNDED SLIDE 1 s], r WHERE s.v = r.v",
    "SELECT COUNT(*) FROM s [RANGE (v * INTERVAL '1' MINUTE) SLIDE 1 s]",
    "SELECT v, COUNT(*) FROM s [PARTITION BY v ROWS 2 RANGE 20 s] GROUP BY v EVERY 1 s",
    "SELECT COUNT(*) FROM s [PARTITION BY v EVERY 20 s SLIDE 1 s]",
]


@pytest.fixture
def short(monkeypatch):
    """A hundred boundaries of silence are reported."""
    monkeypatch.setattr(silence, "SILENCE", 100)
    monkeypatch.setattr(silence, "LESS", 100)
    monkeypatch.setattr("dsms.sharing.group.LESS", 100)


def told(query: str, path: str, beats: list[int]) -> list[tuple]:
    engine = dsms.Engine()
    engine.execute(DECLARED)
    engine.execute(f"CREATE QUERY q AS {query} WITH (path = '{path}', result_log = 1000000)")
    reader = engine.subscribe("q", 0, 1 << 40)
    for at, v in ((0, 1), (3, 9), (700, 6), (704, 1), (2000, 7)):
        for stream in "su":
            engine.ingest(stream, [[v, at * S]])
        if at == 704:
            engine.execute("INSERT INTO r VALUES (1, 5) AT TIMESTAMP '1970-01-01 00:17:00'")
    for at in beats:
        for stream in "su":
            engine.heartbeat(stream, at * S)
    rows = []
    for push in reader.take():
        if push.kind == "result":
            ats = [push.at] * push.data.num_rows if push.ats is None else push.ats.to_pylist()
            rows += list(
                zip(ats, map(tuple, (r.values() for r in push.data.to_pylist())), strict=True)
            )
    return rows


@pytest.mark.parametrize("query", QUERIES)
def test_silence_is_told_alike_however_time_comes_and_whatever_the_path(query, short):
    paths = (
        ("auto", "is", "ws")
        if "r WHERE" in query or "HAVING" in query
        else ("auto", "is", "ws", "ss")
    )
    told_each = [
        told(query, path, beats) for path in paths for beats in ([2900], [*range(2000, 2901, 45)])
    ]
    assert told_each[0] and all(t == told_each[0] for t in told_each)


def test_as_many_boundaries_are_told_as_are_said(short):
    rows = told(QUERIES[0], "auto", [2900])
    silent = [at // S for at, row in rows if row == (0,) and at > 704 * S]
    # (the row leaves at 715: it came at 704)
    assert silent == [*range(715, 815 + 1), *range(2011, 2111 + 1)]


JOINS = (
    (
        "SELECT COUNT(*) FROM s [RANGE 10 s SLIDE {} s], u [RANGE 10 s] WHERE s.v = u.v",
        ("is", "ws", "ss"),
    ),
    (
        "SELECT COUNT(*) FROM (SELECT v FROM s [RANGE 10 s SLIDE {} s] UNION ALL SELECT v FROM u "
        "[RANGE 10 s])",
        ("is", "ws"),
    ),
    ("SELECT COUNT(*) FROM s [RANGE UNBOUNDED SLIDE {} s], r WHERE s.v = r.w", ("is", "ws")),
)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("query, path", [(query, path) for query, paths in JOINS for path in paths])
def test_what_was_there_before_a_query_ends_its_silence(query, path, beside, short):
    """Rows and changes later than its clock, which other inputs hold back; a slower query beside it
    hears otherwise."""

    def told(early: bool) -> list[tuple]:
        engine = dsms.Engine()
        engine.execute(DECLARED.replace("TIMESTAMP BY t", "TIMESTAMP BY t RETAIN 1 HOUR"))
        create = f"CREATE QUERY {{}} AS {query} WITH (path = '{path}', result_log = 1000000)"
        if beside:
            engine.execute(create.format("p", 7))
        engine.ingest("u", [[1, 0]])
        engine.ingest("s", [[1, 0]])
        if early:
            engine.execute(create.format("q", 1))
        if "r WHERE" in query:
            engine.execute("INSERT INTO r VALUES (5, 1) AT TIMESTAMP '1970-01-01 00:11:40'")
        else:
            engine.ingest("s", [[1, at * S] for at in (350, 700, 701, 702)])
        if not early:
            engine.execute(create.format("q", 1))
        engine.ingest("u", [[1, 701 * S]])
        for stream in "su":
            engine.heartbeat(stream, 2000 * S)
        return [
            (p.at, p.data.to_pylist())
            for p in engine.subscribe("q", 0, 1 << 40).take()
            if p.kind == "result"
        ]

    found = told(False)
    assert found == told(True)
    assert any(row != {"COUNT(*)": 0} for _, rows in found for row in rows)


def test_a_row_far_ahead_keeps_nobody_waiting():
    for window in ("RANGE 10 s SLIDE 1 s", "RANGE 1 DAY SLIDE 1 DAY TIME ZONE 'America/New_York'"):
        for path in ("auto", "is", "ws"):
            engine = dsms.Engine()
            engine.execute(DECLARED)
            engine.execute(
                f"CREATE QUERY q AS SELECT COUNT(*) FROM s [{window}] WITH (path = '{path}')"
            )
            engine.ingest("s", [[1, 0], [2, YEAR_9999 - 86_400 * S * 10]])
            assert engine.execute("SHOW QUERIES FULL")[0].data.num_rows == 1


@pytest.mark.parametrize(
    "window",
    [
        "RANGE 1 DAY SLIDE 1 DAY TIME ZONE 'America/New_York'",
        "RANGE 1 DAY SLIDE 6 h TIME ZONE 'Pacific/Kiritimati'",
        "RANGE 1 MONTH SLIDE 1 MONTH",
        "RANGE 500 YEARS SLIDE 1 YEAR TIME ZONE 'UTC'",
        "RANGE 10 s SLIDE 100 YEARS",
    ],
)
def test_calendars_begin_and_end(window, short):
    """A stream that ends without a row, rows of the first day and of the last one: no error, and
    the engine goes on."""
    for rows in ([], [YEAR_1, YEAR_1 + 40 * 86_400 * S, 0], [0, YEAR_9999]):
        engine = dsms.Engine()
        engine.execute(DECLARED)
        engine.execute(f"CREATE QUERY q AS SELECT COUNT(*) FROM s [{window}]")
        for at in rows:
            engine.ingest("s", [[1, at]])
        engine.end("s")
        assert engine.execute("SHOW QUERIES FULL")[0].data.num_rows == 1
        engine.execute("DROP QUERY q")


@pytest.mark.parametrize(
    "window", ["RANGE 10 s SLIDE 1000000 YEARS", "RANGE 1001 YEARS SLIDE 1 DAY TIME ZONE 'UTC'"]
)
def test_a_calendar_is_not_followed_for_ever(window):
    engine = dsms.Engine()
    engine.execute(DECLARED)
    with pytest.raises(QueryError, match=r"DS227.*1000 years at most"):
        engine.execute(f"CREATE QUERY q AS SELECT COUNT(*) FROM s [{window}]")


def test_a_day_before_a_day_without_midnight_is_whole():
    """São Paulo, 20 October 2013: clocks went from 00:00 to 01:00."""
    engine, midnight = dsms.Engine(), 1_382_151_600  # of the 19th
    engine.execute(DECLARED)
    window = "RANGE 1 DAY SLIDE 1 DAY TIME ZONE 'America/Sao_Paulo'"
    engine.execute(f"CREATE QUERY q AS SELECT COUNT(*), MIN(v) FROM s [{window}]")
    reader = engine.subscribe("q", 0)
    engine.ingest("s", [[k, (midnight + 1800 * k) * S] for k in range(96)])
    first = next(p for p in reader.take() if p.kind == "result")
    assert (first.at, first.data.to_pylist()) == (
        (midnight + 86_400) * S,
        [{"COUNT(*)": 48, "MIN(v)": 0}],
    )


def test_arrivals():
    heard = Arrivals(10)
    heard.heard("a", np.array([0, 5, 30, 31]))
    heard.heard("b", np.array([100]))
    heard.heard("a", np.array([40, 90]))
    known = {t: heard.before(t) for t in (0, 1, 5, 6, 30, 40, 41, 90, 91, 100, 101)}
    assert known == {
        0: -(2**63),
        1: 0,
        5: 4,
        6: 5,
        30: 5,
        40: 39,
        41: 40,
        90: 40,
        91: 90,
        100: 90,
        101: 100,
    }
    assert [heard.after(t) for t in (5, 41, 95, 100)] == [30, 90, 100, 2**63 - 1]
    heard.forget(95)
    assert (heard.before(95), heard.before(200)) == (90, 100)
