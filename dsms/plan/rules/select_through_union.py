"""A selection over a union is made in each branch."""

from dataclasses import replace

from dsms.plan.rules.base import Context
from dsms.sql import logical as lp


def select_through_union(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(Union(x, y), p) -> Union(Select(x, p), Select(y, p)).

    A merge-union passes rows on as they come; each row is looked at once, in its branch.
    """
    match node:
        case lp.Select(lp.Union() as union, predicate):
            return replace(
                union, inputs=tuple(lp.Select(x, predicate, x.schema) for x in union.inputs)
            )
        case _:
            return node
