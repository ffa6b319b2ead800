"""A join with a non-retroactive relation carries on only the columns that are read above it."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, beside, narrow, narrows, remap_keys
from dsms.sql import logical as lp


def narrow_nrr(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(JoinNRR(x, t), e) -> Project(JoinNRR(Project(x), t), e) with what e and the condition
    read of x.

    Columns are values; the rows, their births and their lifetimes stay.
    """
    if not (isinstance(node, lp.Project) and isinstance(node.child, lp.JoinNRR)):
        return node
    join, width = node.child, len(node.child.child.schema)
    both = reads(node.exprs) | reads([] if join.residual is None else [join.residual])
    needed = {i for i in both if i < width} | reads([a for a, _ in join.keys])
    if not narrows(join.child, needed):
        return node
    child, moved = narrow(join.child, needed)
    stay = {i: i for i in range(len(join.table.schema))}
    moves = beside(moved, stay, width, len(child.schema))
    slim = replace(
        join,
        child=child,
        keys=remap_keys(join.keys, moved, stay),
        residual=None if join.residual is None else remap(join.residual, moves),
        schema=tuple(f for i, f in enumerate(join.schema) if i in moves),
    )
    return lp.Project(slim, tuple(remap(e, moves) for e in node.exprs), node.schema)
