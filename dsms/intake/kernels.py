"""Compiled loops of intake; apart, so that nothing else here loads Numba."""

from __future__ import annotations

import numpy as np
from numba import njit

from dsms.sql.types import ALWAYS


@njit(cache=True, nogil=True)
def walk(ts: np.ndarray, newest: int, promised: int, slack: int, future: int, verdict: np.ndarray) -> int:
    """Fill `verdict` (0 accepted, 1 late, 2 too far: see judge.py) and return the newest accepted timestamp."""
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
