"""Operators and functions by name (`dsms.sql.functions` says what each means), in plain Python.

FUNCTIONS get the call and evaluated arguments, none of them NULL; LAZY ones look at their arguments
themselves.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from math import fmod, isfinite, isinf, isnan, nan
from typing import Any

from dsms.sql.expr import Call, Expr
from dsms.sql.types import MAX_INSTANT, MIN_INSTANT, Kind, Type
from tests.oracle.values import Value, canon, compare, fits_int

DAY = 86_400_000_000  # µs
MOST = 1 << 24  # bytes of any text that a function makes


class Failed(ArithmeticError):
    """This row has no value here: it becomes NULL."""


def check(value: Value, type_: Type) -> Value:
    """The value, if its type can hold it."""
    match type_.kind:
        case Kind.INT | Kind.INTERVAL if not fits_int(value):
            raise Failed("overflow")
        case Kind.TIMESTAMP | Kind.DATE if not MIN_INSTANT <= value <= MAX_INSTANT:
            raise Failed("outside of years 0001 to 9999")
        case Kind.DECIMAL if value.copy_abs() >= Decimal(10) ** (type_.precision - type_.scale):
            raise Failed("overflow")
    return value


def _exactly(fn: Callable[[Decimal, Decimal], Decimal]) -> Callable[..., Value]:
    """Arithmetic of numbers of one type, or of instants and lengths; DECIMALs with room for every
    digit."""

    def run(call: Call, a: Value, b: Value) -> Value:
        with localcontext() as context:
            context.prec = 120
            value = fn(a, b)
            if call.type.kind is Kind.DECIMAL:
                value = value.quantize(Decimal(1).scaleb(-call.type.scale), rounding=ROUND_HALF_UP)
            return check(value, call.type)

    return run


def _days(fn: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    """Sums and differences; those with DATE and TIME count days, and go around the clock."""
    exactly = _exactly(fn)

    def run(call: Call, a: Value, b: Value) -> Value:
        kinds = [x.type.kind for x in call.args]
        match kinds:
            case [Kind.DATE, Kind.DATE]:
                return (a - b) // DAY
            case [Kind.DATE, Kind.INT]:
                b *= DAY
            case [Kind.INT, Kind.DATE]:
                a *= DAY
        if call.type.kind is Kind.TIME:
            return fn(a, b) % DAY
        return exactly(call, a, b)

    return run


def _mul(call: Call, a: Value, b: Value) -> Value:
    if call.type.kind is Kind.INTERVAL and (isinstance(a, float) or isinstance(b, float)):
        if not (isfinite(a) and isfinite(b)):
            raise Failed("not finite")
        product = float(a) * float(b)
        return check(round(product) if isfinite(product) else 2**63, call.type)
    return _exactly(lambda x, y: x * y)(call, a, b)


def _div(call: Call, a: Value, b: Value) -> Value:
    if b == 0:
        raise Failed("zero divisor")
    if isinstance(a, float) or call.type.kind is Kind.FLOAT:
        return float(a) / float(b)
    return check(truncated(a, b), call.type)


def truncated(a: int, b: int) -> int:
    """a / b toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _mod(call: Call, a: Value, b: Value) -> Value:
    if b == 0:
        raise Failed("zero divisor")
    if isinstance(a, float):
        return nan if isinf(a) or isnan(a) or isnan(b) else fmod(a, b)
    if isinstance(a, Decimal):
        return _exactly(lambda x, y: x % y)(call, a, b)
    return a - b * truncated(a, b)


def bounded(text: Any) -> Value:
    """What a function has put together, if it may be so long."""
    size = len(text if isinstance(text, bytes) else text.encode())
    if size > MOST:
        raise Failed("too long")
    return text


def _concat(call: Call, *parts: Any) -> Value:
    return bounded((b"" if call.type.kind is Kind.BYTES else "").join(parts))


def _compared(test: Callable[[int], bool]) -> Callable[..., bool]:
    return lambda call, a, b: test(compare(a, b))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "add": _days(lambda a, b: a + b),
    "sub": _days(lambda a, b: a - b),
    "mul": _mul,
    "div": _div,
    "mod": _mod,
    "neg": lambda call, a: check(a.copy_negate() if isinstance(a, Decimal) else -a, call.type),
    "concat": _concat,
    "eq": _compared(lambda c: c == 0),
    "ne": _compared(lambda c: c != 0),
    "lt": _compared(lambda c: c < 0),
    "le": _compared(lambda c: c <= 0),
    "gt": _compared(lambda c: c > 0),
    "ge": _compared(lambda c: c >= 0),
    "not": lambda call, a: not a,
}

# ---------------------------------------------------------------- with a rule of their own for NULL

Eval = Callable[[Expr], Value]


def _and(call: Call, value: Eval) -> bool | None:
    """Unknown unless one operand is false or all are true."""
    found = [value(a) for a in call.args]
    return False if False in found else None if None in found else True


def _or(call: Call, value: Eval) -> bool | None:
    found = [value(a) for a in call.args]
    return True if True in found else None if None in found else False


def _in(call: Call, value: Eval) -> bool | None:
    wanted, *listed = [value(a) for a in call.args]
    same = [None if wanted is None or v is None else compare(wanted, v) == 0 for v in listed]
    return True if True in same else None if None in same else False


def _case(call: Call, value: Eval) -> Value:
    *pairs, otherwise = call.args
    for condition, result in zip(pairs[::2], pairs[1::2], strict=True):
        if value(condition) is True:
            return value(result)
    return value(otherwise)


def _distinct_from(call: Call, value: Eval) -> bool:
    a, b = (value(x) for x in call.args)
    return (a is None) != (b is None) or canon(a) != canon(b)


def _nullif(call: Call, value: Eval) -> Value:
    a, b = (value(x) for x in call.args)
    return None if a is not None and b is not None and compare(a, b) == 0 else a


def _extreme(sign: int) -> Callable[[Call, Eval], Value]:
    def pick(call: Call, value: Eval) -> Value:
        best = None
        for found in map(value, call.args):
            if found is not None and (best is None or sign * compare(found, best) > 0):
                best = found
        return best + 0.0 if isinstance(best, float) else best  # -0.0 + 0.0 is 0.0

    return pick


def _concat_ws(call: Call, value: Eval) -> str | None:
    separator, *parts = [value(a) for a in call.args]
    return None if separator is None else bounded(separator.join(p for p in parts if p is not None))  # type: ignore[return-value]


def _spread(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def _hash_of(x: Value) -> int:
    """Numbers by value: those that an INT holds, then FLOATs; text by its bytes (FNV-1a)."""
    if x is None:
        return 0
    if isinstance(x, str | bytes):
        word = 0xCBF29CE484222325
        for byte in x.encode() if isinstance(x, str) else x:
            word = (word ^ byte) * 0x100000001B3 % 2**64
        return _spread(word)
    if not isinstance(x, int):
        whole = int(x) if isfinite(x) and x == int(x) else None
        if isinstance(x, Decimal) and (whole is None or not fits_int(whole)):
            x = float(x)
            whole = int(x) if x == int(x) else None
        if whole is None or not fits_int(whole):
            return _spread(struct.unpack("<Q", struct.pack("<d", x if x == x else nan))[0])
        x = whole
    return _spread(int(x) % 2**64)


def _signed(x: int) -> int:
    return x - 2**64 if x >= 2**63 else x


def hash_of(x: Value) -> int:
    """HASH(x)."""
    return _signed(_hash_of(x))


def hashed(values: Sequence[Value]) -> int:
    """HASH of several values."""
    found, *rest = map(_hash_of, values)
    for more in rest:
        found = _spread(found) ^ more
    return _signed(found)


LAZY: dict[str, Callable[[Call, Eval], Value]] = {
    "and": _and,
    "or": _or,
    "in": _in,
    "case": _case,
    "distinct_from": _distinct_from,
    "not_distinct_from": lambda call, value: not _distinct_from(call, value),
    "is_null": lambda call, value: value(call.args[0]) is None,
    "is_not_null": lambda call, value: value(call.args[0]) is not None,
    "coalesce": lambda call, value: next((v for v in map(value, call.args) if v is not None), None),
    "nullif": _nullif,
    "greatest": _extreme(1),
    "least": _extreme(-1),
    "concat_ws": _concat_ws,
}

__all__ = ["FUNCTIONS", "LAZY", "Failed", "check", "truncated"]
