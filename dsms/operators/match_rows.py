"""Rows of one step of a MATCH: those of the stretch at hand, and those that attempts have taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.operators.match_attempts import NEW
from dsms.operators.match_kernels import END, by_key, forget
from dsms.operators.match_many import Many
from dsms.operators.pieces import Look
from dsms.sql.types import Schema
from dsms.state.batch import Batch, empty_batch
from dsms.state.columns import EIGHT_BYTES, numpy_valid, numpy_values, taken
from dsms.state.intern import Intern
from dsms.state.rows import RowStore
from dsms.state.vec import Vec

Keys = Sequence[Callable[[Sequence[pa.Array], int], pa.Array]]
Origin = tuple[str, tuple[int, ...]]
Part = tuple[tuple[np.ndarray, ...], tuple[pa.Array, ...]]


@dataclass(frozen=True, slots=True)
class Came:
    """Arrival numbers of rows, and which of these have a key that is known."""

    number: np.ndarray
    some: np.ndarray | None


def _codes(values: Sequence[pa.Array], n: int, intern: Intern, new: bool, look: Look) -> np.ndarray:
    """Of n rows; -1 where there is a NULL, or the key is not known and is not to be (`new`)."""
    keyed = np.ones(n, np.bool_)
    for v in values:
        if (valid := numpy_valid(v)) is not None:
            keyed &= valid
    if keyed.all():
        return intern.codes(values, n, look) if new else intern.lookup(values, n)
    some, code = np.flatnonzero(keyed), np.full(n, -1, np.int64)
    values = [taken(v, some) for v in values]
    code[some] = intern.codes(values, len(some), look) if new else intern.lookup(values, len(some))
    return code


@dataclass(slots=True)
class Step:
    """rows, code  of the stretch: those that have a key, by (timestamp, arrival)
    begin, end, order  these by key (see `match_kernels`);  ts: in that order
    store  rows that attempts have taken which wait;  by: id columns by which rows are sorted
    many   of a step that takes many rows: these, in place of `store`
    origin the stream, and of this the columns of the key; None: not known
    came   of the stretch;  twin: an earlier step that has the same rows, as code, order and bounds
    """

    keys: Keys
    schema: Schema
    width: int
    by: tuple[int, ...]
    many: Many | None = None
    origin: Origin | None = None
    store: RowStore = field(init=False)
    rows: Batch = field(init=False)
    code: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    order: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    ts: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    begin: Vec = field(default_factory=Vec)
    end: Vec = field(default_factory=Vec)
    came: Came | None = None
    twin: Step | None = None

    def __post_init__(self) -> None:
        self.store = RowStore(self.schema, self.width) if self.many is None else self.many.store
        self.rows = empty_batch(self.schema, self.width)

    def come(self, rows: Batch, intern: Intern | None, before: Sequence[Step], look: Look) -> None:
        """The rows of a stretch; deletions are left out, rows with a NULL in their key, and those
        whose key no attempt has, unless it is the first step, by which keys become known.
        `before`: the steps before it, which have theirs."""
        if rows.sign is not None and (rows.sign < 0).any():
            rows = rows.take(np.flatnonzero(rows.sign > 0))
        if self.by and len(rows) > 1:
            rows = rows.take(np.lexsort((*(rows.ids[k] for k in reversed(self.by)), rows.ts)))
        n = len(rows)
        if intern is None:
            self.rows, self.code = rows, np.zeros(n, np.int64)
            return
        self.twin = next((s for s in before if self._is_like(s, rows)), None)
        if self.twin is not None:
            assert self.twin.came is not None
            self.came, self.code, some = self.twin.came, self.twin.code, self.twin.came.some
            self.rows = rows if some is None else rows.take(some)
            return
        code = _codes([k(rows.cols, n) for k in self.keys], n, intern, not before, look)
        some = np.flatnonzero(code >= 0) if n and code.min() < 0 else None
        self.came = Came(rows.number, some)
        self.rows, self.code = (rows, code) if some is None else (rows.take(some), code[some])

    def _is_like(self, step: Step, rows: Batch) -> bool:
        """Whether these are the rows of another step, with the same keys."""
        if step.came is None or self.origin is None or self.origin != step.origin:
            return False
        return np.array_equal(step.came.number, rows.number)

    def arrange(self, capacity: int) -> None:
        """The rows of the stretch by key, of which there are so many."""
        if self.twin is not None:
            self.order, self.ts = self.twin.order, self.twin.ts
        else:
            for vec in (self.begin, self.end):
                vec.extend_fill(max(0, capacity - vec.n), END)
            self.order = np.empty(len(self.code), np.int64)
            by_key(self.code, self.begin.view, self.end.view, self.order)
            self.ts = self.rows.ts[self.order]
        if self.many is not None:
            self.many.come(self.rows, self.code, capacity)

    def over(self) -> None:
        """The stretch is."""
        if self.twin is None:
            forget(self.code, self.begin.view)
        self.came = self.twin = None
        self.rows = empty_batch(self.schema, self.width)
        self.code = self.order = self.ts = np.empty(0, np.int64)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """By code where its rows begin and end in `order`."""
        step = self.twin or self
        return step.begin.view, step.end.view

    def keep(self, places: np.ndarray) -> np.ndarray:
        """Keep the rows at these places of the stretch (the same ones again and again): slots."""
        if self.many is not None:
            return self.many.first + places
        mark = np.zeros(len(self.rows), np.bool_)
        mark[places] = True
        some = np.flatnonzero(mark)
        slots = np.empty(len(self.rows), np.int64)
        slots[some] = self.store.append(self.rows.take(some))
        return slots[places]

    def times(self, refs: np.ndarray) -> np.ndarray:
        """Timestamps of rows of attempts."""
        fresh, out = refs <= NEW, np.empty(len(refs), np.int64)
        out[fresh] = self.rows.ts[NEW - refs[fresh]]
        out[~fresh] = self.store.ts.view[refs[~fresh]]
        return out

    def slots(self, refs: np.ndarray) -> np.ndarray:
        """Slots of rows of attempts, of a step that takes many."""
        assert self.many is not None
        return np.where(refs <= NEW, self.many.first + NEW - refs, refs)

    def column(self, refs: np.ndarray, column: int) -> pa.Array:
        """The values of a column of rows of attempts."""

        def kept(slots: np.ndarray) -> tuple[pa.Array, ...]:
            return (self.store.cols[column].gather(slots),)

        def new(places: np.ndarray) -> tuple[pa.Array, ...]:
            return (taken(self.rows.cols[column], places),)

        return _both(refs, kept, new)[0]

    def part(self, refs: np.ndarray) -> Part:
        """Ids and columns of rows of attempts."""
        fresh = refs <= NEW
        ids = []
        for mine, vec in zip(self.rows.ids, self.store.ids, strict=True):
            found = np.empty(len(refs), np.int64)
            found[fresh] = mine[NEW - refs[fresh]]
            found[~fresh] = vec.view[refs[~fresh]]
            ids.append(found)
        cols = _both(refs, self.store.columns, lambda p: tuple(taken(c, p) for c in self.rows.cols))
        return tuple(ids), cols

    def sweep(self, refs: np.ndarray, old: int) -> np.ndarray | None:
        """Forget the rows that none of these attempts has, of many those with timestamps up to
        `old`: new slots of the others, or None."""
        if self.many is not None:
            return self.many.sweep(old)
        used = np.zeros(len(self.store), np.bool_)
        used[refs[refs >= 0]] = True
        self.store.bury(np.flatnonzero(self.store.alive.view & ~used))
        return self.store.close() if self.store.dead else None

    @property
    def nbytes(self) -> int:
        return self.store.nbytes + self.begin.nbytes + self.end.nbytes


def _both(
    refs: np.ndarray,
    kept: Callable[[np.ndarray], tuple[pa.Array, ...]],
    new: Callable[[np.ndarray], tuple[pa.Array, ...]],
) -> tuple[pa.Array, ...]:
    """Columns of rows, of which some are kept and others of the stretch."""
    fresh = refs <= NEW
    if fresh.all():
        return new(NEW - refs)
    if not fresh.any():
        return kept(refs)
    old, young = np.flatnonzero(~fresh), np.flatnonzero(fresh)
    both = zip(kept(refs[old]), new(NEW - refs[young]), strict=True)
    return tuple(_merged(a, old, b, young) for a, b in both)


def _merged(a: pa.Array, at: np.ndarray, b: pa.Array, other: np.ndarray) -> pa.Array:
    """One column with these values at these places, and those at the other ones."""
    if a.type in EIGHT_BYTES and not a.null_count and not b.null_count:
        mine = numpy_values(a)
        out = np.empty(len(a) + len(b), mine.dtype)
        out[at], out[other] = mine, numpy_values(b)
        return pa.array(out)
    where = np.empty(len(a) + len(b), np.int64)
    where[at], where[other] = np.arange(len(a)), len(a) + np.arange(len(b))
    return taken(pa.concat_arrays([a, b]), where)
