"""Shannon's entropy from counters: log2 n - (Σ c log2 c) / n over the counts c of n values.

Error    each term is rounded once; they are added exactly (`limbs`), so a count that comes and goes
         leaves nothing, and the order of events makes no difference.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts.coded import floats
from dsms.aggregates.parts.limbs import SPACE, add, mean, nearest

BASE = -64  # the lowest limb counts 2^BASE: terms are 0, or 2 and more
LIMBS = 6


@njit(cache=True, nogil=True)
def add_term(acc, g, count, sign):
    """acc[g] += sign * count * log2(count), for count >= 0."""
    if count > 1:
        share, e = math.frexp(float(count) * math.log2(float(count)))
        add(acc, g, e - 53 - BASE, int(math.ldexp(share, 53)), sign)


@njit(cache=True, nogil=True)
def bits(acc, g, n, different):
    """The entropy of n > 0 values, of which so many are different."""
    if different < 2:
        return 0.0
    if n < 0x7FFFFFFF:
        terms = nearest(acc, g, BASE, n)
    else:
        room = np.zeros(LIMBS + 1 + SPACE, np.int64)
        terms = mean(acc, g, BASE, n, np.zeros(0, np.int64), room)
    return max(0.0, math.log2(float(n)) - terms)


@njit(cache=True, nogil=True)
def _entropies(starts, before, out, valid):
    acc = np.zeros((1, LIMBS), np.int64)
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        valid[g] = high > low
        if high > low:
            acc[:] = 0
            for i in range(low, high):
                add_term(acc, 0, before[i + 1] - before[i], 1)
            out[g] = bits(acc, 0, before[high] - before[low], high - low)


def entropies(starts: np.ndarray, before: np.ndarray) -> pa.Array:
    """Of cells of counters (`counters.Tally`)."""
    cells = len(starts) - 1
    out, valid = np.zeros(cells), np.zeros(cells, np.bool_)
    _entropies(starts, before, out, valid)
    return floats(out, valid)
