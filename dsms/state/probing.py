"""Comparing what an index has found, of many sub-windows in one go.

Rows lie in the arrays of their sub-windows, so the kernels get addresses: per sub-window and bucket
one of the places of its rows, and one of the column.  The caller holds on to all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.state.columns import numpy_values
from dsms.state.memory import carray, pointer

WORDS = 64  # values that are compared one by one


@njit(cache=True, nogil=True)
def place_at(address, wide, i):
    """One of the places that lie there."""
    if wide:
        return np.int64(carray(pointer(address), (1,), np.int32)[i])
    return np.int64(carray(pointer(address), (1,), np.uint16)[i])


# of a sub-window that is indexed the addresses of its buckets' places and whether these are wide,
# of where each bucket begins, and of the next older sub-windows and places there (int64[n, 5])
PLACES, WIDE, STARTS, BACK, BACK_SLOT = range(5)


@njit(cache=True, nogil=True)
def walked(parts, first, newest, slot, buckets, spans):
    """From sub-window to sub-window that has a bucket: sub-window, bucket there, first and end of
    its places (int64[n, 4], as many as fit); how many.  `first`: number of parts[0]."""
    n = 0
    for k in range(len(buckets)):
        serial, at = newest[buckets[k]], np.int64(slot[buckets[k]])
        while serial >= first:
            part = serial - first
            starts = carray(pointer(parts[part, STARTS]), (1,), np.int32)
            if n < len(spans):
                spans[n, 0], spans[n, 1] = part, at
                spans[n, 2], spans[n, 3] = starts[at], starts[at + 1]
            n += 1
            back = carray(pointer(parts[part, BACK]), (1,), np.int64)
            back_slot = carray(pointer(parts[part, BACK_SLOT]), (1,), np.uint16)
            serial, at = back[at], np.int64(back_slot[at])
    return n


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
def _ints_of(column, values, place):
    """The places of one of `values` in a column; how many."""
    n = 0
    for at in range(len(column)):
        for k in range(len(values)):
            if column[at] == values[k]:
                place[n] = at
                n += 1
                break
    return n


@njit(cache=True, nogil=True)
def _texts_of(column, address, ends, octets, place):
    """As `_ints_of`, of texts; `column`: where they begin and end among the octets there."""
    text = carray(pointer(address), (1,), np.uint8)
    n = 0
    for at in range(len(column) - 1):
        length = column[at + 1] - column[at]
        for k in range(len(ends) - 1):
            if length == ends[k + 1] - ends[k] and _same(text, column[at], octets, ends[k], length):
                place[n] = at
                n += 1
                break
    return n


@njit(cache=True, nogil=True)
def _same(text, start, octets, end, length):
    """Whether so many octets from there are the same.  (Texts of one column often begin alike.)"""
    j = length - 1
    while j >= 0 and text[start + j] == octets[end + j]:
        j -= 1
    return j < 0


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
                if length == ends[k + 1] - ends[k] and _same(text, start, octets, ends[k], length):
                    span[n] = s
                    place[n] = at
                    n += 1
                    break
    return n


def can_compare(columns: Iterable[pa.Array], values: pa.Array) -> bool:
    """Whether rows of columns of one type, that of `values`, are compared here."""
    plain = pa.types.is_int64(values.type) or is_text(values.type)
    return plain and len(values) <= WORDS and not any(col.null_count for col in columns)


def compared(
    where: np.ndarray, of: np.ndarray, first: np.ndarray, end: np.ndarray, values: pa.Array
) -> tuple[np.ndarray, np.ndarray]:
    """Of spans of places those whose row has one of the values: number of the span and place,
    int64, in the order of the spans.  `can_compare` is true of the columns.

    where  int64[m, 4]: `places_at` and `column_at` of each sub-window;  of: the sub-window of
    each span;  first, end: of the span, among the places"""
    known = where[of]
    spans = np.column_stack([known[:, 0], known[:, 1], first, end, known[:, 2], known[:, 3]])
    most = int(np.sum(end - first))
    span, place = np.empty(most, np.int64), np.empty(most, np.int64)
    if is_text(values.type):
        ends, octets = _text(values)
        n = _texts(spans, ends, octets, span, place)
    else:
        n = _ints(spans, np.array(values.to_numpy(zero_copy_only=False)), span, place)
    return span[:n], place[:n]


def compared_all(column: pa.Array, values: pa.Array) -> np.ndarray:
    """int64: the places of one of the values in a column (`can_compare`), ascending."""
    place = np.empty(len(column), np.int64)
    if not len(column):
        return place
    _, words, *octets = column.buffers()
    if not octets:
        wanted = np.array(values.to_numpy(zero_copy_only=False))
        return place[: _ints_of(numpy_values(column), wanted, place)].copy()
    begins = np.frombuffer(words, np.int32)[column.offset : column.offset + len(column) + 1]
    at = 0 if octets[0] is None else octets[0].address
    return place[: _texts_of(begins, at, *_text(values), place)].copy()


def is_text(type_: pa.DataType) -> bool:
    """Whether values are texts or octets."""
    return pa.types.is_string(type_) or pa.types.is_binary(type_)


def places_at(places: np.ndarray) -> tuple[int, int]:
    """Where places are, and whether they are wide."""
    return places.__array_interface__["data"][0], int(places.itemsize == 4)


def column_at(column: pa.Array) -> tuple[int, int]:
    """Where a column of words of eight octets is; or where its texts begin, and their octets."""
    buffers = column.buffers()
    if len(buffers) == 2:
        return buffers[1].address + 8 * column.offset, 0
    octets = 0 if buffers[2] is None else buffers[2].address
    return buffers[1].address + 4 * column.offset, octets


def _text(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Where each text ends among the octets of all, int64 with a 0 first."""
    texts = [v if isinstance(v, bytes) else v.encode() for v in values.to_pylist()]
    ends = np.cumsum([0, *map(len, texts)])
    return ends, np.frombuffer(b"".join(texts) or b"\0", np.uint8)


def ready() -> None:
    """Have the kernels compiled or loaded now."""
    places = np.zeros(1, np.uint16)
    for column in (pa.array([1]), pa.array(["a"])):
        where = np.array([(*places_at(places), *column_at(column))], np.int64)
        compared(where, np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64), column)
        compared_all(column, column)
