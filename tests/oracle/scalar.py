"""Scalar expressions, row by row, in plain Python."""

from __future__ import annotations

from dsms.sql.expr import Call, Col, Expr, Lit
from tests.oracle.functions import FUNCTIONS, Failed
from tests.oracle.lazy import LAZY
from tests.oracle.values import Value


def evaluate(expr: Expr, row: tuple[Value, ...]) -> Value:
    """The value of `expr` over one row; whatever fails (zero divisor, overflow, bad cast) gives NULL."""
    match expr:
        case Col():
            return row[expr.index]
        case Lit():
            return expr.value
        case Call(fn=fn) if fn in LAZY:
            return LAZY[fn](expr, lambda e: evaluate(e, row))
    args = [evaluate(a, row) for a in expr.args]
    if any(a is None for a in args):
        return None
    try:
        return FUNCTIONS[expr.fn](expr, *args)
    except (Failed, ZeroDivisionError, OverflowError):
        return None
