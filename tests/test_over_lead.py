"""LEAD and ranks of OVER as DuckDB answers, names behind OVER, and what a row of LEAD says when."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_one
from dsms.sql.render import to_sql
from tests.bags import bag, told
from tests.effort import examples
from tests.plan_forms import comparable
from tests.stories.declared import Declared

DDL = "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
_value = st.one_of(st.none(), st.integers(0, 2))
_rows = st.lists(st.tuples(_value, _value, st.integers(0, 2)), max_size=10)
LEADS = ("LEAD(v)", "LEAD(v, 2)", "LEAD(v, 1, k)", "LEAD(v + 1, 1, 9)", "LEAD(v, 0)")
KEYS = ("", "PARTITION BY k", "PARTITION BY v, k")
Rows = list[tuple[Any, Any, int]]


def stamped(rows: Rows) -> Rows:
    """(k, v, gap) -> (k, v, instant)."""
    out, now = [], 0
    for k, v, gap in rows:
        now += gap
        out.append((k, v, now))
    return out


def _int(value: int | None) -> str:
    return "NULL::BIGINT" if value is None else f"{value}::BIGINT"


def in_duckdb(rows: Rows, call: str) -> Counter[tuple[Any, ...]]:
    listed = ", ".join(f"({_int(k)}, {_int(v)}, {n})" for n, (k, v, _) in enumerate(rows))
    if not rows:
        return Counter()
    with duckdb.connect() as duck:
        text = f"SELECT k, v, {call} FROM (VALUES {listed}) AS s(k, v, n)"
        return Counter(duck.execute(text).fetchall())


@settings(max_examples=examples(100), deadline=None)
@given(_rows, st.sampled_from(LEADS), st.sampled_from(KEYS), st.booleans())
def test_lead_is_that_of_the_rows_in_the_window(
    rows: Rows, call: str, by: str, counted: bool
) -> None:
    """At each instant, asked once and continuously."""
    engine, rows = Engine(), stamped(rows)
    window = "ROWS 3" if counted else "RANGE 3 us"
    query = f"SELECT k, v, {call} OVER ({by} ORDER BY t) AS x FROM s [{window}]"
    engine.execute(f"{DDL}; CREATE QUERY q AS {query}")
    for at in sorted({t for _, _, t in rows}):
        engine.ingest("s", [(k, v, t) for k, v, t in rows if t == at])
        engine.heartbeat("s", at)
        there = [r for r in rows if r[2] <= at]
        there = there[-3:] if counted else [r for r in there if r[2] > at - 3]
        meant = in_duckdb(there, f"{call} OVER ({by} ORDER BY n)")
        assert bag(engine, "SELECT * FROM q") == meant
        assert bag(engine, query) == meant


@settings(max_examples=examples(100), deadline=None)
@given(
    _rows,
    st.sampled_from(["RANK", "DENSE_RANK"]),
    st.sampled_from(KEYS),
    st.sampled_from(["v", "v DESC", "v NULLS FIRST", "v DESC NULLS FIRST", "k"]),
)
def test_a_rank_is_that_of_the_last_row_so_far(rows: Rows, name: str, by: str, order: str) -> None:
    engine, rows = Engine(), stamped(rows)
    rank = f"{name}() OVER ({by} ORDER BY {order})"
    engine.execute(f"{DDL}; CREATE QUERY q AS SELECT Rstream(k, v, {rank}) FROM s")
    engine.ingest("s", rows)
    engine.heartbeat("s", 1000)
    nulls = "" if "NULLS" in order else " NULLS LAST"
    call = f"{name}() OVER ({by} ORDER BY {order}{nulls}), n"
    meant: Counter[tuple[Any, ...]] = Counter()
    for n in range(len(rows)):
        found = in_duckdb(rows[: n + 1], call)
        meant[next(row[:3] for row in found if row[3] == n)] += 1
    assert bag(engine, "SELECT * FROM q") == meant


def test_a_row_says_null_until_the_next_one_comes() -> None:
    engine = Engine()
    lead = "LEAD(v) OVER (PARTITION BY k) AS x"
    engine.execute(f"{DDL}; CREATE QUERY q AS SELECT k, v, {lead} FROM s [RANGE 5 us]")
    engine.ingest("s", [(1, 10, 1), (2, 20, 1), (1, 11, 3)])
    for at in (6, 9):
        engine.heartbeat("s", at)
    assert told(engine, "q") == [
        (1, "insert", Counter([(1, 10, None), (2, 20, None)])),
        (3, "delete", Counter([(1, 10, None)])),
        (3, "insert", Counter([(1, 10, 11), (1, 11, None)])),
        (6, "delete", Counter([(1, 10, 11), (2, 20, None)])),
        (8, "delete", Counter([(1, 11, None)])),
    ]


def bound(text: str) -> Any:
    declared = Declared()
    declared.run(f"{DDL};")
    return comparable(bind_query(parse_one(text), declared.catalog))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        (
            "SELECT SUM(v) OVER w AS x FROM s WINDOW w AS (PARTITION BY k)",
            "SELECT SUM(v) OVER (PARTITION BY k) AS x FROM s",
        ),
        (
            "SELECT SUM(v) OVER (W ROWS 2 PRECEDING) AS x FROM s WINDOW w AS (PARTITION BY k)",
            "SELECT SUM(v) OVER (PARTITION BY k ROWS 2 PRECEDING) AS x FROM s",
        ),
        (
            "SELECT SUM(v) OVER b AS x FROM s WINDOW a AS (PARTITION BY k), b AS (a RANGE 2 s "
            "PRECEDING) QUALIFY ROW_NUMBER() OVER a < 3 AND x > 1",
            "SELECT SUM(v) OVER (PARTITION BY k RANGE 2 s PRECEDING) AS x FROM s QUALIFY "
            "ROW_NUMBER() OVER (PARTITION BY k) < 3 AND x > 1",
        ),
        (
            "SELECT k FROM s [RANGE 9 s] WINDOW w AS (PARTITION BY k ORDER BY v DESC) QUALIFY "
            "ROW_NUMBER() OVER w <= 3",
            "SELECT k FROM s [RANGE 9 s] ORDER BY v DESC LIMIT 3 PER k",
        ),
        (
            "SELECT x FROM (SELECT LAG(v) OVER w AS x FROM s WINDOW w AS (PARTITION BY v)) q "
            "ORDER BY SUM(x) OVER w LIMIT 3 EVERY 1 s",
            "",
        ),
        (
            "SELECT v FROM s WINDOW w AS (PARTITION BY k) ORDER BY LAG(v) OVER w LIMIT 3 EVERY 1 s",
            "SELECT v FROM s ORDER BY LAG(v) OVER (PARTITION BY k) LIMIT 3 EVERY 1 s",
        ),
    ],
)
def test_a_name_behind_over_is_what_window_says(named: str, meant: str) -> None:
    if meant:
        assert bound(f"CREATE QUERY q AS {named}") == bound(f"CREATE QUERY q AS {meant}")
        return
    with pytest.raises(Exception, match="no WINDOW of this SELECT is called w"):
        bound(f"CREATE QUERY q AS {named}")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT RANK() OVER (PARTITION BY k ORDER BY v DESC NULLS FIRST) AS x, DENSE_RANK() OVER "
        "(ORDER BY v + k) AS y FROM s [RANGE 5 s]",
    ],
)
def test_plans_are_written_as_they_were_said(text: str) -> None:
    declared = Declared()
    declared.run(f"{DDL};")
    plan = bind_query(parse_one(text), declared.catalog)  # type: ignore[arg-type]
    again = bind_query(parse_one(to_sql(plan)), declared.catalog)  # type: ignore[arg-type]
    assert comparable(again) == comparable(plan)


def test_streams_without_a_column_of_their_instants_have_a_next_row_too() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM r (k INT, v INT)")
    engine.execute("CREATE QUERY q AS SELECT v, LEAD(v) OVER (PARTITION BY k) AS x FROM r [ROWS 9]")
    for at, rows in ((5, [(1, 1), (1, 2), (2, 3)]), (6, [(1, 4)])):
        engine.advance(at)
        engine.ingest("r", rows)
    engine.advance(7)
    assert bag(engine, "SELECT * FROM q") == Counter([(1, 2), (2, 4), (3, None), (4, None)])
