"""The structures that find what has expired: FIFO queue, calendar queue, searched list (Golab 2006,
§2.3.3, §3.5.2).

All work on the slots of one `RowStore`.  `due(checks)` is given the instants at which the operator
looks (ascending, the last is the query's clock) and answers the live slots with exp <= the last
one, ordered by exp.  A FIFO or calendar queue touches only what is due; the list of the DIRECT
strategy is searched from end to end at each look.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numba import njit

from dsms.plan.physical import State
from dsms.sql.types import FOREVER
from dsms.state.rows import RowStore
from dsms.state.vec import Vec

NONE = np.empty(0, np.int64)


class Expiry(Protocol):
    """Finds expired slots of a store."""

    def insert(self, slots: np.ndarray) -> None:
        """Rows have been stored at `slots`."""
        ...

    def due(self, checks: np.ndarray) -> np.ndarray:
        """Live slots with exp <= checks[-1], by exp then slot; they are forgotten here."""
        ...

    def moved(self) -> None:
        """The store was compacted."""
        ...

    def next_due(self) -> int:
        """Not later than the earliest expiry (µs); FOREVER if none."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes beside the store."""
        ...


@dataclass(slots=True)
class Never:
    """Nothing expires by itself: deletions are announced, or state only grows."""

    store: RowStore

    def insert(self, slots: np.ndarray) -> None:
        return

    def due(self, checks: np.ndarray) -> np.ndarray:
        return NONE

    def moved(self) -> None:
        return

    def next_due(self) -> int:
        return FOREVER

    @property
    def nbytes(self) -> int:
        return 0


@dataclass(slots=True)
class Fifo:
    """Expiry order is arrival order: a queue."""

    store: RowStore
    head: int = 0

    def insert(self, slots: np.ndarray) -> None:
        return

    def due(self, checks: np.ndarray) -> np.ndarray:
        exp = self.store.exp.view[self.head :]
        stop = self.head + int(np.searchsorted(exp, checks[-1], side="right"))
        slots = np.arange(self.head, stop, dtype=np.int64)
        self.head = stop
        return slots[self.store.alive.view[slots]] if self.store.dead else slots

    def moved(self) -> None:
        self.head = 0

    def next_due(self) -> int:
        return int(self.store.exp.view[self.head]) if self.head < self.store.exp.n else FOREVER

    @property
    def nbytes(self) -> int:
        return 0


@njit(cache=True, nogil=True)
def _search(exp, ts, alive, checks):
    """What each look at instants `checks` finds expired, searching everything stored by then."""
    out = np.empty(len(exp), np.int64)
    gone = np.zeros(len(exp), np.bool_)
    found = 0
    stored = 0
    for now in checks:
        while stored < len(ts) and ts[stored] <= now:
            stored += 1
        for slot in range(stored):
            if exp[slot] <= now and alive[slot] and not gone[slot]:
                gone[slot] = True
                out[found] = slot
                found += 1
    return out[:found]


@dataclass(slots=True)
class Searched:
    """A list in arrival order: the whole of it is read at every look (the direct approach of Golab
    2006, §2.3.3)."""

    store: RowStore

    def insert(self, slots: np.ndarray) -> None:
        return

    def due(self, checks: np.ndarray) -> np.ndarray:
        exp = self.store.exp.view
        return by_expiry(_search(exp, self.store.ts.view, self.store.alive.view, checks), exp)

    def moved(self) -> None:
        return

    def next_due(self) -> int:
        exp = self.store.exp.view[self.store.alive.view]
        return int(exp.min()) if len(exp) else FOREVER

    @property
    def nbytes(self) -> int:
        return 0


def by_expiry(slots: np.ndarray, exp: np.ndarray) -> np.ndarray:
    """Slots ordered by (exp, slot)."""
    return slots if _ordered(slots, exp) else slots[np.lexsort((slots, exp[slots]))]


@njit(cache=True, nogil=True)
def _sooner(exp, a, b):
    return exp[a] < exp[b] or (exp[a] == exp[b] and a < b)


@njit(cache=True, nogil=True)
def _ordered(slots, exp):
    for i in range(1, len(slots)):  # noqa: SIM110
        if _sooner(exp, slots[i], slots[i - 1]):
            return False
    return True


@njit(cache=True, nogil=True)
def _file(head, link, exp, slots, width):
    days = len(head)
    for slot in slots:
        if exp[slot] != FOREVER:
            day = (exp[slot] // width) % days
            link[slot] = head[day]
            head[day] = slot


@njit(cache=True, nogil=True)
def _push(heap, n, exp, slot):
    """Into a binary heap of n slots, the earliest expiry (of those the smallest slot) on top."""
    while n > 0 and _sooner(exp, slot, heap[(n - 1) // 2]):
        heap[n] = heap[(n - 1) // 2]
        n = (n - 1) // 2
    heap[n] = slot


@njit(cache=True, nogil=True)
def _pop(heap, n, exp):
    """Take the top out of a heap of n slots."""
    last = heap[n - 1]
    at = 0
    while 2 * at + 1 < n - 1:
        child = 2 * at + 1
        if child + 1 < n - 1 and _sooner(exp, heap[child + 1], heap[child]):
            child += 1
        if not _sooner(exp, heap[child], last):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last


@njit(cache=True, nogil=True)
def _visit(head, link, exp, alive, checks, start, width, heap, n, out):
    """Empty the days from `start` on of what is due at each of `checks`; dead slots are unlinked on
    the way.

    What is due later on the last day goes to the heap of n slots, so no day is read twice.  Answers
    how many slots were written to `out`, and the new n."""
    days = len(head)
    found = 0
    for now in checks:
        today = now // width
        for day in range(max(start, today - days + 1), today + 1):
            before = -1
            slot = head[day % days]
            while slot >= 0:
                after = link[slot]
                if alive[slot] and exp[slot] // width > today:  # a later turn of the circle
                    before = slot
                else:
                    if before < 0:
                        head[day % days] = after
                    else:
                        link[before] = after
                    if alive[slot] and exp[slot] <= now:
                        out[found] = slot
                        found += 1
                    elif alive[slot]:
                        _push(heap, n, exp, slot)
                        n += 1
                slot = after
        start = today
        while n > 0 and exp[heap[0]] <= now:
            if alive[heap[0]]:
                out[found] = heap[0]
                found += 1
            _pop(heap, n, exp)
            n -= 1
    return found, n


@njit(cache=True, nogil=True)
def _first(head, link, exp, alive, start, width):
    """The earliest expiry filed under a day.  It is exact: if only the day were known, a caller
    that goes from instant to instant would try each instant of that day."""
    days = len(head)
    for day in range(start, start + days):
        first = FOREVER
        slot = head[day % days]
        while slot >= 0:
            if alive[slot] and exp[slot] // width <= day and exp[slot] < first:
                first = exp[slot]
            slot = link[slot]
        if first != FOREVER:
            return first
    return FOREVER


@dataclass(slots=True)
class Calendar:
    """Calendar queue: a circular array of buckets ("days") by expiry instant; the present day
    sorted (in a heap).

    partitions  number of days; with `adjust` it doubles as rows crowd in.  The width of a day is
                the longest lifetime
    seen divided by the number of days, so one turn of the circle (that many days and the present
    one) is one window.
    """

    store: RowStore
    partitions: int = 64
    adjust: bool = True
    width: int = 0
    head: np.ndarray = field(default_factory=lambda: NONE)
    link: Vec = field(default_factory=Vec)
    now: int | None = None  # the last look; nothing that is held expires before it
    day: int = 0  # days before this one are empty
    span: int = 0
    held: int = 0
    heap: np.ndarray = field(default_factory=lambda: NONE)
    heaped: int = 0

    def insert(self, slots: np.ndarray) -> None:
        self.link.extend_fill(self.store.exp.n - self.link.n, -1)
        if not len(slots):
            return
        exp, ts = self.store.exp.view[slots], self.store.ts.view[slots]
        mortal = exp != FOREVER
        if not mortal.any():
            return
        span = int((exp[mortal] - ts[mortal]).max())
        if self.now is None:
            self.now = int(ts[mortal].min())
        self.held += int(mortal.sum())
        if span > 2 * self.span or (
            self.adjust and self.held > 32 * self.partitions and self.partitions < 8192
        ):
            self._resize(max(span, self.span))
            return
        _file(self.head, self.link.data, self.store.exp.view, slots, self.width)

    def _resize(self, span: int) -> None:
        alive = np.flatnonzero(self.store.alive.view & (self.store.exp.view != FOREVER))
        while self.adjust and len(alive) > 16 * self.partitions and self.partitions < 8192:
            self.partitions *= 2
        assert self.now is not None
        self.span, self.width = span, max(1, -(-span // self.partitions))
        self.head = np.full(self.partitions + 1, -1, np.int64)
        self.day = self.now // self.width
        self.heaped = 0
        self.held = len(alive)
        _file(self.head, self.link.data, self.store.exp.view, alive, self.width)

    def due(self, checks: np.ndarray) -> np.ndarray:
        if not self.held:
            return NONE
        self.now = int(checks[-1])
        out = np.empty(self.held, np.int64)
        exp, alive = self.store.exp.view, self.store.alive.view
        self._make_room()
        circle = (self.head, self.link.data, exp, alive, checks, self.day, self.width)
        found, self.heaped = _visit(*circle, self.heap, self.heaped, out)
        self.day = self.now // self.width
        self.held -= found
        return by_expiry(out[:found], exp)

    def _make_room(self) -> None:
        """Heap room for everything held, which is at most what one look can put there."""
        if len(self.heap) < self.held:
            grown = np.empty(2 * self.held, np.int64)
            grown[: self.heaped] = self.heap[: self.heaped]
            self.heap = grown

    def moved(self) -> None:
        self.link.n = 0
        self.link.extend_fill(self.store.exp.n, -1)
        if self.span:
            self._resize(self.span)

    def next_due(self) -> int:
        if not self.held:
            return FOREVER
        exp = self.store.exp.view
        day = int(
            _first(self.head, self.link.data, exp, self.store.alive.view, self.day, self.width)
        )
        return min(day, int(exp[self.heap[0]])) if self.heaped else day

    @property
    def nbytes(self) -> int:
        return int(self.head.nbytes + self.link.nbytes + self.heap.nbytes)


def expiry_of(state: State, store: RowStore) -> Expiry:
    """The structure that the planner chose."""
    match state.kind:
        case "fifo":
            return Fifo(store)
        case "calendar":
            return Calendar(store, state.partitions or 64, adjust=not state.fixed)
        case "list":
            return Searched(store)
        case _:
            return Never(store)
