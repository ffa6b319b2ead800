"""Aggregates over window joins from shared join synopses: answers are those of the operators, bit
for bit.

Each engine with synopses has a twin whose queries are registered WITH (path = 'is'), and is given
the same rows in other pieces.  The twin is judged by the oracle (test_periodic_equivalence).
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dsms
from dsms.api import Cancel
from dsms.errors import DsmsError
from dsms.periodic.silence import SILENCE
from dsms.settings import Settings
from tests.effort import examples
from tests.join_twins import (
    COUNT,
    NUMBER,
    REAL,
    SHAPES,
    STREAMS,
    S,
    Twins,
    asked,
    end_period,
    feed,
    groups,
    query,
    told,
)


@given(st.integers(0, 2**32), st.integers(2, 12))
@settings(max_examples=examples(25), deadline=None)
def test_answers_are_those_of_the_operators(seed, steps):
    random, twins = Random(seed), Twins.fresh()
    names = [f"q{i}" for i in range(random.randint(1, 5))]
    shapes = random.sample(SHAPES, 2)
    for name in names:
        x, slide = random.randint(1, 7), random.choice([1, 2, 3, 5])
        y = x if random.random() < 0.4 else random.randint(1, 7)
        align = random.choice(["", "", " ALIGN TO TIMESTAMP '1970-01-01 00:00:00.5'"])
        kind = random.choice(["auto", "basic", "interval", "running"])
        twins.register(name, query(random.choice(shapes), x, y, slide, align), kind)
    feed(twins, random, steps)
    twins.both("end", "a")
    twins.both("end", "b")
    twins.agree(names)


@given(st.integers(0, 2**32))
@example(seed=258500)
@settings(max_examples=examples(12), deadline=None)
def test_queries_come_and_go(seed):
    """The rings hold a minute: groups are made anew with longer windows while they run, and no
    answer changes."""
    random, twins = Random(seed), Twins.fresh(" RETAIN 1 MINUTE")
    names, made = [], 0
    for _ in range(8):
        if names and random.random() < 0.3:
            gone = names.pop(random.randrange(len(names)))
            twins.both("execute", f"DROP QUERY {gone}")
        else:
            x = random.randint(1, 8)
            y = x if random.random() < 0.5 else random.randint(1, 8)
            names.append(f"q{made}")
            twins.register(
                names[-1], query(random.choice(SHAPES[:4]), x, y, random.choice([1, 2, 3]))
            )
            made += 1
        feed(twins, random, random.randint(1, 4))
        twins.agree(names)
    assert sum(len(g.members) for g in groups(twins.ours)) == len(names)
    for name in names:
        twins.both("execute", f"DROP QUERY {name}")
    assert groups(twins.ours) == []


@pytest.mark.parametrize("beside", [None, 1, 3])
def test_a_query_that_comes_as_a_period_ends_is_answered_at_once(beside):
    """In a group of its own, one that is made anew for it, and one that is there: no row has to
    come for that."""
    twins = Twins.fresh(" RETAIN 1 MINUTE")
    if beside is not None:
        twins.register("beside", query(COUNT, beside, beside, 1))
    end_period(twins, {"a": 0, "b": 0})
    twins.register("q", query(COUNT, 2, 2, 1))
    assert len(groups(twins.ours)) == 1
    assert twins.agree(["q"]) == 1


def test_a_query_that_comes_when_all_has_ended_is_answered_from_a_group_made_anew():
    """The last period of the one that was there ends later: the group has gone on to there."""
    twins = Twins.fresh(" RETAIN 1 MINUTE")
    twins.register("p", query(COUNT, 2, 2, 2))
    end_period(twins, {"a": 2 * S, "b": 2 * S})
    twins.both("end", "a")
    twins.both("end", "b")
    twins.register("q", query(COUNT, 2, 2, 1))
    assert len(groups(twins.ours)) == 1
    assert told(twins.ours, "q") == [(repr(3 * S), "1", "4", "1.0", "1.0", "2.0")]
    assert twins.agree(["p", "q"]) == 3


@given(st.integers(0, 2**32))
@settings(max_examples=examples(12), deadline=None)
def test_queries_come_as_periods_end(seed):
    random, twins = Random(seed), Twins.fresh(" RETAIN 1 MINUTE")
    names = [f"q{i}" for i in range(5)]
    for i, name in enumerate(names):
        feed(twins, random, random.randint(1, 4))
        last = max(e.newest for e in twins.ours.runtime.inputs.values())
        for stream in "ab":
            twins.both("heartbeat", stream, last // S * S + S - 1)
            if i == len(names) - 1:
                twins.both("end", stream)
        x = random.randint(1, 8)
        y = x if random.random() < 0.5 else random.randint(1, 8)
        twins.register(name, query(random.choice(SHAPES[:4]), x, y, random.choice([1, 1, 2, 3])))
        twins.agree(names[: i + 1])


# ---------------------------------------------------------------- time, groups, faults


def test_many_groups_come_and_are_forgotten():
    """Codes of keys that no window holds are used again."""
    twins = Twins.fresh()
    sql = (
        "SELECT a.k, COUNT(*), SUM(w) FROM a [RANGE 2 s SLIDE 1 s], b [RANGE {n} s] WHERE a.k = "
        "b.k GROUP BY a.k"
    )
    twins.register("p", sql.format(n=2))
    twins.register("q", sql.format(n=1))
    for k in range(12):
        keys = list(range(1500 * k, 1500 * k + 1500))
        ts = [k * S + i for i in range(1500)]
        for stream in "ab":
            named = {
                "k": keys,
                "s": [None] * 1500,
                NUMBER[stream]: keys,
                REAL[stream]: [None] * 1500,
                "t": ts,
            }
            twins.both("ingest", stream, named)
    (group,) = groups(twins.ours)
    assert group.feed.space.keys.rows < 12 * 1500 / 2
    assert twins.agree(["p", "q"]) > 12_000


def test_a_long_silence():
    twins, random = Twins.fresh(), Random(8)
    twins.register("p", query(COUNT, 4, 4, 1))
    feed(twins, random, 6)
    for engine in (twins.ours, twins.theirs):
        for stream in "ab":
            engine.heartbeat(stream, 400_000 * S)
    assert asked(twins.ours, "p").answered == 400_000 * S
    done = len(told(twins.ours, "p"))
    assert SILENCE < done < SILENCE + 50  # what is behind them is told as one
    some = {"k": [1], "s": ["x"], "v": [2], "f": [1.0], "t": [400_001 * S]}
    twins.both("ingest", "a", some)
    twins.both("ingest", "b", {"k": [1], "s": ["x"], "w": [2], "g": [1.0], "t": [400_001 * S]})
    twins.both("end", "a")
    twins.both("end", "b")
    assert twins.agree(["p"], 400_001 * S)


def test_an_overflow_stops_one_query_and_no_other():
    twins = Twins.fresh()
    join = "FROM a [RANGE 2 s SLIDE 1 s], b [RANGE 2 s] WHERE a.k = b.k"
    twins.register("sum", f"SELECT SUM(v) {join}")
    twins.register("count", f"SELECT COUNT(*), MAX(v) {join}")
    big = 2**62
    for stream, number in (("a", "v"), ("b", "w")):
        some = {
            "k": [1, 1, 1],
            "s": ["x"] * 3,
            number: [big] * 3,
            REAL[stream]: [1.0] * 3,
            "t": [0, 1, 2],
        }
        twins.both("ingest", stream, some)
        twins.both("heartbeat", stream, 5 * S)
    for engine in (twins.ours, twins.theirs):
        failure = engine.runtime.queries["sum"].failure
        assert failure is not None and failure.code == "DS706"
    assert twins.agree(["count"])


def test_failing_values_are_counted_for_all_who_read_them():
    twins = Twins.fresh()
    for name, n in (("p", 2), ("q", 3)):
        sql = f"SELECT SUM(v / w) FROM a [RANGE {n} s SLIDE 1 s], b [RANGE {n} s] WHERE a.k = b.k"
        twins.register(name, sql)
    twins.both("ingest", "a", {"k": [1], "s": ["x"], "v": [4], "f": [1.0], "t": [0]})
    twins.both(
        "ingest", "b", {"k": [1, 1], "s": ["x"] * 2, "w": [0, 2], "g": [1.0] * 2, "t": [0, 0]}
    )
    for stream in "ab":
        twins.both("heartbeat", stream, 5 * S)
    assert twins.agree(["p", "q"]) == 10
    assert [asked(twins.ours, name).errors.by_code for name in "pq"] == [{"DS701": 1}] * 2


def test_too_many_results_at_one_instant_stop_all_who_share_the_join():
    engine = dsms.Engine(settings=replace(Settings(), step_rows=100))
    engine.execute(STREAMS.format(more=""))
    for name, n in (("p", 2), ("q", 3)):
        engine.execute(f"CREATE QUERY {name} AS {query(COUNT, n, n, 1)}")
    n = 20
    engine.ingest("a", {"k": [1] * n, "s": ["x"] * n, "v": [1] * n, "f": [1.0] * n, "t": [0] * n})
    engine.ingest("b", {"k": [1] * n, "s": ["x"] * n, "w": [1] * n, "g": [1.0] * n, "t": [0] * n})
    engine.end("a")
    engine.end("b")
    assert [engine.runtime.queries[q].failure.code for q in "pq"] == ["DS631"] * 2
    engine.execute(f"CREATE QUERY r AS {query(COUNT, 2, 2, 1)}")
    assert asked(engine, "r").failure is None and len(groups(engine)) == 2


def test_state_beyond_its_limit_stops_the_query_that_has_the_limit():
    twins = Twins.fresh()
    twins.ours.execute(f"CREATE QUERY small AS {query(COUNT, 4, 4, 1)} WITH (max_state = 10)")
    twins.register("p", query(COUNT, 4, 4, 1))
    feed(twins, Random(9), 4)
    assert twins.ours.runtime.queries["small"].failure.code == "DS630"
    assert twins.agree(["p"])


class Later(Cancel):
    """Asks to stop at every chance."""

    def check(self) -> None:
        raise DsmsError("DS610", "stopped")


def test_a_cancelled_step_is_gone_on_with():
    twins, random = Twins.fresh(), Random(10)
    twins.register("p", query(COUNT, 3, 2, 1))
    feed(twins, random, 6)
    latest = max(e.newest for e in twins.ours.runtime.inputs.values())
    for stream in "ab":
        twins.theirs.heartbeat(stream, latest + 5 * S)
        try:
            twins.ours.heartbeat(stream, latest + 5 * S, Later())
        except DsmsError as error:
            assert error.code == "DS610"
    feed(twins, random, 6)
    assert twins.agree(["p"])


def test_elastic_queries_are_answered_when_there_is_time():
    engine = dsms.Engine(settings=replace(Settings(), deferred=True))
    engine.execute(STREAMS.format(more=""))
    join = "SELECT COUNT(*), SUM(v) FROM a [RANGE {n} s SLIDE 1 s], b [RANGE {n} s] WHERE a.k = b.k"
    for name, n in (("p", 2), ("q", 4)):
        engine.execute(f"CREATE QUERY {name} AS {join.format(n=n)} WITH (boundaries = 'elastic')")
    for stream in "ab":
        some = {"k": [1] * 6, "s": ["x"] * 6, NUMBER[stream]: [1] * 6, REAL[stream]: [1.0] * 6}
        engine.ingest(stream, {**some, "t": [i * S for i in range(6)]})
    while engine.work():
        pass
    assert told(engine, "p")[-1] == (repr(5 * S), "4", "4")
    assert told(engine, "q")[-1] == (repr(5 * S), "16", "16")
