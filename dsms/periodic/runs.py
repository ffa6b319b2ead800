"""Rows of several boundaries that are reported in one go."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np


def runs(reported_at: np.ndarray, span: np.ndarray) -> Iterator[tuple[int, int, int | None]]:
    """Rows first to end that can be reported together, and a boundary without rows just before
    them, if there is one.

    Boundaries of one instant (a SLIDE in rows) must not run together."""
    if not len(span):
        return
    before = np.concatenate([[-1], span[:-1]])
    cut = (span - before > 1) | (
        (span > before) & (before >= 0) & (reported_at[span] == reported_at[before])
    )
    cut[0] = True
    for first, end in pairwise([*np.flatnonzero(cut).tolist(), len(span)]):
        yield (
            first,
            end,
            int(reported_at[span[first] - 1]) if span[first] - before[first] > 1 else None,
        )
