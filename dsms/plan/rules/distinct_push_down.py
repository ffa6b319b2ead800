"""Duplicates are eliminated before a join or a union, not only after it."""

from dataclasses import replace

from dsms.plan.exprs import identity_exprs, reads, remap, total
from dsms.plan.rules.base import Context, beside, narrow, remap_keys
from dsms.sql import logical as lp


def distinct_push_down(node: lp.Node, ctx: Context) -> lp.Node:
    """Distinct(Project(Join(l, r))) -> Distinct(Project(Join(Distinct(l), r))), l reduced to the
    columns that are read; so for r, for Distinct(Join) and for the branches of a union.

    The values of the join at an instant depend on the values of its inputs at that instant, not on
    how many rows have them.  But another row may come to stand for a value, and results of one
    instant are ordered by those rows; so only where nothing above can tell (an aggregate of the
    whole, the right side of EXISTS).
    """
    if not (ctx.free and isinstance(node, lp.Distinct)):
        return node
    inner = node.child
    match inner:
        case lp.Union():
            return _into_union(node, inner)
        case lp.Join(kind="inner"):
            return _into_join(
                node, lp.Project(inner, identity_exprs(inner.schema), inner.schema), inner
            )
        case lp.Project(lp.Join(kind="inner") as join) if all(total(e) for e in inner.exprs):
            return _into_join(node, inner, join)
        case _:
            return node


def _into_union(node: lp.Distinct, union: lp.Union) -> lp.Node:
    if any(isinstance(x, lp.Distinct) for x in union.inputs):
        return node
    return replace(
        node, child=replace(union, inputs=tuple(lp.Distinct(x, x.schema) for x in union.inputs))
    )


def _into_join(node: lp.Distinct, project: lp.Project, join: lp.Join) -> lp.Node:
    """The first side that is not distinct yet (left, then right) is made so."""
    width = len(join.left.schema)
    everything = reads(project.exprs) | reads([] if join.residual is None else [join.residual])
    needs = (
        {i for i in everything if i < width} | reads([a for a, _ in join.keys]),
        {i - width for i in everything if i >= width} | reads([b for _, b in join.keys]),
    )
    for side in (0, 1):
        child = (join.left, join.right)[side]
        if isinstance(child, lp.Distinct | lp.TableScan):
            continue
        slim, moves = narrow(child, needs[side])
        slim = lp.Distinct(slim, slim.schema)
        stay = {i: i for i in range(len((join.right, join.left)[side].schema))}
        left, right = (slim, join.right) if side == 0 else (join.left, slim)
        to_left, to_right = (moves, stay) if side == 0 else (stay, moves)
        both = beside(to_left, to_right, width, len(left.schema))
        residual = None if join.residual is None else remap(join.residual, both)
        keys = remap_keys(join.keys, to_left, to_right)
        smaller = lp.Join(left, right, "inner", keys, residual, left.schema + right.schema)
        exprs = tuple(remap(e, both) for e in project.exprs)
        return replace(node, child=lp.Project(smaller, exprs, project.schema))
    return node
