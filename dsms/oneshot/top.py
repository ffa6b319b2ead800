"""Where a plan wants no more of a window than its first rows by one column: ORDER BY c LIMIT n."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.operators.expressions import can_fail
from dsms.sql import logical as lp
from dsms.sql.expr import Col
from dsms.sql.window import Now, Time


@dataclass(frozen=True, slots=True)
class Top:
    """The first `rows` rows of a leaf by a column of its stream, and all that equal the last of
    them there."""

    leaf: int
    column: int
    rows: int
    descending: bool
    nulls_first: bool


def top_of(plan: lp.Node) -> Top | None:
    """What the plan wants, if it is that: nothing but columns of a window in time up to now, where
    no row fails."""
    if not isinstance(plan, lp.Sort) or plan.limit is None:
        return None
    key, descending, nulls_first = plan.keys[0] if plan.keys else (None, False, False)
    if not isinstance(key, Col):
        return None
    node, column, windows = plan.child, key.index, 0
    while not isinstance(node, lp.StreamScan):
        match node:
            case lp.Project(exprs=exprs) if not any(map(can_fail, exprs)):
                expr = exprs[column]
                if not isinstance(expr, Col):
                    return None
                column = expr.index
            case lp.Window(
                spec=Time(until=0, calendar=None, internal=False, archive=False) | Now()
            ):
                windows += 1
            case _:
                return None
        node = node.child
    if windows != 1 or node.archive is not None or node.dated:
        return None
    return Top(node.leaf, column, plan.limit + plan.offset, descending, nulls_first)
