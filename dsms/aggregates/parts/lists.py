"""Sorted lists of (word, count), cut out of two arrays: kernels that make, merge, subtract and
search them.

`before` int64[m + 1] is how many values stand before each entry, all lists taken together; so the
count of entry i is before[i + 1] - before[i], and that of a stretch takes one subtraction.  Lists
merge in pairs, so a union of p lists of q entries in all costs O(q log p).
"""

from __future__ import annotations

import numpy as np
from numba import njit

LONG = 4096  # values that NumPy sorts faster than a kernel


@njit(cache=True, nogil=True)
def _dealt(cell, words, valid, place, out):
    """Words in the order of their cells; `place` is where each cell's begin."""
    for i in range(len(cell)):
        if len(valid) == 0 or valid[i]:
            out[place[cell[i]]] = words[i]
            place[cell[i]] += 1


@njit(cache=True, nogil=True)
def _counted(starts, words, long, out_starts, before):
    """Each cell's words sorted (unless more than `long`: they are) and counted, in place; how many
    entries that is."""
    m = 0
    for g in range(len(starts) - 1):
        out_starts[g] = m
        if starts[g + 1] - starts[g] <= long:
            words[starts[g] : starts[g + 1]].sort()
        for i in range(starts[g], starts[g + 1]):
            if i == starts[g] or words[i] != words[m - 1]:
                words[m] = words[i]
                before[m + 1] = before[m]
                m += 1
            before[m] += 1
    out_starts[len(starts) - 1] = m
    return m


def tallied(
    cell: np.ndarray, words: np.ndarray, valid: np.ndarray, cells: int
) -> tuple[np.ndarray, ...]:
    """(starts int64[cells + 1], words, before): how often each word occurs in each cell."""
    counted = cell[valid] if len(valid) else cell
    starts = np.concatenate([[0], np.cumsum(np.bincount(counted, minlength=cells))])
    out = np.empty(int(starts[-1]), np.int64)
    _dealt(cell, words, valid, starts[:-1].copy(), out)
    for g in np.flatnonzero(np.diff(starts) > LONG).tolist():
        out[starts[g] : starts[g + 1]].sort()
    new, before = np.empty(cells + 1, np.int64), np.zeros(len(out) + 1, np.int64)
    m = _counted(starts, out, LONG, new, before)
    return new, out[:m].copy(), before[: m + 1].copy()


@njit(cache=True, nogil=True)
def _merged(words, counts, a, end_a, b, end_b, out_words, out_counts, at):
    """Two sorted stretches as one from `at` on; where it ends."""
    while a < end_a or b < end_b:
        if b == end_b or (a < end_a and words[a] < words[b]):
            out_words[at], out_counts[at] = words[a], counts[a]
            a += 1
        elif a == end_a or words[b] < words[a]:
            out_words[at], out_counts[at] = words[b], counts[b]
            b += 1
        else:
            out_words[at], out_counts[at] = words[a], counts[a] + counts[b]
            a += 1
            b += 1
        at += 1
    return at


@njit(cache=True, nogil=True)
def _union(words, before, low, high, starts, most, widest, out_starts, out_words, out_before):
    """Cell t is the union of lists low[r] .. high[r] for starts[t] <= r < starts[t + 1]; answers
    the entries made.

    most      lists of a cell;  widest: entries of a cell's lists, at most"""
    here, there = np.empty(widest, np.int64), np.empty(widest, np.int64)
    n_here, n_there = np.empty(widest, np.int64), np.empty(widest, np.int64)
    cuts = np.empty(most + 1, np.int64)
    m = 0
    for t in range(len(starts) - 1):
        out_starts[t] = m
        lists, n = 0, 0
        cuts[0] = 0
        for r in range(starts[t], starts[t + 1]):
            if low[r] == high[r]:
                continue
            for i in range(low[r], high[r]):
                here[n], n_here[n] = words[i], before[i + 1] - before[i]
                n += 1
            lists += 1
            cuts[lists] = n
        while lists > 1:
            n = 0
            for k in range(0, lists, 2):
                a, end_a = cuts[k], cuts[k + 1]
                end_b = cuts[k + 2] if k + 2 <= lists else end_a
                cuts[k // 2] = n
                n = _merged(here, n_here, a, end_a, end_a, end_b, there, n_there, n)
            lists = (lists + 1) // 2
            cuts[lists] = n
            here, there = there, here
            n_here, n_there = n_there, n_here
        for i in range(n):
            out_words[m] = here[i]
            out_before[m + 1] = out_before[m] + n_here[i]
            m += 1
    out_starts[len(starts) - 1] = m
    return m


def union(
    words: np.ndarray, before: np.ndarray, low: np.ndarray, high: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, ...]:
    """(starts, words, before) of cells that are unions of lists: cell t of those from starts[t] to
    starts[t + 1]."""
    ends = np.concatenate([[0], np.cumsum(high - low)])
    cells, total = len(starts) - 1, int(ends[-1])
    widest = int(np.diff(ends[starts]).max(initial=0))
    new, out, out_before = (
        np.empty(cells + 1, np.int64),
        np.empty(total, np.int64),
        np.zeros(total + 1, np.int64),
    )
    most = int(np.diff(starts).max(initial=0))
    m = _union(words, before, low, high, starts, most, widest, new, out, out_before)
    return (
        (new, out, out_before) if m == total else (new, out[:m].copy(), out_before[: m + 1].copy())
    )


@njit(cache=True, nogil=True)
def less(
    starts, words, before, part_starts, part_words, part_before, out_starts, out_words, out_before
):
    """Cell by cell the counts without those of a part; answers the entries that are left."""
    m = 0
    for g in range(len(starts) - 1):
        out_starts[g] = m
        b, end = part_starts[g], part_starts[g + 1]
        for a in range(starts[g], starts[g + 1]):
            n = before[a + 1] - before[a]
            while b < end and part_words[b] < words[a]:
                b += 1
            if b < end and part_words[b] == words[a]:
                n -= part_before[b + 1] - part_before[b]
            if n != 0:
                out_words[m] = words[a]
                out_before[m + 1] = out_before[m] + n
                m += 1
    out_starts[len(starts) - 1] = m
    return m


def gathered(
    words: np.ndarray, before: np.ndarray, place: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(words, before) of the entries at those places."""
    new = np.zeros(len(place) + 1, np.int64)
    np.cumsum(before[place + 1] - before[place], out=new[1:])
    return words[place], new


# ---------------------------------------------------------------- by rank


@njit(cache=True, nogil=True)
def _bound(words, a, b, w):
    """The first of words[a:b], sorted, that is not below w."""
    while a < b:
        mid = (a + b) >> 1
        if words[mid] < w:
            a = mid + 1
        else:
            b = mid
    return a


@njit(cache=True, nogil=True)
def kth(words, before, low, high, k, mids, sizes):
    """The k-th value (from 0) of sorted lists low[r] .. high[r], which are narrowed down on the
    way.

    The middles of what is left of the lists vote for a pivot, each with as many votes as its list
    has entries; so at least a quarter of all entries goes with every round (Arasu and Widom 2004,
    §3.3)."""
    while True:
        n, total = 0, 0
        for r in range(len(low)):
            size = high[r] - low[r]
            if size <= 0:
                continue
            w, i = words[(low[r] + high[r]) >> 1], n
            while i > 0 and mids[i - 1] > w:
                mids[i], sizes[i] = mids[i - 1], sizes[i - 1]
                i -= 1
            mids[i], sizes[i] = w, size
            n += 1
            total += size
        votes, i = sizes[0], 0
        while 2 * votes < total:
            i += 1
            votes += sizes[i]
        pivot = mids[i]
        under, upto = 0, 0
        for r in range(len(low)):
            if low[r] >= high[r]:
                continue
            at = _bound(words, low[r], high[r], pivot)
            under += before[at] - before[low[r]]
            upto += before[at] - before[low[r]]
            if at < high[r] and words[at] == pivot:
                upto += before[at + 1] - before[at]
        if under <= k < upto:
            return pivot
        for r in range(len(low)):
            if low[r] >= high[r]:
                continue
            at = _bound(words, low[r], high[r], pivot)
            if k < under:
                high[r] = at
            else:
                low[r] = at + 1 if at < high[r] and words[at] == pivot else at
        if k >= upto:
            k -= upto


@njit(cache=True, nogil=True)
def following(words, before, low, high, k, w):
    """The value after w, which is the k-th."""
    upto, found, best = 0, False, w
    for r in range(len(low)):
        at = _bound(words, low[r], high[r], w)
        if at < high[r] and words[at] == w:
            at += 1
        upto += before[at] - before[low[r]]
        if at < high[r] and (not found or words[at] < best):
            found, best = True, words[at]
    return w if k + 1 < upto or not found else best
