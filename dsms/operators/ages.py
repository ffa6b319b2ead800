"""The operator above a leaf whose rows must carry their ages (`dsms.plan.ages`): timestamps become
part of the ids.

State    none where rows are never taken back; else the timestamps of the live rows, by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dsms.operators.base import Stateless
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch
from dsms.state.vec import Vec


@dataclass(slots=True)
class DateOp(Stateless):
    """Rows with ids (number,) become rows with ids (number, timestamp)."""

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        return replace(rows, ids=(*rows.ids, rows.ts))


@dataclass(slots=True)
class DateMortalOp:
    """The same where deletions come, which must name the timestamp that the row came with.  Numbers
    never fall."""

    number: Vec = field(default_factory=Vec)
    at: Vec = field(default_factory=Vec)
    alive: Vec = field(default_factory=lambda: Vec(np.bool_))
    buried: int = 0

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        (numbers,), sign, at = rows.ids, rows.signs(), rows.ts.copy()
        come, go = sign > 0, sign < 0
        self.number.extend(numbers[come])
        self.at.extend(at[come])
        self.alive.extend_fill(int(np.count_nonzero(come)), True)
        where = np.searchsorted(self.number.view, numbers[go])
        at[go] = self.at.view[where]
        self._bury(where)
        return replace(rows, ids=(numbers, at))

    def _bury(self, where: np.ndarray) -> None:
        """These rows have been taken back; forget them once they are the most."""
        self.alive.view[where] = False
        self.buried += len(where)
        if 2 * self.buried > self.alive.n:
            kept = np.flatnonzero(self.alive.view)
            for vec in (self.number, self.at, self.alive):
                vec.keep(kept)
            self.buried = 0

    def live(self) -> int:
        return self.number.n

    def nbytes(self) -> int:
        return int(self.number.view.nbytes + self.at.view.nbytes + self.alive.view.nbytes)

    def next_due(self) -> int:
        return FOREVER


@dataclass(frozen=True, slots=True)
class Age:
    """Where in the ids the age of a row stands: positions of timestamps, and of the numbers as they
    compare."""

    timestamps: tuple[int, ...]
    numbers: tuple[int, ...]

    @property
    def width(self) -> int:
        return 1 + len(self.numbers)

    def of(self, ids: Sequence[np.ndarray]) -> np.ndarray:
        """int64[n, width]: rows that compare, from the left, as the ages do.  Padded parts have no
        timestamp."""
        return np.stack([self.instants(ids), *(ids[i] for i in self.numbers)], axis=1)

    def instants(self, ids: Sequence[np.ndarray]) -> np.ndarray:
        """int64[n]: the largest timestamps of the parts."""
        at = [np.where(ids[i - 1] >= 0, ids[i], ALWAYS) for i in self.timestamps]
        found: np.ndarray = np.maximum.reduce(at)
        return found
