"""EXISTS, IN, ANY and ALL under OR and NOT: as DuckDB answers, and, of persistent queries, as the
definition says at each instant."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import QueryError
from tests.bags import agrees_with_duckdb, told
from tests.effort import examples
from tests.nested import follows_the_definition, histories

STREAMS = (
    "CREATE STREAM l (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
    "CREATE STREAM r (k INT, w INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
)
_value = st.one_of(st.none(), st.integers(0, 3))
_rows = st.lists(st.tuples(_value, _value), max_size=8)
TESTED = "EXISTS (SELECT * FROM r{r} WHERE r.k = l.k)"
CONDITIONS = (
    f"l.v > 1 OR {TESTED}",
    f"l.v > 1 OR NOT {TESTED}",
    f"NOT (l.v > 1 OR {TESTED})",
    f"NOT (l.v > 1 AND {TESTED})",
    f"l.v > 1 OR l.k = 0 OR (l.v = 0 AND {TESTED})",
    "l.v > 1 OR l.k IN (SELECT r.w FROM r{r})",
    "l.v > 1 OR l.k NOT IN (SELECT r.w FROM r{r})",
    "NOT (l.v <= 1 AND l.k IN (SELECT r.w FROM r{r}))",
    "l.v > 1 OR l.k NOT IN (SELECT r.w FROM r{r} WHERE r.k = l.v)",
    "l.v IS NULL OR l.v > ALL (SELECT r.w FROM r{r})",
    "l.v IS NULL OR NOT l.v > ANY (SELECT r.w FROM r{r} WHERE r.k = l.k)",
    f"(l.v > 1 OR {TESTED}) AND (l.k > 1 OR l.v IN (SELECT r.w FROM r{{r}}))",
    f"l.v > 1 OR ({TESTED} AND (l.k = 1 OR l.v IN (SELECT r.w FROM r{{r}})))",
    f"{TESTED} OR l.k IN (SELECT r.w FROM r{{r}})",
    f"l.v = 0 OR {TESTED} OR l.k = ANY (SELECT m.v FROM l{{l}} m WHERE m.k > 0)",
    f"l.v IN (SELECT r.w FROM r{{r}}) OR {TESTED}",
    f"l.k IS NULL OR l.v < ANY (SELECT r.w FROM r{{r}} WHERE r.k = l.k) OR {TESTED}"
    " OR l.k = ANY (SELECT m.v FROM l{l} m WHERE m.k = l.v OR m.k > l.k)",
    "EXISTS (SELECT * FROM r{r} WHERE r.k = l.k AND (r.w = 1"
    " OR EXISTS (SELECT * FROM l{l} m WHERE m.v = r.w)))",
    "l.v > (SELECT AVG(r.w) FROM r{r} WHERE r.k = l.k) OR l.k IN (SELECT r.w FROM r{r})",
    "l.v > ALL (SELECT r.w FROM r{r})",
    "l.v <= ALL (SELECT r.w FROM r{r} WHERE r.k > 0) AND l.k > 0",
    "l.v = ALL (SELECT r.w FROM r{r})",
    "l.v < ANY (SELECT r.w FROM r{r})",
    "l.v <> ANY (SELECT r.w FROM r{r})",
    "NOT l.v >= ANY (SELECT r.w FROM r{r})",
    "NOT l.v < ALL (SELECT r.w FROM r{r})",
    "NOT l.v <> ANY (SELECT r.w FROM r{r} WHERE r.k = 1)",
    "NOT EXISTS (SELECT * FROM r{r} WHERE r.w > l.v)",
    "EXISTS (SELECT * FROM r{r} WHERE r.k = l.k OR r.w = l.v)",
    "NOT EXISTS (SELECT * FROM r{r} WHERE (r.k = l.k OR r.w = l.v AND r.k > l.k) AND r.w > 0)",
    "l.k IN (SELECT r.w FROM r{r}) OR l.v IN (SELECT r.k FROM r{r})",
    f"NOT NOT {TESTED} AND NOT (l.v = 1 OR l.k = 3)",
)


@settings(max_examples=examples(200))
@given(st.sampled_from(CONDITIONS), _rows, _rows)
def test_answers_are_duckdbs(condition: str, left: list[Any], right: list[Any]) -> None:
    engine = Engine()
    engine.execute(STREAMS)
    query = f"SELECT l.k, l.v FROM l WHERE {condition.format(l='', r='')}"
    agrees_with_duckdb(engine, query, {"l": (("k", "v"), left), "r": (("k", "w"), right)})


@pytest.mark.parametrize("slide", [0, 4])
@settings(max_examples=examples(150))
@given(condition=st.sampled_from(CONDITIONS), history=histories("lr"))
def test_a_persistent_query_tells_what_the_definition_says(
    slide: int, condition: str, history: Any
) -> None:
    query = f"SELECT l.k, l.v FROM l{{l}} WHERE {condition}"
    follows_the_definition(STREAMS, query, {"l": "RANGE 5 us", "r": "RANGE 8 us"}, slide, history)


def test_rows_are_told_by_identity() -> None:
    """An equal row that comes as another leaves is told, as of any rows that have parts; one that
    goes on passing, by another match, is not told again."""
    engine = Engine()
    engine.execute(STREAMS)
    engine.execute(
        "CREATE QUERY q AS SELECT Istream(k, v) FROM l [RANGE 4 us] WHERE v > 1"
        " OR EXISTS (SELECT * FROM r [RANGE 2 us] WHERE r.k = l.k)"
    )
    engine.ingest("l", [(1, 5, 1), (2, 0, 1)])
    engine.ingest("r", [(2, 0, 1), (2, 0, 3), (1, 0, 3)])
    engine.ingest("l", [(1, 5, 5)])
    for name in "lr":
        engine.heartbeat(name, 9)
    rows = [(at, row) for at, _, rows in told(engine, "q") for row in rows.elements()]
    assert Counter(rows) == Counter([(1, (1, 5)), (1, (2, 0)), (5, (1, 5))])


@pytest.mark.parametrize("anti", ["", "NOT "])
def test_qualify_in_a_subquery_counts(anti: str) -> None:
    engine = Engine()
    engine.execute(STREAMS)
    engine.ingest("l", [(1, 1, 1)])
    engine.ingest("r", [(1, 1, 1), (1, 2, 2)])
    for name in "lr":
        engine.heartbeat(name, 9)
    many = "QUALIFY COUNT(*) OVER (ORDER BY t) > 5"
    for test in (f"EXISTS (SELECT w FROM r {many})", f"v IN (SELECT w FROM r {many})"):
        (found,) = engine.execute(f"SELECT v FROM l WHERE {anti}({test})")
        assert found.data.num_rows == (1 if anti else 0)


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.execute(STREAMS)
    engine.execute(
        "CREATE QUERY q AS SELECT k, v FROM l [RANGE 1 h]"
        " WHERE v > 5 OR k NOT IN (SELECT w FROM r [RANGE 1 h])"
    )
    engine.ingest("l", [(0, 9, 1), (1, 1, 2), (2, 2, 3)])
    engine.ingest("r", [(0, 1, 3)])
    engine.close()
    engine = Engine(tmp_path)
    engine.ingest("r", [(0, 2, 4)])
    engine.ingest("l", [(2, 6, 5), (2, 4, 6), (3, 4, 6)])
    for name in "lr":
        engine.heartbeat(name, 7)
    (found,) = engine.execute("SELECT * FROM q ORDER BY k, v")
    assert found.data.to_pylist() == [{"k": 0, "v": 9}, {"k": 2, "v": 6}, {"k": 3, "v": 4}]
    engine.close()


@pytest.mark.parametrize(
    ("condition", "code", "said"),
    [
        (f"{TESTED} OR v NOT IN (SELECT w FROM r)", "DS380", "told as gone and come"),
        (f"{TESTED} OR NOT EXISTS (SELECT * FROM r b WHERE b.w = l.k)", "DS380", "UNION"),
        (f"v = 1 OR {TESTED} OR v < ALL (SELECT w FROM r)", "DS380", "without NOT"),
        (f"CASE WHEN {TESTED} THEN TRUE ELSE FALSE END", "DS320", "CASE"),
        (f"({TESTED}) = (v = 1)", "DS320", "a comparison"),
        (f"v + 1 OR {TESTED}", "DS209", "INT"),
    ],
)
def test_what_can_not_be_is_refused(condition: str, code: str, said: str) -> None:
    engine = Engine()
    engine.execute(STREAMS)
    with pytest.raises(QueryError) as caught:
        engine.execute(f"SELECT v FROM l WHERE {condition.format(r='', l='')}")
    assert caught.value.code == code
    assert said in str(caught.value)


def test_results_that_stay_are_no_choice() -> None:
    engine = Engine()
    engine.execute(STREAMS)
    with pytest.raises(QueryError, match="UNION ALL") as caught:
        engine.execute(
            "CREATE QUERY q AS SELECT v FROM l [RANGE 5 s INTERNAL] WHERE v > 1"
            " OR EXISTS (SELECT * FROM r [RANGE 5 s INTERNAL] WHERE r.k = l.k)"
        )
    assert caught.value.code == "DS380"
