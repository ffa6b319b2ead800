"""GROUPING SETS, ROLLUP and CUBE: as DuckDB answers, and, of persistent queries, what a UNION ALL
of one query for each set tells."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from tests.bags import agrees_with_duckdb, bag, told
from tests.effort import examples

STREAM = "CREATE STREAM s (a INT, b INT, x INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
_value = st.one_of(st.none(), st.integers(0, 2))
_rows = st.lists(st.tuples(_value, _value, _value), max_size=12)
CLAUSES = (
    "ROLLUP (a)",
    "ROLLUP (a, b)",
    "CUBE (a, b)",
    "GROUPING SETS ((a), (b), ())",
    "GROUPING SETS ((a, b), (a), (a))",
    "GROUPING SETS (())",
    "a, ROLLUP (b)",
    "GROUPING SETS ((a), ()), GROUPING SETS ((b), ())",
    "ROLLUP ((a, b))",
    "GROUPING SETS (ROLLUP (a, b), CUBE (b))",
)
HAVING = ("", "HAVING COUNT(*) > 1", "HAVING SUM(x) IS NOT NULL")


def _agrees_with_duckdb(query: str, rows: list[Any]) -> None:
    engine = Engine()
    engine.execute(STREAM)
    agrees_with_duckdb(engine, query, {"s": ("abx", rows)})


TOLD = (
    "SELECT CASE WHEN GROUPING(a) = 1 THEN -1 ELSE a END, COUNT(*) FROM s GROUP BY ROLLUP (a)",
    "SELECT GROUPING(a) + 1, a, SUM(x) FROM s GROUP BY ROLLUP (a)",
    "SELECT a, COUNT(*) FROM s GROUP BY ROLLUP (a, b) HAVING GROUPING(b) = 1 AND COUNT(*) > 1",
    "SELECT a, b, COUNT(*) FROM s GROUP BY CUBE (a, b) ORDER BY GROUPING(a, b) * 2 + COUNT(*)",
)


@settings(max_examples=examples(60))
@given(st.sampled_from(TOLD), _rows)
def test_what_set_a_row_is_of_is_a_value(query: str, rows: list[Any]) -> None:
    _agrees_with_duckdb(query, rows)


def test_too_many_are_known_before_they_are_written_out() -> None:
    keys = ", ".join(f"a + {n}" for n in range(300))
    for clause in (f"CUBE ({keys})", f"GROUPING SETS ({', '.join(['CUBE (a, b, x)'] * 2000)})"):
        with pytest.raises(QueryError, match="DS358"):
            parse_one(f"SELECT COUNT(*) FROM s GROUP BY {clause}")


def test_their_words_are_not_free_for_functions() -> None:
    engine = Engine()
    for name in ("grouping", "rollup", "cube"):
        with pytest.raises(QueryError, match=r"DS2(41|13)"):
            engine.execute(f"CREATE FUNCTION {name}(x INT) AS x * 2")


@settings(max_examples=examples(150))
@given(st.sampled_from(CLAUSES), st.sampled_from(HAVING), _rows)
def test_answers_are_duckdbs(clause: str, having: str, rows: list[Any]) -> None:
    shown = [name for name in "ab" if name in clause.lower().replace("grouping", "")]
    which = f", GROUPING({', '.join(shown)})" if shown else ""
    keys = ", ".join([*shown, "COUNT(*), SUM(x)"])
    query = f"SELECT {keys}{which} FROM s GROUP BY {clause} {having}"
    _agrees_with_duckdb(query, rows)


UNIONS = (
    ("SELECT a, b, COUNT(*) AS n, MAX(x) AS x FROM s {w} GROUP BY ROLLUP (a, b)",
     "SELECT a, b, COUNT(*) AS n, MAX(x) AS x FROM s {w} GROUP BY a, b"
     " UNION ALL SELECT a, NULL, COUNT(*), MAX(x) FROM s {w} GROUP BY a"
     " UNION ALL SELECT NULL, NULL, COUNT(*), MAX(x) FROM s {w}"),
    ("SELECT a, SUM(x) AS x FROM s {w} GROUP BY GROUPING SETS ((a), (b)) HAVING COUNT(*) > 1",
     "SELECT a, SUM(x) AS x FROM s {w} GROUP BY a HAVING COUNT(*) > 1"
     " UNION ALL SELECT NULL, SUM(x) FROM s {w} GROUP BY b HAVING COUNT(*) > 1"),
)  # a form a line  # fmt: skip


@pytest.mark.parametrize("window", ["[RANGE 4 us]", "[ROWS 3]", "[RANGE 6 us SLIDE 2 us]"])
@settings(max_examples=examples(40))
@given(forms=st.sampled_from(UNIONS), rows=_rows, cut=st.integers(1, 5))
def test_a_persistent_query_tells_what_the_union_tells(
    window: str, forms: tuple[str, str], rows: list[Any], cut: int
) -> None:
    engine = Engine()
    engine.execute(STREAM)
    for name, form in zip(("short", "long"), forms, strict=True):
        query = form.format(w=window)
        if "SLIDE" not in window:  # of the whole query, whose first SELECT says it
            query = query.replace("SELECT ", "SELECT Rstream(", 1).replace(" FROM", ") FROM", 1)
        engine.execute(f"CREATE QUERY {name} AS {query}")
    for at in range(0, len(rows), cut):
        engine.ingest("s", [(*row, at + n) for n, row in enumerate(rows[at : at + cut])])
    engine.heartbeat("s", 100)
    assert told(engine, "short") == told(engine, "long")


def test_they_come_back_after_a_restart(tmp_path: Any) -> None:
    """With the groups of each set."""
    engine = Engine(tmp_path)
    engine.execute(STREAM)
    engine.execute(
        "CREATE QUERY q AS SELECT a, b, COUNT(*) AS n, GROUPING(a) AS g FROM s [RANGE 1 h]"
        " GROUP BY CUBE (a, b)"
    )
    engine.ingest("s", [(1, None, 5, 1), (1, 2, 5, 2)])
    engine.close()
    engine = Engine(tmp_path)
    engine.ingest("s", [(None, 2, 5, 3)])
    engine.heartbeat("s", 4)
    assert bag(engine, "SELECT * FROM q") == Counter(
        [(1, None, 1, 0), (1, 2, 1, 0), (None, 2, 1, 0), (1, None, 2, 0), (None, None, 1, 0),
         (None, None, 1, 1), (None, 2, 2, 1), (None, None, 3, 1)]
    )  # the keys of each set  # fmt: skip
    engine.close()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("ROLLUP (a, b)", "GROUPING SETS ((a, b), (a), ())"),
        ("CUBE (a, b)", "GROUPING SETS ((a, b), (a), (b), ())"),
        ("GROUPING SETS (a, (a, b), ROLLUP (b))", "GROUPING SETS ((a), (a, b), (b), ())"),
        ('"ROLLUP"(a)', '"ROLLUP"(a)'),
    ],
)
def test_short_forms_are_written_out(written: str, shown: str) -> None:
    statement = parse_one(f"SELECT COUNT(*) FROM s GROUP BY {written}")
    assert to_sql(statement) == f"SELECT COUNT(*) FROM s GROUP BY {shown}"
