"""WINDOW_START() and WINDOW_END(): columns that say over which window an answer is.

In the plan such a column is an empty constant; `Output.stamps` says what is put in its place when
an answer is reported.  So they change nothing of what is compared, grouped or kept.
"""

from __future__ import annotations

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.boundaries import at_boundaries
from dsms.sql.binder.context import Context
from dsms.sql.codes import error
from dsms.sql.expr import Lit
from dsms.sql.logical import Append, Node, Stamp, Window, children
from dsms.sql.types import TIMESTAMP
from dsms.sql.window import UNBOUNDED, Landmark, Slide, Time, WindowSpec

ENDS = {"window_start": False, "window_end": True}
NOTHING_YET = Lit(None, TIMESTAMP)


def is_stamp(node: ast.Node) -> bool:
    """Whether it is a call of one of the two."""
    return isinstance(node, ast.FuncCall) and node.name.text.casefold() in ENDS


def note(ctx: Context, column: int, node: ast.Node) -> Lit:
    """The column of the answer is one; DS207 with arguments.  What stands there in the plan."""
    assert isinstance(node, ast.FuncCall)
    name = node.name.text.upper()
    if node.args or node.star or node.distinct or node.filter is not None:
        raise error("DS207", f"{name} takes no arguments", node, f"write {name}()")
    ctx.stamps.append((column, node))
    return NOTHING_YET


def misplaced(node: ast.FuncCall) -> QueryError:
    """DS345 for one that is no column of the answer."""
    name = node.name.text.upper()
    message = f"{name} is known when an answer is reported: it is a column of the outermost SELECT"
    return error("DS345", message, node, f"select it alone: SELECT {name}() AS at, ...")


def stamps(
    ctx: Context, whole: ast.Query, node: Node, slide: Slide | None, on_lookup: bool
) -> tuple[Stamp, ...]:
    """What is put into which columns; DS345 where nothing could be."""
    if not ctx.stamps:
        return ()
    at = ctx.stamps[0][1]
    name = at.name.text.upper()
    if on_lookup:
        hint = f"leave {name} out: LOOKUP answers as of now"
        raise error("DS345", "a query ON LOOKUP has no boundaries", at, hint)
    if ctx.persistent and slide is None:
        hint = f"say when it is answered: {at_boundaries(whole)}"
        raise error("DS345", f"{name} needs boundaries, and a continuous query has none", at, hint)
    if ctx.persistent and slide is not None and slide.by_rows:
        hint = f"leave {name} out, or end the query with EVERY 10 s instead of a SLIDE in rows"
        raise error(
            "DS345", f"{name} needs boundaries in time, and this SLIDE counts rows", at, hint
        )
    windows = list(dict.fromkeys(_windows(node)))
    return tuple(_stamp(column, call, windows) for column, call in ctx.stamps)


def _stamp(column: int, call: ast.FuncCall, windows: list[WindowSpec]) -> Stamp:
    end, name = ENDS[call.name.text.casefold()], call.name.text.upper()
    timed = [w for w in windows if isinstance(w, Time | Landmark)]
    reaches = {_reach(w, end) for w in timed}
    if len(reaches) == 1:
        return Stamp(column, end, timed[0])
    if end and not reaches:
        return Stamp(column, end, None)
    what = "none" if not reaches else "several that differ"
    hint = (
        "put a window in time on a stream of FROM, such as [RANGE 10 s]"
        if not reaches
        else "give its windows in time the same length, or select the instants that are meant"
    )
    message = f"{name} is that of the window in time, and this query has {what}"
    raise error("DS345", message, call, hint)


def _windows(node: Node) -> list[WindowSpec]:
    """Those that the answer is over: not those of blocks that append."""
    if isinstance(node, Append):
        return []
    own = [node.spec] if isinstance(node, Window) and node.spec != UNBOUNDED else []
    return own + [w for child in children(node) for w in _windows(child)]


def _reach(window: Time | Landmark, end: bool) -> object:
    """What tells where it begins, or ends."""
    if end:
        return window.until
    return window.since if isinstance(window, Landmark) else (window.length, window.calendar)
