"""Declared objects and their columns, as statements name them."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.catalog import QueryDef, StreamDef, TableDef
from dsms.sql.codes import error, suggest
from dsms.sql.types import Schema


def kind_of(found: StreamDef | TableDef | QueryDef) -> str:
    """stream, table or query."""
    return {StreamDef: "stream", TableDef: "table", QueryDef: "query"}[type(found)]


def column_index(schema: Schema, name: ast.Ident, where: str) -> int:
    """The position of a column of one's own; DS201."""
    for i, f in enumerate(schema):
        if name.matches(f.name):
            return i
    hint = suggest(name.text, [f.name for f in schema], "columns")
    raise error("DS201", f"{where}: unknown column `{name.text}`", name, hint)
