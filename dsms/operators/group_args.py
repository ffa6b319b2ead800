"""Arguments of aggregates: evaluated once on arrival, kept as words by slot while the row lives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.base import NO_BOOLS, Arg
from dsms.aggregates.parts.words import NONE, Coding, validity
from dsms.sql.types import INT
from dsms.state.vec import Vec

Columns = Sequence[pa.Array]
Evaluate = Callable[[Columns, int], pa.Array]


def passing(filter_: Evaluate, cols: Columns, n: int) -> np.ndarray:
    """bool[n]: rows that a FILTER lets pass."""
    mask = filter_(cols, n)
    return np.asarray(mask.fill_null(False) if mask.null_count else mask).astype(
        np.bool_, copy=False
    )


@dataclass(slots=True)
class ArgColumn:
    """One argument under one filter.  `form` "valid": only whether it counts is wanted, no words.

    evaluate  None: COUNT(*) FILTER, which has no argument
    lift      evaluates new rows;  keep / forget / moved: their words by slot;  view: what a kernel
              sees
    """

    evaluate: Evaluate | None
    filter: Evaluate | None
    coding: Coding
    worded: bool
    words: Vec = field(default_factory=Vec)
    high: Vec = field(default_factory=Vec)
    valid: Vec | None = None
    slots: int = 0

    def lift(self, cols: Columns, n: int) -> Arg:
        """The argument of n rows, by position."""
        if self.filter is None:
            return self._lift(cols, n)
        passed = passing(self.filter, cols, n)
        if passed.all():
            return self._lift(cols, n)
        where = np.flatnonzero(passed)
        some = (
            self._lift([c.take(pa.array(where)) for c in cols], len(where)) if len(where) else None
        )
        valid = np.zeros(n, np.bool_)
        if some is None:
            zeros = np.zeros(n, np.int64)
            return Arg(
                zeros if self.worded else NONE,
                zeros if self.coding.wide else NONE,
                valid,
                self.coding,
            )
        valid[where] = some.valid if len(some.valid) else True
        return Arg(_spread(some.words, where, n), _spread(some.high, where, n), valid, self.coding)

    def _lift(self, cols: Columns, n: int) -> Arg:
        if self.evaluate is None:
            return Arg(NONE, NONE, NO_BOOLS, self.coding)
        col = self.evaluate(cols, n)
        words, high = self.coding.encode(col) if self.worded else (NONE, NONE)
        valid = validity(col)
        return Arg(words, high, NO_BOOLS if valid is None else valid, self.coding)

    def keep(self, new: Arg, n: int) -> None:
        """Append the words of n rows."""
        if self.worded:
            self.words.extend(new.words)
        if self.coding.wide:
            self.high.extend(new.high)
        if len(new.valid) and self.valid is None:
            self.valid = Vec(np.bool_)
            self.valid.extend_fill(self.slots, True)
        if self.valid is not None:
            if len(new.valid):
                self.valid.extend(new.valid)
            else:
                self.valid.extend_fill(n, True)
        self.slots += n

    def view(self) -> Arg:
        """The argument of all slots."""
        return Arg(
            self.words.view,
            self.high.view,
            NO_BOOLS if self.valid is None else self.valid.view,
            self.coding,
        )

    def held(self, live: np.ndarray) -> np.ndarray:
        """Words of the slots `live` (bool by slot) that are not NULL."""
        words = self.words.view[live]
        return words if self.valid is None else words[self.valid.view[live]]

    def moved(self, kept: np.ndarray) -> None:
        """Only the slots `kept` remain."""
        for vec in (self.words, self.high, self.valid):
            if vec is not None and vec.n:
                vec.keep(kept)
        self.slots = len(kept)

    @property
    def nbytes(self) -> int:
        return (
            self.words.nbytes + self.high.nbytes + (0 if self.valid is None else self.valid.nbytes)
        )


def lives_column(slots: int) -> ArgColumn:
    """The column of `Batch.life`, begun when `slots` rows had come that outlive everything."""
    out = ArgColumn(None, None, Coding(INT), worded=True, valid=Vec(np.bool_), slots=slots)
    out.words.extend_fill(slots, 0)
    assert out.valid is not None
    out.valid.extend_fill(slots, False)
    return out


def lives_of(life: np.ndarray | None, n: int) -> Arg:
    """`Batch.life` of n rows as an argument; NULL: nothing that the row rests on dies."""
    if life is None:
        return Arg(np.zeros(n, np.int64), NONE, np.zeros(n, np.bool_), Coding(INT))
    return Arg(life, NONE, NO_BOOLS, Coding(INT))


def _spread(values: np.ndarray, where: np.ndarray, n: int) -> np.ndarray:
    if not len(values):
        return values
    out = np.zeros(n, np.int64)
    out[where] = values
    return out
