"""Lists are opened beside only those columns that are read above."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, beside, narrow, narrows
from dsms.sql import logical as lp


def narrow_unnest(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(Unnest(x, l), e) -> Project(Unnest(Project(x), l), e) with what e and l read of x.

    Columns are values; the rows, their births and their lifetimes stay.
    """
    if not (isinstance(node, lp.Project) and isinstance(node.child, lp.Unnest)):
        return node
    unnest, width = node.child, len(node.child.child.schema)
    needed = {i for i in reads(node.exprs) if i < width} | reads([unnest.items])
    if not narrows(unnest.child, needed):
        return node
    child, moved = narrow(unnest.child, needed)
    stay = {i: i for i in range(len(unnest.schema) - width)}
    moves = beside(moved, stay, width, len(child.schema))
    slim = replace(
        unnest,
        child=child,
        items=remap(unnest.items, moved),
        schema=tuple(f for i, f in enumerate(unnest.schema) if i in moves),
    )
    return lp.Project(slim, tuple(remap(e, moves) for e in node.exprs), node.schema)
