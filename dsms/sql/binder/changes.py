"""INSERT, UPDATE and DELETE: typed rows, expressions and conditions over a table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from dsms.sql import ast
from dsms.sql.binder.calls import cast
from dsms.sql.binder.context import Context, project
from dsms.sql.binder.expressions import Env, bind, bind_condition
from dsms.sql.binder.objects import column_index, kind_of
from dsms.sql.binder.query import bind_query
from dsms.sql.binder.scope import Scope, relation_scope
from dsms.sql.binder.select import bind_nested
from dsms.sql.catalog import Catalog, TableDef
from dsms.sql.codes import error, suggest
from dsms.sql.expr import Col, Expr, Lit
from dsms.sql.functions import common_type
from dsms.sql.logical import Node
from dsms.sql.signatures import same_names
from dsms.sql.types import DATE, NULL, TIMESTAMP, Field, Kind, Type
from dsms.typed_texts import DAY


@dataclass(frozen=True, slots=True)
class Merge:
    """What ON CONFLICT makes of a row that is there: new values (column index, expression over the
    columns of that row and behind them those of the new one) if it passes `predicate`; without
    assignments it stays."""

    assignments: tuple[tuple[int, Expr], ...]
    predicate: Expr | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """Rows for a table, one expression (without columns) per column of the table; or a one-time
    query's rows, whose columns are those of the table in order.  `at`: the instant (µs) it happens
    at, None: as the engine says.  `conflict`: what becomes of rows whose key is there already;
    None: an error."""

    table: TableDef
    rows: tuple[tuple[Expr, ...], ...]
    query: Node | None = None
    at: int | None = None
    conflict: Merge | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """New values (column index, expression over the table's columns) for the rows that pass
    `predicate` (None: all)."""

    table: TableDef
    assignments: tuple[tuple[int, Expr], ...]
    predicate: Expr | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """The rows that pass `predicate` (None: all) go."""

    table: TableDef
    predicate: Expr | None = None
    at: int | None = None


Change = Insert | Update | Delete


def bind_table_statement(
    statement: ast.Insert | ast.Update | ast.Delete, catalog: Catalog
) -> Change:
    """The typed change of a table."""
    table = _table(statement, catalog)
    at = None if statement.at is None else statement.at.micros
    ctx = Context(catalog, False, bind_nested)
    match statement:
        case ast.Insert():
            return _insert(ctx, statement, table, at)
        case ast.Update():
            env = Env(ctx, relation_scope(table.schema, table.name), "UPDATE")
            return Update(
                table,
                _assignments(env, statement.assignments, table),
                _predicate(env, statement.where),
                at,
            )
        case ast.Delete():
            env = Env(ctx, relation_scope(table.schema, table.name), "DELETE")
            return Delete(table, _predicate(env, statement.where), at)


def _table(statement: ast.Insert | ast.Update | ast.Delete, catalog: Catalog) -> TableDef:
    name = statement.table
    found = catalog.find(name.text, name.quoted)
    if isinstance(found, TableDef):
        return found
    if found is None:
        hint = suggest(name.text, [t.name for t in catalog.tables.values()], "tables")
        raise error(
            "DS203",
            f"unknown table `{name.text}`",
            name,
            hint or "declare it first: CREATE TABLE ...",
        )
    verb = type(statement).__name__.upper()
    hint = (
        "rows enter a stream by ingest (dsms load, or a client)"
        if kind_of(found) == "stream"
        else "name a table"
    )
    raise error(
        "DS216", f"{verb} changes tables, and {found.name} is a {kind_of(found)}", name, hint
    )


def _predicate(env: Env, where: ast.Expr | None) -> Expr | None:
    return None if where is None else bind_condition(env, where)


# ---------------------------------------------------------------- INSERT


def _insert(ctx: Context, statement: ast.Insert, table: TableDef, at: int | None) -> Insert:
    targets = _targets(statement, table)
    merge = None if statement.conflict is None else _merge(ctx, statement.conflict, table)
    if statement.query is not None:
        rows_of = _rows_of(statement, statement.query, table, targets, ctx.catalog)
        return Insert(table, (), rows_of, at, merge)
    env = Env(ctx, Scope(), "VALUES")
    rows = [_row(env, statement, row, table, targets) for row in statement.rows]
    return Insert(table, tuple(rows), None, at, merge)


def _merge(ctx: Context, conflict: ast.Conflict, table: TableDef) -> Merge:
    key = [column_index(table.schema, name, "ON CONFLICT") for name in conflict.key]
    own = ", ".join(table.schema[i].name for i in table.key)
    if not table.key:
        message = f"ON CONFLICT: table {table.name} has no PRIMARY KEY, so no row is in the way"
        raise error("DS231", message, conflict, "leave it out")
    if (key or conflict.assignments) and sorted(key) != sorted(table.key):
        message = f"ON CONFLICT names the PRIMARY KEY of {table.name}, which is ({own})"
        raise error("DS231", message, conflict, f"write ON CONFLICT ({own})")
    new = relation_scope(table.schema, "excluded").shifted(len(table.schema))
    new = replace(new, columns=tuple(replace(c, hidden=True) for c in new.columns))
    env = Env(ctx, relation_scope(table.schema, table.name).joined(new), "ON CONFLICT")
    for assignment in conflict.assignments:
        if column_index(table.schema, assignment.column, "ON CONFLICT") in table.key:
            message = f"`{assignment.column.text}` is of the PRIMARY KEY, by which the row was met"
            raise error("DS232", message, assignment.column, "leave it out: it is as it was")
    assignments = _assignments(env, conflict.assignments, table)
    return Merge(assignments, _predicate(env, conflict.where))


def _targets(statement: ast.Insert, table: TableDef) -> list[int]:
    """The table's columns that get values, in the order of the statement."""
    if not statement.columns:
        return list(range(len(table.schema)))
    found = [column_index(table.schema, name, "INSERT") for name in statement.columns]
    for at, name in enumerate(statement.columns):
        if found[at] in found[:at]:
            raise error(
                "DS212", f"column `{name.text}` is named twice", name, "name each column once"
            )
    return found


def _row(
    env: Env,
    statement: ast.Insert,
    row: Sequence[ast.Expr],
    table: TableDef,
    targets: Sequence[int],
) -> tuple[Expr, ...]:
    if len(row) != len(targets):
        raise _count_error(statement, len(row), table, targets, row[0])
    values = {
        i: assigned(bind(env, node), table.schema[i], node)
        for i, node in zip(targets, row, strict=True)
    }
    return tuple(values.get(i) or _missing(f, statement) for i, f in enumerate(table.schema))


def _rows_of(
    statement: ast.Insert,
    query: ast.Query,
    table: TableDef,
    targets: Sequence[int],
    catalog: Catalog,
) -> Node:
    bound = bind_query(query, catalog, persistent=False)
    if len(bound.schema) != len(targets):
        raise _count_error(statement, len(bound.schema), table, targets, query)
    have = {
        i: Col(n, f.type, f.name)
        for n, (i, f) in enumerate(zip(targets, bound.schema, strict=True))
    }
    exprs = [
        assigned(have[i], f, query) if i in have else _missing(f, statement)
        for i, f in enumerate(table.schema)
    ]
    return project(bound.child, exprs, [f.name for f in table.schema])


def _count_error(
    statement: ast.Insert, count: int, table: TableDef, targets: Sequence[int], at: ast.Node
) -> Exception:
    names = ", ".join(table.schema[i].name for i in targets)
    message = f"{count} values for {len(targets)} columns ({names})"
    return error(
        "DS217",
        message,
        at,
        "give one value per column, or name the columns: INSERT INTO t (a, b) ...",
    )


def _missing(column: Field, statement: ast.Insert) -> Expr:
    if not column.nullable:
        message = f"column {column.name} is NOT NULL and gets no value"
        raise error(
            "DS218",
            message,
            statement.columns[-1] if statement.columns else statement,
            "give it a value",
        )
    return Lit(None, column.type)


# ---------------------------------------------------------------- values


def assigned(value: Expr, column: Field, at: ast.Node) -> Expr:
    """The value as the column's type: numbers convert (not FLOAT to INT), NULL takes the type;
    DS218."""
    if value.type == NULL or (isinstance(value, Lit) and value.value is None):
        if not column.nullable:
            raise error("DS218", f"column {column.name} is NOT NULL", at, "give it a value")
        return Lit(None, column.type)
    if column.type == DATE and is_midnight(value):
        return Lit(value.value, DATE)
    if value.type == column.type or _converts(value.type, column.type):
        return cast(value, column.type)
    message = f"column {column.name} is {column.type}, and the value is {value.type}"
    raise error("DS218", message, at, _assign_hint(column.type))


def is_midnight(value: Expr) -> TypeGuard[Lit]:
    """Whether it is a constant instant at which a day begins, as a program's date is one."""
    return (
        isinstance(value, Lit)
        and value.type == TIMESTAMP
        and isinstance(value.value, int)
        and value.value % DAY == 0
    )


def _converts(source: Type, target: Type) -> bool:
    if source.item is not None and target.item is not None:
        return source.item == NULL or _converts(source.item, target.item)
    if source.fields and target.fields:
        pairs = zip(source.fields, target.fields, strict=True)
        inside = ((a, b) for (_, a), (_, b) in pairs)
        return same_names(source, target) and all(
            a in (b, NULL) or _converts(a, b) for a, b in inside
        )
    if target.kind is Kind.DECIMAL:
        return source.numeric
    return common_type(source, target) == target


def _assign_hint(target: Type) -> str:
    if target.kind is Kind.TIMESTAMP:
        return "write TIMESTAMP '2013-01-01 00:00:00'"
    if target.kind is Kind.INTERVAL:
        return "write INTERVAL '5' MINUTE"
    if target.kind is Kind.DATE:
        return "write DATE '2013-01-31', or CAST(x AS DATE)"
    if target.kind is Kind.TIME:
        return "write TIME '12:30:00', or CAST(x AS TIME)"
    return f"convert it: CAST(x AS {target})"


def _assignments(
    env: Env, assignments: Sequence[ast.Assignment], table: TableDef
) -> tuple[tuple[int, Expr], ...]:
    out: dict[int, Expr] = {}
    for assignment in assignments:
        index = column_index(table.schema, assignment.column, "UPDATE")
        if index in out:
            name = assignment.column
            raise error("DS212", f"column `{name.text}` is set twice", name, "set each column once")
        out[index] = assigned(bind(env, assignment.value), table.schema[index], assignment.value)
    return tuple(out.items())
