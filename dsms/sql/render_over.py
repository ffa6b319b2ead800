"""Calls of OVER back to syntax."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dsms.sql import ast
from dsms.sql.expr import AggCall, Expr
from dsms.sql.logical import Frame, Node, Over, Project, Select, Window
from dsms.sql.render_block import Block, Stage
from dsms.sql.unbind import duration, unbind, unbind_aggregate
from dsms.sql.window import Partitioned, WindowSpec


def over_calls(node: Over, columns: Sequence[ast.Expr]) -> Iterator[ast.Over]:
    """The columns that the node adds to those of its child."""
    for frame in node.frames:
        by = tuple(unbind(key, columns) for key in frame.by)
        for call in frame.calls:
            given, whole = _call(call, columns)
            yield ast.Over(given, by, _order(call, columns), None if whole else _frame(frame))


def over_block(node: Over, block: Block, where: Sequence[Expr]) -> Block:
    """The block with the calls, and with conditions on its rows."""
    parts = [unbind(part, block.items) for part in where]
    items = [*block.items, *over_calls(node, block.items)]
    return replace(block, items=items, where=[*block.where, *parts], stage=Stage.PROJECT)


def windowed(node: Node, spec: WindowSpec) -> Node | None:
    """The node with the window above the OVER in it, which has none of its own; None: there is no
    such OVER."""
    match node:
        case Over():
            return Window(node, spec, node.schema)
        case Project(child=child) | Select(child=child) if not isinstance(spec, Partitioned):
            inside = windowed(child, spec)
            return None if inside is None else replace(node, child=inside)
        case _:
            return None


def _call(call: AggCall, columns: Sequence[ast.Expr]) -> tuple[ast.FuncCall, bool]:
    """The call, and whether it takes no frame."""
    match call.fn:
        case "row_number" | "rank" | "dense_rank":
            return ast.FuncCall(ast.Ident(call.fn.upper())), True
        case "lag":
            value, *default = (unbind(a, columns) for a in call.args)
            (back,) = call.params
            assert isinstance(back, int)
            return ast.FuncCall(ast.Ident("LAG"), (value, ast.IntLit(back), *default)), True
        case _:
            return unbind_aggregate(call, columns), False


def _order(call: AggCall, columns: Sequence[ast.Expr]) -> tuple[ast.OrderItem, ...]:
    """That of a rank; others go by the order of the stream."""
    if call.fn not in ("rank", "dense_rank"):
        return ()
    first = True if "nulls first" in call.params else None
    return (ast.OrderItem(unbind(call.args[0], columns), "desc" in call.params, first),)


def _frame(frame: Frame) -> ast.Frame | None:
    if frame.rows is not None:
        return ast.Frame(True, ast.FrameBound(frame.rows))
    return None if frame.span is None else ast.Frame(False, ast.FrameBound(duration(frame.span)))
