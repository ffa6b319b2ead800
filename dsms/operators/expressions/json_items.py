"""The items of lists in texts of JSON, as texts: what strings say, and all else as it stands there.

`json_walk` has checked the documents, so what is between the brackets is only cut apart.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsms.operators.expressions import json_walk
from dsms.operators.expressions.json_walk import (
    BACK,
    CLOSE_LIST,
    CLOSE_OBJECT,
    COMMA,
    ESCAPED,
    NOTHING,
    NUMBER,
    OPEN_LIST,
    OPEN_OBJECT,
    OTHER,
    QUOTE,
    TEXT,
    Steps,
)

NULL = 110  # the letter n


@njit(cache=True, nogil=True)
def _blank(data, at):
    while data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _item(data, at):
    """(what the item that begins there is, where its text begins and ends, what is behind it)"""
    first = data[at]
    if first == QUOTE:
        escaped, begin = False, at + 1
        at = begin
        while data[at] != QUOTE:
            if data[at] == BACK:
                escaped = True
                at += 1
            at += 1
        return ESCAPED if escaped else TEXT, begin, at, at + 1
    begin, depth, inside = at, 0, False
    while True:
        c = data[at]
        if inside:
            if c == BACK:
                at += 1
            elif c == QUOTE:
                inside = False
        elif c == QUOTE:
            inside = True
        elif c in (OPEN_LIST, OPEN_OBJECT):
            depth += 1
        elif depth == 0 and c in (COMMA, CLOSE_LIST):
            break
        elif c in (CLOSE_LIST, CLOSE_OBJECT):
            depth -= 1
        at += 1
    end = at
    while data[end - 1] == 32 or data[end - 1] == 10 or data[end - 1] == 13 or data[end - 1] == 9:
        end -= 1
    return NOTHING if first == NULL else NUMBER, begin, end, at


@njit(cache=True, nogil=True)
def split(data, kind, begin, end, starts, items, write):
    """The items of the lists at the path one behind the other: columns (what it is, from, to) of
    `items`, if `write`; those of document i end before starts[i + 1]."""
    n = 0
    for i in range(len(kind)):
        if kind[i] == OTHER and end[i] > begin[i] and data[begin[i]] == OPEN_LIST:
            at = _blank(data, begin[i] + 1)
            while data[at] != CLOSE_LIST:
                what, first, last, at = _item(data, at)
                if write:
                    items[n, 0], items[n, 1], items[n, 2] = what, first, last
                n += 1
                at = _blank(data, at)
                if data[at] == COMMA:
                    at = _blank(data, at + 1)
        starts[i + 1] = n
    return n


def items(
    data: np.ndarray, offsets: np.ndarray, steps: Steps
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of the lists at the path in documents: int64[n + 1] where the items of each begin, bool[n]
    whether there is one, and the items' octets, offsets, and bool: whether it is none but null, or
    halves of characters."""
    kind, begin, end = json_walk.found(data, offsets, steps)
    starts = np.zeros(len(kind) + 1, np.int64)
    count = split(data, kind, begin, end, starts, np.empty((0, 3), np.int64), False)
    made = np.empty((count, 3), np.int64)
    split(data, kind, begin, end, starts, made, True)
    lists = (kind == OTHER) & (end > begin)
    lists[lists] = data[begin[lists]] == OPEN_LIST
    what = made[:, 0].astype(np.int8)
    return starts, lists, json_walk.spelled(data, what, made[:, 1].copy(), made[:, 2].copy())
