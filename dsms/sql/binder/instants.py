"""INSTANT(alias): the instant of a row of a stream in FROM, as its TIMESTAMP BY column has it."""

from __future__ import annotations

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.scope import Scope
from dsms.sql.codes import error, suggest

INSTANT = "instant"


def instant_of(scope: Scope, node: ast.FuncCall) -> ast.Expr:
    """What the call stands for, to be bound in its place; DS346 where there is no such column."""
    match node.args:
        case (ast.ColumnRef(name, None),):
            pass
        case _:
            hint = "write INSTANT(s), with the name that the stream s has in FROM"
            raise error("DS346", "INSTANT takes the name of a stream in FROM", node, hint)
    level: Scope | None = scope
    while level is not None:
        for alias, column, unit in level.stamps:
            if name.matches(alias):
                return _column(node, alias, column, unit)
        level = level.parent
    raise _unknown(scope, name)


def _column(node: ast.FuncCall, alias: str, column: str | None, unit: str | None) -> ast.Expr:
    if column is None:
        message = f"rows of {alias} are stamped when they come, and no column of theirs says when"
        hint = (
            "declare the stream with a column and TIMESTAMP BY it; a query that feeds such a "
            "stream puts its instants there"
        )
        raise error("DS346", message, node, hint)
    ref = ast.ColumnRef(ast.Ident(column, True), ast.Ident(alias, True), pos=node.pos)
    if unit is None:
        return ref
    return ast.FuncCall(ast.Ident("to_timestamp"), (ref, ast.StringLit(unit)), pos=node.pos)


def _unknown(scope: Scope, name: ast.Ident) -> QueryError:
    hint = suggest(name.text, [alias for alias, *_ in scope.stamps], "streams of FROM")
    message = f"`{name.text}` is no stream of this FROM"
    return error("DS346", message, name, hint or "name a stream of FROM itself, not of a subquery")
