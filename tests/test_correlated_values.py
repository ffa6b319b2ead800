"""Subqueries for a value that depend on the row that asks: as DuckDB answers, and, of persistent
queries, as the definition says at each instant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import QueryError
from tests.bags import agrees_with_duckdb
from tests.effort import examples
from tests.nested import follows_the_definition, histories

STREAMS = (
    "CREATE STREAM l (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
    "CREATE STREAM r (k INT, w INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
)
_value = st.one_of(st.none(), st.integers(0, 3))
_rows = st.lists(st.tuples(_value, _value), max_size=8)
# l, r: what stands behind the streams
QUERIES = (
    "SELECT l.k, l.v FROM l{l} WHERE l.v > (SELECT AVG(r.w) FROM r{r} WHERE r.k = l.k)",
    "SELECT l.k, (SELECT COUNT(*) FROM r{r} WHERE r.k = l.k) AS n FROM l{l}",
    "SELECT l.k, 1 + (SELECT 1 + COUNT(*) FROM r{r} WHERE l.k = r.k) AS n FROM l{l}",
    "SELECT l.k, (SELECT SUM(r.w) - COUNT(r.w) FROM r{r} WHERE r.k = l.k) AS n FROM l{l}",
    "SELECT l.v FROM l{l}"
    " WHERE (SELECT COUNT(DISTINCT r.w) FROM r{r} WHERE r.k = l.k AND r.w > 0) < 2",
    "SELECT l.v FROM l{l} WHERE l.v = (SELECT MAX(r.w) FROM r{r} WHERE r.k = l.k AND l.v > 1)",
    "SELECT l.v FROM l{l}"
    " WHERE l.v >= (SELECT MIN(r.w) FROM r{r} WHERE r.k + 1 = l.k AND r.w = l.v)",
    "SELECT l.v FROM l{l} WHERE l.v > (SELECT AVG(m.v) FROM l{l} m WHERE m.k = l.k)"
    " OR l.k < (SELECT COUNT(*) FROM r{r} WHERE r.w = l.v)",
    "SELECT l.v FROM l{l} WHERE CASE WHEN (SELECT COUNT(*) FROM r{r} WHERE r.k = l.k) > 1"
    " THEN l.v > 1 ELSE l.v <= 1 END",
    "SELECT l.k, COUNT(*) AS n FROM l{l} GROUP BY l.k"
    " HAVING COUNT(*) > (SELECT COUNT(*) FROM r{r} WHERE r.k = l.k)",
    "SELECT l.k, SUM(l.v) - (SELECT SUM(r.w) FROM r{r} WHERE r.k = l.k + 1) AS d FROM l{l}"
    " GROUP BY l.k",
    "SELECT l.k, l.v FROM l{l} WHERE EXISTS (SELECT * FROM r{r} WHERE r.k = l.k"
    " AND r.w > (SELECT AVG(m.v) FROM l{l} m WHERE m.k = r.w))",
    "SELECT l.v FROM l{l} WHERE l.v <= (SELECT SUM(r.w) FROM r{r} WHERE r.k = l.k"
    " AND EXISTS (SELECT * FROM l{l} m WHERE m.v = r.w))",
    "SELECT l.v FROM l{l} WHERE l.v <= (SELECT MAX(r.w) FROM r{r} WHERE r.k = l.k"
    " AND r.w > (SELECT MIN(m.v) FROM l{l} m WHERE m.k = r.k))",
    "SELECT l.v, b.w FROM l{l} JOIN r{r} b ON l.k = b.k"
    " WHERE l.v + b.w > (SELECT AVG(m.w) FROM r{r} m WHERE m.k = b.w AND m.w = l.v)",
    "SELECT DISTINCT l.v + (SELECT COUNT(*) FROM r{r} WHERE r.k = l.k) AS s FROM l{l}",
)
# what is summed before the subquery's value comes in
ONCE = (
    "SELECT SUM(v - (SELECT MIN(w) FROM r WHERE r.k = l.k)) AS d FROM l",
    "SELECT k, SUM((SELECT COUNT(*) FROM r WHERE r.k = l.k)) AS d FROM l GROUP BY ROLLUP (k)",
    "SELECT l.k, COUNT(*), (SELECT COUNT(*) FROM r WHERE r.k = l.k) AS n FROM l"
    " GROUP BY ROLLUP (l.k)",
    "SELECT v FROM l ORDER BY (SELECT COUNT(*) FROM r WHERE r.k = l.k), v LIMIT 100",
    "SELECT v FROM l WHERE v > (SELECT AVG(w) FROM (SELECT k, w FROM r WHERE w > 0) q"
    " WHERE q.k = l.k)",
)


@settings(max_examples=examples(200))
@given(st.sampled_from(QUERIES + ONCE), _rows, _rows)
def test_answers_are_duckdbs(query: str, left: list[Any], right: list[Any]) -> None:
    engine = Engine()
    engine.execute(STREAMS)
    query = query.format(l="", r="")
    agrees_with_duckdb(engine, query, {"l": (("k", "v"), left), "r": (("k", "w"), right)})


@pytest.mark.parametrize("slide", [0, 4])
@settings(max_examples=examples(150))
@given(query=st.sampled_from(QUERIES), history=histories("lr"))
def test_a_persistent_query_tells_what_the_definition_says(
    slide: int, query: str, history: Any
) -> None:
    follows_the_definition(STREAMS, query, {"l": "RANGE 5 us", "r": "RANGE 8 us"}, slide, history)


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.execute(STREAMS)
    engine.execute(
        "CREATE QUERY q AS SELECT k, v FROM l [RANGE 1 h]"
        " WHERE v > (SELECT MAX(w) FROM r WHERE r.k = l.k)"
    )
    engine.ingest("r", [(0, 5, 1), (1, 1, 1)])
    engine.ingest("l", [(0, 4, 2), (0, 9, 3), (1, 2, 3), (2, 9, 3)])
    engine.close()
    engine = Engine(tmp_path)
    engine.ingest("r", [(0, 8, 4)])
    engine.ingest("l", [(0, 6, 5), (0, 10, 6)])
    for name in "lr":
        engine.heartbeat(name, 7)
    (found,) = engine.execute("SELECT * FROM q ORDER BY k, v")
    assert found.data.to_pylist() == [{"k": 0, "v": 9}, {"k": 0, "v": 10}, {"k": 1, "v": 2}]
    engine.close()


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("(SELECT w FROM r WHERE r.k = l.k)", "DS321", "one row"),
        ("(SELECT MAX(w) FROM r WHERE r.k = l.k GROUP BY w)", "DS321", "one row"),
        ("(SELECT MAX(w) FROM r WHERE r.k = l.k HAVING COUNT(*) > 1)", "DS321", "one row"),
        ("(SELECT MAX(w), MIN(w) FROM r WHERE r.k = l.k)", "DS217", "one column"),
        ("(SELECT MAX(w) FROM r WHERE r.k < l.k)", "DS379", "more than equalities"),
        ("(SELECT MAX(w) FROM r WHERE r.k = l.k AND r.w < l.v)", "DS379", "more than equalities"),
        ("(SELECT MAX(w) FROM r WHERE r.k = l.k OR r.k = 1)", "DS379", "more than equalities"),
        ("(SELECT MAX(w) FROM r WHERE l.v > 1)", "DS379", "equal to the row in nothing"),
        ("(SELECT MAX(w) - l.v FROM r WHERE r.k = l.k)", "DS379", "shows columns"),
        ("(SELECT MAX(w - l.v) FROM r WHERE r.k = l.k)", "DS379", "shows columns"),
        ("(SELECT MAX(w) FROM r WHERE r.k = l.k LIMIT 1)", "DS379", "LIMIT"),
        (
            "(SELECT MAX(w) FROM r WHERE r.k = l.k QUALIFY SUM(w) OVER (ORDER BY t) > 1)",
            "DS379",
            "QUALIFY",
        ),
        ("(SELECT MAX(w) FROM r [RANGE 5 s INTERNAL] WHERE r.k = l.k)", "DS379", "INTERNAL"),
        ("(SELECT r.k + COUNT(*) FROM r WHERE r.k = l.k)", "DS303", "neither grouped"),
        ("(SELECT MAX(w) FROM r WHERE r.k = l.kk)", "DS201", "unknown column `l.kk`"),
        ("(SELECT MAX(x) FROM (SELECT w AS x FROM r WHERE r.k = l.k) q)", "DS322", "directly"),
        (
            "(SELECT MAX(w) FROM r WHERE EXISTS (SELECT * FROM r b WHERE b.k = l.k))",
            "DS322",
            "reached",
        ),
    ],
)
def test_what_can_not_be_is_refused(query: str, code: str, said: str) -> None:
    engine = Engine()
    engine.execute(STREAMS)
    with pytest.raises(QueryError) as caught:
        engine.execute(f"SELECT v FROM l WHERE v > {query}")
    assert caught.value.code == code
    assert said in str(caught.value)


def test_a_group_knows_its_keys_alone() -> None:
    engine = Engine()
    engine.execute(STREAMS)
    with pytest.raises(QueryError, match="no key of GROUP BY") as caught:
        engine.execute("SELECT k, (SELECT MAX(w) FROM r WHERE r.k = l.v) AS m FROM l GROUP BY k")
    assert caught.value.code == "DS303"
