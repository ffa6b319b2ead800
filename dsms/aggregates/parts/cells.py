"""What synopses are made of: an algebra of aggregates, and the cells it works on.

A *cell* holds one aggregate over one set of rows: those of one group in one sub-window, or in any
union of those.  A *state* is a column of n cells, in whatever arrays the algebra likes; all its
verbs work on whole columns, so a synopsis never loops over groups.  An aggregate is lifted,
combined, perhaps subtracted, and lowered; how intervals of the stream are cut, kept and put
together is the synopsis's business and knows nothing of the aggregate (Arasu and Widom 2004, §2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

State = Any


@dataclass(frozen=True, slots=True)
class CellRows:
    """n rows of a stream in (ts, arrival) order, as an algebra is given them.

    cell     int64[n]  the cell that a row belongs to
    ts       int64[n]  µs
    arrival  int64[n]  arrival numbers
    args     the aggregate's arguments: Arrow arrays of length n with physical types
             (`dsms.sql.types`)
    """

    cell: np.ndarray
    ts: np.ndarray
    arrival: np.ndarray
    args: tuple[pa.Array, ...] = ()


class Algebra(Protocol):
    """One aggregate, apart from any window.

    subtractable           whole - part is known from the two (SUM, COUNT, AVG, VAR; not MAX)
    duplicate_insensitive  combining overlapping sets does no harm (MIN, MAX; not SUM): predicate
                           covers may overlap
    """

    subtractable: bool
    duplicate_insensitive: bool

    def empty(self, cells: int) -> State:
        """Cells of no rows."""
        ...

    def lift(self, rows: CellRows, cells: int) -> State:
        """Cells 0 <= cell < `cells` of the rows (NULL arguments are among them, and do not count,
        as SQL says)."""
        ...

    def combine(self, older: State, newer: State) -> State:
        """Cell by cell the union of two sets of rows; `older`'s stand before `newer`'s in (ts,
        arrival) order."""
        ...

    def subtract(self, whole: State, part: State) -> State:
        """Cell by cell whole - part, part being a subset.  Only where `subtractable`."""
        ...

    def close(self, state: State) -> State:
        """The cells, whose sub-windows get no more rows."""
        ...

    def lower(self, state: State) -> pa.Array:
        """The answers, one per cell, in the physical type of the aggregate; raises QueryError DS706
        on SUM overflow."""
        ...

    def size(self, state: State) -> int:
        """Number of cells."""
        ...

    def take(self, state: State, index: np.ndarray) -> State:
        """The cells at `index` (int64), in that order; -1 gives an empty cell."""
        ...

    def concat(self, states: Sequence[State]) -> State:
        """The columns one below the other."""
        ...

    def nbytes(self, state: State) -> int:
        """Bytes, about."""
        ...
