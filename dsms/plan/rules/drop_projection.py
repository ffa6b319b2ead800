"""A projection that changes nothing is dropped."""

from dsms.plan.rules.base import Context, column_positions
from dsms.sql import logical as lp


def drop_projection(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(x, all columns in order) -> x, under the names of the projection.  Row by row the
    same."""
    match node:
        case lp.Project(child, exprs) if not node.ids:
            return child if column_positions(exprs) == list(range(len(child.schema))) else node
        case _:
            return node
