"""GRANT and REVOKE of rights on objects, and what may be granted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

from dsms.errors import UsageError
from dsms.plan.exprs import total
from dsms.rights.model import ALL, Grant, Json, Rights, key_of
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.ast import Right
from dsms.sql.binder.calls import cast
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env, bind, bind_condition
from dsms.sql.binder.objects import column_index, kind_of
from dsms.sql.binder.scope import relation_scope
from dsms.sql.binder.select import bind_nested
from dsms.sql.catalog import Catalog, QueryDef, StreamDef, TableDef
from dsms.sql.codes import error
from dsms.sql.expr import Expr
from dsms.sql.functions import castable
from dsms.sql.printer import to_sql
from dsms.sql.suggest import hint

Found = StreamDef | TableDef | QueryDef
_ON = {
    "stream": {Right.SELECT, Right.INSERT, Right.ADMIN},
    "table": {Right.SELECT, Right.INSERT, Right.ADMIN},
    "query": {Right.SELECT, Right.SUBSCRIBE, Right.ADMIN},
}


def grants_of(runtime: Runtime, catalog: Catalog, statement: ast.Grant) -> tuple[Json, str]:
    """The change, and what is said of it.  Raises DS401, DS671, DS672, and what binding the
    conditions raises."""
    found = _object(catalog, statement.object)
    key = ALL if found is None else found.home
    change: Json = {"grants": []}
    _check_once(statement.privileges)
    for privilege in statement.privileges:
        _check_right(privilege, found)
        made = Grant()
        if privilege.right is Right.SELECT:
            made = _select(catalog, statement, privilege, found)
        value = asdict(made)
        change["grants"] += [
            [who, key, privilege.right.value, value]
            for who in _keys(runtime.rights, statement.to, catalog.user)
        ]
    if statement.masks or statement.where is not None:
        _check_restricts(statement)
    return change, "granted"


def revoked(rights: Rights, catalog: Catalog, statement: ast.Revoke) -> Json:
    """The change; what was not granted stays so."""
    found = _object(catalog, statement.object)
    key = ALL if found is None else found.home
    for privilege in statement.privileges:
        if privilege.columns:
            raise _wrong(
                "a right is revoked as a whole", privilege, "revoke it, and grant what is to stay"
            )
    keys = list(_keys(rights, statement.source, catalog.user))
    places = [(who, key, p.right.value) for p in statement.privileges for who in keys]
    return {"grants": [[*place, None] for place in places if place in rights.grants]}


def _object(catalog: Catalog, name: ast.Ident | None) -> Found | None:
    if name is None:
        return None
    found = catalog.find(name.text, name.quoted)
    if found is None:
        message = f"there is no stream, table or query {name.text}"
        raise UsageError(
            "DS401", message, name.pos.line, name.pos.column, hint(name.text, catalog.names())
        )
    return found


def _keys(rights: Rights, names: tuple[ast.Ident, ...], asker: str | None) -> Iterator[str]:
    for name in names:
        if rights.holder(name.text) is None:
            everyone = [u.name for u in (*rights.users.values(), *rights.roles.values())]
            raise UsageError(
                "DS671",
                f"there is no user or role {name.text}",
                name.pos.line,
                name.pos.column,
                hint(name.text, everyone, "users") if rights.administers(asker) else None,
            )
        yield key_of(name.text)


def _check_right(privilege: ast.Privilege, found: Found | None) -> None:
    right = privilege.right
    if privilege.columns and right is not Right.SELECT:
        raise _wrong(f"{right} is not for single columns", privilege, "SELECT is")
    if found is not None and right not in _ON[kind_of(found)]:
        what = kind_of(found)
        where = (
            "GRANT CREATE ON ALL"
            if right is Right.CREATE
            else f"a {what} has {', '.join(sorted(_ON[what]))}"
        )
        raise _wrong(f"{right} has no meaning for {what} {found.name}", privilege, where)


def _check_once(privileges: tuple[ast.Privilege, ...]) -> None:
    """DS109 for a right that is said twice: the second would replace the first."""
    for at, privilege in enumerate(privileges):
        if privilege.right in [p.right for p in privileges[:at]]:
            raise UsageError(
                "DS109",
                f"{privilege.right} is said twice",
                privilege.pos.line or None,
                privilege.pos.column if privilege.pos.line else None,
                "name all its columns in one list",
            )


def _columns(found: Found, names: Iterable[ast.Ident], clause: str) -> tuple[str, ...]:
    """Columns of an object, each once.  Raises DS201, DS212."""
    columns: list[str] = []
    for name in names:
        column = found.schema[column_index(found.schema, name, clause)].name
        if column in columns:
            what = "is named twice" if clause == "GRANT" else "has two masks"
            raise error("DS212", f"column `{name.text}` {what}", name, "name each column once")
        columns.append(column)
    return tuple(columns)


def _check_restricts(statement: ast.Grant) -> None:
    others = [p for p in statement.privileges if p.right is not Right.SELECT]
    if others:
        raise _wrong(
            "MASK and WHERE are for SELECT alone", others[0], "grant the other rights by themselves"
        )


def _select(
    catalog: Catalog, statement: ast.Grant, privilege: ast.Privilege, found: Found | None
) -> Grant:
    restricted = bool(privilege.columns or statement.masks or statement.where is not None)
    if not restricted:
        return Grant()
    if found is None:
        raise _wrong(
            "columns, MASK and WHERE are for one object, not for ALL", privilege, "grant it on each"
        )
    if isinstance(found, TableDef) and not found.retroactive:
        raise _wrong(
            f"{found.name} is NON RETROACTIVE: it is looked up by rows of streams, and as a whole",
            privilege,
            "grant SELECT on all of it, or on a query that reads it",
        )
    if isinstance(found, StreamDef):
        found = replace(found, schema=found.shown)
    env = Env(
        Context(catalog, False, bind_nested), relation_scope(found.schema, found.name), "GRANT"
    )
    columns = _columns(found, privilege.columns, "GRANT")
    _columns(found, (mask.column for mask in statement.masks), "MASK")
    masks = tuple(_mask(env, found, mask) for mask in statement.masks)
    hidden = [m for m, _ in masks if columns and m not in columns]
    if hidden:
        raise _wrong(
            f"{hidden[0]} is not among the columns that are granted", statement.masks[0], None
        )
    if statement.where is not None:
        _check_total(bind_condition(env, statement.where), statement.where, "WHERE")
    return Grant(columns, masks, None if statement.where is None else to_sql(statement.where))


def _mask(env: Env, found: Found, mask: ast.Mask) -> tuple[str, str]:
    column = found.schema[column_index(found.schema, mask.column, "MASK")]
    shown: Any = bind(env, mask.shown)
    if not castable(shown.type, column.type) or (
        shown.type != column.type and not total(cast(shown, column.type))
    ):
        raise _wrong(
            f"a mask of {column.name} is of its type, {column.type}, not {shown.type}",
            mask.shown,
            f"write CAST(... AS {column.type}), or NULL",
        )
    _check_total(shown, mask.shown, "MASK")
    return column.name, to_sql(mask.shown)


def _check_total(expr: Expr, at: ast.Expr, what: str) -> None:
    """A condition that fails would fail on hidden rows, and say what is in them."""
    if not total(expr):
        raise _wrong(
            f"{what} takes an expression that has a value for every row, and this one can fail",
            at,
            "leave out /, casts to narrower types, and + - * of INT; compare instead",
        )


def _wrong(message: str, at: ast.Node, hint: str | None) -> UsageError:
    return UsageError(
        "DS672", message, at.pos.line or None, at.pos.column if at.pos.line else None, hint
    )
