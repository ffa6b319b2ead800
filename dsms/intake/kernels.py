"""Compiled loops of intake; apart, so that nothing else here loads Numba."""

from __future__ import annotations

import numpy as np
from numba import njit

from dsms.sql.types import ALWAYS


@njit(cache=True, nogil=True)
def walk(
    ts: np.ndarray, newest: int, promised: int, slack: int, future: int, verdict: np.ndarray
) -> int:
    """Fill `verdict` (0 accepted, 1 late, 2 too far: see judge.py) and return the newest accepted
    timestamp."""
    for i in range(len(ts)):
        t = ts[i]
        known = max(newest, promised)
        if known != ALWAYS and t - future > known:
            verdict[i] = 2
        elif t <= promised or (newest != ALWAYS and t < newest - slack):
            verdict[i] = 1
        else:
            newest = max(newest, t)
    return newest


WHOLE, NUMBER, TRUTH, TEXT, BLOB = range(5)  # what a column of packed rows holds
_EXACT = 1 << 53  # whole numbers up to here are floats


@njit(cache=True, nogil=True)
def _big(data, at, size):
    """An unsigned big-endian integer of `size` bytes; of 8 the bits."""
    out = np.int64(0)
    for k in range(size):
        out = (out << 8) | np.int64(data[at + k])
    return out


@njit(cache=True, nogil=True)
def _integer(data, at):
    """(value, the place behind it; -1: no integer of 64 bits stands here)."""
    mark, left = np.int64(data[at]), len(data) - at
    if mark < 0x80:
        return mark, at + 1
    if mark >= 0xE0:
        return mark - 256, at + 1
    size = 1 << (mark & 3)
    if mark < 0xCC or mark > 0xD3 or left <= size:
        return np.int64(0), -1
    value = _big(data, at + 1, size)
    if mark >= 0xD0 and size < 8 and value >> (8 * size - 1):
        value -= np.int64(1) << (8 * size)
    return value, -1 if mark == 0xCF and value < 0 else at + 1 + size


@njit(cache=True, nogil=True)
def _span(data, at, kind):
    """(where the bytes of a text or blob begin, the place behind them; -1: none stands here)."""
    mark, left = np.int64(data[at]), len(data) - at
    if kind == TEXT and mark & 0xE0 == 0xA0:
        return at + 1, at + 1 + (mark & 31)
    first = 0xD9 if kind == TEXT else 0xC4
    if mark < first or mark > first + 2:
        return at, -1
    size = 1 << (mark - first)
    return (at + 1 + size, at + 1 + size + _big(data, at + 1, size)) if left > size else (at, -1)


@njit(cache=True, nogil=True)
def unpack_rows(data, at, kinds, codes, values, floats, sizes, valid):
    """msgpack rows (arrays of one value per column) from `at` on -> columns; the place behind them,
    -1 if a row has another width or a value another kind than its column.

    values[c, i]   the integer, 0 or 1, the bits of the float (`floats` is the same memory), or
                   where the bytes begin
    sizes[c, i]    bytes of a text or blob;    valid[c, i]  False: NULL
    codes[c]       the extension type of 8 bytes that an integer of the column may come as; 0:
                   none"""
    width = len(kinds)
    for i in range(values.shape[1]):
        if at >= len(data):
            return -1
        if width < 16 and data[at] == 0x90 + width:
            at += 1
        elif data[at] == 0xDC and at + 2 < len(data) and _big(data, at + 1, 2) == width:
            at += 3
        else:
            return -1
        for c in range(width):
            if at >= len(data):
                return -1
            mark, kind = data[at], kinds[c]
            if mark == 0xC0:
                valid[c, i] = False
                at += 1
            elif kind == NUMBER and mark == 0xCB and at + 8 < len(data):
                values[c, i] = _big(data, at + 1, 8)
                at += 9
            elif mark == 0xD7 and at + 9 < len(data) and data[at + 1] == codes[c] and codes[c] > 0:
                values[c, i] = _big(data, at + 2, 8)
                at += 10
            elif kind in (WHOLE, NUMBER):
                whole, at = _integer(data, at)
                if kind == WHOLE:
                    values[c, i] = whole
                elif -_EXACT <= whole <= _EXACT:
                    floats[c, i] = whole
                else:
                    return -1
            elif kind == TRUTH:
                if mark != 0xC2 and mark != 0xC3:
                    return -1
                values[c, i] = mark == 0xC3
                at += 1
            else:
                start, at = _span(data, at, kind)
                values[c, i], sizes[c, i] = start, at - start
                if at > len(data):
                    return -1
            if at < 0:
                return -1
    return at


@njit(cache=True, nogil=True)
def gather_bytes(data, starts, sizes, valid, offsets, out):
    """The bytes at `starts`, one after the other; offsets[i] is where the i-th begins."""
    at = 0
    for i in range(len(starts)):
        offsets[i] = at
        if valid[i]:
            for k in range(sizes[i]):
                out[at + k] = data[starts[i] + k]
            at += sizes[i]
    offsets[len(starts)] = at
