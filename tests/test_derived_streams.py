"""Derived streams: what they are declared with, who feeds and reads them, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError, UsageError
from dsms.sql.types import MAX_INSTANT
from tests.archives import fresh as archiving
from tests.archives import landed
from tests.derived_world import S

BASE = "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t"
BUSY = (
    "CREATE STREAM d RETAIN 1 min AS SELECT Istream(k, COUNT(*) AS n) FROM s [RANGE 5 s] GROUP BY k"
)


def fresh(*statements: str, data: str | None = None) -> Engine:
    engine = Engine(data)
    for sql in statements:
        engine.execute(sql)
    return engine


def feed(engine: Engine, *rows: tuple[int, float], stream: str = "s") -> None:
    engine.ingest(stream, [[k, int(at * S)] for k, at in rows])


def told(engine: Engine, name: str, start: int | None = 0) -> list[tuple]:
    found = []
    for push in engine.subscribe(name, start).take():
        rows = [] if push.data is None else [tuple(r.values()) for r in push.data.to_pylist()]
        ats = push.ats.to_pylist() if push.ats is not None else [push.at] * len(rows)
        found += [(at if at is None else at / S, *row) for at, row in zip(ats, rows, strict=True)]
    return found


def refused(engine: Engine, sql: str) -> DsmsError:
    with pytest.raises(DsmsError) as caught:
        engine.execute(sql)
    return caught.value


def test_rows_are_what_enters_with_its_instants_and_clocks_follow() -> None:
    engine = fresh(BASE, BUSY, "CREATE QUERY c AS SELECT Istream(COUNT(*)) FROM d [RANGE 2 s]")
    feed(engine, (1, 1), (1, 2))
    engine.heartbeat("s", 10 * S)
    # (1, 1) enters at 1, (1, 2) at 2, and (1, 1) again at 6, when the first row leaves
    want = [(None, 0), (1, 1), (2, 2), (3, 1), (4, 0), (6, 1), (8, 0)]
    assert told(engine, "c") == want
    assert engine.runtime.inputs["d"].completed == 10 * S


def test_a_column_has_the_instants() -> None:
    engine = fresh(
        BASE, "CREATE STREAM gone TIMESTAMP BY at AS SELECT Dstream(k) FROM s [RANGE 3 s]"
    )
    engine.execute("CREATE QUERY q AS SELECT * FROM gone")
    feed(engine, (7, 1))
    engine.heartbeat("s", 5 * S)
    assert told(engine, "q") == [(4, 7, 4 * S)]


def test_a_reader_that_comes_late_begins_with_what_is_kept() -> None:
    engine = fresh(BASE, BUSY)
    feed(engine, (1, 1), (2, 2))
    engine.heartbeat("s", 3 * S)
    engine.execute("CREATE QUERY late AS SELECT COUNT(*) FROM d [RANGE 30 s]")
    assert told(engine, "late") == [(3, 2)]
    (asked,) = engine.execute("SELECT k, n FROM d [RANGE 30 s] ORDER BY k")
    assert [tuple(r.values()) for r in asked.data.to_pylist()] == [(1, 1), (2, 1)]


def test_several_queries_feed_one_stream_at_the_clock_of_the_slowest() -> None:
    engine = fresh(
        BASE,
        "CREATE STREAM r (k INT, t TIMESTAMP) TIMESTAMP BY t",
        "CREATE STREAM x (k INT, what STRING, t TIMESTAMP) TIMESTAMP BY t",
        "CREATE QUERY a AS INSERT INTO x SELECT k, 's' FROM s",
        "CREATE QUERY b AS INSERT INTO x (what, k) SELECT Dstream('r', k) FROM r [RANGE 1 s]",
        "CREATE QUERY all_of_it AS SELECT * FROM x",
    )
    feed(engine, (1, 1), (2, 9))
    assert told(engine, "all_of_it") == []
    feed(engine, (3, 0), (4, 5), stream="r")
    assert told(engine, "all_of_it") == [(1, 1, "s", S), (1, 3, "r", S)]
    engine.end("r")
    engine.execute("DROP QUERY b")  # what it has told stands, and a goes on alone
    feed(engine, (5, 10))
    assert told(engine, "all_of_it") == [(1, 1, "s", S), (1, 3, "r", S), (9, 2, "s", 9 * S)]
    engine.execute("DROP QUERY a")
    engine.ingest("x", [[6, "own", 20 * S]])
    engine.end("x")
    assert told(engine, "all_of_it")[-1] == (20, 6, "own", 20 * S)


def test_a_feeder_that_comes_late_leaves_what_has_passed() -> None:
    engine = fresh(BASE, "CREATE STREAM x (k INT, t TIMESTAMP) TIMESTAMP BY t")
    feed(engine, (0, 5), stream="x")
    engine.execute(
        "CREATE QUERY a AS INSERT INTO x SELECT k FROM s; CREATE QUERY q AS SELECT k FROM x"
    )
    feed(engine, (1, 4), (2, 6), (3, 7))
    assert told(engine, "q") == [(6, 2)]
    assert engine.runtime.inputs["x"].counts.late == 1


@pytest.mark.parametrize(
    "feeder", ["SELECT k FROM s WHERE k > 1", "SELECT Istream(k) FROM s [RANGE 3 s]"]
)
@pytest.mark.parametrize("last", [None, MAX_INSTANT])
def test_a_stream_that_a_selection_fed_stands_where_its_source_ended(feeder, last) -> None:
    """As one that a client has fed: a selection tells rows before their instants are over, and has
    no last instant of its own."""
    counted = "SELECT COUNT(*) AS n FROM d [RANGE 4 s SLIDE 2 s]"
    fed = fresh(BASE, f"CREATE STREAM d RETAIN 1 h AS {feeder}", f"CREATE QUERY c AS {counted}")
    sent = fresh(
        "CREATE STREAM d (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h",
        f"CREATE QUERY c AS {counted}",
    )
    feed(fed, (2, 1), (3, 2), (2, 9))
    feed(sent, (2, 1), (3, 2), (2, 9), stream="d")
    for engine, stream in ((fed, "s"), (sent, "d")):
        if last is not None:
            engine.heartbeat(stream, last)
        engine.end(stream)
    assert told(fed, "c", None) == told(sent, "c", None)
    for sql in ("SELECT COUNT(*) FROM d [RANGE 4 s]", "SELECT * FROM c"):
        (one,), (other,) = fed.execute(sql), sent.execute(sql)
        assert (one.as_of, one.data.to_pylist()) == (other.as_of, other.data.to_pylist())
    for engine in (fed, sent):
        engine.execute(f"CREATE QUERY later AS {counted}; SHOW QUERIES FULL")
        engine.execute("CREATE QUERY l AS SELECT SUM(k) FROM d [RANGE 4 s] ON LOOKUP; LOOKUP l")


def test_the_end_goes_down_the_chain() -> None:
    engine = fresh(
        BASE,
        "CREATE STREAM n AS SELECT Istream(COUNT(*) AS n) FROM s [RANGE 10 s SLIDE 2 s]",
        "CREATE QUERY q AS SELECT SUM(n) FROM n [RANGE 4 s SLIDE 4 s]",
    )
    feed(engine, (1, 1))
    engine.end("s")
    assert engine.runtime.inputs["n"].ended
    assert told(engine, "q") == [(4, 1), (8, None), (12, None), (16, 0), (20, None)]


def test_nothing_comes_from_outside() -> None:
    engine = fresh(BASE, BUSY)
    for call in (
        lambda: engine.ingest("d", [[1, 2]]),
        lambda: engine.heartbeat("d", 5),
        lambda: engine.end("d"),
    ):
        with pytest.raises(UsageError, match=r"DS513.*queries feed it"):
            call()
    assert refused(engine, "CREATE STREAM l (k INT, n INT) LATE INTO d").code in ("DS228", "DS225")


def test_a_cycle_is_refused_and_named() -> None:
    engine = fresh(
        BASE,
        "CREATE STREAM x (k INT, t TIMESTAMP) TIMESTAMP BY t",
        "CREATE STREAM y AS SELECT Istream(k) FROM x [RANGE 1 s]",
        "CREATE STREAM z AS SELECT Istream(k) FROM y [RANGE 1 s]",
    )
    error = refused(engine, "CREATE QUERY c AS INSERT INTO x SELECT k FROM z")
    assert error.code == "DS419" and "x <- z <- y <- x" in error.message
    assert not engine.runtime.inputs["x"].fed_by


def test_what_is_read_or_fed_goes_with_cascade() -> None:
    engine = fresh(
        BASE,
        BUSY,
        "CREATE STREAM x (k INT, t TIMESTAMP) TIMESTAMP BY t",
        "CREATE QUERY f AS INSERT INTO x SELECT k FROM d",
        "CREATE QUERY r AS SELECT k FROM x",
        "CREATE QUERY other AS SELECT k FROM s",
    )
    for what, named in (
        ("STREAM s", "read by d, other"),
        ("STREAM d", "read by f"),
        ("STREAM x", "read by f, r"),
        ("QUERY d_feed", "stream d"),
    ):
        error = refused(engine, f"DROP {what}")
        assert error.code == "DS405" and named in error.message, error.message
    (done,) = engine.execute("DROP STREAM d CASCADE")
    assert done.message == "stream d dropped, and with it query f"
    assert sorted(engine.runtime.queries) == ["other", "r"] and "x" in engine.runtime.inputs
    engine.execute("DROP STREAM s CASCADE")
    assert sorted(engine.runtime.queries) == ["r"]


def test_restart_without_a_checkpoint_and_with_one(tmp_path: Path) -> None:
    place = str(tmp_path / "data")
    engine = fresh(
        BASE,
        BUSY,
        "CREATE STREAM p AS SELECT Istream(COUNT(*) AS n) FROM d [RANGE 4 s SLIDE 2 s]",
        "CREATE QUERY q AS SELECT n FROM p",
        data=place,
    )
    for k, at in ((1, 1), (1, 2), (2, 2), (3, 5)):
        feed(engine, (k, at))
        engine.close()
        engine = Engine(place)
        assert engine.recovered is not None and not engine.recovered.notes
    engine.heartbeat("s", 9 * S)
    # d: 1 at 1, 1 and 2 at 2, 3 at 5, 1 at 6 (a row of two has left)
    assert told(engine, "q") == [(2, 1), (4, 3), (8, 2)]
    engine.execute("DROP STREAM s CASCADE")
    engine.close()
    engine = Engine(place)
    assert not engine.runtime.inputs and not engine.runtime.queries
    engine.close()


def test_the_path_of_a_query_that_stops_holds_its_stream() -> None:
    engine = fresh(
        BASE,
        "CREATE STREAM d WITH (on_error = stop) AS SELECT Istream(10 / k AS n) FROM s [RANGE 5 s]",
        "CREATE QUERY q AS SELECT n FROM d",
    )
    feed(engine, (1, 1), (2, 2), (0, 3), (1, 4), (1, 9))
    assert told(engine, "q") == [(1, 10), (2, 5)]
    assert engine.runtime.inputs["d"].completed < 3 * S


def test_explain_and_show_say_what_feeds_what() -> None:
    engine = fresh(BASE, BUSY)
    (plan,) = engine.execute("EXPLAIN QUERY d_feed")
    assert "feeds stream d" in [row["plan"] for row in plan.data.to_pylist()]
    (shown,) = engine.execute("SHOW STREAMS LIKE 'd'")
    assert shown.data.to_pylist()[0]["clock"] == "that of d_feed"


def test_it_is_archived_like_any_other(tmp_path: Path) -> None:
    engine = archiving(
        tmp_path,
        "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t; CREATE STREAM d SUBWINDOW 1 s "
        "ARCHIVE FOR 1 h UPDATE EVERY 10 s AS SELECT Istream(k) FROM s [RANGE 5 s]",
    )
    feed(engine, *((at % 3, at) for at in range(1, 40)))
    engine.end("s")
    assert [row["k"] for row in landed(tmp_path, "d")] == [at % 3 for at in range(1, 40)]


def test_rights(tmp_path: Path) -> None:
    engine = fresh(
        BASE,
        "CREATE STREAM x (k INT, t TIMESTAMP) TIMESTAMP BY t",
        "CREATE USER ann PASSWORD 'long enough to be one'",
        "CREATE USER bob PASSWORD 'long enough to be one'",
        "GRANT CREATE ON ALL TO ann, bob",
        "GRANT SELECT ON s TO ann",
        "GRANT SELECT ON x TO ann",
    )
    with pytest.raises(UsageError, match="DS670"):
        engine.execute("CREATE QUERY f AS INSERT INTO x SELECT k FROM s", user="ann")
    engine.execute("CREATE STREAM d AS SELECT Istream(k) FROM s [RANGE 1 s]", user="ann")
    with pytest.raises(DsmsError, match=r"DS203|DS670"):
        engine.execute("CREATE QUERY e AS SELECT k FROM d", user="bob")
    engine.execute("GRANT SELECT ON d TO bob", user="ann")
    engine.execute("CREATE QUERY e AS SELECT k FROM d", user="bob")
    with pytest.raises(UsageError, match="queries of others"):
        engine.execute("DROP STREAM d", user="ann")
    with pytest.raises(UsageError, match="queries of others"):
        engine.execute("DROP STREAM d CASCADE", user="ann")
    engine.execute("DROP STREAM d CASCADE")
    assert not engine.runtime.queries
