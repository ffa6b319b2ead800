"""WITH (approximate = e): groups may miss a threshold by that share of it, none above is missing,
and each answer says so."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.sharing.threshold import levels_within
from tests.effort import examples
from tests.join_twins import told

S = 1_000_000
STREAM = "CREATE STREAM s (k INT, x INT, t TIMESTAMP) TIMESTAMP BY t"
KEYS = "SELECT k FROM s {w} GROUP BY k HAVING {h}"
SHAPES = (
    KEYS,
    "SELECT k, COUNT(*) AS n, SUM(x) AS x FROM s {w} GROUP BY k HAVING {h}",
    "SELECT MAX(x) - MIN(x) AS d, k FROM s {w} GROUP BY k HAVING {h} AND MAX(x) > 2",
    "SELECT Istream(k) FROM s {w} GROUP BY k HAVING {h}",
)
WINDOWS = ("[RANGE 12 s SLIDE 4 s]", "[RANGE 9 s SLIDE 1 s]", "[ROWS 120 SLIDE 20]")
HAVING = ("COUNT(*) > {n}", "{n} <= COUNT(*)", "COUNT(x) > {n} AND k > 1", "SUM(x) >= {n}.5")
MEASURES = {"COUNT(*)": "COUNT(*)", "COUNT(x)": "COUNT(x)", "SUM(x)": "SUM(x)"}


def rows(rng: Random, n: int, start: int, least: int = 0) -> tuple[list[list[Any]], int]:
    out, t = [], start
    for _ in range(n):
        t += rng.choice([0, 20_000, 100_000])
        x = rng.choice([None, rng.randint(least, 9)])
        out.append([int(rng.paretovariate(0.7)) % 30, x, t])
    return out, t


def feed(engine: Engine, rng: Random, came: list[list[Any]]) -> None:
    start = 0
    while start < len(came):
        stop = start + rng.randint(1, 150)
        engine.ingest("s", came[start:stop])
        start = stop


def by_instant(engine: Engine, query: str) -> dict[int, dict[int, Any]]:
    """What a query told at each boundary: its second column by its first."""
    out: dict[int, dict[int, Any]] = {}
    for push in engine.subscribe(query, 0).take():
        if push.data is not None and push.at is not None:
            rows = zip(*(c.to_pylist() for c in push.data.columns), strict=True)
            out[push.at] = {row[0]: row[-1] for row in rows}
    return out


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(60), deadline=None)
def test_no_group_above_is_missing_and_none_far_below_is_there(seed):
    """Also where sums are negative for a while."""
    rng = Random(seed)
    window, within = rng.choice(WINDOWS), rng.choice([0.05, 0.1, 0.3, 0.75])
    measure, n = rng.choice(sorted(MEASURES)), rng.choice([0, 1, 7, 20, 60])
    engine = Engine()
    engine.execute(STREAM)
    ours = KEYS.format(w=window, h=f"{measure} > {n}")
    engine.execute(f"CREATE QUERY q AS {ours} WITH (approximate = {within})")
    engine.execute(f"CREATE QUERY c AS SELECT k, {measure} AS n FROM s {window} GROUP BY k")
    t = 0
    for least in (0, rng.choice([0, -3]), 0):
        came, t = rows(rng, rng.randint(1, 500), t, least)
        feed(engine, rng, came)
    engine.heartbeat("s", t + 60 * S)
    found, counted = by_instant(engine, "q"), by_instant(engine, "c")
    for at, values in counted.items():
        mine = set(found.get(at, ()))
        assert {k for k, v in values.items() if v is not None and v > n} <= mine
        assert all(values[k] > n * (1 - within) - 1 for k in mine)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(30), deadline=None)
def test_answers_are_the_same_however_rows_come_and_after_restarts(tmp_path_factory, seed):
    """Beside other queries that ask indices, and those that come and go."""
    rng = Random(seed)
    sql = [
        rng.choice(SHAPES).format(
            w=rng.choice(WINDOWS), h=rng.choice(HAVING).format(n=rng.choice([1, 6, 25]))
        )
        for _ in range(4)
    ]
    path = tmp_path_factory.mktemp("data")
    ours, twin = Engine(path), Engine()
    for engine in (ours, twin):
        engine.execute(STREAM)
    ours.execute(f"CREATE QUERY other AS {sql[0]} WITH (synopsis = collective)")
    t = 0
    for step, query in enumerate(sql):
        for engine in (ours, twin):
            engine.execute(f"CREATE QUERY q{step} AS {query} WITH (approximate = 0.4)")
        came, t = rows(rng, 200, t)
        feed(ours, rng, came)
        twin.ingest("s", came)
        if step == 2:
            ours.execute("DROP QUERY other")
        if rng.random() < 0.5:
            ours.close()
            ours = Engine(path)
    for engine in (ours, twin):
        engine.heartbeat("s", t + 60 * S)
    for step in range(4):
        assert told(ours, f"q{step}") == told(twin, f"q{step}")
    ours.close()


def test_each_answer_says_so():
    engine = Engine()
    engine.execute(STREAM)
    query = KEYS.format(w="[RANGE 4 s SLIDE 2 s]", h="COUNT(*) > 1")
    engine.execute(f"CREATE QUERY q AS {query} WITH (approximate = 0.2)")
    engine.execute(f"CREATE QUERY exact AS {query}")
    engine.execute("CREATE QUERY over AS SELECT k FROM q WHERE k > 0 EVERY 2 s")
    engine.execute(
        "CREATE QUERY l AS SELECT k FROM s [RANGE 4 s] GROUP BY k HAVING COUNT(*) > ? "
        "ON LOOKUP WITH (approximate = 0.2)"
    )
    reader, other = engine.subscribe("q"), engine.subscribe("exact")
    engine.ingest("s", [[1, 1, 0], [1, 1, 1], [2, 1, 3 * S], [2, 1, 3 * S], [3, 1, 9 * S]])
    assert {p.approximate for p in reader.take() if p.data is not None} == {0.2}
    assert {p.approximate for p in other.take()} == {None}
    asked = {q: engine.execute(f"SELECT * FROM {q}")[0].approximate for q in ("q", "exact", "over")}
    assert asked == {"q": 0.2, "exact": None, "over": 0.2}
    assert engine.execute("LOOKUP l (0)")[0].approximate == 0.2
    (shown,) = engine.execute("SHOW QUERIES FULL LIKE 'over'")[0].data.to_pylist()
    assert shown["approximate"] == 0.2
    plan = engine.execute("EXPLAIN QUERY q")[0].data.column(0).to_pylist()
    assert any("count(*) > 1, approximate by 20%" in line for line in plan)


@pytest.mark.parametrize("shown", ["k", "k, SUM(x) AS x"])
@pytest.mark.parametrize("large", [1 << 59, (1 << 63) - 1])
@pytest.mark.parametrize("kind", ["INT", "DECIMAL(30,0)"])
def test_sums_too_large_for_an_index_leave_the_condition_as_it_is(shown, large, kind):
    """Of other groups, too: of these none is far below, nor has it no sum."""
    engine = Engine()
    engine.execute(f"""
        CREATE STREAM s (k INT, x {kind}, t TIMESTAMP) TIMESTAMP BY t;
        CREATE QUERY q AS SELECT {shown} FROM s [RANGE 2 s SLIDE 1 s] GROUP BY k
            HAVING SUM(x) > 100 AND k < 9 WITH (approximate = 0.1)""")
    x = [large, 5, 200, -3, None, 200]
    engine.ingest("s", {"k": [1, 2, 3, 4, 5, 9], "x": x, "t": list(range(6))})
    engine.heartbeat("s", 2 * S)
    answers = by_instant(engine, "q")
    assert [list(found) for found in answers.values()] == [[1, 3]] * len(answers) != []


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (KEYS.format(w="[RANGE 4 s]", h="COUNT(*) > 1"), "DS364"),
        (KEYS.format(w="[RANGE 4 s SLIDE 1 s]", h="MAX(x) > 1"), "DS364"),
        (KEYS.format(w="[RANGE 4 s SLIDE 1 s]", h="COUNT(*) < 5"), "DS364"),
        (KEYS.format(w="[RANGE 4 s SLIDE 1 s]", h="COUNT(*) = 5"), "DS364"),
        (KEYS.format(w="[RANGE 4 s UNTIL 1 s AGO SLIDE 1 s]", h="COUNT(*) > 1"), "DS364"),
        ("SELECT COUNT(*) AS n FROM s [RANGE 4 s SLIDE 1 s]", "DS364"),
        ("SELECT k FROM s [RANGE 4 s] ON LOOKUP", "DS364"),
    ],
)
def test_where_no_index_answers_it_is_refused(sql, code):
    engine = Engine()
    engine.execute(STREAM)
    for option in ("approximate = 0.1", "approximate = 0.1, path = ws"):
        with pytest.raises(DsmsError) as caught:
            engine.execute(f"CREATE QUERY q AS {sql} WITH ({option})")
        assert caught.value.code == code and caught.value.hint


@pytest.mark.parametrize("share", ["0", "1", "0.001", "-0.1", "'a'", "TRUE"])
def test_the_share_is_a_number_that_can_be(share):
    engine = Engine()
    engine.execute(STREAM)
    query = KEYS.format(w="[RANGE 4 s SLIDE 1 s]", h="COUNT(*) > 1")
    with pytest.raises(DsmsError) as caught:
        engine.execute(f"CREATE QUERY q AS {query} WITH (approximate = {share})")
    assert caught.value.code == "DS215"


@pytest.mark.parametrize("within", [0.01, 0.05, 0.1, 0.3, 0.75])
def test_levels_keep_the_share(within):
    levels = levels_within(within)
    assert 2 / (levels + 2) + 1 / (4 * levels) <= within
