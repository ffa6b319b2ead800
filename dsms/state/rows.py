"""The row store: the rows an operator keeps, by slot.

A slot is a position; rows are appended and die in any order; `compact` closes the gaps when most
slots are dead and says where each row went.  Operators keep their own per-slot data (key codes,
links) in `extra`, which moves along.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.sql.types import Schema
from dsms.state.batch import Batch
from dsms.state.columns import Column, column_store, run_of
from dsms.state.vec import Vec

GATHERED = 1 << 16  # values that are put together in one go, where there are many
COMPACT_FROM = 1024  # slots; below that, dead rows are left lying


@dataclass(slots=True)
class RowStore:
    """Columns of the kept rows.  `keep` are the schema positions of the stored value columns (None:
    all)."""

    schema: Schema
    width: int
    keep: tuple[int, ...] | None = None
    ts: Vec = field(default_factory=Vec)
    exp: Vec = field(default_factory=Vec)
    life: Vec | None = None
    ids: list[Vec] = field(default_factory=list)
    alive: Vec = field(default_factory=lambda: Vec(np.bool_))
    cols: list[Column] = field(default_factory=list)
    extra: dict[str, Vec] = field(default_factory=dict)
    dead: int = 0

    def __post_init__(self) -> None:
        self.keep = tuple(range(len(self.schema))) if self.keep is None else self.keep
        self.ids = [Vec() for _ in range(self.width)]
        self.cols = [column_store(self.schema[i].type.arrow) for i in self.keep]

    def __len__(self) -> int:
        """Slots in use, dead ones included."""
        return self.ts.n

    @property
    def live(self) -> int:
        return self.ts.n - self.dead

    def append(self, rows: Batch) -> np.ndarray:
        """Store the rows (all of sign +1); their slots, int64[n].  Extra columns must be extended
        by the caller."""
        first, n = self.ts.n, len(rows)
        self.ts.extend(rows.ts)
        self.exp.extend(rows.exps())
        if rows.life is not None and self.life is None:
            self.life = Vec()
            self.life.extend(self.exp.view[:first])
        if self.life is not None:
            self.life.extend(rows.exps() if rows.life is None else rows.life)
        for vec, ids in zip(self.ids, rows.ids, strict=True):
            vec.extend(ids)
        self.alive.extend_fill(n, True)
        assert self.keep is not None
        for col, i in zip(self.cols, self.keep, strict=True):
            col.append(rows.cols[i])
        return np.arange(first, first + n, dtype=np.int64)

    def bury(self, slots: np.ndarray) -> None:
        """The rows at `slots` (distinct, alive) are dead; their values can still be gathered until
        `compact`."""
        self.alive.view[slots] = False
        self.dead += len(slots)

    def columns(self, slots: np.ndarray) -> tuple[pa.Array, ...]:
        """Values of the stored columns at `slots`."""
        return tuple(c.gather(slots) for c in self.cols)

    def gathering(self, slots: np.ndarray) -> Generator[None, None, tuple[pa.Array, ...]]:
        """`columns`, of many rows piece by piece."""
        if len(slots) <= GATHERED:
            return self.columns(slots)
        out = []
        for column in self.cols:
            yield
            out.append((yield from _gathering(column, slots)))
        return tuple(out)

    def batch(
        self,
        slots: np.ndarray,
        ts: np.ndarray,
        sign: np.ndarray | None,
        exp: np.ndarray | None = None,
        cols: tuple[pa.Array, ...] | None = None,
        mortal: bool = True,
    ) -> Batch:
        """The stored rows at `slots` as a batch at other instants and signs; `exp` and the columns
        as stored unless given; not `mortal`: no death is foretold."""
        ids = tuple(v.view[slots] for v in self.ids)
        life = None if self.life is None else self.life.view[slots]
        if exp is None and mortal:
            exp = self.exp.view[slots]
        return Batch(ts, exp, sign, ids, self.columns(slots) if cols is None else cols, life)

    def compact(self, tight: bool = False) -> np.ndarray | None:
        """Close the gaps if more than half of the slots are dead (`tight`: a sixteenth): new slot
        of each old one (-1: dead), or None."""
        n = self.ts.n
        if n < COMPACT_FROM or (16 if tight else 2) * self.dead < n:
            return None
        return self.close()

    def close(self) -> np.ndarray:
        """Close all gaps: the new slot of each old one (-1: dead)."""
        n = self.ts.n
        kept = np.flatnonzero(self.alive.view)
        where = np.full(n, -1, np.int64)
        where[kept] = np.arange(len(kept))
        for vec in self._vecs():
            vec.keep(kept)
        for col in self.cols:
            col.keep(kept)
        self.dead = 0
        return where

    def _vecs(self) -> Sequence[Vec]:
        fixed = [self.ts, self.exp, self.alive, *self.ids, *self.extra.values()]
        return fixed if self.life is None else [*fixed, self.life]

    @property
    def nbytes(self) -> int:
        return sum(v.nbytes for v in self._vecs()) + sum(c.nbytes for c in self.cols)


def _gathering(column: Column, index: np.ndarray) -> Generator[None, None, pa.Array]:
    if run_of(index) is not None:  # not one by one
        return column.gather(index)
    column.unite()
    parts = []
    for start in range(0, len(index), GATHERED):
        yield
        parts.append(column.gather(index[start : start + GATHERED]))
    yield
    return pa.concat_arrays(parts)
