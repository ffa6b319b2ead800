"""+ - * / % and signs over INT, FLOAT, TIMESTAMP and INTERVAL.

The checked Arrow kernel runs first; only if it complains are the failing rows looked for, made
NULL, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.operators.expressions import decimals
from dsms.operators.expressions.arrays import (
    Value,
    blank,
    both,
    floats,
    from_floats,
    from_ints,
    ints,
    present,
    spread,
)
from dsms.operators.expressions.errors import (
    BEYOND_LENGTHS,
    BEYOND_YEARS,
    RANGE,
    ZERO,
    ErrorCounter,
)
from dsms.operators.expressions.node import Builder, Built, Kernel, Node, length
from dsms.sql.expr import Call
from dsms.sql.types import MAX_INSTANT, MIN_INSTANT, Kind

LOW, HIGH = -(2**63), 2**63 - 1
Bad = Callable[..., np.ndarray]  # which rows leave the type, from the int64 values
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "neg": "-", "abs": "ABS"}


def _add_leaves(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    total = x + y
    return ((x ^ total) & (y ^ total)) < 0


def _sub_leaves(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    rest = x - y
    return ((x ^ y) & (x ^ rest)) < 0


def _mul_leaves(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        product = x * y
        wrapped = (y != 0) & (product // np.where(y == 0, 1, y) != x)
    return wrapped | ((x == LOW) & (y == -1)) | ((y == LOW) & (x == -1))


def _div_leaves(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x == LOW) & (y == -1)


def _is_low(x: np.ndarray) -> np.ndarray:
    return x == LOW


def _checked(name: str, leaves: Bad, what: str, hint: str | None = None) -> Kernel:
    """A checked int64 kernel: `what` names the operation in the complaint."""
    call = pc.get_function(name).call

    def kernel(errors: ErrorCounter, *args: Value) -> pa.Array:
        try:
            return call(list(args))
        except pa.ArrowInvalid:
            why = f"{what} leaves the range of the type"
            return call([without(errors, args, leaves, RANGE, why, hint), *args[1:]])

    return kernel


def without(
    errors: ErrorCounter,
    args: Sequence[Value],
    leaves: Bad,
    code: str,
    message: str,
    hint: str | None = None,
) -> pa.Array:
    """The first argument with NULL in the rows that leave the type, which are counted."""
    n = length(*args)
    bad = np.broadcast_to(leaves(*(ints(a) for a in args)), n)
    for a in args:
        bad = _where(bad, a)
    errors.add(int(bad.sum()), code, message, hint)
    return blank(spread(args[0], n), bad)


def _where(bad: np.ndarray, x: Value) -> np.ndarray:
    here = present(x)
    return bad if here is None else bad & here


def refuse(
    errors: ErrorCounter,
    out: pa.Array,
    bad: np.ndarray,
    args: Sequence[Value],
    code: str,
    why: str,
    hint: str | None = None,
) -> pa.Array:
    """`out` with NULL in the bad rows; those of them where no argument is NULL are counted."""
    if not bad.any():
        return out
    for a in args:
        bad = _where(bad, a)
    errors.add(int(bad.sum()), code, why, hint)
    return blank(out, bad)


_BEYOND = {Kind.TIMESTAMP: BEYOND_YEARS, Kind.INTERVAL: BEYOND_LENGTHS}


def _int_pair(name: str, leaves: Bad) -> Builder:
    def build(call: Call, args: Sequence[Node]) -> Built:
        kinds = {a.type.kind for a in args}
        what = f"{args[0].type} {_SIGNS[call.fn]} {args[1].type}"
        kernel = _checked(name, leaves, what, _BEYOND.get(call.type.kind))
        if call.type.kind is Kind.TIMESTAMP and kinds == {Kind.TIMESTAMP, Kind.INTERVAL}:
            return Built(_instants(kernel, what), True)
        return Built(kernel, True)

    return build


def _instants(kernel: Kernel, what: str) -> Kernel:
    def run(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
        return in_years(errors, kernel(errors, x, y), what)

    return run


def in_years(errors: ErrorCounter, out: pa.Array, what: str) -> pa.Array:
    """Instants with NULL for those outside years 0001 to 9999."""
    values = ints(out)
    if len(values) == 0 or (values.min() >= MIN_INSTANT and values.max() <= MAX_INSTANT):
        return out
    bad = (values < MIN_INSTANT) | (values > MAX_INSTANT)
    why = f"{what} leaves the years 0001 to 9999"
    return refuse(errors, out, bad, [out], RANGE, why, BEYOND_YEARS)


def _float_pair(name: str) -> Builder:
    call = pc.get_function(name).call
    return lambda expr, args: Built(lambda errors, x, y: call([x, y]))


# --- division and remainder: a zero divisor fails


def nonzero(errors: ErrorCounter, y: Value, others: Sequence[Value], zero: np.ndarray) -> Value:
    """The divisor with NULL where it is zero (counted unless another argument is NULL there)."""
    if not zero.any():
        return y
    n = length(y, *others)
    bad = np.broadcast_to(zero, n)
    for a in (y, *others):
        bad = _where(bad, a)
    errors.add(int(bad.sum()), ZERO, "division by zero")
    return blank(spread(y, n), bad)


def _divide_ints() -> Kernel:
    quotient = _checked("divide_checked", _div_leaves, "INT / INT")
    plain = pc.get_function("divide_checked").call

    def kernel(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
        try:
            return plain([x, y])
        except pa.ArrowInvalid:
            return quotient(errors, x, nonzero(errors, y, [x], ints(y) == 0))

    return kernel


def _divide_floats(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
    return pc.divide(x, nonzero(errors, y, [x], floats(y) == 0))


def _safe(divisor: Node) -> bool:
    """A constant divisor that can't fail: not zero, not -1 (which can overflow)."""
    return divisor.const is not None and divisor.const.as_py() not in (None, 0, -1)


def _div(call: Call, args: Sequence[Node]) -> Built:
    kind = args[1].type.kind
    if kind is Kind.FLOAT:
        return Built(_divide_floats, not _safe(args[1]))
    if call.type.kind is Kind.FLOAT:  # INTERVAL / INTERVAL
        return Built(
            lambda errors, x, y: _divide_floats(errors, _as_floats(x), _as_floats(y)),
            not _safe(args[1]),
        )
    if _safe(args[1]):
        divide = pc.get_function("divide").call
        return Built(lambda errors, x, y: divide([x, y]))
    return Built(_divide_ints(), True)


def _as_floats(x: Value) -> Value:
    return x.cast(pa.float64(), safe=False)


def _mod_ints(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
    y = nonzero(errors, y, [x], ints(y) == 0)
    with np.errstate(all="ignore"):  # a divisor of 0 is NULL by now
        rest = np.fmod(ints(x), ints(y))
    return from_ints(rest, _together(len(rest), x, y))


def _mod_floats(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
    y = nonzero(errors, y, [x], floats(y) == 0)
    with np.errstate(all="ignore"):
        rest = np.fmod(floats(x), floats(y))
    return from_floats(rest, _together(len(rest), x, y))


def _together(n: int, *args: Value) -> np.ndarray | None:
    """Rows in which no argument is NULL."""
    here = None
    for a in args:
        here = both(here, present(a))
    return here if here is None or len(here) == n else np.broadcast_to(here, n)


def _mod(call: Call, args: Sequence[Node]) -> Built:
    kernel = _mod_floats if call.type.kind is Kind.FLOAT else _mod_ints
    return Built(kernel, args[1].const is None or args[1].const.as_py() in (None, 0))


# --- INTERVAL * FLOAT


def _scale_length(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
    with np.errstate(all="ignore"):
        out = np.rint(_numbers(x) * _numbers(y))
    bad = ~((out >= LOW) & (out < -float(LOW)))
    valid = _together(len(out), x, y)
    values = np.where(bad, 0, out).astype(np.int64)
    return refuse(
        errors,
        from_ints(values, valid),
        bad,
        [x, y],
        RANGE,
        "INTERVAL * FLOAT leaves the range of the type",
        BEYOND_LENGTHS,
    )


def _numbers(x: Value) -> np.ndarray:
    return floats(x) if x.type == pa.float64() else ints(x).astype(np.float64)


# --- one argument


def _one(checked: str, plain: str) -> Builder:
    def build(call: Call, args: Sequence[Node]) -> Built:
        if call.type.kind in (Kind.FLOAT, Kind.DECIMAL):
            function = pc.get_function(plain).call
            return Built(lambda errors, x: function([x]))
        what, hint = f"{_SIGNS[call.fn]} {call.type}", _BEYOND.get(call.type.kind)
        return Built(_checked(checked, _is_low, what, hint), True)

    return build


def _sign(call: Call, args: Sequence[Node]) -> Built:
    if call.type.kind is Kind.FLOAT:
        return Built(lambda errors, x: pc.sign(x))
    return Built(lambda errors, x: pc.sign(x).cast(pa.int64()))


def _pick(on_int: Builder, on_float: Builder, on_decimal: Builder) -> Builder:
    """The builder for the kind of the result; a length times a FLOAT goes its own way."""

    def build(call: Call, args: Sequence[Node]) -> Built | Node:
        if call.type.kind is Kind.DECIMAL:
            return on_decimal(call, args)
        if call.type.kind is Kind.FLOAT:
            return on_float(call, args)
        if call.type.kind is Kind.INTERVAL and Kind.FLOAT in {a.type.kind for a in args}:
            return Built(_scale_length, True)
        return on_int(call, args)

    return build


BUILDERS: dict[str, Builder] = {
    "add": _pick(
        _int_pair("add_checked", _add_leaves), _float_pair("add"), decimals.BUILDERS["add"]
    ),
    "sub": _pick(
        _int_pair("subtract_checked", _sub_leaves),
        _float_pair("subtract"),
        decimals.BUILDERS["sub"],
    ),
    "mul": _pick(
        _int_pair("multiply_checked", _mul_leaves),
        _float_pair("multiply"),
        decimals.BUILDERS["mul"],
    ),
    "div": _div,
    "mod": _pick(_mod, _mod, decimals.BUILDERS["mod"]),
    "neg": _one("negate_checked", "negate"),
    "abs": _one("abs_checked", "abs"),
    "sign": _sign,
}
