"""GROUPING SETS, and ROLLUP and CUBE, which are short for some."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.ast import Pos
from dsms.sql.literals import bad

MOST_SETS = 64  # each groups the rows on its own


def in_parentheses(pos: Pos, sets: Sequence[ast.Expr | tuple[()]]) -> ast.GroupingSets:
    """``GROUPING SETS (...)``: an expression is a set of one, a row of them is a set.  Raises DS358
    for too many."""
    found: list[tuple[ast.Expr, ...]] = []
    for one in sets:
        short = None if isinstance(one, tuple) else short_for(one)
        found += [_keys(one)] if short is None else short.sets
        if len(found) > MOST_SETS:
            raise too_many(len(sets) if short is None else len(found), pos)
    return ast.GroupingSets(tuple(found), pos=pos)


def too_many(count: int, pos: Pos) -> QueryError:
    """DS358."""
    hint = "leave some out, or write the ones that are wanted: GROUPING SETS ((a, b), (a), ())"
    message = f"these are {count:,} grouping sets, and {MOST_SETS} is the limit"
    return bad("DS358", pos, message, hint)


def _keys(one: ast.Expr | tuple[()]) -> tuple[ast.Expr, ...]:
    if isinstance(one, tuple):
        return one
    return one.items if isinstance(one, ast.RowExpr) else (one,)


def short_for(item: ast.Expr) -> ast.GroupingSets | None:
    """ROLLUP (a, b) is GROUPING SETS ((a, b), (a), ()), and CUBE (a, b) has all parts of (a, b).
    Raises DS358 for too many."""
    match item:
        case ast.GroupingSets():
            return item
        case ast.FuncCall(ast.Ident(text, False), args, False, False, None) if args:
            parts = [_keys(arg) for arg in args]
            word = text.upper()
        case _:
            return None
    count = {"ROLLUP": len(parts) + 1, "CUBE": 2 ** min(len(parts), 62)}.get(word, 0)
    if count > MOST_SETS:
        raise too_many(count, item.pos)
    if word == "ROLLUP":
        chosen = [list(range(n)) for n in range(len(parts), -1, -1)]
    elif word == "CUBE":
        bits = range(2 ** len(parts) - 1, -1, -1)
        last = len(parts) - 1
        chosen = [[i for i in range(len(parts)) if b >> (last - i) & 1] for b in bits]
    else:
        return None
    sets = tuple(tuple(key for i in one for key in parts[i]) for one in chosen)
    return ast.GroupingSets(sets, pos=item.pos)
