"""Joins of three windows or more in one operator, which keeps their rows and no results (Golab
2006, ch. 5)."""

from dsms.plan.rules.base import Context
from dsms.plan.rules.join_search import MANY, Pipelines, Search, collect
from dsms.plan.rules.reorder_joins import MOST
from dsms.sql import logical as lp


def pipeline_joins(node: lp.Node, ctx: Context) -> lp.Node:
    """Join(Join(a, b), c) -> MultiJoin(a, b, c), if one equality holds for all of them; or over
    some of them and a tree of the others, or below joins with others.  Under any equalities that
    connect them, if they are asked of some input in more than two combinations (cycles, cliques),
    or the query says so: then it adapts its routes.

    A result is a combination of one row of each input that meets all conditions, born with the
    youngest of its parts, dead with the first: whether results of some inputs are kept on the way
    changes neither.  By cost; or whatever it costs, if the query says so.
    """
    if not isinstance(node, lp.Join) or node.kind != "inner" or ctx.options.joins == "tree":
        return node
    cluster = collect(node)
    if not (3 <= len(cluster.inputs) <= MANY and cluster.movable()):
        return node
    kinds: dict[str, Pipelines] = {"pipeline": "forced", "adaptive": "adaptive"}
    usual: Pipelines = "offered" if ctx.options.over == "shed" else "any"  # adaptive keep all rows
    search = Search(cluster, ctx, kinds.get(ctx.options.joins, usual))
    if not search.pipelinable():
        return node
    return search.better(node) if len(cluster.inputs) <= MOST else search.whole(node)
