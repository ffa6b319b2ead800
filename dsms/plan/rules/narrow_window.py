"""A window holds only the columns that are read above it."""

from dataclasses import replace

from dsms.plan import windows
from dsms.plan.exprs import reads, remap
from dsms.plan.rules.base import Context, narrow, narrows
from dsms.sql import logical as lp


def narrow_window(node: lp.Node, ctx: Context) -> lp.Node:
    """Project(Window(x), e) -> Project(Window(Project(x)), e) with what e and the window read;
    all kinds of windows.

    A projection leaves out no row, so the newest n rows stay the newest n.
    """
    match node:
        case lp.Project(lp.Window() as window, exprs):
            needed = reads(exprs) | windows.reads(window.spec)
            if not narrows(window.child, needed):
                return node
            child, moves = narrow(window.child, needed)
            schema = tuple(window.schema[i] for i in sorted(moves))
            slim = replace(
                window, child=child, spec=windows.moved(window.spec, moves), schema=schema
            )
            return lp.Project(slim, tuple(remap(e, moves) for e in exprs), node.schema)
        case _:
            return node
