"""Queries that read the answers of others: what runs once, who begins with what, who may read what,
what is dropped with what."""

from __future__ import annotations

import re

import pytest

from dsms.engine import Engine
from dsms.errors import QueryError, UsageError
from dsms.running.query import RunningQuery
from dsms.settings import Settings
from tests.effort import effort, thinned
from tests.users import declared, rows

S = 1_000_000
STREAMS = """
CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM r (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t;
"""


def engine(*statements: str, settings: Settings | None = None) -> Engine:
    made = Engine(settings=settings)
    made.execute(STREAMS)
    for sql in statements:
        made.execute(sql)
    return made


def feed(made: Engine, *given: tuple[int, int, int], stream: str = "s") -> None:
    made.ingest(stream, [[k, v, t * S] for k, v, t in given])


def asked(made: Engine, sql: str) -> list[tuple]:
    (found,) = made.execute(sql)
    return [tuple(row.values()) for row in found.data.to_pylist()]


def shown(made: Engine, name: str) -> list[tuple]:
    return sorted(asked(made, f"SELECT * FROM {name}"), key=repr)


def running(made: Engine, name: str) -> RunningQuery:
    found = made.runtime.dispatch.told(name)
    assert isinstance(found, RunningQuery)
    return found


COUNTS = "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 10 s] GROUP BY k"


# ---------------------------------------------------------------- what it begins with


@pytest.mark.parametrize("shared", [False, True])
def test_a_late_reader_has_the_answer_though_no_row_is_held(shared: bool) -> None:
    made = engine(COUNTS, settings=Settings(shared_parts=shared))
    feed(made, (1, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 9))
    (done,) = made.execute("CREATE QUERY late AS SELECT n, COUNT(*) AS keys FROM q GROUP BY n")
    assert done.warnings == ()
    made.heartbeat("s", 9 * S)
    assert shown(made, "late") == [(1, 2), (2, 1)]
    feed(made, (2, 0, 11))
    made.heartbeat("s", 11 * S)
    assert shown(made, "q") == [(1, 1), (2, 2), (3, 1)]
    assert shown(made, "late") == [(1, 2), (2, 1)]
    made.heartbeat("s", 30 * S)
    assert shown(made, "late") == []


def test_rows_of_a_window_leave_when_they_did() -> None:
    made = engine("CREATE QUERY q AS SELECT k, v FROM s [RANGE 5 s]")
    feed(made, (1, 1, 1), (2, 2, 3), (3, 3, 4))
    made.execute("CREATE QUERY p AS SELECT v FROM q WHERE k < 3")
    feed(made, (4, 4, 5))
    told = [(p.kind, p.at, p.data.to_pylist()) for p in made.subscribe("p", 0).take() if p.data]
    assert told == [("insert", 4 * S - 1, [{"v": 1}, {"v": 2}])]
    made.heartbeat("s", 7 * S)
    assert shown(made, "p") == [(2,)]


def test_answers_are_partial_until_the_other_stream_has_come_as_far() -> None:
    made = engine(COUNTS)
    feed(made, (1, 0, 5), (1, 0, 6))
    feed(made, (1, 7, 3), stream="r")
    (done,) = made.execute(
        "CREATE QUERY j AS SELECT q.k, n, v FROM q JOIN r [RANGE 10 s] r ON q.k = r.k"
    )
    assert [w.partition(":")[2] for w in done.warnings if "partial" in w] == [
        " answers are partial until 1970-01-01T00:00:05.999999Z"
    ]


def test_who_keeps_no_answer_is_read_over_what_is_held() -> None:
    made = engine("CREATE QUERY q AS SELECT Istream(k, v) FROM s [RANGE 10 s] WHERE v > 0")
    feed(made, (1, 1, 1), (2, 2, 2))
    (done,) = made.execute("CREATE QUERY p AS SELECT COUNT(*) AS n FROM q")
    assert "answers are partial" in done.warnings[-1]
    feed(made, (3, 3, 3), (4, 4, 4))
    made.heartbeat("s", 4 * S)
    assert shown(made, "p") == [(3,)]


@pytest.mark.parametrize("kept", [True, False])
def test_what_a_query_has_appended_is_made_of_what_is_held(kept: bool) -> None:
    made = Engine()
    made.execute(STREAMS.replace("BY t", "BY t RETAIN 1 h") if kept else STREAMS)
    made.execute("CREATE QUERY q AS SELECT k, v FROM s [RANGE 3 s]")
    made.execute("CREATE QUERY p AS SELECT Rstream(DISTINCT k) FROM Istream(q) [RANGE UNBOUNDED]")
    feed(made, (1, 4, 1), (2, 5, 2), (2, 6, 3))
    made.heartbeat("s", 20 * S)  # the answer of q is empty, that of p is not
    (done,) = made.execute("CREATE QUERY d AS SELECT Rstream(DISTINCT k) FROM p")
    assert shown(made, "p") == [(1,), (2,)]
    assert shown(made, "d") == ([(1,), (2,)] if kept else [])
    assert any("partial" in warning for warning in done.warnings) is not kept


def test_a_reader_of_a_periodic_query_has_its_slide() -> None:
    made = engine(
        "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
        "CREATE QUERY p AS SELECT MAX(n) AS most FROM q",
    )
    feed(made, (1, 0, 1), (1, 0, 2), (2, 0, 3))
    made.heartbeat("s", 4 * S)
    told = [(p.at, p.data.to_pylist()) for p in made.subscribe("p", 0).take() if p.data]
    assert told == [(2 * S, [{"most": 1}]), (4 * S, [{"most": 2}])]
    with pytest.raises(QueryError, match="DS309"):
        made.execute("CREATE QUERY o AS SELECT q.n FROM q, s [RANGE 3 s SLIDE 3 s] s")


# ---------------------------------------------------------------- what runs once


def test_deep_and_wide_each_operator_runs_once() -> None:
    deep, wide = (10, 100) if effort() else (4, 8)
    made = engine("CREATE QUERY q0 AS SELECT k, COUNT(*) AS n FROM s [RANGE 10 s] GROUP BY k")
    for n in range(1, deep):
        made.execute(f"CREATE QUERY q{n} AS SELECT k, MAX(n) AS n FROM q{n - 1} GROUP BY k")
    top = f"q{deep - 1}"
    for n in range(wide):
        made.execute(f"CREATE QUERY r{n} AS SELECT k, n + {n} AS m FROM {top} WHERE n > {n % 3}")
    parts = made.runtime.dispatch.parts
    assert len(parts) == deep
    assert len(parts[f"part {deep}"].feeds) == wide + 1
    feed(made, *((t % 5, 0, t) for t in range(1, 12)))
    made.heartbeat("s", 11 * S)
    assert shown(made, top) == shown(made, "q0") == [(k, 2) for k in range(5)]
    assert shown(made, "r4") == [(k, 6) for k in range(5)]
    for query in map("r{}".format, range(wide)):
        assert not running(made, query).pipeline.sources.keys() & {0, 1}


def test_what_reads_alike_shares_what_stands_above() -> None:
    made = engine(COUNTS)
    for name in "abc":
        made.execute(f"CREATE QUERY {name} AS SELECT n, COUNT(*) AS keys FROM q GROUP BY n")
    assert [len(p.feeds) for p in made.runtime.dispatch.parts.values()] == [2, 3]
    feed(made, (1, 0, 1), (2, 0, 2))
    made.heartbeat("s", 3 * S)
    assert shown(made, "a") == shown(made, "c") == [(1, 2)]


def test_parts_go_with_the_last_reader() -> None:
    made = engine(COUNTS, "CREATE QUERY p AS SELECT n FROM q", "CREATE QUERY o AS SELECT n FROM p")
    assert len(made.runtime.dispatch.parts) == 2
    made.execute("DROP QUERY o")
    made.execute("DROP QUERY p")
    made.execute("DROP QUERY q")
    assert not made.runtime.dispatch.parts and not made.runtime.catalog.plans


# ---------------------------------------------------------------- DROP, SHOW, EXPLAIN


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x.k FROM Istream(q) [RANGE 8 s] x JOIN Istream(q) [RANGE 4 s] y ON x.k = y.k",
        "SELECT k, v FROM Dstream(q) [RANGE 8 s] EXCEPT SELECT k, v FROM Dstream(q) [RANGE 1 s]",
    ],
)
def test_who_reads_the_same_stream_of_a_query_twice_is_dropped(text: str) -> None:
    made = engine("CREATE QUERY q AS SELECT k, v FROM s [RANGE 3 s]", f"CREATE QUERY p AS {text}")
    made.execute("DROP QUERY p")
    made.execute(f"CREATE QUERY p AS {text}")
    made.execute("DROP QUERY q CASCADE")
    assert not made.runtime.dispatch.parts and not made.runtime.parts.known


def test_what_is_read_is_dropped_with_its_readers_alone() -> None:
    made = engine(
        COUNTS,
        "CREATE QUERY p AS SELECT n FROM q",
        "CREATE STREAM d AS SELECT Istream(n) FROM p",
        "CREATE QUERY o AS SELECT COUNT(*) FROM d",
    )
    with pytest.raises(UsageError, match="query q is read by p"):
        made.execute("DROP QUERY q")
    with pytest.raises(UsageError, match="query p is read by d"):
        made.execute("DROP QUERY p")
    (done,) = made.execute("DROP QUERY q CASCADE")
    assert done.message == "query q dropped, and with it query o, stream d, query p"
    assert not made.runtime.queries
    (done,) = made.execute("DROP STREAM s")


def test_a_stream_goes_with_those_that_read_its_query() -> None:
    made = engine(
        "CREATE STREAM d AS SELECT Istream(k, COUNT(*) AS n) FROM s [RANGE 5 s] GROUP BY k"
    )
    made.execute("CREATE QUERY p AS SELECT MAX(n) FROM d_feed")
    with pytest.raises(UsageError, match="DS405"):
        made.execute("DROP STREAM d")
    made.execute("DROP STREAM d CASCADE")
    assert not made.runtime.queries


def test_it_is_shown_who_reads_whom() -> None:
    made = engine(COUNTS, "CREATE QUERY p AS SELECT a.n FROM q a JOIN q b ON a.n = b.n")
    lines = {
        row["query"]: row["reads"] for row in made.execute("SHOW QUERIES FULL")[0].data.to_pylist()
    }
    assert lines == {"q": None, "p": "q"}
    notes = {name: asked(made, f"DESCRIBE QUERY {name}")[0][3] for name in "qp"}
    assert notes == {"q": "read by query p", "p": "reads query q"}
    plan = [re.split("  +(?=[A-Z]{2,3}  )", line)[0] for (line,) in asked(made, "EXPLAIN QUERY p")]
    assert plan == [
        "Rstream",
        "  Project a.n",
        "    Join a.n = b.n",
        "      Project a.n",
        "        Query q AS a",
        "      Project b.n",
        "        Query q AS b",
        "rewrites: narrow_join",
        "runs once for all queries that have it: Query q AS a; Query q AS b",
        "Query q AS a: shared with q",
        "Query q AS b: shared with q",
    ]


# ---------------------------------------------------------------- failures


def test_a_query_that_has_stopped_is_refused() -> None:
    made = engine("CREATE QUERY q AS SELECT 1 / v AS x FROM s [RANGE 5 s] WITH (on_error = stop)")
    feed(made, (1, 0, 1), (1, 1, 2))
    with pytest.raises(UsageError, match="DS421"):
        made.execute("CREATE QUERY p AS SELECT x FROM q")


def test_rows_that_fail_below_are_counted_above() -> None:
    made = engine(
        "CREATE QUERY q AS SELECT k, MAX(1 / v) AS x FROM s [RANGE 5 s] GROUP BY k",
        "CREATE QUERY p AS SELECT x FROM q",
    )
    feed(made, (1, 0, 1), (1, 1, 2))
    made.heartbeat("s", 3 * S)
    assert [running(made, name).errors.count for name in "qp"] == [1, 1]


def test_a_part_that_fails_stops_its_readers() -> None:
    made = engine(
        "CREATE QUERY q AS SELECT k, SUM(v) AS x FROM s [RANGE 5 s] GROUP BY k",
        "CREATE QUERY p AS SELECT x FROM q WHERE x > 0",
    )
    feed(made, (1, 2**62, 1), (1, 2**62, 2))
    made.heartbeat("s", 3 * S)
    assert {q.failure.code for q in made.runtime.queries.values() if q.failure} == {"DS706"}
    assert all(q.failure for q in made.runtime.queries.values())


# ---------------------------------------------------------------- rights


def test_readers_see_what_the_creator_of_the_query_may() -> None:
    made = declared()
    made.execute("GRANT SELECT ON s TO alice WHERE v < 4; GRANT CREATE ON ALL TO alice, bob")
    made.execute("CREATE QUERY mine AS SELECT k, v FROM s [RANGE 1 HOUR]", user="alice")
    with pytest.raises(QueryError, match="DS203"):
        made.execute("CREATE QUERY his AS SELECT v FROM mine", user="bob")
    made.execute("GRANT SELECT (v) ON mine TO bob WHERE v < 3", user="alice")
    with pytest.raises(QueryError, match="DS201"):
        made.execute("CREATE QUERY his AS SELECT k FROM mine", user="bob")
    made.execute("CREATE QUERY his AS SELECT * FROM mine", user="bob")
    assert [r["v"] for r in rows(made, "SELECT * FROM his", "bob")] == [1]
    made.execute("CREATE QUERY all_of_it AS SELECT v FROM mine")
    assert [r["v"] for r in rows(made, "SELECT * FROM all_of_it", None)] == [1, 3]
    with pytest.raises(UsageError, match="DS670"):
        made.execute("EXPLAIN QUERY his", user="bob")


@pytest.mark.parametrize(
    "change", ["REVOKE SELECT ON s FROM alice", "REVOKE SELECT ON mine FROM bob"]
)
def test_readers_stop_with_the_rights_that_they_stand_on(change: str) -> None:
    made = declared()
    made.execute("GRANT SELECT ON s TO alice; GRANT CREATE ON ALL TO alice, bob")
    made.execute("CREATE QUERY mine AS SELECT k, v FROM s [RANGE 1 HOUR]", user="alice")
    made.execute("GRANT SELECT ON mine TO bob", user="alice")
    made.execute("CREATE QUERY his AS SELECT v FROM mine", user="bob")
    made.execute("CREATE QUERY next AS SELECT v FROM his", user="bob")
    (done,) = made.execute(change)
    gone = ["mine", "his", "next"] if "ON s" in change else ["his", "next"]
    failed = [name for name, q in made.runtime.queries.items() if q.failure is not None]
    assert failed == gone and done.warnings[0].endswith(": " + ", ".join(gone))


# ---------------------------------------------------------------- forms


def test_limits_and_look_ups_are_refused() -> None:
    made = engine(
        "CREATE QUERY top AS SELECT k, v FROM s [RANGE 4 s SLIDE 2 s] ORDER BY v LIMIT 3",
        "CREATE QUERY asked AS SELECT SUM(v) FROM s [RANGE 4 s] ON LOOKUP",
        "CREATE QUERY sorted AS SELECT k FROM s [RANGE 4 s SLIDE 2 s] ORDER BY v + 1",
    )
    for name, code in (("top", "DS340"), ("asked", "DS329")):
        with pytest.raises(QueryError, match=code):
            made.execute(f"CREATE QUERY p AS SELECT * FROM {name}")
    made.execute("CREATE QUERY p AS SELECT k FROM sorted")
    feed(made, (1, 9, 1), (2, 5, 1), (3, 7, 1))
    made.heartbeat("s", 2 * S)
    assert shown(made, "p") == [(1,), (2,), (3,)]


def test_too_many_leaves_are_refused() -> None:
    made = engine("CREATE QUERY q0 AS SELECT k, v FROM s [RANGE 1 s]")
    for n in range(1, 7):
        made.execute(
            f"CREATE QUERY q{n} AS SELECT a.k, a.v FROM q{n - 1} a JOIN q{n - 1} b ON a.k = b.k"
        )
    with pytest.raises(QueryError, match="DS341"):
        made.execute("CREATE QUERY q7 AS SELECT a.k FROM q6 a JOIN q6 b ON a.k = b.k")


def test_a_window_stands_on_an_answer_that_only_grows() -> None:
    made = engine("CREATE QUERY q AS SELECT Rstream(k, v) FROM s WHERE v > 0")
    feed(made, (1, 1, 1), (2, 2, 4), (3, 3, 5))
    made.heartbeat("s", 5 * S)
    made.execute("CREATE QUERY p AS SELECT COUNT(*) AS n FROM q [RANGE 3 s]")
    assert shown(made, "p") == [(2,)]
    with pytest.raises(QueryError, match="DS306"):
        made.execute("CREATE QUERY w AS SELECT n FROM p [RANGE 3 s]")


# ---------------------------------------------------------------- what enters and leaves


@pytest.mark.parametrize("kind", ["Istream", "Dstream"])
def test_what_entered_and_left_a_query_is_not_known_when_one_asks_once(kind: str) -> None:
    made = engine("CREATE QUERY q AS SELECT k, v FROM s [RANGE 10 s]")
    with pytest.raises(UsageError) as caught:
        made.execute(f"SELECT * FROM {kind}(q) x")
    assert caught.value.code == "DS416"


@thinned()
@pytest.mark.parametrize("kind", ["Istream", "Dstream"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, v FROM s [RANGE 3 s]",
        "SELECT k, COUNT(*) AS v FROM s [RANGE 3 s] GROUP BY k",
        "SELECT DISTINCT k, v FROM s [ROWS 3]",
        "SELECT k, SUM(v) AS v FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
    ],
)
def test_entries_and_departures_in_from_are_the_stream_of_them(kind: str, query: str) -> None:
    made = engine(f"CREATE QUERY q AS {query}", f"CREATE STREAM d AS SELECT {kind}(*) FROM q")
    for name, source in (("a", f"{kind}(q)"), ("b", "d")):
        made.execute(f"CREATE QUERY {name} AS SELECT Istream(k, v) FROM {source} x WHERE v > 0")
    feed(made, *((t % 3, t % 5, t) for t in range(1, 20)), (1, 1, 20), (2, 1, 20))
    made.heartbeat("s", 40 * S)

    def told(name: str) -> list[tuple]:
        pushes = [p for p in made.subscribe(name, 0).take() if p.data is not None]
        rows = [tuple(row.values()) for p in pushes for row in p.data.to_pylist()]
        ats = [at for p in pushes for at in (p.ats.to_pylist() if p.ats else [p.at] * len(p.data))]
        # the instant before a boundary is when a block has appended; a stream has the boundary
        return sorted(zip([-(-at // S) for at in ats], rows, strict=True))

    assert told("a") == told("b") != []


@pytest.mark.parametrize("kind", ["Istream", "Dstream"])
def test_a_late_reader_of_them_has_what_comes(kind: str) -> None:
    made = engine("CREATE QUERY q AS SELECT k, v FROM s [RANGE 3 s]")
    feed(made, (1, 1, 1), (2, 2, 2), (3, 3, 5))
    made.execute(f"CREATE QUERY p AS SELECT k FROM {kind}(q) [RANGE 4 s]")
    feed(made, (4, 4, 6), (5, 5, 9))
    made.heartbeat("s", 8 * S)
    # of what has entered before, it knows what was still there; of what has left, nothing
    assert shown(made, "p") == {"Istream": [(3,), (4,)], "Dstream": [(2,), (3,)]}[kind]


def test_readers_go_on_where_the_query_stops_over_its_own_limit() -> None:
    made = engine(
        "CREATE QUERY q AS SELECT k, v FROM s [RANGE 1 h] WITH (max_state = 200000)",
        "CREATE QUERY p AS SELECT COUNT(*) AS n FROM q",
    )
    for t in range(1, 40):
        made.ingest("s", [[k, t, t * S] for k in range(500)])
    made.heartbeat("s", 40 * S)
    assert running(made, "q").failure.code == "DS630"
    assert shown(made, "p") == [(19500,)]
    (feed_of_q,) = running(made, "q").feeds
    assert feed_of_q.waiting < 1000
    made.execute("DROP QUERY p")
    made.execute("DROP QUERY q")
    assert not made.runtime.dispatch.parts


def test_groups_are_known_wherever_they_run() -> None:
    text = "SELECT Istream(k, COUNT(*) AS n) FROM s [RANGE 10 s] GROUP BY k"
    made = engine(f"CREATE QUERY q AS {text}", f"CREATE QUERY o AS {text} HAVING COUNT(*) > 0")
    made.execute(f"CREATE QUERY x AS {text}")
    feed(made, (1, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 9))
    for name in "qox":
        made.execute(f"CREATE QUERY of_{name} AS SELECT k, n FROM {name}")
        made.heartbeat("s", 9 * S)
        assert shown(made, f"of_{name}") == [(1, 2), (2, 1), (3, 1)]
