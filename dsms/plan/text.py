"""Plan nodes and expressions in words, for EXPLAIN.  SQL that parses is written elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import assert_never

from dsms import typed_texts
from dsms.plan.windows import partition
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, Call, Col, Expr, Lit
from dsms.sql.types import MAX_INSTANT, Kind, Schema
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
    Slide,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
)

_INFIX = {
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "AND", "or": "OR",
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "concat": "||", "like": "LIKE",
    "distinct_from": "IS DISTINCT FROM",
    "not_distinct_from": "IS NOT DISTINCT FROM",
}  # a table  # fmt: skip
_POSTFIX = {"is_null": "IS NULL", "is_not_null": "IS NOT NULL"}
_UNITS = (("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000))
MANY = 8  # columns of a projection that are still listed one by one
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def duration(us: int) -> str:
    """A length of time in its largest whole unit, `90 s`."""
    for unit, size in _UNITS:
        if us and us % size == 0:
            return f"{us // size} {unit}"
    return f"{us} us"


def instant(us: int) -> str:
    """An instant in UTC; what ends with the year 9999 ends at the beginning of the next."""
    if us == MAX_INSTANT + 1:
        return "10000-01-01 00:00:00"
    return (_EPOCH + timedelta(microseconds=us)).isoformat(sep=" ").replace("+00:00", "")


def expression(expr: Expr, schema: Schema) -> str:
    """The expression over a schema; columns as `alias.name`."""
    match expr:
        case Col():
            return column(expr, schema)
        case Lit():
            return literal(expr)
        case Call(fn="cast"):
            return f"CAST({expression(expr.args[0], schema)} AS {expr.type})"
        case Call(fn="try_cast"):
            return f"TRY_CAST({expression(expr.args[0], schema)} AS {expr.type})"
        case Call(fn="parameter"):
            return f"?{expr.params[0]}"
        case Call(fn="not"):
            return f"NOT {_inner(expr.args[0], schema)}"
        case Call(fn="neg"):
            return f"-{_inner(expr.args[0], schema)}"
        case Call(fn="in"):
            first, *rest = (_inner(a, schema) for a in expr.args)
            return f"{first} IN ({', '.join(rest)})"
        case Call(fn="case"):
            return _case(expr, schema)
        case Call() if expr.fn in _POSTFIX:
            return f"{_inner(expr.args[0], schema)} {_POSTFIX[expr.fn]}"
        case Call() if expr.fn in _INFIX:
            return f" {_INFIX[expr.fn]} ".join(_inner(a, schema) for a in expr.args)
        case _:
            return f"{expr.fn}({', '.join(expression(a, schema) for a in expr.args)})"


def _case(expr: Call, schema: Schema) -> str:
    *pairs, last = (expression(a, schema) for a in expr.args)
    whens = " ".join(f"WHEN {c} THEN {v}" for c, v in zip(pairs[::2], pairs[1::2], strict=True))
    return f"CASE {whens} ELSE {last} END"


def _inner(expr: Expr, schema: Schema) -> str:
    text = expression(expr, schema)
    return (
        f"({text})" if isinstance(expr, Call) and (expr.fn in _INFIX or expr.fn == "not") else text
    )


def column(expr: Col, schema: Schema) -> str:
    """The column's name as the schema has it."""
    field = schema[expr.index]
    return f"{field.qualifier}.{field.name}" if field.qualifier else field.name


def literal(expr: Lit) -> str:
    """A constant as it would be written."""
    value = expr.value
    if value is None:
        return "NULL"
    match expr.type.kind:
        case Kind.STRING:
            return "'" + str(value).replace("'", "''") + "'"
        case Kind.DATE | Kind.TIME | Kind.UUID if isinstance(value, int | str):
            return f"{expr.type} '{typed_texts.text_of(value, str(expr.type))}'"
        case Kind.BYTES:
            return f"x'{value.hex()}'" if isinstance(value, bytes) else str(value)
        case Kind.TIMESTAMP if isinstance(value, int):
            return f"TIMESTAMP '{instant(value)}'"
        case Kind.INTERVAL if isinstance(value, int):
            return f"INTERVAL '{duration(value)}'"
        case Kind.BOOL:
            return str(value).upper()
        case _:
            return str(value)


def aggregate(call: AggCall, schema: Schema) -> str:
    """An aggregate call, `sum(a.x)`."""
    inner = ", ".join([*(expression(a, schema) for a in call.args), *map(str, call.params)])
    if call.fn == "count_star":
        name, inner = "count", "*"
    else:
        name = call.fn
    text = f"{name}({'DISTINCT ' if call.distinct else ''}{inner})"
    return text if call.filter is None else f"{text} FILTER ({expression(call.filter, schema)})"


def window(spec: WindowSpec, schema: Schema) -> str:
    """The window as it would be written, without brackets."""
    text = _extent(spec, schema)
    if spec.slide is not None:
        text += f" SLIDE {slide(spec.slide)}"
    return text + (" INTERNAL" if spec.internal else "") + (" ARCHIVE" if spec.archive else "")


def _extent(spec: WindowSpec, schema: Schema) -> str:
    match spec:
        case Time():
            length = _calendar(spec.calendar) or duration(spec.length)
            return f"RANGE {length}{_ago(spec.until)}"
        case Rows() | Partitioned():
            by = ", ".join(schema[i].name for i in partition(spec))
            until = f" UNTIL {spec.until} AGO" if spec.until else ""
            age = spec.age if isinstance(spec, Partitioned) else None
            within = f" RANGE {duration(age)}" if age is not None else ""
            return (f"PARTITION BY {by} " if by else "") + f"ROWS {spec.count}{until}{within}"
        case Session() | When():
            by = ", ".join(schema[i].name for i in spec.by)
            return _episodes(spec, schema) + (f" BY {by}" if by else "")
        case Latest():
            return f"KEY {', '.join(schema[i].name for i in spec.by)}"
        case Now():
            return "NOW"
        case First():
            by = ", ".join(schema[i].name for i in spec.by)
            return f"PARTITION BY {by} FIRST {spec.count}"
        case Throttled():
            by = ", ".join(schema[i].name for i in spec.by)
            return f"PARTITION BY {by} EVERY {duration(spec.length)}{_ago(spec.until)}"
        case Lasting():
            name = schema[spec.end].name
            said = f"RANGE ({name})" if spec.spans else f"VALID UNTIL {name}"
            return f"{said}{_ago(spec.until)}"
        case Unbounded():
            return f"RANGE UNBOUNDED{_ago(spec.until)}"
        case Landmark():
            return f"SINCE {instant(spec.since)}{_ago(spec.until)}"
        case _:
            assert_never(spec)


def _episodes(spec: Session | When, schema: Schema) -> str:
    match spec:
        case Session(gap):
            if isinstance(gap, int):
                return f"SESSION {duration(gap)}"
            return f"SESSION ({expression(gap, schema)})"
        case When(start, stop):
            return f"WHEN {expression(start, schema)} UNTIL {expression(stop, schema)}"


def _ago(until: int) -> str:
    return f" UNTIL {duration(until)} AGO" if until else ""


def _calendar(pair: tuple[int, str] | None) -> str | None:
    return None if pair is None else f"{pair[0]} {pair[1]}"


def slide(period: Slide) -> str:
    """Calendar units, rows or a length of time."""
    return _calendar(period.calendar) or (
        f"{period.every} rows" if period.by_rows else duration(period.every)
    )


def boundaries(period: Slide) -> str:
    """When a periodic query answers."""
    if period.by_rows:
        return f"answers after every {period.every} rows"
    aligned = "the epoch" if period.align is None else instant(period.align)
    zone = f" in {period.zone}" if period.zone else ""
    return f"answers every {slide(period)}{zone}, aligned to {aligned}"


def condition(
    keys: Sequence[tuple[Expr, Expr]],
    residual: Expr | None,
    left: Schema,
    right: Schema,
    null_aware: bool = False,
) -> str:
    """A join condition; `a.x = b.y AND ...`, or `true` for a cross product."""
    parts = [f"{_inner(a, left)} = {_inner(b, right)}" for a, b in keys]
    if residual is not None:
        parts.append(expression(residual, left + right))
    return (" AND ".join(parts) or "true") + (" (or unknown)" if null_aware else "")


def describe(node: lp.Node) -> str:
    """The node in one line, without its inputs."""
    match node:
        case lp.StreamScan():
            return _leaf(node) + _named(node.stream.name, node.alias)
        case lp.TableScan():
            return "Table " + _named(node.table.name, node.alias)
        case lp.Values():
            return f"Values {len(node.rows)} row" + ("" if len(node.rows) == 1 else "s")
        case lp.Window():
            return "Window " + window(node.spec, node.schema)
        case lp.Select():
            return "Select " + expression(node.predicate, node.child.schema)
        case lp.Project():
            return "Project " + _listed([expression(e, node.child.schema) for e in node.exprs])
        case lp.Join():
            what = {"inner": "Join", "left": "LeftJoin", "right": "RightJoin", "full": "FullJoin"}[
                node.kind
            ]
            return (
                f"{what} {condition(node.keys, node.residual, node.left.schema, node.right.schema)}"
            )
        case lp.MultiJoin():
            return "MultiJoin " + _all_equal(node)
        case lp.JoinNRR():
            what = "JoinNRR" if node.kind == "inner" else "LeftJoinNRR"
            on = condition(node.keys, node.residual, node.child.schema, node.table.schema)
            return f"{what} {_named(node.table.table.name, node.table.alias)} ON {on}"
        case lp.AsofJoin():
            return _asof(node)
        case lp.Match():
            return _match(node)
        case lp.Unnest():
            what = "Unnest" if node.kind == "inner" else "LeftUnnest"
            return f"{what} {expression(node.items, node.child.schema)}"
        case lp.SemiJoin():
            what = "Negation" if node.anti else "SemiJoin"
            on = condition(
                node.keys, node.residual, node.left.schema, node.right.schema, node.null_aware
            )
            return f"{what} {on}"
        case lp.SetOp():
            return node.op.capitalize() + (" ALL" if node.all else "")
        case lp.Union() | lp.Distinct():
            return type(node).__name__
        case lp.Over():
            return _over(node)
        case lp.GroupBy():
            return _group(node)
        case lp.Append():
            return "Append" + (
                " (external windows mixed in)"
                if node.mixed
                else " (entries)"
                if node.entries
                else " (departures)"
                if node.departures
                else ""
            )
        case lp.Answer():
            return "Query " + _named(node.query, node.schema[0].qualifier or "")
        case lp.TopN():
            return _top(node)
        case lp.Sort():
            return _sort(node)
        case lp.Output():
            return node.kind.capitalize() + ("-restore" if node.restore else "")
        case _:
            assert_never(node)


def _asof(node: lp.AsofJoin) -> str:
    """`AsofJoin a.k = b.k within 5 s`"""
    on = condition(node.keys, None, node.left.schema, node.right.schema)
    what = "AsofJoin" if node.kind == "inner" else "LeftAsofJoin"
    earlier = "" if node.after is None else " earlier"
    return f"{what} {on}{earlier}" + (
        "" if node.span is None else f" within {duration(node.span - 1)}"
    )


def _match(node: lp.Match) -> str:
    """`Match a, NOT u, b within 5 s PER k, skip past last; b: b.v > a.v`"""
    names = [
        f"{'NOT ' * (k == 'none')}{n}{'+' * (k == 'many')}"
        for k, n in zip(node.kinds, node.names, strict=True)
    ]
    schema = (*(f for n in node.inputs for f in n.schema), *node.schema[-len(node.aggs) :])
    per = ", ".join(expression(same[0], node.inputs[0].schema) for same in node.keys)
    conditions = [
        f"; {name}: {expression(c, schema)}"
        for name, c in zip(names, node.conditions, strict=True)
        if c is not None
    ]
    within = f"Match {', '.join(names)} within {duration(node.span)}"
    aggs = [f"; {aggregate(call, node.inputs[k].schema)}" for k, call in node.aggs]
    shown = [within, f" PER {per}" * bool(per), ", skip past last" * node.skip]
    return "".join([*shown, *conditions, *aggs])


def _all_equal(node: lp.MultiJoin) -> str:
    """`a.x = b.y = c.z AND ...`"""
    parts = [
        " = ".join(
            _inner(e, i.schema) for e, i in zip(same, node.inputs, strict=True) if e is not None
        )
        for same in node.keys
    ]
    if node.residual is not None:
        parts.append(expression(node.residual, node.schema))
    return " AND ".join(parts)


def _leaf(node: lp.StreamScan) -> str:
    if node.history:
        return "History "
    if node.archive is None:
        return "Stream "
    return "Stream and archive " if node.archive.live else "Archive "


def _listed(items: Sequence[str]) -> str:
    """All items, or the first of many and how many there are."""
    shown = ", ".join(items if len(items) <= MANY else items[: MANY - 2])
    return shown if len(items) <= MANY else f"{shown}, ... ({len(items)} columns)"


def _named(name: str, alias: str) -> str:
    return name if alias in ("", name) else f"{name} AS {alias}"


def _group(node: lp.GroupBy) -> str:
    schema = node.child.schema
    aggs = ", ".join(aggregate(a, schema) for a in node.aggs)
    keys = ", ".join(expression(k, schema) for k in node.keys)
    return "GroupBy " + "; ".join(p for p in (keys, aggs) if p)


def _over(node: lp.Over) -> str:
    schema = node.child.schema
    text = "Over " + "; ".join(_frame(frame, schema) for frame in node.frames)
    text += "" if node.window == UNBOUNDED else f" IN [{window(node.window, schema)}]"
    where = "" if node.predicate is None else f" WHERE {expression(node.predicate, schema)}"
    return text + where


def _frame(frame: lp.Frame, schema: Schema) -> str:
    text = ", ".join(aggregate(call, schema) for call in frame.calls)
    text += f" PARTITION BY {', '.join(expression(e, schema) for e in frame.by)}" * bool(frame.by)
    text += "" if frame.rows is None else f" ROWS {frame.rows} PRECEDING"
    return text + ("" if frame.span is None else f" RANGE {duration(frame.span)} PRECEDING")


def _sort(node: lp.Sort) -> str:
    limit = "" if node.limit is None else f" LIMIT {node.limit}"
    offset = f" OFFSET {node.offset}" if node.offset else ""
    return f"Sort {_order(node)}".rstrip() + limit + offset


def _top(node: lp.TopN) -> str:
    by = ", ".join(expression(e, node.child.schema) for e in node.by)
    return f"First {node.limit}{f' PER {by}' if by else ''} ORDER BY {_order(node)}"


def _order(node: lp.Sort | lp.TopN) -> str:
    return ", ".join(
        expression(e, node.child.schema) + (" DESC" if down else "") for e, down, _ in node.keys
    )
