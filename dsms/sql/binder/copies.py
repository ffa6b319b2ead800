"""A plan that is read twice in a query: the second time its leaves have numbers of their own."""

from __future__ import annotations

from dsms.sql.binder.answers import shifted
from dsms.sql.binder.context import Context
from dsms.sql.logical import Node, leaves_of


def again(ctx: Context, node: Node) -> Node:
    """The same plan over leaves of its own, in the same order."""
    numbers = [leaf.leaf for leaf in leaves_of(node)]
    if not numbers:
        return node
    by = ctx.leaves - min(numbers)
    ctx.leaves += max(numbers) - min(numbers) + 1
    return shifted(node, by)
