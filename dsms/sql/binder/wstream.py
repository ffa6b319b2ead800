"""Wstream, rewritten before binding (Golab 2006, §3.4).

    SELECT Wstream(*)[ROWS 10] FROM ...          SELECT Rstream(*) FROM (SELECT Wstream(*) FROM ...) [ROWS 10]
    SELECT SUM(Wstream(SUM(a))[ROWS 10]) FROM .. SELECT SUM(w0) FROM (SELECT Wstream(SUM(a) AS w0) FROM ..) [ROWS 10]

Wstream without a window, which can't be written, says that the windows of its block are INTERNAL:
results are appended, which is what makes a window over them possible.
"""  # noqa: E501

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dsms.sql import ast
from dsms.sql.codes import error
from dsms.sql.printer import to_sql
from dsms.sql.rewriting import replaced

Body = ast.Select | ast.SetOp | ast.Query


def rewrite_body(body: Body) -> Body:
    """The body without Wstream at its top."""
    while isinstance(body, ast.Query) and body.plain:
        body = body.body
    if not isinstance(body, ast.Select):
        return body
    output = body.output
    if (
        output is not None
        and output.kind is ast.OutputKind.WSTREAM
        and (output.window or output.restore)
    ):
        return _outer(body, output)
    return _inner(body) if _arguments(body) else body


def uses(select: ast.Select) -> bool:
    """Does the block say Wstream?"""
    output = select.output
    return bool(_arguments(select)) or (
        output is not None and output.kind is ast.OutputKind.WSTREAM
    )


def check_restore(output: ast.Output) -> None:
    """Wstream-restore is not defined; DS312."""
    if output.restore and output.kind is ast.OutputKind.WSTREAM:
        message = (
            "Wstream-restore has no meaning: results restored together may be more than the "
            "output window holds, and nothing says which of them it should keep"
        )
        raise error(
            "DS312", message, output, "use Wstream, or Rstream-restore with a window in FROM"
        )


def _outer(select: ast.Select, output: ast.Output) -> ast.Select:
    check_restore(output)
    assert output.window is not None
    if _arguments(select):
        raise error(
            "DS327", "Wstream inside of Wstream", output, "window one of the two results only"
        )
    inner = replace(select, output=ast.Output(ast.OutputKind.WSTREAM, pos=output.pos))
    source = ast.SubqueryRef(ast.Query(inner, pos=select.pos), None, output.window, pos=output.pos)
    kind = ast.Output(ast.OutputKind.RSTREAM, pos=output.pos)
    return ast.Select((ast.StarItem(pos=output.pos),), (source,), output=kind, pos=select.pos)


def _arguments(select: ast.Select) -> list[ast.WstreamArg]:
    found: list[ast.WstreamArg] = []
    stack: list[ast.Node] = [*select.items, *([select.having] if select.having else [])]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.WstreamArg):
            found.append(node)
        elif not isinstance(node, ast.Query):
            stack.extend(ast.children(node))
    return found[::-1]


def _inner(select: ast.Select) -> ast.Select:
    arguments = _arguments(select)
    first = arguments[0]
    if select.group_by:
        hint = (
            "write the two steps apart: SELECT k, SUM(x) FROM (SELECT k, SUM(a) AS x FROM s "
            "[... INTERNAL] GROUP BY k)"
        )
        raise error(
            "DS327", "with GROUP BY it is not clear whether Wstream windows each group", first, hint
        )
    if any(a.window != first.window for a in arguments):
        hint = "use the same window in both, or two queries"
        raise error(
            "DS327", "one query has one Wstream window, and these differ", arguments[-1], hint
        )
    operands: list[ast.Expr] = []
    for argument in arguments:
        if argument.operand not in operands:
            operands.append(argument.operand)
    items = tuple(_named(_swapped(i), i) for i in select.items)
    having = None if select.having is None else _swapped(select.having)
    for node in [*items, *([having] if having is not None else [])]:
        _only_results(node, {to_sql(o) for o in operands})
    inner = replace(
        select,
        items=tuple(ast.SelectItem(o, _result(o)) for o in operands),
        having=None,
        distinct=False,
        output=ast.Output(ast.OutputKind.WSTREAM, pos=first.pos),
    )
    source = ast.SubqueryRef(ast.Query(inner, pos=select.pos), None, first.window, pos=first.pos)
    return replace(select, items=items, from_=(source,), where=None, having=having, window=None)


def _result(operand: ast.Expr) -> ast.Ident:
    """The inner column that holds an operand's results: called by its text."""
    return ast.Ident(to_sql(operand), True)


def _swapped(node: Any) -> Any:
    """The node with every Wstream argument replaced by the column of its result."""

    def swap(part: ast.Node) -> ast.Node | None:
        if not isinstance(part, ast.WstreamArg):
            return None
        return ast.ColumnRef(_result(part.operand), pos=part.pos)

    return replaced(node, swap)


def _named(
    item: ast.SelectItem | ast.StarItem, original: ast.SelectItem | ast.StarItem
) -> ast.SelectItem:
    """The item, still called by its original text."""
    if isinstance(item, ast.StarItem):
        raise error(
            "DS327",
            "beside an aggregate over Wstream, * has no meaning",
            item,
            "name aggregates only",
        )
    assert isinstance(original, ast.SelectItem)
    return (
        item
        if item.alias is not None
        else replace(item, alias=ast.Ident(to_sql(original.expr), True))
    )


def _only_results(node: ast.Node, results: set[str]) -> None:
    for part in ast.walk(node):
        if isinstance(part, ast.ColumnRef) and part.name.text not in results:
            message = (
                f"beside an aggregate over Wstream, column `{part.name.text}` can't be "
                "read: only results are windowed"
            )
            raise error("DS327", message, part, "aggregate it inside of Wstream too")
