"""A condition on group keys keeps rows out of groups that would not be shown."""

from dataclasses import replace

from dsms.plan.exprs import split, substitute, total
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp


def select_through_group(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(GroupBy(x, k, a), p over k) -> GroupBy(Select(x, p), k, a), if there are keys.

    All rows of a group have its key values: the groups that are shown keep all their rows, as the
    window slides.  The one group without keys answers over nothing too, so nothing may be pushed
    below it.
    """
    match node:
        case lp.Select(lp.GroupBy() as group, predicate) if group.keys and all(
            total(k) for k in group.keys
        ):
            early, rest = split(predicate, 0, len(group.keys))
            if not early:
                return node
            below = [substitute(p, group.keys) for p in early]
            return select(replace(group, child=select(group.child, below)), rest)
        case _:
            return node
