"""WINDOW_START() and WINDOW_END() of an answer, put into its columns when it is reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.plan.boundaries import window_start
from dsms.sql.logical import Stamp
from dsms.sql.types import MAX_INSTANT, MIN_INSTANT
from dsms.sql.window import Time


def stamped(cols: Sequence[Any], stamps: Sequence[Stamp], at: np.ndarray) -> list[Any]:
    """The columns, with what `stamps` say of the boundary of each row: `at`, int64[n].  NULL where
    that is no TIMESTAMP."""
    out = list(cols)
    for stamp in stamps:
        bounds, where = np.unique(at, return_inverse=True)
        found = np.array([_instant(stamp, int(b)) for b in bounds], np.int64)[where]
        unknown = (found < MIN_INSTANT) | (found > MAX_INSTANT)
        out[stamp.column] = pa.array(found, pa.int64(), mask=unknown).cast(cols[stamp.column].type)
    return out


def _instant(stamp: Stamp, boundary: int) -> int:
    """Where the window of a boundary begins, or ends."""
    window = stamp.window
    if stamp.end:
        return boundary - (0 if window is None else window.until)
    assert window is not None
    return window_start(window, boundary) if isinstance(window, Time) else window.since
