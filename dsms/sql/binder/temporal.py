"""Conditions on the time that goes by: WHERE ts > NOW() - INTERVAL '1' HOUR in a persistent query.

To such a query NOW() is the instant of each answer, so a condition that compares it with a stream's
row says from when to when the row is in the answer.  That is what windows say, so it becomes one:

    ts > NOW() - INTERVAL '1' HOUR            FROM s [RANGE 1 HOUR]
    ts <= NOW() - INTERVAL '5' MINUTE         FROM s [RANGE UNBOUNDED UNTIL 5 MINUTES AGO]
    expires > NOW()                           FROM s [VALID UNTIL expires] WHERE expires IS NOT NULL

where ts is the column of TIMESTAMP BY.  NOW() stays, and is refused, where it says anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dsms.sql import ast
from dsms.sql.binder.now import WORDS, misplaced
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.rewriting import replaced

_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
_INNER = (ast.JoinKind.INNER, ast.JoinKind.CROSS)


@dataclass(frozen=True, slots=True)
class _Bound:
    """When the row comes into the answer (`ends` False), or leaves it: at `value` + `shift` µs.

    call  the NOW() that says so"""

    value: ast.Expr
    shift: int
    ends: bool
    call: ast.FuncCall


def timed(query: ast.Query, catalog: Catalog) -> ast.Query:
    """The query, and those in it, with windows for their conditions on NOW().  Raises DS337."""
    if not any(_is_now(part) for part in ast.walk(query)):
        return query

    def swap(part: ast.Node) -> ast.Node | None:
        if not isinstance(part, ast.Select) or part.where is None:
            return None
        inside = replaced(replace(part, where=None), swap, within_queries=True)
        where = replaced(part.where, swap, within_queries=True)
        return _timed(replace(inside, where=where), catalog)

    made: ast.Query = replaced(query, swap, within_queries=True)
    return made


def _is_now(part: ast.Node) -> bool:
    return (
        isinstance(part, ast.FuncCall)
        and part.name.text.casefold() in WORDS
        and not (part.args or part.star or part.distinct or part.filter)
    )


def _timed(select: ast.Select, catalog: Catalog) -> ast.Select:
    """One block."""
    kept: list[ast.Expr] = []
    found: dict[int, list[_Bound]] = {}
    items = list(_streams(select.from_, catalog))
    for condition in _conditions(select.where):
        bound = _bound(condition)
        at = None if bound is None else _item(bound.value, items)
        if bound is None or at is None:
            kept.append(condition)
        else:
            found.setdefault(at, []).append(bound)
    if not found:
        return select
    windows: dict[int, ast.Window] = {}
    for at, bounds in found.items():
        ref, stream = items[at]
        window, more = _window(ref, stream, bounds, select.window is not None)
        kept += more
        if window is not None:
            windows[id(ref)] = window

    def swap(part: ast.Node) -> ast.Node | None:
        if isinstance(part, ast.TableRef) and id(part) in windows:
            return replace(part, window=windows[id(part)])
        return None

    where = ast.And(tuple(kept)) if len(kept) > 1 else kept[0] if kept else None
    return replace(select, from_=replaced(select.from_, swap), where=where)


def _conditions(where: ast.Expr | None) -> Iterator[ast.Expr]:
    match where:
        case None:
            return
        case ast.And(operands):
            for operand in operands:
                yield from _conditions(operand)
        case ast.Between(operand, low, high, False):
            yield ast.Comparison(">=", operand, low, pos=where.pos)
            yield ast.Comparison("<=", operand, high, pos=where.pos)
        case _:
            yield where


# ---------------------------------------------------------------- what a condition says


def _bound(condition: ast.Expr) -> _Bound | None:
    """``value + shift`` compared with NOW(), if the condition is that."""
    match condition:
        case ast.Comparison(op, left, right) if op in _TURNED:
            pass
        case _:
            return None
    mine, its = _terms(left), _terms(right)
    if mine is None or its is None:
        return None
    # left - right as: values, calls of NOW() and a length, each with its sign
    terms = [*mine[0], *((-sign, term) for sign, term in its[0])]
    shift = mine[1] - its[1]
    calls = [(sign, term) for sign, term in terms if _is_now(term)]
    values = [(sign, term) for sign, term in terms if not _is_now(term)]
    if len(calls) != 1 or len(values) != 1 or calls[0][0] == values[0][0]:
        return None
    (sign, value), call = values[0], calls[0][1]
    assert isinstance(call, ast.FuncCall)
    if sign < 0:
        op, shift = _TURNED[op], -shift
    exact = op in (">", "<=")
    return _Bound(value, shift if exact else shift + 1, op[0] == ">", call)


def _terms(expr: ast.Expr) -> tuple[list[tuple[int, ast.Expr]], int] | None:
    """The sum that the expression is: columns and calls with their signs, and µs."""
    match expr:
        case ast.IntervalLit(ast.Duration(micros)):
            return [], micros
        case ast.Binary("+" | "-" as op, left, right):
            mine, its = _terms(left), _terms(right)
            if mine is None or its is None:
                return None
            sign = 1 if op == "+" else -1
            return [*mine[0], *((sign * s, t) for s, t in its[0])], mine[1] + sign * its[1]
        case ast.ColumnRef() | ast.FuncCall():
            return [(1, expr)], 0
    return None


# ---------------------------------------------------------------- of which stream


def _streams(
    items: Sequence[ast.FromItem], catalog: Catalog
) -> Iterator[tuple[ast.TableRef, StreamDef]]:
    """The streams of FROM of whose rows WHERE may say when they are there."""
    for item in items:
        match item:
            case ast.TableRef(name=name, archive=False):
                stream = catalog.find(name.text, name.quoted)
                if isinstance(stream, StreamDef) and not stream.key:
                    yield item, stream
            case ast.Join(kind, left, right):
                if kind in (*_INNER, ast.JoinKind.LEFT):
                    yield from _streams((left,), catalog)
                if kind in _INNER:
                    yield from _streams((right,), catalog)


def _item(value: ast.Expr, items: Sequence[tuple[ast.TableRef, StreamDef]]) -> int | None:
    """The one whose columns are read, if there is one."""
    read = [part for part in ast.walk(value) if isinstance(part, ast.ColumnRef)]
    found = [k for k, (ref, stream) in enumerate(items) if all(_has(ref, stream, c) for c in read)]
    return found[0] if read and len(found) == 1 else None


def _has(ref: ast.TableRef, stream: StreamDef, column: ast.ColumnRef) -> bool:
    alias = stream.name if ref.alias is None else ref.alias.text
    named = column.table is None or column.table.matches(alias)
    return named and any(column.name.matches(f.name) for f in stream.schema)


# ---------------------------------------------------------------- the window


def _window(
    ref: ast.TableRef, stream: StreamDef, bounds: Sequence[_Bound], windowed: bool
) -> tuple[ast.Window | None, list[ast.Expr]]:
    """The window that these are, and what is asked of the rows besides.  Raises DS337."""
    if windowed or ref.window is not None:
        hint = f"leave one of them out: {stream.name} has a window, and this condition is another"
        raise misplaced(bounds[0].call, hint)
    timely = [b for b in bounds if _is_time(b.value, stream)]
    if len(timely) == len(bounds):
        return _by_time(bounds), []
    own = next(b for b in bounds if b not in timely)
    if not own.ends:
        raise misplaced(own.call, _later(ref, own.value))
    if len(bounds) > 1:
        hint = (
            "one condition on NOW() says how long a row stays; of several the shortest: "
            "FROM s [RANGE (LEAST(INTERVAL '1' HOUR, expires - ts))]"
        )
        raise misplaced(bounds[1].call, hint)
    end = own.value
    if own.shift:
        end = ast.Binary("+", end, ast.IntervalLit(_length(own.shift)), pos=end.pos)
    return ast.LastingWindow(end, pos=own.call.pos), [ast.IsNull(own.value, True)]


def _is_time(value: ast.Expr, stream: StreamDef) -> bool:
    """Whether it is the column of TIMESTAMP BY, as an instant."""
    return (
        isinstance(value, ast.ColumnRef)
        and stream.timestamp is not None
        and stream.unit is None
        and value.name.matches(stream.schema[stream.timestamp].name)
    )


def _by_time(bounds: Sequence[_Bound]) -> ast.Window | None:
    pos = bounds[0].call.pos
    until = max((b.shift for b in bounds if not b.ends), default=0)
    length = min((b.shift for b in bounds if b.ends), default=None)
    ago = _length(until) if until > 0 else None
    if length is None:
        return None if ago is None else ast.UnboundedWindow(ago, pos=pos)
    if length <= max(until, 0):
        raise misplaced(bounds[0].call, "no row passes: it is too old when it comes, or never in")
    return ast.RangeWindow(_length(length), ago, pos=pos)


def _length(micros: int) -> ast.Duration:
    return ast.Duration(micros, ast.Unit.MICROSECOND)


def _later(ref: ast.TableRef, value: ast.Expr) -> str:
    name = ref.name.text
    column = value.name.text if isinstance(value, ast.ColumnRef) else "expires"
    return (
        "a row comes into the answer when it comes; to have each from when an instant of its own "
        f"has passed, let it leave a window then: FROM (SELECT Dstream(*) FROM {name} [VALID UNTIL "
        f"{column}]) q; all rows a while later are FROM {name} [RANGE UNBOUNDED UNTIL 5 min AGO]"
    )
