"""HASH: 64 bits of values, the same in every place, process and version.

A number is hashed by its value, so that what `=` joins has one hash whichever types the two sides
have; text and bytes by FNV-1a (Fowler, Noll, Vo).  The finaliser is that of SplitMix64 (Steele,
Lea, Flood 2014, OOPSLA, "Fast splittable pseudorandom number generators").
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms.operators.expressions.arrays import Value, bits, floats, from_ints, ints, present, spread
from dsms.operators.expressions.casts import decimal_to_float
from dsms.operators.expressions.decimals import widen
from dsms.operators.expressions.errors import ErrorCounter
from dsms.operators.expressions.node import Builder, Built, Node, length
from dsms.operators.expressions.slices import data_of, offsets_of
from dsms.sql.expr import Call

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


def _of_floats(values: np.ndarray) -> np.ndarray:
    whole = (values >= -_WHOLE) & (values < _WHOLE) & (values == np.trunc(values))
    words = np.where(np.isnan(values), _NAN, values.view(np.uint64))
    return np.where(whole, np.where(whole, values, 0.0).astype(np.int64).view(np.uint64), words)


def _of_decimals(errors: ErrorCounter, x: pa.Array) -> np.ndarray:
    """Whole ones that an INT holds as that INT, others as FLOATs."""
    words = _of_floats(floats(decimal_to_float(errors, x)))
    wide = widen(x, x.type.scale)
    floor = pc.floor(wide)
    low, high = (pa.scalar(Decimal(v), floor.type) for v in (-(2**63), 2**63 - 1))
    fits = pc.and_(pc.greater_equal(floor, low), pc.less_equal(floor, high))
    where = np.flatnonzero(bits(pc.and_(pc.equal(floor, wide), fits)))
    words[where] = ints(floor.take(from_ints(where)).cast(pa.int64())).view(np.uint64)
    return words


def _words(errors: ErrorCounter, x: pa.Array) -> np.ndarray:
    kind = x.type
    if pa.types.is_decimal(kind):
        return _of_decimals(errors, x)
    if pa.types.is_floating(kind):
        return _of_floats(floats(x))
    if pa.types.is_boolean(kind):
        return bits(x).astype(np.uint64)
    if pa.types.is_integer(kind):
        return ints(x).view(np.uint64)
    return _of_texts(x)


def _one(errors: ErrorCounter, x: Value, n: int) -> np.ndarray:
    """uint64[n] of one argument, an array of n or a constant."""
    column = spread(x, 1) if isinstance(x, pa.Scalar) else x
    if pa.types.is_null(column.type):
        return np.full(n, NOTHING)
    found = mixed(_words(errors, column))
    here = present(column)
    if here is not None:
        found = np.where(here, found, NOTHING)
    return np.broadcast_to(found, n)


def _hash(errors: ErrorCounter, *args: Value) -> pa.Array:
    n = length(*args)
    found = _one(errors, args[0], n)
    for x in args[1:]:
        found = mixed(found) ^ _one(errors, x, n)
    return from_ints(found.view(np.int64) if found.flags.c_contiguous else found.astype(np.int64))


def _build(call: Call, args: Sequence[Node]) -> Built:
    return Built(_hash)


BUILDERS: dict[str, Builder] = {"hash": _build}


def ready() -> None:
    """Meet the kernel."""
    _of_texts(pa.array(["a"], pa.string()))
