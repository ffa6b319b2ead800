"""Punctuations: values of columns that no further row of a stream has (Tucker, Maier, Sheard and
Fegaras 2003; Golab 2006, §2.2.1).

A promise says of some columns which values they do not have together in any row that comes after
it, whose instant is not later than `upto` (FOREVER: for good).  Rows that contradict are not let in
(`StreamInput`); operators let go of what only such rows could have met (`dsms.running.promised`).

made      how many promises were made; each has the next number, which is how readers tell what is
          new to them
after     what was accepted before a promise has instants up to there: only behind them can a reader
          go by it
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.sql.types import ALWAYS, FOREVER, MAX_INSTANT
from dsms.state.columns import Column, column_store
from dsms.state.intern import Intern
from dsms.state.vec import Vec

MANY = 1024  # values that have been promised only up to instants that have passed


@dataclass(frozen=True, slots=True)
class Promised:
    """Promises of the same columns: `values` of each column, and int64 `upto`, as long."""

    columns: tuple[int, ...]
    values: tuple[pa.Array, ...]
    upto: np.ndarray


@dataclass(slots=True)
class PromiseSet:
    """All promises of the same columns; a code for each combination of values.

    upto, after  by code: up to which instant, and behind which
    values       by code
    order        codes as promises were made, with their numbers and `after`; what was promised
                 again may stand there twice"""

    columns: tuple[int, ...]
    keys: Intern = field(init=False)
    values: list[Column] = field(init=False)
    upto: Vec = field(default_factory=Vec)
    after: Vec = field(default_factory=Vec)
    order: Vec = field(default_factory=Vec)
    number: Vec = field(default_factory=Vec)
    behind: Vec = field(default_factory=Vec)

    def __post_init__(self) -> None:
        self.keys = Intern(len(self.columns))
        self.values = []

    def add(self, values: Sequence[pa.Array], upto: int, after: int, number: int) -> int:
        """The next number behind those that these promises have; what is known already has none."""
        if not self.values:
            self.values = [column_store(v.type) for v in values]
        known = self.keys.capacity
        codes, first = np.unique(self.keys.codes(values, len(values[0])), return_index=True)
        fresh = codes >= known
        for store, column in zip(self.values, values, strict=True):
            store.append(column.take(pa.array(first[fresh])))
        self.upto.extend_fill(self.keys.capacity - known, ALWAYS)
        self.after.extend_fill(self.keys.capacity - known, ALWAYS)
        new = codes[self.upto.view[codes] < upto]
        self.upto.view[new], self.after.view[new] = upto, after
        self.order.extend(new)
        self.number.extend(np.arange(number, number + len(new)))
        self.behind.extend_fill(len(new), after)
        if self.order.n > MANY and self.order.n > 2 * self.keys.size:
            self._keep_last()
        return number + len(new)

    def _keep_last(self) -> None:
        """Of what was promised several times only the last stays in the order."""
        last = np.full(self.keys.capacity, -1, np.int64)
        last[self.order.view] = np.arange(self.order.n)
        kept = np.sort(last[last >= 0])
        for vec in (self.order, self.number, self.behind):
            vec.keep(kept)

    def forget(self, completed: int) -> None:
        """Let go of what was promised up to instants that have passed, if that is much."""
        alive = self.upto.view > completed
        if self.keys.size < MANY or 2 * int(alive.sum()) > self.keys.size:
            return
        kept = np.flatnonzero(alive)
        where = np.full(len(alive), -1, np.int64)
        where[kept] = np.arange(len(kept))
        self.keys = Intern(len(self.columns))
        for store in self.values:
            store.keep(kept)
        self.keys.codes([store.gather(where[kept]) for store in self.values], len(kept))
        stay = np.flatnonzero(where[self.order.view] >= 0)
        for vec in (self.order, self.number, self.behind):
            vec.keep(stay)
        self.order.view[:] = where[self.order.view]
        self.upto.keep(kept)
        self.after.keep(kept)

    def limits(self, values: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
        """(upto, after) of the promise of each combination; ALWAYS, FOREVER: there is none."""
        codes = self.keys.lookup(values, len(values[0]))
        there = codes >= 0
        upto, after = np.full(len(codes), ALWAYS), np.full(len(codes), FOREVER)
        upto[there], after[there] = self.upto.view[codes[there]], self.after.view[codes[there]]
        return upto, after

    def since(self, seen: int, clock: int) -> tuple[Promised, int] | None:
        """Promises from number `seen` on that a reader at `clock` may go by, and the number behind
        the last; None: there are none."""
        start = int(np.searchsorted(self.number.view, seen))
        stop = int(np.searchsorted(self.behind.view, clock, side="right"))
        if stop <= start:
            return None
        codes = np.unique(self.order.view[start:stop])
        values = tuple(store.gather(codes) for store in self.values)
        found = Promised(self.columns, values, self.upto.view[codes])
        return found, int(self.number.view[stop - 1]) + 1

    @property
    def nbytes(self) -> int:
        vecs = (self.upto, self.after, self.order, self.number, self.behind)
        return self.keys.nbytes + sum(v.nbytes for v in (*vecs, *self.values))


@dataclass(slots=True)
class Promises:
    """All promises of a stream."""

    sets: dict[tuple[int, ...], PromiseSet] = field(default_factory=dict)
    made: int = 0
    after: int = ALWAYS

    def add(
        self,
        columns: tuple[int, ...],
        values: Sequence[pa.Array],
        upto: int,
        after: int,
        completed: int,
    ) -> None:
        """One more, of as many combinations as `values` are long.  `completed`: the instant up to
        which no row comes anyhow."""
        if upto <= completed:
            return
        upto = FOREVER if upto >= MAX_INSTANT else upto
        self.after = max(self.after, after)
        some = self.sets.setdefault(columns, PromiseSet(columns))
        some.forget(completed)
        self.made = some.add(values, upto, self.after, self.made)

    def broken(self, cols: Sequence[pa.Array], ts: np.ndarray | int) -> np.ndarray | None:
        """Which rows of those instants contradict a promise; None: none."""
        out = np.zeros(len(cols[0]), np.bool_)
        for some in self.sets.values():
            upto, _ = some.limits([cols[c] for c in some.columns])
            out |= ts <= upto
        return out if out.any() else None

    def covers(self, known: Mapping[int, pa.Array], n: int, clock: int) -> np.ndarray:
        """Of n combinations of values of columns: of which no row comes any more, as a reader at
        that instant knows."""
        out = np.zeros(n, np.bool_)
        for some in self.sets.values():
            if known.keys() >= set(some.columns):
                upto, after = some.limits([known[c] for c in some.columns])
                out |= (upto == FOREVER) & (after <= clock)
        return out

    def since(self, seen: int, clock: int) -> Iterator[tuple[Promised, int]]:
        """See `PromiseSet.since`."""
        for some in self.sets.values():
            if (found := some.since(seen, clock)) is not None:
                yield found

    @property
    def count(self) -> int:
        """Combinations of values that have been promised."""
        return sum(some.keys.size for some in self.sets.values())

    @property
    def nbytes(self) -> int:
        return sum(some.nbytes for some in self.sets.values())
