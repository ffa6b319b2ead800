"""The rows of a table that UPDATE and DELETE concern, found and computed in pieces."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from dsms.sql.types import FOREVER
from dsms.state.vec import Vec
from dsms.tables.changes import Matched

# (columns, rows) -> a column; a NULL predicate is no match
Evaluator = Callable[[Sequence[pa.Array], int], pa.Array]
MATCHED = 1 << 15  # rows that are judged in one go


class Matching(Protocol):
    """The table, as far as rows are looked for in it (`VersionedTable`)."""

    _ended: Vec

    def _gather(self, slots: np.ndarray) -> tuple[pa.Array, ...]: ...


def matching(
    table: Matching, predicate: Evaluator | None, assignments: Mapping[int, Evaluator] | None
) -> Generator[None, None, Matched]:
    """The current rows for which `predicate` is true (None: all), and, for UPDATE, what columns
    (schema positions) become of them, MATCHED at a time.

    It may be used as long as `changes_made` is what it was."""
    current = np.flatnonzero(table._ended.view == FOREVER)
    parts: list[Matched] = []
    for first in range(0, max(len(current), 1), MATCHED):
        slots = current[first : first + MATCHED]
        cols = table._gather(slots)
        if predicate is not None:
            hit = predicate(cols, len(slots)).fill_null(False)
            slots = slots[hit.to_numpy(zero_copy_only=False)]
            cols = tuple(c.filter(hit) for c in cols)
        new = cols
        if assignments is not None:
            made = {i: value(cols, len(slots)) for i, value in assignments.items()}
            new = tuple(made.get(i, c) for i, c in enumerate(cols))
        parts.append(Matched(slots, cols, new))
        if first + MATCHED < len(current):
            yield
    return (yield from _joined(parts))


def _joined(parts: Sequence[Matched]) -> Generator[None, None, Matched]:
    """Those of all parts, a column at a time."""
    if len(parts) == 1:
        return parts[0]
    slots = np.concatenate([p.slots for p in parts])
    sides: list[tuple[pa.Array, ...]] = []
    for side in ("old", "new"):
        columns: list[pa.Array] = []
        for column in zip(*(getattr(p, side) for p in parts), strict=True):
            yield
            columns.append(pa.concat_arrays(column))
        sides.append(tuple(columns))
    return Matched(slots, *sides)
