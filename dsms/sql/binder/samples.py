"""SAMPLE p PERCENT [BY columns] behind an item of FROM: a selection by the hash of columns.

Golab 2006, section 2.4.3.  A row is kept if the hash of its columns, whose 2^64 values are equally
likely, is among the first p percent.  So it depends on the row alone: windows, cuts, restarts and
archives draw the same rows, and samples of two streams BY what they are joined on hold the rows of
the same keys.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from dsms.sql import ast
from dsms.sql.binder.calls import call
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.scope import Scope
from dsms.sql.codes import error
from dsms.sql.expr import Expr, Lit
from dsms.sql.logical import Node, Select
from dsms.sql.types import INT

LEAST = -(2**63)


def sampled(ctx: Context, node: Node, scope: Scope, sample: ast.Sample | None) -> Node:
    """The rows of a leaf that are drawn; `scope` are its names.  DS201 for a column that is not
    there, DS367 for a share that is none, or rows that nothing tells apart."""
    if sample is None:
        return node
    if not 0 < sample.percent <= 100:
        message = f"SAMPLE {sample.percent:f} PERCENT is no share of rows"
        raise error("DS367", message, sample, "give more than 0 and at most 100")
    drawn = call("hash", _columns(ctx, scope, sample), sample)
    if sample.percent == 100:
        return node
    return Select(node, call("lt", [drawn, Lit(limit(sample.percent), INT)], sample), node.schema)


def limit(percent: Decimal) -> int:
    """Below it is the share of all hashes."""
    return LEAST + int(Fraction(percent) / 100 * 2**64)


def _columns(ctx: Context, scope: Scope, sample: ast.Sample) -> list[Expr]:
    if sample.by:
        env = Env(ctx, scope, "SAMPLE BY")
        return [bind(env, column) for column in sample.by]
    return told_apart(scope, sample)


def told_apart(scope: Scope, at: ast.Node) -> list[Expr]:
    """The columns that tell the rows of FROM apart; DS367 where nothing does."""
    for name, time, _ in scope.stamps:
        if time is None:
            message = f"rows of {name} that are equal in all columns would be drawn together"
            hint = "say which rows belong together: SAMPLE ... BY column"
            if isinstance(at, ast.FuncCall):
                hint = "say what tells rows apart: SAMPLE(x, HASH(column), k)"
            raise error("DS367", message, at, hint)
    return [column.expr for column in scope.visible()]
