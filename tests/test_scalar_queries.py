"""Subqueries that stand for a value: as DuckDB answers, and, of persistent queries, what the query
with the value joined in FROM tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.operators.join_kernels import chain, join_signed
from tests.bags import agrees_with_duckdb, play, told
from tests.effort import examples

STREAMS = (
    "CREATE STREAM l (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
    "CREATE STREAM r (k INT, w INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
)
_value = st.one_of(st.none(), st.integers(0, 3))
_rows = st.lists(st.tuples(_value, _value), max_size=8)
_histories = st.lists(
    st.tuples(st.sampled_from("lr"), _value, _value, st.integers(1, 4)), max_size=25
)
QUERIES = (
    "SELECT v FROM l WHERE v > (SELECT AVG(w) FROM r)",
    "SELECT k, v - (SELECT MIN(w) FROM r) AS d FROM l",
    "SELECT k, SUM(v) * (SELECT COUNT(*) FROM r) AS p FROM l GROUP BY k",
    "SELECT SUM(v) - (SELECT SUM(w) FROM r) AS d FROM l",
    "SELECT SUM(v - (SELECT MIN(w) FROM r)) AS d FROM l",
    "SELECT k, COUNT(*) FROM l GROUP BY k HAVING COUNT(*) >= (SELECT COUNT(*) FROM r)",
    "SELECT (SELECT COUNT(*) FROM l) AS a, (SELECT MAX(w) FROM r) AS b",
    "SELECT v FROM l WHERE v = (SELECT MAX(v) FROM l) OR v < (SELECT MIN(w) FROM r)",
    "SELECT v FROM l WHERE CASE WHEN (SELECT COUNT(*) FROM r) > 3 THEN v > 1 ELSE v <= 1 END",
    "SELECT DISTINCT k + (SELECT MAX(w) FROM r) AS s FROM l",
    "SELECT k, v FROM l WHERE EXISTS"
    " (SELECT * FROM r WHERE r.k = l.k AND w > (SELECT AVG(v) FROM l))",
    "SELECT k, v FROM l WHERE v IN (SELECT w FROM r WHERE w < (SELECT MAX(v) FROM l))",
    "SELECT l.v, w FROM l LEFT JOIN r ON l.k = r.k WHERE v >= (SELECT MIN(v) FROM l)",
    "SELECT k, COUNT(*), (SELECT COUNT(*) FROM r) AS n FROM l GROUP BY ROLLUP (k)",
    "SELECT v FROM l WHERE v > (SELECT 1)",
    # one query inside of an aggregate and outside
    "SELECT MAX(v), SUM(v - (SELECT AVG(w) FROM r)), (SELECT AVG(w) FROM r) AS m FROM l",
    "SELECT SUM(v - (SELECT MIN(w) FROM r)), (SELECT MIN(w) FROM r) FROM l",
    "SELECT k, COUNT(*), SUM(v - (SELECT MIN(w) FROM r)) FROM l GROUP BY k"
    " HAVING COUNT(*) > (SELECT MIN(w) FROM r)",
    "SELECT SUM(v) FILTER (WHERE v > (SELECT MIN(w) FROM r)) FROM l"
    " HAVING COUNT(*) > (SELECT MIN(w) FROM r)",
    "SELECT k, COUNT(*) AS n FROM l GROUP BY k ORDER BY SUM(v - (SELECT MIN(w) FROM r))",
    "SELECT v FROM l WHERE v > (SELECT MAX(w) FROM r WHERE w < (SELECT MAX(v) FROM l))",
    "SELECT v FROM l WHERE v < (SELECT COUNT(*) FROM (SELECT DISTINCT w FROM r) q)",
)


@settings(max_examples=examples(200))
@given(st.sampled_from(QUERIES), _rows, _rows)
def test_answers_are_duckdbs(query: str, left: list[Any], right: list[Any]) -> None:
    engine = Engine()
    engine.execute(STREAMS)
    agrees_with_duckdb(engine, query, {"l": (("k", "v"), left), "r": (("k", "w"), right)})


LONG = (
    ("SELECT {o}(k, v) FROM l [RANGE 5 us{s}] WHERE v > (SELECT AVG(w) FROM r [RANGE 8 us{s}])",
     "SELECT {o}(l.k, v) FROM l [RANGE 5 us{s}], (SELECT AVG(w) AS a FROM r [RANGE 8 us{s}]) q"
     " WHERE v > a"),
    ("SELECT {o}(k, COUNT(*) * 10 + (SELECT COUNT(*) FROM r [RANGE 3 us{s}]))"
     " FROM l [RANGE 5 us{s}] GROUP BY k",
     "SELECT {o}(k, n * 10 + m) FROM (SELECT k, COUNT(*) AS n FROM l [RANGE 5 us{s}] GROUP BY k) g,"
     " (SELECT COUNT(*) AS m FROM r [RANGE 3 us{s}]) q"),
)  # a form a line  # fmt: skip


@pytest.mark.parametrize("slide", ["", " SLIDE 4 us"])
@settings(max_examples=examples(60))
@given(form=st.sampled_from(LONG), history=_histories)
def test_a_persistent_query_tells_what_the_join_tells(
    slide: str, form: tuple[str, str], history: Any
) -> None:
    engine = Engine()
    engine.execute(STREAMS)
    for name, text in zip(("short", "long"), form, strict=True):
        query = text.format(o="Rstream", s=slide)
        engine.execute(f"CREATE QUERY {name} AS {query}")
    play(engine, "lr", history)
    assert told(engine, "short") == told(engine, "long")


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.execute(STREAMS)
    engine.execute("CREATE QUERY q AS SELECT v FROM l [RANGE 1 h] WHERE v > (SELECT MAX(w) FROM r)")
    engine.ingest("r", [(0, 5, 1)])
    engine.ingest("l", [(0, 4, 2), (0, 9, 3)])
    engine.close()
    engine = Engine(tmp_path)
    engine.ingest("r", [(0, 8, 4)])
    engine.ingest("l", [(0, 6, 5), (0, 10, 6)])
    for name in "lr":
        engine.heartbeat(name, 7)
    (found,) = engine.execute("SELECT * FROM q ORDER BY v")
    assert found.data.to_pylist() == [{"v": 9}, {"v": 10}]
    engine.close()


@pytest.mark.parametrize(
    ("query", "code", "said"),
    [
        ("SELECT v FROM l WHERE v > (SELECT w FROM r)", "DS321", "one row"),
        ("SELECT v FROM l WHERE v > (SELECT MAX(w) FROM r GROUP BY k)", "DS321", "one row"),
        (
            "SELECT v FROM l WHERE v > (SELECT MAX(w) FROM r HAVING COUNT(*) > 1)",
            "DS321",
            "one row",
        ),
        ("SELECT v FROM l WHERE v > (SELECT MAX(w), 1 FROM r)", "DS217", "one column"),
        ("SELECT l.v FROM l JOIN r ON v > (SELECT MAX(w) FROM r)", "DS321", "in ON"),
        ("SELECT COUNT(*) FROM l GROUP BY k + (SELECT MAX(w) FROM r)", "DS321", "in GROUP BY"),
        ("SELECT v FROM l WHERE v > (SELECT w FROM r ORDER BY w LIMIT 1)", "DS321", "one row"),
    ],
)
def test_what_can_not_be_is_refused(query: str, code: str, said: str) -> None:
    engine = Engine()
    engine.execute(STREAMS)
    with pytest.raises(QueryError) as caught:
        engine.execute(query)
    assert caught.value.code == code
    assert said in str(caught.value)


def test_rows_that_have_left_are_gone_through_once() -> None:
    """Of a value that changes with each row one is alive, and a batch brings thousands."""
    gone, there = 1000, 1
    head = np.full((2, 2), -1, np.int64)
    node = np.zeros((gone + there, 2), np.int64)  # all of one key
    ok, alive = np.ones(gone + there, np.bool_), np.ones(gone + there, np.bool_)
    exp = np.full(gone + there, 10**6)
    chain(head, 1, node, ok, np.arange(gone + there))
    alive[1:500], exp[500:] = False, 5  # taken back, expired; the oldest is alive
    one = np.zeros((1, 2), np.int64)
    a = (np.array([7]), np.ones(1, np.int8), np.zeros(1, np.int64), one, ok[:1], exp[:1], alive[:1])
    no = np.empty(0, np.int64)
    b = (no, np.empty(0, np.int8), no, node, ok, exp, alive)
    found = join_signed(head, np.zeros(6, np.int64), 100, 100, *a, *b)
    assert [x.tolist() for x in found] == [[0], [0], [7], [1]]
    assert head[:, 1].max() == 0  # nothing is before it any more
