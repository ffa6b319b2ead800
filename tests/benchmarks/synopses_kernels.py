"""Synopses of 004 tuple by tuple, as the paper has them: Numba loops over one array of inputs.

An input is -1 (the next value of the stream arrives) or N (look the aggregate of the last N values
up).  All contenders for Fig 9 have the same shape: `run(values, inputs)` answers a checksum over
all look-ups; the first FILL values are there before the first input.  Sums are of 64-bit integers,
so answers must be equal.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dsms.aggregates.parts.lists import kth
from dsms.synopses.landmark import clusters

LONGEST = 999  # values of the longest window
FILL = 2048
RING = 1024  # a power of two above LONGEST
LEVELS = 10  # of base intervals in RING
GAMMAS = np.array(clusters(range(1, LONGEST + 1)), np.int64)


@njit(cache=True)
def _add_to_checksum(checksum, answer):
    return checksum * 31 + answer


@njit(cache=True)
def running(values, inputs):
    """R-INT: a ring of running sums."""
    prefix = np.zeros(RING, np.int64)
    m, checksum = 0, 0
    for _ in range(FILL):
        prefix[(m + 1) & (RING - 1)] = prefix[m & (RING - 1)] + values[m]
        m += 1
    for op in inputs:
        if op < 0:
            prefix[(m + 1) & (RING - 1)] = prefix[m & (RING - 1)] + values[m]
            m += 1
        else:
            checksum = _add_to_checksum(
                checksum, prefix[m & (RING - 1)] - prefix[(m - op) & (RING - 1)]
            )
    return checksum


@njit(cache=True)
def _add_base(base, i, v):
    """Value number i arrives: base[l] is the ring of level l."""
    base[0, i & (RING - 1)] = v
    level = 0
    while i & 1 and level + 1 < LEVELS:
        mask = (RING >> level) - 1
        both = base[level, (i - 1) & mask] + base[level, i & mask]
        i >>= 1
        level += 1
        base[level, i & (mask >> 1)] = both


@njit(cache=True)
def interval(values, inputs):
    """B-INT: a ring of base intervals a level."""
    base = np.zeros((LEVELS, RING), np.int64)
    m, checksum = 0, 0
    for _ in range(FILL):
        _add_base(base, m, values[m])
        m += 1
    for op in inputs:
        if op < 0:
            _add_base(base, m, values[m])
            m += 1
            continue
        a, b, mask, level, total = m - op, m, RING - 1, 0, 0
        while a < b:  # an odd end takes a base interval of this level; nothing here to predict
            total += -(a & 1) & base[level, a & mask]
            total += -(b & 1) & base[level, (b - 1) & mask]
            a, b, mask, level = (a + 1) >> 1, b >> 1, mask >> 1, level + 1
        checksum = _add_to_checksum(checksum, total)
    return checksum


@njit(cache=True)
def _add_landmarks(values, m, gammas, behind, before, phase, turn):
    """Value number m arrives.  behind[g] is a ring of sums since the last landmark, before[g, turn]
    those that end at a landmark; phase[g] counts from the last one, turn[g] is which of three it
    is."""
    v = values[m]
    for g in range(len(gammas)):
        old = behind[g, (m - 1) & (RING - 1)] if phase[g] else 0
        behind[g, m & (RING - 1)] = old + v
        phase[g] += 1
        if phase[g] == gammas[g, 0]:
            phase[g] = 0
            turn[g] = 0 if turn[g] == 2 else turn[g] + 1
            total = 0
            row = before[g, turn[g]]
            for d in range(min(gammas[g, 1], m + 1)):
                total += values[m - d]
                row[d] = total


@njit(cache=True)
def landmark(values, inputs, gammas):
    """L-INT: a gamma group for every doubling of the width, since the windows are of all widths."""
    n = len(gammas)
    behind, before = np.zeros((n, RING), np.int64), np.zeros((n, 3, RING), np.int64)
    phase, turn = np.zeros(n, np.int64), np.zeros(n, np.int64)
    group = np.zeros(LONGEST + 1, np.int64)
    for g in range(n):
        group[gammas[g, 0] : gammas[g, 1] + 1] = g
    m, checksum = 0, 0
    for _ in range(FILL):
        _add_landmarks(values, m, gammas, behind, before, phase, turn)
        m += 1
    for op in inputs:
        if op < 0:
            _add_landmarks(values, m, gammas, behind, before, phase, turn)
            m += 1
            continue
        if op == 0:
            checksum = _add_to_checksum(checksum, 0)
            continue
        g = group[op]
        after, which = phase[g], turn[g]  # values since the last landmark
        if after == 0:  # it has come with the newest value: that before it counts
            checksum = _add_to_checksum(checksum, before[g, which, op - 1])
            continue
        total = behind[g, (m - 1) & (RING - 1)]
        if op > after:
            total += before[g, which, op - after - 1]
        checksum = _add_to_checksum(checksum, total)
    return checksum


@njit(cache=True)
def _keep(window, m, v):
    """Value number m into a ring that is there twice, so that every window lies in one piece."""
    window[m & (RING - 1)] = v
    window[RING + (m & (RING - 1))] = v


@njit(cache=True)
def materialize_all(values, inputs):
    """Every operator's answer is kept up to date."""
    answer, window = np.zeros(LONGEST + 1, np.int64), np.zeros(2 * RING, np.int64)
    m, checksum = FILL, 0
    for k in range(FILL):
        _keep(window, k, values[k])
    for n in range(LONGEST + 1):
        for i in range(m - n, m):
            answer[n] += values[i]
    for op in inputs:
        if op < 0:
            v, end = values[m], RING + (m & (RING - 1))
            for n in range(1, LONGEST + 1):
                answer[n] += v - window[end - n]
            _keep(window, m, v)
            m += 1
        else:
            checksum = _add_to_checksum(checksum, answer[op])
    return checksum


@njit(cache=True)
def materialize_none(values, inputs):
    """Values are kept, and added up when asked for."""
    window = np.zeros(2 * RING, np.int64)
    m, checksum = FILL, 0
    for k in range(FILL):
        _keep(window, k, values[k])
    for op in inputs:
        if op < 0:
            _keep(window, m, values[m])
            m += 1
        else:
            total, end = 0, RING + (m & (RING - 1))
            for i in range(end - op, end):
                total += window[i]
            checksum = _add_to_checksum(checksum, total)
    return checksum


# ---------------------------------------------------------------- Figs 10 and 11: any longest
# window


@njit(cache=True)
def running_updates(values, ring):
    """R-INT for SUM; `ring` int64[a power of two]."""
    mask = len(ring) - 1
    for m in range(len(values)):
        ring[(m + 1) & mask] = ring[m & mask] + values[m]


@njit(cache=True)
def running_lookups(ring, low, high):
    mask, checksum = len(ring) - 1, 0
    for k in range(len(low)):
        checksum = _add_to_checksum(checksum, ring[high[k] & mask] - ring[low[k] & mask])
    return checksum


@njit(cache=True)
def interval_updates(values, base):
    """B-INT for MAX of values from 0 upwards; base int64[levels, ring]."""
    levels, size = base.shape
    for m in range(len(values)):
        i, level, mask = m, 0, size - 1
        base[0, i & mask] = values[m]
        while i & 1 and level + 1 < levels:
            both = max(base[level, (i - 1) & mask], base[level, i & mask])
            i, level, mask = i >> 1, level + 1, mask >> 1
            base[level, i & mask] = both


@njit(cache=True)
def interval_lookups(base, low, high):
    checksum = 0
    for k in range(len(low)):
        a, b, mask, level = low[k], high[k], base.shape[1] - 1, 0
        best = np.int64(-1)
        while a < b:
            best = max(best, base[level, a & mask] | ((a & 1) - 1))  # where the end is even: -1
            best = max(best, base[level, (b - 1) & mask] | ((b & 1) - 1))
            a, b, mask, level = (a + 1) >> 1, b >> 1, mask >> 1, level + 1
        checksum = _add_to_checksum(checksum, best)
    return checksum


@njit(cache=True)
def quantile_updates(values, base):
    """B-INT-QNT: base[l] is a ring of sorted arrays of 2^l values."""
    levels, size = base.shape
    mask = size - 1
    for m in range(len(values)):
        base[0, m & mask] = values[m]
        level, long = 0, 1
        while (m + 1) & ((long << 1) - 1) == 0 and level + 1 < levels:
            out = (m + 1 - 2 * long) & mask
            a, b = out, (m + 1 - long) & mask
            end_a, end_b = a + long, b + long
            for k in range(out, out + 2 * long):
                if b == end_b or (a < end_a and base[level, a] <= base[level, b]):
                    base[level + 1, k] = base[level, a]
                    a += 1
                else:
                    base[level + 1, k] = base[level, b]
                    b += 1
            level, long = level + 1, long << 1


@njit(cache=True)
def quantile_lookups(base, before, low, high, share):
    """The value at `share` of each span; `before` int64[levels * ring + 1] counts 0, 1, 2, ..."""
    levels, size = base.shape
    flat, mask = base.ravel(), size - 1
    lows, highs = np.empty(2 * levels, np.int64), np.empty(2 * levels, np.int64)
    mids, sizes = np.empty(2 * levels, np.int64), np.empty(2 * levels, np.int64)
    checksum = 0
    for k in range(len(low)):
        a, b, n = low[k], high[k], 0
        while a < b:
            level = 0
            while level + 1 < levels and (a >> level) & 1 == 0 and a + (2 << level) <= b:
                level += 1
            lows[n] = level * size + (a & mask)
            highs[n] = lows[n] + (1 << level)
            a += 1 << level
            n += 1
        place = max(0, np.int64(np.ceil(share * (high[k] - low[k]))) - 1)
        checksum = _add_to_checksum(
            checksum, kth(flat, before, lows[:n], highs[:n], place, mids, sizes)
        )
    return checksum
