"""Duplicate elimination over an input without duplicates is dropped."""

from dsms.plan.rules.base import Context
from dsms.sql import logical as lp


def drop_distinct(node: lp.Node, ctx: Context) -> lp.Node:
    """Distinct(x) -> x, if x is a Distinct, a GroupBy (its keys differ), or EXCEPT/INTERSECT
    without ALL.

    At every instant x holds each value at most once, and its rows are identified by value already.
    """
    match node:
        case lp.Distinct(lp.Distinct() | lp.GroupBy() | lp.SetOp(all=False) as child):
            return child
        case _:
            return node
