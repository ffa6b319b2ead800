"""Lists of slots, one per group, linked both ways: a row goes to the end and may leave from anywhere in O(1)."""

from __future__ import annotations

import numpy as np
from numba import njit

NIL = -1


@njit(cache=True, nogil=True)
def append(s, g, head, tail, before, after):
    before[s], after[s] = tail[g], NIL
    if tail[g] >= 0:
        after[tail[g]] = s
    else:
        head[g] = s
    tail[g] = s


@njit(cache=True, nogil=True)
def remove(s, g, head, tail, before, after):
    a, b = before[s], after[s]
    if a >= 0:
        after[a] = b
    else:
        head[g] = b
    if b >= 0:
        before[b] = a
    else:
        tail[g] = a


def renamed(slots: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The slots under their new numbers; -1 stays -1."""
    return np.where(slots >= 0, where[slots], NIL)
