"""CREATE ... IF NOT EXISTS of something that is there: what of it the statement says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from dsms.api import Done
from dsms.errors import DsmsError
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.binder import bind_create_stream, bind_create_table, bind_derived_stream
from dsms.sql.catalog import Catalog, QueryDef, StreamDef, TableDef
from dsms.sql.parser import parse_one
from dsms.sql.types import Schema

Definition = StreamDef | TableDef | QueryDef
Create = ast.CreateStream | ast.CreateTable | ast.CreateQuery
PLACES = ("timestamp", "index_by", "key")  # fields that hold positions of columns
UNTAKEN = "\0"  # no name holds it, so what is bound under one that does meets nothing
# what is said of fields that no clause is called after; None: nothing
SAID: dict[str, str | None] = {
    "name": None,
    "place": None,
    "schema": None,
    "sql": None,
    "derived": None,
    "current": None,
    "feeds": None,
    "computed": "what is computed",
    "places": None,
    "timestamp": "TIMESTAMP BY",
    "key": "PRIMARY KEY",
    "retroactive": "NON RETROACTIVE",
    "options": "WITH",
    "archive_for": "ARCHIVE FOR",
    "archive_cluster": "CLUSTER BY",
    "archive_every": "UPDATE EVERY",
    "confidential_for": "CONFIDENTIAL FOR",
    "confidential_to": "CONFIDENTIAL TO",
}


def there_already(runtime: Runtime, found: Definition, statement: Create, catalog: Catalog) -> Done:
    """Nothing happens; a note tells whoever owns it how the statement differs from it."""
    kind = type(statement).__name__.removeprefix("Create").lower()
    message = f"{kind} {found.name} is there already"
    key = found.home
    if catalog.user is not None and not runtime.rights.owns(catalog.user, key):
        return Done(message)
    unlike = list(_differences(found, statement, catalog))
    if not unlike:
        return Done(message)
    return Done(message, (f"it stays as it is, and the statement differs: {', '.join(unlike)}",))


def _differences(found: Definition, statement: Create, catalog: Catalog) -> Iterator[str]:
    if isinstance(statement, ast.CreateQuery):
        if _as_compared(parse_one(found.sql)) != _as_compared(statement):
            yield "its text is another"
        return
    try:
        wanted = _wanted(statement, catalog)
    except DsmsError as problem:
        yield f"it would be refused ({problem.code})"
        return
    yield from _columns(found.schema, wanted.schema)
    for field in fields(found):
        what = SAID.get(field.name, field.name.replace("_", " ").upper())
        if field.name == "key" and isinstance(found, StreamDef):
            what = "KEY"
        if what is not None and _said(found, field.name) != _said(wanted, field.name):
            yield what
    if isinstance(statement, ast.CreateStream):
        before = parse_one(found.sql)
        assert isinstance(before, ast.CreateStream)
        if before.query != statement.query:
            yield "its SELECT"


def _said(definition: Definition, field: str) -> object:
    """What it says there; columns by their names."""
    value = getattr(definition, field)
    if field not in PLACES or value is None:
        return value
    places = (value,) if isinstance(value, int) else value
    return [definition.schema[i].name.casefold() for i in places]


def _wanted(
    statement: ast.CreateStream | ast.CreateTable, catalog: Catalog
) -> StreamDef | TableDef:
    """What would be declared if there were nothing of that name."""
    name = replace(statement.name, text=statement.name.text + UNTAKEN)
    match replace(statement, name=name, if_not_exists=False):
        case ast.CreateTable() as table:
            return bind_create_table(table, catalog)
        case ast.CreateStream() as stream:
            if stream.query is not None:
                return bind_derived_stream(stream, catalog, "")[0]
            return bind_create_stream(stream, catalog)


def _as_compared(statement: ast.Statement) -> ast.Statement:
    assert isinstance(statement, ast.CreateQuery)
    return replace(statement, name=ast.Ident(""), if_not_exists=False)


def _columns(found: Schema, wanted: Schema) -> Iterator[str]:
    there = {f.name.casefold(): f for f in found}
    asked = {f.name.casefold(): f for f in wanted}
    yield from (f"no column {f.name}" for key, f in there.items() if key not in asked)
    yield from (f"a column {f.name}" for key, f in asked.items() if key not in there)
    for key in (key for key in there if key in asked):
        before, after = there[key], asked[key]
        if before.type != after.type:
            yield f"{before.name} {after.type} where there is {before.type}"
        elif before.default != after.default:
            yield f"the DEFAULT of {before.name}"
        elif before.nullable != after.nullable:
            yield f"{before.name} {'NULL' if after.nullable else 'NOT NULL'}"
    if there.keys() == asked.keys() and list(there) != list(asked):
        yield "the order of its columns"
