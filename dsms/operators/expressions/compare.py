"""Comparisons, IN, GREATEST and LEAST, in SQL's order: NaN equals itself and stands above all
numbers, -0.0 is 0.0.

Arrow compares FLOATs by IEEE 754, where NaN compares with nothing.  Against a constant that is made
right by asking the opposite question; between columns only batches in which there is a NaN go the
slower way, over integer keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dsms.operators.expressions.arrays import (
    Value,
    blank,
    either,
    from_order_keys,
    has_nan,
    order_keys,
    present,
    spread,
)
from dsms.operators.expressions.decimals import widen
from dsms.operators.expressions.errors import ErrorCounter
from dsms.operators.expressions.node import Builder, Built, Kernel, Node, length
from dsms.sql.expr import Call
from dsms.sql.types import Kind

Compare = Callable[[Value, Value], pa.Array]
_ARROW = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_OPPOSITE = {"gt": "le", "ge": "lt"}
_MIRROR = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _arrow(name: str) -> Compare:
    call = pc.get_function(_ARROW[name]).call
    return lambda x, y: call([x, y])


def _to_number(name: str, number: pa.Scalar) -> Callable[[pa.Array], pa.Array]:
    """x against a constant that is no NaN: NaN must answer as a number above it."""
    if name in _OPPOSITE:
        call = pc.get_function(_ARROW[_OPPOSITE[name]]).call
        flip = pc.get_function("invert").call
        return lambda x: flip([call([x, number])])
    call = pc.get_function(_ARROW[name]).call
    return lambda x: call([x, number])


def _floats(name: str) -> Compare:
    plain = _arrow(name)

    def compare(x: Value, y: Value) -> pa.Array:
        if has_nan(x) or has_nan(y):
            return plain(order_keys(x), order_keys(y))
        return plain(x, y)

    return compare


def _is_number(node: Node) -> bool:
    return node.const is not None and node.const.is_valid and not math.isnan(node.const.as_py())


def comparison(name: str, a: Node, b: Node) -> Compare:
    """The comparison of two operands of one type (DECIMALs may differ in digits)."""
    if a.type.kind is Kind.FLOAT:
        if _is_number(b):
            against = _to_number(name, b.const)
            return lambda x, y: against(x) if isinstance(x, pa.Array) else _floats(name)(x, y)
        if _is_number(a):
            mirrored = _to_number(_MIRROR[name], a.const)
            return lambda x, y: mirrored(y) if isinstance(y, pa.Array) else _floats(name)(x, y)
        return _floats(name)
    plain = _arrow(name)
    if a.type.kind is Kind.DECIMAL and a.type != b.type:
        scale = max(a.type.scale, b.type.scale)
        return lambda x, y: plain(widen(x, scale), widen(y, scale))
    return plain


def _comparer(name: str) -> Builder:
    def build(call: Call, args: Sequence[Node]) -> Built:
        compare = comparison(name, args[0], args[1])
        return Built(lambda errors, x, y: compare(x, y))

    return build


def _distinct(equal: bool) -> Builder:
    def build(call: Call, args: Sequence[Node]) -> Built:
        compare = comparison("eq", args[0], args[1])

        def kernel(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
            same = compare(x, y)
            if same.null_count:
                same = pc.coalesce(same, pc.and_(pc.is_null(x), pc.is_null(y)))
            return same if equal else pc.invert(same)

        return Built(kernel)

    return build


# --- IN


def _in(call: Call, args: Sequence[Node]) -> Built:
    items = args[1:]
    if all(i.const is not None and i.type == args[0].type for i in items):
        return Built(_in_constants(items))
    tests = [comparison("eq", args[0], i) for i in items]

    def kernel(errors: ErrorCounter, x: Value, *values: Value) -> pa.Array:
        x = spread(x, length(x, *values))
        found = tests[0](x, values[0])
        for test, value in zip(tests[1:], values[1:], strict=True):
            found = pc.or_kleene(found, test(x, value))
        return found

    return Built(kernel)


def _in_constants(items: Sequence[Node]) -> Kernel:
    values = [i.const.as_py() for i in items if i.const is not None]
    known = [v for v in values if v is not None]
    if 0.0 in known and items[0].type.kind is Kind.FLOAT:
        known += [0.0, -0.0]  # the hash tells them apart
    options = pc.SetLookupOptions(value_set=pa.array(known, items[0].type.arrow))
    some_null = None in values

    def kernel(errors: ErrorCounter, x: Value, *rest: Value) -> pa.Array:
        x = spread(x, length(x, *rest))
        found = pc.call_function("is_in", [x], options)
        if some_null:
            return either(found, found, None)
        missing = present(x)
        return found if missing is None else blank(found, ~missing)

    return kernel


# --- GREATEST, LEAST, NULLIF


def _extreme(name: str) -> Builder:
    function = pc.max_element_wise if name == "greatest" else pc.min_element_wise

    def build(call: Call, args: Sequence[Node]) -> Built:
        match call.type.kind:
            case Kind.FLOAT:
                return Built(lambda errors, *xs: _extreme_floats(function, xs))
            case Kind.BOOL:
                return Built(
                    lambda errors, *xs: function(*(x.cast(pa.int8()) for x in xs)).cast(pa.bool_())
                )
            case Kind.NULL:
                return Built(lambda errors, *xs: pa.nulls(length(*xs)))
        return Built(lambda errors, *xs: function(*xs))

    return build


def _extreme_floats(function: Callable[..., pa.Array], xs: Sequence[Value]) -> pa.Array:
    if any(has_nan(x) for x in xs):
        return from_order_keys(function(*(order_keys(x) for x in xs)))
    # no -0.0, as the keys have none: answers must not depend on the batch
    return pc.add(function(*xs), 0.0)


def _nullif(call: Call, args: Sequence[Node]) -> Built:
    if call.type.kind is Kind.NULL:
        return Built(lambda errors, x, y: pa.nulls(length(x, y)))
    compare = comparison("eq", args[0], args[1])

    def kernel(errors: ErrorCounter, x: Value, y: Value) -> pa.Array:
        same = pc.fill_null(compare(x, y), False)
        return either(same, None, spread(x, len(same)))

    return Built(kernel)


BUILDERS: dict[str, Builder] = {
    **{name: _comparer(name) for name in _ARROW},
    "distinct_from": _distinct(False),
    "not_distinct_from": _distinct(True),
    "in": _in,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "nullif": _nullif,
}
