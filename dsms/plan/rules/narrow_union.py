"""A projection over a union is made in each branch."""

from dataclasses import replace

from dsms.plan.rules.base import Context
from dsms.sql import logical as lp


def narrow_union(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(Union(x, y), e) -> Union(Project(x, e), Project(y, e)).

    A merge-union passes rows on as they come; each row is computed once, in its branch.
    """
    match node:
        case lp.Project(lp.Union() as union, exprs, schema):
            return replace(
                union,
                inputs=tuple(lp.Project(x, exprs, schema) for x in union.inputs),
                schema=schema,
            )
        case _:
            return node
