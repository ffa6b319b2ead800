"""What stands in the parentheses behind OVER: the order, and how many rows back or how long."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.binder.asof import time_unit
from dsms.sql.binder.durations import fixed
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.over_calls import FIRST_ROWS, FRAMELESS, RANKS, ROW_NUMBER, is_call
from dsms.sql.codes import error
from dsms.sql.expr import Col
from dsms.sql.logical import Node

MOST_ROWS = 1_000_000_000


def extent(
    env: Env, child: Node, node: ast.Over, back: int | None
) -> tuple[int | None, int | None]:
    """(rows before the current one, µs), None each: no number or length says so.  `back`: how many
    rows LAG goes back, or LEAD on.  Raises DS372, DS374, DS382."""
    for item in node.order_by:
        if not is_call(node, *RANKS):
            _check_order(env, child, node, item)
    if len(node.order_by) > 1:
        message = "the rows that OVER looks at are in the order of the stream"
        raise error("DS372", message, node.order_by[1], "leave all but the timestamp out")
    if is_call(node, *FRAMELESS):
        if node.frame is not None:
            name = node.call.name.text.upper()
            message = f"{name} goes by the rows of the window, and takes no frame"
            raise error("DS372", message, node.frame, "leave ROWS or RANGE out")
        return back, None
    if node.frame is None:
        return None, None
    return _frame(node.frame)


def _check_order(env: Env, child: Node, node: ast.Over, item: ast.OrderItem) -> None:
    """ORDER BY the stream's own timestamp, or not at all."""
    expr = bind(env, item.expr)
    timely = isinstance(expr, Col) and time_unit(child, expr.index) is not None
    if timely and not item.descending:
        return
    if is_call(node, ROW_NUMBER):
        message = "a number in this order changes whenever a row comes before others"
        raise error("DS382", message, item, FIRST_ROWS)
    message = "OVER looks at the rows in the order of the stream, and this is another"
    hint = "leave ORDER BY out, or write the column of TIMESTAMP BY, without DESC"
    raise error("DS372", message, item, hint)


def _frame(frame: ast.Frame) -> tuple[int | None, int | None]:
    start, end = frame.start, frame.end
    for bound in (start, end):
        if bound is not None and bound.following:
            message = "FOLLOWING takes in rows that are yet to come"
            hint = "what a row says is settled when it comes: end with CURRENT ROW"
            raise error("DS374", message, bound, hint)
    if end is not None and not end.current:
        message = "frames of OVER end with the row itself"
        hint = "write BETWEEN ... AND CURRENT ROW; LAG(x, n) is the value n rows before"
        raise error("DS372", message, end, hint)
    if start.current:
        return (0, None) if frame.rows else (None, 0)
    match start.size:
        case None:
            return None, None
        case int() as rows:
            if rows > MOST_ROWS:
                message = f"a frame holds {MOST_ROWS} rows at most"
                raise error("DS372", message, start, "write UNBOUNDED PRECEDING")
            return rows, None
        case length:
            return None, fixed(length, "RANGE", zero=True)
