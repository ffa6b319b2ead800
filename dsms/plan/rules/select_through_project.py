"""A selection on computed columns is made below the projection, on the expressions that compute
them."""

from dsms.plan.exprs import substitute, total
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp
from dsms.sql.expr import conjuncts


def select_through_project(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(Project(x, e), p) -> Project(Select(x, p with e put in), e).

    A projection changes neither when a row comes nor when it goes.  A part of p stays above if it,
    or what it would be computed from, can fail: such an expression would be worked out twice.
    """
    match node:
        case lp.Select(lp.Project() as project, predicate):
            low, high = [], []
            for part in conjuncts(predicate):
                below = substitute(part, project.exprs)
                if total(below):
                    low.append(below)
                else:
                    high.append(part)
            if not low:
                return node
            return select(
                lp.Project(select(project.child, low), project.exprs, project.schema), high
            )
        case _:
            return node
