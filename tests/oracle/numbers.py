"""Functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

from dsms.sql.expr import Call
from tests.oracle.functions import Failed, check
from tests.oracle.values import Value


def _whole(rounding: str, exact: Callable[[Fraction], int]) -> Callable[..., Value]:
    def run(call: Call, x: Value) -> Value:
        if isinstance(x, float):
            return x if not math.isfinite(x) else math.copysign(float(exact(Fraction(x))), x)
        if isinstance(x, Decimal):
            return check(_quantized(x, 0, rounding), call.type)
        return x

    return run


def _quantized(x: Decimal, digits: int, rounding: str) -> Decimal:
    with localcontext() as context:
        context.prec = 120
        found = x.quantize(Decimal(1).scaleb(-digits), rounding=rounding)
        return found or abs(found)  # a DECIMAL has one zero


def half_away(x: Fraction) -> int:
    """The nearest whole number, a half away from zero."""
    return math.floor(abs(x) + Fraction(1, 2)) * (1 if x >= 0 else -1)


def _round(call: Call, x: Value, n: int | None = None) -> Value:
    if n is None:
        return _whole(ROUND_HALF_UP, half_away)(call, x)
    n = max(-500, min(500, n))
    if isinstance(x, float):
        return _round_float(x, n)
    if isinstance(x, Decimal):
        digits = min(n, call.type.scale)
        return check(
            _quantized(_quantized(x, digits, ROUND_HALF_UP), call.type.scale, ROUND_HALF_UP),
            call.type,
        )
    return x if n >= 0 else check(half_away(Fraction(x, 10**-n)) * 10**-n, call.type)


def _round_float(x: float, n: int) -> float:
    """The nearest FLOAT to its shortest text, rounded; x itself where there is none or that is not
    finite."""
    if not math.isfinite(x):
        return x
    unit = Fraction(10) ** -n
    exact = half_away(Fraction(repr(x)) / unit) * unit
    try:
        return math.copysign(float(exact), x)
    except OverflowError:
        return x


def _sign(call: Call, x: Value) -> Value:
    if isinstance(x, float):
        return x if math.isnan(x) else float((x > 0) - (x < 0))
    return (x > 0) - (x < 0)


def _real(
    fn: Callable[[float], float], domain: Callable[[float], bool] = lambda x: True
) -> Callable[..., float]:
    """A function of one FLOAT; outside its domain the row fails, and what is too large is
    infinite."""

    def run(call: Call, x: float) -> float:
        if math.isnan(x):
            return x
        if not domain(x):
            raise Failed("outside of the domain")
        try:
            return fn(x)
        except OverflowError:
            return math.inf

    return run


def _power(call: Call, x: float, y: float) -> float:
    if x < 0 and math.isfinite(x) and math.isfinite(y) and y != math.floor(y):
        raise Failed("a negative number to a fractional power")
    if x == 0 and y < 0:
        raise Failed("zero to a negative power")
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf


def _haversine(call: Call, lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    if max(abs(lat1), abs(lat2)) > 90 or max(abs(lon1), abs(lon2)) > 360:
        raise Failed("no such place")
    if any(map(math.isnan, (lat1, lon1, lat2, lon2))):
        if any(abs(x) > 90 for x in (lat1, lat2)) or any(abs(x) > 360 for x in (lon1, lon2)):
            raise Failed("no such place")
        return math.nan
    a, b, c, d = (x * (math.pi / 180) for x in (lat1, lon1, lat2, lon2))
    up, along = math.sin((c - a) / 2), math.sin((d - b) / 2)
    share = min(1.0, up * up + math.cos(a) * math.cos(c) * along * along)
    return math.atan2(math.sqrt(share), math.sqrt(1 - share)) * (2 * 6_371_008.8)


def _between_ones(x: float) -> bool:
    return -1 <= x <= 1


NUMBERS: dict[str, Callable[..., Value]] = {
    "abs": lambda call, x: check(x.copy_abs() if isinstance(x, Decimal) else abs(x), call.type),
    "sign": _sign,
    "ceil": _whole(ROUND_CEILING, math.ceil),
    "floor": _whole(ROUND_FLOOR, math.floor),
    "trunc": _whole(ROUND_DOWN, math.trunc),
    "round": _round,
    "sqrt": _real(math.sqrt, lambda x: x >= 0),
    "exp": _real(math.exp),
    "ln": _real(math.log, lambda x: x > 0),
    "log10": _real(math.log10, lambda x: x > 0),
    "log2": _real(math.log2, lambda x: x > 0),
    "power": _power,
    "sin": _real(math.sin, math.isfinite),
    "cos": _real(math.cos, math.isfinite),
    "tan": _real(math.tan, math.isfinite),
    "asin": _real(math.asin, _between_ones),
    "acos": _real(math.acos, _between_ones),
    "atan": _real(math.atan),
    "atan2": lambda call, y, x: math.atan2(y, x),
    "radians": lambda call, x: x * (math.pi / 180),
    "degrees": lambda call, x: x * (180 / math.pi),
    "haversine": _haversine,
    "pi": lambda call: math.pi,
    "is_nan": lambda call, x: math.isnan(x),
}
