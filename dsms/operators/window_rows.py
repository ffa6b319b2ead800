"""Count windows: [ROWS n], [ROWS n UNTIL m AGO], [PARTITION BY c ROWS n].

A row leaves when the n-th row after it comes, so its death is not known when it enters (STR) and is announced.  The
window is taken after the whole instant: a row that n younger ones of its own instant push out never enters.
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
        enter, leave = now - self.until, now - self.length  # row p enters with row p + until, leaves with p + length
        born, dies = enter >= self.store.dead, leave >= self.store.dead
        enter, at_in = enter[born], ts[now[born]]
        leave, at_out = leave[dies], ts[now[dies]]
        out = self._events(enter, at_in, leave, at_out)
        if len(leave):  # a queue: the dead are always a prefix of the slots
            self.store.bury(np.arange(self.store.dead, int(leave[-1]) + 1, dtype=np.int64))
            self.store.compact()
        return out

    def _events(self, enter: np.ndarray, at_in: np.ndarray, leave: np.ndarray, at_out: np.ndarray) -> Batch:
        if len(enter) and len(leave):
            both, i, j = np.intersect1d(enter, leave, assume_unique=True, return_indices=True)
            flash = at_in[i] == at_out[j]
            if len(both) and flash.any():
                enter, at_in = np.delete(enter, i[flash]), np.delete(at_in, i[flash])
                leave, at_out = np.delete(leave, j[flash]), np.delete(at_out, j[flash])
        return signed(self.store, np.concatenate([leave, enter]), np.concatenate([at_out, at_in]), len(leave))

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
def _push_out(codes, slots, ts, length, first, last, count, link, out, flash):
    """Each new row joins its partition's queue; where that makes more than `length`, the oldest leaves at its ts.

    out[i] is the slot that leaves with new row i, or -1; flash[slot - slots[0]] marks new rows that never enter."""
    for i in range(len(codes)):
        c, slot = codes[i], slots[i]
        link[slot] = -1
        if count[c] == 0:
            first[c] = slot
        else:
            link[last[c]] = slot
        last[c] = slot
        count[c] += 1
        out[i] = -1
        if count[c] > length:
            gone = first[c]
            first[c] = link[gone]
            count[c] -= 1
            if gone >= slots[0] and ts[gone] == ts[slot]:
                flash[gone - slots[0]] = True
            else:
                out[i] = gone


@dataclass(slots=True)
class PartitionedWindowOp:
    """The newest `length` rows of each partition.  Partitions do not expire: state grows with their number."""

    length: int
    partition: tuple[int, ...]
    schema: Schema
    width: int
    store: RowStore = field(init=False)
    codes: Intern = field(init=False)
    first: Vec = field(default_factory=Vec)
    last: Vec = field(default_factory=Vec)
    count: Vec = field(default_factory=Vec)

    def __post_init__(self) -> None:
        self.store = RowStore(self.schema, self.width)
        self.store.extra["link"] = Vec()
        self.codes = Intern(len(self.partition))

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        n = len(rows)
        codes = self.codes.codes([rows.cols[k] for k in self.partition], n)
        for vec in (self.first, self.last, self.count):
            vec.extend_fill(self.codes.capacity - vec.n, 0)
        slots = self.store.append(rows)
        link, ts = self.store.extra["link"], self.store.ts.view
        link.extend_fill(n, -1)
        gone, flash = np.empty(n, np.int64), np.zeros(n, np.bool_)
        queues = (self.first.data, self.last.data, self.count.data, link.data)
        _push_out(codes, slots, ts, self.length, *queues, gone, flash)
        leave, enter = gone[gone >= 0], slots[~flash]
        at = np.concatenate([ts[slots[gone >= 0]], ts[enter]])
        out = signed(self.store, np.concatenate([leave, enter]), at, len(leave))
        self.store.bury(np.concatenate([leave, slots[flash]]))
        self._close(self.store.compact())
        return out

    def _close(self, where: np.ndarray | None) -> None:
        if where is None:
            return
        full = self.count.view > 0
        for vec in (self.first, self.last):
            vec.view[full] = where[vec.view[full]]
        link = self.store.extra["link"].view
        link[link >= 0] = where[link[link >= 0]]

    def live(self) -> int:
        return self.store.live

    def nbytes(self) -> int:
        return self.store.nbytes + self.codes.nbytes + self.first.nbytes * 3

    def next_due(self) -> int:
        return FOREVER
