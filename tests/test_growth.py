"""Text that functions make is bounded before it is made: for a row, for an evaluation, and for a
query or statement."""

from __future__ import annotations

import pyarrow as pa
import pytest

import dsms
from dsms.errors import DsmsError
from dsms.operators.expressions import ErrorCounter, compile_expr, made
from dsms.sql import functions
from dsms.sql.expr import Col, Expr, Lit
from dsms.sql.types import INT, STRING
from tests.memory import memory

MIB = 1 << 20


def fn(name: str, *args: Expr) -> Expr:
    return functions.call(name, args)


NAME, K = Col(0, STRING), Col(1, INT)
MILLION = Lit(1_000_000, INT)
LONG = fn("repeat", NAME, MILLION)  # a million bytes for each of the rows below
GROWN = {
    "replace": fn("replace", LONG, Lit("a", STRING), fn("repeat", Lit("b", STRING), MILLION)),
    "replace by a column": fn("replace", LONG, Lit("a", STRING), LONG),
    "concat": fn("concat", *[LONG] * 20),
    "concat_ws": fn("concat_ws", LONG, *[NAME] * 20),
    "regexp_replace": fn("regexp_replace", LONG, Lit("a", STRING), Lit("b" * 100, STRING)),
    "regexp_replace of nothing": fn(
        "regexp_replace", LONG, Lit("b*", STRING), Lit("c" * 100, STRING)
    ),
    "hex": fn("hex", fn("hex", fn("hex", fn("hex", fn("hex", LONG))))),
    "lpad": fn("lpad", fn("concat", *[LONG] * 16), MILLION, Lit("é", STRING)),
    "rpad": fn("rpad", fn("concat", *[LONG] * 16), MILLION, Lit("é", STRING)),
}
ROWS = [pa.array(["a"] * 3), pa.array([1, 2, 3])]


@pytest.mark.parametrize("name", GROWN)
def test_a_text_that_would_be_too_long_is_an_error_of_its_row(name: str) -> None:
    errors = ErrorCounter()
    with memory(1500 * MIB):
        found = compile_expr(fn("length", GROWN[name]))(ROWS, 3, errors)
    assert found.null_count == 3
    assert errors.by_code == {"DS705": 3}


def test_rows_that_are_not_too_long_are_as_ever() -> None:
    rows = [pa.array(["a", None, "", "a" * 20, "é"]), pa.array([1, 2, 3, 4, 5])]
    errors = ErrorCounter()
    found = compile_expr(fn("length", GROWN["concat"]))(rows, 5, errors)
    assert found.to_pylist() == [None, None, 0, None, None]
    # of two rows the texts to put together are too long already
    assert errors.by_code == {"DS705": 1 + 2 * 20}


def test_many_rows_take_turns_and_are_counted_once() -> None:
    n = 500
    rows = [pa.array(["a"] * (n - 1) + ["aa"]), pa.array(range(n))]
    errors = ErrorCounter()
    with memory(600 * MIB):
        found = compile_expr(fn("length", fn("upper", LONG)))(rows, n, errors)
    assert found.to_pylist() == [1_000_000] * (n - 1) + [None]
    assert errors.count == 1 and errors.by_code == {"DS705": 1}


def test_a_long_constant_is_not_copied_for_all_rows_at_once() -> None:
    n = 1500
    rows = [pa.array(["a"] * n), pa.array(range(n))]
    text = fn("concat", Lit("b" * 1_000_000, STRING), NAME)
    case = fn("case", fn("gt", K, Lit(9, INT)), text, fn("repeat", Lit("c", STRING), MILLION))
    with memory(600 * MIB):
        found = compile_expr(fn("octet_length", case))(rows, n, ErrorCounter())
    assert found.to_pylist() == [1_000_000] * 10 + [1_000_001] * (n - 10)


def test_expressions_of_many_nodes_are_evaluated_by_few_rows_at_a_time() -> None:
    n = 1 << 15
    rows = [pa.array(["a"] * n), pa.array(range(n))]
    wide = fn("greatest", *(fn("add", K, Lit(i, INT)) for i in range(3000)))
    with memory(600 * MIB):
        found = compile_expr(wide)(rows, n, ErrorCounter())
    assert found.to_pylist() == list(range(2999, n + 2999))


def test_one_row_may_not_make_much_in_many_functions() -> None:
    parts = [fn("length", fn("repeat", NAME, Lit(1_000_000 - i, INT))) for i in range(300)]
    errors = ErrorCounter()
    found = compile_expr(fn("greatest", *parts))(ROWS, 3, errors)
    assert found.to_pylist() == [1_000_000] * 3  # the first have had their turn
    assert set(errors.by_code) == {"DS705"}
    assert made.ONE_ROW < 300_000_000


def test_a_constant_that_grows_is_not_made_when_the_statement_is_bound() -> None:
    engine = dsms.Engine()
    for text in (
        "repeat('a', 2000000000)",
        "replace(repeat('a', 1000000), 'a', repeat('b', 1000000))",
    ):
        with memory(600 * MIB), pytest.raises(DsmsError) as problem:
            engine.execute(f"SELECT {text}")
        assert problem.value.code == "DS705"
    many = ", ".join(f"length(repeat('a', {i})) AS c{i}" for i in range(999_500, 1_000_000))
    with memory(600 * MIB):
        (rows,) = engine.execute(f"SELECT {many}")
    assert rows.data.num_columns == 500


def engine_with_rows(settings: dsms.Settings) -> dsms.Engine:
    engine = dsms.Engine(settings=settings)
    engine.execute("CREATE STREAM s (name STRING, k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 DAY")
    return engine


def test_what_a_statement_makes_for_its_rows_is_held_against_statement_bytes() -> None:
    engine = engine_with_rows(dsms.Settings(statement_bytes=32 * MIB))
    engine.ingest("s", [("a", i, i) for i in range(100)])
    with pytest.raises(DsmsError) as problem:
        engine.execute("SELECT upper(repeat(name, 1000000)) FROM s [RANGE 1 DAY]")
    assert problem.value.code == "DS633"
    (rows,) = engine.execute("SELECT sum(length(repeat(name, 1000000))) FROM s [RANGE 1 DAY]")
    assert rows.data.column(0).to_pylist() == [99_000_000]


def test_what_a_query_makes_for_a_batch_is_held_against_its_state() -> None:
    engine = engine_with_rows(dsms.Settings(state_bytes=32 * MIB))
    engine.execute("CREATE QUERY long AS SELECT ISTREAM(repeat(name, 1000000) AS x) FROM s [NOW]")
    engine.execute(
        "CREATE QUERY short AS SELECT ISTREAM(length(repeat(name, 1000000)) AS x) FROM s [NOW]"
    )
    engine.ingest("s", [("a", i, i) for i in range(100)])
    (shown,) = engine.execute("SHOW QUERIES FULL")
    found = {row["query"]: row for row in shown.data.to_pylist()}
    assert found["short"]["status"] == "running" and found["short"]["errors"] == 0
    assert "DS630" in found["long"]["status"]
