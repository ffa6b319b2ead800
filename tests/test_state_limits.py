"""Queries stop soon after their state is larger than it may be (DS630): however small the limit
is, and whatever answers them."""

from __future__ import annotations

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError

BOTH = "FROM s [RANGE 1000 s{0}], r [RANGE 1000 s{0}] WHERE s.k = r.k"
QUERIES = {
    "groups": "SELECT k, SUM(v), MAX(v) FROM s [RANGE 1000 s] GROUP BY k",
    "distinct": "SELECT DISTINCT k FROM s [RANGE 1000 s]",
    "join": "SELECT s.k " + BOTH.format(""),
    "synopses": "SELECT k, SUM(v) FROM s [RANGE 1000 s SLIDE 10 s] GROUP BY k",
    "join synopses": "SELECT COUNT(*) " + BOTH.format(" SLIDE 10 s"),
    "incremental": "SELECT k, v FROM s [RANGE 1000 s SLIDE 1 s]",
    "elastic": "SELECT k, SUM(v) FROM s [RANGE 1000 s SLIDE 10 s] GROUP BY k",
    "lookup": "SELECT k, SUM(v) FROM s [RANGE 1000 s] GROUP BY k",
}
WITH = {
    "elastic": "WITH (boundaries = elastic, max_state = {})",
    "lookup": "ON LOOKUP WITH (max_state = {})",
}
STREAM = "CREATE STREAM {} (k INT, v FLOAT, t INT) TIMESTAMP BY t UNIT s"


def engine_with(kind: str, limit: int) -> Engine:
    engine = Engine()
    engine.execute(";".join(STREAM.format(name) for name in "sr"))
    options = WITH.get(kind, "WITH (max_state = {})").format(limit)
    engine.execute(f"CREATE QUERY q AS {QUERIES[kind]} {options}")
    return engine


@pytest.mark.parametrize("kind", QUERIES)
def test_a_small_limit_is_held(kind: str) -> None:
    limit = 100_000
    engine = engine_with(kind, limit)
    query, before = engine.runtime.queries["q"], 0
    for i in range(300):
        for stream in "sr":
            engine.ingest(
                stream, {"k": [*range(20 * i, 20 * i + 20)], "v": [1.0] * 20, "t": [i] * 20}
            )
        if query.failure is not None:
            break
        before = query.nbytes()
    assert query.failure is not None and query.failure.code == "DS630"
    assert before <= 1.5 * limit  # a sub-window of ten seconds may come at once
    assert limit < query.nbytes() < 3 * limit  # tables double as they grow


@pytest.mark.parametrize("kind", ["groups", "synopses"])
def test_a_limit_that_is_not_reached_stops_nothing(kind: str) -> None:
    engine = engine_with(kind, 1 << 20)
    for i in range(60):
        engine.ingest("s", {"k": [*range(20)], "v": [1.0] * 20, "t": [i] * 20})
    assert engine.runtime.queries["q"].failure is None


def test_a_query_whose_first_state_is_too_large_is_not_registered() -> None:
    with pytest.raises(DsmsError) as problem:
        engine_with("incremental", 10)
    assert problem.value.code == "DS630"


def test_who_has_stopped_holds_no_sub_windows_that_others_do_not_need() -> None:
    engine = engine_with("synopses", 5_000)
    engine.execute(
        "CREATE QUERY short AS SELECT k, SUM(v) FROM s [RANGE 10 s SLIDE 10 s] GROUP BY k"
    )
    query, sizes = engine.runtime.queries["short"], []
    for i in range(200):
        engine.ingest("s", {"k": [*range(20)], "v": [1.0] * 20, "t": [i] * 20})
        sizes.append(query.nbytes())
    assert engine.runtime.queries["q"].failure is not None
    assert query.failure is None and max(sizes[100:]) <= max(sizes[:100])


def test_state_far_below_the_limit_is_looked_at_seldom() -> None:
    engine = engine_with("groups", 1 << 30)
    query, looks = engine.runtime.queries["q"], 0
    for i in range(64):
        engine.ingest("s", {"k": [1], "v": [1.0], "t": [i]})
        looks += query.pieces == 0
    assert looks <= 64 // 16 + 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.v FROM a [RANGE 1 h], b [RANGE 1 h] WHERE a.k = b.k",
        "SELECT a.v FROM a [RANGE 1 h], b [RANGE 1 h], c [RANGE 1 h] WHERE a.k = b.k AND b.k = c.k"
        " WITH (joins = pipeline)",
        "SELECT a.v FROM a [RANGE 1 h], b [RANGE 1 h], c [RANGE 1 h] WHERE a.k = b.k AND b.k = c.k"
        " WITH (joins = adaptive)",
        "SELECT k FROM a [RANGE 1 h] EXCEPT SELECT k FROM b [RANGE 1 h]",
        "SELECT v FROM a [RANGE 1 h] WHERE k NOT IN (SELECT k FROM b [RANGE 1 h])",
        "SELECT DISTINCT k FROM a [RANGE 1 h]",
    ],
)
def test_keys_are_counted_beside_rows(query: str) -> None:
    """What turns texts into words is as large as the texts: more than half of some states."""
    engine = Engine()
    for name in "abc":
        engine.execute(f"CREATE STREAM {name} (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute(f"CREATE QUERY q AS {query}")
    n = 5000
    keys = [f"a key of some characters {i}" for i in range(n)]
    engine.ingest("a", {"k": keys, "v": list(range(n)), "t": list(range(n))})
    for name in "bc":
        engine.heartbeat(name, n)
    (held,) = engine.execute("SHOW QUERIES FULL")[0].data.column("state_bytes").to_pylist()
    assert held > n * 250
