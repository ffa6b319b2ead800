"""What algebras of frequent items share: values counted per cell, in order, and as CAST to STRING
writes them.

A column of values is *plain* when equal values are equal in Arrow and sort as SQL sorts them:
FLOATs become int64 words in order (one zero, one NaN, which is above all numbers), all other types
are so by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.aggregates.parts.texts import shown
from dsms.sql.types import Kind, Type
from dsms.state.columns import numpy_valid, numpy_values

_NAN = 0x7FF8_0000_0000_0000
_REST = 0x7FFF_FFFF_FFFF_FFFF


def no_values(type_: Type) -> pa.Array:
    """Plain values of the type, none of them."""
    return pa.array([], pa.int64() if type_.kind in (Kind.FLOAT, Kind.NULL) else type_.arrow)


def as_items(column: pa.Array, type_: Type) -> pa.Array:
    """The column, without NULLs, as plain values."""
    if type_.kind is not Kind.FLOAT:
        return column
    bits = (numpy_values(column) + 0.0).view(np.int64)
    bits = np.where(np.isnan(numpy_values(column)), _NAN, bits)
    return pa.array(np.where(bits < 0, bits ^ _REST, bits))


def back(values: pa.Array, type_: Type) -> pa.Array:
    """Plain values as a column of the type again."""
    if type_.kind is not Kind.FLOAT:
        return values
    words = numpy_values(values)
    return pa.array(np.where(words < 0, words ^ _REST, words).view(np.float64))


def texts(values: pa.Array, type_: Type) -> pa.Array:
    """Plain values as `shown` writes them."""
    return shown(back(values, type_), type_)


def coded(values: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """(codes int64[n], distinct values in ascending order): values[i] == distinct[codes[i]]."""
    found = values.dictionary_encode()
    order = np.asarray(pc.array_sort_indices(found.dictionary)).astype(np.int64)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[np.asarray(found.indices)], found.dictionary.take(pa.array(order))


@dataclass(frozen=True, slots=True)
class Counts:
    """How often values occur in cells, sorted by (cell, value): cell, code and count are int64[m],
    `values` by code."""

    cell: np.ndarray
    code: np.ndarray
    count: np.ndarray
    values: pa.Array


def counted(cell: np.ndarray, column: pa.Array, type_: Type) -> Counts:
    """Occurrences of the values that are not NULL."""
    valid = (
        np.zeros(len(column), np.bool_) if pa.types.is_null(column.type) else numpy_valid(column)
    )
    if valid is not None:
        cell, column = cell[valid], column.filter(pa.array(valid))
    values = as_items(column, type_) if len(column) else no_values(type_)
    return summed(cell, values, np.ones(len(cell), np.int64))


def summed(cell: np.ndarray, values: pa.Array, count: np.ndarray) -> Counts:
    """Counts of equal (cell, value) added up; those that come to 0 are dropped."""
    code, distinct = coded(values)
    order = np.lexsort((code, cell))
    cell, code, count = cell[order], code[order], count[order]
    first = np.ones(len(cell), np.bool_)
    first[1:] = (cell[1:] != cell[:-1]) | (code[1:] != code[:-1])
    starts = np.flatnonzero(first)
    total = np.add.reduceat(count, starts) if len(starts) else count
    kept = total != 0
    return Counts(cell[starts][kept], code[starts][kept], total[kept], distinct)


def starts_of(cell: np.ndarray, cells: int) -> np.ndarray:
    """int64[cells + 1]: where the entries of each cell begin, `cell` being sorted."""
    return np.searchsorted(cell, np.arange(cells + 1))


def places(starts: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the cells at `index` (-1: none): (positions of all their entries, the new starts)."""
    low = np.where(index < 0, 0, starts[index])
    size = np.where(index < 0, 0, starts[index + 1] - low)
    new = np.zeros(len(index) + 1, np.int64)
    np.cumsum(size, out=new[1:])
    return np.repeat(low - new[:-1], size) + np.arange(new[-1]), new
