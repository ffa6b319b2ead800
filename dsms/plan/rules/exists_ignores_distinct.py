"""EXISTS and negation ask whether there is a match, not how many there are."""

from dataclasses import replace

from dsms.plan.rules.base import Context
from dsms.sql import logical as lp


def exists_ignores_distinct(node: lp.Node, ctx: Context) -> lp.Node:
    """SemiJoin(a, Distinct(r)) -> SemiJoin(a, r), anti or not, IN and NOT IN too.

    r and Distinct(r) hold the same values at every instant, so each row of `a` finds a match in
    both or in neither.  The semi-join counts matches anyway.
    """
    match node:
        case lp.SemiJoin(right=lp.Distinct() as distinct):
            return replace(node, right=distinct.child)
        case _:
            return node
