"""[PARTITION BY c ROWS n RANGE t]: the newest n rows of each partition, as long as they are younger
than t.

Input    append-only (MON).
State    those rows, by partition; partitions without any are let go.
Cost     O(1) a row.
Output   STR: a row leaves when the n-th row of its partition after it comes, or t after it came,
         whichever is first.  Both are announced.

It is [PARTITION BY c ROWS n] (Golab 2006, §2.1) over [RANGE t]: of rows that are too old none is
counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.operators.timeline import Timeline
from dsms.operators.window import dated
from dsms.operators.window_rows import VOID, signed
from dsms.sql.types import FOREVER, Schema
from dsms.sql.window import Partitioned
from dsms.state.batch import Batch
from dsms.state.intern import Intern
from dsms.state.rows import RowStore
from dsms.state.vec import Vec

OUT = -2  # the link of a row that is in no queue any more


@njit(cache=True, nogil=True)
def _age(slot, code, link, entered, first, middle, count, waits):
    """Take the oldest row out of its partition's queue; whether it was in the window."""
    c = code[slot]
    inside = entered[slot] != FOREVER
    if not inside:
        middle[c] = link[slot]
        waits[c] -= 1
    first[c] = link[slot]
    count[c] -= 1
    link[slot] = OUT
    return inside


@njit(cache=True, nogil=True)
def _push_aged(
    new, head, now, length, until, age, born, at, code, link, entered, first, middle, last, count,
    waits, enter, leave, aged, silent,
):  # a long list  # fmt: skip
    """Each row from slot `new` on joins its partition's queue of the newest `length` rows, of which
    the newest `until` wait; rows leave their queue `age` after they were `born`.

    enter[i], leave[i]  the slots that enter and leave the window with the i-th new row, or -1; both
                        void where a row would leave at the instant at which it entered, whose
                        entered[slot] is then VOID
    aged, silent        are filled with the slots that have grown too old, in the window and before
                        they entered it
    head                the first slot that may be in a queue.  Answers that of the next call, and
                        how many there are of both kinds."""
    n, old, never = len(link), 0, 0
    for slot in range(new, n + 1):
        time = born[slot] if slot < n else now
        while head < slot and (link[head] == OUT or born[head] + age <= time):
            if link[head] != OUT:
                if _age(head, code, link, entered, first, middle, count, waits):
                    aged[old] = head
                    old += 1
                else:
                    silent[never] = head
                    never += 1
            head += 1
        if slot == n:
            break
        c, i = code[slot], slot - new
        link[slot] = -1
        if count[c] == 0:
            first[c] = slot
        else:
            link[last[c]] = slot
        if middle[c] < 0:
            middle[c] = slot
        last[c] = slot
        count[c] += 1
        waits[c] += 1
        enter[i] = leave[i] = -1
        if waits[c] > until:
            m = middle[c]
            enter[i] = m
            entered[m] = at[slot]
            middle[c] = link[m]
            waits[c] -= 1
        if count[c] > length:
            gone = first[c]
            first[c] = link[gone]
            link[gone] = OUT
            count[c] -= 1
            if entered[gone] == at[slot]:
                entered[gone] = VOID
            else:
                leave[i] = gone
    return head, old, never


@dataclass(slots=True)
class AgedWindowOp:
    """`timeline`: instants of the input are points, and ages are counted in instants.

    first, middle, last  by partition: the slots of the oldest row, of the oldest that waits, and of
                         the newest;  count, waits: how many there are, and wait"""

    window: Partitioned
    schema: Schema
    width: int
    timeline: Timeline | None = None
    head: int = 0
    store: RowStore = field(init=False)
    codes: Intern = field(init=False)
    first: Vec = field(default_factory=Vec)
    middle: Vec = field(default_factory=Vec)
    last: Vec = field(default_factory=Vec)
    count: Vec = field(default_factory=Vec)
    waits: Vec = field(default_factory=Vec)

    def __post_init__(self) -> None:
        self.store = RowStore(self.schema, self.width)
        self.store.extra.update(link=Vec(), entered=Vec(), code=Vec(), born=Vec())
        self.codes = Intern(len(self.window.by))

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        rows, new = dated(inputs[0]), len(self.store)
        self._take(rows)
        enter, leave, aged, silent = self._push(new, len(rows), upto)
        at, born, entered = self.store.ts.view, self._extra("born"), self._extra("entered")
        at_in, at_out = at[new:][enter >= 0], at[new:][leave >= 0]
        enter, leave = enter[enter >= 0], leave[leave >= 0]
        real = entered[enter] != VOID
        gone = np.concatenate([aged, leave])
        slots = np.concatenate([gone, enter[real]])
        at_aged = self._points(born[aged] + self.age)
        instants = np.concatenate([at_aged, at_out, at_in[real]])
        out = signed(self.store, slots, instants, len(gone))
        self.store.bury(np.concatenate([gone, enter[~real], silent]))
        self._close()
        return out

    @property
    def age(self) -> int:
        assert self.window.age is not None
        return self.window.age

    def _extra(self, name: str) -> np.ndarray:
        return self.store.extra[name].view

    def _points(self, instants: np.ndarray) -> np.ndarray:
        return instants if self.timeline is None else self.timeline.first_points(instants)

    def _take(self, rows: Batch) -> None:
        n = len(rows)
        codes = self.codes.codes([rows.cols[k] for k in self.window.by], n)
        for vec in (self.first, self.middle, self.last):
            vec.extend_fill(self.codes.capacity - vec.n, -1)
        for vec in (self.count, self.waits):
            vec.extend_fill(self.codes.capacity - vec.n, 0)
        self.store.append(rows)
        extra = self.store.extra
        extra["code"].extend(codes)
        extra["born"].extend(rows.ts if self.timeline is None else self.timeline.instant(rows.ts))
        extra["link"].extend_fill(n, -1)
        extra["entered"].extend_fill(n, FOREVER)

    def _push(self, new: int, n: int, upto: int) -> tuple[np.ndarray, ...]:
        """`enter`, `leave`, `aged` and `silent` of the kernel."""
        kept = len(self.store)
        enter, leave = np.empty(n, np.int64), np.empty(n, np.int64)
        aged, silent = np.empty(kept, np.int64), np.empty(kept, np.int64)
        self.head, old, never = _push_aged(
            new,
            self.head,
            upto if self.timeline is None else self.timeline.instant_of(upto),
            self.window.count,
            self.window.until,
            self.age,
            self._extra("born"),
            self.store.ts.view,
            *(self._extra(name) for name in ("code", "link", "entered")),
            *(vec.data for vec in (self.first, self.middle, self.last, self.count, self.waits)),
            enter,
            leave,
            aged,
            silent,
        )
        return enter, leave, aged[:old], silent[:never]

    def _close(self) -> None:
        where, purge = self.store.compact(), self.codes.wants_purge(self.store.live)
        if where is None and not purge:
            return
        full = self.count.view > 0
        if where is not None:
            self.head = 0  # before it all were dead
            for vec in (self.first, self.last):
                vec.view[full] = where[vec.view[full]]
            for linked in (self._extra("link"), self.middle.view):
                linked[linked >= 0] = where[linked[linked >= 0]]
        if purge:
            self.codes.purge(full)

    def live(self) -> int:
        return self.store.live

    def nbytes(self) -> int:
        return self.store.nbytes + self.codes.nbytes + self.first.nbytes * 5

    def next_due(self) -> int:
        born = self._extra("born")
        if self.head >= len(born):
            return FOREVER
        due = int(born[self.head]) + self.age
        return due if self.timeline is None else self.timeline.first_point(due)
