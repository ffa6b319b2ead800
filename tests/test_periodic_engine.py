"""Periodic queries in the engine: history, partial answers, silence, elastic queries and overload,
look-ups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dsms
from dsms.errors import DsmsError
from dsms.periodic.silence import SILENCE
from dsms.settings import Settings

S = 1_000_000
STREAM = "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t"


def fresh(stream: str = STREAM, **settings: Any) -> dsms.Engine:
    engine = dsms.Engine(settings=Settings(**settings))
    engine.execute(stream)
    return engine


def feed(engine: dsms.Engine, seconds: range, v: int = 1) -> None:
    engine.ingest(
        "s", {"k": [t % 3 for t in seconds], "v": [v] * len(seconds), "t": [t * S for t in seconds]}
    )


def answers(reader: Any) -> list[tuple[float, list[tuple]]]:
    return [
        (p.at / S, [tuple(r.values()) for r in p.data.to_pylist()])
        for p in reader.take()
        if p.kind == "result"
    ]


def shown(engine: dsms.Engine, query: str) -> dict[str, Any]:
    rows = engine.execute("SHOW QUERIES FULL")[0].data.to_pylist()
    return next(r for r in rows if r["query"] == query)


# ---------------------------------------------------------------- history


@pytest.mark.parametrize("path", ["is", "ss", "ws"])
def test_a_new_query_starts_with_what_the_ring_holds(path: str) -> None:
    engine = fresh(STREAM + " RETAIN 1 min")
    feed(engine, range(1, 30))
    done = engine.execute(
        f"CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 20 SLIDE 5] WITH (path = '{path}')"
    )[0]
    assert done.warnings == ()
    reader = engine.subscribe("q", 0)
    feed(engine, range(30, 41))
    assert answers(reader) == [(30.0, [(20,)]), (35.0, [(20,)]), (40.0, [(20,)])]


@pytest.mark.parametrize("path", ["is", "ss", "ws"])
def test_a_window_longer_than_the_history_says_until_when_it_is_partial(path: str) -> None:
    engine = fresh()
    feed(engine, range(1, 30))
    done = engine.execute(
        f"CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 20 SLIDE 5] WITH (path = '{path}')"
    )[0]
    assert "partial until 1970-01-01T00:00:4" in done.warnings[-1]
    assert shown(engine, "q")["partial_until"] is not None
    reader = engine.subscribe("q", 0)
    feed(engine, range(30, 61))
    got = dict(answers(reader))
    assert got[50.0] == [(20,)] and got[35.0][0][0] < 20


@pytest.mark.parametrize("path", ["is", "ss", "ws"])
@pytest.mark.parametrize("length, whole", [(4, True), (5, False)])
def test_a_window_that_begins_with_a_row_that_is_gone_is_partial(
    path: str, length: int, whole: bool
) -> None:
    engine = fresh(STREAM + " SUBWINDOW 1 s RETAIN 2 s")
    for second in (1, 5, 8, 9):
        feed(engine, range(second, second + 1))
    done = engine.execute(
        f"CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE {length} SLIDE 10] WITH (path = '{path}')"
    )
    assert (done[0].warnings == ()) == whole


@pytest.mark.parametrize("path", ["is", "ss", "ws"])
def test_a_new_query_over_counted_rows_waits_for_more(path: str) -> None:
    engine = fresh()
    feed(engine, range(1, 6))  # the last one is not complete
    engine.execute(
        f"CREATE QUERY q AS SELECT COUNT(*) FROM s [ROWS 2 SLIDE 2] WITH (path = '{path}')"
    )
    reader = engine.subscribe("q", 0)
    feed(engine, range(6, 7))
    assert answers(reader) == []
    feed(engine, range(7, 8))
    assert answers(reader) == [(6.0, [(2,)])]


def test_a_shorter_query_joins_a_synopsis_and_has_its_history() -> None:
    engine = fresh()
    engine.execute("CREATE QUERY long AS SELECT SUM(v) FROM s [RANGE 20 SLIDE 5]")
    feed(engine, range(1, 40))
    done = engine.execute("CREATE QUERY short AS SELECT SUM(v) FROM s [RANGE 10 SLIDE 5]")[0]
    assert done.warnings == ()
    reader = engine.subscribe("short", 0)
    feed(engine, range(40, 46))
    assert answers(reader) == [(40.0, [(10,)]), (45.0, [(10,)])]


# ---------------------------------------------------------------- the end of the input


@pytest.mark.parametrize("path", ["is", "ss", "iss", "ws"])
def test_at_the_end_each_query_answers_until_its_window_is_empty(path: str) -> None:
    engine, readers = fresh(), {}
    for length, slide in ((10, 2), (5, 5), (7, 7), (100, 100)):
        sql = f"SELECT COUNT(*) FROM s [RANGE {length} SLIDE {slide}] WITH (path = '{path}')"
        engine.execute(f"CREATE QUERY q{slide} AS {sql}")
        readers[slide] = engine.subscribe(f"q{slide}", 0)
    feed(engine, range(1, 12))
    behind = {slide: answers(r) for slide, r in readers.items()}
    engine.end("s")
    assert {slide: answers(r) for slide, r in readers.items()} == {
        2: [(b, [(n,)]) for b, n in ((12, 10), (14, 8), (16, 6), (18, 4), (20, 2), (22, 0))],
        5: [(15.0, [(2,)]), (20.0, [(0,)])],
        7: [(14.0, [(5,)]), (21.0, [(0,)])],
        100: [(100.0, [(11,)]), (200.0, [(0,)])],
    }
    assert [slide for slide, told in behind.items() if told] == [2, 5, 7]
    engine.execute("CREATE QUERY late AS SELECT COUNT(*) FROM s [RANGE 5 SLIDE 5]")
    assert not engine.subscribe("late", 0).take()


def test_at_the_end_a_shared_join_answers_until_it_is_empty() -> None:
    engine = fresh()
    engine.execute("CREATE STREAM r (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t")
    for name, slide in (("a", 5), ("b", 20)):
        windows = f"s [RANGE 10 SLIDE {slide}] x JOIN r [RANGE 10 SLIDE {slide}] y ON x.k = y.k"
        engine.execute(f"CREATE QUERY {name} AS SELECT COUNT(*) FROM {windows} WITH (path = ss)")
    readers = {n: engine.subscribe(n, 0) for n in "ab"}
    feed(engine, range(1, 12))
    engine.ingest("r", {"k": [0, 1], "v": [1, 1], "t": [10 * S, 12 * S]})
    engine.end("s")
    assert not any(at > 10 for r in readers.values() for at, _ in answers(r))
    engine.end("r")
    assert {n: [at for at, _ in answers(r)][-1] for n, r in readers.items()} == {
        "a": 25.0,
        "b": 40.0,
    }


def test_at_the_end_an_elastic_query_is_due_until_its_window_is_empty() -> None:
    engine = fresh(deferred=True)
    engine.execute(
        "CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 5 SLIDE 5] WITH (boundaries = elastic)"
    )
    reader = engine.subscribe("q", 0)
    feed(engine, range(1, 12))
    engine.end("s")
    while engine.work():
        pass
    assert answers(reader)[-1] == (20.0, [(0,)])


# ---------------------------------------------------------------- silence, size


@pytest.mark.parametrize("path", ["is", "ss"])
def test_a_year_of_silence_is_told_as_progress(path: str) -> None:
    engine = fresh()
    engine.execute(
        f"CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 5 SLIDE 1] WITH (path = '{path}')"
    )
    reader = engine.subscribe("q", 0)
    feed(engine, range(1, 4))
    year = 365 * 86_400
    engine.heartbeat("s", year * S)
    pushes = reader.take()
    assert SILENCE < sum(p.data.num_rows for p in pushes if p.data is not None) < SILENCE + 50
    assert shown(engine, "q")["clock"] == year * S
    feed(engine, range(year + 1, year + 3))
    assert answers(reader)[-1] == (year + 2.0, [(1,)])


@pytest.mark.parametrize("path", ["ss", "auto"])
def test_many_groups(path: str) -> None:
    engine = fresh()
    engine.execute(
        "CREATE QUERY q AS SELECT k, COUNT(*), MAX(v) FROM s [RANGE 4 SLIDE 2] GROUP BY k WITH "
        f"(path = '{path}')"
    )
    reader = engine.subscribe("q", 0)
    n = 100_000
    for t in range(1, 9):
        keys = np.arange(n) + t * n // 2
        engine.ingest("s", {"k": keys, "v": keys % 7, "t": np.full(n, t * S)})
    chunks = {c.at[0] // S: c for c in reader.take_chunks() if hasattr(c, "sign")}
    last = pa_rows = None
    for chunk in chunks.values():
        for at in np.unique(chunk.at):
            rows = chunk.data.filter(np.asarray(chunk.at) == at)
            last, pa_rows = int(at) // S, rows
    assert last == 8 and pa_rows is not None
    assert pa_rows.num_rows == n + 3 * n // 2  # seconds 4 to 7
    assert sum(pa_rows.column(1).to_pylist()) == 4 * n


# ---------------------------------------------------------------- elastic queries


def elastic(
    engine: dsms.Engine, name: str = "q", sql: str = "SELECT COUNT(*) FROM s [RANGE 10 SLIDE 1]"
) -> Any:
    engine.execute(f"CREATE QUERY {name} AS {sql} WITH (boundaries = elastic)")
    return engine.subscribe(name, 0)


@pytest.mark.parametrize(
    "of", ["s [RANGE 10 SLIDE 1]", "(SELECT DISTINCT v FROM s [RANGE 10 SLIDE 1]) x"]
)
def test_an_elastic_query_is_answered_when_there_is_time_as_of_the_latest_boundary(of: str) -> None:
    engine = fresh(deferred=True)
    reader = elastic(engine, sql=f"SELECT COUNT(*) FROM {of}")
    feed(engine, range(1, 21))
    assert answers(reader) == [] and engine.has_work()
    while engine.work():
        pass
    ((at, _),) = answers(reader)
    assert at == 20.0 and not engine.has_work()
    feed(engine, range(21, 23))
    assert engine.work() and not engine.work()
    assert [a for a, _ in answers(reader)] == [22.0]


def test_overload_lengthens_periods_and_calm_brings_them_back() -> None:
    engine = fresh(deferred=True)
    names = [f"q{i}" for i in range(12)]
    readers = [
        elastic(engine, n, f"SELECT SUM(v) FROM s [RANGE {2 * i + 4} SLIDE {i % 3 + 1}]")
        for i, n in enumerate(names)
    ]
    for t in range(1, 60):  # one evaluation every third second
        feed(engine, range(t, t + 1))
        if t % 3 == 0:
            engine.work()
    late = [shown(engine, n)["lateness"] for n in names]
    assert max(late) > 0
    for t in range(60, 140):
        feed(engine, range(t, t + 1))
        while engine.work():
            pass
    assert all(shown(engine, n)["lateness"] < 3 for n in names)
    for i, reader in enumerate(readers):
        at, rows = answers(reader)[-1]
        assert at >= 136 and rows == [(2 * i + 4,)]


def test_an_elastic_query_may_be_dropped_while_it_waits() -> None:
    engine = fresh(deferred=True)
    elastic(engine)
    other = elastic(engine, "r", "SELECT SUM(v) FROM s [RANGE 10 SLIDE 2]")
    feed(engine, range(1, 21))
    engine.execute("DROP QUERY q")
    while engine.work():
        pass
    assert answers(other) == [(20.0, [(10,)])]


def test_rows_stamped_on_arrival_are_elastic_unless_told_otherwise() -> None:
    engine = fresh("CREATE STREAM s (v INT)", deferred=True)
    engine.execute("CREATE QUERY e AS SELECT COUNT(*) FROM s [RANGE 10 SLIDE 1]")
    engine.execute(
        "CREATE QUERY f AS SELECT COUNT(*) FROM s [RANGE 10 SLIDE 1] WITH (boundaries = every)"
    )
    lazy, strict = engine.subscribe("e", 0), engine.subscribe("f", 0)
    for t in range(1, 6):
        engine.advance(t * S)
        engine.ingest("s", {"v": [t]})
    engine.advance(7 * S)
    assert [a for a, _ in answers(strict)] == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0] and answers(lazy) == []
    while engine.work():
        pass
    assert answers(lazy) == [(7.0, [(5,)])]


def test_another_scheduler_by_set_keeps_answers() -> None:
    engine = fresh(deferred=True)
    readers = {
        n: elastic(engine, n, f"SELECT SUM(v) FROM s [RANGE 10 SLIDE {p}]")
        for n, p in (("a", 1), ("b", 2))
    }
    for t, technique in enumerate(("hybrid", "none", "aggressive", "conservative"), 1):
        engine.execute(f"SET query_scheduler = {technique}")
        feed(engine, range(10 * t, 10 * t + 10))
        while engine.work():
            pass
    for reader in readers.values():
        assert answers(reader)[-1][1] == [(10,)]


# ---------------------------------------------------------------- look-ups


@pytest.mark.parametrize("path", ["auto", "is"])
def test_a_lookup_answers_as_of_the_latest_sub_window(path: str) -> None:
    engine = fresh()
    engine.execute(
        "CREATE QUERY q AS SELECT k, SUM(v) FROM s [RANGE 60] GROUP BY k ON LOOKUP WITH (path = "
        f"'{path}')"
    )
    assert engine.execute("LOOKUP q")[0].data.num_rows == 0
    feed(engine, range(1, 100))
    engine.heartbeat("s", 99 * S + S - 1)
    rows = engine.execute("LOOKUP q")[0]
    assert rows.as_of == 100 * S - 1
    assert sorted(tuple(r.values()) for r in rows.data.to_pylist()) == [(0, 20), (1, 20), (2, 20)]


def test_a_lookup_over_rows_is_as_of_the_last_row() -> None:
    engine = fresh()
    engine.execute("CREATE QUERY q AS SELECT SUM(v), COUNT(*) FROM s [ROWS 5] ON LOOKUP")
    feed(engine, range(1, 4), v=2)
    engine.heartbeat("s", 3 * S)
    assert engine.execute("LOOKUP q")[0].data.to_pylist() == [{"SUM(v)": 6, "COUNT(*)": 3}]
    feed(engine, range(4, 12), v=3)
    engine.heartbeat("s", 11 * S)
    assert engine.execute("LOOKUP q")[0].data.to_pylist() == [{"SUM(v)": 15, "COUNT(*)": 5}]


def test_lookup_of_a_query_that_runs_is_refused() -> None:
    engine = fresh()
    engine.execute("CREATE QUERY q AS SELECT SUM(v) FROM s [RANGE 5]")
    with pytest.raises(DsmsError, match="was not registered ON LOOKUP"):
        engine.execute("LOOKUP q")


# ---------------------------------------------------------------- faults


def test_a_sum_that_overflows_stops_its_query_and_no_other() -> None:
    engine = fresh()
    big = 2**62
    engine.execute("CREATE QUERY a AS SELECT SUM(v) FROM s [RANGE 3 SLIDE 1]")
    engine.execute("CREATE QUERY b AS SELECT SUM(v) FROM s [RANGE 1 SLIDE 1]")
    a, b = engine.subscribe("a", 0), engine.subscribe("b", 0)
    engine.ingest("s", {"k": [1] * 4, "v": [1, big, big, 5], "t": [S, 2 * S, 3 * S, 5 * S]})
    assert shown(engine, "a")["status"].startswith("stopped: DS706")
    assert [at for at, _ in answers(a)] == [2.0, 3.0]
    assert [at for at, _ in answers(b)] == [2.0, 3.0, 4.0, 5.0] and shown(engine, "b")[
        "status"
    ] == "running"


def test_a_stream_under_queries_cannot_be_dropped() -> None:
    engine = fresh()
    engine.execute("CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 5 SLIDE 1]")
    with pytest.raises(DsmsError, match="read by q"):
        engine.execute("DROP STREAM s")
    engine.execute("DROP QUERY q; DROP STREAM s")


def test_dropping_queries_lets_rings_and_synopses_go() -> None:
    engine = fresh()
    for i, path in enumerate(("ss", "ws", "is", "iss")):
        engine.execute(
            f"CREATE QUERY q{i} AS SELECT k, SUM(v) FROM s [RANGE 5 SLIDE 1] GROUP BY k WITH "
            f"(path = '{path}')"
        )
    feed(engine, range(1, 30))
    for i in range(4):
        engine.execute(f"DROP QUERY q{i}")
    assert engine.execute("SHOW WINDOWS")[0].data.num_rows == 0


def test_rows_that_slack_holds_have_no_numbers_yet() -> None:
    engine = fresh(STREAM + " SLACK 3 s")
    feed(engine, range(1, 7))
    engine.execute("CREATE QUERY q AS SELECT SUM(v) FROM s [ROWS 4 SLIDE 4]")
    reader = engine.subscribe("q", 0)
    feed(engine, range(7, 20))
    assert answers(reader) == [(4.0, [(2,)]), (8.0, [(4,)]), (12.0, [(4,)])]  # two had gone before
