"""The compiled loop of `nesting`; apart, so that nothing else loads Numba."""

from __future__ import annotations

import numpy as np
from numba import njit

DEPTH = 512  # open arrays and maps, at most


def _table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By mark: bytes of the length that follows it, bytes of the value besides, items for each of
    that length."""
    lengths, fixed, items = (np.zeros(256, np.int64) for _ in range(3))
    fixed[0xA0:0xC0] = np.arange(32)
    for first in (0xC4, 0xC7, 0xD9):
        lengths[first : first + 3] = 1, 2, 4
    for first in (0xDC, 0xDE):
        lengths[first : first + 2] = 2, 4
    fixed[0xC7:0xCA] = 1
    fixed[0xCA:0xD9] = 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17
    items[[0xDC, 0xDD]], items[[0xDE, 0xDF]] = 1, 2
    return lengths, fixed, items


_LENGTHS, _FIXED, _ITEMS = _table()


@njit(cache=True, nogil=True)
def walk_value(data):
    """(size, values, longest, deep, deepest) as `nesting.Extent` has them; size -1 if there is no
    whole value."""
    left = np.empty(DEPTH, np.int64)
    at = values = longest = deep = deepest = before = depth = 0
    while True:
        if at >= len(data) or data[at] == 0xC1:
            return -1, values, longest, deep, deepest
        mark = data[at]
        at += 1
        values += 1
        size, items = _FIXED[mark], -1
        if 0x80 <= mark < 0x90:
            items = 2 * (mark & 15)
        elif 0x90 <= mark < 0xA0:
            items = mark & 15
        elif _LENGTHS[mark] > 0:
            if at + _LENGTHS[mark] > len(data):
                return -1, values, longest, deep, deepest
            length = 0
            for k in range(_LENGTHS[mark]):
                length = (length << 8) | data[at + k]
            at += _LENGTHS[mark]
            if _ITEMS[mark] > 0:
                items = length * _ITEMS[mark]
            else:
                size += length
        at += size
        if at > len(data):
            return -1, values, longest, deep, deepest
        if depth == 1 and items > longest:
            longest = items
        if depth == 1:
            before = deep
        if depth > 2 or (depth == 2 and items >= 0):
            deep += 1
            deepest = max(deepest, deep - before)
        if items > 0:
            if depth == DEPTH:
                return -1, values, longest, deep, deepest
            left[depth] = items
            depth += 1
            continue
        while depth > 0:
            left[depth - 1] -= 1
            if left[depth - 1] > 0:
                break
            depth -= 1
        if depth == 0:
            return at, values, longest, deep, deepest
