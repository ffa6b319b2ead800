"""A selection on the streaming side of a join with a non-retroactive relation is made before the
look-up."""

from dataclasses import replace

from dsms.plan.exprs import split
from dsms.plan.rules.base import Context, both_hold, select
from dsms.sql import logical as lp


def select_through_nrr(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(JoinNRR(x, t), p_x AND p_xt) -> JoinNRR(Select(x, p_x), t) with p_xt in the join
    condition (inner join).

    The table is read as of the birth of x's row, which a filter does not change.  Of a left join
    p_xt stays above.
    """
    match node:
        case lp.Select(lp.JoinNRR() as join, predicate):
            early, rest = split(predicate, 0, len(join.child.schema))
            inside = rest if join.kind == "inner" else []
            if not (early or inside):
                return node
            moved = replace(
                join, child=select(join.child, early), residual=both_hold(join.residual, inside)
            )
            return select(moved, [] if join.kind == "inner" else rest)
        case _:
            return node
