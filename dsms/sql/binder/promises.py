"""PUNCTUATE: which values of which columns no row has any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsms.sql import ast
from dsms.sql.binder.changes import assigned
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.objects import column_index
from dsms.sql.binder.scope import Scope
from dsms.sql.binder.select import bind_nested
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.codes import error
from dsms.sql.expr import Call, Expr, Lit
from dsms.sql.types import NESTED, Field

FORM = "write k = 5, k IN (5, 6) or k IS NULL, joined by AND"


@dataclass(frozen=True, slots=True)
class Promise:
    """columns  of the stream, each once
    values   for each of them the constants, of its type, that no row has, in all combinations
    upto     µs, the last instant for which that is so; None: for good"""

    columns: tuple[int, ...]
    values: tuple[tuple[Expr, ...], ...]
    upto: int | None


def bind_promise(statement: ast.Punctuate, stream: StreamDef, catalog: Catalog) -> Promise:
    """What the statement promises of the stream.  QueryError DS201 an unknown column, DS218 a value
    of another type, DS335 anything but equalities with constants, one a column."""
    env = Env(Context(catalog, False, bind_nested), Scope(), "PUNCTUATE")
    found: dict[int, tuple[Expr, ...]] = {}
    for term in _terms(statement.where):
        name, items = _equality(term)
        at = column_index(stream.schema, name, "PUNCTUATE")
        column = stream.schema[at]
        if at in found:
            message = f"`{column.name}` is there twice"
            raise error("DS335", message, name, f"write {column.name} IN (...)")
        if column.type.kind in NESTED:
            message = f"`{column.name}` is a list, and rows are told by single values"
            raise error("DS335", message, name, "name another column")
        found[at] = tuple(_value(env, item, column) for item in items)
    columns = tuple(sorted(found))
    upto = None if statement.upto is None else statement.upto.micros
    return Promise(columns, tuple(found[at] for at in columns), upto)


def _terms(where: ast.Expr) -> Iterator[ast.Expr]:
    match where:
        case ast.And(operands):
            for operand in operands:
                yield from _terms(operand)
        case _:
            yield where


def _equality(term: ast.Expr) -> tuple[ast.Ident, Sequence[ast.Expr | None]]:
    """The column, and the values it is equal to; None: it is NULL."""
    match term:
        case ast.Comparison("=", ast.ColumnRef(name), value):
            return name, (value,)
        case ast.Comparison("=", value, ast.ColumnRef(name)):
            return name, (value,)
        case ast.InList(ast.ColumnRef(name), items, False):
            return name, items
        case ast.IsNull(ast.ColumnRef(name), False):
            return name, (None,)
    raise error("DS335", "a punctuation says which values its columns have", term, FORM)


def _value(env: Env, item: ast.Expr | None, column: Field) -> Expr:
    match item:
        case None:
            return Lit(None, column.type)
        case ast.NullLit():
            message = f"`{column.name}` is equal to no NULL"
            raise error("DS335", message, item, f"write {column.name} IS NULL")
        case ast.ColumnRef():
            raise error("DS335", "columns are equal to constants here", item, FORM)
    made = assigned(bind(env, item), column, item)
    constant = made.args[0] if isinstance(made, Call) and made.fn == "cast" else made
    if not isinstance(constant, Lit):
        raise error("DS335", "columns are equal to constants here", item, FORM)
    return made
