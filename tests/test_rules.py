"""Every error of the binder: a snippet that produces it, where it points to, and what its message
says.  The snippets stand in `tests/rules`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder import (
    bind_create_function,
    bind_create_query,
    bind_create_stream,
    bind_create_table,
    bind_derived_stream,
    bind_lookup,
    bind_promise,
    bind_query,
    bind_table_statement,
    expanded,
)
from dsms.sql.binder.lookup_values import bind_values
from dsms.sql.catalog import Catalog
from dsms.sql.codes import CODES
from dsms.sql.parser import parse, parse_one
from tests.rules import RULES

SCHEMA = """
CREATE STREAM trades (sym STRING, px FLOAT, qty INT, ts TIMESTAMP) TIMESTAMP BY ts;
CREATE STREAM quotes (sym STRING, bid FLOAT, ask FLOAT, n INT);
CREATE STREAM late_trades (sym STRING, px FLOAT, qty INT, ts TIMESTAMP);
CREATE STREAM kept (sym STRING, qty INT) ARCHIVE FOR 1 h;
CREATE STREAM prices (sym STRING, px FLOAT, ts TIMESTAMP) TIMESTAMP BY ts KEY (sym);
CREATE TABLE listed (sym STRING PRIMARY KEY, name STRING, lot INT) NON RETROACTIVE;
CREATE TABLE limits (sym STRING PRIMARY KEY, top INT NOT NULL, since TIMESTAMP, share DECIMAL(4,2));
CREATE QUERY busy AS SELECT sym, COUNT(*) AS n FROM trades [RANGE 10] GROUP BY sym;
CREATE QUERY first AS SELECT sym FROM trades [RANGE 10 SLIDE 5] ORDER BY px LIMIT 3;
CREATE QUERY paced AS SELECT sym FROM trades EVERY 5 s;
CREATE QUERY ready AS SELECT SUM(qty) FROM trades [RANGE 10] ON LOOKUP;
CREATE QUERY above AS SELECT sym FROM trades [RANGE 10] GROUP BY sym HAVING COUNT(*) > ? ON LOOKUP;
CREATE AGGREGATE gm(x FLOAT) AS EXP(SUM(LN(x)) / COUNT(x));
CREATE AGGREGATE share(x FLOAT, q FLOAT) AS QUANTILE(x, q) / MAX(x);
CREATE FUNCTION plus(x INT, y INT) AS x + y;
CREATE FUNCTION twice(x INT) AS x + x;
"""


def declared(text: str) -> Catalog:
    catalog = Catalog()
    for statement in parse(text):
        declare(statement, catalog)
    return catalog


def declare(statement: ast.Statement, catalog: Catalog) -> None:
    match statement:
        case ast.CreateStream():
            stream = (
                bind_create_stream(statement, catalog)
                if statement.query is None
                else bind_derived_stream(statement, catalog, "")[0]
            )
            catalog.streams[catalog.key(stream.name)] = stream
        case ast.CreateTable():
            table = bind_create_table(statement, catalog)
            catalog.tables[catalog.key(table.name)] = table
        case ast.CreateFunction():
            function = bind_create_function(statement, catalog)
            catalog.functions[function.name.casefold()] = function
        case ast.CreateQuery():
            query, _ = bind_create_query(statement, catalog)
            catalog.queries[catalog.key(query.name)] = query


def run(text: str, catalog: Catalog) -> None:
    """Binds one statement of any kind.  A leading ONCE makes a SELECT a one-time query."""
    once = text.startswith("ONCE ")
    statement = expanded(parse_one(text.removeprefix("ONCE ")), catalog)
    if isinstance(statement, ast.SelectStatement):
        bind_query(statement, catalog, persistent=not once)
    elif isinstance(statement, ast.Lookup):
        bind_values(statement, bind_lookup(statement, catalog), catalog)
    elif isinstance(statement, ast.Punctuate):
        bind_promise(statement, catalog.streams[catalog.key(statement.name.text)], catalog)
    elif isinstance(statement, ast.Insert | ast.Update | ast.Delete):
        bind_table_statement(statement, catalog)
    else:
        declare(statement, catalog)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return declared(SCHEMA)


@pytest.mark.parametrize(
    ("code", "text", "message", "hint"), RULES, ids=[f"{r[0]}: {r[1][:60]}" for r in RULES]
)
def test_rule(code: str, text: str, message: str, hint: str | None, catalog: Catalog) -> None:
    marked = text.removeprefix("ONCE ")
    with pytest.raises(QueryError) as caught:
        run(text.replace("^", ""), catalog)
    error = caught.value
    assert (error.code, message in error.message) == (code, True), error
    assert (error.line, error.column) == (1, marked.index("^") + 1), error
    assert hint is None or hint in (error.hint or ""), error


# of what only the engine finds out, and where they are provoked
ENGINE = {
    "DS246": "test_python_functions_wrong.py",
    "DS247": "test_python_functions_wrong.py",
    "DS248": "test_python_functions_wrong.py",
    "DS249": "test_python_cutting.py",
    "DS333": "test_set_since.py",
    "DS363": "test_letting_go.py",
    "DS336": "test_punctuations.py",
    "DS365": "test_punctuations.py",
}


def test_every_code_has_a_snippet() -> None:
    assert {r[0] for r in RULES} == set(CODES) - set(ENGINE)
    for code, file in ENGINE.items():
        assert code in (Path(__file__).parent / file).read_text()
