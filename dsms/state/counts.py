"""How often each value of a column occurs in a window, from counts of its closed sub-windows
(Golab, Garg, Özsu 2004, §4: AGGR of each sub-window, H over the window).

A sub-window is counted once.  The counts of a window are those of the window that was asked for
before, less the sub-windows that have left it, and those that came; rows at its edges, and of the
sub-window that has not ended, are counted when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.state.batch import Batch
from dsms.state.index import known
from dsms.state.intern import Intern
from dsms.state.ring import Ring, SubWindow, between

SPARE = 1 << 16  # values without rows that may stay


@njit(cache=True, nogil=True)
def _first_rows(codes, before, first):
    """The first row of each code from `before` on, which came in that order."""
    n = before
    for i in range(len(codes)):
        if codes[i] == n:
            first[n - before] = i
            n += 1


@dataclass(frozen=True, slots=True)
class PartCounts:
    """Of one sub-window, known by its number of rows and its first and last arrival number: codes
    int32[d], counts int32[d]."""

    known: tuple[int, int, int]
    codes: np.ndarray
    counts: np.ndarray

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + self.counts.nbytes)


@dataclass(slots=True)
class Begun:
    """A sub-window of which `done` rows are counted: times int64, by code."""

    known: tuple[int, int, int]
    done: int = 0
    times: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(slots=True)
class WindowCounts:
    """column   position of the column in the stream
    parts    counted sub-windows, by number
    values   by code, in chunks;  total: int64, by code, of the parts in `inside`
    unasked  sub-windows that were counted since they were last asked for
    alive    values with rows, when that was last looked at
    """

    column: int
    parts: dict[int, PartCounts] = field(default_factory=dict)
    span: int = 0
    intern: Intern = field(default_factory=lambda: Intern(1))
    values: list[pa.Array] = field(default_factory=list)
    inside: set[int] = field(default_factory=set)
    total: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    updates: int = 0
    unasked: int = 0
    alive: int = 0
    begun: Begun | None = None

    def follow(self, ring: Ring, most: int) -> bool:
        """Let go of what has left the ring and count what was closed, youngest first, up to `most`
        rows.  True: all of it is counted."""
        if ring.span != self.span:
            self._reset(ring.span)
        there = {sub.number for sub in ring.closed}
        for number in [n for n in self.parts if n not in there]:
            self._drop(number)
        for sub in reversed(ring.closed):
            if not self.covers(sub):
                most -= self._count(sub, most)
                if not self.covers(sub):
                    return False
        return True

    def covers(self, sub: SubWindow) -> bool:
        """Whether that sub-window, as it is, is counted."""
        part = self.parts.get(sub.number)
        return part is not None and part.known == known(sub.rows)

    def complete(self, ring: Ring) -> bool:
        """Whether all closed sub-windows of the ring are counted."""
        return ring.span == self.span and all(map(self.covers, ring.closed))

    def whole(self, sub: SubWindow, since: int, upto: int) -> bool:
        """Whether that sub-window is counted, and has no other rows than with ts in (since,
        upto]."""
        return bool(sub.rows.ts[0] > since and sub.rows.ts[-1] <= upto) and self.covers(sub)

    def counted(
        self, subs: Iterable[SubWindow], since: int, upto: int
    ) -> tuple[pa.Array, np.ndarray]:
        """The values in rows of the sub-windows with ts in (since, upto], and how often each
        occurs."""
        self.unasked = 0
        whole, rest = set[int](), list[Batch]()
        for sub in subs:
            if self.whole(sub, since, upto):
                whole.add(sub.number)
            else:
                rest.append(between(sub.rows, since, upto))
        self._move(whole)
        codes = [self._codes(rows.cols[self.column]) for rows in rest if len(rows)]
        total = self._room(self.total)
        if codes:
            total = total + np.bincount(np.concatenate(codes), minlength=len(total))
        live = np.flatnonzero(total)
        return self._values().take(pa.array(live)), total[live]

    # -- inside ------------------------------------------------------------------------------------

    def _reset(self, span: int) -> None:
        self.parts.clear()
        self.inside.clear()
        self.begun = None
        self.intern, self.values, self.total = Intern(1), [], np.zeros(0, np.int64)
        self.span = span

    def _drop(self, number: int) -> None:
        part = self.parts.pop(number)
        if number in self.inside:
            self.inside.discard(number)
            self.total[part.codes] -= part.counts

    def _count(self, sub: SubWindow, most: int) -> int:
        """Count up to `most` rows more of a sub-window; how many that were."""
        if sub.number in self.parts:
            self._drop(sub.number)
        which, begun = known(sub.rows), self.begun
        if begun is None or begun.known != which:
            begun = self.begun = Begun(which)
        stop = min(begun.done + max(most, 0), len(sub.rows))
        codes = self._codes(sub.rows.cols[self.column].slice(begun.done, stop - begun.done))
        begun.times = self._room(begun.times) + np.bincount(codes, minlength=self.intern.capacity)
        counted, begun.done = stop - begun.done, stop
        if stop == len(sub.rows):
            present = np.flatnonzero(begun.times).astype(np.int32)
            counts = begun.times[present].astype(np.int32)
            self.parts[sub.number], self.begun = PartCounts(which, present, counts), None
            self.updates += 1
            self.unasked += 1
        return counted

    def _codes(self, col: pa.Array) -> np.ndarray:
        """The code of each value; new ones become known."""
        before = self.intern.capacity
        codes = self.intern.codes([col], len(col))
        if self.intern.capacity > before:
            first = _first(codes, before, self.intern.capacity)
            self.values.append(col.take(pa.array(first)))
        return codes

    def _values(self) -> pa.Array:
        if len(self.values) > 1:
            self.values = [pa.concat_arrays(self.values)]
        return self.values[0] if self.values else pa.nulls(0)

    def _room(self, total: np.ndarray) -> np.ndarray:
        more = self.intern.capacity - len(total)
        return np.concatenate([total, np.zeros(more, np.int64)]) if more > 0 else total

    def _move(self, whole: set[int]) -> None:
        """From now on `total` is of these."""
        self._purge()
        self.total = self._room(self.total)
        if 2 * len(whole & self.inside) < len(self.inside):  # less to do from the beginning
            self.total[:] = 0
            self.inside.clear()
        for number in self.inside - whole:
            part = self.parts[number]
            self.total[part.codes] -= part.counts
        for number in whole - self.inside:
            part = self.parts[number]
            self.total[part.codes] += part.counts
        self.inside = whole

    def _purge(self) -> None:
        """Forget values without rows, where they are many."""
        size = self.intern.size
        if size <= 2 * self.alive + SPARE:
            return
        used = np.zeros(size, np.bool_)
        for part in self.parts.values():
            used[part.codes] = True
        kept = np.flatnonzero(used)
        self.alive = len(kept)
        if size <= 2 * len(kept) + SPARE:
            return
        self.begun = None
        to, total = np.full(size, -1, np.int32), self._room(self.total)
        to[kept] = np.arange(len(kept))
        self.values = [self._values().take(pa.array(kept))]
        self.intern = Intern(1)
        self.intern.codes(self.values, len(kept))
        self.total = total[kept]
        self.parts = {n: PartCounts(p.known, to[p.codes], p.counts) for n, p in self.parts.items()}

    @property
    def rows(self) -> int:
        """Rows of the sub-windows that are counted."""
        return sum(p.known[0] for p in self.parts.values())

    @property
    def nbytes(self) -> int:
        held = sum(p.nbytes for p in self.parts.values()) + sum(v.nbytes for v in self.values)
        return held + self.intern.nbytes + int(self.total.nbytes)


def counted_anew(
    column: int, subs: Iterable[SubWindow], since: int, upto: int
) -> tuple[pa.Array, np.ndarray]:
    """`WindowCounts.counted` from nothing but the rows."""
    parts = [between(sub.rows, since, upto).cols[column] for sub in subs]
    col, intern = pa.concat_arrays(parts) if parts else pa.nulls(0), Intern(1)
    codes = intern.codes([col], len(col))
    first = _first(codes, 0, intern.capacity)
    return col.take(pa.array(first)), np.bincount(codes, minlength=intern.capacity)


def _first(codes: np.ndarray, before: int, upto: int) -> np.ndarray:
    """The first row of each of the codes before <= code < upto, which are new."""
    first = np.empty(upto - before, np.int64)
    _first_rows(codes, before, first)
    return first


def ready() -> None:
    """Have the kernels compiled or loaded now."""
    _first(np.zeros(1, np.int64), 0, 1)
