"""Which rows of a frame are too late and which jump too far ahead, row by row in the order they
came.

Row i with timestamp t is, against the rows accepted before it,
  late     if t <= max(promised, newest accepted - slack - 1)
  too far  if t > max(promised, newest accepted) + future; the very first row is free
A refused row moves nothing.  Without refusals a late row lies below the running maximum or the
promise, so the maximum over all rows serves and NumPy does it; with refusals the rule feeds on
itself and a kernel walks the rows.
"""

from __future__ import annotations

import numpy as np

from dsms.sql.types import ALWAYS

ACCEPTED, LATE, TOO_FAR = 0, 1, 2
_WIDE = 2**61  # longer than all years together; sums of two stay within int64


def judge(
    ts: np.ndarray, newest: int, promised: int, slack: int, future: int | None
) -> tuple[np.ndarray | None, int]:
    """Verdicts (int8 per row; None: all accepted) and the newest accepted timestamp afterwards.

    `ts`: at least one instant within the years 0001-9999.  `newest`, `promised`: ALWAYS while there
    is none.
    """
    slack = min(slack, _WIDE)
    known = max(newest, promised)
    start = max(newest, -_WIDE)
    if _rises(ts) and ts[0] > promised and ts[0] >= start - slack and not _jumps(ts, known, future):
        return None, max(newest, int(ts[-1]))
    before = np.empty_like(ts)
    before[0] = start
    np.maximum.accumulate(ts[:-1], out=before[1:])
    np.maximum(before, start, out=before)
    if future is not None and _leaps(ts, before, known, min(future, _WIDE)):
        return _walked(ts, newest, promised, slack, min(future, _WIDE))
    late = (ts < before - slack) | (ts <= promised)
    if not late.any():
        return None, int(ts.max(initial=newest))
    return late.astype(np.int8), int(ts[~late].max(initial=newest))


def open_at(ts: np.ndarray, newest: int, promised: int, slack: int) -> np.ndarray:
    """For each row the earliest instant from its timestamp on at which it is not late (arguments as
    for `judge`)."""
    before = np.maximum.accumulate(np.concatenate([[max(newest, -_WIDE)], ts[:-1]]))
    return np.maximum(np.maximum(ts, before - min(slack, _WIDE)), promised + 1)


def _rises(ts: np.ndarray) -> bool:
    return bool((ts[1:] >= ts[:-1]).all())


def _jumps(ts: np.ndarray, known: int, future: int | None) -> bool:
    """Rising timestamps: whether some step is wider than `future`."""
    if future is None:
        return False
    first = known != ALWAYS and int(ts[0]) - known > future
    return first or bool((ts[1:] - ts[:-1]).max(initial=0) > future)


def _leaps(ts: np.ndarray, before: np.ndarray, known: int, future: int) -> bool:
    far = ts - future > np.maximum(before, known)
    if known == ALWAYS:
        far[0] = False
    return bool(far.any())


def _walked(
    ts: np.ndarray, newest: int, promised: int, slack: int, future: int
) -> tuple[np.ndarray, int]:
    from dsms.intake.kernels import walk

    verdict = np.zeros(len(ts), np.int8)
    return verdict, int(walk(ts, newest, promised, slack, future, verdict))
