"""Inner joins in the cheapest order (Golab 2006, §5.3), without cross products where the conditions
allow."""

from dsms.plan.rules.base import Context
from dsms.plan.rules.join_search import Search, collect
from dsms.sql import logical as lp

MOST = 6  # joins of more inputs are left as they were written: the number of orders explodes


def reorder_joins(node: lp.Node, ctx: Context) -> lp.Node:
    """Join(Join(a, b), c) -> Project(Join(Join(a, c), b)), columns put back in order; any tree over
    the same inputs.

    A result is a combination of one row of each input that meets all conditions, alive while all
    its parts are: the order of combining changes neither.  Trees are compared by cost per unit of
    time; a tree in which a table meets a strict input (§3.5.3) only if no other is possible; on a
    tie the order as written stays.  In a branch of a union only trees that keep the inputs in order
    are considered, for the sake of the id columns.
    """
    if not isinstance(node, lp.Join) or node.kind != "inner":
        return node
    cluster = collect(node)
    if not (3 <= len(cluster.inputs) <= MOST and cluster.movable()):
        return node
    return Search(cluster, ctx).better(node)
