"""PUNCTUATE: joins let go of the rows that are in no result to come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsms.engine import Engine
from dsms.operators.adaptive_join import AdaptiveJoinOp
from dsms.operators.distinct_delta_star import DeltaStarOp
from dsms.operators.group import GroupByOp
from dsms.operators.join import JoinOp
from dsms.operators.multi_join import MultiJoinOp
from dsms.operators.outer import OuterJoinOp
from dsms.running.exchanging import inputs_at
from tests.folders.play import results
from tests.replans import forced

S = 1_000_000
STREAMS = "".join(
    f"CREATE STREAM {name} (k INT, m INT, v INT, t TIMESTAMP) TIMESTAMP BY t;"
    for name in ("a", "b", "c")
)
ONE_KEY = "SELECT a.k, a.v, b.v AS w, c.v AS x FROM a, b, c WHERE a.k = b.k AND b.k = c.k"
CHAIN = "SELECT a.k, a.v, b.v AS w, c.v AS x FROM a, b, c WHERE a.k = b.k AND b.m = c.m"
KEYS = 8
ALL = ", ".join(map(str, range(KEYS)))
HOW = ("pipeline", "adaptive")
TUNED = ("adaptive", "adaptive, tuning = continuous")


def declared(sql: str, how: str, data: str | None = None) -> Engine:
    engine = Engine(data)
    engine.execute(f"{STREAMS} CREATE QUERY q AS {sql} WITH (joins = {how})")
    return engine


def send(engine: Engine, stream: str, keys: list[int | None], at: int, m: int = 0) -> None:
    many = len(keys)
    rows = {"k": keys, "m": [m] * many, "v": list(range(many)), "t": [at * S] * many}
    engine.ingest(stream, rows)


def go_on(engine: Engine, at: int) -> None:
    for stream in ("a", "b", "c"):
        engine.heartbeat(stream, at * S)


def filled(sql: str, how: str, data: str | None = None) -> Engine:
    engine = declared(sql, how, data)
    for stream in ("a", "b", "c"):
        send(engine, stream, list(range(KEYS)) * 3, 1)
    go_on(engine, 2)
    return engine


def kept(engine: Engine) -> list[int]:
    """Rows that the join keeps of each input."""
    stages = engine.runtime.queries["q"].pipeline.stages
    (join,) = (s.operator for s in stages if isinstance(s.operator, MultiJoinOp | AdaptiveJoinOp))
    sides = join.inputs if isinstance(join, MultiJoinOp) else join.stems
    return [side.rows.store.live for side in sides]


def promise(engine: Engine, stream: str, *keys: int) -> None:
    engine.execute(f"PUNCTUATE {stream} WHERE k IN ({', '.join(map(str, keys))})")


@pytest.mark.parametrize("how", ["pipeline", *TUNED])
def test_rows_go_once_all_others_have_promised(how: str):
    engine, twin = filled(ONE_KEY, how), filled(ONE_KEY, how)
    promise(engine, "a", 0, 1)
    assert kept(engine) == [24, 24, 24]
    promise(engine, "b", 1, 2)
    assert kept(engine) == [24, 24, 21]  # of c those of 1
    promise(engine, "c", 0, 1, 2)
    assert kept(engine) == [18, 18, 21]  # of b those of 0 and 1, of a those of 1 and 2
    for one in (engine, twin):
        send(one, "c", [3, 4, 5], 3)
        send(one, "b", [0, 3, 4], 4)
        send(one, "a", [2, 3, 3, None], 5)
        go_on(one, 6)
    assert results(engine, ["q"]) == results(twin, ["q"])
    assert len(results(engine, ["q"])["q"]) > 8 * 27


@pytest.mark.parametrize("how", ["pipeline", *TUNED])
def test_rows_that_nothing_to_come_meets_are_not_kept(how: str):
    engine, twin = declared(ONE_KEY, how), declared(ONE_KEY, how)
    for one in (engine, twin):
        send(one, "a", [1, 2], 1)
        send(one, "b", [1, 2], 1)
        go_on(one, 2)
    promise(engine, "a", 1)
    promise(engine, "b", 1)
    for at in range(3, 40):
        for one in (engine, twin):
            send(one, "c", [1] * 20 + [2], at)
            go_on(one, at)
    assert kept(engine) == [2, 2, 37]
    assert kept(twin) == [2, 2, 37 * 21]
    assert results(engine, ["q"]) == results(twin, ["q"])
    promise(engine, "c", 1)
    assert kept(engine) == [1, 1, 37]


def test_of_two_windows_neither():
    sql = "CREATE QUERY q AS SELECT a.v, b.v AS w FROM a, b WHERE a.k = b.k"
    engine = Engine()
    engine.execute(STREAMS + sql)
    send(engine, "a", [1, 2], 1)
    engine.heartbeat("b", 1 * S)
    promise(engine, "a", 1)
    for at in range(2, 40):
        send(engine, "b", [1] * 20 + [2], at)
        go_on(engine, at)
    (join,) = (
        s.operator
        for s in engine.runtime.queries["q"].pipeline.stages
        if isinstance(s.operator, JoinOp)
    )
    assert (join.left.rows.store.live, join.right.rows.store.live) == (2, 38)
    assert len(results(engine, ["q"])["q"]) == 38 * 21
    promise(engine, "b", 1)
    assert (join.left.rows.store.live, join.right.rows.store.live) == (1, 38)
    assert not join.away.sets  # 1 is over


@pytest.mark.parametrize("how", TUNED)
def test_of_several_equalities_each_counts_where_it_tells(how: str):
    engine, twin = filled(CHAIN, how), filled(CHAIN, how)
    promise(engine, "b", 1)
    assert kept(engine) == [24, 24, 24]  # rows of a with 1 and ones of b may meet new ones of c
    engine.execute("PUNCTUATE c WHERE m = 0")
    assert kept(engine) == [24, 24, 24]
    promise(engine, "a", *range(KEYS))
    assert kept(engine) == [24, 0, 24]  # those of c may meet new ones of b, as these ones of c
    for one in (engine, twin):
        send(one, "c", [1, 2], 3, m=1)
        send(one, "b", [4, 5], 4, m=1)
        send(one, "b", [4, 5], 5, m=0)
        go_on(one, 6)
    assert results(engine, ["q"]) == results(twin, ["q"])


@pytest.mark.parametrize("how", HOW)
def test_many_rows_go_and_others_stay_where_they_were(how: str):
    engine, twin = declared(ONE_KEY, how), declared(ONE_KEY, how)
    for one in (engine, twin):
        for first in range(0, 6000, 500):
            for stream in ("a", "b", "c"):
                send(one, stream, list(range(first, first + 500)), 1 + first)
        go_on(one, 6000)
    before = engine.execute("SHOW QUERIES LIKE 'q'")[0].data.column("state_bytes")[0].as_py()
    for stream in ("a", "b", "c"):
        promise(engine, stream, *(k for k in range(6000) if k % 6))
    assert kept(engine) == [1000] * 3
    after = engine.execute("SHOW QUERIES LIKE 'q'")[0].data.column("state_bytes")[0].as_py()
    assert after < 0.5 * before
    for one in (engine, twin):
        for stream in ("c", "a", "b"):
            send(one, stream, list(range(0, 6000, 6)), 6001)
        go_on(one, 6002)
    assert results(engine, ["q"]) == results(twin, ["q"])


@pytest.mark.parametrize("other", ["RANGE 5 SECONDS", "NOW"])
@pytest.mark.parametrize("how", HOW)
def test_windows_with_an_end_may_promise_too(how: str, other: str):
    sql = ONE_KEY.replace("FROM a, b, c", f"FROM a, b [{other}], c [{other}]")
    engine, twin = filled(sql, how), filled(sql, how)
    promise(engine, "b", 1)
    promise(engine, "c", 1)
    promise(engine, "a", 2)
    assert kept(engine)[0] == 21 and kept(twin)[0] == 24
    for one in (engine, twin):
        for stream in ("a", "b", "c"):
            send(one, stream, [2, 3, 3] if stream != "a" else [3], 4)
        go_on(one, 30)
    assert results(engine, ["q"]) == results(twin, ["q"])


@pytest.mark.parametrize("how", HOW)
def test_what_is_known_comes_back(how: str, tmp_path: Path):
    engine, twin = filled(ONE_KEY, how, str(tmp_path)), filled(ONE_KEY, how)
    promise(engine, "a", 1, 2)
    promise(engine, "b", 1)
    engine.close()
    again = Engine(str(tmp_path))
    assert not again.recovered.notes
    promise(again, "b", 2)
    for one in (again, twin):
        send(one, "c", [1, 2, 3], 3)
        go_on(one, 4)
    assert kept(again) == [24, 24, 24 - 6 + 1]
    told: dict[str, Any] = results(twin, ["q"])
    assert sorted(results(again, ["q"])["q"]) == sorted(told["q"])
    again.close()


def test_one_operator_that_let_go_of_rows_may_become_a_tree():
    engine = filled(ONE_KEY, "pipeline")
    for stream in ("a", "b", "c"):
        promise(engine, stream, 1)
    query = engine.runtime.queries["q"]
    at = next(s.path for s in query.pipeline.stages if isinstance(s.operator, MultiJoinOp))
    assert [one.rows.store.live for one in inputs_at(query, at)] == [21] * 3


def test_other_joins_are_told_what_those_before_knew():
    twin = filled(ONE_KEY, "pipeline")
    with forced(1, 0):
        engine = filled(ONE_KEY, "pipeline")
        query = engine.runtime.queries["q"]
        promise(engine, "a", 1)
        promise(engine, "b", 1)
    with forced(1, 1) as changes:
        for _ in range(50):
            if not changes.made:
                engine.heartbeat("a", 2 * S)
    assert changes.made
    for one in (engine, twin):
        send(one, "c", [1, 2] * 50, 3)
        go_on(one, 4)
    found = [getattr(stage.operator, "away", None) for stage in query.pipeline.stages]
    assert any(away is not None and away.sets for away in found)
    assert results(engine, ["q"]) == results(twin, ["q"])


# ---------------------------------------------------------------- outer joins


def outer(kind: str, other: str = "") -> Engine:
    engine = Engine()
    on = f"a {kind} JOIN b{other} ON a.k = b.k"
    engine.execute(f"{STREAMS} CREATE QUERY q AS SELECT a.k, a.v, b.k AS l, b.v AS w FROM {on}")
    send(engine, "a", [*range(KEYS), None], 1)
    send(engine, "b", [2, 3, 4, 9], 1)
    go_on(engine, 2)
    return engine


def held(engine: Engine) -> tuple[list[int], list[int]]:
    """Rows that are kept to be met, of both sides; rows whose matches are counted."""
    stages = engine.runtime.queries["q"].pipeline.stages
    (join,) = (s.operator for s in stages if isinstance(s.operator, OuterJoinOp))
    counted = [p.counter.rows.store.live for p in join.paddings]
    assert all(p.counter.pairs.store.live == 0 for p in join.paddings)
    return [side.rows.store.live for side in join.inner.sides], counted


def test_rows_without_a_match_stay_so():
    engine, twin = outer("LEFT"), outer("LEFT")
    assert held(engine) == ([9, 4], [6])  # rows that have a match have one for good
    promise(engine, "b", 0, 1, 2)
    assert held(engine) == ([6, 4], [4])
    promise(engine, "a", 2, 3)
    assert held(engine) == ([6, 2], [4])
    for at in range(3, 20):
        for one in (engine, twin):
            send(one, "a", [0, 1, 4], at)
            send(one, "b", [3, 5], at)
            go_on(one, at)
    assert held(engine) == ([6 + 17, 2 + 17], [3])
    assert results(engine, ["q"]) == results(twin, ["q"])
    promise(engine, "b", *range(KEYS))
    assert held(engine) == ([1, 2 + 17], [1])  # of NULL nothing was said


@pytest.mark.parametrize("kind", ["RIGHT", "FULL"])
def test_of_the_other_side_as_well(kind: str):
    engine, twin = outer(kind), outer(kind)
    assert held(engine) == ([9, 4], [1] if kind == "RIGHT" else [6, 1])
    promise(engine, "a", 2, 9)
    assert held(engine) == ([9, 2], [0] if kind == "RIGHT" else [6, 0])
    promise(engine, "b", 2, 5)
    assert held(engine) == ([7, 2], [0] if kind == "RIGHT" else [5, 0])
    for one in (engine, twin):
        send(one, "b", [9, 8, None, 6], 3)
        send(one, "a", [8, 3, 5], 4)
        go_on(one, 9)
    assert results(engine, ["q"]) == results(twin, ["q"])


def test_rows_whose_matches_leave_are_padded_again():
    engine, twin = outer("LEFT", " [RANGE 5 SECONDS]"), outer("LEFT", " [RANGE 5 SECONDS]")
    promise(engine, "b", 2, 3)
    for one in (engine, twin):
        send(one, "a", [2, 3], 4)
        go_on(one, 30)
    assert results(engine, ["q"]) == results(twin, ["q"])
    stages = engine.runtime.queries["q"].pipeline.stages
    (join,) = (s.operator for s in stages if isinstance(s.operator, OuterJoinOp))
    assert join.inner.left.rows.store.live == 9 - 2


AGAIN = "(SELECT DISTINCT k FROM a [RANGE 10 s]) AS d"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT d.k, b.v FROM {AGAIN}, b WHERE d.k = b.k",
        f"SELECT d.k, c.v FROM (SELECT d.k FROM {AGAIN}, b WHERE d.k = b.k) AS d, c "
        "WHERE d.k = c.k",
        "SELECT d.k, b.v FROM (SELECT k FROM a [RANGE 10 s] UNION SELECT k FROM c [RANGE 5 s]) "
        "AS d, b WHERE d.k = b.k",
    ],
    ids=["of one", "of two", "union"],
)
@pytest.mark.parametrize("how", ["tree", "pipeline"])
def test_values_of_windows_that_come_again_are_met(sql: str, how: str):
    """The first row of a value leaves its window, and a younger one stands for it."""
    engine, twin = declared(sql, how), declared(sql, how)
    for one in (engine, twin):
        for stream in ("b", "c", "a"):
            send(one, stream, [1, 2], 2)
        send(one, "a", [1, 2], 8)
        go_on(one, 9)
    for stream in ("a", "b", "c"):
        promise(engine, stream, 1)
    for one in (engine, twin):
        go_on(one, 30)
    told = results(engine, ["q"])["q"]
    assert told == results(twin, ["q"])["q"]
    assert any(at == str(18 * S) and row.startswith("[1,") for _, _, at, row in told)


# ---------------------------------------------------------------- at boundaries


def operator(engine: Engine, kind: type) -> Any:
    inner = engine.runtime.queries["q"].evaluator.inner
    (found,) = (s.operator for s in inner.pipeline.stages if isinstance(s.operator, kind))
    return found


@pytest.mark.parametrize("window", ["RANGE UNBOUNDED", "SINCE '1970-01-01'"])
def test_groups_end_at_the_next_boundary(window: str):
    sql = f"SELECT k, COUNT(DISTINCT v) AS n FROM a [{window} SLIDE 5 s] GROUP BY k"
    engine, twin = Engine(), Engine()
    for one in (engine, twin):
        one.execute(f"{STREAMS} CREATE QUERY q AS {sql}")
        for k in range(4):
            send(one, "a", [k] * 500, 6)
    promise(engine, "a", 0, 1, 2)
    group = operator(engine, GroupByOp)
    engine.heartbeat("a", 8 * S)
    assert all(len(a.values.words) == 0 for a in group.aggregates)  # none has come yet
    for one in (engine, twin):
        send(one, "a", [3, 4], 9)
        send(one, "a", [3, 4], 11)
        send(one, "a", [3, 4], 16)
        one.heartbeat("a", 21 * S)
    assert all(len(a.values.words) <= 500 + 6 for a in group.aggregates)
    assert results(engine, ["q"]) == results(twin, ["q"])


def test_joins_and_different_rows_end_there_too():
    joined = "SELECT a.k, a.v, b.v AS w FROM a, b WHERE a.k = b.k EVERY 5 s"
    for sql, kind in ((joined, JoinOp), ("SELECT DISTINCT k, v FROM a EVERY 5 s", DeltaStarOp)):
        engine, twin = Engine(), Engine()
        for one in (engine, twin):
            one.execute(f"{STREAMS} CREATE QUERY q AS {sql}")
            for stream in ("a", "b"):
                send(one, stream, list(range(KEYS)) * 100, 6)
            go_on(one, 9)
        promise(engine, "a", *range(1, KEYS))
        promise(engine, "b", *range(1, KEYS))
        for one in (engine, twin):
            for stream in ("a", "b"):
                send(one, stream, [0, 9], 12)
            go_on(one, 20)
        left, all_ = operator(engine, kind).live(), operator(twin, kind).live()
        assert left < 0.3 * all_
        assert results(engine, ["q"]) == results(twin, ["q"])


# ---------------------------------------------------------------- what EXPLAIN says


@pytest.mark.parametrize(
    ("sql", "where", "used"),
    [
        (ONE_KEY, "k = 1", True),
        (ONE_KEY, "v = 1", False),
        (ONE_KEY, "k = 1 UPTO 90 s", False),
        (ONE_KEY.replace("b, c", "b [NOW], c [NOW]"), "k = 1", False),
        ("SELECT k, COUNT(*) AS n FROM a GROUP BY k", "k = 1", False),
        ("SELECT k, MEDIAN(v) AS n FROM a GROUP BY k", "k = 1", True),
        ("SELECT k, MEDIAN(v) AS n FROM a [RANGE 5 s] GROUP BY k", "k = 1", False),
        ("SELECT k, t, MEDIAN(v) AS n FROM a GROUP BY k, t", "k = 1 UPTO 90 s", True),
        ("SELECT k, MEDIAN(v) AS n FROM a GROUP BY k EVERY 5 s", "k = 1", True),
        ("SELECT k, MEDIAN(v) AS n FROM a [RANGE 5 s SLIDE 1 s] GROUP BY k", "k = 1", False),
        ("SELECT DISTINCT k FROM a", "k = 1", True),
        ("SELECT a.v FROM a LEFT JOIN b ON a.k = b.k", "k = 1", True),
        ("SELECT a.v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "k = 1", False),
    ],
)
def test_explain_says_whether_a_promise_helps(sql: str, where: str, used: bool):
    engine = Engine()
    engine.execute(f"{STREAMS} CREATE QUERY q AS {sql}; CREATE QUERY r AS {sql}")
    assert "punctuations" not in str(engine.execute("EXPLAIN QUERY q")[0].data.to_pylist())
    engine.execute(f"PUNCTUATE a WHERE {where}")
    told = str(engine.execute("EXPLAIN QUERY q")[0].data.to_pylist())
    assert ("lets go of what punctuations of a make needless" in told) == used
    assert ("punctuations of a make nothing that it keeps needless" in told) != used
