"""Functions with their own rule for NULL: logic, IS, CASE, COALESCE and the like.  Arguments come unevaluated."""

from __future__ import annotations

from collections.abc import Callable

from dsms.sql.expr import Call, Expr
from tests.oracle.values import Value, canon

Eval = Callable[[Expr], Value]


def _and(call: Call, value: Eval) -> bool | None:
    """Unknown unless one operand is false or all are true."""
    found = [value(a) for a in call.args]
    return False if False in found else None if None in found else True


def _or(call: Call, value: Eval) -> bool | None:
    found = [value(a) for a in call.args]
    return True if True in found else None if None in found else False


def _is_distinct(call: Call, value: Eval) -> bool:
    a, b = (canon(value(x)) for x in call.args)
    return a != b or (a is None) != (b is None)


def _coalesce(call: Call, value: Eval) -> Value:
    return next((v for v in map(value, call.args) if v is not None), None)


LAZY: dict[str, Callable[[Call, Eval], Value]] = {
    "and": _and,
    "or": _or,
    "is_distinct": _is_distinct,
    "coalesce": _coalesce,
}
