"""A selection after EXCEPT or INTERSECT is made on both inputs."""

from dataclasses import replace

from dsms.plan.exprs import split
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp


def select_through_set_op(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(x EXCEPT y, p) -> Select(x, p) EXCEPT Select(y, p); so for INTERSECT, with or without
    ALL.

    The copies of a value in the result depend on the copies of that value on both sides only (Golab
    2006, Equation 13), and all copies pass or fail together.
    """
    match node:
        case lp.Select(lp.SetOp() as op, predicate):
            early, rest = split(predicate, 0, len(op.schema))
            if not early:
                return node
            return select(
                replace(op, left=select(op.left, early), right=select(op.right, early)), rest
            )
        case _:
            return node
