"""A projection that changes nothing goes."""

from dsms.plan.rules.base import Context, plain
from dsms.sql import logical as lp


def drop_projection(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(x, all columns as they are) -> x, if names and types are those of x."""
    match node:
        case lp.Project(child, exprs, schema) if schema == child.schema:
            return child if plain(exprs) == list(range(len(schema))) else node
        case _:
            return node
