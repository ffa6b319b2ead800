"""The keys of a GROUP BY: rows to dense group codes, and codes back to key values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms.operators.letting_go import Promise, places_among
from dsms.operators.pieces import Look, go_on
from dsms.sql.types import WHOLE, Type
from dsms.state.columns import (
    Column,
    all_taken,
    arrow_values,
    column_store,
    numpy_true,
    numpy_valid,
    numpy_values,
)
from dsms.state.intern import Intern, word
from dsms.state.vec import Vec

NAN = np.float64("nan")
Interning = Callable[[Sequence[pa.Array], int], np.ndarray]  # (columns, n) -> codes
DENSE = 1 << 16  # so many key values apart are always looked up in an array


@njit(cache=True, nogil=True)
def _look_up(values, low, table, out):
    """Codes of integers by table[value - low], -1 of those that are not known: how many these
    are."""
    unknown = 0
    for i in range(len(values)):
        d = values[i] - low
        code = np.int64(-1) if d < 0 or d >= len(table) else table[d]
        out[i] = code
        if code < 0:
            unknown += 1
    return unknown


@njit(cache=True, nogil=True)
def _first_rows(codes, place, seen, out):
    """Rows at which codes without a place stand first; how many."""
    n = 0
    for i in range(len(codes)):
        code = codes[i]
        if place[code] < 0 and not seen[code]:
            seen[code] = True
            out[n] = i
            n += 1
    return n


@dataclass(slots=True)
class Dense:
    """Codes of one INT key whose values lie close together: an array instead of a hash table."""

    low: int = 0
    table: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def coded(self, col: pa.Array, known: Intern, intern: Interning) -> np.ndarray:
        """Codes of all values (none is NULL), those that are not in the array by `intern`, which
        puts them into `known`."""
        values, n = numpy_values(col), len(col)
        if not len(self.table):
            out = intern([col], n)
            self.learn(values, out, known.size)
            return out
        out = np.empty(n, np.int64)
        if _look_up(values, self.low, self.table, out):
            fresh = np.flatnonzero(out < 0)
            some = values[fresh]
            out[fresh] = codes = intern([pa.array(some)], len(some))
            self.learn(some, codes, known.size)
        return out

    def learn(self, values: np.ndarray, codes: np.ndarray, groups: int) -> None:
        """Note the codes, if values lie close enough together."""
        if not len(values):
            return
        low, high = int(values.min()), int(values.max()) + 1
        if len(self.table):
            low, high = min(low, self.low), max(high, self.low + len(self.table))
        if high - low > max(DENSE, 8 * groups):
            return
        if high - low > len(self.table):
            grown = np.full(min(high - low + high - low, max(DENSE, 8 * groups)), -1, np.int64)
            grown[self.low - low : self.low - low + len(self.table)] = self.table
            self.table, self.low = grown, low
        self.table[values - self.low] = codes

    def forget(self) -> None:
        self.table = np.empty(0, np.int64)

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes)


def coded(
    known: Intern, dense: Dense | None, cols: Sequence[pa.Array], n: int, look: Look = go_on
) -> np.ndarray:
    """`Intern.codes` of n rows, by an array where there is one."""
    if dense is None or cols[0].null_count:
        return known.codes(cols, n, look)
    return dense.coded(cols[0], known, lambda some, size: known.codes(some, size, look))


def canonical(col: pa.Array) -> pa.Array:
    """Floats with one zero and one NaN, so that a group's key does not depend on which row came
    first."""
    if not pa.types.is_float64(col.type):
        return col
    values = numpy_values(col) + 0.0
    values[np.isnan(values)] = NAN
    return arrow_values(values, numpy_valid(col))


@dataclass(slots=True)
class GroupKeys:
    """Key values of the groups by code.  Without key columns there is one group, code 0."""

    types: tuple[Type, ...]
    intern: Intern | None = field(init=False)
    place: Vec = field(default_factory=Vec)  # by code: row in `values`, -1 if the code is spare
    values: list[Column] = field(init=False)
    rows: int = 0  # of `values`
    dense: Dense | None = field(init=False)

    def __post_init__(self) -> None:
        self.intern = Intern(len(self.types)) if self.types else None
        self.values = [column_store(t.arrow) for t in self.types]
        self.dense = Dense() if len(self.types) == 1 and self.types[0].kind in WHOLE else None

    @property
    def capacity(self) -> int:
        """Codes are below this."""
        return 1 if self.intern is None else self.intern.capacity

    def codes(self, cols: Sequence[pa.Array], n: int, look: Look = go_on) -> np.ndarray:
        """Codes of n rows; new keys are learnt.  `look` as in `Intern.codes`."""
        if self.intern is None:
            return np.zeros(n, np.int64)
        if self.dense is None or cols[0].null_count:
            return self._intern(cols, n, look)
        return self.dense.coded(
            cols[0], self.intern, lambda some, size: self._intern(some, size, look)
        )

    def _intern(self, cols: Sequence[pa.Array], n: int, look: Look) -> np.ndarray:
        assert self.intern is not None
        before = self.intern.size
        codes = self.intern.codes(cols, n, look)
        if self.intern.size > before:
            self._learn(cols, codes)
        return codes

    def _learn(self, cols: Sequence[pa.Array], codes: np.ndarray) -> None:
        self.place.extend_fill(self.capacity - self.place.n, -1)
        first = np.empty(self.capacity, np.int64)
        first = first[
            : _first_rows(codes, self.place.view, np.zeros(self.capacity, np.bool_), first)
        ]
        fresh, rows = codes[first], pa.array(first)
        self.place.view[fresh] = np.arange(self.rows, self.rows + len(fresh))
        self.rows += len(fresh)
        for store, col in zip(self.values, cols, strict=True):
            store.append(canonical(col.take(rows)))

    def gather(self, codes: np.ndarray) -> list[pa.Array]:
        """Key columns of the groups `codes`."""
        if self.intern is None:
            return []
        rows = self.place.view[codes]
        return [store.gather(rows) for store in self.values]

    def known(self, columns: Sequence[int], values: Sequence[pa.Array]) -> np.ndarray | None:
        """Codes of the groups whose keys `columns` have one of the combinations of `values`, if
        these are all keys; None: they have to be looked for (`matching`)."""
        if self.intern is None:
            return np.empty(0, np.int64)
        if sorted(columns) != list(range(len(self.types))):
            return None
        in_order = [values[columns.index(k)] for k in range(len(columns))]
        codes = np.unique(self.intern.lookup(in_order, len(values[0])))
        return codes[codes >= 0]

    def matching(self, codes: np.ndarray, promises: Sequence[Promise]) -> np.ndarray:
        """Those of the groups `codes` that are concerned: their keys have one of the combinations
        of values, and the other key is less than its value there, if there is one."""
        codes = codes[self.place.view[codes] >= 0]
        keys, out = self.gather(codes), np.zeros(len(codes), np.bool_)
        for columns, values, before in promises:
            at = places_among([keys[c] for c in columns], values)
            if before is not None:
                mine, theirs = keys[before[0]], before[1].take(pa.array(np.maximum(at, 0)))
                at[~numpy_true(pc.less(mine, theirs))] = -1
            out |= at >= 0
        return codes[out]

    def wants_purge(self, alive: int) -> bool:
        """Worth forgetting dead groups, when `alive` groups have rows."""
        return self.intern is not None and self.intern.wants_purge(alive)

    def purge(self, live: np.ndarray) -> None:
        """Forget all groups whose `live` (bool by code) is False."""
        assert self.intern is not None
        self.intern.purge(live)
        kept = np.flatnonzero(live)
        rows = self.place.view[kept]
        for store in self.values:
            store.keep(rows)
        self.place.view[:] = -1
        self.place.view[kept] = np.arange(len(kept))
        self.rows = len(kept)
        if self.dense is not None:
            self.dense.forget()

    @property
    def nbytes(self) -> int:
        own = 0 if self.intern is None else self.intern.nbytes
        own += 0 if self.dense is None else self.dense.nbytes
        return own + self.place.nbytes + sum(c.nbytes for c in self.values)


@dataclass(slots=True)
class RunKeys(GroupKeys):
    """Keys of rows that mostly stand behind others of the same keys: looked up where they
    change."""

    def codes(self, cols: Sequence[pa.Array], n: int, look: Look = go_on) -> np.ndarray:
        if self.intern is None or not n:
            return GroupKeys.codes(self, cols, n, look)
        first = np.ones(n, np.bool_)
        first[1:] = np.logical_or.reduce([_changes(col) for col in cols])
        at = np.flatnonzero(first)
        codes = self._intern(all_taken(cols, at), len(at), look)
        return codes[np.cumsum(first) - 1]


def _changes(col: pa.Array) -> np.ndarray:
    """Of each value but the first whether it surely is that before it (False), or may be another;
    bool[n - 1]."""
    words, valid = word(col), numpy_valid(col)
    if words is None:
        same = pc.equal(col.slice(1), col.slice(0, len(col) - 1))
        return ~numpy_true(same)
    out: np.ndarray = words[1:] != words[:-1]
    return out if valid is None else out | ~(valid[1:] & valid[:-1])
