"""What is dropped is gone at once: no circle of objects waits for the garbage collector, whose runs
over a large heap hold everybody up."""

from __future__ import annotations

import gc

import pytest

from dsms.engine import Engine

QUERIES = {
    "continuous": "SELECT k, COUNT(*) FROM s [RANGE 5 s] GROUP BY k",
    "join": "SELECT s.k, w FROM s [RANGE 5 s], r WHERE s.k = r.k",
    "periodic": "SELECT MAX(v) FROM s [RANGE 4 s SLIDE 2 s]",
    "periodic over rows": "SELECT MAX(v) FROM s [ROWS 4 SLIDE 2]",
    "periodic join": "SELECT s.k, COUNT(*) FROM s [RANGE 4 s SLIDE 2 s], u [RANGE 4 s SLIDE 2 s] "
    "WHERE s.k = u.k GROUP BY s.k",
    "scan": "SELECT k, v FROM s [RANGE 4 s SLIDE 2 s] WHERE v > 1 WITH (path = ws)",
    "on lookup": "SELECT k, SUM(v) FROM s [RANGE 10 s] GROUP BY k ON LOOKUP",
}


@pytest.mark.parametrize("kind", QUERIES)
def test_a_dropped_query_leaves_no_circle(kind: str) -> None:
    engine = Engine()
    engine.execute("""CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min;
                      CREATE STREAM u (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min;
                      CREATE TABLE r (k INT PRIMARY KEY, w INT)""")

    def once(n: int) -> None:
        engine.execute(f"CREATE QUERY q AS {QUERIES[kind]}")
        if kind != "on lookup":
            reader = engine.subscribe("q")
        for stream in "su":
            row = [1, n * 1_000_000] if stream == "u" else [1, n, n * 1_000_000]
            engine.ingest(stream, [row])
            engine.heartbeat(stream, n * 1_000_000 + 500_000)
        while engine.work():
            pass
        if kind != "on lookup":
            engine.unsubscribe(reader)
        engine.execute("DROP QUERY q")

    for n in range(3):
        once(n)
    gc.collect()
    gc.disable()
    try:
        for n in range(3, 6):
            once(n)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = [type(o).__qualname__ for o in gc.garbage if type(o).__module__.startswith("dsms.")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []
