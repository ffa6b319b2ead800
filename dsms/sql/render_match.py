"""A MATCH of a plan as an item of FROM, and the conditions of its steps as WHERE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dsms.sql import ast
from dsms.sql.expr import AggCall, Expr, columns, conjuncts
from dsms.sql.logical import Match, Node, Window, children
from dsms.sql.render_block import Block, Stage
from dsms.sql.unbind import unbind, unbind_aggregate, window_syntax
from dsms.sql.window import WindowSpec

Source = tuple[ast.TableRef | ast.SubqueryRef, list[ast.Expr]]


def match_block(node: Match, sources: Sequence[Source]) -> Block:
    """The node as a block; `sources`: what each step reads, and its columns."""
    every = [item for _, items in sources for item in items]
    shown = [items for (_, items), k in zip(sources, node.kinds, strict=True) if k == "one"]
    steps = tuple(
        ast.MatchStep(ast.StepKind(kind), source)
        for kind, (source, _) in zip(node.kinds, sources, strict=True)
    )
    per = tuple(_unqualified(same[0], sources[0][1]) for same in node.keys)
    aggs = [_aggregate(call, sources[k][1]) for k, call in node.aggs]
    where = [unbind(part, [*every, *aggs]) for c in node.conditions for part in conjuncts(c)]
    found = ast.Match(steps, window_syntax(_window(node.inputs[0]), []), per, node.skip)
    stage = Stage.WHERE if where else Stage.FROM
    widths = [*map(len, shown), *(1 for _ in aggs)]
    return Block(found, [*(i for items in shown for i in items), *aggs], widths, stage, where)


def _aggregate(call: AggCall, items: Sequence[ast.Expr]) -> ast.FuncCall:
    """One over the rows of a step that takes many, with these columns."""
    found = unbind_aggregate(call, items)
    if not found.star:
        return found
    assert isinstance(items[0], ast.ColumnRef) and items[0].table is not None
    return replace(found, star=False, args=(ast.ColumnRef(items[0].table),))


def _window(node: Node) -> WindowSpec:
    """The window over the rows of a step."""
    while not isinstance(node, Window):
        (node,) = children(node)
    return node.spec


def _unqualified(expr: Expr, items: Sequence[ast.Expr]) -> ast.ColumnRef:
    """The column of PER that a key is, whatever it is cast to."""
    (column,) = (items[k] for k in columns(expr))
    assert isinstance(column, ast.ColumnRef)
    return replace(column, table=None)


def has_pattern(item: ast.FromItem | None) -> bool:
    """Whether WHERE would say something of a pattern."""
    if isinstance(item, ast.Join):
        return has_pattern(item.left) or has_pattern(item.right)
    return isinstance(item, ast.Match)
