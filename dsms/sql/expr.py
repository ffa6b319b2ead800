"""Typed scalar expressions and aggregate calls: what the binder makes of the text.

An expression is evaluated over one schema: `Col.index` is a position in it.  All implicit
conversions are explicit `Call("cast", ...)` nodes, so that no evaluator (engine, oracle, SQL
renderer) needs type inference.  `dsms.sql.functions` lists every function name that may appear in
`Call.fn` and `AggCall.fn`, with its types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsms.sql.types import Type


@dataclass(frozen=True, slots=True)
class Col:
    """Column `index` of the input schema."""

    index: int
    type: Type
    name: str = ""


@dataclass(frozen=True, slots=True)
class Lit:
    """A constant in Python form: int (INT, TIMESTAMP, INTERVAL: µs), float, Decimal, str, bytes,
    bool or None."""

    value: object
    type: Type


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function or operator.  `params` are constants that shape it (LIKE's escape, a time
    zone, a unit)."""

    fn: str
    args: tuple[Expr, ...]
    type: Type
    params: tuple[object, ...] = ()


Expr = Col | Lit | Call
PYTHON = "python"  # a Call of it is a function in Python; `params` have its place, module:name
NOW = "now"  # a Call of it is the instant that a one-time query answers as of (dsms.oneshot.now)
PARAMETER = "parameter"  # a Call of it is the value that LOOKUP gives; its number is in `params`


@dataclass(frozen=True, slots=True)
class AggCall:
    """An aggregate: `fn` over `args` of the rows that pass `filter`; `params` holds φ of QUANTILE,
    k of TOPK."""

    fn: str
    args: tuple[Expr, ...]
    type: Type
    distinct: bool = False
    filter: Expr | None = None
    params: tuple[object, ...] = ()
    name: str = ""


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all its parts, outermost first."""
    yield expr
    if isinstance(expr, Call):
        for arg in expr.args:
            yield from walk(arg)


def columns(expr: Expr) -> set[int]:
    """Positions of all columns that the expression reads."""
    return {e.index for e in walk(expr) if isinstance(e, Col)}


def rewrite(expr: Expr, leaf: Callable[[Col], Expr]) -> Expr:
    """The expression with every column replaced by `leaf(column)`."""
    match expr:
        case Col():
            return leaf(expr)
        case Call(fn, args, type_, params):
            return Call(fn, tuple(rewrite(a, leaf) for a in args), type_, params)
        case _:
            return expr


def shift(expr: Expr, by: int) -> Expr:
    """The expression over a schema in which its columns stand `by` places further right."""
    return rewrite(expr, lambda c: Col(c.index + by, c.type, c.name))


def conjuncts(expr: Expr | None) -> list[Expr]:
    """The parts of a chain of ANDs; none for None."""
    if expr is None:
        return []
    if isinstance(expr, Call) and expr.fn == "and":
        return [c for a in expr.args for c in conjuncts(a)]
    return [expr]


def conjunction(parts: list[Expr]) -> Expr | None:
    """The AND of the parts; None for none."""
    from dsms.sql.types import BOOL

    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), BOOL)
