"""A selection on the left side of an ASOF JOIN is made before the look-up."""

from dataclasses import replace

from dsms.plan.exprs import split
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp


def select_through_asof(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(AsofJoin(l, r), p_l AND p_r) -> Select(AsofJoin(Select(l, p_l), r), p_r).

    What a left row finds does not depend on other left rows, and is found at its own timestamp,
    which a filter does not change.  A condition on r stays above: a row of r that fails it still
    hides older ones.
    """
    match node:
        case lp.Select(lp.AsofJoin() as join, predicate):
            early, rest = split(predicate, 0, len(join.left.schema))
            if not early:
                return node
            return select(replace(join, left=select(join.left, early)), rest)
        case _:
            return node
