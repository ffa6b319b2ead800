"""A join keeps only the columns that are read above it."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, beside, narrow, narrows, remap_keys
from dsms.sql import logical as lp


def narrow_join(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(Join(l, r), e) -> Project(Join(Project(l), Project(r)), e) with what e and the
    condition read.

    Columns are values; the rows, their parts and their lifetimes stay.  The join's state holds
    less.
    """
    if not (isinstance(node, lp.Project) and isinstance(node.child, lp.Join)):
        return node
    join, width = node.child, len(node.child.left.schema)
    both = reads(node.exprs) | reads([] if join.residual is None else [join.residual])
    need_left = {i for i in both if i < width} | reads([a for a, _ in join.keys])
    need_right = {i - width for i in both if i >= width} | reads([b for _, b in join.keys])
    if not (narrows(join.left, need_left) or narrows(join.right, need_right)):
        return node
    left, to_left = narrow(join.left, need_left)
    right, to_right = narrow(join.right, need_right)
    moves = beside(to_left, to_right, width, len(left.schema))
    kept = [i for i in range(len(join.schema)) if i in moves]
    slim = replace(
        join,
        left=left,
        right=right,
        keys=remap_keys(join.keys, to_left, to_right),
        residual=None if join.residual is None else remap(join.residual, moves),
        schema=tuple(join.schema[i] for i in kept),
    )
    return lp.Project(slim, tuple(remap(e, moves) for e in node.exprs), node.schema)
