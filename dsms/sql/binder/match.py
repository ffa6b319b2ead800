"""MATCH: which steps a pattern may have, what its window may be, and to which step each condition
of WHERE belongs.

A conjunct of WHERE that names nothing but steps of one MATCH says which rows match: it belongs to
the last step that it names, and may look back at earlier ones.  All others look at the matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.asof import untimely
from dsms.sql.binder.calls import cast
from dsms.sql.binder.groups import Group, Leaf, Opened, Pattern
from dsms.sql.binder.scope import Scope, find
from dsms.sql.catalog import Catalog, TableDef
from dsms.sql.codes import error
from dsms.sql.expr import AggCall, Col, Expr, columns, conjunction, rewrite
from dsms.sql.functions import common_type
from dsms.sql.logical import Match, Node, Select, Window, nodes_of
from dsms.sql.types import Field
from dsms.sql.window import Time, WindowSpec

ONE, MANY, NONE = ast.StepKind.ONE, ast.StepKind.MANY, ast.StepKind.NONE
_WINDOW = "write MATCH (...) [RANGE 10 s]: all rows of a match lie within that time"

# ---------------------------------------------------------------- steps


def check_steps(item: ast.Match) -> None:
    """Raise DS377 for a pattern that nothing can follow."""
    if len(item.steps) < 2 or not any(s.kind is ONE for s in item.steps):
        hint = (
            "for single rows write FROM stream WHERE ...; a pattern is MATCH (a s, b s) [RANGE t]"
        )
        raise error("DS377", "a pattern has two steps at least", item, hint)
    if item.steps[0].kind is NONE:
        hint = "begin with the row that starts the attempt; NOT stands between two steps"
        raise error("DS377", "a pattern can't begin with NOT", item.steps[0], hint)
    for step, after in zip(item.steps, (*item.steps[1:], None), strict=True):
        if step.kind is MANY and (step is item.steps[0] or after is None):
            hint = "begin and end with single rows: MATCH (a s, b+ s, c s) [RANGE t]"
            raise error("DS377", "the rows of a step with + have an end on both sides", step, hint)
        if step.kind is MANY and after is not None and after.kind is NONE:
            hint = "put a step of one row between the two"
            raise error("DS377", "NOT can't stand behind a step with +", after, hint)


def window_of(item: ast.Match, outer: ast.Window | None) -> ast.Window:
    """The window of the pattern; `outer`: the query's WINDOW.  Raises DS317, DS375."""
    if item.window is not None and outer is not None:
        message = "MATCH has a window of its own, and the query's WINDOW would put another on it"
        raise error("DS317", message, item.window, "leave one of the two out")
    window = item.window or outer
    if window is None:
        raise error("DS375", "MATCH needs a window in time", item, _WINDOW)
    if not isinstance(window, ast.RangeWindow):
        raise error("DS375", "the window of MATCH is a length of time", window, _WINDOW)
    if item.steps[-1].kind is NONE and not window.internal:
        message = "a match that ends with NOT is born when its window is over, and could not live"
        hint = "let it be appended: [RANGE 10 min INTERNAL]"
        raise error("DS377", message, window, hint)
    return window


def check_source(step: ast.MatchStep, catalog: Catalog) -> None:
    """Raise DS375 for a table, which has no rows that come."""
    source = step.source
    if not isinstance(source, ast.TableRef):
        return
    if isinstance(catalog.find(source.name.text, source.name.quoted), TableDef):
        raise _changes(step)


def _changes(step: ast.MatchStep) -> QueryError:
    hint = "a step is a stream, or a subquery that appends: (SELECT Istream(...) FROM ...)"
    return error("DS375", "MATCH follows rows that come, and these change", step, hint)


def leaf_of(step: ast.MatchStep, group: Group) -> Leaf:
    """The bound source of a step.  Raises DS375 where its rows have no timestamps, or where the
    window is no plain length of time."""
    (leaf,) = group.items
    assert isinstance(leaf, Leaf)
    node = leaf.node
    if not isinstance(node, Window) or not isinstance(node.spec, Time):
        raise _changes(step)
    if node.spec.until or node.spec.calendar is not None:
        message = "the window of MATCH is a plain length of time, which ends now"
        raise error("DS375", message, step, "leave UNTIL, days under TIME ZONE and months out")
    why = untimely(node.child)
    if why is not None:
        hint = "match streams, or what a subquery appends: (SELECT Istream(...) FROM ...)"
        raise error("DS375", f"MATCH goes by timestamps, and here {why}", step, hint)
    return leaf


def key(ref: ast.ColumnRef, scopes: Sequence[Scope]) -> tuple[Expr, ...]:
    """The column of PER in each step, all of one type; DS378 where there is none."""
    found = [find(scope, ref).expr for scope in scopes]
    common = found[0].type
    for expr in found[1:]:
        both = common_type(common, expr.type)
        if both is None:
            message = f"PER {ref.name.text}: {common} and {expr.type} are never equal"
            hint = "cast one of them in a subquery: MATCH (a s, b (SELECT CAST(k AS ...) AS k ...))"
            raise error("DS378", message, ref, hint)
        common = both
    return tuple(cast(expr, common) for expr in found)


def check_slides(windows: Sequence[tuple[WindowSpec, ast.Node]], node: Node) -> None:
    """Raise DS375 where rows are counted for instants, and timestamps are compared."""
    counted = [at for spec, at in windows if spec.slide is not None and spec.slide.by_rows]
    if counted and any(isinstance(n, Match) for n in nodes_of(node)):
        message = "MATCH goes by timestamps, and a SLIDE in rows by their number"
        hint = "let SLIDE be a length of time, such as [RANGE 10 min SLIDE 1 min], or write EVERY"
        raise error("DS375", message, counted[0], hint)


# ---------------------------------------------------------------- conditions


def share_out(group: Group, conditions: Sequence[tuple[Expr, ast.Expr]], plain: bool) -> list[Expr]:
    """Give each pattern the conjuncts, each with its place in the text, that name its steps alone;
    the others are returned.  Raises DS376 for one that names what it can't, DS377 where a pattern
    does not stand alone that must; `plain`: the block neither groups nor asks subqueries."""
    _check_alone(group, plain)
    rest = []
    found = list(patterns(group))
    for condition, at in conditions:
        used = columns(condition)
        home = next((p for p in found if used and used <= set(p.every)), None)
        if home is not None:
            _check_names(home, used, at)
            home.conditions.append(condition)
            continue
        check_outside(group, used, at)
        rest.append(condition)
    return rest


def _check_alone(group: Group, plain: bool) -> None:
    """Raise DS377 where a pattern that ends with NOT is joined, or the block is not `plain`: it
    groups, or asks subqueries."""
    plain = plain and len(group.items) == 1
    for pattern in patterns(group):
        if pattern.at.steps[-1].kind is NONE and not (plain and pattern in group.items):
            message = "matches that end with NOT are appended as they are, before they are read"
            hint = "put the MATCH into a subquery: FROM (SELECT a.k FROM MATCH (...) [...]) m"
            raise error("DS377", message, pattern.at, hint)


def check_outside(group: Group, used: set[int], at: ast.Node) -> None:
    """Raise DS376 for a condition over these columns, which looks at matches, if one of them is of
    a step that has no row there."""
    for pattern in patterns(group):
        for k in pattern.named(used - {at for _, _, at in pattern.aggs}):
            step, _ = pattern.steps[k]
            if step.kind is not ONE:
                message = f"{_called(step)} has not one row, and this looks at whole matches"
                hint = "a condition of such a step names steps of its MATCH alone"
                raise error("DS376", message, at, hint)


def patterns(group: Group) -> Iterator[Pattern]:
    """Those that stand in FROM."""
    for item in group.items:
        match item:
            case Pattern():
                yield item
            case Leaf():
                pass
            case Opened():
                yield from patterns(item.left)
            case _:
                yield from patterns(item.left)
                yield from patterns(item.right)


def _check_names(pattern: Pattern, used: set[int], at: ast.Node) -> None:
    *earlier, last = pattern.named(used)
    for k in earlier:
        step, leaf = pattern.steps[k]
        if step.kind is not ONE and used & set(leaf.virtual):
            later = _called(pattern.steps[last][0])
            rows, hint = "there is no row", "compare it with steps that have one row"
            if step.kind is MANY:
                name = _name(step)
                rows = "there may be many rows"
                hint = (
                    f"compare it with steps that have one row, or with an aggregate, such as "
                    f"MAX({name}.v); the row before each row is LAG(v) OVER (...) in a subquery"
                )
            message = f"a condition of {later} can't name {_called(step)}, of which {rows}"
            raise error("DS376", message, at, hint)


def _called(step: ast.MatchStep) -> str:
    return f"{'NOT ' * (step.kind is NONE)}{_name(step)}{'+' * (step.kind is MANY)}"


def _name(step: ast.MatchStep) -> str:
    assert step.source.alias is not None
    return step.source.alias.text


# ---------------------------------------------------------------- the node


def match_node(pattern: Pattern) -> Match:
    """The node, with what concerns single rows below it."""
    place = {v: i for i, v in enumerate(pattern.every)}
    inputs, conditions = list[Node](), list[Expr | None]()
    for k, (_, leaf) in enumerate(pattern.steps):
        mine = [c for c in pattern.conditions if pattern.named(columns(c))[-1] == k]
        own = [c for c in mine if columns(c) <= set(leaf.virtual)]
        inputs.append(_selected(leaf, own))
        conditions.append(conjunction([_moved(c, place) for c in mine if c not in own]))
    keys = tuple(
        tuple(_own(e, leaf) for e, (_, leaf) in zip(same, pattern.steps, strict=True))
        for same in pattern.keys
    )
    window = pattern.steps[0][1].node
    assert isinstance(window, Window) and isinstance(window.spec, Time)
    kinds = tuple(step.kind.value for step, _ in pattern.steps)
    names = tuple(_name(step) for step, _ in pattern.steps)
    fields = [f for n, k in zip(inputs, kinds, strict=True) if k == "one" for f in n.schema]
    aggs = tuple((k, _own_call(call, pattern.steps[k][1])) for k, call, _ in pattern.aggs)
    fields += [Field(call.name, call.type) for _, call in aggs]
    over = (tuple(inputs), kinds, names, keys, tuple(conditions), aggs)
    span, skip = window.spec.length, pattern.at.skip
    return Match(*over, span, tuple(fields), skip)  # type: ignore[arg-type]


def _own_call(call: AggCall, leaf: Leaf) -> AggCall:
    where = None if call.filter is None else _own(call.filter, leaf)
    return replace(call, args=tuple(_own(a, leaf) for a in call.args), filter=where)


def _selected(leaf: Leaf, conditions: list[Expr]) -> Node:
    predicate = conjunction([_own(c, leaf) for c in conditions])
    return leaf.node if predicate is None else Select(leaf.node, predicate, leaf.node.schema)


def _own(expr: Expr, leaf: Leaf) -> Expr:
    return _moved(expr, {v: i for i, v in enumerate(leaf.virtual)})


def _moved(expr: Expr, place: dict[int, int]) -> Expr:
    return rewrite(expr, lambda c: Col(place[c.index], c.type, c.name))
