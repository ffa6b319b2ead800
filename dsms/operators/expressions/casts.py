"""CAST: between numbers here, from text in `parse`, to text in `show`."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.errors import InternalError
from dsms.operators.expressions import listed, parse, show, structs
from dsms.operators.expressions.arithmetic import refuse
from dsms.operators.expressions.arrays import blank, floats, from_floats, from_ints, ints, present
from dsms.operators.expressions.decimals import (
    WIDE,
    from_integers,
    from_unscaled,
    rescale,
    to_unscaled,
    unscaled,
)
from dsms.operators.expressions.errors import CAST, ErrorCounter
from dsms.operators.expressions.node import Builder, Built, Kernel, Node
from dsms.sql.expr import Call
from dsms.sql.types import Kind, Type
from dsms.typed_texts import DAY


def _cast(call: Call, args: Sequence[Node]) -> Built:
    return between(args[0].type, call.type)


def _try_cast(call: Call, args: Sequence[Node]) -> Built:
    """The same, by a counter of its own: what fails is NULL, and nobody is told."""
    cast = _cast(call, args)
    return Built(lambda errors, x: cast.kernel(errors.probe(), x), False, cast.grows)


def between(source: Type, to: Type) -> Built:
    """The kernel from one type to another."""
    if source == to:
        return Built(lambda errors, x: x)
    if source.kind is Kind.NULL:
        return Built(lambda errors, x: pa.nulls(len(x), to.arrow))
    if source.item is not None and to.item is not None:
        return listed.converted(source, to, between(source.item, to.item))
    if source.fields and to.fields:
        pairs = zip(source.fields, to.fields, strict=True)
        return structs.converted(source, to, [between(a, b) for (_, a), (_, b) in pairs])
    if to.kind is Kind.STRING:
        return show.show(source)
    if source.kind is Kind.STRING:
        return _parsed(to)
    kernel, fallible = _between(source, to)
    return Built(kernel, fallible)


def _parsed(to: Type) -> Built:
    match to.kind:
        case Kind.LIST:
            return listed.parsed(to)
        case Kind.STRUCT:
            return structs.parsed(to)
        case _:
            return parse.parse(to)


def _between(source: Type, to: Type) -> tuple[Kernel, bool]:
    match source.kind, to.kind:
        case Kind.BOOL, Kind.INT:
            return (lambda errors, x: x.cast(pa.int64())), False
        case Kind.INT, Kind.BOOL:
            return (lambda errors, x: pc.not_equal(x, 0)), False
        case Kind.INT, Kind.FLOAT:
            return (lambda errors, x: x.cast(pa.float64(), safe=False)), False
        case Kind.INT, Kind.DECIMAL:
            return _int_to_decimal(to), to.precision - to.scale < 19
        case Kind.FLOAT, Kind.INT:
            return float_to_int, True
        case Kind.FLOAT, Kind.DECIMAL:
            return _float_to_decimal(to), True
        case Kind.DECIMAL, Kind.INT:
            return _decimal_to_int, True
        case Kind.DECIMAL, Kind.FLOAT:
            return decimal_to_float, False
        case Kind.DATE, Kind.TIMESTAMP:
            return (lambda errors, x: x), False
        case Kind.TIMESTAMP, Kind.DATE:
            return (lambda errors, x: from_ints(ints(x) - ints(x) % DAY, present(x))), False
        case Kind.TIMESTAMP, Kind.TIME:
            return (lambda errors, x: from_ints(ints(x) % DAY, present(x))), False
        case Kind.DECIMAL, Kind.DECIMAL:
            return _decimal_to_decimal(source, to), True
    raise InternalError("DS902", f"no cast from {source} to {to}; please report this")


def _int_to_decimal(to: Type) -> Kernel:
    why = f"an INT does not fit {to}"

    def kernel(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        if to.scale == 0 and to.precision >= 19:
            return x.cast(to.arrow)
        return rescale(errors, x.cast(pa.decimal256(WIDE, 0)), to, why)

    return kernel


def float_to_int(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    """The nearest INT, ties to even."""
    values = np.rint(floats(x))
    bad = ~((values >= -(2.0**63)) & (values < 2.0**63))
    if not bad.any():
        return from_ints(values.astype(np.int64), present(x))
    out = from_ints(np.where(bad, 0, values).astype(np.int64), present(x))
    return refuse(errors, out, bad, [x], CAST, f"FLOAT {_sample(x, bad)} is no INT")


def _sample(x: pa.Array, bad: np.ndarray) -> object:
    """The first failing value, for the complaint."""
    here = present(x)
    rows = np.flatnonzero(bad if here is None else bad & here)
    return x[int(rows[0])].as_py() if len(rows) else None


def _float_to_decimal(to: Type) -> Kernel:
    """By its shortest decimal text, rounded half away from zero.

    Times 10^scale in FLOAT arithmetic tells the nearest whole number unless the product is near a
    tie or past 2^51: only those rows are worked out in decimal digits.
    """
    power = 10.0**to.scale
    limit = min(2.0**51, 10.0**to.precision)

    def kernel(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        with np.errstate(all="ignore"):
            scaled = floats(x) * power
            whole = np.rint(scaled)
            near = np.abs(np.abs(scaled - whole) - 0.5) <= np.abs(scaled) * 2.0**-50
            clear = (np.abs(scaled) < limit - 1) & ~near
            out = from_unscaled(np.where(clear, whole, 0).astype(np.int64), present(x), to)
        return out if clear.all() else _exactly(errors, x, out, ~clear, to)

    return kernel


def _exactly(
    errors: ErrorCounter, x: pa.Array, out: pa.Array, rows: np.ndarray, to: Type
) -> pa.Array:
    here = present(x)
    where = np.flatnonzero(rows if here is None else rows & here)
    values = x.take(pa.array(where)).to_pylist()
    found = [to_unscaled(Decimal(repr(v)), to) for v in values]
    for value, number in zip(values, found, strict=True):
        errors.add(int(number is None), CAST, f"FLOAT {value!r} is no {to}")
    if len(where) == 0:
        return out
    mask = np.zeros(len(x), np.bool_)
    mask[where] = True
    return pc.replace_with_mask(out, pa.array(mask), from_integers(found, to))


def _decimal_to_int(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    whole = x.cast(pa.decimal256(WIDE, x.type.scale))
    if x.type.scale:
        whole = pc.round(whole, 0, round_mode="half_towards_infinity")
    try:
        return whole.cast(pa.int64())
    except pa.ArrowInvalid:
        low, high = (
            pa.scalar(Decimal(v), pa.decimal256(WIDE, x.type.scale)) for v in (-(2**63), 2**63 - 1)
        )
        good = pc.and_(pc.greater_equal(whole, low), pc.less_equal(whole, high)).fill_null(True)
        bad = ~good.to_numpy(zero_copy_only=False)
        errors.add(int(bad.sum()), CAST, f"DECIMAL {_sample(x, bad)} is no INT")
        return blank(whole, bad).cast(pa.int64())


def decimal_to_float(errors: ErrorCounter, x: pa.Array) -> pa.Array:
    """The nearest FLOAT: by one division where both numbers are exact FLOATs, else by way of
    text."""
    values, scale = unscaled(x), x.type.scale
    if values is not None and scale <= 22:
        here = present(x)
        values = values if here is None else np.where(here, values, 0)
        if len(values) == 0 or (values.max() < 2**53 and values.min() > -(2**53)):
            return from_floats(values / 10.0**scale, here)
    return x.cast(pa.string()).cast(pa.float64())


def _decimal_to_decimal(source: Type, to: Type) -> Kernel:
    why = f"a {source} does not fit {to}"
    if to.scale >= source.scale and to.precision - to.scale >= source.precision - source.scale:
        return lambda errors, x: x.cast(to.arrow)
    return lambda errors, x: rescale(errors, x, to, why)


BUILDERS: dict[str, Builder] = {"cast": _cast, "try_cast": _try_cast}
