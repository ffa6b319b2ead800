"""LATERAL: as DuckDB answers, as its definition says while rows come and go; what is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import QueryError
from tests.bags import agrees_with_duckdb, bag
from tests.effort import examples
from tests.nested import follows_the_definition, histories

DDL = (
    "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
    "CREATE STREAM u (k INT, w INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
)
TWO = (
    "CREATE STREAM l (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t;"
    "CREATE STREAM r (k INT, w INT, t TIMESTAMP) TIMESTAMP BY t"
)
_value = st.one_of(st.none(), st.integers(0, 3))
_rows = st.lists(st.tuples(_value, _value), max_size=7)
QUERIES = (
    "SELECT s.k, x.w FROM s, LATERAL (SELECT u.w FROM u WHERE u.k = s.k) x",
    "SELECT s.k, x.* FROM s CROSS JOIN LATERAL (SELECT w, s.v + w AS y FROM u WHERE u.w > s.v) x",
    "SELECT s.v, x.n, x.m FROM s, LATERAL (SELECT COUNT(*) AS n, MAX(w) - s.v AS m FROM u WHERE "
    "u.k = s.k AND u.w > 0) x",
    "SELECT s.v, n FROM s LEFT JOIN LATERAL (SELECT COUNT(w) AS n FROM u WHERE u.k = s.k AND s.v "
    "> 1) x ON TRUE",
    "SELECT s.k, x.w, n FROM s LEFT JOIN LATERAL (SELECT w, COUNT(*) AS n FROM u WHERE u.k = s.k "
    "GROUP BY w HAVING COUNT(*) < 3) x ON TRUE",
    "SELECT s.v, y FROM s LEFT JOIN LATERAL (SELECT s.v + 1 AS y FROM u WHERE u.k = s.k) x ON TRUE",
    "SELECT s.v, x.w FROM s JOIN LATERAL (SELECT DISTINCT w FROM u WHERE s.k = u.k) x ON x.w > s.v",
    "SELECT s.v, x.w FROM s LEFT JOIN LATERAL (SELECT u.w FROM u WHERE s.k = u.k) x ON x.w > s.v",
    "SELECT s.k, a, b FROM s, LATERAL (SELECT s.k + s.v) x(a), LATERAL (SELECT a * 2 AS b) y "
    "WHERE b > 2",
    "SELECT x.k, x.y FROM s, LATERAL (SELECT *, w AS y FROM u WHERE u.k = s.k) x",
    "SELECT s.k, x.n FROM s JOIN LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.k = s.k) x ON n > 1",
    "SELECT s.k, x.w FROM s, LATERAL (SELECT w FROM u WHERE w > 1) x",
    "SELECT s.k, x.w FROM s, LATERAL (SELECT MAX(w) AS w FROM u WHERE u.k = s.k) x WHERE s.v < 2",
    "SELECT k, x.w FROM (SELECT k, v FROM s WHERE v > 0) q, LATERAL (SELECT u.w FROM u WHERE "
    "u.k = q.k AND u.w <> q.v) x",
)


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(QUERIES), _rows, _rows)
def test_answers_are_duckdbs(query: str, rows: list[Any], others: list[Any]) -> None:
    engine = Engine()
    engine.execute(DDL)
    agrees_with_duckdb(engine, query, {"s": (("k", "v"), rows), "u": (("k", "w"), others)})


@settings(max_examples=examples(60), deadline=None)
@given(_rows, _rows, st.integers(1, 3))
def test_the_first_rows_of_each_row(rows: list[Any], others: list[Any], n: int) -> None:
    engine = Engine()
    engine.execute(DDL)
    query = (
        "SELECT s.v, x.w FROM s LEFT JOIN LATERAL (SELECT w FROM u WHERE u.k = s.k ORDER BY w DESC "
        f"NULLS LAST LIMIT {n}) x ON TRUE"
    )
    agrees_with_duckdb(engine, query, {"s": (("k", "v"), rows), "u": (("k", "w"), others)})


LIVE = (
    "SELECT l.k, x.w FROM l{l}, LATERAL (SELECT r.w FROM r{r} WHERE r.k = l.k AND r.w >= l.v) x",
    "SELECT l.v, x.n, x.m FROM l{l}, LATERAL (SELECT COUNT(*) AS n, SUM(r.w) + l.v AS m FROM r{r} "
    "WHERE r.k = l.k) x",
    "SELECT l.k, x.w, x.n FROM l{l} LEFT JOIN LATERAL (SELECT r.w, COUNT(*) AS n FROM r{r} WHERE "
    "r.k = l.k GROUP BY r.w) x ON TRUE",
    "SELECT l.k, x.w FROM l{l} LEFT JOIN LATERAL (SELECT r.w FROM r{r} WHERE r.k = l.k) x ON x.w > "
    "l.v",
    "SELECT l.k, x.w FROM l{l}, LATERAL (SELECT DISTINCT r.w FROM r{r} WHERE r.k = l.k) x",
    "SELECT l.v, x.w FROM l{l}, LATERAL (SELECT r.w FROM r{r} WHERE r.k = l.k ORDER BY r.w DESC "
    "LIMIT 2 PER ()) x WHERE l.v < 3",
)


@pytest.mark.parametrize("slide", [0, 4])
@settings(max_examples=examples(60), deadline=None)
@given(query=st.sampled_from(LIVE), history=histories("lr"))
def test_a_persistent_query_tells_what_the_definition_says(
    slide: int, query: str, history: Any
) -> None:
    follows_the_definition(TWO, query, {"l": "RANGE 5 us", "r": "RANGE 8 us"}, slide, history)


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.execute(DDL)
    engine.execute(
        "CREATE QUERY q AS SELECT s.k, x.n FROM s [RANGE 4 us], LATERAL (SELECT COUNT(*) AS n FROM "
        "u [RANGE 9 us] WHERE u.k = s.k) x"
    )
    engine.ingest("u", [(1, 5, 1), (1, 6, 2)])
    engine.close()
    engine = Engine(tmp_path)
    engine.ingest("s", [(1, 0, 3), (2, 0, 3)])
    for name in "su":
        engine.heartbeat(name, 4)
    assert bag(engine, "SELECT * FROM q") == Counter([(1, 2), (2, 0)])
    engine.close()


def test_explain_shows_the_join_that_it_is() -> None:
    engine = Engine()
    engine.execute(DDL)
    (plan,) = engine.execute(
        "EXPLAIN CREATE QUERY q AS SELECT s.k, x.w FROM s [RANGE 4 s], LATERAL (SELECT w FROM u "
        "[RANGE 9 s] WHERE u.k = s.k ORDER BY w LIMIT 3) x"
    )
    lines = "\n".join(row["plan"] for row in plan.data.to_pylist())
    assert "Join" in lines and "First 3 PER" in lines


@pytest.mark.parametrize(
    ("from_", "code", "said"),
    [
        ("s, LATERAL (SELECT MAX(w) FROM u WHERE u.w > s.v) x", "DS395", "more than equalities"),
        (
            "s, LATERAL (SELECT MAX(w + s.v) FROM u WHERE u.k = s.k) x",
            "DS395",
            "aggregates columns",
        ),
        ("s, LATERAL (SELECT s.v, COUNT(*) FROM u WHERE u.k = s.k GROUP BY w) x", "DS395", "shows"),
        ("s, LATERAL (SELECT w, MAX(w) FROM u WHERE u.k = s.k) x", "DS395", "beside aggregates"),
        ("s, LATERAL (SELECT w FROM u WHERE u.k = s.k UNION SELECT 1) x", "DS395", "combines"),
        ("s, LATERAL (SELECT w FROM u WHERE u.k = s.k LIMIT 1) x", "DS368", "ORDER BY"),
        ("s, LATERAL (SELECT LAG(w) OVER () FROM u WHERE u.k = s.k) x", "DS395", "OVER"),
        ("s, LATERAL (SELECT COUNT(*) FROM u WHERE u.k = s.v + 0.5) x", "DS395", "two types"),
        ("s RIGHT JOIN LATERAL (SELECT w FROM u WHERE u.k = s.k) x ON TRUE", "DS395", "for each"),
        ("s JOIN LATERAL (SELECT k FROM u) x USING (k)", "DS395", "ON TRUE"),
        (
            "s LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.k = s.k) x ON n > 1",
            "DS395",
            "answers to each row",
        ),
        ("s LEFT JOIN LATERAL (SELECT s.v WHERE s.v > 1) x ON TRUE", "DS395", "no FROM"),
        ("s, LATERAL (SELECT w FROM u WHERE u.k = s.k) x(a, b)", "DS217", "more names"),
        ("s, (SELECT w FROM u WHERE u.k = s.k) x", "DS322", "LATERAL"),
        ("s, LATERAL (SELECT w FROM u WHERE u.k = s.nothing) x", "DS201", "nothing"),
        ("s, LATERAL (SELECT w FROM u WHERE u.k = s.k) s", "DS205", "twice"),
    ],
)
def test_what_can_not_be_is_refused(from_: str, code: str, said: str) -> None:
    engine = Engine()
    engine.execute(DDL)
    with pytest.raises(QueryError) as caught:
        engine.execute(f"SELECT 1 FROM {from_}")
    assert (caught.value.code, said in f"{caught.value} {caught.value.hint}") == (code, True)
