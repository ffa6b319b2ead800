"""Of each row of a stream the rows that are in the window at its own timestamp, and no later ones:
as instants, and as numbers in the window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np
import pyarrow as pa

from dsms.operators.over_kernels import numbered
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
)
from dsms.state.intern import Intern
from dsms.state.lengthening import grown


@dataclass(slots=True)
class Bounds:
    """Rows of a step: those that count, in order.

    n, places  how many rows there are, and which of them count; None: all
    ts         int64: their timestamps
    number     int64: their numbers in the window
    since      int64: rows later than that are in the window at the row's timestamp
    least      int64: and of these those of numbers from that one on
    reach, below  µs after which a row has left the window, None: no length says so; and the number
               below which it has"""

    n: int
    places: np.ndarray | None
    ts: np.ndarray
    number: np.ndarray
    since: np.ndarray
    least: np.ndarray
    reach: int | None
    below: int

    def take(self, places: np.ndarray) -> Bounds:
        """Some of the rows, where all of them counted."""
        ts, number, since, least = (
            a[places] for a in (self.ts, self.number, self.since, self.least)
        )
        return Bounds(self.n, places, ts, number, since, least, self.reach, self.below)

    def since_of(self, frame: lp.Frame) -> np.ndarray:
        """`since`, as the frame narrows it."""
        return (
            self.since if frame.span is None else np.maximum(self.since, self.ts - frame.span - 1)
        )

    def limit_of(self, frame: lp.Frame, upto: int) -> tuple[int, int]:
        """What is not later than this instant, or has a lower number, is in no frame of a row that
        comes after `upto`."""
        after = min(upto, FOREVER - 1) + 1
        found = [ALWAYS] if self.reach is None else [ALWAYS, after - self.reach]
        found += [] if frame.span is None else [after - frame.span - 1]
        return max(found), self.below


@dataclass(slots=True)
class Numbering:
    """Numbers the rows of windows that count them.

    window  as it is written;  counted  rows so far, by window
    newest  by window, where rows grow too old: the timestamp of its last row, FOREVER: not known
    alive   windows that had a row when that was last counted"""

    window: WindowSpec
    intern: Intern | None = field(init=False)
    counted: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    instant: np.ndarray = field(default_factory=lambda: np.full(1, ALWAYS, np.int64))
    last: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    newest: np.ndarray = field(default_factory=lambda: np.full(1, FOREVER, np.int64))
    alive: int = 0

    def __post_init__(self) -> None:
        by = self.window.by if isinstance(self.window, Partitioned) else ()
        self.intern = Intern(len(by)) if by else None

    def bounds(self, ts: np.ndarray, cols: Sequence[pa.Array]) -> Bounds:
        """Of rows in order, whole instants of them."""
        n, zeros = len(ts), np.zeros(len(ts), np.int64)
        match self.window:
            case Time(length=length):
                return Bounds(n, None, ts, zeros, ts - length, zeros, length, 0)
            case Now():
                return Bounds(n, None, ts, zeros, ts - 1, zeros, 1, 0)
            case Landmark(since=since):
                return self._since(ts, zeros, since)
            case Unbounded():
                always = np.full(n, ALWAYS, np.int64)
                return Bounds(n, None, ts, zeros, always, zeros, None, 0)
            case Rows() | Partitioned() as window:
                return self._numbered(ts, cols, window)
            case Latest() | Lasting() | Throttled() | First() | Session() | When():
                raise AssertionError(self.window)  # the binder refuses them
            case _:
                assert_never(self.window)

    def _since(self, ts: np.ndarray, zeros: np.ndarray, since: int) -> Bounds:
        n, began = len(ts), np.full(len(ts), since - 1, np.int64)
        found = Bounds(n, None, ts, zeros, began, zeros, None, 0)
        return found if not n or ts[0] >= since else found.take(np.flatnonzero(ts >= since))

    def _numbered(
        self, ts: np.ndarray, cols: Sequence[pa.Array], window: Rows | Partitioned
    ) -> Bounds:
        n = len(ts)
        code = np.zeros(n, np.int64)
        if isinstance(window, Partitioned) and self.intern is not None:
            code = self.intern.codes([cols[k] for k in window.by], n)
            self.counted = grown(self.counted, self.intern.capacity)
            self.instant = grown(self.instant, self.intern.capacity, ALWAYS)
            self.last = grown(self.last, self.intern.capacity)
        number, end = np.empty(n, np.int64), np.empty(n, np.int64)
        numbered(code, ts, self.counted, self.instant, self.last, number, end)
        least = end - window.count + 1
        one = isinstance(window, Rows)
        below = int(self.counted[0]) - window.count + 1 if one else ALWAYS
        age = window.age if isinstance(window, Partitioned) else None
        since = np.full(n, ALWAYS, np.int64) if age is None else ts - age
        if age is not None and self.intern is not None and n:
            self._forget(self.intern, code, ts, age)
        found = Bounds(n, None, ts, number, since, least, age, below)
        inside = number >= least
        return found if inside.all() else found.take(np.flatnonzero(inside))

    def _forget(self, intern: Intern, code: np.ndarray, ts: np.ndarray, age: int) -> None:
        """Let go of windows whose rows have all grown too old; these rows were the last ones."""
        self.newest = grown(self.newest, intern.capacity, FOREVER)
        self.newest[code] = ts  # of several the last one, as they are in order
        if intern.wants_purge(self.alive):
            there = self.newest[: intern.capacity] > ts[-1] - age
            self.alive = int(there.sum())
            if intern.wants_purge(self.alive):
                intern.purge(there)
                self.newest[: intern.capacity][~there] = ALWAYS

    @property
    def nbytes(self) -> int:
        own = int(self.counted.nbytes + self.instant.nbytes + self.last.nbytes + self.newest.nbytes)
        return own if self.intern is None else own + self.intern.nbytes
