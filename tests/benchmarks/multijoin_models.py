"""Algorithms 2 to 5 of Golab 2006, §5.2, as they are described: each partial result scans the next
window, or its bucket, anew.

A window is a FIFO queue for each bucket (one: nested loops), over arrays.  Algorithm 5 compares all
parts with each other, max ts < min exp: as printed it loses results.  Time is the number of the
tuple, from 0 on.
"""

from __future__ import annotations

import numpy as np
from numba import njit

EAGER, LAZY, RESTORE = range(3)
VALUE, TS, EXP = 0, 1, 2


@njit(cache=True, nogil=True)
def _expire(rows, head, tail, j, now):
    """Drop what has expired from each bucket of a window; how many tuples were looked at."""
    cap = rows.shape[2]
    for b in range(rows.shape[1]):
        while head[j, b] < tail[j, b] and rows[j, b, head[j, b] % cap, EXP] <= now:
            head[j, b] += 1


@njit(cache=True, nogil=True)
def _insert(rows, head, tail, j, value, ts, exp):
    cap = rows.shape[2]
    b = value % rows.shape[1]
    at = tail[j, b] % cap
    rows[j, b, at, VALUE], rows[j, b, at, TS], rows[j, b, at, EXP] = value, ts, exp
    tail[j, b] += 1


@njit(cache=True, nogil=True)
def _compute(rows, head, tail, order, i, value, group, alive_at, restore):
    """ComputeJoin, LazyComputeJoin and LazyRestoreComputeJoin: results of a group of new tuples of
    window i, (ts, exp) each.

    alive_at  a tuple counts if its exp is later
    restore   ... and a result if all its parts were alive at one time"""
    n, cap, b = len(order), rows.shape[2], value % rows.shape[1]
    levels = np.empty(n - 1, np.int64)
    k = 0
    for j in order:
        if j != i:
            levels[k] = j
            k += 1
    at = np.empty(n - 1, np.int64)
    born, dies = np.empty(n, np.int64), np.empty(n, np.int64)
    born[0], dies[0] = -1, np.iinfo(np.int64).max
    found, level = 0, 0
    at[0] = head[levels[0], b]
    while level >= 0:
        j = levels[level]
        if at[level] == tail[j, b]:
            level -= 1
            if level >= 0:
                at[level] += 1
            continue
        u = at[level] % cap
        if rows[j, b, u, VALUE] != value or rows[j, b, u, EXP] <= alive_at:
            at[level] += 1
            continue
        born[level + 1] = max(born[level], rows[j, b, u, TS])
        dies[level + 1] = min(dies[level], rows[j, b, u, EXP])
        if level < n - 2:
            level += 1
            at[level] = head[levels[level], b]
            continue
        for g in range(len(group)):
            if not restore or max(born[n - 1], group[g, 0]) < min(dies[n - 1], group[g, 1]):
                found += 1
        at[level] += 1
    return found


@njit(cache=True, nogil=True)
def join(stream, value, length, order, buckets, how, period, first):
    """Results that tuples `first` and later make.

    stream, value  of each tuple;  length: of each window, in tuples
    order    the global order;  buckets: of each window
    how      EAGER: Algorithm 2, or 3 if period > 0: expired tuples go every so often;  LAZY:
             Algorithm 4;  RESTORE: Algorithm 5
    period   re-evaluation, or expiration"""
    n, never = len(length), np.iinfo(np.int64).min
    cap = np.max(length) + period + 2
    rows = np.empty((n, buckets, cap, 3), np.int64)
    head, tail = np.zeros((n, buckets), np.int64), np.zeros((n, buckets), np.int64)
    group = np.empty((1, 2), np.int64)
    found, since = 0, 0
    for now in range(len(stream)):
        if how == EAGER:
            i = stream[now]
            _insert(rows, head, tail, i, value[now], now, now + length[i])
            if period == 0:
                for j in range(n):
                    if j != i:
                        _expire(rows, head, tail, j, now)
            elif now % period == 0:
                for j in range(n):
                    _expire(rows, head, tail, j, now)
            group[0, 0], group[0, 1] = now, now + length[i]
            alive_at = never if period == 0 else now
            made = _compute(rows, head, tail, order, i, value[now], group, alive_at, False)
            found += made if now >= first else 0
            continue
        if (now + 1) % period and now + 1 < len(stream):
            continue
        for i in range(n):
            new = np.flatnonzero(stream[since : now + 1] == i) + since
            if how == LAZY:
                new = new[new + length[i] > now]
            for k in new:
                _insert(rows, head, tail, i, value[k], k, k + length[i])
            new = new[np.argsort(value[new], kind="mergesort")]
            start = 0
            while start < len(new):
                stop = start + 1
                while stop < len(new) and value[new[stop]] == value[new[start]]:
                    stop += 1
                members = np.empty((stop - start, 2), np.int64)
                members[:, 0] = new[start:stop]
                members[:, 1] = members[:, 0] + length[i]
                alive_at = members[0, 0] if how == RESTORE else never
                key, restore = value[new[start]], how == RESTORE
                made = _compute(rows, head, tail, order, i, key, members, alive_at, restore)
                found += made if now >= first else 0
                start = stop
        for j in range(n):
            _expire(rows, head, tail, j, now + period if how == LAZY else now)
        since = now + 1
    return found


def tuples(
    rates: np.ndarray, values: np.ndarray, count: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Streams and values of so many tuples (§5.4.1): of stream i with probability λi / Σλ, values
    uniform."""
    rng = np.random.default_rng(seed)
    stream = rng.choice(len(rates), count, p=rates / rates.sum())
    return stream, rng.integers(0, values[stream])
