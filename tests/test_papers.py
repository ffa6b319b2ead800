"""Every CQL statement printed in the papers parses as printed, means what the paper says, and
prints back."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsms.sql import ast
from dsms.sql.parser import parse, parse_one, split_statements
from dsms.sql.printer import to_sql

PAPERS = (Path(__file__).parent / "golden" / "papers.cql").read_text(encoding="utf-8")
MINUTE = 60_000_000


def _select(text: str) -> ast.Select:
    statement = parse_one(text)
    assert isinstance(statement, ast.SelectStatement)
    assert isinstance(statement.query.body, ast.Select)
    return statement.query.body


@pytest.mark.parametrize("text", split_statements(PAPERS))
def test_parses_as_printed_and_prints_back(text: str) -> None:
    statement = parse_one(text)
    assert isinstance(statement, ast.SelectStatement)
    assert parse_one(to_sql(statement)) == statement


def test_none_is_lost() -> None:
    assert len(parse(PAPERS)) == len(split_statements(PAPERS)) == 34


def test_window_on_the_output() -> None:
    select = _select(
        "SELECT Wstream(*)[ROWS 10] FROM Stream1[RANGE 1 min], Stream2[RANGE 1 min] WHERE S1.a = "
        "S2.a"
    )
    assert select.output == ast.Output(ast.OutputKind.WSTREAM, False, ast.RowsWindow(10))
    assert select.items == (ast.StarItem(),)
    minute = ast.RangeWindow(ast.Duration(MINUTE, ast.Unit.MINUTE))
    assert [item.window for item in select.from_ if isinstance(item, ast.TableRef)] == [
        minute,
        minute,
    ]


def test_sum_of_sums_nested_and_by_wstream() -> None:
    outer = _select(
        "SELECT SUM(a) FROM (SELECT SUM(a) FROM Stream1[RANGE 6 sec SLIDE 6 sec INTERNAL]) [ROWS "
        "10]"
    )
    (subquery,) = outer.from_
    assert isinstance(subquery, ast.SubqueryRef)
    assert subquery.alias is None
    assert subquery.window == ast.RowsWindow(10)
    assert isinstance(subquery.query.body, ast.Select)
    six = ast.Duration(6_000_000)
    (stream,) = subquery.query.body.from_
    assert isinstance(stream, ast.TableRef)
    assert stream.window == ast.RangeWindow(six, internal=True, slide=ast.Slide(six))

    short = _select("SELECT SUM(Wstream(SUM(a))[ROWS 10]) FROM Stream1[RANGE 6 sec SLIDE 6 sec]")
    total = ast.FuncCall(ast.Ident("SUM"), (ast.ColumnRef(ast.Ident("a")),))
    of_totals = ast.FuncCall(ast.Ident("SUM"), (ast.WstreamArg(total, ast.RowsWindow(10)),))
    assert short.items == (ast.SelectItem(of_totals),)
    assert short.output is None


def test_restore_and_distinct_inside_the_output_function() -> None:
    assert _select(
        "SELECT Istream-restore(*) FROM S [RANGE 1 min SLIDE 10 sec]"
    ).output == ast.Output(ast.OutputKind.ISTREAM, True)
    select = _select("SELECT Rstream(DISTINCT source_IP_address) FROM Link1 [RANGE 2000]")
    assert select.distinct
    assert select.output == ast.Output(ast.OutputKind.RSTREAM)


def test_window_at_the_end_and_as_another_word_for_range() -> None:
    assert _select(
        "SELECT * FROM A, B WHERE A.x = B.x WINDOW 30 seconds"
    ).window == ast.RangeWindow(ast.Duration(30_000_000))
    assert _select("SELECT * FROM A WINDOW 10000").window == ast.RangeWindow(
        ast.Duration(10_000_000_000)
    )
    window = _select("SELECT MEDIAN(length) FROM S [WINDOW 10 min SLIDE 2 min]").from_[0]
    assert window == _select("SELECT 1 FROM S [RANGE 10 min SLIDE 2 min]").from_[0]


def test_negation_is_a_not_exists_over_a_query() -> None:
    where = _select(
        "SELECT Rstream(*) FROM S1 WHERE NOT EXISTS (SELECT Rstream(*) FROM S3 WHERE S3.a = S1.a)"
    ).where
    assert isinstance(where, ast.Not)
    assert isinstance(where.operand, ast.Exists)
