"""JOIN ... USING (columns), and NATURAL JOIN, which uses the columns that both sides have."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.binder.calls import call
from dsms.sql.binder.scope import Scope, VisibleColumn
from dsms.sql.codes import error, suggest
from dsms.sql.expr import Expr


def common(join: ast.Join, left: Scope, right: Scope) -> tuple[ast.Ident, ...]:
    """The columns that both sides of a NATURAL JOIN have, as the left side has them; DS339 where
    there is none."""
    others = {c.name.casefold() for c in right.visible()}
    names = [c.name for c in left.visible() if c.name.casefold() in others]
    if not names:
        message = "NATURAL JOIN compares the columns that both sides have, and they share none"
        raise error("DS339", message, join.right, "say what is compared: JOIN ... ON a.k = b.k")
    return tuple(ast.Ident(name, pos=join.right.pos) for name in names)


def using(join: ast.Join, left: Scope, right: Scope) -> tuple[Scope, list[Expr]]:
    """JOIN USING: the columns once, first, then the others of both sides; and the equalities."""
    merged: list[VisibleColumn] = []
    on: list[Expr] = []
    hidden: set[int] = set()
    for name in join.using:
        a, b = _one(left, name), _one(right, name)
        hidden |= {id(a), id(b)}
        on.append(call("eq", [a.expr, b.expr], name))
        merged.append(VisibleColumn(a.name, _merged(join.kind, a.expr, b.expr, name)))
    rest = [
        VisibleColumn(c.name, c.expr, c.aliases, c.hidden or id(c) in hidden)
        for c in left.columns + right.columns
    ]
    relations, declared = left.relations + right.relations, left.declared + right.declared
    stamps = left.stamps + right.stamps
    return Scope((*merged, *rest), relations, declared, beyond=left.beyond, stamps=stamps), on


def _one(scope: Scope, name: ast.Ident) -> VisibleColumn:
    found = scope.matching(ast.ColumnRef(name, pos=name.pos))
    if len(found) == 1:
        return found[0]
    if found:
        raise error(
            "DS202",
            f"column `{name.text}` is ambiguous on one side of the join",
            name,
            "use ON with aliases",
        )
    hint = suggest(name.text, [c.name for c in scope.visible()], "columns of this side")
    raise error(
        "DS201", f"USING names `{name.text}`, which one side of the join does not have", name, hint
    )


def _merged(kind: ast.JoinKind, left: Expr, right: Expr, name: ast.Ident) -> Expr:
    if kind is ast.JoinKind.RIGHT:
        return right
    return call("coalesce", [left, right], name) if kind is ast.JoinKind.FULL else left
