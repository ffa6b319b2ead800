"""EXISTS and negation keep of their right input only what the condition reads."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, beside, narrow, narrows
from dsms.sql import logical as lp


def narrow_exists(node: lp.Node, ctx: Context) -> lp.Node:
    """SemiJoin(a, r) -> SemiJoin(a, Project(r)), r reduced to the columns of the condition.

    Nothing of r is shown; which rows match which stays the same at every instant.
    """
    if not isinstance(node, lp.SemiJoin):
        return node
    width = len(node.left.schema)
    residual = [] if node.residual is None else [node.residual]
    needed = {i - width for i in reads(residual) if i >= width} | reads([b for _, b in node.keys])
    if not narrows(node.right, needed):
        return node
    right, moves = narrow(node.right, needed)
    both = beside({i: i for i in range(width)}, moves, width, width)
    return replace(
        node,
        right=right,
        keys=tuple((a, remap(b, moves)) for a, b in node.keys),
        residual=None if node.residual is None else remap(node.residual, both),
    )
