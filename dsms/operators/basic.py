"""Operators that keep nothing of the past: selection, projection, order-preserving merge, append.

Selection and projection drop or rewrite rows and leave lifetimes alone (Golab 2006, §3.2.2), so any
input pattern passes through.  Deletions are filtered like the insertions they take back: predicates
and expressions are functions of the row, and a deletion carries the row's values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.operators.base import Stateless
from dsms.state.batch import Batch, concat, in_order
from dsms.state.columns import numpy_true

Columns = Sequence[pa.Array]


@dataclass(slots=True)
class SelectOp(Stateless):
    """Rows for which the predicate is true (not NULL).  `predicate(cols, n)` answers a boolean
    array."""

    predicate: Callable[[Columns, int], pa.BooleanArray]

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        if not len(rows):
            return rows
        return filter_batch(rows, self.predicate(rows.cols, len(rows)))


def filter_batch(rows: Batch, mask: pa.BooleanArray) -> Batch:
    """The rows where `mask` is true; NULL counts as false."""
    passed = numpy_true(mask)
    kept = np.count_nonzero(passed)
    if kept == len(rows):
        return rows
    return rows.take(np.flatnonzero(passed))


@dataclass(slots=True)
class ProjectOp(Stateless):
    """Each row's new values; `exprs` is one callable (cols, n) -> array per output column.

    ids  the id columns, in that order; empty: as they come"""

    exprs: Sequence[Callable[[Columns, int], pa.Array]]
    ids: tuple[int, ...] = ()

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        out = rows.with_cols([e(rows.cols, len(rows)) for e in self.exprs])
        return replace(out, ids=tuple(rows.ids[k] for k in self.ids)) if self.ids else out


@dataclass(slots=True)
class MergeOp(Stateless):
    """UNION ALL: the inputs merged by instant.  ids become (branch number, ids of the branch, -1
    for padding), as `plan.identity.places` says."""

    places: tuple[tuple[int, ...], ...]

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        tagged = [self._tag(k, b) for k, b in enumerate(inputs)]
        full = [b for b in tagged if len(b)]
        return in_order(concat(full)) if full else tagged[0]

    def _tag(self, branch: int, rows: Batch) -> Batch:
        n = len(rows)
        padding = np.full(n, -1, np.int64)
        ids = (
            np.full(n, branch, np.int64),
            *(padding if at < 0 else rows.ids[at] for at in self.places[branch]),
        )
        return Batch(rows.ts, rows.exp, rows.sign, ids, rows.cols, rows.life)


@dataclass(slots=True)
class AppendOp(Stateless):
    """Output of a block over INTERNAL windows: insertions stay, deletions are dropped (Golab 2006,
    §3.3.2).

    Rows get serial numbers as ids, in order of (instant, parts in FROM order `order`).  `mixed`: a
    row dies with the first of its external parts (`Batch.life`).
    """

    order: tuple[int, ...]
    mixed: bool
    serial: int = 0

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        if rows.sign is not None:
            rows = rows.take(np.flatnonzero(rows.sign > 0))
        rows = by_parts(rows, self.order)
        ids = np.arange(self.serial, self.serial + len(rows), dtype=np.int64)
        self.serial += len(rows)
        exp = (rows.exp if rows.life is None else rows.life) if self.mixed else None
        return Batch(rows.ts, exp, None, (ids,), rows.cols)


def by_parts(rows: Batch, order: Sequence[int]) -> Batch:
    """Rows in order of (ts, deletions first, parts in FROM order); the same object if they are
    already."""
    if len(rows) < 2:
        return rows
    keys = [rows.ts, *([] if rows.sign is None else [rows.sign]), *(rows.ids[k] for k in order)]
    return rows if sorted_by(keys) else rows.take(np.lexsort(keys[::-1]))


def sorted_by(keys: Sequence[np.ndarray]) -> bool:
    """Whether rows are in lexicographic order of the key arrays, most significant first."""
    tied = np.ones(max(0, len(keys[0]) - 1), np.bool_) if keys else np.ones(0, np.bool_)
    for key in keys:
        ties = _rises(key, tied)
        if ties < 0:
            return False
        if ties == 0:
            return True
    return True


@njit(cache=True, nogil=True)
def _rises(key, tied):
    """-1 if a row is smaller than its predecessor, with which it was tied until now; else how many
    still are."""
    ties = 0
    for i in range(len(tied)):
        if tied[i]:
            if key[i + 1] < key[i]:
                return -1
            tied[i] = key[i + 1] == key[i]
            ties += tied[i]
    return ties
