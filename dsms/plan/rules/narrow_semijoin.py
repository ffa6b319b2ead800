"""EXISTS and negation keep of their left input only the columns that are read above them."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, beside, narrow, narrows
from dsms.sql import logical as lp


def narrow_semijoin(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(SemiJoin(a, r), e) -> Project(SemiJoin(Project(a), r), e) with what e and the
    condition read of a.

    Columns are values; the same rows are shown at the same instants.
    """
    if not (isinstance(node, lp.Project) and isinstance(node.child, lp.SemiJoin)):
        return node
    semi, width = node.child, len(node.child.left.schema)
    residual = [] if semi.residual is None else [semi.residual]
    needed = (
        reads(node.exprs)
        | reads([a for a, _ in semi.keys])
        | {i for i in reads(residual) if i < width}
    )
    if not narrows(semi.left, needed):
        return node
    left, moves = narrow(semi.left, needed)
    both = beside(moves, {i: i for i in range(len(semi.right.schema))}, width, len(left.schema))
    slim = replace(
        semi,
        left=left,
        keys=tuple((remap(a, moves), b) for a, b in semi.keys),
        residual=None if semi.residual is None else remap(semi.residual, both),
        schema=tuple(f for i, f in enumerate(semi.schema) if i in moves),
    )
    return lp.Project(slim, tuple(remap(e, moves) for e in node.exprs), node.schema)
