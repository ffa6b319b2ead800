"""Kernels of joins that let go of rows: how often keys have come lately, what rows are worth, and
when too much is held."""

from __future__ import annotations

import numpy as np
from numba import njit

PLACES = 1 << 12  # of a row of counters
ONE = 1 << 20  # what an arrival adds: the counters are halved many times before it is nothing
UNSEEN = ONE >> 3  # the rate of keys that have not come: of them, too, those that live longer stay
NEVER = np.iinfo(np.int64).max


@njit(cache=True, nogil=True)
def count(counters, side, keys, ok):
    """Rows of a side have come: counters[side, 0 or 1, place], int64, by two parts of the hash of
    the key (Cormode and Muthukrishnan 2005, the count-min sketch)."""
    for i in range(len(keys)):
        if ok[i]:
            key = np.uint64(keys[i])
            counters[side, 0, np.int64(key % np.uint64(PLACES))] += ONE
            counters[side, 1, np.int64((key >> np.uint64(32)) % np.uint64(PLACES))] += ONE


@njit(cache=True, nogil=True)
def worth(counters, side, keys, ok, exp, now):
    """float64[n]: of each row of a side the rates at which its key comes on all others, multiplied,
    times what remains of its life; 0 of rows whose key is NULL."""
    out = np.zeros(len(keys), np.float64)
    for i in range(len(keys)):
        if ok[i]:
            key = np.uint64(keys[i])
            a = np.int64(key % np.uint64(PLACES))
            b = np.int64((key >> np.uint64(32)) % np.uint64(PLACES))
            found = np.float64(exp[i]) - np.float64(now)
            for other in range(len(counters)):
                if other != side:
                    rate = min(counters[other, 0, a], counters[other, 1, b])
                    found *= np.float64(rate + UNSEEN)
            out[i] = found
    return out


@njit(cache=True, nogil=True)
def first_over(held, ts, size, exp, exp_size, most):
    """(the first instant behind which more than `most` bytes are alive, or NEVER; the bytes that
    are alive behind it, or behind the last instant).

    held  bytes of the rows that are there.  Others come at `ts`, ascending; all leave at `exp`,
    ascending"""
    i = j = 0
    while i < len(ts):
        now = ts[i]
        while i < len(ts) and ts[i] == now:
            held += size[i]
            i += 1
        while j < len(exp) and exp[j] <= now:
            held -= exp_size[j]
            j += 1
        if held > most:
            return now, held
    return NEVER, held
