"""ASOF JOIN: what it may join, and what its ON may say.

Each row of the left side finds the newest row of the right one with equal keys, as of its own
timestamp, and keeps what it has found.  So rows of both sides must come at timestamps of their own,
and those of the right side must not leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.durations import fixed
from dsms.sql.binder.groups import Asof, Group, is_table, leaves, padded, split
from dsms.sql.binder.properties import append_only, why_not_append_only
from dsms.sql.codes import error
from dsms.sql.expr import Call, Col, Expr, Lit
from dsms.sql.logical import (
    Answer,
    Append,
    AsofJoin,
    Join,
    JoinNRR,
    Match,
    MultiJoin,
    Node,
    Over,
    Project,
    Select,
    StreamScan,
    TableScan,
    Union,
    Unnest,
    Window,
    children,
    nodes_of,
)
from dsms.sql.types import BOOL
from dsms.sql.window import First, Latest, Now, Session, When, WindowSpec

KINDS = {ast.JoinKind.ASOF: "inner", ast.JoinKind.ASOF_LEFT: "left"}
_MIRRORED = {"ge": "le", "gt": "lt", "le": "ge", "lt": "gt"}
_FORM = "ON a.key = b.key AND a.ts >= b.ts, where ts are the timestamps of both"


# ---------------------------------------------------------------- windows of the right side


def without_window(join: ast.Join, outer: ast.Window | None) -> tuple[ast.FromItem, int | None]:
    """The right side without its window, and how old a row of it may be, in µs, for which it is
    still found: what lies in [RANGE t] and in WITHIN; None: of any age.  `outer`: the query's
    WINDOW.  Raises DS370 for other windows."""
    spans = [] if join.within is None else [fixed(join.within, "WITHIN", zero=True) + 1]
    right = join.right
    if isinstance(right, ast.TableRef | ast.SubqueryRef):
        window = right.window or outer
        spans += [] if window is None else _span(window)
        right = replace(right, window=None)
    return right, min(spans, default=None)


def _span(window: ast.Window) -> list[int]:
    plain = not (window.slide or window.internal or window.archive)
    match window:
        case ast.RangeWindow(length, None) if plain:
            return [fixed(length, "the window of what ASOF JOIN finds")]
        case ast.NowWindow() if plain:
            return [1]
        case ast.UnboundedWindow(None) if plain:
            return []
    message = "ASOF JOIN finds the newest row of each key, whatever else a window holds"
    hint = (
        "leave the window out, or say how old a row may be that is found: WITHIN 5 s; SLIDE and "
        "INTERNAL stand in the window of the left side"
    )
    raise error("DS370", message, window, hint)


# ---------------------------------------------------------------- the node


def check_tables(join: ast.Join, left: Group, right: Group) -> None:
    """Raise DS370 where one side is a table."""
    if is_table(right):
        message = "the right side of ASOF JOIN is a table"
        hint = (
            "leave ASOF out: a NON RETROACTIVE table is read as of the timestamp of each row of "
            "the stream"
        )
        raise error("DS370", message, join.right, hint)
    for leaf in leaves(left):
        if leaf.table and len(leaves(left)) == 1:
            message = "the left side of ASOF JOIN is a table"
            hint = "the stream whose rows look for a match stands on the left"
            raise error("DS370", message, join.left, hint)


def asof_join(item: Asof, left: Node, right: Node, on: Sequence[Expr]) -> AsofJoin:
    """The node; `on`: conjuncts over left ++ right.  Raises DS370 for inputs whose rows have no
    timestamps of their own, or leave, DS371 for what ON says beyond keys and timestamps."""
    _check_inputs(item, left, right)
    width, times = len(left.schema), list[tuple[int, int] | None]()
    equal: list[Expr] = []
    for k, conjunct in enumerate(on):
        found = _comparison(conjunct, width)
        if conjunct == Lit(True, BOOL):
            continue
        if found is None:
            equal.append(conjunct)
            if split([conjunct], width)[1] is not None:
                hint = (
                    "conditions on one side go into a subquery in FROM, or into WHERE, which looks "
                    "at what was found"
                )
                raise _refused(item, k, "this is neither", hint)
            continue
        times.append(_times(item, k, found, left, right))
        if len(times) > 1:
            raise _refused(item, k, "that is said twice", "once is enough")
    keys, _ = split(equal, width)
    after = times[0] if times else None
    schema = left.schema + padded(right.schema, item.kind == "left")
    return AsofJoin(left, right, item.kind, keys, after, item.span, schema)  # type: ignore[arg-type]


def check_slides(windows: Sequence[tuple[WindowSpec, ast.Node]], node: Node) -> None:
    """Raise DS370 where rows are counted for instants, and timestamps are compared."""
    counted = [at for spec, at in windows if spec.slide is not None and spec.slide.by_rows]
    if counted and any(isinstance(n, AsofJoin) for n in nodes_of(node)):
        message = "ASOF JOIN goes by timestamps, and a SLIDE in rows by their number"
        hint = "let SLIDE be a length of time, such as [RANGE 10 min SLIDE 1 min], or write EVERY"
        raise error("DS370", message, counted[0], hint)


def _check_inputs(item: Asof, left: Node, right: Node) -> None:
    assert isinstance(item.at, ast.Join)
    if not append_only(right):
        message = (
            "rows of the right side of ASOF JOIN stay until newer ones come, and here they leave: "
            f"{why_not_append_only(right)}"
        )
        hint = (
            "join a stream without a window, or what a subquery appends: (SELECT Istream(...) "
            "FROM ...)"
        )
        raise error("DS370", message, item.at.right, hint)
    for side, node, at in (("left", left, item.at.left), ("right", right, item.at.right)):
        why = untimely(node)
        if why is not None:
            message = f"ASOF JOIN goes by timestamps, and on the {side} {why}"
            hint = (
                "join streams, or what a subquery appends: (SELECT Istream(...) FROM ...), whose "
                "rows come when they enter its answer"
            )
            raise error("DS370", message, at, hint)


def untimely(node: Node) -> str | None:
    """Why rows of the node do not come at timestamps of their own, once each; None: they do."""
    match node:
        case StreamScan() | Append():
            return None
        case Window(spec=spec) if (
            not isinstance(spec, Now | Latest | First | Session | When) and spec.until
        ):
            return "a window holds rows back (UNTIL ... AGO)"
        case Join() if node.kind != "inner":
            return "rows of an outer join come and go as matches do"
        case TableScan():
            return "rows of a table are changed"
        case (
            Window() | Select() | Project() | Union() | JoinNRR() | Join() | MultiJoin() | Answer()
            | AsofJoin() | Match() | Over() | Unnest()
        ):  # a list  # fmt: skip
            return next((why for c in children(node) if (why := untimely(c))), None)
        case _:
            return "rows come and go with others: they are groups, or sets, or stand under EXISTS"


# ---------------------------------------------------------------- timestamps


def _comparison(condition: Expr, width: int) -> tuple[str, Expr, Expr] | None:
    """(comparison, of the left side, of the right side), if it is one across the two."""
    if not isinstance(condition, Call) or condition.fn not in _MIRRORED:
        return None
    a, b = condition.args
    if isinstance(a, Col) and isinstance(b, Col) and b.index < width <= a.index:
        return _MIRRORED[condition.fn], b, a
    return condition.fn, a, b


def _times(
    item: Asof, k: int, found: tuple[str, Expr, Expr], left: Node, right: Node
) -> tuple[int, int] | None:
    """Where the timestamps stand in both sides that are compared by >; None: by >=."""
    fn, a, b = found
    width = len(left.schema)
    mine = time_unit(left, a.index) if isinstance(a, Col) and a.index < width else None
    theirs = time_unit(right, b.index - width) if isinstance(b, Col) and b.index >= width else None
    if mine is None or theirs is None:
        what = "what it compares is not the timestamps of both sides"
        hint = f"write {_FORM}; other columns are compared in WHERE, or left out"
        raise _refused(item, k, what, hint)
    if mine != theirs:
        what = f"the timestamps are counted in {mine} and in {theirs}"
        raise _refused(item, k, what, "leave the comparison out: timestamps are meant without it")
    if fn not in ("ge", "gt"):
        what = "it asks for a row that is yet to come"
        raise _refused(item, k, what, "turn the sides: the one whose rows come later looks back")
    assert isinstance(a, Col) and isinstance(b, Col)
    return (a.index, b.index - width) if fn == "gt" else None


def time_unit(node: Node, column: int) -> str | None:
    """The unit of a column that is the timestamp of each row of the node, as that comes; None: it
    is another column."""
    match node:
        case StreamScan():
            stream = node.stream
            return (stream.unit or "TIMESTAMP") if stream.timestamp == column else None
        case Project():
            expr = node.exprs[column]
            return time_unit(node.child, expr.index) if isinstance(expr, Col) else None
        case Window() | Select() | Answer() | JoinNRR() | Over() | Unnest():
            (child,) = children(node)
            return time_unit(child, column) if column < len(child.schema) else None
        case AsofJoin():
            return time_unit(node.left, column) if column < len(node.left.schema) else None
        case Union():
            units = {time_unit(child, column) for child in node.inputs}
            return units.pop() if len(units) == 1 else None
        case _:
            return None


def _refused(item: Asof, k: int, what: str, hint: str) -> QueryError:
    """`k`: the conjunct of ON that is at fault."""
    assert isinstance(item.at, ast.Join) and item.at.on is not None
    on = item.at.on
    parts = on.operands if isinstance(on, ast.And) else (on,)
    at = parts[k] if len(parts) == len(item.on) else on
    message = f"the ON of ASOF JOIN says keys that are equal, and the order in time: {what}"
    return error("DS371", message, at, hint)
