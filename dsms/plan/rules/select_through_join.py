"""A selection on one side of a join filters that side before it is joined."""

from dataclasses import replace

from dsms.plan.exprs import split
from dsms.plan.rules.base import Context, both_hold, select
from dsms.sql import logical as lp
from dsms.sql.expr import conjunction, conjuncts, shift


def select_through_join(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(Join(l, r), p_l AND p_r AND p_lr) -> Join(Select(l, p_l), Select(r, p_r)) with p_lr in
    the join condition.

    A result's parts decide each predicate, so a result passes at an instant exactly if its parts
    do, and it lives as long as before.  Of an outer join only the preserved side may be filtered
    early: a padded row shows the values of its preserved part, and a filtered partner would turn a
    match into a padded row.  What can't be moved stays above.
    """
    if not (isinstance(node, lp.Select) and isinstance(node.child, lp.Join)):
        return node
    join, width = node.child, len(node.child.left.schema)
    left, rest = (
        split(node.predicate, 0, width)
        if join.kind in ("inner", "left")
        else ([], conjuncts(node.predicate))
    )
    right, rest = (
        split(conjunction(rest), width, len(join.schema))
        if join.kind in ("inner", "right")
        else ([], rest)
    )
    inside = rest if join.kind == "inner" else []
    above = [] if join.kind == "inner" else rest
    if not (left or right or inside):
        return node
    moved = replace(
        join,
        left=select(join.left, left),
        right=select(join.right, [shift(p, -width) for p in right]),
        residual=both_hold(join.residual, inside),
    )
    return select(moved, above)
