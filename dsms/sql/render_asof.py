"""ASOF JOIN back to syntax, and equalities of joins."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.sql import ast
from dsms.sql.expr import Expr
from dsms.sql.logical import AsofJoin
from dsms.sql.render_block import Block, Stage, all_of
from dsms.sql.unbind import duration, unbind


def asof_block(node: AsofJoin, left: Block, right: Block) -> Block:
    """The join of two sides, which are bare items of FROM."""
    on = [equal(a, b, left.items, right.items) for a, b in node.keys]
    if node.after is not None:
        mine, theirs = node.after
        on.append(ast.Comparison(">", left.items[mine], right.items[theirs]))
    kind = ast.JoinKind.ASOF if node.kind == "inner" else ast.JoinKind.ASOF_LEFT
    within = None if node.span is None else duration(node.span - 1)
    assert left.from_ is not None and right.from_ is not None
    joined = ast.Join(
        kind, left.from_, right.from_, all_of(on or [ast.BoolLit(True)]), within=within
    )
    stage = Stage.WHERE if left.where else Stage.FROM
    items = [*left.items, *right.items]
    return Block(joined, items, left.leaves + right.leaves, stage, left.where)


def equal(a: Expr, b: Expr, left: Sequence[ast.Expr], right: Sequence[ast.Expr]) -> ast.Expr:
    """An equality of two sides."""
    return ast.Comparison("=", unbind(a, left), unbind(b, right))
