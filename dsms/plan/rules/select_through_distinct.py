"""A selection after duplicate elimination is made before it."""

from dataclasses import replace

from dsms.plan.exprs import split
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp


def select_through_distinct(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(Distinct(x), p) -> Distinct(Select(x, p)); also below a Sort without LIMIT.

    Equal rows pass or fail together, so a value that is shown keeps all its rows, and the same one
    stands for it.
    """
    match node:
        case lp.Select(lp.Distinct() | lp.Sort(limit=None, offset=0) as inner, predicate):
            early, rest = split(predicate, 0, len(inner.schema))
            return select(replace(inner, child=select(inner.child, early)), rest) if early else node
        case _:
            return node
