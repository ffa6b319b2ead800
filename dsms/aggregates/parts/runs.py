"""Sequences of values summed up by their runs, in which none is less than the one before it (or
none greater).

Dani and Getta 2005, §8.2, keep the runs of one window; that they are a monoid serves every window:
of a sequence are kept its first and last value, the run that it begins with, the one that it ends
with, and the longest, the earliest of equal ones.  Two neighbours are put together in O(1); what is
left of a whole without a part is not known from the two.

A sequence is a line of nine words.  Beside each run stands the word told of it: that of the row
with which it begins, or with which it ends.
"""

from __future__ import annotations

import numpy as np
from numba import njit

COUNT, FIRST, LAST, HEAD, HEAD_TOLD, TAIL, TAIL_TOLD, BEST, BEST_TOLD = range(9)
WIDTH = 9


@njit(cache=True, nogil=True)
def goes_on(x, y, rank, down):
    """Whether y, behind x, goes on with its run."""
    if len(rank):
        x, y = rank[x], rank[y]
    return y <= x if down else y >= x


@njit(cache=True, nogil=True)
def single(out, k, word, told):
    """Line k is a sequence of one row."""
    out[k, COUNT] = out[k, HEAD] = out[k, TAIL] = out[k, BEST] = 1
    out[k, FIRST] = out[k, LAST] = word
    out[k, HEAD_TOLD] = out[k, TAIL_TOLD] = out[k, BEST_TOLD] = told


@njit(cache=True, nogil=True)
def joined(a, i, b, j, out, k, rank, down, start):
    """Line k of `out` is line i of `a`, then line j of `b`; k may be one of them.  start: told is
    how runs begin."""
    if a[i, COUNT] == 0:
        for c in range(WIDTH):
            out[k, c] = b[j, c]
        return
    if b[j, COUNT] == 0:
        for c in range(WIDTH):
            out[k, c] = a[i, c]
        return
    count, first, last = a[i, COUNT] + b[j, COUNT], a[i, FIRST], b[j, LAST]
    head, head_told = a[i, HEAD], a[i, HEAD_TOLD]
    tail, tail_told = b[j, TAIL], b[j, TAIL_TOLD]
    best, best_told = a[i, BEST], a[i, BEST_TOLD]
    if goes_on(a[i, LAST], b[j, FIRST], rank, down):
        across = a[i, TAIL] + b[j, HEAD]
        told = a[i, TAIL_TOLD] if start else b[j, HEAD_TOLD]
        if a[i, HEAD] == a[i, COUNT]:
            head, head_told = across, told
        if b[j, TAIL] == b[j, COUNT]:
            tail, tail_told = across, told
        if across > best:
            best, best_told = across, told
    if b[j, BEST] > best:
        best, best_told = b[j, BEST], b[j, BEST_TOLD]
    out[k, COUNT], out[k, FIRST], out[k, LAST] = count, first, last
    out[k, HEAD], out[k, HEAD_TOLD] = head, head_told
    out[k, TAIL], out[k, TAIL_TOLD] = tail, tail_told
    out[k, BEST], out[k, BEST_TOLD] = best, best_told


@njit(cache=True, nogil=True)
def appended(out, k, word, told, rank, down, start):
    """Line k with one more row behind it."""
    if out[k, COUNT] == 0:
        single(out, k, word, told)
        return
    on = goes_on(out[k, LAST], word, rank, down)
    whole = out[k, HEAD] == out[k, COUNT]
    out[k, COUNT] += 1
    out[k, LAST] = word
    if on:
        out[k, TAIL] += 1
        if not start:
            out[k, TAIL_TOLD] = told
        if whole:
            out[k, HEAD], out[k, HEAD_TOLD] = out[k, TAIL], out[k, TAIL_TOLD]
    else:
        out[k, TAIL], out[k, TAIL_TOLD] = 1, told
    if out[k, TAIL] > out[k, BEST]:
        out[k, BEST], out[k, BEST_TOLD] = out[k, TAIL], out[k, TAIL_TOLD]


def lines(n: int) -> np.ndarray:
    """int64[n, 9]: sequences of no rows."""
    return np.zeros((n, WIDTH), np.int64)
