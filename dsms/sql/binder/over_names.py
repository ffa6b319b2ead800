"""WINDOW w AS (...): what a name behind OVER means, put in its place."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from dsms.sql import ast
from dsms.sql.codes import error
from dsms.sql.rewriting import replaced

Known = dict[str, ast.NamedWindow]
_Block = TypeVar("_Block", ast.Query, ast.Select)
_Rows = TypeVar("_Rows", ast.Over, ast.NamedWindow)


def named(query: ast.Query) -> ast.Query:
    """The query, and those in it, with the rows that names behind OVER stand for.  Raises DS394."""
    parts = ast.walk(query)
    if any(_names(part) for part in parts):
        return _spelled(query, _known(query.body))
    return query


def _names(part: ast.Node) -> bool:
    match part:
        case ast.Over(window=window):
            return window is not None
        case ast.Select(windows=windows):
            return bool(windows)
    return False


def _spelled(node: _Block, known: Known) -> _Block:
    """A query or a block, of which these windows are known."""

    def swap(part: ast.Node) -> ast.Node | None:
        if part is node:
            return None
        match part:
            case ast.Query(body=body):
                return _spelled(part, _known(body))
            case ast.Select():
                return replace(_spelled(part, _known(part)), windows=())
            case ast.Over(window=ast.Ident()):
                return _added(part, known)
        return None

    made: _Block = replaced(node, swap, within_queries=True)
    return made


def _known(body: ast.Node) -> Known:
    """The windows that a block names, each spelled out."""
    found: Known = {}
    for window in body.windows if isinstance(body, ast.Select) else ():
        key = window.name.text.casefold()
        if key in found:
            raise error("DS394", f"WINDOW gives the name {window.name.text} twice", window)
        found[key] = _added(window, found)
    return found


def _added(node: _Rows, known: Known) -> _Rows:
    """The rows of the window that it names, with what it adds.  Raises DS394."""
    if node.window is None:
        return node
    base = known.get(node.window.text.casefold())
    if base is None:
        there = ", ".join(w.name.text for w in known.values())
        hint = f"there are: {there}" if there else "write it: WINDOW w AS (PARTITION BY k)"
        message = f"no WINDOW of this SELECT is called {node.window.text}"
        raise error("DS394", message, node.window, hint)
    again = [
        word
        for word, mine, its in (
            ("PARTITION BY", node.partition_by, True),
            ("ORDER BY", node.order_by, base.order_by),
            ("ROWS or RANGE", node.frame, base.frame),
        )
        if mine and its
    ]
    if again:
        message = f"{base.name.text} says which rows are meant, and {again[0]} says it again"
        hint = "add what the window has not got, or write all of it here without the name"
        raise error("DS394", message, node, hint)
    return replace(
        node,
        partition_by=base.partition_by,
        order_by=node.order_by or base.order_by,
        frame=node.frame or base.frame,
        window=None,
    )
