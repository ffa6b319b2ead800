"""UNNEST in FROM: rows of the items of lists, beside the rows whose lists these are."""

from __future__ import annotations

from dataclasses import replace

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.groups import Group, Leaf, Opened
from dsms.sql.binder.scope import Scope, relation_scope
from dsms.sql.binder.typenames import default_type
from dsms.sql.codes import error
from dsms.sql.expr import Expr
from dsms.sql.logical import Values
from dsms.sql.types import INT, Field, Schema

_NAMES = ("unnest", "ordinality")  # of the columns, where nothing says others


def opened(
    ctx: Context, ref: ast.UnnestRef, left: Group, scope: Scope, first: int
) -> tuple[Opened, Scope]:
    """The items of a list of each row of `left`, whose names are `scope`; and the names of the
    items, from virtual column `first` on.  Raises DS381 for what is no list, DS217 for more names
    than columns."""
    try:
        items = bind(Env(ctx, scope, "UNNEST"), ref.items)
    except QueryError as failure:
        if failure.code == "DS322":
            failure.hint = (
                "UNNEST sees what is joined with it before it: FROM s CROSS JOIN UNNEST(s.l) t "
                "JOIN u ON u.k = t.x, or FROM s, u, UNNEST(s.l) t"
            )
        raise
    if items.type.item is None:
        hint = "a list is a column of the type LIST(T), STRING_SPLIT(text, ','), or [1, 2]"
        raise error("DS381", f"UNNEST opens a list, and this is {items.type}", ref.items, hint)
    alias = None if ref.alias is None else ref.alias.text
    types = (default_type(items.type.item), *((INT,) if ref.ordinality else ()))
    if len(ref.columns) > len(types):
        message = f"UNNEST has {len(types)} here, and these are names for {len(ref.columns)}"
        hint = "write UNNEST(l) WITH ORDINALITY AS t (item, place)"
        raise error("DS217", message, ref.columns[len(types)], hint)
    said = [c.text for c in ref.columns] or ([] if alias is None else [alias])
    names = (*said, *_NAMES[len(said) :])
    made: Schema = tuple(Field(n, t, alias) for n, t in zip(names, types, strict=False))
    if not left.items:
        left = Group([Leaf(Values(((),), ()), (), ref)])
    return (
        Opened("inner", left, items, made, first, [], ref),
        relation_scope(made, alias).shifted(first),
    )


def check(join: ast.Join) -> None:
    """DS381 for a join with UNNEST that would keep items without rows, or compare what is one."""
    at = join.right
    if join.kind not in (ast.JoinKind.INNER, ast.JoinKind.CROSS, ast.JoinKind.LEFT):
        hint = "write CROSS JOIN UNNEST(l), or LEFT JOIN UNNEST(l) ON TRUE, which keeps every row"
        raise error("DS381", f"{join.kind} JOIN can't open a list of each row", at, hint)
    if join.natural or join.using:
        message = "the items of a list are joined with the row that they are of"
        raise error("DS381", message, at, "write CROSS JOIN UNNEST(l)")
    if join.kind is ast.JoinKind.LEFT and join.on != ast.BoolLit(True):
        message = "LEFT JOIN UNNEST keeps rows whose lists have no items, and picks none"
        raise error("DS381", message, join.on or at, "write ON TRUE")


def joined(join: ast.Join, group: Group, on: list[Expr]) -> Group:
    """The same as the right side of that join, with the conjuncts of its ON."""
    (item,) = group.items
    assert isinstance(item, Opened)
    if join.kind is ast.JoinKind.LEFT:
        return Group([replace(item, kind="left")])
    return Group([replace(item, on=on)])
