"""A left outer join above an inner join instead of below it: its retractions then pass through
fewer operators."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap, total
from dsms.plan.rules.base import Context, beside, pick
from dsms.sql import logical as lp


def outer_join_pull_up(node: lp.Node, ctx: Context) -> lp.Node:
    """Join(LeftJoin(a, b), c) -> LeftJoin(Join(a, c), b), columns put back in order, if the join
    asks nothing of b.

    Each row of `a` is matched or padded by itself, and joined with `c` by itself, so the two may be
    done in either order at every instant.  The outer join is STR (§3.5.1, rule 4): above, the inner
    join has no negative tuples.
    """
    if ctx.ordered or not isinstance(node, lp.Join) or node.kind != "inner":
        return node
    outer, c = node.left, node.right
    if not (isinstance(outer, lp.Join) and outer.kind == "left"):
        return node
    na, nb, nc = len(outer.left.schema), len(outer.right.schema), len(c.schema)
    asked = reads([k for k, _ in node.keys]) | reads(
        [] if node.residual is None else [node.residual]
    )
    conditions = [e for pair in (*node.keys, *outer.keys) for e in pair]
    conditions += [r for r in (node.residual, outer.residual) if r is not None]
    if any(na <= i < na + nb for i in asked) or not all(total(e) for e in conditions):
        return node
    same, c_moves = {i: i for i in range(na)}, {na + nb + i: na + i for i in range(nc)}
    residual = None if node.residual is None else remap(node.residual, {**same, **c_moves})
    inner = replace(node, left=outer.left, residual=residual, schema=outer.left.schema + c.schema)
    moves = beside(same, {i: i for i in range(nb)}, na, na + nc)
    condition = None if outer.residual is None else remap(outer.residual, moves)
    top = replace(outer, left=inner, residual=condition, schema=inner.schema + outer.right.schema)
    back = [*range(na), *range(na + nc, na + nc + nb), *range(na, na + nc)]
    return pick(top, back, node.schema)
