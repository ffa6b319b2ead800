"""SEMI, ANTI and NATURAL JOIN, ANY and ALL, WITH: as DuckDB answers the same text, and, of a
persistent query, as the longer form that it stands for tells."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql.transform.named_queries import MOST
from tests.bags import agrees_with_duckdb, play, told
from tests.effort import examples

TYPES = "(k INT, {} INT, {} TIMESTAMP)"
STREAMS = {"l": ("v", "t"), "r": ("w", "t"), "z": ("x", "at")}
_value = st.one_of(st.none(), st.integers(0, 3))
_rows = st.lists(st.tuples(_value, _value), max_size=8)
_histories = st.lists(
    st.tuples(st.sampled_from("lrz"), _value, _value, st.integers(1, 4)), max_size=25
)
COMPARE = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])

JOINS = (  # as DuckDB writes them; its answers have no windows
    "SELECT l.k, v FROM l SEMI JOIN r ON l.k = r.k",
    "SELECT l.k, v FROM l ANTI JOIN r ON l.k = r.k",
    "SELECT l.k, v FROM l SEMI JOIN r ON l.k = r.k AND w > v",
    "SELECT l.k, v FROM l ANTI JOIN r ON l.k = r.k AND w > v AND w > 1",
    "SELECT l.k, v FROM l SEMI JOIN r ON w > v",
    "SELECT l.k, v, x FROM l ANTI JOIN r USING (k) JOIN z ON l.k = z.k",
    "SELECT l.k, v, x FROM l JOIN z ON l.k = z.k SEMI JOIN r ON l.k = r.k WHERE v > 0 AND x > 0",
    "SELECT z.k, x, v FROM z LEFT JOIN (l ANTI JOIN r USING (k)) ON z.x = l.v",
    "SELECT l.k, v FROM l SEMI JOIN (r JOIN z ON r.w = z.x) ON l.k = r.k AND l.v = z.k",
    "SELECT k, x, v FROM z NATURAL JOIN l",
    "SELECT k, x, w FROM z NATURAL LEFT JOIN r",
    "SELECT k, x FROM z NATURAL ANTI JOIN l",
)
QUANTIFIED = (
    "SELECT v FROM l WHERE v {} ALL (SELECT w FROM r)",
    "SELECT v FROM l WHERE v {} ANY (SELECT w FROM r)",
    "SELECT v FROM l WHERE NOT v {} ALL (SELECT w FROM r)",
    "SELECT v FROM l WHERE NOT v {} ANY (SELECT w FROM r)",
    "SELECT v FROM l WHERE v {} SOME (SELECT w FROM r WHERE r.k = l.k)",
    "SELECT v FROM l WHERE v {} ALL (SELECT w FROM r WHERE r.k = l.k)",
    "SELECT v FROM l WHERE v {} ALL (SELECT MAX(w) FROM r GROUP BY k)",
)
NAMED = (
    "WITH a AS (SELECT k, v FROM l WHERE v > 0) SELECT a.v, w FROM a JOIN r ON a.k = r.k",
    "WITH a AS (SELECT k FROM l), b (n, j) AS (SELECT COUNT(*), k FROM a GROUP BY k) "
    "SELECT n, x FROM b JOIN z ON j = z.k",
    "WITH l AS (SELECT k, v FROM l WHERE v > 0) SELECT COUNT(*) FROM l",
    "SELECT v FROM l WHERE k IN (WITH a AS (SELECT k FROM r) SELECT k FROM a)",
    "WITH a (y) AS (SELECT v + 1 FROM l UNION ALL SELECT w FROM r) SELECT y FROM a",
)


def _engine() -> Engine:
    engine = Engine()
    for name, columns in STREAMS.items():
        engine.execute(
            f"CREATE STREAM {name} {TYPES.format(*columns)} TIMESTAMP BY {columns[1]} RETAIN 1 h"
        )
    return engine


def _agrees_with_duckdb(query: str, **tables: list[tuple[Any, ...]]) -> None:
    columns = {name: (("k", STREAMS[name][0]), rows) for name, rows in tables.items()}
    agrees_with_duckdb(_engine(), query, columns)


@settings(max_examples=examples(100))
@given(st.sampled_from((*JOINS, *NAMED)), _rows, _rows, _rows)
def test_answers_are_duckdbs(query: str, a: Any, b: Any, c: Any) -> None:
    _agrees_with_duckdb(query, l=a, r=b, z=c)


@settings(max_examples=examples(150))
@given(st.sampled_from(QUANTIFIED), COMPARE, _rows, _rows)
def test_any_and_all_are_duckdbs(query: str, op: str, a: Any, b: Any) -> None:
    _agrees_with_duckdb(query.format(op), l=a, r=b)


LONG = (
    ("l [RANGE 5 us] SEMI JOIN r [ROWS 2] ON l.k = r.k AND w >= v",
     "l [RANGE 5 us] WHERE EXISTS (SELECT * FROM r [ROWS 2] WHERE l.k = r.k AND w >= v)"),
    ("l [ROWS 3] ANTI JOIN r [RANGE 4 us] USING (k)",
     "l [ROWS 3] WHERE NOT EXISTS (SELECT * FROM r [RANGE 4 us] WHERE l.k = r.k)"),
    ("l [RANGE 9 us] ANTI JOIN (SELECT k FROM r [NOW]) q ON l.k = q.k JOIN z [ROWS 2] ON z.x = l.v",
     "l [RANGE 9 us] JOIN z [ROWS 2] ON z.x = l.v"
     " WHERE NOT EXISTS (SELECT * FROM r [NOW] WHERE r.k = l.k)"),
    ("l [RANGE 9 us] WHERE v > ALL (SELECT w FROM r [RANGE 4 us])",
     "l [RANGE 9 us] WHERE NOT EXISTS"
     " (SELECT * FROM r [RANGE 4 us] WHERE COALESCE(NOT l.v > r.w, TRUE))"),
    ("l [ROWS 4] WHERE v <= ANY (SELECT w FROM r [RANGE 4 us] WHERE r.k = l.k)",
     "l [ROWS 4] WHERE EXISTS (SELECT * FROM r [RANGE 4 us] WHERE r.k = l.k AND l.v <= r.w)"),
)  # a form a line  # fmt: skip


@pytest.mark.parametrize("strategy", ["upa", "nt"])
@settings(max_examples=examples(40))
@given(form=st.sampled_from(LONG), history=_histories)
def test_a_persistent_query_tells_what_the_longer_form_tells(
    strategy: str, form: tuple[str, str], history: Any
) -> None:
    engine = _engine()
    for name, text in zip(("short", "long"), form, strict=True):
        engine.execute(
            f"CREATE QUERY {name} AS SELECT Rstream(l.k, v) FROM {text}"
            f" WITH (strategy = {strategy})"
        )
    play(engine, STREAMS, history)
    assert told(engine, "short") == told(engine, "long")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT r.w FROM l SEMI JOIN r ON l.k = r.k", "DS204"),
        ("SELECT * FROM l NATURAL JOIN (SELECT w FROM r) x", "DS339"),
        ("SELECT * FROM l SEMI JOIN l ON TRUE", "DS205"),
        ("SELECT v FROM l WHERE v > ALL (SELECT k, w FROM r)", "DS217"),
        ("SELECT k, COUNT(*) FROM l GROUP BY k HAVING COUNT(*) > ANY (SELECT w FROM r)", "DS320"),
        ("WITH a AS (SELECT k FROM l), a AS (SELECT k FROM l) SELECT * FROM a", "DS109"),
        ("WITH a (x) AS (SELECT * FROM l) SELECT * FROM a", "DS217"),
        ("WITH a (x, y) AS (SELECT k FROM l) SELECT * FROM a", "DS217"),
        ("WITH a AS (SELECT k FROM l ORDER BY k) SELECT * FROM a", "DS319"),
    ],
)
def test_what_can_not_be_is_refused(query: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        _engine().execute(query)
    assert caught.value.code == code


def test_names_of_names_do_not_grow_without_bound() -> None:
    """Each twice in the next: 2^40 of the first."""
    known = ["a0 AS (SELECT v FROM l)"]
    known += [f"a{n} AS (SELECT p.v FROM a{n - 1} p, a{n - 1} q)" for n in range(1, 40)]
    with pytest.raises(QueryError, match="DS105"):
        _engine().execute(f"WITH {', '.join(known)} SELECT * FROM a39")
    assert MOST < 10**5


def test_a_long_chain_of_names_is_refused_in_time() -> None:
    """Each in the next one; what no one names is not looked at."""
    known = ["a0 AS (SELECT v FROM l)"]
    known += [f"a{n} AS (SELECT v FROM a{n - 1})" for n in range(1, 3000)]
    with pytest.raises(QueryError, match="DS105"):
        _engine().execute(f"WITH {', '.join(known)} SELECT * FROM l")
    (found,) = _engine().execute(f"WITH {', '.join(known[:20])} SELECT * FROM a19")
    assert found.data.num_rows == 0


def test_words_of_joins_are_names_elsewhere() -> None:
    engine = _engine()
    for alias in ("semi", "anti", "natural", "any"):
        (found,) = engine.execute(f"SELECT {alias}.v AS {alias} FROM l {alias}")
        assert found.data.schema.names == [alias]
