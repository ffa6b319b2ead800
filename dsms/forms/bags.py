"""Rows as a bag: each distinct row, and how often it is there.

Equal are values as in GROUP BY: NULL is like NULL, NaN like NaN, -0.0 like 0.0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.lists import from_edge


def summed(
    columns: Sequence[pa.Array | pa.ChunkedArray], counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of each distinct row: where it is first, and its counts (int64[n]) summed up.

    Rows are hashed by Arrow: O(n), whatever their values."""
    if not columns:
        return np.zeros(min(len(counts), 1), np.int64), np.array([counts.sum()])[: len(counts)]
    keys = {f"k{i}": _key(column) for i, column in enumerate(columns)}
    keys |= {"times": pa.array(counts), "place": pa.array(np.arange(len(counts)))}
    grouped = pa.table(keys).group_by(list(keys)[:-2], use_threads=False)
    found = grouped.aggregate([("times", "sum"), ("place", "min")])
    return found.column("place_min").to_numpy(), found.column("times_sum").to_numpy()


def net(
    columns: Sequence[pa.Array | pa.ChunkedArray], signs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What rows that enter (sign 1) and leave (-1) come to: which of them are left to tell, those
    that leave first, and their signs (int8)."""
    where, counts = summed(columns, signs.astype(np.int64))
    order = np.lexsort((where, counts > 0))
    where, counts = where[order], counts[order]
    times = np.abs(counts)
    return np.repeat(where, times), np.repeat(np.sign(counts), times).astype(np.int8)


def _key(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Equal where values are."""
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), float("nan"), pc.add(column, 0.0))
    if pa.types.is_temporal(column.type):
        return column.cast(pa.int64())
    if pa.types.is_list(column.type):  # Arrow groups by none: by their texts
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return from_edge(whole)
    return column
