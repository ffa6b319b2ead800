"""Parts of a join condition that concern one side only filter that side."""

from dataclasses import replace

from dsms.plan.exprs import split
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp
from dsms.sql.expr import conjunction, shift

_LEFT = {"inner": True, "left": False, "right": True, "full": False}
_RIGHT = {"inner": True, "left": True, "right": False, "full": False}


def residual_to_inputs(node: lp.Node, ctx: Context) -> lp.Node:
    """Join(l, r, p_l AND p_r AND p_lr) -> Join(Select(l, p_l), Select(r, p_r), p_lr); so for EXISTS
    and negation.

    A row that fails its own part of the condition matches nothing at any instant, so it may be left
    out where leaving it out means the same as matching nothing: on either side of an inner join and
    of EXISTS, on the padded side of an outer join, on the right of a negation.  Not under NOT IN,
    where an unknown match counts.
    """
    match node:
        case lp.Join():
            may_left, may_right = _LEFT[node.kind], _RIGHT[node.kind]
        case lp.SemiJoin(null_aware=False):
            may_left, may_right = not node.anti, True
        case _:
            return node
    width = len(node.left.schema)
    left, rest = split(node.residual, 0, width) if may_left else ([], None)
    remaining = conjunction(rest) if rest is not None else node.residual
    right, others = (
        split(remaining, width, width + len(node.right.schema)) if may_right else ([], None)
    )
    if not (left or right):
        return node
    residual = conjunction(others) if others is not None else remaining
    moved = [shift(p, -width) for p in right]
    return replace(
        node, left=select(node.left, left), right=select(node.right, moved), residual=residual
    )
