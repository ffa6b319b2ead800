"""Comparing what an index has found, of many sub-windows in one go.

Rows lie in the arrays of their sub-windows, so the kernels get addresses: per sub-window and bucket
one of the places of its rows, and one of the column.  The caller holds on to all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

WORDS = 64  # values that are compared one by one


@intrinsic
def pointer(typing, address):  # type: ignore[no-untyped-def]
    """An int64 as a pointer."""

    def made(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), made


@njit(cache=True, nogil=True)
def place_at(address, wide, i):
    """One of the places that lie there."""
    if wide:
        return np.int64(carray(pointer(address), (1,), np.int32)[i])
    return np.int64(carray(pointer(address), (1,), np.uint16)[i])


@njit(cache=True, nogil=True)
def _ints(spans, values, span, place):
    """Of the rows of all spans those whose value is one of `values`: number of the span, and place;
    how many.  spans: int64[n, 5]: address of places, whether they are wide, first, end, address of
    the column."""
    n = 0
    for s in range(len(spans)):
        column = carray(pointer(spans[s, 4]), (1,), np.int64)
        for i in range(spans[s, 2], spans[s, 3]):
            at = place_at(spans[s, 0], spans[s, 1], i)
            for k in range(len(values)):
                if column[at] == values[k]:
                    span[n] = s
                    place[n] = at
                    n += 1
                    break
    return n


@njit(cache=True, nogil=True)
def _texts(spans, ends, octets, span, place):
    """As `_ints`, of texts; spans: int64[n, 6], with the address of the octets last."""
    n = 0
    for s in range(len(spans)):
        column = carray(pointer(spans[s, 4]), (1,), np.int32)
        text = carray(pointer(spans[s, 5]), (1,), np.uint8)
        for i in range(spans[s, 2], spans[s, 3]):
            at = place_at(spans[s, 0], spans[s, 1], i)
            start, length = column[at], column[at + 1] - column[at]
            for k in range(len(ends) - 1):
                same = length == ends[k + 1] - ends[k]
                j = 0
                while same and j < length:
                    same = text[start + j] == octets[ends[k] + j]
                    j += 1
                if same:
                    span[n] = s
                    place[n] = at
                    n += 1
                    break
    return n


def can_compare(columns: Iterable[pa.Array], values: pa.Array) -> bool:
    """Whether rows of columns of one type, that of `values`, are compared here."""
    plain = pa.types.is_int64(values.type) or _is_text(values.type)
    return plain and len(values) <= WORDS and not any(col.null_count for col in columns)


def compared(
    where: np.ndarray, of: np.ndarray, first: np.ndarray, end: np.ndarray, values: pa.Array
) -> tuple[np.ndarray, np.ndarray]:
    """Of spans of places those whose row has one of the values: number of the span and place,
    int64, in the order of the spans.  `can_compare` is true of the columns.

    where  int64[m, 4]: `address` of places and column, of each sub-window;  of: the sub-window of
    each span;  first, end: of the span, among the places"""
    known = where[of]
    spans = np.column_stack([known[:, 0], known[:, 1], first, end, known[:, 2], known[:, 3]])
    most = int(np.sum(end - first))
    span, place = np.empty(most, np.int64), np.empty(most, np.int64)
    if _is_text(values.type):
        ends, octets = _text(values)
        n = _texts(spans, ends, octets, span, place)
    else:
        n = _ints(spans, np.array(values.to_numpy(zero_copy_only=False)), span, place)
    return span[:n], place[:n]


def _is_text(type_: pa.DataType) -> bool:
    return pa.types.is_string(type_) or pa.types.is_binary(type_)


def address(places: np.ndarray, column: pa.Array) -> tuple[int, bool, int, int]:
    """Where places are, whether they are wide, and where the column is: its words, or where its
    texts begin and their octets."""
    at, wide = places.__array_interface__["data"][0], places.itemsize == 4
    buffers = column.buffers()
    if len(buffers) == 2:
        return at, wide, buffers[1].address + 8 * column.offset, 0
    octets = 0 if buffers[2] is None else buffers[2].address
    return at, wide, buffers[1].address + 4 * column.offset, octets


def _text(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Where each text ends among the octets of all, int64 with a 0 first."""
    texts = [v if isinstance(v, bytes) else v.encode() for v in values.to_pylist()]
    ends = np.cumsum([0, *map(len, texts)])
    return ends, np.frombuffer(b"".join(texts) or b"\0", np.uint8)


def ready() -> None:
    """Have the kernels compiled or loaded now."""
    places = np.zeros(1, np.uint16)
    for column in (pa.array([1]), pa.array(["a"])):
        where = np.array([address(places, column)], np.int64)
        compared(where, np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64), column)
