"""Cells that hold one row's value: the least, the greatest, the first or the last one of theirs.

Four rules say whether a row takes the place of an older one; everything else is the same for all.
Ties go to the older row, so the order in which sets are combined matters where values beside those
compared are reported (ARGMAX).
Cost     O(1) a row and a combined cell.     Space  17 bytes a cell, 25 for ARGMIN and ARGMAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.parts.coded import ALL, Words, counting
from dsms.aggregates.parts.fold import Folds
from dsms.errors import InternalError

LEAST, GREATEST, FIRST, LAST = range(4)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Picked:
    """n cells.  by int64[n]: the words compared;  told int64[n]: those reported (the same array
    where they are the same);  full bool[n]: False where there is none."""

    by: np.ndarray
    told: np.ndarray
    full: np.ndarray


@njit(cache=True, nogil=True)
def takes(x, y, rank, rule):
    """Whether a row with x takes the place of an older one with y."""
    if rule >= FIRST:
        return rule == LAST
    if len(rank):
        x, y = rank[x], rank[y]
    return x > y if rule == GREATEST else x < y


@njit(cache=True, nogil=True)
def _lift(cell, words, also, valid, valid_also, rank, rule, by, reported, full):
    for i in range(len(cell)):
        if (len(valid) == 0 or valid[i]) and (len(valid_also) == 0 or valid_also[i]):
            g = cell[i]
            if not full[g] or takes(words[i], by[g], rank, rule):
                by[g], reported[g], full[g] = words[i], also[i], True


@njit(cache=True, nogil=True)
def _combine(by, reported, full, rank, rule, out_by, out_reported, out_full):
    """Newer cells (the first three) into older ones."""
    for g in range(len(by)):
        if full[g] and (not out_full[g] or takes(by[g], out_by[g], rank, rule)):
            out_by[g], out_reported[g], out_full[g] = by[g], reported[g], True


@njit(cache=True, nogil=True)
def _merge(by, reported, full, group, low, high, base, rank, rule, out_by, out_reported, out_full):
    for r in range(len(low)):
        for i in range(low[r], high[r]):
            if full[i]:
                g = base[r] + group[i]
                if not out_full[g] or takes(by[i], out_by[g], rank, rule):
                    out_by[g], out_reported[g], out_full[g] = by[i], reported[i], True


@njit(cache=True, nogil=True)
def _chain(prev, prev_older, rank, rule, by, reported, full):
    for i in range(len(prev)):
        k = prev[i]
        if k < 0 or not full[k]:
            continue
        if full[i]:
            stays = (
                takes(by[i], by[k], rank, rule)
                if prev_older
                else not takes(by[k], by[i], rank, rule)
            )
            if stays:
                continue
        by[i], reported[i], full[i] = by[k], reported[k], True


class Picks(Folds):
    """`rule`; `told` are the words of the value reported, `by` those of the value compared (None:
    the same)."""

    constant = True

    def __init__(
        self,
        rule: int,
        reported: Words,
        by: Words | None = None,
        duplicate_insensitive: bool = False,
    ) -> None:
        self.rule, self.told = rule, reported
        self.by = reported if by is None else by
        self.duplicate_insensitive = duplicate_insensitive

    @property
    def _rank(self) -> np.ndarray:
        return self.by.rank if self.rule < FIRST else self.by.rank[:0]

    def _made(self, by: np.ndarray, reported: np.ndarray, full: np.ndarray) -> Picked:
        """A column, entered with the dictionaries that serve it."""
        out = Picked(by, reported, full)
        self.told.enter(out, "told")
        if self.by is not self.told:
            self.by.enter(out, "by")
        return out

    def _map(self, of: Callable[[np.ndarray], np.ndarray], state: Picked) -> Picked:
        """A column of what becomes of each array."""
        by = of(state.by)
        return self._made(by, by if self.by is self.told else of(state.told), of(state.full))

    def empty(self, cells: int) -> Picked:
        by = np.zeros(cells, np.int64)
        return self._made(by, by if self.by is self.told else by.copy(), np.zeros(cells, np.bool_))

    def lift(self, rows: CellRows, cells: int) -> Picked:
        (column, *rest) = rows.args
        valid = counting(column)
        words = reported = self.told.encode(column)
        out, also = self.empty(cells), ALL
        if rest:
            words, also = self.by.encode(rest[0]), counting(rest[0])
        _lift(
            rows.cell,
            words,
            reported,
            valid,
            also,
            self._rank,
            self.rule,
            out.by,
            out.told,
            out.full,
        )
        return out

    def combine(self, older: Picked, newer: Picked) -> Picked:
        out = self._map(np.copy, older)
        _combine(
            newer.by, newer.told, newer.full, self._rank, self.rule, out.by, out.told, out.full
        )
        return out

    def subtract(self, whole: Picked, part: Picked) -> Picked:
        raise InternalError(
            "DS905", "the extremes of what is left are not known from those of the whole"
        )

    def lower(self, state: Picked) -> pa.Array:
        return self.told.decode(state.told, state.full)

    def size(self, state: Picked) -> int:
        return len(state.full)

    def take(self, state: Picked, index: np.ndarray) -> Picked:
        if not len(state.full):
            return self.empty(len(index))
        missing = index < 0
        out = self._map(lambda a: a[index], state)
        out.full[missing] = False
        return out

    def concat(self, states: Sequence[Picked]) -> Picked:
        if not states:
            return self.empty(0)
        by = np.concatenate([s.by for s in states])
        reported = by if self.by is self.told else np.concatenate([s.told for s in states])
        return self._made(by, reported, np.concatenate([s.full for s in states]))

    def nbytes(self, state: Picked) -> int:
        return int(
            state.by.nbytes
            + state.full.nbytes
            + (0 if state.told is state.by else state.told.nbytes)
        )

    # -- over many cells ---------------------------------------------------------------------------

    def present(self, state: Picked) -> np.ndarray:
        return state.full

    def merge(
        self,
        state: Picked,
        group: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        base: np.ndarray,
        cells: int,
    ) -> Picked:
        out = self.empty(cells)
        _merge(
            state.by,
            state.told,
            state.full,
            group,
            low,
            high,
            base,
            self._rank,
            self.rule,
            out.by,
            out.told,
            out.full,
        )
        return out

    def chain(self, state: Picked, prev: np.ndarray, prev_older: bool) -> Picked:
        out = self._map(np.copy, state)
        _chain(prev, prev_older, self._rank, self.rule, out.by, out.told, out.full)
        return out

    def write(self, state: Picked, at: int, more: Picked) -> Picked:
        here = slice(at, at + len(more.full))
        state.by[here], state.told[here], state.full[here] = more.by, more.told, more.full
        return state
