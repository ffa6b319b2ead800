"""Negation (and EXISTS) above a join instead of below it: update pattern simplification (Golab
2006, §3.5.3)."""

from dataclasses import replace

from dsms.plan.exprs import total
from dsms.plan.rules.base import Context
from dsms.sql import logical as lp
from dsms.sql.expr import Col, Expr, rewrite, shift


def negation_pull_up(node: lp.Node, ctx: Context) -> lp.Node:
    """Join(Negation(a, r), s) -> Negation(Join(a, s), r), and with a on the right; the left plan of
    Fig 3.5.

    Whether a row of `a` is shown at an instant depends on that row and on `r`; a join result has
    one part in `a`, so it may as well be asked of the result, with the same answer at every
    instant.  The join then has no negative tuples to process.  Of an outer join only the preserved
    side may hold the negation: a padded row shows its preserved part.
    """
    if not isinstance(node, lp.Join):
        return node
    left, right = node.left, node.right
    if isinstance(left, lp.SemiJoin) and node.kind in ("inner", "left") and movable(left):
        return _above(left, replace(node, left=left.left), 0, len(node.right.schema))
    if isinstance(right, lp.SemiJoin) and node.kind in ("inner", "right") and movable(right):
        return _above(right, replace(node, right=right.left), len(left.schema), 0)
    return node


def movable(semi: lp.SemiJoin) -> bool:
    """Whether its condition can't fail, so that it may be asked of other rows."""
    exprs: list[Expr] = [e for a, b in semi.keys for e in (a, b)]
    return all(total(e) for e in exprs) and (semi.residual is None or total(semi.residual))


def _above(semi: lp.SemiJoin, join: lp.Join, before: int, after: int) -> lp.Node:
    """The semi-join over the join; `before`, `after`: how many columns now stand on either side of
    its left input's."""
    width = len(semi.left.schema)
    keys = tuple((shift(a, before), b) for a, b in semi.keys)
    residual = None if semi.residual is None else spread(semi.residual, width, before, after)
    return replace(semi, left=join, keys=keys, residual=residual, schema=join.schema)


def spread(residual: Expr, width: int, before: int, after: int) -> Expr:
    """A condition over a ++ r (a of that width) rewritten over (before ++ a ++ after) ++ r."""
    return rewrite(
        residual,
        lambda c: Col(c.index + before + (after if c.index >= width else 0), c.type, c.name),
    )
