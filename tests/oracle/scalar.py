"""Scalar expressions, row by row, in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from dsms.sql.expr import Call, Col, Expr, Lit
from dsms.sql.types import Kind
from tests.oracle import (
    casts,
    documents,
    formats,
    functions,
    lists,
    numbers,
    own,
    structs,
    text,
    times,
)
from tests.oracle.functions import Failed
from tests.oracle.values import Value

FUNCTIONS: dict[str, Callable[..., Value]] = {
    **functions.FUNCTIONS,
    **numbers.NUMBERS,
    **text.TEXT,
    **times.TIMES,
    **lists.LISTS,
    **formats.FORMATS,
    **documents.DOCUMENTS,
    **structs.STRUCTS,
    "length": lambda call, x: _length(call, x),
    "cast": lambda call, x: _cast(call)(call, x),
}
LAZY: dict[str, Callable[..., Value]] = {
    **functions.LAZY,
    **lists.LAZY,
    **structs.LAZY,
    "python": own.function,
}


def _length(call: Call, x: Value) -> int:
    return len(lists.unpacked(x, call.args[0].type) if _of_lists(call) else x)


def _cast(call: Call) -> Callable[..., Value]:
    if Kind.STRUCT in (call.args[0].type.kind, call.type.kind):
        return structs.cast
    return lists.cast if _of_lists(call) else casts.cast


def _of_lists(call: Call) -> bool:
    return Kind.LIST in (call.args[0].type.kind, call.type.kind)


def evaluate(expr: Expr, row: tuple[Value, ...]) -> Value:
    """The value of `expr` over one row; whatever fails (zero divisor, overflow, bad cast) gives
    NULL."""
    match expr:
        case Col():
            return row[expr.index]
        case Lit():
            return expr.value
        case Call(fn="try_cast"):
            return evaluate(Call("cast", expr.args, expr.type), row)
        case Call(fn=fn) if fn in LAZY:
            return LAZY[fn](expr, lambda e: evaluate(e, row))
    args = [evaluate(a, row) for a in expr.args]
    if any(a is None for a in args):
        return None
    try:
        found = FUNCTIONS[expr.fn](expr, *args)
    except Failed:
        return None
    # a DECIMAL has one zero
    return abs(found) if isinstance(found, Decimal) and not found else found
