"""ROUND, CEIL, FLOOR, TRUNC, powers, logarithms, angles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.operators.expressions import decimals
from dsms.operators.expressions.arithmetic import refuse
from dsms.operators.expressions.arrays import (
    Value,
    both,
    floats,
    from_floats,
    from_ints,
    ints,
    present,
)
from dsms.operators.expressions.errors import DOMAIN, RANGE, ErrorCounter
from dsms.operators.expressions.node import Builder, Built, Node, length
from dsms.operators.expressions.rounding import half_away, round_floats
from dsms.sql.expr import Call
from dsms.sql.types import Kind

Outside = Callable[..., np.ndarray]  # where a function is not defined


def _function(name: str, outside: Outside | None = None, why: str = "") -> Builder:
    """A FLOAT function of Arrow's (the C library's), with NULL and a count where it is not
    defined."""
    call = pc.get_function(name).call

    def defined(errors: ErrorCounter, *args: Value) -> pa.Array:
        return call(list(args))

    def guarded(errors: ErrorCounter, *args: Value) -> pa.Array:
        assert outside is not None
        bad = outside(*(floats(a) for a in args))
        return refuse(errors, call(list(args)), bad, args, DOMAIN, why)

    def build(expr: Call, args: Sequence[Node]) -> Built:
        return Built(guarded, True) if outside is not None else Built(defined)

    return build


def _scaled(factor: float) -> Builder:
    return lambda call, args: Built(lambda errors, x: pc.multiply(x, factor))


def _no_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ((x < 0) & np.isfinite(x) & np.isfinite(y) & (np.floor(y) != y)) | ((x == 0) & (y < 0))


def _pi(call: Call, args: Sequence[Node]) -> Built:
    return Built(lambda errors, x: pa.repeat(math.pi, len(x)))


# --- distances

RADIUS = 6_371_008.8  # metres: the mean radius of the Earth (IUGG)


def _haversine(errors: ErrorCounter, *degrees: Value) -> pa.Array:
    """Of two points, as latitude and longitude.  Source: R. W. Sinnott, Virtues of the Haversine,
    Sky and Telescope 68 (1984); the arc by atan2, which is as good for opposite points as for near
    ones."""
    n = length(*degrees)
    bad = np.zeros(n, np.bool_)
    for value, most in zip(degrees, (90.0, 360.0) * 2, strict=True):
        bad |= np.abs(floats(value)) > most
    lat1, lon1, lat2, lon2 = (floats(value) * (math.pi / 180) for value in degrees)
    with np.errstate(invalid="ignore"):
        up, along = _each("sin", (lat2 - lat1) / 2), _each("sin", (lon2 - lon1) / 2)
        share = up * up + _each("cos", lat1) * _each("cos", lat2) * along * along
        share = np.broadcast_to(np.minimum(share, 1.0), n)
        arc = pc.atan2(from_floats(np.sqrt(share)), from_floats(np.sqrt(1.0 - share)))
    valid = None
    for here in _masks(n, *degrees):
        valid = both(valid, here)
    out = from_floats(floats(arc) * (2 * RADIUS), valid)
    why = "HAVERSINE takes latitudes from -90 to 90 and longitudes from -360 to 360"
    return refuse(errors, out, bad, degrees, DOMAIN, why)


def _each(name: str, x: np.ndarray) -> np.ndarray:
    """The C library's, as everywhere: NumPy's differ by processor."""
    return floats(pc.call_function(name, [from_floats(x)]))


# --- whole numbers

_HALF_OF_19 = 5 * 10**18  # from here on 10^19, which is no INT, is the nearest multiple of itself


def _whole(name: str) -> Builder:
    on_decimal = decimals.BUILDERS[name]

    def build(call: Call, args: Sequence[Node]) -> Built | Node:
        if args[0].type.kind is Kind.DECIMAL:
            return on_decimal(call, args)
        if args[0].type.kind is Kind.INT:
            return Built(lambda errors, x: x)
        function = pc.get_function(name).call
        return Built(lambda errors, x: function([x]))

    return build


def _round(call: Call, args: Sequence[Node]) -> Built | Node:
    match args[0].type.kind, len(args):
        case Kind.DECIMAL, _:
            return decimals.BUILDERS["round"](call, args)
        case Kind.INT, 1:
            return Built(lambda errors, x: x)
        case Kind.INT, _:
            return Built(_round_ints, True)
        case _, 1:
            return Built(_round_whole)
    return Built(_round_floats)


def _round_whole(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    with np.errstate(invalid="ignore"):
        return from_floats(half_away(floats(x)), present(x))


def _round_floats(errors: ErrorCounter, x: Value, places: Value) -> pa.Array:
    out = round_floats(floats(x), ints(places))
    return from_floats(out, both(*_masks(len(out), x, places)))


def _masks(n: int, *args: Value) -> list[np.ndarray | None]:
    return [None if (here := present(a)) is None else np.broadcast_to(here, n) for a in args]


def _round_ints(errors: ErrorCounter, x: Value, places: Value) -> pa.Array:
    """To a multiple of 10^-places, ties away from zero."""
    values, n = np.broadcast_arrays(ints(x), ints(places))
    drop = -np.clip(n, -20, 0)
    unit = 10 ** np.minimum(drop, 18)
    rest = np.fmod(values, unit)
    away = np.where(np.abs(rest) * 2 >= unit, np.sign(values) * unit, 0)
    with np.errstate(over="ignore"):
        out = np.where(drop < 19, values - rest + away, 0)
    beyond = (away != 0) & (drop < 19) & ((out >= 0) != (values >= 0))
    bad = beyond | ((drop == 19) & ((values >= _HALF_OF_19) | (values <= -_HALF_OF_19)))
    valid = both(*_masks(len(out), x, places))
    return refuse(errors, from_ints(out, valid), bad, [x, places], RANGE, "ROUND leaves INT")


def _is_nan(call: Call, args: Sequence[Node]) -> Built:
    return Built(lambda errors, x: pc.is_nan(x))


_LOG = "the logarithm of zero or less is not defined"
_ANGLE = "the function is not defined for an infinite angle"
_ARC = "the function is defined from -1 to 1"

BUILDERS: dict[str, Builder] = {
    "ceil": _whole("ceil"),
    "floor": _whole("floor"),
    "trunc": _whole("trunc"),
    "round": _round,
    "sqrt": _function(
        "sqrt", lambda x: x < 0, "the square root of a negative number is not defined"
    ),
    "exp": _function("exp"),
    "ln": _function("ln", lambda x: x <= 0, _LOG),
    "log10": _function("log10", lambda x: x <= 0, _LOG),
    "log2": _function("log2", lambda x: x <= 0, _LOG),
    "power": _function("power", _no_power, "this power is not defined"),
    "sin": _function("sin", np.isinf, _ANGLE),
    "cos": _function("cos", np.isinf, _ANGLE),
    "tan": _function("tan", np.isinf, _ANGLE),
    "asin": _function("asin", lambda x: np.abs(x) > 1, _ARC),
    "acos": _function("acos", lambda x: np.abs(x) > 1, _ARC),
    "atan": _function("atan"),
    "atan2": _function("atan2"),
    "radians": _scaled(math.pi / 180),
    "degrees": _scaled(180 / math.pi),
    "pi": _pi,
    "haversine": lambda call, args: Built(_haversine, True),
    "is_nan": _is_nan,
}
