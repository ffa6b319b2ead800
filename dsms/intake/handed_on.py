"""Late rows of one stream on their way to another (LATE INTO), where users own the two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dsms.intake.judge import TOO_FAR, judge
from dsms.intake.stream import StreamInput


def not_too_far(entry: StreamInput, columns: Sequence[pa.Array]) -> tuple[pa.Array, ...]:
    """Of late rows of another stream those that MAX FUTURE lets into this one."""
    cols, future = tuple(columns), entry.definition.max_future
    if not entry.event_time or future is None:
        return cols
    ts, usable, _ = entry.timestamps(cols[entry.definition.timestamp or 0], None)
    if usable is not None:
        cols, ts = _taken(cols, usable), ts[usable]
    verdict, _ = judge(ts, entry.newest, entry.promised, entry.slack, future)
    return cols if verdict is None else _taken(cols, np.flatnonzero(verdict != TOO_FAR))


def _taken(cols: tuple[pa.Array, ...], rows: np.ndarray) -> tuple[pa.Array, ...]:
    return tuple(c.take(pa.array(rows)) for c in cols)
