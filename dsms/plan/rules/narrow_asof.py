"""An ASOF JOIN keeps, and carries on, only the columns that are read above it."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, beside, narrow, narrows, remap_keys
from dsms.sql import logical as lp


def narrow_asof(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(AsofJoin(l, r), e) -> Project(AsofJoin(Project(l), Project(r)), e) with what e and
    the condition read.

    Columns are values; the rows, their timestamps and their lifetimes stay.
    """
    if not (isinstance(node, lp.Project) and isinstance(node.child, lp.AsofJoin)):
        return node
    join, wide, read = node.child, len(node.child.left.schema), reads(node.exprs)
    mine = {i for i in read if i < wide} | reads([a for a, _ in join.keys])
    theirs = {i - wide for i in read if i >= wide} | reads([b for _, b in join.keys])
    if join.after is not None:
        mine, theirs = mine | {join.after[0]}, theirs | {join.after[1]}
    if not (narrows(join.left, mine) or narrows(join.right, theirs)):
        return node
    left, here = narrow(join.left, mine)
    right, there = narrow(join.right, theirs)
    moves = beside(here, there, wide, len(left.schema))
    slim = replace(
        join,
        left=left,
        right=right,
        keys=remap_keys(join.keys, here, there),
        after=None if join.after is None else (here[join.after[0]], there[join.after[1]]),
        schema=tuple(f for i, f in enumerate(join.schema) if i in moves),
    )
    return lp.Project(slim, tuple(remap(e, moves) for e in node.exprs), node.schema)
