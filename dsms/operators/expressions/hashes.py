"""HASH: 64 bits of values, the same in every place, process and version.

A number is hashed by its value, so that what `=` joins has one hash whichever types the two sides
have; text and bytes by FNV-1a (Fowler, Noll, Vo).  A list is hashed as the text that it is, in
which numbers that an INT holds are written as INTs.  The finaliser is that of SplitMix64 (Steele,
Lea, Flood 2014, OOPSLA, "Fast splittable pseudorandom number generators").
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms import lists
from dsms.operators.expressions.arrays import (
    Value,
    bits,
    floats,
    from_bits,
    from_floats,
    from_ints,
    ints,
    present,
    spread,
)
from dsms.operators.expressions.casts import decimal_to_float
from dsms.operators.expressions.decimals import widen
from dsms.operators.expressions.errors import ErrorCounter
from dsms.operators.expressions.node import Builder, Built, Node, length
from dsms.operators.expressions.slices import data_of, offsets_of
from dsms.sql.expr import Call
from dsms.sql.types import Kind, Type, item_of

NOTHING = np.uint64(0)  # of NULL
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BASIS, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_NAN = np.array([np.nan]).view(np.uint64)[0]
_WHOLE = 2.0**63  # FLOATs from its negative up to it, without it, may be INTs


def mixed(x: np.ndarray) -> np.ndarray:
    """Each of uint64[n] spread over all bits."""
    x = x + _STEP
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def _fnv(offsets, data, out):
    for i in range(len(out)):
        h = _BASIS
        for at in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[at])) * _PRIME
        out[i] = h


def _of_texts(x: pa.Array) -> np.ndarray:
    out = np.empty(len(x), np.uint64)
    _fnv(offsets_of(x), data_of(x), out)
    return out


def _numbers(errors: ErrorCounter, x: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """FLOATs or DECIMALs as (bool[n]: an INT holds it, int64[n]: which, float64[n]: it as a
    FLOAT)."""
    decimal = pa.types.is_decimal(x.type)
    values = floats(decimal_to_float(errors, x) if decimal else x)
    whole = (values >= -_WHOLE) & (values < _WHOLE) & (values == np.trunc(values))
    found = np.where(whole, values, 0.0).astype(np.int64)
    if decimal:
        wide = widen(x, x.type.scale)
        floor = pc.floor(wide)
        low, high = (pa.scalar(Decimal(v), floor.type) for v in (-(2**63), 2**63 - 1))
        fits = pc.and_(pc.greater_equal(floor, low), pc.less_equal(floor, high))
        where = np.flatnonzero(bits(pc.and_(pc.equal(floor, wide), fits)))
        whole[where], found[where] = True, ints(floor.take(from_ints(where)).cast(pa.int64()))
    return whole, found, values


def _of_numbers(errors: ErrorCounter, x: pa.Array) -> np.ndarray:
    whole, found, values = _numbers(errors, x)
    words = np.where(np.isnan(values), _NAN, values.view(np.uint64))
    return np.where(whole, found.view(np.uint64), words)


def _by_value(errors: ErrorCounter, x: pa.Array, item: Type) -> pa.Array:
    """Lists as texts that are equal where their items are, whichever numbers these are."""
    there = lists.items(x)
    items, _ = lists.item_values(there, str(item))
    whole, found, values = _numbers(errors, items)
    shown = lists.spelled_items(from_floats(values), "FLOAT")
    texts = pc.if_else(from_bits(whole), from_ints(found).cast(pa.string()), shown)
    return lists.joined(there.starts, pc.if_else(items.is_valid(), texts, "null"))


def _words(errors: ErrorCounter, x: pa.Array) -> np.ndarray:
    kind = x.type
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return _of_numbers(errors, x)
    if pa.types.is_boolean(kind):
        return bits(x).astype(np.uint64)
    if pa.types.is_integer(kind):
        return ints(x).view(np.uint64)
    return _of_texts(x)


def _one(errors: ErrorCounter, x: Value, n: int, item: Type | None) -> np.ndarray:
    """uint64[n] of one argument, an array of n or a constant; `item` is set for lists of FLOATs or
    DECIMALs."""
    column = spread(x, 1) if isinstance(x, pa.Scalar) else x
    if pa.types.is_null(column.type):
        return np.full(n, NOTHING)
    found = mixed(_words(errors, column if item is None else _by_value(errors, column, item)))
    here = present(column)
    if here is not None:
        found = np.where(here, found, NOTHING)
    return np.broadcast_to(found, n)


def hashed(values: Sequence[pa.Array], n: int) -> np.ndarray:
    """int64[n]: HASH of n rows of columns; 0 of rows of none.  Lists are hashed as they are
    written, whatever their items."""
    if not values:
        return np.zeros(n, np.int64)
    found, *rest = (_one(ErrorCounter(), x, n, None) for x in values)
    for one in rest:
        found = mixed(found) ^ one
    return np.ascontiguousarray(found).view(np.int64)


def _build(call: Call, args: Sequence[Node]) -> Built:
    items = [_numeric_item(a.type) for a in args]

    def kernel(errors: ErrorCounter, *args: Value) -> pa.Array:
        n = length(*args)
        found, *rest = (_one(errors, x, n, i) for x, i in zip(args, items, strict=True))
        for one in rest:
            found = mixed(found) ^ one
        words = found.view(np.int64) if found.flags.c_contiguous else found.astype(np.int64)
        return from_ints(words)

    return Built(kernel)


def _numeric_item(type_: Type) -> Type | None:
    """The type of a list's items, if they are numbers that may be written like those of others."""
    item = item_of(type_) if type_.kind is Kind.LIST else None
    return item if item is not None and item.kind in (Kind.FLOAT, Kind.DECIMAL) else None


BUILDERS: dict[str, Builder] = {"hash": _build}


def ready() -> None:
    """Meet the kernel."""
    _of_texts(pa.array(["a"], pa.string()))
