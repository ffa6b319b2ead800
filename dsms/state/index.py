"""An index over the closed sub-windows of a ring, on one column (Golab, Garg, Özsu 2004, §4, §5).

Each sub-window has an index of its own (`dsms.state.stores`), built once, after it is closed; when
it leaves the ring, that goes as a whole, and no row is touched.  A directory tells for each bucket
the youngest sub-window that has rows in it, and each sub-window the next older one: so sub-windows
without the value are passed over.  That is the backward-linked ring (BW, §5.3) with sub-windows as
its links; what has left ends a chain, so nothing is unlinked, and no bit is dirty (DB, §5.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms.state.batch import Batch
from dsms.state.columns import numpy_true, numpy_values
from dsms.state.probing import address, can_compare, compared
from dsms.state.probing import ready as probing_ready
from dsms.state.ring import Ring, SubWindow
from dsms.state.stores import BUCKETS, Buckets, buckets_of

NEVER = -1
MANY = 16  # buckets from which each sub-window is asked for all of them at once


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
    """One sub-window: its number, rows and first and last arrival number, by which it is known; and
    for each of its buckets the next older sub-window that has it (int64[d], by serial number), and
    its place there (uint16[d])."""

    number: int
    known: tuple[int, int, int]
    store: Buckets
    back: np.ndarray
    back_slot: np.ndarray

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
        self.parts.append(Part(sub.number, known(sub.rows), store, back, back_slot))
        self.version += 1

    # -- probes ------------------------------------------------------------------------------------

    def find(self, values: pa.Array) -> Found:
        """Where rows of these values (of the column's type, none of them NULL) may be."""
        buckets = set(buckets_of(values).tolist())
        if len(buckets) <= MANY:
            return self._linked(values, buckets)
        found = self._each(np.array(sorted(buckets)))
        count = sum(part.store.counted(at) for part, at in found.values())
        return Found(self, self.version, values, found, count)

    def _linked(self, values: pa.Array, buckets: Iterable[int]) -> Found:
        """From sub-window to sub-window that has a bucket."""
        found: dict[int, tuple[Part, list[int]]] = {}
        count = 0
        for bucket in buckets:
            serial, at = int(self.newest[bucket]), int(self.slot[bucket])
            while serial >= self.first:
                part = self.parts[serial - self.first]
                found.setdefault(part.number, (part, []))[1].append(at)
                count += int(part.store.starts[at + 1]) - int(part.store.starts[at])
                serial, at = int(part.back[at]), int(part.back_slot[at])
        places = {number: (part, np.array(at)) for number, (part, at) in found.items()}
        return Found(self, self.version, values, places, count)

    def _each(self, buckets: np.ndarray) -> dict[int, Places]:
        """All sub-windows, one after the other."""
        wanted = np.zeros(BUCKETS, np.bool_)
        wanted[buckets] = True
        some = ((p, np.flatnonzero(wanted[p.store.present])) for p in self.parts)
        return {part.number: (part, at) for part, at in some if len(at)}

    def covers(self, sub: SubWindow) -> bool:
        """Whether that sub-window, as it is, is in the index."""
        serial = self.serial.get(sub.number)
        return serial is not None and self.parts[serial - self.first].known == known(sub.rows)

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


@dataclass(frozen=True, slots=True)
class Found:
    """What an index found: by number of a sub-window the buckets in which rows may be; all of them
    `count`."""

    index: WindowIndex
    version: int
    values: pa.Array
    places: dict[int, Places]
    count: int

    def covers(self, sub: SubWindow) -> bool:
        """Whether `rows` tells of that sub-window, as it is."""
        return self.index.covers(sub)

    def matching(self, rows: Batch) -> np.ndarray:
        """Which rows have one of the values, ascending."""
        col, values = rows.cols[self.index.column], self.values
        if len(values) == 1 and can_compare((col,), values) and pa.types.is_int64(col.type):
            return np.flatnonzero(numpy_values(col) == values[0].as_py())
        if len(values) == 1:
            return np.flatnonzero(numpy_true(pc.equal(col, values[0])))
        return np.flatnonzero(numpy_true(pc.is_in(col, value_set=values)))

    def rows(self, sub: SubWindow) -> np.ndarray:
        """The rows of a sub-window that have one of the values, ascending."""
        found = self.places.get(sub.number)
        if found is None:
            return np.empty(0, np.int64)
        part, at = found
        places = part.store.rows(at[0]) if len(at) == 1 else part.store.rows_of(at)
        return places[_among(sub.rows.cols[self.index.column], places, self.values)]

    def among(self, subs: Sequence[SubWindow]) -> list[tuple[Batch, np.ndarray]]:
        """Of sub-windows that the index covers those with rows that have one of the values, and
        these rows, ascending."""
        column = self.index.column
        some = [s for s in subs if s.number in self.places]
        if not can_compare([s.rows.cols[column] for s in some], self.values):
            return [(s.rows, self.rows(s)) for s in some]
        if not some:
            return []
        parts = [self.places[s.number] for s in some]
        where = np.array(
            [
                address(part.store.places, sub.rows.cols[column])
                for sub, (part, _) in zip(some, parts, strict=True)
            ],
            np.int64,
        )
        of = np.repeat(np.arange(len(some)), [len(at) for _, at in parts])
        first = np.concatenate([part.store.starts[at] for part, at in parts]).astype(np.int64)
        end = np.concatenate([part.store.starts[at + 1] for part, at in parts]).astype(np.int64)
        span, places = compared(where, of, first, end, self.values)
        owner = of[span]
        if len(of) > len(some):
            order = np.lexsort((places, owner))
            owner, places = owner[order], places[order]
        cuts = np.searchsorted(owner, np.arange(len(some) + 1)).tolist()
        return [
            (sub.rows, places[start:stop])
            for sub, start, stop in zip(some, cuts, cuts[1:], strict=False)
            if stop > start
        ]


def _among(col: pa.Array, places: np.ndarray, values: pa.Array) -> np.ndarray:
    """Which of the values at those places are one of `values`, bool[n]."""
    if len(values) == 1 and pa.types.is_int64(col.type) and not col.null_count:
        return numpy_values(col)[places] == values[0].as_py()
    return numpy_true(pc.is_in(col.take(pa.array(places)), value_set=values))


def ready() -> None:
    """Have the kernels compiled or loaded now."""
    Buckets.ready()
    probing_ready()
    ring, rows = (
        Ring(),
        Batch(np.zeros(1, np.int64), None, None, (np.zeros(1, np.int64),), (pa.array([1]),)),
    )
    ring.closed.append(SubWindow(0, rows))
    WindowIndex(0).follow(ring, 1)
