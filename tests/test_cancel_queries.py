"""Persistent queries work in bounded pieces: a cancelled input loses nothing, answers do not depend
on where pieces end, and an instant with too many results stops its query alone."""

from __future__ import annotations

from itertools import count

import pytest

from dsms.api import Chunk, Subscription
from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.operators import nrr
from dsms.settings import Settings
from tests.cancelling import (
    STREAMS,
    TABLE,
    WIDE,
    Tripped,
    counted,
    rows,
    sizes,
    standing,
    told,
)
from tests.effort import effort, sampled, thinned

# -- persistent queries ----------------------------------------------------------------------------

QUERIES = (
    "SELECT a.v, b.v FROM a [RANGE 1 ms], b [RANGE 1 ms] WHERE a.k = b.k",
    "SELECT a.v, b.v FROM a [RANGE 300 us], b [RANGE 1 ms], c [ROWS 3] WHERE a.k = b.k AND b.k <= "
    "c.k",
    "SELECT a.v, b.v FROM a [RANGE 300 us] FULL JOIN b [ROWS 7] ON a.k < b.k",
    "SELECT k, COUNT(*), MAX(v) FROM (SELECT a.k, b.v FROM a [RANGE 1 ms], b [RANGE 500 us]) "
    "GROUP BY k",
    "SELECT DISTINCT a.v, c.k FROM a [ROWS 9], c [RANGE 300 us] WHERE a.k < c.v",
    "SELECT a.v FROM a [RANGE 1 ms] WHERE NOT EXISTS (SELECT * FROM b [RANGE 200 us] WHERE b.k < "
    "a.k)",
    "SELECT a.k FROM a [RANGE 1 ms] EXCEPT ALL SELECT b.k FROM b [RANGE 300 us], c [RANGE 50 us]",
    "SELECT a.v FROM a [RANGE 1 ms] WHERE a.k IN (SELECT b.k FROM b [RANGE 10 us])",
    "SELECT a.v FROM a [RANGE 1 ms] WHERE a.k NOT IN (SELECT b.k FROM b [RANGE 10 us] WHERE b.k < "
    "2)",
    "SELECT DISTINCT a.k, b.v / 9 FROM a [RANGE 300 us], b [ROWS 20]",
    "SELECT MAX(v) - MIN(v), SUM(v) FROM a [RANGE 200 us] GROUP BY v / 7",
    "SELECT a.v, b.v, n.w FROM a [RANGE 300 us], b [RANGE 100 us], n WHERE n.w <= a.k",
    "SELECT a.v, n.w FROM a LEFT JOIN n ON n.k < a.k",
    "SELECT a.v, n.w FROM a [ROWS 5] LEFT JOIN n ON n.k <= a.k",
    "SELECT c.v, n.w FROM a [ROWS 3], c [RANGE 50 us], n WHERE n.k = a.k AND a.k = c.k",
    "SELECT a.v, r.w FROM a [RANGE 100 us], b [RANGE 1 ms], r WHERE a.k = r.k AND a.k = b.k",
)


# of steps, of pieces; up to which halves of joins are cut; how many results make a step smaller
SIZES = (
    (1, 1, None, None),
    (7, 10, None, None),
    (100, 1, None, None),
    (100, 7, 5, 30),
    (100, 50, 1 << 20, None),
)


GROWTH = 1.5 if effort() else 4  # how much later each ingest is cancelled


def started(
    query: str, strategy: str = "upa", step_rows: int = 1 << 22
) -> tuple[Engine, Subscription]:
    engine = Engine(settings=Settings(step_rows=step_rows))
    engine.execute(STREAMS + TABLE)
    engine.execute(f"CREATE QUERY q AS {query} WITH (strategy = {strategy})")
    return engine, engine.subscribe("q")


def feed(engine: Engine, cancel_after: int | None = None) -> int:
    """Rows for all streams, table changes between; how many ingests were cancelled."""
    cancelled = 0
    for part in range(3):
        for s in "abc":
            try:
                cancel = None if cancel_after is None else Tripped(cancel_after)
                engine.ingest(s, rows(40, {"a": 10, "b": 9, "c": 11}[s], 40 * part), cancel=cancel)
            except UsageError as error:
                assert error.code == "DS610"
                cancelled += 1
        engine.execute(f"UPDATE r SET w = w + 1 WHERE k = {part}")
    for s in "abc":
        engine.heartbeat(s, 10_000)
    return cancelled


@thinned(2)
@pytest.mark.parametrize(
    ("strategy", "query"),
    [*(("upa", q) for q in QUERIES), *sampled((("nt", q) for q in QUERIES), 4)],
)
def test_answers_do_not_depend_on_the_sizes_of_steps_and_pieces(strategy, query):
    engine, reader = started(query, strategy)
    feed(engine)
    expected = told(reader)
    assert len(expected) > 20
    at = QUERIES.index(query)
    for slice_, part, halves, many in SIZES if effort() else (SIZES[at % 5], SIZES[(at + 2) % 5]):
        with sizes(slice_, part, halves, many):
            engine, reader = started(query, strategy)
            feed(engine)
        assert told(reader) == expected


@thinned(2)
@pytest.mark.parametrize("query", sampled(QUERIES, 2))
def test_a_cancelled_ingest_loses_nothing(query):
    plain, reader = started(query)
    feed(plain)
    expected = told(reader)
    for after in (round(GROWTH**n) for n in count()):
        with sizes(7, 20):
            engine, reader = started(query)
            engine.execute("CREATE QUERY other AS SELECT COUNT(*) FROM a")
            cancelled = feed(engine, after)
        if "r.w" not in query:  # the table changes at another instant where rows wait
            assert told(reader) == expected
        assert counted(engine, "SELECT COUNT(*) FROM a [RANGE 1 h]") == [120]
        assert standing(engine, "other") == [120]
        if not cancelled:
            assert after > 3
            return


def test_what_is_left_of_a_step_keeps_its_tables():
    """A change of the table can't come before what the interrupted step has read."""
    with sizes(100, 5):
        engine, reader = started(
            "SELECT a.v, b.v, r.w FROM a [RANGE 1 ms], b [RANGE 1 ms], r WHERE a.k = r.k"
        )
        engine.ingest("a", rows(50))
        with pytest.raises(UsageError, match="DS610"):
            engine.ingest("b", rows(50), cancel=Tripped(3))
        query = engine.runtime.queries["q"]
        assert query.clock < query.begun == 489
        with pytest.raises(UsageError, match="DS523"):
            engine.execute(
                f"UPDATE r SET w = 0 AT TIMESTAMP '1970-01-01 00:00:00.{query.begun:06}'"
            )
        engine.execute("UPDATE r SET w = 0")
        engine.heartbeat("a", 5000)
        engine.heartbeat("b", 5000)
    plain, whole = started(
        "SELECT a.v, b.v, r.w FROM a [RANGE 1 ms], b [RANGE 1 ms], r WHERE a.k = r.k"
    )
    plain.ingest("a", rows(50))
    plain.ingest("b", rows(50))
    plain.execute("UPDATE r SET w = 0")
    plain.heartbeat("a", 5000)
    plain.heartbeat("b", 5000)
    assert told(reader) == told(whole)


def burst(n: int, at: int) -> dict[str, list[int]]:
    return {"k": [0] * n, "v": list(range(n)), "t": [at] * n}


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.v FROM a {WIDE}, b {WIDE} WHERE a.k = b.k",
        "SELECT a.v FROM a [ROWS 100], b [ROWS 100]",
        f"SELECT a.v, b.v FROM a {WIDE} LEFT JOIN b {WIDE} ON a.k = b.k",
        f"SELECT COUNT(*) FROM a {WIDE}, b {WIDE} WHERE a.v <= b.v + 100",
        f"SELECT a.v FROM a {WIDE}, b {WIDE} WHERE a.k = b.k EXCEPT SELECT c.v + 7 FROM c {WIDE}",
    ],
)
def test_an_explosive_instant_stops_its_query_and_no_other(query):
    """65² - 25² new results at 100 µs are too many, 400 and 225 before are not, wherever steps and
    pieces end."""
    stories = []
    for slice_, part, halves, most in (
        (100, 1 << 18, None, 3599),
        (1, 1, None, 3599),
        (7, 50, 20, 500),
    ):
        with sizes(slice_, part, halves):
            engine, reader = started(query, step_rows=most)
            engine.execute("CREATE QUERY other AS SELECT COUNT(*) FROM a")
            for s in "abc":
                engine.ingest(s, burst(20, 50))
            for s in "abc":
                engine.heartbeat(s, 60)
            for s in "abc":
                engine.ingest(
                    s,
                    {
                        name: [*values, *burst(40, 100)[name]]
                        for name, values in burst(5, 70).items()
                    },
                )
            for s in "abc":
                engine.heartbeat(s, 200)
        stories.append(told(reader))
        assert standing(engine, "other") == [65]
        failure = engine.runtime.queries["q"].failure
        assert failure and failure.code == "DS631"
        engine.execute("DROP QUERY q")
        engine.ingest("a", burst(1, 300))
    assert stories[0][-1] == ("end", "DS631")
    assert len(stories[0]) > 2
    assert all(story == stories[0] for story in stories)


@pytest.mark.parametrize("window", ["", " [ROWS 5000]"])
def test_results_with_a_table_at_one_instant_are_bounded(window, monkeypatch):
    """Whether the results of each row are kept or not; 60 rows x 30 are too many, 20 x 30 were
    not."""
    for room, part in ((1 << 12, 1 << 18), (1, 10), (7, 40)):
        monkeypatch.setattr(nrr, "PART", part)
        engine = Engine(settings=Settings(step_rows=1000))
        engine.execute(STREAMS + "CREATE TABLE n (k INT PRIMARY KEY, w INT) NON RETROACTIVE")
        engine.execute(
            "INSERT INTO n VALUES " + ",".join(f"({i}, 0)" for i in range(30)) + " AT '1970-01-01'"
        )
        engine.execute(f"CREATE QUERY q AS SELECT a.v, n.w FROM a{window}, n WHERE n.w <= a.v")
        for stage in engine.runtime.queries["q"].pipeline.stages:
            if hasattr(stage.operator, "room"):
                stage.operator.room = room
        reader = engine.subscribe("q")
        engine.ingest("a", {"k": [0] * 80, "v": [0] * 80, "t": [100] * 20 + [200] * 60})
        engine.heartbeat("a", 1000)
        pushed = told(reader)
        assert len(pushed) == 601 + (window != "")
        assert pushed[-1] == ("end", "DS631")


def test_one_row_with_too_many_partners_is_refused():
    for n, code in ((1000, None), (1001, "DS631")):
        engine, _ = started(f"SELECT a.v FROM a {WIDE}, b {WIDE}", step_rows=1000)
        engine.ingest("a", rows(n))
        engine.ingest("b", burst(1, 10 * n))
        for s in "ab":
            engine.heartbeat(s, 100_000)
        failure = engine.runtime.queries["q"].failure
        assert (failure and failure.code) == code


def test_steps_get_smaller_where_rows_make_many_and_larger_again():
    with sizes(64, 1 << 18, many=400):
        engine, _ = started("SELECT a.v FROM a [RANGE 200 us], b [RANGE 1 s] WHERE a.k = b.k")
        steps = engine.runtime.queries["q"].pipeline
        engine.ingest("b", rows(64, 1))
        engine.ingest("a", rows(64, 1))
        engine.heartbeat("b", 90)
        engine.heartbeat("a", 90)
        engine.ingest("a", rows(64, 1, 100))
        engine.ingest("b", rows(1, 1, 1000))
        engine.heartbeat("a", 10_000)
        small = steps.rows
        assert small < 16
        engine.heartbeat("b", 3_000_000)
        for part in range(10):
            engine.ingest("a", rows(64, 1, 4_000_000 + 100 * part))
            engine.heartbeat("a", 4_000_099 + 100 * part)
            engine.heartbeat("b", 4_000_099 + 100 * part)
        assert steps.rows > small


def test_a_cancelled_heartbeat_stands_and_the_next_call_goes_on():
    with sizes(7, 20):
        engine, reader = started(QUERIES[0])
        engine.ingest("a", rows(60))
        engine.ingest("b", {"k": [0], "v": [0], "t": [0]})
        with pytest.raises(UsageError, match="DS610"):
            engine.heartbeat("b", 10_000, Tripped(2))
        assert engine.runtime.inputs["b"].completed == 10_000
        assert engine.runtime.queries["q"].clock < 590
        engine.heartbeat("a", 600)
        assert engine.runtime.queries["q"].clock == 600
    assert [line[3] for line in told(reader) if line[1] == "insert"] == list(range(0, 60, 3))


def test_a_table_that_every_row_matches_is_no_way_around():
    for most, code in ((299, "DS631"), (300, None)):
        with sizes(100, 40):
            engine, reader = started("SELECT a.v FROM a, n", step_rows=most)
            engine.ingest("a", burst(10, 50))
            engine.ingest("a", burst(100, 60))
            engine.ingest("a", burst(1, 70))
        failure = engine.runtime.queries["q"].failure
        assert (failure and failure.code) == code
        assert sum(line[1] == "insert" for line in told(reader)) == 30 + (
            300 if code is None else 0
        )


def test_rows_that_come_and_go_together_are_handed_on_bit_by_bit():
    with sizes(1000, 500):
        engine, reader = started(
            f"SELECT a.v FROM a {WIDE} WHERE NOT EXISTS (SELECT * FROM b [RANGE 1 us] WHERE b.k = "
            "a.k)"
        )
        engine.ingest("a", burst(200, 10))
        engine.heartbeat("a", 10_000)
        engine.heartbeat("b", 10)
        engine.ingest("b", {"k": [0] * 50, "v": [0] * 50, "t": list(range(100, 600, 10))})
        engine.heartbeat("b", 1000)
    chunks = [len(item) for item in reader.take_chunks() if isinstance(item, Chunk)]
    assert sum(chunks) == 200 + 50 * 2 * 200
    assert max(chunks) <= 500 + 200
