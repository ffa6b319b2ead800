"""Duplicates are eliminated before EXISTS or negation: δ* can then be used more often (Golab 2006,
§3.5.3)."""

from dataclasses import replace

from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, column_positions
from dsms.plan.rules.negation_pull_up import movable
from dsms.sql import logical as lp


def distinct_below_semijoin(node: lp.Node, ctx: Context) -> lp.Node:
    """Distinct(Project(SemiJoin(a, r))) -> SemiJoin(Distinct(Project(a)), r), if the condition
    reads only what is projected, as it is; so for the anti join, and without the Project.

    Equal rows have the same matches at every instant, so a value is shown exactly if it is among
    the values of `a` and has a match (has none).  Another row may come to stand for the value: only
    where nothing above can tell.
    """
    if not (ctx.free and isinstance(node, lp.Distinct)):
        return node
    match node.child:
        case lp.SemiJoin() as semi if movable(semi):
            return replace(semi, left=lp.Distinct(semi.left, semi.left.schema))
        case lp.Project(lp.SemiJoin() as semi, exprs, schema) if movable(semi):
            return _with_projection(
                node, semi, column_positions(exprs), lp.Project(semi.left, exprs, schema)
            )
        case _:
            return node


def _with_projection(
    node: lp.Distinct, semi: lp.SemiJoin, shown: list[int] | None, project: lp.Project
) -> lp.Node:
    width = len(semi.left.schema)
    residual = [] if semi.residual is None else [semi.residual]
    asked = reads([a for a, _ in semi.keys]) | {i for i in reads(residual) if i < width}
    if shown is None or not asked <= set(shown):
        return node
    moves = {old: new for new, old in enumerate(shown)}
    right = {width + i: len(shown) + i for i in range(len(semi.right.schema))}
    return replace(
        semi,
        left=lp.Distinct(project, project.schema),
        keys=tuple((remap(a, moves), b) for a, b in semi.keys),
        residual=None if semi.residual is None else remap(semi.residual, {**moves, **right}),
        schema=project.schema,
    )
