"""A selection over a time window is made before the window: never over a count window."""

from dataclasses import replace

from dsms.plan.exprs import split
from dsms.plan.rules.base import Context, select
from dsms.plan.windows import commutes
from dsms.sql import logical as lp


def select_below_window(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(Window(x, time), p) -> Window(Select(x, p), time); also NOW, unbounded and landmark
    windows.

    Such a window gives each row a lifetime that depends on the row's timestamp only, so leaving
    rows out changes no other row.  The newest n rows of [ROWS n] are other rows if some are left
    out before: count windows stay below.
    """
    match node:
        case lp.Select(lp.Window() as window, predicate) if commutes(window.spec):
            early, rest = split(predicate, 0, len(window.schema))
            return (
                select(replace(window, child=select(window.child, early)), rest) if early else node
            )
        case _:
            return node
