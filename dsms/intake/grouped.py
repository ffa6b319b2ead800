"""Frames of one stream that are applied as one: their rows joined, what became of them told frame
by frame.

Rows are judged one by one in the order they came, so a group answers as its frames would have, one
after the other.  Where that can't be told apart afterwards (a row is refused, a late one goes to
another stream) nothing is joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.api import IngestReport
from dsms.intake import packed
from dsms.intake.convert import Converted, to_batch
from dsms.intake.judge import LATE, TOO_FAR, judge
from dsms.intake.stream import StreamInput
from dsms.sql.types import Schema

_ARRAY = b"\xdd"  # msgpack's, followed by 4 bytes that say how long it is
_PLAIN = {int, float, bool, str, bytes}


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows `first` to `first` + `sent` of those that were converted with them, none refused."""

    whole: Converted
    first: int
    sent: int

    def __len__(self) -> int:
        return self.sent

    @property
    def alone(self) -> Converted:
        """These rows without the others."""
        columns = tuple(c.slice(self.first, self.sent) for c in self.whole.columns)
        return Converted(columns, self.sent)


def joined(frames: Sequence[Converted | Cut]) -> Converted:
    """The rows of frames of which none has lost a row, one frame behind the other."""
    parts: list[Converted] = []
    run: list[Cut] = []
    for frame in frames:
        if isinstance(frame, Cut):
            if run and not _follows(run[-1], frame):
                parts.append(_over(run))
                run = []
            run.append(frame)
        else:
            parts += [_over(run)] if run else []
            parts.append(frame)
            run = []
    parts += [_over(run)] if run else []
    if len(parts) == 1:
        return parts[0]
    columns = tuple(pa.concat_arrays(c) for c in zip(*(p.columns for p in parts), strict=True))
    return Converted(columns, sum(p.sent for p in parts))


def _follows(one: Cut, other: Cut) -> bool:
    return one.whole is other.whole and one.first + one.sent == other.first


def _over(run: list[Cut]) -> Converted:
    """Rows that follow each other."""
    first, last = run[0], run[-1]
    return Cut(first.whole, first.first, last.first + last.sent - first.first).alone


def together(lists: Sequence[Sequence[Any]], schema: Schema) -> list[Cut] | None:
    """Lists of rows, each as `to_batch` would have it alone, at the price of one; None: not all of
    these rows are plain values of one kind a column, so each list has to be looked at by itself.
    """
    rows = [row for rows in lists for row in rows]
    width = len(schema)
    if not rows or not set(map(type, rows)) <= {list, tuple} or set(map(len, rows)) != {width}:
        return None
    for column in zip(*rows, strict=True):
        kinds = set(map(type, column)) - {type(None)}
        if len(kinds) > 1 or not kinds <= _PLAIN:
            return None
    whole = to_batch(rows, schema)
    if whole.kept is not None or whole.refusals:
        return None
    return _cut(whole, [len(one) for one in lists])


def packed_together(arrays: Sequence[memoryview], schema: Schema) -> list[Cut] | None:
    """As `together`, for msgpack arrays of rows."""
    heads = [packed.header(one) for one in arrays]
    count = sum(rows for rows, _ in heads)
    pieces = [one[at:] for one, (_, at) in zip(arrays, heads, strict=True)]
    found = packed.unpack(memoryview(b"".join((_ARRAY, count.to_bytes(4), *pieces))), schema)
    if found is None or found[0].kept is not None or found[0].refusals:
        return None
    return _cut(found[0], [rows for rows, _ in heads])


def _cut(whole: Converted, sizes: Sequence[int]) -> list[Cut]:
    ends = accumulate(sizes)
    return [Cut(whole, end - size, size) for end, size in zip(ends, sizes, strict=True)]


def foreseen(entry: StreamInput, columns: Sequence[pa.Array], sizes: Sequence[int]) -> list[int]:
    """How many rows of each frame will be late; the frames have `sizes` rows.

    Raises ValueError if some row would be refused, or go to another stream."""
    if entry.would_contradict(columns) is not None:
        raise ValueError("a row contradicts a punctuation")
    if entry.fed_by or not entry.event_time or not len(columns[0]):
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
