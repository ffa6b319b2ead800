"""Count windows: [ROWS n], [ROWS n UNTIL m AGO], [PARTITION BY c ROWS n].

A row leaves when the n-th row after it comes, so its death is not known when it enters (STR) and is
announced.  The window is taken after the whole instant: a row that n younger ones of its own
instant push out never enters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.sql.types import FOREVER, Schema
from dsms.state.batch import Batch
from dsms.state.intern import Intern
from dsms.state.rows import RowStore
from dsms.state.vec import Vec

# no instant at which a row enters (ALWAYS is one: that of an aggregate over nothing)
VOID = FOREVER - 1


@dataclass(slots=True)
class RowsWindowOp:
    """The newest `length` rows by (ts, arrival), less the newest `until` of them."""

    length: int
    until: int
    schema: Schema
    width: int
    store: RowStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = RowStore(self.schema, self.width)

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        old = len(self.store)
        self.store.append(rows)
        ts, now = self.store.ts.view, np.arange(old, len(self.store), dtype=np.int64)
        # row p enters with row p + until, leaves with p + length
        enter, leave = now - self.until, now - self.length
        born, dies = enter >= self.store.dead, leave >= self.store.dead
        enter, at_in = enter[born], ts[now[born]]
        leave, at_out = leave[dies], ts[now[dies]]
        out = self._events(enter, at_in, leave, at_out)
        if len(leave):  # a queue: the dead are always a prefix of the slots
            self.store.bury(np.arange(self.store.dead, int(leave[-1]) + 1, dtype=np.int64))
            self.store.compact()
        return out

    def _events(
        self, enter: np.ndarray, at_in: np.ndarray, leave: np.ndarray, at_out: np.ndarray
    ) -> Batch:
        if len(enter) and len(leave):
            both, i, j = np.intersect1d(enter, leave, assume_unique=True, return_indices=True)
            flash = at_in[i] == at_out[j]
            if len(both) and flash.any():
                enter, at_in = np.delete(enter, i[flash]), np.delete(at_in, i[flash])
                leave, at_out = np.delete(leave, j[flash]), np.delete(at_out, j[flash])
        return signed(
            self.store, np.concatenate([leave, enter]), np.concatenate([at_out, at_in]), len(leave)
        )

    def live(self) -> int:
        return self.store.live

    def nbytes(self) -> int:
        return self.store.nbytes

    def next_due(self) -> int:
        return FOREVER


def signed(store: RowStore, slots: np.ndarray, at: np.ndarray, deaths: int) -> Batch:
    """Stored rows as a batch: the first `deaths` are deletions; both parts are in instant order."""
    sign = np.ones(len(slots), np.int8)
    sign[:deaths] = -1
    order = np.lexsort((sign, at))
    return store.batch(slots[order], at[order], sign[order], np.full(len(slots), FOREVER, np.int64))


@njit(cache=True, nogil=True)
def _push_through(
    codes, slots, ts, length, until, first, middle, last, count, link, entered, enter, leave
):
    """Each new row joins its partition's queue of the newest `length` rows, of which the newest
    `until` wait.

    enter[i], leave[i] are the slots that enter and leave the window with new row i, or -1.  A row
    that would leave at the instant at which it entered does neither: entered[slot] is then VOID,
    and its `enter` is void.  middle[c] is the oldest row that waits; count[c] rows are in the
    queue, entered and waiting."""
    for i in range(len(codes)):
        c, slot, now = codes[i], slots[i], ts[slots[i]]
        link[slot] = -1
        if count[c] == 0:
            first[c] = slot
        else:
            link[last[c]] = slot
        if middle[c] < 0:
            middle[c] = slot
        last[c] = slot
        count[c] += 1
        enter[i] = leave[i] = -1
        if count[c] > until:
            enter[i] = middle[c]
            entered[middle[c]] = now
            middle[c] = link[middle[c]]
        if count[c] > length:
            gone = first[c]
            first[c] = link[gone]
            count[c] -= 1
            if entered[gone] == now:
                entered[gone] = VOID
            else:
                leave[i] = gone


@dataclass(slots=True)
class PartitionedWindowOp:
    """The newest `length` rows of each partition, less the newest `until` of them.

    Partitions do not expire: state grows with their number."""

    length: int
    until: int
    partition: tuple[int, ...]
    schema: Schema
    width: int
    store: RowStore = field(init=False)
    codes: Intern = field(init=False)
    first: Vec = field(default_factory=Vec)
    middle: Vec = field(default_factory=Vec)
    last: Vec = field(default_factory=Vec)
    count: Vec = field(default_factory=Vec)

    def __post_init__(self) -> None:
        self.store = RowStore(self.schema, self.width)
        self.store.extra.update(link=Vec(), entered=Vec())
        self.codes = Intern(len(self.partition))

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        n = len(rows)
        codes = self.codes.codes([rows.cols[k] for k in self.partition], n)
        for vec, blank in ((self.first, -1), (self.middle, -1), (self.last, -1), (self.count, 0)):
            vec.extend_fill(self.codes.capacity - vec.n, blank)
        slots = self.store.append(rows)
        link, entered, ts = (
            self.store.extra["link"],
            self.store.extra["entered"],
            self.store.ts.view,
        )
        link.extend_fill(n, -1)
        entered.extend_fill(n, FOREVER)
        enter, leave = np.empty(n, np.int64), np.empty(n, np.int64)
        queues = (
            self.first.data,
            self.middle.data,
            self.last.data,
            self.count.data,
            link.data,
            entered.data,
        )
        _push_through(codes, slots, ts, self.length, self.until, *queues, enter, leave)
        at_in, at_out = ts[slots[enter >= 0]], ts[slots[leave >= 0]]
        enter, leave = enter[enter >= 0], leave[leave >= 0]
        real = entered.view[enter] != VOID
        flash = enter[~real]
        at = np.concatenate([at_out, at_in[real]])
        out = signed(self.store, np.concatenate([leave, enter[real]]), at, len(leave))
        self.store.bury(np.concatenate([leave, flash]))
        self._close(self.store.compact())
        return out

    def _close(self, where: np.ndarray | None) -> None:
        if where is None:
            return
        full = self.count.view > 0
        for vec in (self.first, self.last):
            vec.view[full] = where[vec.view[full]]
        for linked in (self.store.extra["link"].view, self.middle.view):
            linked[linked >= 0] = where[linked[linked >= 0]]

    def live(self) -> int:
        return self.store.live

    def nbytes(self) -> int:
        return self.store.nbytes + self.codes.nbytes + self.first.nbytes * 4

    def next_due(self) -> int:
        return FOREVER
