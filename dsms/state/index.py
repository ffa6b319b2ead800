"""An index over the closed sub-windows of a ring, on one column (Golab, Garg, Özsu 2004, §4, §5).

Each sub-window has an index of its own (`dsms.state.stores`), built once, after it is closed; when
it leaves the ring, that goes as a whole, and no row is touched.  A directory tells for each bucket
the youngest sub-window that has rows in it, and each sub-window the next older one: so sub-windows
without the value are passed over.  That is the backward-linked ring (BW, §5.3) with sub-windows as
its links; what has left ends a chain, so nothing is unlinked, and no bit is dirty (DB, §5.4).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from weakref import ref

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms.state.batch import Batch
from dsms.state.columns import numpy_true, numpy_values
from dsms.state.gathering import COLUMNS, ID, TS, Addresses, taken
from dsms.state.gathering import ready as gathering_ready
from dsms.state.probing import can_compare, compared, compared_all, places_at, walked
from dsms.state.probing import ready as probing_ready
from dsms.state.ring import Ring, SubWindow
from dsms.state.stores import BUCKETS, Buckets, buckets_of

NEVER = -1
LIKELY = 1 << 14  # spans that are found, at most, most of the time


@njit(cache=True, nogil=True)
def _link(present, serial, newest, slot, back, back_slot):
    """The youngest sub-window is `serial`; where each of its buckets was before, and where in
    there."""
    for at in range(len(present)):
        bucket = present[at]
        back[at] = newest[bucket]
        back_slot[at] = slot[bucket]
        newest[bucket] = serial
        slot[bucket] = at


@dataclass(frozen=True, slots=True)
class Part:
    """One sub-window: its number; its rows and first and last arrival number, by which it is known,
    and itself, while no other is in its place; and for each of its buckets the next older
    sub-window that has it (int64[d], by serial number), and its place there (uint16[d])."""

    number: int
    known: tuple[int, int, int]
    sub: ref[SubWindow]
    store: Buckets
    back: np.ndarray
    back_slot: np.ndarray

    def addresses(self) -> tuple[int, int, int, int, int]:
        """Where they lie (`probing`)."""
        places = places_at(self.store.places)
        starts, back, slot = (
            a.__array_interface__["data"][0] for a in (self.store.starts, self.back, self.back_slot)
        )
        return *places, starts, back, slot

    @property
    def nbytes(self) -> int:
        return self.store.nbytes + int(self.back.nbytes + self.back_slot.nbytes)


Places = tuple[Part, np.ndarray]  # a sub-window, and buckets there


def known(rows: Batch) -> tuple[int, int, int]:
    """By what a closed sub-window is known: its number of rows, first and last arrival number."""
    numbers = rows.ids[0]
    return len(numbers), numbers.item(0), numbers.item(-1)


@dataclass(slots=True)
class WindowIndex:
    """column   position of the column in the stream
    parts    of the oldest closed sub-windows of the ring, without a hole; the serial number of
             parts[0] is `first`
    version  another one whenever the parts change
    """

    column: int
    parts: list[Part] = field(default_factory=list)
    first: int = 0
    version: int = 0
    span: int = 0
    # by the number of a sub-window its serial number
    serial: dict[int, int] = field(default_factory=dict)
    newest: np.ndarray = field(default_factory=lambda: np.full(BUCKETS, NEVER, np.int64))
    slot: np.ndarray = field(default_factory=lambda: np.zeros(BUCKETS, np.uint16))
    _scratch: np.ndarray = field(default_factory=lambda: np.full(BUCKETS, -1, np.int32))
    _parts: tuple[int, np.ndarray] = (NEVER, np.empty((0, 5), np.int64))  # as of a version
    columns: Addresses = field(default_factory=Addresses)  # of the rows of sub-windows

    def follow(self, ring: Ring, most: int) -> bool:
        """Let go of what has left the ring and take in what was closed, oldest first, up to `most`
        rows (and one sub-window at least, if `most` is not 0).  True: all of it is here."""
        if ring.span != self.span or not self._fits(ring):
            self._reset(ring.span)
        while len(self.parts) < len(ring.closed) and most > 0:
            sub = ring.closed[len(self.parts)]
            self._take(sub)
            most -= len(sub.rows)
        return len(self.parts) == len(ring.closed)

    def _fits(self, ring: Ring) -> bool:
        """Drop what has left; False if what is left isn't what the ring begins with."""
        oldest = ring.closed[0].number if ring.closed else None
        gone = 0
        while gone < len(self.parts) and (oldest is None or self.parts[gone].number < oldest):
            gone += 1
        if gone:
            for part in self.parts[:gone]:
                del self.serial[part.number]
            del self.parts[:gone]
            self.first += gone
            self.version += 1
        n = len(self.parts)
        return not n or (
            n <= len(ring.closed)
            and self._same(0, ring.closed[0])
            and self._same(n - 1, ring.closed[n - 1])
        )

    def _same(self, k: int, sub: SubWindow) -> bool:
        return self.parts[k].number == sub.number and self.parts[k].known == known(sub.rows)

    def _reset(self, span: int) -> None:
        self.first += len(self.parts)
        self.parts.clear()
        self.serial.clear()
        self.newest.fill(NEVER)
        self.span = span
        self.version += 1

    def _take(self, sub: SubWindow) -> None:
        store = Buckets.of(sub.rows.cols[self.column], self._scratch)
        back = np.empty(len(store.present), np.int64)
        back_slot = np.empty(len(store.present), np.uint16)
        serial = self.first + len(self.parts)
        _link(store.present, serial, self.newest, self.slot, back, back_slot)
        self.serial[sub.number] = serial
        self.parts.append(Part(sub.number, known(sub.rows), ref(sub), store, back, back_slot))
        self.version += 1

    # -- probes ------------------------------------------------------------------------------------

    def find(self, values: pa.Array) -> Found:
        """Where rows of these values (of the column's type, none of them NULL) may be: from
        sub-window to sub-window that has a bucket."""
        buckets, parts = np.unique(buckets_of(values)).astype(np.int64), self.addressed()
        walk = (parts, self.first, self.newest, self.slot, buckets)
        spans = np.empty((min(len(buckets) * len(parts), LIKELY), 4), np.int64)
        n = walked(*walk, spans)
        if n > len(spans):
            spans = np.empty((n, 4), np.int64)
            walked(*walk, spans)
        count = int((spans[:n, 3] - spans[:n, 2]).sum())
        return Found(self, self.version, values, spans[:n], count)

    def addressed(self) -> np.ndarray:
        """Where what is known of each sub-window lies (`probing`)."""
        version, parts = self._parts
        if version != self.version:
            parts = np.array([p.addresses() for p in self.parts], np.int64).reshape(-1, 5)
            self._parts = self.version, parts
        return parts

    def covers(self, sub: SubWindow) -> bool:
        """Whether that sub-window, as it is, is in the index."""
        serial = self.serial.get(sub.number)
        if serial is None:
            return False
        part = self.parts[serial - self.first]
        return part.sub() is sub or part.known == known(sub.rows)

    @property
    def rows(self) -> int:
        """Rows of the sub-windows that are here."""
        return sum(p.known[0] for p in self.parts)

    @property
    def updates(self) -> int:
        """Sub-windows taken in so far."""
        return self.first + len(self.parts)

    @property
    def nbytes(self) -> int:
        return sum(p.nbytes for p in self.parts) + int(self.newest.nbytes + self.slot.nbytes)


@dataclass(slots=True)
class Found:
    """What an index found: `spans` (`probing.walked`) of places of rows that may be it; all of them
    `count`."""

    index: WindowIndex
    version: int
    values: pa.Array
    spans: np.ndarray
    count: int
    _places: dict[int, Places] | None = None

    @property
    def places(self) -> dict[int, Places]:
        """By number of a sub-window the buckets in which rows may be."""
        if self._places is None:
            found: dict[int, tuple[Part, list[int]]] = {}
            for k, at in self.spans[:, :2].tolist():
                part = self.index.parts[k]
                found.setdefault(part.number, (part, []))[1].append(at)
            self._places = {n: (part, np.array(at)) for n, (part, at) in found.items()}
        return self._places

    def covers(self, sub: SubWindow) -> bool:
        """Whether `rows` tells of that sub-window, as it is."""
        return self.index.covers(sub)

    def matching(self, rows: Batch) -> np.ndarray:
        """Which rows have one of the values, ascending."""
        col, values = rows.cols[self.index.column], self.values
        if len(values) == 1 and pa.types.is_int64(col.type) and not col.null_count:
            return np.flatnonzero(numpy_values(col) == values[0].as_py())
        if len(values) == 1:
            return np.flatnonzero(numpy_true(pc.equal(col, values[0])))
        if can_compare((col,), values):
            return compared_all(col, values)
        return np.flatnonzero(numpy_true(pc.is_in(col, value_set=values)))

    def rows(self, sub: SubWindow) -> np.ndarray:
        """The rows of a sub-window that have one of the values, ascending."""
        found = self.places.get(sub.number)
        if found is None:
            return np.empty(0, np.int64)
        part, at = found
        places = part.store.rows(at[0]) if len(at) == 1 else part.store.rows_of(at)
        return places[_among(sub.rows.cols[self.index.column], places, self.values)]

    def taken(self, subs: Sequence[SubWindow], used: Collection[int]) -> Batch | None:
        """Of sub-windows that the index covers, which follow each other, the rows that have one of
        the values; None: of columns that are not read together.  Columns that are not `used` are
        NULL."""
        table, at = self.index.columns.of(subs), COLUMNS + 2 * self.index.column
        first = self.index.serial[subs[0].number] - self.index.first
        last = self.index.serial[subs[-1].number] - self.index.first
        together = last - first == len(subs) - 1 and can_compare((), self.values)
        if not (together and table[:, [TS, ID, at]].all()):
            return None
        part, _, start, end = self.spans.T
        here = (part >= first) & (part <= last)
        of, part, start, end = part[here] - first, part[here], start[here], end[here]
        where = np.hstack([self.index.addressed()[part][:, :2], table[of, at : at + 2]])
        span, place = compared(where, np.arange(len(of)), start, end, self.values)
        of = of[span]
        order = np.lexsort((place, of))
        return taken(subs, table, of[order], place[order], used)

    def among(self, subs: Sequence[SubWindow]) -> list[tuple[Batch, np.ndarray]]:
        """Of sub-windows that the index covers those with rows that may have one of the values, and
        the rows that have one, ascending."""
        return [(s.rows, self.rows(s)) for s in subs if s.number in self.places]


def _among(col: pa.Array, places: np.ndarray, values: pa.Array) -> np.ndarray:
    """Which of the values at those places are one of `values`, bool[n]."""
    if len(values) == 1 and pa.types.is_int64(col.type) and not col.null_count:
        return numpy_values(col)[places] == values[0].as_py()
    return numpy_true(pc.is_in(col.take(pa.array(places)), value_set=values))


def ready() -> None:
    """Have the kernels compiled or loaded now."""
    Buckets.ready()
    probing_ready()
    gathering_ready()
    ring, rows = (
        Ring(),
        Batch(np.zeros(1, np.int64), None, None, (np.zeros(1, np.int64),), (pa.array([1]),)),
    )
    ring.closed.append(SubWindow(0, rows))
    index = WindowIndex(0)
    index.follow(ring, 1)
    index.find(rows.cols[0])
