"""A selection after EXISTS or negation is made before it."""

from dataclasses import replace

from dsms.plan.exprs import split
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp


def select_through_semijoin(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(SemiJoin(a, r), p) -> SemiJoin(Select(a, p), r), and for the anti join.

    Whether a row of `a` is shown at an instant depends on that row and on `r` alone, so other rows
    of `a` may be left out.  (For EXCEPT ALL, which counts copies: select_through_set_op.)
    """
    match node:
        case lp.Select(lp.SemiJoin() as semi, predicate):
            early, rest = split(predicate, 0, len(semi.schema))
            return select(replace(semi, left=select(semi.left, early)), rest) if early else node
        case _:
            return node
