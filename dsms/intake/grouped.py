"""Frames of one stream that are applied as one: their rows joined, what became of them told frame
by frame.

Rows are judged one by one in the order they came, so a group answers as its frames would have, one
after the other.  Where that can't be told apart afterwards (a row is refused, a late one goes to
another stream) nothing is joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.api import IngestReport
from dsms.intake.convert import Converted, to_batch
from dsms.intake.judge import LATE, TOO_FAR, judge
from dsms.intake.stream import StreamInput
from dsms.sql.types import Schema

_PLAIN = {int, float, bool, str, bytes}


def joined(frames: Sequence[Converted]) -> Converted:
    """The rows of frames of which none has lost a row, one frame behind the other."""
    columns = tuple(
        pa.concat_arrays(parts) for parts in zip(*(f.columns for f in frames), strict=True)
    )
    return Converted(columns, sum(f.sent for f in frames))


def together(lists: Sequence[Sequence[Any]], schema: Schema) -> list[Converted] | None:
    """Lists of rows, each as `to_batch` would have it alone, at the price of one; None: not all of
    these rows are plain values of one kind a column, so each list has to be looked at by itself.
    """
    rows = [row for rows in lists for row in rows]
    width = len(schema)
    if not set(map(type, rows)) <= {list, tuple} or set(map(len, rows)) != {width}:
        return None
    for column in zip(*rows, strict=True):
        kinds = set(map(type, column)) - {type(None)}
        if len(kinds) > 1 or not kinds <= _PLAIN:
            return None
    whole = to_batch(rows, schema)
    if whole.kept is not None or whole.refusals:
        return None
    out, at = [], 0
    for one in lists:
        count = len(one)
        out.append(Converted(tuple(c.slice(at, count) for c in whole.columns), count))
        at += count
    return out


def foreseen(entry: StreamInput, columns: Sequence[pa.Array], sizes: Sequence[int]) -> list[int]:
    """How many rows of each frame will be late; the frames have `sizes` rows.

    Raises ValueError if some row would be refused, or go to another stream."""
    if not entry.event_time or not len(columns[0]):
        return [0] * len(sizes)
    late = _late(entry, columns)
    if late is None:
        return [0] * len(sizes)
    ends = np.cumsum(sizes)
    below = np.concatenate([[0], np.cumsum(late)])
    return (below[ends] - below[ends - np.asarray(sizes)]).tolist()


def _late(entry: StreamInput, columns: Sequence[pa.Array]) -> np.ndarray | None:
    """Which of these rows the stream would find late; None: none of them."""
    definition = entry.definition
    ts, _, refusals = entry.timestamps(columns[definition.timestamp or 0], None)
    if refusals:
        raise ValueError("a row has no usable timestamp")
    verdict, _ = judge(ts, entry.newest, entry.promised, entry.slack, definition.max_future)
    if verdict is None:
        return None
    if definition.late_into is not None or (verdict == TOO_FAR).any():
        raise ValueError("a row is too far ahead, or late and wanted elsewhere")
    late: np.ndarray = verdict == LATE
    return late


def reports(sizes: Sequence[int], late: Sequence[int]) -> list[IngestReport]:
    """What is told of each frame."""
    return [IngestReport(n - k, k) for n, k in zip(sizes, late, strict=True)]
