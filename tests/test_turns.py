"""Time is not walked in vain, and no call holds the engine's thread: work is counted in steps."""

from __future__ import annotations

import numpy as np
import pytest

from dsms.api import Cancel
from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.running.pipeline import LEAST, Pipeline
from dsms.settings import Settings
from dsms.sharing.feed import ENOUGH
from tests.effort import thinned

SECOND = 1_000_000
STREAMS = """
CREATE STREAM u (k INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM v (k INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE TABLE d (k INT, name STRING, PRIMARY KEY (k));
INSERT INTO d VALUES (1, 'one');
"""
OVER = "u [RANGE 10 s], v [RANGE 7 s] WHERE u.k = v.k"
QUERIES = {
    "window": "SELECT k FROM u [RANGE 10 s]",
    "join": f"SELECT u.k FROM {OVER}",
    "left": "SELECT u.k, v.k AS vk FROM u [RANGE 10 s] LEFT JOIN v [RANGE 7 s] ON u.k = v.k",
    "full": "SELECT u.k, v.k AS vk FROM u [RANGE 10 s] FULL OUTER JOIN v [RANGE 7 s] ON u.k = v.k",
    "exists": "SELECT k FROM u [RANGE 10 s] WHERE EXISTS (SELECT * FROM v [RANGE 7 s] WHERE v.k > "
    "u.k)",
    "not_in": "SELECT k FROM u [RANGE 10 s] WHERE k NOT IN (SELECT k FROM v [RANGE 7 s])",
    "distinct": "SELECT DISTINCT k FROM u [RANGE 10 s]",
    "distinct_join": f"SELECT DISTINCT u.k FROM {OVER}",
    "group": "SELECT k, COUNT(*) AS n, MAX(k) AS m FROM u [RANGE 10 s] GROUP BY k",
    "group_join": f"SELECT u.k, COUNT(*) AS n FROM {OVER} GROUP BY u.k",
    "rows": "SELECT k FROM u [ROWS 3]",
    "except": "SELECT k FROM u [RANGE 10 s] EXCEPT SELECT k FROM v [RANGE 7 s]",
    "table": "SELECT u.k, d.name FROM u [RANGE 10 s], d WHERE u.k = d.k",
}


def played(query: str, settings: Settings, moved=lambda engine: None) -> tuple[Engine, list]:
    """A few rows, then nothing for a minute, then a few more and a day without any."""
    engine = Engine(settings=settings)
    engine.execute(STREAMS + query)
    results = engine.subscribe("q", limit_bytes=1 << 40)
    rows = [
        ("u", 1, 1),
        ("v", 1, 2),
        ("u", 2, 3),
        ("v", 3, 4),
        ("u", 2, 64),
        ("v", 2, 65),
        ("u", 1, 66),
        ("v", 1, 66),
    ]
    for stream, key, second in rows:
        engine.ingest(stream, {"k": [key], "t": [second * SECOND + key]})
        moved(engine)
    for stream in "uv":
        engine.heartbeat(stream, 86_400 * SECOND)
        moved(engine)
    while engine.catch_up():
        pass
    return engine, reported(results)


def reported(results) -> list:
    """Each result row with its instant."""
    rows = []
    for push in results.take():
        if push.kind == "progress":
            continue
        data = push.data.to_pylist() if push.data is not None else [push.message]
        instants = push.ats.to_pylist() if push.ats is not None else [push.at] * len(data)
        rows += [(push.kind, at, row) for at, row in zip(instants, data, strict=True)]
    return rows


def create(query: str, options: str = "") -> str:
    return f"CREATE QUERY q AS {query} {options}"


@pytest.mark.parametrize("strategy", ["nt", "direct", "upa"])
@pytest.mark.parametrize("name", QUERIES)
def test_instants_at_which_nothing_happens_are_passed_over(name, strategy, monkeypatch):
    """Where an error stops the query it goes from event to event, and no hint is at or before where
    it is."""
    walked = []

    def next_instant(self: Pipeline, after: int, upto: int) -> int:
        walked.append((after, self.next_due(), upto))
        return min(upto, max(self.next_due(), after + 1))

    monkeypatch.setattr(Pipeline, "next_instant", next_instant)
    options = f"WITH (on_error = stop, strategy = {strategy})"
    _, answers = played(create(QUERIES[name], options), Settings())
    assert len(walked) < 60
    assert not [w for w in walked[2:] if w[1] <= w[0]]
    assert answers == played(create(QUERIES[name], f"WITH (strategy = {strategy})"), Settings())[1]


def test_an_error_in_the_middle_still_leaves_what_came_before():
    def stopped(pause):
        query = create(
            "SELECT 10 / (u.k - 1) AS x FROM u [RANGE 10 s] LEFT JOIN v [RANGE 7 s] ON u.k = v.k",
            "WITH (on_error = stop)",
        )
        engine = Engine(settings=Settings(pause=pause))
        engine.execute(STREAMS + query)
        results = engine.subscribe("q")
        for key, second in ((3, 1), (2, 2), (1, 3), (5, 4)):
            for stream in "uv":
                engine.ingest(stream, {"k": [key], "t": [second * SECOND]})
        while engine.catch_up():
            pass
        return reported(results)

    assert stopped(None) == stopped(lambda: True)
    assert len(stopped(None)) > 1 and stopped(None)[-1][0] == "end"


PERIODIC = {
    "incremental": "SELECT u.k, v.k AS vk FROM u [RANGE 1 h SLIDE 1 min] LEFT JOIN v [RANGE 1 h "
    "SLIDE 1 min] ON u.k = v.k",
    "shared": "SELECT k, COUNT(*) AS n FROM u [RANGE 1 h SLIDE 1 min] GROUP BY k",
    "shared_join": "SELECT COUNT(*) AS n FROM u [RANGE 1 h SLIDE 1 min], v [RANGE 1 h SLIDE 1 "
    "min] WHERE u.k = v.k",
    "median": "SELECT MEDIAN(k) AS m FROM u [RANGE 1 h SLIDE 1 min]",
}


@thinned()
@pytest.mark.parametrize("between", ["at once", "later"])
@pytest.mark.parametrize("name", [*QUERIES, *PERIODIC])
def test_a_turn_is_one_step_and_answers_stay(name, between):
    query = create({**QUERIES, **PERIODIC}[name])

    def moved(engine: Engine) -> None:
        while between == "at once" and engine.catch_up():
            pass

    engine, answers = played(query, Settings(pause=lambda: True), moved)
    assert answers == played(query, Settings())[1]
    assert engine.turns.steps == engine.turns.pauses
    assert not engine.turns.behind and not engine.turns.left


def test_boundaries_of_a_day_are_answered_in_turns():
    engine = Engine(settings=Settings(pause=lambda: True))
    engine.execute(STREAMS + create(PERIODIC["incremental"]))
    for stream in "uv":
        engine.ingest(stream, {"k": [1], "t": [SECOND]})
    for stream in "uv":
        engine.heartbeat(stream, 3_600 * SECOND)
    before, query = engine.turns.steps, engine.runtime.queries["q"]
    assert engine.turns.behind and engine.has_work() and query.evaluations < 5
    engine.execute("DROP QUERY q")  # it goes at any time
    while engine.work():
        pass
    assert engine.turns.steps - before < 5


def test_who_was_cancelled_does_not_wait_and_queries_go_on():
    engine = Engine(settings=Settings(pause=lambda: False))
    engine.execute(STREAMS + create(PERIODIC["incremental"]))
    for stream in "uv":
        engine.ingest(stream, {"k": [1], "t": [SECOND]})
    engine.heartbeat("u", 3_600 * SECOND)
    cancel = Cancel()
    cancel.set()
    with pytest.raises(UsageError, match="DS610"):
        engine.heartbeat("v", 3_600 * SECOND, cancel)
    assert engine.turns.behind
    while engine.work():
        pass
    assert engine.runtime.queries["q"].answered == 3_600 * SECOND


def test_queries_have_their_turns_one_after_the_other():
    """None waits until another one is done, however much that one has to do."""
    engine = Engine(settings=Settings(pause=lambda: True))
    periodic = PERIODIC["incremental"]
    engine.execute(
        STREAMS
        + f"CREATE QUERY a AS {periodic}; CREATE QUERY b AS {periodic.replace('1 min', '10 min')};"
    )
    for stream in "uv":
        engine.ingest(stream, {"k": [1], "t": [SECOND]})
    for stream in "uv":
        engine.heartbeat(stream, 3_600 * SECOND)
    a, b = (engine.runtime.queries[name] for name in "ab")
    while b.answered < 3_600 * SECOND:
        assert engine.catch_up()
    assert a.answered < 3_600 * SECOND


def test_a_step_that_takes_a_whole_turn_makes_the_next_ones_shorter():
    asked = []

    def over() -> bool:  # at first each step takes a turn, later some of them do
        asked.append(True)
        return len(asked) < 40 or len(asked) % 5 == 0

    def answers(pause):
        engine = Engine(settings=Settings(pause=pause))
        engine.execute(STREAMS + create("SELECT k, COUNT(*) AS n FROM u [RANGE 10 s] GROUP BY k"))
        results = engine.subscribe("q", limit_bytes=1 << 40)
        pipeline, most = engine.runtime.queries["q"].pipeline, []
        for part in range(8):
            times = [(part * 30_000 + i) * 1000 for i in range(30_000)]
            engine.ingest("u", {"k": [0] * 30_000, "t": times})
            while engine.catch_up():
                most.append(pipeline.most)
        return reported(results), most

    told, most = answers(over)
    assert told == answers(None)[0]
    assert min(most) == LEAST and max(most[-20:]) > LEAST


def test_groups_are_not_let_go_of_in_the_middle_of_anothers_work():
    """Two queries number the same groups, and every step is a turn: each boundary has the groups of
    two seconds, and those of long ago don't pile up."""
    n = ENOUGH + 1
    engine = Engine(settings=Settings(pause=lambda: True))
    engine.execute("""
        CREATE STREAM s (k INT, x INT, t TIMESTAMP) TIMESTAMP BY t;
        CREATE QUERY a AS SELECT k, COUNT(*) AS n FROM s [RANGE 2 s] WHERE x > 1 GROUP BY k
            ON LOOKUP;
        CREATE QUERY b AS SELECT k, COUNT(*) AS n FROM s [RANGE 2 s SLIDE 1 s] GROUP BY k""")
    told = engine.subscribe("b")
    at, x = np.arange(n), np.random.default_rng(1).integers(0, 3, (10, n))
    for i in range(10):
        rows = {"k": 2048 * i + at % 4096, "x": x[i], "t": i * SECOND + at * SECOND // n}
        engine.ingest("s", rows)
        while engine.turns.behind:
            engine.work()
    found = {p.at: p.data for p in told.take() if p.kind != "progress"}
    sums = [(len(d), sum(d["n"].to_pylist())) for at, d in found.items() if at > SECOND]
    assert sums == [(6144, 2 * n)] * 8
    assert engine.runtime.shared.spaces[0].keys.rows < 2048 * 9
