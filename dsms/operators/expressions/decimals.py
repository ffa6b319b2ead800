"""DECIMAL arithmetic: exact, rounding half away from zero, NULL where 38 digits do not hold the
result.

Arrow's 128-bit kernels work where the result's digits surely fit; else the operands are widened to
256 bits (76 digits), which always suffice, and the result is fitted back.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.operators.expressions.arrays import Value, blank, both, either, present, relabel, spread
from dsms.operators.expressions.errors import RANGE, ZERO, ErrorCounter
from dsms.operators.expressions.node import Builder, Built, Kernel, Node, length
from dsms.sql.expr import Call
from dsms.sql.types import Type

WIDE = 76  # digits of the 256-bit form
_NARROW = 38
_DIGITS = Context(prec=WIDE)
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)  # digits enough for any FLOAT


def widen(x: Value, scale: int, precision: int = WIDE) -> Value:
    """The 256-bit form at a scale not below its own, labelled with that precision (not checked)."""
    wide = x.cast(pa.decimal256(WIDE, scale))
    if precision == WIDE:
        return wide
    to = pa.decimal256(precision, scale)
    return (
        relabel(pa.array([wide.as_py()], wide.type), to)[0]
        if isinstance(wide, pa.Scalar)
        else relabel(wide, to)
    )


def fit(errors: ErrorCounter, x: pa.Array, to: Type, why: str) -> pa.Array:
    """The array, of the target's scale, as the target; rows with too many digits are NULL and
    counted."""
    try:
        return x.cast(to.arrow)
    except pa.ArrowInvalid:
        kind = pa.decimal256(WIDE, to.scale)
        wide = x.cast(kind)
        limit = pa.scalar(Decimal(1).scaleb(to.precision - to.scale), kind)
        good = pc.less(pc.abs(wide), limit)
        errors.add(pc.sum(pc.invert(good)).as_py() or 0, RANGE, why)
        return either(good.fill_null(False), wide, None).cast(to.arrow)


def rescale(errors: ErrorCounter, x: pa.Array, to: Type, why: str) -> pa.Array:
    """The DECIMAL array as the target type, rounded half away from zero."""
    wide = x.cast(pa.decimal256(WIDE, x.type.scale)) if x.type.bit_width == 128 else x
    if to.scale < x.type.scale:
        wide = pc.round(wide, to.scale, round_mode="half_towards_infinity")
    return fit(errors, wide.cast(pa.decimal256(WIDE, to.scale)), to, why)


def _pair(name: str, sign: str) -> Builder:
    """Sum or difference: natively if the result type is not cut at 38 digits."""
    native = pc.get_function(name).call

    def build(call: Call, args: Sequence[Node]) -> Built:
        a, b, to = args[0].type, args[1].type, call.type
        why = f"{a} {sign} {b} leaves {to}"
        if max(a.precision - a.scale, b.precision - b.scale) + to.scale + 1 <= _NARROW:
            return Built(lambda errors, x, y: native([x, y]))

        def kernel(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
            out = native([widen(x, to.scale, WIDE - 1), widen(y, to.scale, WIDE - 1)])
            return fit(errors, out, to, why)

        return Built(kernel, True)

    return build


def _mul(call: Call, args: Sequence[Node]) -> Built:
    a, b, to = args[0].type, args[1].type, call.type
    native = pc.get_function("multiply").call
    if a.precision + b.precision < _NARROW:
        return Built(lambda errors, x, y: relabel(native([x, y]), to.arrow))
    why = f"{a} * {b} leaves {to}"
    # the product of 38 digits has 76, which Arrow would label 77
    room = min(b.precision, WIDE - 1 - a.precision)

    def kernel(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
        left = x.cast(pa.decimal256(a.precision, a.scale))
        return fit(errors, native([left, widen(y, b.scale, room)]), to, why)

    return Built(kernel, True)


# --- remainder: in int64 if all values fit, which is the rule


def unscaled(x: Value) -> np.ndarray | None:
    """int64 values times 10^scale of a 128-bit array or scalar; None if one does not fit."""
    if isinstance(x, pa.Scalar):
        x = pa.array([x.as_py()], x.type)
    if len(x) == 0:
        return np.empty(0, np.int64)
    words = np.frombuffer(x.buffers()[1], np.int64, 2 * len(x), x.offset * 16).reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    narrow = high == low >> 63
    here = present(x)
    if here is not None:
        narrow = narrow | ~here
    return low if narrow.all() else None


def from_unscaled(values: np.ndarray, valid: np.ndarray | None, to: Type) -> pa.Array:
    """The DECIMAL array of int64 values times 10^-scale."""
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    words[:, 1] = values >> 63
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(to.arrow, len(values), [bitmap, pa.py_buffer(words)])


def _scaled_up(x: Value, scale: int) -> np.ndarray | None:
    """`unscaled` at a larger scale; None if that leaves int64."""
    values, more = unscaled(x), scale - x.type.scale
    if values is None or more == 0:
        return values
    if more > 18:
        return None
    limit = (2**63 - 1) // 10**more
    here = present(x)
    if here is not None and not isinstance(x, pa.Scalar):
        values = np.where(here, values, 0)
    fits = len(values) == 0 or (values.max() <= limit and values.min() >= -limit)
    return values * 10**more if fits else None


def _mod(call: Call, args: Sequence[Node]) -> Built:
    to = call.type

    def kernel(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
        n = length(x, y)
        here = both(present(x), present(y))
        here = None if here is None else np.broadcast_to(here, n)
        a, b = _scaled_up(x, to.scale), _scaled_up(y, to.scale)
        if a is None or b is None:
            return _long_mod(errors, spread(x, n), spread(y, n), to)
        zero = np.broadcast_to(b == 0, n)
        with np.errstate(all="ignore"):
            out = from_unscaled(np.fmod(a, b), here, to)
        if not zero.any():
            return out
        errors.add(int((zero if here is None else zero & here).sum()), ZERO, "division by zero")
        return blank(out, zero)

    return Built(kernel, True)


def _long_mod(errors: ErrorCounter, x: pa.Array, y: pa.Array, to: Type) -> pa.Array:
    """More than 18 digits: row by row in Python's integers, there being no kernel for it."""
    scale = to.scale
    out: list[int | None] = []
    for a, b in zip(_integers(x, scale), _integers(y, scale), strict=True):
        if a is None or b is None or b == 0:
            errors.add(int(a is not None and b == 0), ZERO, "division by zero")
            out.append(None)
        else:
            out.append(abs(a) % abs(b) * (1 if a >= 0 else -1))
    return from_integers(out, to)


def _integers(x: pa.Array, scale: int) -> list[int | None]:
    more = 10 ** (scale - x.type.scale)
    return [
        None if d is None else int(d.scaleb(x.type.scale, _DIGITS)) * more for d in x.to_pylist()
    ]


def to_unscaled(number: Decimal, to: Type) -> int | None:
    """The number times 10^scale, rounded half away from zero; None if it has too many digits."""
    if not number.is_finite() or number.adjusted() > to.precision - to.scale:
        return None
    if number.adjusted() < -to.scale - 1:
        return 0
    scaled = int(
        number.quantize(Decimal(1).scaleb(-to.scale), context=_EXACT).scaleb(to.scale, _EXACT)
    )
    return scaled if abs(scaled) < 10**to.precision else None


def from_integers(values: Sequence[int | None], to: Type) -> pa.Array:
    """The DECIMAL array of Python integers times 10^-scale, all of which fit."""
    words = b"".join((v or 0).to_bytes(16, "little", signed=True) for v in values)
    valid = np.fromiter((v is not None for v in values), np.bool_, len(values))
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(to.arrow, len(values), [bitmap, pa.py_buffer(words)])


# --- rounding


def _whole(name: str) -> Builder:
    """CEIL, FLOOR, TRUNC, ROUND to scale 0, in a type with a digit more, so that nothing
    overflows."""

    def build(call: Call, args: Sequence[Node]) -> Built:
        to, scale = call.type, args[0].type.scale
        if name == "round":
            step = lambda x: pc.round(x, 0, round_mode="half_towards_infinity")  # noqa: E731
        else:
            step = pc.ceil if name == "ceil" else pc.floor if name == "floor" else pc.trunc
        return Built(lambda errors, x: step(x.cast(pa.decimal256(WIDE, scale))).cast(to.arrow))

    return build


def _round(call: Call, args: Sequence[Node]) -> Built:
    if len(args) == 1:
        built = _whole("round")(call, args)
        assert isinstance(built, Built)
        return built
    return Built(_round_to(args[0].type, call.type), True)


def _round_to(source: Type, to: Type) -> Kernel:
    def kernel(errors: ErrorCounter, x: Value, places: Value) -> pa.Array:
        if isinstance(places, pa.Scalar):
            return _rounded(errors, spread(x, length(x, places)), places.as_py(), to)
        out = pa.nulls(len(places), to.arrow)
        x = spread(x, len(places))
        for n in pc.unique(places).drop_null().to_pylist():
            here = pc.fill_null(pc.equal(places, n), False)
            part = either(here, x, None)
            out = pc.if_else(here, _rounded(errors, part, n, to), out)
        return out

    return kernel


def _rounded(errors: ErrorCounter, x: pa.Array, places: int | None, to: Type) -> pa.Array:
    if places is None:
        return pa.nulls(len(x), to.arrow)
    whole = x.type.precision - x.type.scale
    if places < -whole:
        return either(pc.is_valid(x), pa.scalar(0, to.arrow), None)
    wide = x.cast(pa.decimal256(WIDE, x.type.scale))
    if places < x.type.scale:
        wide = pc.round(wide, places, round_mode="half_towards_infinity")
    return fit(errors, wide, to, f"ROUND leaves {to}")


BUILDERS: dict[str, Builder] = {
    "add": _pair("add", "+"),
    "sub": _pair("subtract", "-"),
    "mul": _mul,
    "mod": _mod,
    "ceil": _whole("ceil"),
    "floor": _whole("floor"),
    "trunc": _whole("trunc"),
    "round": _round,
}
