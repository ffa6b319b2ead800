"""OVER: which rows it may look at, and what it may ask of them.

What a row says is settled when it comes, of the rows that are in the window then and came no later.
So the rows must come at timestamps of their own and stay until they leave the window, and their
order is that of the stream.  In the plan the node stands below the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.asof import untimely
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.over_calls import LEAD, bind_call, is_call
from dsms.sql.binder.over_frames import extent
from dsms.sql.binder.over_lead import Marked, followed, marked
from dsms.sql.binder.properties import append_only, why_not_append_only
from dsms.sql.catalog import Catalog, QueryDef
from dsms.sql.codes import error
from dsms.sql.expr import AggCall, Col, Expr, conjunction, conjuncts
from dsms.sql.logical import Frame, Node, Over, Project, Select, TableScan, Window, nodes_of
from dsms.sql.types import Field
from dsms.sql.window import (
    UNBOUNDED,
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
    counts,
)

IN_FROM = (
    "put the rows into a subquery: SELECT ... FROM (SELECT *, LAG(v) OVER (PARTITION BY k) AS "
    "before FROM s [RANGE 1 min]) q JOIN ..."
)


@dataclass(frozen=True, slots=True)
class Framed:
    """Rows with the values of OVER behind their own columns, and what reads each of these."""

    node: Node
    values: dict[ast.Expr, Expr]


def calls_in(exprs: Iterable[ast.Node | None]) -> list[ast.Over]:
    """The OVERs of expressions, other than in their subqueries; equal ones once."""
    return list(dict.fromkeys(call for expr in exprs if expr is not None for call in _in(expr)))


def _in(node: ast.Node) -> Iterator[ast.Over]:
    if isinstance(node, ast.Over):
        yield node
    elif not isinstance(node, ast.Query):
        for child in ast.children(node):
            yield from _in(child)


def of_select(select: ast.Select, order: Sequence[ast.Expr]) -> list[ast.Over]:
    """The OVERs of a block; `order`: what its ORDER BY and PER name."""
    items = [item.expr for item in select.items if isinstance(item, ast.SelectItem)]
    return calls_in([*items, select.having, select.qualify, *order])


def check_block(select: ast.Select, calls: Sequence[ast.Over], grouped: bool, more: bool) -> None:
    """Raise DS373 where OVER would look at groups, at rows of a join or at rows that a subquery
    tests (`more`), DS382 for QUALIFY without OVER, and for DISTINCT ON in a set operation."""
    if select.distinct_on:
        message = "DISTINCT ON takes the first rows of a whole query, which ORDER BY tells"
        hint = "write it in a subquery: SELECT ... FROM (SELECT DISTINCT ON (k) ... ORDER BY ...)"
        raise error("DS382", message, select.distinct_on[0], hint)
    if not calls:
        if select.qualify is not None:
            message = "QUALIFY looks at values of OVER, and there are none"
            hint = "conditions on rows stand in WHERE, those on groups in HAVING"
            raise error("DS382", message, select.qualify, hint)
        return
    if grouped:
        message = "OVER looks at the rows of FROM, and here they are groups"
        hint = (
            "append the groups and look at these: SELECT ... FROM (SELECT Istream(k, COUNT(*) AS "
            "n) FROM s [RANGE 1 min SLIDE 1 min] GROUP BY k) q"
        )
        raise error("DS373", message, calls[0], hint)
    if more or len(select.from_) != 1 or isinstance(select.from_[0], ast.Join):
        what = "subqueries in it" if more else "several"
        message = f"OVER looks at the rows of one item of FROM, and here are {what}"
        if not select.from_:
            message = "OVER looks at the rows of FROM, and there is none"
        raise error("DS373", message, calls[0], IN_FROM)


def check_slides(windows: Sequence[tuple[WindowSpec, ast.Node]], node: Node) -> None:
    """Raise DS373 where rows are counted for instants."""
    counted = [at for spec, at in windows if spec.slide is not None and spec.slide.by_rows]
    if counted and any(isinstance(n, Over) for n in nodes_of(node)):
        message = "OVER goes by timestamps, and a SLIDE in rows by their number"
        hint = "let SLIDE be a length of time, such as [RANGE 10 min SLIDE 1 min], or write EVERY"
        raise error("DS373", message, counted[0], hint)


# ---------------------------------------------------------------- the node


Key = tuple[tuple[Expr, ...], int | None, int | None]  # of a frame: by, rows, span
Place = tuple[Key, int]  # of a call: its frame, its number there


@dataclass(slots=True)
class _Asked:
    """What is asked of the rows: calls by what they look at, and those of LEAD, by the marks of the
    rows that each row follows."""

    frames: dict[Key, list[AggCall]] = field(default_factory=dict)
    found: dict[ast.Over, Place] = field(default_factory=dict)
    leads: dict[tuple[Place, ...], dict[ast.Over, AggCall]] = field(default_factory=dict)

    def place(self, key: Key, call: AggCall) -> Place:
        """Where the call stands among those that look at the same rows."""
        calls = self.frames.setdefault(key, [])
        known = [replace(c, name="") for c in calls]
        if replace(call, name="") not in known:
            calls.append(call)
            return key, len(calls) - 1
        return key, known.index(replace(call, name=""))

    def add(self, node: ast.Over, key: Key, call: AggCall, rows: Marked) -> None:
        """What stands there."""
        if call.fn != LEAD:
            self.found[node] = self.place(key, call)
            return
        back = key[1]
        assert back is not None
        before = tuple(self.place(key, mark) for mark in rows.before(back))
        self.leads.setdefault(before, {})[node] = call


def framed(env: Env, node: Node, calls: Sequence[ast.Over]) -> Framed:
    """The rows of FROM and WHERE with the values of these calls.  `env`: the names over `node`.
    Raises DS372, DS373, DS374, DS382."""
    try:
        spec, child, where = _below_window(node, calls[0])
    except QueryError as failure:
        raise _of_answer(env.ctx.catalog, node, failure) from None
    leads = [call for call in calls if is_call(call, LEAD)]
    if leads and spec is not None and spec.internal:
        message = "LEAD takes back what a row said when the next one comes, and INTERNAL appends"
        raise error("DS374", message, leads[0], "leave INTERNAL out, or look back: LAG(x)")
    rows = marked(child) if leads else Marked(child, ())
    asked = _Asked()
    for call in calls:
        asked.add(call, *_bound(env, child, spec, call), rows)
    made = _looked_at(spec, rows.node, where, asked)
    firsts = _firsts(asked, len(rows.node.schema))

    def at(place: Place) -> int:
        return firsts[place[0]] + place[1]

    values: dict[ast.Expr, Expr] = {}
    for call, place in asked.found.items():
        values[call] = Col(at(place), made.schema[at(place)].type, made.schema[at(place)].name)
    out = made
    for places, wanted in asked.leads.items():
        before = [at(place) for place in places]
        out, read = followed(env.ctx, made, out, rows.marks, before, list(wanted.values()))
        values |= dict(zip(wanted, read, strict=True))
    return Framed(out, values)


def _looked_at(spec: WindowSpec | None, child: Node, where: list[Expr], asked: _Asked) -> Node:
    """The rows in the window that pass, with what all frames say of them."""
    frames = tuple(Frame(by, tuple(c), rows, span) for (by, rows, span), c in asked.frames.items())
    predicate = conjunction(where)
    pushed = spec is None or not counts(spec)
    if pushed and predicate is not None:
        child, predicate = Select(child, predicate, child.schema), None
    more = tuple(Field(call.name, call.type) for frame in frames for call in frame.calls)
    schema = child.schema + more
    bare = UNBOUNDED if spec is None else replace(spec, internal=False, slide=None, archive=False)
    made: Node = Over(child, bare, predicate, frames, schema)
    if spec is not None:
        made = Window(made, spec, schema)
    return made if predicate is None else Select(made, predicate, schema)


def _firsts(asked: _Asked, first: int) -> dict[Key, int]:
    """Where the columns of each frame begin."""
    out = {}
    for key, calls in asked.frames.items():
        out[key] = first
        first += len(calls)
    return out


def _bound(env: Env, child: Node, spec: WindowSpec | None, node: ast.Over) -> tuple[Key, AggCall]:
    """What the call looks at, and the call."""
    inside = replace(env, place="OVER")
    by = tuple(dict.fromkeys(bind(inside, key) for key in node.partition_by))
    _check_partition(spec, by, child, node)
    call, back = bind_call(inside, node)
    rows, span = extent(inside, child, node, back)
    return (by, rows, span), call


def _check_partition(
    spec: WindowSpec | None, by: Sequence[Expr], child: Node, node: ast.Over
) -> None:
    """Rows of a partitioned window leave in the order of each of its partitions."""
    if not isinstance(spec, Partitioned):
        return
    columns_ = {e.index for e in by if isinstance(e, Col)}
    missing = [child.schema[i].name for i in spec.by if i not in columns_]
    if missing:
        message = (
            "rows leave this window by its own keys, and OVER looks at rows of several of them "
            "together"
        )
        hint = f"add the window's keys: OVER (PARTITION BY {', '.join(missing)})"
        raise error("DS373", message, node, hint)


def _below_window(node: Node, at: ast.Over) -> tuple[WindowSpec | None, Node, list[Expr]]:
    """The window over the rows (None: none is needed), what is below it, and conditions on its
    rows."""
    where: list[Expr] = []
    while isinstance(node, Select) and not append_only(node):
        where = [*conjuncts(node.predicate), *where]
        node = node.child
    spec, child = _hoisted(node, at)
    why = untimely(child)
    if why is not None:
        hint = (
            "look at a stream, or at what a subquery appends: (SELECT Istream(...) FROM ...), "
            "whose rows come when they enter its answer"
        )
        raise error("DS373", f"OVER goes by timestamps, and {why}", at, hint)
    return spec, child, where


def _hoisted(node: Node, at: ast.Over) -> tuple[WindowSpec | None, Node]:
    """The window of a node that is as if it stood on top, and the node without it."""
    match node:
        case Window(child=child, spec=spec) if append_only(child):
            _check_window(spec, at)
            return spec, replace_schema(child, node)
        case Project(child=child, exprs=exprs) if not append_only(node):
            under, below = _hoisted(child, at)
            moved = _moved(under, exprs)
            if moved is not None:
                return moved, Project(below, exprs, node.schema)
        case Select(child=child, predicate=predicate) if not append_only(node):
            under, below = _hoisted(child, at)
            if under is None or not counts(under):
                return under, Select(below, predicate, node.schema)
            message = "OVER looks at rows of a window that counts them, and some are left out of it"
            hint = "move the condition out of the subquery, behind OVER: QUALIFY condition"
            raise error("DS373", message, at, hint)
        case _ if append_only(node):
            return None, node
    raise _refused(node, at)


def replace_schema(child: Node, node: Window) -> Node:
    """The child under the names that its window has."""
    return child if child.schema == node.schema else replace(child, schema=node.schema)


def _moved(spec: WindowSpec | None, exprs: Sequence[Expr]) -> WindowSpec | None:
    """The same window over other columns; None: these lack some that it needs."""
    if not isinstance(spec, Partitioned):
        return spec
    places = {e.index: k for k, e in enumerate(exprs) if isinstance(e, Col)}
    if not set(spec.by) <= set(places):
        return None
    return replace(spec, by=tuple(places[i] for i in spec.by))


def _refused(node: Node, at: ast.Over) -> QueryError:
    message = f"OVER looks at rows of a stream, and these are not: {why_not_append_only(node)}"
    hint = (
        "look at a stream, or at what a subquery appends: FROM (SELECT Istream(...) FROM ...) q, "
        "with a window behind it"
    )
    return error("DS373", message, at, hint)


def _of_answer(catalog: Catalog, node: Node, failure: QueryError) -> QueryError:
    """The failure; of what a query answers now it says where the rows are that it has told."""
    for scan in nodes_of(node):
        name = scan.table.name if isinstance(scan, TableScan) else ""
        if isinstance(catalog.find(name, True), QueryDef):
            failure.message = (
                f"OVER looks at rows of a stream, and what {name} answers now is a relation, which "
                "changes"
            )
            failure.hint = f"look at the rows that it has told: FROM {name} [RANGE 1 min]"
    return failure


def _check_window(spec: WindowSpec, at: ast.Over) -> None:
    """Whether a row is in it when it comes, and how far it reaches back then is known."""
    match spec:
        case Time(until=0, calendar=None) | Now() | Rows(until=0) | Partitioned(until=0):
            return
        case Unbounded(until=0) | Landmark(until=0):
            return
        case Time(until=0):
            message = "OVER looks back from each row, and this window moves at days of a calendar"
            hint = "say how long it is in hours: [RANGE 24 HOURS SLIDE 1 DAY TIME ZONE '...']"
        case Lasting() | Throttled() | First() | Session() | When():
            message = "OVER looks at rows that leave in the order in which they come"
            hint = "let the window be a length of time, or of so many rows, or leave it out"
        case Latest():
            message = "OVER looks at rows as they come, and those of a stream with KEY are replaced"
            hint = "look at what a subquery appends of it: FROM (SELECT Istream(...) FROM ...) q"
        case Time() | Rows() | Partitioned() | Unbounded() | Landmark():
            message = "a row is not in this window when it comes (UNTIL ... AGO)"
            hint = "leave UNTIL out"
        case _:
            assert_never(spec)
    raise error("DS373", message, at, hint)
