"""Negation (and EXISTS) below a join, on the side whose columns its condition uses (Golab 2006,
§3.5.3)."""

from dataclasses import replace

from dsms.plan.exprs import reads, within
from dsms.plan.rules.base import Context
from dsms.plan.rules.negation_pull_up import movable
from dsms.sql import logical as lp
from dsms.sql.expr import Col, Expr, columns, rewrite, shift

_SIDES = {"inner": ("left", "right"), "left": ("left",), "right": ("right",), "full": ()}


def negation_push_down(node: lp.Node, ctx: Context) -> lp.Node:
    """Negation(Join(a, s), r) -> Join(Negation(a, r), s) if the condition reads only a (or only s)
    and r: the right plan of Fig 3.5.

    The reverse of negation_pull_up, for the same reason; good if few rows survive the negation, at
    the price of a join over a strict input.  Never onto the input of a join with a table (⋈R), nor
    past ⋈NRR: their input may not be strict (§3.5.3).
    """
    if not (isinstance(node, lp.SemiJoin) and isinstance(node.left, lp.Join) and movable(node)):
        return node
    join = node.left
    if is_table(join.left) or is_table(join.right):
        return node
    width, whole = len(join.left.schema), len(join.schema)
    asked = reads([a for a, _ in node.keys]) | {i for i in reads(_residual(node)) if i < whole}
    if "left" in _SIDES[join.kind] and all(i < width for i in asked):
        return replace(join, left=_below(node, join.left, 0, whole - width, whole))
    if "right" in _SIDES[join.kind] and all(i >= width for i in asked):
        return replace(join, right=_below(node, join.right, width, 0, whole))
    return node


def is_table(node: lp.Node) -> bool:
    """A table, perhaps filtered: the relation of a ⋈R."""
    match node:
        case lp.TableScan():
            return True
        case lp.Select() | lp.Project():
            return is_table(node.child)
        case _:
            return False


def _residual(node: lp.SemiJoin) -> list[Expr]:
    return [] if node.residual is None else [node.residual]


def _below(semi: lp.SemiJoin, side: lp.Node, before: int, after: int, whole: int) -> lp.SemiJoin:
    """The semi-join over one side of the join, whose columns no longer have `before` and `after`
    others around them."""
    keys = tuple((shift(a, -before), b) for a, b in semi.keys)
    residual = semi.residual
    if residual is not None:
        residual = rewrite(
            residual,
            lambda c: Col(c.index - before - (after if c.index >= whole else 0), c.type, c.name),
        )
    out = replace(semi, left=side, keys=keys, residual=residual, schema=side.schema)
    assert all(within(a, 0, len(side.schema)) for a, _ in keys)
    assert residual is None or max(columns(residual), default=0) < len(side.schema) + len(
        semi.right.schema
    )
    return out
