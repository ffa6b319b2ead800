"""Typed expressions and windows back to syntax: ``bind(unbind(e)) == e`` over the same columns.

Implicit casts were written out by the binder, so they come back as CAST, which binds to the same
call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, assert_never

from dsms.aggregates.cards import CARDS
from dsms.sql import ast
from dsms.sql.expr import AggCall, Call, Col, Expr, Lit
from dsms.sql.types import Kind, Type, decimal
from dsms.sql.window import (
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

_BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
_COMPARE = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNITS = (
    (3_600_000_000, ast.Unit.HOUR),
    (60_000_000, ast.Unit.MINUTE),
    (1_000_000, ast.Unit.SECOND),
    (1_000, ast.Unit.MILLISECOND),
)


def unbind(expr: Expr, columns: Sequence[ast.Expr]) -> ast.Expr:
    """The expression as syntax; `columns` says what stands for each column of its schema."""
    match expr:
        case Col(index=index):
            return columns[index]
        case Lit():
            return literal(expr)
        case Call(fn="parameter", params=(int() as number,)):
            return ast.Parameter(number)
        case Call(args=args):
            return _call(expr, tuple(unbind(a, columns) for a in args))


def unbind_aggregate(agg: AggCall, columns: Sequence[ast.Expr]) -> ast.FuncCall:
    """The aggregate call as syntax, its constants last."""
    if agg.fn == "count_star":
        call = ast.FuncCall(ast.Ident("COUNT"), star=True)
    else:
        card = CARDS.get(agg.fn)
        listed = 1 if card is not None and card.listing else len(agg.args)
        keys = [unbind(a, columns) for a in agg.args[listed:]]
        own = len(agg.params) - len(keys)
        args = tuple(unbind(a, columns) for a in agg.args[:listed])
        args += tuple(_constant(p) for p in agg.params[:own])
        order = tuple(map(_order_item, keys, agg.params[own:]))
        call = ast.FuncCall(ast.Ident(agg.fn.upper()), args, agg.distinct, order_by=order)
    where = None if agg.filter is None else unbind(agg.filter, columns)
    return replace(call, filter=where)


def _order_item(key: ast.Expr, how: object) -> ast.OrderItem:
    """One of ORDER BY in an aggregate; `how` as `binder.aggregate_order` says."""
    first = True if "nulls first" in str(how) else None
    return ast.OrderItem(key, "desc" in str(how), first)


def _constant(value: object) -> ast.Expr:
    match value:
        case int():
            return ast.IntLit(value)
        case float():
            return ast.FloatLit(value)
        case _:
            return ast.StringLit(str(value))


# ---------------------------------------------------------------- constants


def literal(lit: Lit) -> ast.Expr:
    """The constant as syntax, with a CAST where its type does not show."""
    value, type_ = lit.value, lit.type
    if value is None:
        return (
            ast.NullLit() if type_.kind is Kind.NULL else ast.Cast(ast.NullLit(), type_name(type_))
        )
    match type_.kind:
        case Kind.TIMESTAMP:
            return ast.TimestampLit(value)  # type: ignore[arg-type]
        case Kind.DATE | Kind.TIME | Kind.UUID:
            return ast.TypedLit(type_.kind.value, value)  # type: ignore[arg-type]
        case Kind.INTERVAL:
            return ast.IntervalLit(duration(value))  # type: ignore[arg-type]
        case Kind.DECIMAL:
            assert isinstance(value, Decimal)
            written = ast.DecimalLit(f"{value:f}")
            return written if digits(written.text) == type_ else ast.Cast(written, type_name(type_))
        case Kind.LIST if type_.item is not None and type_.item.kind is Kind.NULL:
            nulls = (ast.NullLit(),) * str(value).count("null")  # of no type that could be written
            return ast.FuncCall(ast.Ident("LIST_VALUE"), nulls)
        case Kind.LIST | Kind.STRUCT:
            return ast.Cast(ast.StringLit(str(value)), type_name(type_))
        case _:
            return _LITERALS[type_.kind](value)


def digits(text: str) -> Type:
    """The type of a DECIMAL constant: as many digits as are written."""
    whole, _, fraction = text.lstrip("-").partition(".")
    return decimal(max(len(whole.lstrip("0")) + len(fraction), 1), len(fraction))


_LITERALS: dict[Kind, type] = {
    Kind.INT: ast.IntLit,
    Kind.FLOAT: ast.FloatLit,
    Kind.STRING: ast.StringLit,
    Kind.BYTES: ast.BytesLit,
    Kind.BOOL: ast.BoolLit,
}


def type_name(type_: Type) -> ast.TypeName:
    """The type as written."""
    if type_.item is not None:
        return ast.TypeName(type_.kind.value, (), type_name(type_.item))
    if type_.fields:
        fields = tuple(ast.FieldName(ast.Ident(n, True), type_name(t)) for n, t in type_.fields)
        return ast.TypeName(type_.kind.value, (), None, fields)
    args = (type_.precision, type_.scale) if type_.kind is Kind.DECIMAL else ()
    return ast.TypeName(type_.kind.value, args)


def duration(micros: int) -> ast.Duration:
    """A length in the coarsest unit up to hours that divides it (days may follow the calendar)."""
    for size, unit in _UNITS:
        if micros % size == 0:
            return ast.Duration(micros, unit)
    return ast.Duration(micros, ast.Unit.MICROSECOND)


# ---------------------------------------------------------------- calls


def _call(call: Call, args: tuple[ast.Expr, ...]) -> ast.Expr:
    fn = call.fn
    if fn in _BINARY:
        return ast.Binary(_BINARY[fn], *args)
    if fn in _COMPARE:
        return ast.Comparison(_COMPARE[fn], *args)
    match fn:
        case "and":
            return ast.And(args)
        case "or":
            return ast.Or(args)
        case "not":
            return ast.Not(*args)
        case "neg":
            return ast.Negate(*args)
        case "is_null" | "is_not_null":
            return ast.IsNull(args[0], fn == "is_not_null")
        case "distinct_from" | "not_distinct_from":
            return ast.IsDistinct(args[0], args[1], fn == "not_distinct_from")
        case "cast":
            return ast.Cast(args[0], type_name(call.type))
        case "try_cast":
            return ast.FuncCall(ast.Ident("TRY_CAST"), args, to=type_name(call.type))
        case _:
            return _special(call, args)


def _special(call: Call, args: tuple[ast.Expr, ...]) -> ast.Expr:
    match call.fn:
        case "in":
            return ast.InList(args[0], args[1:])
        case "like":
            escape = ast.StringLit(str(call.params[0])) if call.params else None
            return ast.Like(args[0], args[1], escape)
        case "case":
            whens = tuple(ast.When(c, v) for c, v in zip(args[:-1:2], args[1::2], strict=True))
            return ast.Case(whens, None, args[-1])
        case "python":
            said = (ast.StringLit(str(call.params[0])), ast.StringLit(str(call.type)))
            return ast.FuncCall(ast.Ident("PYTHON"), (*said, *args))
        case "named_struct":
            names = [ast.StringLit(name) for name, _ in call.type.fields]
            parts = tuple(part for pair in zip(names, args, strict=True) for part in pair)
            return ast.FuncCall(ast.Ident("NAMED_STRUCT"), parts)
        case "struct_extract":
            args = (*args, ast.StringLit(str(call.params[0])))
        case "concat" if len(args) == 2:
            return ast.Binary("||", *args)
    return ast.FuncCall(ast.Ident(call.fn.upper()), args)


# ---------------------------------------------------------------- windows


def window_syntax(spec: WindowSpec, columns_: Sequence[ast.Expr]) -> ast.Window:
    """The window as written; `columns_` are the columns that PARTITION BY may name."""
    common = {"internal": spec.internal, "archive": spec.archive, "slide": _slide(spec.slide)}
    match spec:
        case Time():
            length = _length(spec.calendar, spec.length)
            return ast.RangeWindow(length, _until(spec.until), **common)  # type: ignore[arg-type]
        case Rows():
            return ast.RowsWindow(spec.count, spec.until or None, (), **common)  # type: ignore[arg-type]
        case Partitioned():
            keys = tuple(ast.ColumnRef(columns_[i].name) for i in spec.by)  # type: ignore[attr-defined]
            age = None if spec.age is None else duration(spec.age)
            return ast.RowsWindow(spec.count, spec.until or None, keys, age, **common)  # type: ignore[arg-type]
        case Session() | When():
            return _episodes(spec, [ast.ColumnRef(c.name) for c in columns_], common)  # type: ignore[attr-defined]
        case Latest():
            raise AssertionError(spec)  # the stream's, and written nowhere else
        case Now():
            return ast.NowWindow(**common)  # type: ignore[arg-type]
        case Unbounded():
            return ast.UnboundedWindow(_until(spec.until), **common)  # type: ignore[arg-type]
        case First():
            keys = tuple(ast.ColumnRef(columns_[i].name) for i in spec.by)  # type: ignore[attr-defined]
            return ast.FirstWindow(spec.count, keys, **common)  # type: ignore[arg-type]
        case Throttled():
            keys = tuple(ast.ColumnRef(columns_[i].name) for i in spec.by)  # type: ignore[attr-defined]
            length = duration(spec.length)
            return ast.ThrottledWindow(length, _until(spec.until), keys, **common)  # type: ignore[arg-type]
        case Lasting():
            end = ast.ColumnRef(columns_[spec.end].name)  # type: ignore[attr-defined]
            return ast.LastingWindow(end, spec.spans, _until(spec.until), **common)  # type: ignore[arg-type]
        case Landmark():
            since = ast.Instant(spec.since)
            return ast.LandmarkWindow(since, _until(spec.until), **common)  # type: ignore[arg-type]
        case _:
            assert_never(spec)


def _episodes(
    spec: Session | When, columns_: Sequence[ast.Expr], common: dict[str, Any]
) -> ast.Window:
    keys = tuple(columns_[i] for i in spec.by)
    match spec:
        case Session(gap):
            length = duration(gap) if isinstance(gap, int) else unbind(gap, columns_)
            return ast.SessionWindow(length, keys, **common)
        case When(start, stop):
            return ast.WhenWindow(unbind(start, columns_), unbind(stop, columns_), keys, **common)


def _until(micros: int) -> ast.Duration | None:
    return duration(micros) if micros else None


def _slide(slide: Slide | None) -> ast.Slide | None:
    if slide is None:
        return None
    if slide.by_rows:
        return ast.Slide(slide.every)
    align = None if slide.align is None else ast.Instant(slide.align)
    return ast.Slide(_length(slide.calendar, slide.every), align, slide.zone)


def _length(calendar: tuple[int, str] | None, micros: int) -> ast.Duration:
    if calendar is None:
        return duration(micros)
    count, unit = calendar[0], ast.Unit(calendar[1])
    if unit in (ast.Unit.MONTH, ast.Unit.YEAR):
        return ast.Duration(0, unit, count * (12 if unit is ast.Unit.YEAR else 1))
    return ast.Duration(count * (7 if unit is ast.Unit.WEEK else 1) * 86_400_000_000, unit)
