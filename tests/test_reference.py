"""The examples of grammar/reference.md: they parse, bind, print back, and the wrong ones fail as
they say.

Fences: ```sql runs as part of one script; ```sql error fails, line by line, with the code quoted;
```sql parse is for what parses and can't be run yet.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dsms.api import Rows
from dsms.commands.settings import set_setting
from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql import ast, grammar
from dsms.sql.binder import (
    OPTIONS,
    bind_create_function,
    bind_create_query,
    bind_create_stream,
    bind_create_table,
    bind_derived_stream,
    bind_lookup,
    bind_promise,
    bind_query,
    expanded,
)
from dsms.sql.binder.changes import bind_table_statement
from dsms.sql.binder.lookup_values import bind_values
from dsms.sql.catalog import Catalog
from dsms.sql.functions import aggregate_names, scalar_names
from dsms.sql.parser import parse, parse_one, split_statements
from dsms.sql.printer import to_sql

SETTINGS_ONLY = Engine()  # SET is checked where it is carried out
REFERENCE = (Path(__file__).parents[1] / "grammar" / "reference.md").read_text(encoding="utf-8")
BLOCKS = [
    (m[1], m[2])
    for m in re.finditer(r"^```sql ?(\w*)\n(.*?)^```$", REFERENCE, re.MULTILINE | re.DOTALL)
]
RIGHT = [text for kind, block in BLOCKS if kind != "error" for text in split_statements(block)]
RUN = [text for kind, block in BLOCKS if kind == "" for text in split_statements(block)]
WRONG = [line for kind, block in BLOCKS if kind == "error" for line in block.strip().splitlines()]


def _bind(statement: ast.Statement, catalog: Catalog) -> None:
    statement = expanded(statement, catalog)
    match statement:
        case ast.CreateFunction():
            made = bind_create_function(statement, catalog)
            catalog.functions[made.name.casefold()] = made
        case ast.CreateStream(name, query=ast.Query()):
            stream, feeder, _ = bind_derived_stream(statement, catalog, "")
            catalog.streams[catalog.key(name.text)] = stream
            if feeder is not None:
                catalog.queries[catalog.key(feeder.name)] = feeder
        case ast.CreateStream(name):
            catalog.streams[catalog.key(name.text)] = bind_create_stream(statement, catalog)
        case ast.CreateTable(name):
            catalog.tables[catalog.key(name.text)] = bind_create_table(statement, catalog)
        case ast.CreateQuery(name):
            catalog.queries[catalog.key(name.text)], _ = bind_create_query(statement, catalog)
        case ast.SelectStatement():
            bind_query(statement, catalog, persistent=False)
        case ast.Insert() | ast.Update() | ast.Delete():
            bind_table_statement(statement, catalog)
        case ast.Explain(ast.SelectStatement() as target):
            bind_query(target, catalog)
        case ast.Punctuate(name):
            bind_promise(statement, catalog.streams[catalog.key(name.text)], catalog)
        case ast.Lookup():
            bind_values(statement, bind_lookup(statement, catalog), catalog)
        case ast.Set():
            set_setting(SETTINGS_ONLY.runtime, statement)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """What the script of all examples declares."""
    made = Catalog()
    for text in RUN:
        _bind(parse_one(text), made)
    return made


def test_there_are_examples_of_every_statement() -> None:
    kinds = {type(parse_one(text)).__name__ for text in RIGHT}
    assert kinds == {kind.__name__ for kind in ast.Statement.__subclasses__()}


@pytest.mark.parametrize("text", RIGHT)
def test_example_parses_and_prints_back(text: str) -> None:
    statement = parse_one(text)
    assert parse_one(to_sql(statement)) == statement


def test_examples_bind_as_one_script(catalog: Catalog) -> None:
    assert {"packets", "hosts", "traffic"} <= {*catalog.streams, *catalog.tables, *catalog.queries}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_example_fails_as_it_says(line: str, catalog: Catalog) -> None:
    text, _, code = line.partition("-- ")
    assert re.fullmatch(r"DS[123]\d\d", code.strip())
    with pytest.raises(QueryError) as caught:
        for statement in parse(text):
            _bind(statement, catalog)
    assert caught.value.code == code.strip()
    assert caught.value.line == 1


@pytest.fixture(scope="module")
def engine() -> Engine:
    """An engine that has run all examples."""
    made = Engine()
    for text in RUN:
        made.execute(text)
    return made


def test_examples_run(engine: Engine) -> None:
    registered = {
        statement.name.text
        for text in RUN
        if isinstance(statement := parse_one(text), ast.CreateQuery)
        or (isinstance(statement, ast.CreateStream) and (statement.query or statement.key))
    }
    assert len(engine.runtime.queries) == len(registered) - 1  # one is dropped again


@pytest.mark.parametrize(
    "what", ["STREAMS", "QUERIES FULL", "WINDOWS", "SHARING", "ARCHIVES", "SESSIONS", "MEMORY"]
)
def test_columns_of_show_are_explained(what: str, engine: Engine) -> None:
    (line,) = (row for row in REFERENCE.splitlines() if row.startswith(f"| SHOW {what} |"))
    (rows,) = engine.execute(f"SHOW {what}")
    assert isinstance(rows, Rows)
    assert set(rows.data.schema.names) - {
        "stream",
        "query",
        "holds",
        "subwindow",
        "subwindows",
    } <= set(re.findall(r"`(\w+)`", line))


@pytest.mark.parametrize("line", WRONG)
def test_wrong_example_fails_in_the_engine_too(line: str, engine: Engine) -> None:
    text, _, code = line.partition("-- ")
    with pytest.raises(QueryError) as caught:
        engine.execute(text)
    assert caught.value.code == code.strip()
    assert (caught.value.line, caught.value.statement) == (1, 0)


def test_all_words_functions_and_codes_are_mentioned() -> None:
    words = set(re.findall(r"[A-Z]+", REFERENCE))
    assert {word for word in grammar.keywords() if "-" not in word} <= words
    assert {"Istream-restore", "Rstream-restore", "Wstream-restore"} <= set(
        re.findall(r"[\w-]+", REFERENCE)
    )
    prose = re.sub(r"^```.*?^```$", "", REFERENCE, flags=re.MULTILINE | re.DOTALL)
    quoted = set(re.findall(r"`([^`\n]+)`", prose))
    assert {*scalar_names(operators=False), *aggregate_names()} - {"count_star", "case"} <= quoted
    parser_codes = set(
        re.findall(
            r"DS1\d\d", "".join(p.read_text() for p in Path(grammar.__file__).parent.rglob("*.py"))
        )
    )
    assert parser_codes <= set(re.findall(r"^\| (DS1\d\d)", REFERENCE, re.MULTILINE))
    named = set(re.findall(r"`(\w+) = ", prose))
    assert named - {"option"} <= OPTIONS.keys()


def test_reserved_words_are_listed_exactly() -> None:
    listed = re.search(
        r"^Reserved; as names they are quoted: `([A-Z\s]+)`", REFERENCE, re.MULTILINE
    )
    assert listed is not None
    assert set(listed[1].split()) == grammar.reserved()
    soft = re.search(r"^Keywords that may be names: `([A-Z\s]+)`", REFERENCE, re.MULTILINE)
    assert soft is not None
    assert (
        set(soft[1].split()) == {w for w in grammar.keywords() if "-" not in w} - grammar.reserved()
    )
