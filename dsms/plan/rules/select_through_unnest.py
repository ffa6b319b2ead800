"""A selection on the rows whose lists are opened is made before these are."""

from dataclasses import replace

from dsms.plan.exprs import split
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp


def select_through_unnest(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(Unnest(x), p_x AND p_item) -> Select(Unnest(Select(x, p_x)), p_item).

    All items of a row have the same columns of it, and its lifetime; so has its padded row.
    """
    match node:
        case lp.Select(lp.Unnest() as unnest, predicate):
            early, rest = split(predicate, 0, len(unnest.child.schema))
            if not early:
                return node
            return select(replace(unnest, child=select(unnest.child, early)), rest)
        case _:
            return node
