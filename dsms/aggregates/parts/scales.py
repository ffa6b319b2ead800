"""Scales of ranges: where values lie when ranges have widths of powers of two, and where ranges
begin and end.

A range has an index and a level; one level up, the ranges 2i and 2i + 1 are the range i, and so
`index >> 1` is where their values lie.  Nothing depends on which values there are but the finest
level of FLOATs.

linear  INT, TIMESTAMP, INTERVAL: range i of level e is [i * 2^e, (i + 1) * 2^e), and level 0 has
        single values.  FLOAT: the same; the finest level is the place of the last binary digit of
        the largest number, so that an index has 53 bits at most
log     range i of level e has the words from i * 2^e to (i + 1) * 2^e - 1, where the word of a
        FLOAT is its bits, with its sign: within a factor of two ranges are equally wide, and up to
        level 52 no wider than 2^(e - 52) times where they begin.  A whole number has the word of
        the largest FLOAT that is not above it
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.aggregates.parts.texts import shown
from dsms.instants import MAX_INSTANT, MIN_INSTANT
from dsms.sql.types import Kind, Type

DIGITS = 53  # binary digits of a FLOAT
FINEST = -1074  # 2^FINEST is the smallest FLOAT above 0
DEEPEST = 63  # shifts that leave nothing but the sign
LAST = np.iinfo(np.int64).max
INFINITE = np.int64(0x7FF0_0000_0000_0000)  # the word of infinity
BEYOND = 2.0**63  # no INT is as large


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of values of `type` (INT, FLOAT, TIMESTAMP, INTERVAL)."""

    type: Type
    log: bool

    def level(self, values: np.ndarray, cell: np.ndarray, cells: int) -> np.ndarray:
        """int64[cells]: the finest level on which the finite values of each cell have places."""
        finest = np.zeros(cells, np.int64)
        if self.log or self.type.kind is not Kind.FLOAT:
            return finest
        finest[:] = FINEST
        exponent = np.where(values == 0, FINEST, np.frexp(values)[1].astype(np.int64) - DIGITS)
        np.maximum.at(finest, cell, exponent)
        return finest

    def index(self, values: np.ndarray, level: np.ndarray) -> np.ndarray:
        """int64[n]: the places of finite values, value i on a level[i] that `level` allows."""
        if self.log:
            return _words(values) >> np.minimum(level, DEEPEST)
        if self.type.kind is not Kind.FLOAT:
            return values >> np.minimum(level, DEEPEST)
        found = np.floor(np.ldexp(values, -level)).astype(np.int64)
        return np.where((found == 0) & (values < 0), -1, found)  # too small to be scaled

    def edges(self, index: np.ndarray, level: np.ndarray) -> tuple[pa.Array, pa.Array]:
        """string[m], as JSON has them: the least value of each range, and the first one above it
        (instants: within the years 1 to 9999)."""
        if self.type.kind is not Kind.FLOAT:
            return self._whole_edges(index, level)
        if self.log:
            low, high = _floats(_shifted(index, level)), _floats(_above(index, level))
        else:
            with np.errstate(over="ignore"):
                low, high = (np.ldexp((index + k).astype(np.float64), level) for k in (0, 1))
        return _json(pa.array(low + 0.0), self.type), _json(pa.array(high + 0.0), self.type)

    def _whole_edges(self, index: np.ndarray, level: np.ndarray) -> tuple[pa.Array, pa.Array]:
        if self.log:
            below, above = (_floats(w) for w in (_shifted(index, level), _above(index, level)))
            low, high, over = _ceiling(below), _ceiling(above), above >= BEYOND
        else:
            low, high = _shifted(index, level), _shifted(index + 1, level)
            over = high <= low  # it is 2^63
        if self.type.kind is Kind.INT:
            ends = _json(pa.array(high), self.type)
            return _json(pa.array(low), self.type), pc.if_else(pa.array(over), str(2**63), ends)
        high = np.where(over, LAST, high)
        if self.type.kind is Kind.TIMESTAMP:
            low, high = np.maximum(low, MIN_INSTANT), np.minimum(high, MAX_INSTANT)
        return _json(pa.array(low), self.type), _json(pa.array(high), self.type)


def bits(words: np.ndarray) -> np.ndarray:
    """int64[n]: the bits that uint64 numbers have without leading zeros."""
    high, low = words >> np.uint64(32), words & np.uint64(0xFFFF_FFFF)
    above = np.frexp(high.astype(np.float64))[1].astype(np.int64)
    return np.where(above > 0, above + 32, np.frexp(low.astype(np.float64))[1])


def _shifted(index: np.ndarray, level: np.ndarray) -> np.ndarray:
    return np.left_shift(index, np.minimum(level, DEEPEST))


def _above(index: np.ndarray, level: np.ndarray) -> np.ndarray:
    """The first words behind ranges, 2^63 as the last there is."""
    low, high = _shifted(index, level), _shifted(index + 1, level)
    return np.where(high <= low, LAST, high)


def _words(values: np.ndarray) -> np.ndarray:
    floats = values if values.dtype == np.float64 else _floors(values)
    sizes = np.abs(floats).view(np.int64)
    return np.where(floats < 0, -sizes, sizes)


def _floors(values: np.ndarray) -> np.ndarray:
    """The largest FLOATs that are not above whole numbers."""
    near = values.astype(np.float64)
    inside = near < BEYOND
    above = ~inside | (np.where(inside, near, 0).astype(np.int64) > values)
    return np.where(above, np.nextafter(near, -np.inf), near)


def _floats(words: np.ndarray) -> np.ndarray:
    """What words stand for; those of no number are infinite."""
    sizes = np.minimum(np.abs(np.maximum(words, -LAST)), INFINITE).view(np.float64)
    return np.where(words < 0, -sizes, sizes)


def _ceiling(floats: np.ndarray) -> np.ndarray:
    """The least INTs that are not below FLOATs, the last INT where there is none."""
    inside = np.clip(np.ceil(floats), -BEYOND, np.nextafter(BEYOND, 0)).astype(np.int64)
    return np.where(floats >= BEYOND, LAST, inside)


def _json(column: pa.Array, type_: Type) -> pa.Array:
    """INTs and finite FLOATs as they are, all others as strings."""
    written = shown(column, type_)
    if type_.kind is Kind.INT:
        return written
    quoted = pc.binary_join_element_wise('"', written, '"', "")
    return pc.if_else(pc.is_finite(column), written, quoted) if type_.kind is Kind.FLOAT else quoted
