"""Converted rows of a frame, piece by piece: put together, and cut into slices of work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from dsms.intake.convert import Converted, Refusal, to_batch
from dsms.sql.types import Schema


def join(pieces: list[Converted], schema: Schema) -> Converted:
    """One Converted of pieces that follow each other in a frame."""
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return to_batch([], schema)
    starts = np.cumsum([0, *(p.sent for p in pieces)]).tolist()
    arrays = [pa.concat_arrays([p.columns[i] for p in pieces]) for i in range(len(schema))]
    refusals: dict[str, Refusal] = {}
    for start, piece in zip(starts, pieces, strict=False):
        for found in piece.refusals:
            known = refusals.get(found.reason)
            moved = known or replace(found, first=start + found.first)
            refusals[found.reason] = replace(
                moved, count=found.count + (known.count if known else 0)
            )
    if not refusals:
        return Converted(tuple(arrays), starts[-1])
    kept = [
        start + (np.arange(piece.sent, dtype=np.int64) if piece.kept is None else piece.kept)
        for start, piece in zip(starts, pieces, strict=False)
    ]
    return Converted(tuple(arrays), starts[-1], np.concatenate(kept), tuple(refusals.values()))


def part(rows: Converted, first: int, size: int) -> Converted:
    """Rows `first` to `first` + `size`, which know their places in the frame; the first part tells
    the refusals."""
    if first == 0 and size >= len(rows):
        return rows
    count = min(size, len(rows) - first)
    kept = (
        np.arange(first, first + count) if rows.kept is None else rows.kept[first : first + count]
    )
    columns = tuple(c.slice(first, count) for c in rows.columns)
    return Converted(columns, count, kept, () if first else rows.refusals)
