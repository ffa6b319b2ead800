"""What queries still tell when their streams have ended: through streams that queries feed, of
queries that sleep, of those registered later, and behind a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsms import Engine

S = 1_000_000
DECLARED = """
CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE STREAM u (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
"""
CLOSED = "SELECT k, COUNT(*) AS n FROM s [SESSION 5 s BY k INTERNAL] GROUP BY k"
SILENT = "SELECT a.k, a.v FROM MATCH (a s, NOT n u) [RANGE 8 s INTERNAL] PER k"
ROWS = [(1, 1), (2, 2), (1, 3), (3, 9)]  # k, second


def begun(engine: Engine, *queries: str) -> Engine:
    engine.execute(DECLARED)
    for k, query in enumerate(queries):
        engine.execute(f"CREATE QUERY q{k} AS {query}")
    return engine


def feed(engine: Engine) -> None:
    engine.ingest("s", [(k, at, at * S) for k, at in ROWS])
    engine.ingest("u", [(2, 5 * S)])


def told(engine: Engine, query: str = "q0") -> list[tuple[Any, ...]]:
    """(what happens, second, values) of all rows."""
    found = []
    for push in engine.subscribe(query, 0).take():
        rows = push.data.to_pylist() if push.data else []
        instants = push.ats.to_pylist() if push.ats else [push.at] * len(rows)
        both = zip(instants, rows, strict=True)
        found += [(push.kind, at and at // S, *row.values()) for at, row in both]
    return found


def ended(*queries: str) -> Engine:
    engine = begun(Engine(), *queries)
    feed(engine)
    engine.end("s")
    engine.end("u")
    return engine


CLOSES = [("insert", 7, 2, 1), ("insert", 8, 1, 2), ("insert", 14, 3, 1)]
SILENCES = [("insert", 9, 1, 1), ("insert", 11, 1, 3), ("insert", 17, 3, 9)]


def test_of_one_stream_and_of_two() -> None:
    engine = begun(Engine(), CLOSED, SILENT)
    feed(engine)
    assert told(engine) == CLOSES[:2] and told(engine, "q1") == []
    engine.end("s")
    assert told(engine) == CLOSES and told(engine, "q1") == []
    engine.end("u")
    assert told(engine) == CLOSES and told(engine, "q1") == SILENCES


def test_a_view_stays_unless_something_is_told() -> None:
    views = ["SELECT k, v FROM s [RANGE 2 s]", f"SELECT COUNT(*) AS n FROM ({CLOSED}) [RANGE 3 s]"]
    engine = ended(*views)
    (shown,) = engine.execute("SELECT k FROM q0")
    assert shown.data.to_pylist() == [{"k": 3}]
    assert told(engine, "q1")[-2:] == [("delete", 14, 0), ("insert", 14, 1)]


def test_down_the_chain() -> None:
    engine = begun(Engine())
    engine.execute(f"CREATE STREAM d TIMESTAMP BY at AS {CLOSED}")
    engine.execute("CREATE QUERY q0 AS SELECT COUNT(*) AS m FROM d [SESSION 2 s INTERNAL]")
    feed(engine)
    engine.end("s")
    assert engine.runtime.inputs["d"].ended
    assert told(engine) == [("insert", 10, 2), ("insert", 16, 1)]


def test_queries_that_sleep() -> None:
    """Their rows are looked up by the value of k."""
    one = (
        "SELECT k, COUNT(*) AS n FROM (SELECT * FROM s WHERE k = {0}) [SESSION {1} s BY k INTERNAL]"
        " GROUP BY k"
    )
    some = [one.format(k, k + 4) for k in (1, 2, 3)]
    engine = ended(*some, "SELECT v FROM s [RANGE 2 s] WHERE k = 3")
    assert engine.runtime.dispatch.looked_up("q2") is not None
    assert [told(engine, f"q{k}") for k in range(3)] == [
        [("insert", 8, 1, 2)],
        [("insert", 8, 2, 1)],
        [("insert", 16, 3, 1)],
    ]
    assert told(engine, "q3") == [("insert", 9, 9)]
    engine.execute("SHOW QUERIES FULL")
    assert told(engine, "q3") == [("insert", 9, 9)]


def test_two_of_one_plan_and_one_that_comes_late() -> None:
    engine = begun(Engine(), CLOSED, CLOSED, SILENT, SILENT)
    feed(engine)
    engine.end("s")
    engine.end("u")
    engine.execute(f"CREATE QUERY q4 AS {SILENT}")
    assert told(engine) == told(engine, "q1") == CLOSES
    assert told(engine, "q2") == told(engine, "q3") == SILENCES
    assert told(engine, "q4") == SILENCES[1:]  # it begins where the streams ended


@pytest.mark.parametrize("stops", [False, True])
def test_behind_a_restart(tmp_path: Path, stops: bool) -> None:
    engine = begun(Engine(str(tmp_path)), CLOSED, SILENT)
    feed(engine)
    if stops:
        engine.close()
        engine = Engine(str(tmp_path))
    engine.end("s")
    engine.end("u")
    first = told(engine), told(engine, "q1")
    engine.close()
    again = Engine(str(tmp_path))
    assert (told(again), told(again, "q1")) == first == (CLOSES, SILENCES)
    (done,) = again.execute("ALTER STREAM s REOPEN")
    assert "1970-01-01T00:00:17Z" in done.message
    assert (told(again), told(again, "q1")) == first
    again.close()
