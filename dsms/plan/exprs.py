"""What the planner must know of scalar expressions: can they fail, do they pass NULL on, how do
they move.

A rewrite never evaluates an expression that can fail on rows on which the plan as bound would not
(failing rows are counted, and `WITH (on_error = stop)` stops the query), and never twice where it
was once; it may spare some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dsms.sql.expr import Call, Col, Expr, Lit, columns, conjuncts, rewrite, shift
from dsms.sql.functions import FUNCTIONS
from dsms.sql.types import NESTED, Kind, Schema, Type

COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_TOTAL = COMPARISONS | frozenset(
    [
        "distinct_from",
        "not_distinct_from",
        "and",
        "or",
        "not",
        "is_null",
        "is_not_null",
        "in",
        "case",
        "coalesce",
    ]
    + [
        "nullif",
        "greatest",
        "least",
        "concat",
        "lower",
        "upper",
        "length",
        "octet_length",
        "trim",
        "ltrim",
        "rtrim",
    ]
    + ["contains", "starts_with", "ends_with", "is_nan", "like", "try_cast"]
)
_FLOAT_TOTAL = frozenset({"add", "sub", "mul", "neg", "abs"})
_STRICT = FUNCTIONS["eq"].nulls  # the words by which a function says that it gives NULL for NULL


def total(expr: Expr) -> bool:
    """Whether the expression has a value (or NULL) for every row: it can't fail."""
    match expr:
        case Call(fn="cast"):
            return _widens(expr.args[0].type, expr.type) and total(expr.args[0])
        case Call(fn="div" | "mod"):
            return _safe_divisor(expr.args[1]) and total(expr.args[0])
        case Call():
            known = expr.fn in _TOTAL or (expr.fn in _FLOAT_TOTAL and expr.type.kind is Kind.FLOAT)
            return known and all(total(a) for a in expr.args)
        case _:
            return True


def _widens(source: Type, target: Type) -> bool:
    if source.kind is Kind.NULL or target.kind is Kind.STRING:
        return source.kind is not Kind.BYTES
    if source.kind in NESTED or target.kind in NESTED:
        return source == target
    pair = (source.kind, target.kind)
    return source == target or pair in {
        (Kind.INT, Kind.FLOAT),
        (Kind.DECIMAL, Kind.FLOAT),
        (Kind.BOOL, Kind.INT),
        (Kind.DATE, Kind.TIMESTAMP),
        (Kind.TIMESTAMP, Kind.DATE),
        (Kind.TIMESTAMP, Kind.TIME),
    }


def _safe_divisor(expr: Expr) -> bool:
    """A constant that is neither zero nor -1 (the smallest INT has no opposite)."""
    return (
        isinstance(expr, Lit) and isinstance(expr.value, int | float) and expr.value not in (0, -1)
    )


def surely_null(expr: Expr, when: set[int]) -> bool:
    """Whether the expression is NULL for certain in a row whose columns `when` are all NULL."""
    match expr:
        case Col():
            return expr.index in when
        case Lit():
            return expr.value is None
        case Call(fn="in"):
            return surely_null(expr.args[0], when)
        case _:
            strict = expr.fn in FUNCTIONS and FUNCTIONS[expr.fn].nulls == _STRICT
            return strict and any(surely_null(a, when) for a in expr.args)


def rejects_null(predicate: Expr, when: set[int]) -> bool:
    """Whether the predicate is not true for any row whose columns `when` are all NULL (padded by an
    outer join)."""
    match predicate:
        case Call(fn="and"):
            return any(rejects_null(a, when) for a in predicate.args)
        case Call(fn="or"):
            return all(rejects_null(a, when) for a in predicate.args)
        case Call(fn="is_not_null"):
            return surely_null(predicate.args[0], when)
        case _:
            return surely_null(predicate, when)


def substitute(expr: Expr, exprs: Sequence[Expr]) -> Expr:
    """The expression over a projection's output, rewritten over its input."""
    return rewrite(expr, lambda c: exprs[c.index])


def remap(expr: Expr, to: Mapping[int, int]) -> Expr:
    """The expression with its columns renumbered."""
    return rewrite(expr, lambda c: Col(to[c.index], c.type, c.name))


def within(expr: Expr, low: int, high: int) -> bool:
    """Whether the expression reads columns of [low, high) only; constants belong anywhere."""
    return all(low <= i < high for i in columns(expr))


def reads(exprs: Iterable[Expr]) -> set[int]:
    """All columns that the expressions read."""
    return {i for e in exprs for i in columns(e)}


def split(predicate: Expr | None, low: int, high: int) -> tuple[list[Expr], list[Expr]]:
    """(conjuncts that may be evaluated early over columns [low, high) alone, the others), in order.

    Constant conjuncts and those that can fail stay with the others.
    """
    early: list[Expr] = []
    rest: list[Expr] = []
    for part in conjuncts(predicate):
        fits = bool(columns(part)) and within(part, low, high) and total(part)
        (early if fits else rest).append(part)
    return early, rest


def identity_exprs(schema: Schema, at: Sequence[int] | None = None) -> tuple[Col, ...]:
    """Columns as they are: all of them, or those at the positions `at`."""
    return tuple(
        Col(i, schema[i].type, schema[i].name) for i in (range(len(schema)) if at is None else at)
    )


def as_key(part: Expr, width: int) -> tuple[Expr, Expr] | None:
    """(left, right) if the part is an equality of equal types between the sides of a join, each
    over its own side."""
    if not isinstance(part, Call) or part.fn != "eq" or not total(part):
        return None
    a, b = part.args
    if a.type != b.type or not columns(a) or not columns(b):
        return None
    for x, y in ((a, b), (b, a)):
        if within(x, 0, width) and min(columns(y)) >= width:
            return x, shift(y, -width)
    return None
