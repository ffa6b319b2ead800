"""GROUPING SETS, and ROLLUP and CUBE, which are short for some."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.sql import ast
from dsms.sql.ast import Pos

MOST_IN_CUBE = 12  # 4,096 sets; those that are too many are refused when they are bound


def in_parentheses(pos: Pos, sets: Sequence[ast.Expr | tuple[()]]) -> ast.GroupingSets:
    """``GROUPING SETS (...)``: an expression is a set of one, a row of them is a set."""
    found: list[tuple[ast.Expr, ...]] = []
    for one in sets:
        short = None if isinstance(one, tuple) else short_for(one)
        found += [_keys(one)] if short is None else short.sets
    return ast.GroupingSets(tuple(found), pos=pos)


def _keys(one: ast.Expr | tuple[()]) -> tuple[ast.Expr, ...]:
    if isinstance(one, tuple):
        return one
    return one.items if isinstance(one, ast.RowExpr) else (one,)


def short_for(item: ast.Expr) -> ast.GroupingSets | None:
    """ROLLUP (a, b) is GROUPING SETS ((a, b), (a), ()), and CUBE (a, b) has all parts of (a, b)."""
    match item:
        case ast.GroupingSets():
            return item
        case ast.FuncCall(ast.Ident(text, False), args, False, False, None) if args:
            parts = [_keys(arg) for arg in args]
            word = text.upper()
        case _:
            return None
    if word == "ROLLUP":
        chosen = [list(range(n)) for n in range(len(parts), -1, -1)]
    elif word == "CUBE" and len(parts) <= MOST_IN_CUBE:
        bits = range(2 ** len(parts) - 1, -1, -1)
        last = len(parts) - 1
        chosen = [[i for i in range(len(parts)) if b >> (last - i) & 1] for b in bits]
    else:
        return None
    sets = tuple(tuple(key for i in one for key in parts[i]) for one in chosen)
    return ast.GroupingSets(sets, pos=item.pos)
