"""The time scale on which each row of a counted stream is an instant of its own (`ROWS n SLIDE m`
beside other inputs).

An instant t has a point for everything else that happens at t (rows of other streams come, rows
expire, tables change), then one for each row of the counted stream that has this timestamp, in
order of arrival.  Operators see points for instants.  With c(t) counted rows before t, point j of t
(0: everything else) is the number

    t + c(t) + j

which leaves no gaps and no doubles: the row numbered k, from 0, is at ts + k + 1.  At which point a
row will expire is not known before the rows until then have come, so windows in time keep their
rows and announce their deaths, as under the negative tuple approach (Golab 2006, §2.3.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dsms.operators.base import Stateless
from dsms.operators.window import dated, entering, later
from dsms.operators.window_rows import signed
from dsms.sql.types import ALWAYS, FOREVER, MIN_INSTANT, Schema
from dsms.state.batch import Batch, concat
from dsms.state.queue import BatchQueue
from dsms.state.rows import RowStore
from dsms.state.vec import Vec


@dataclass(slots=True)
class Timeline:
    """base     arrival number of the first counted row that there is
    before   counted rows earlier than those of `ts`
    ts       int64[k], µs: the timestamps of the newest counted rows, those since the boundary
             before at least
    memory   µs for which those before are known, too, since rows that came then have yet to be
             looked at
    reached  the point up to which everything has come
    """

    base: int = 0
    before: int = 0
    ts: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    reached: int = ALWAYS
    memory: int = 0

    @property
    def next(self) -> int:
        """The arrival number of the next counted row."""
        return self.base + self.before + len(self.ts)

    def begin(self, base: int, ts: np.ndarray) -> None:
        """Rows from number `base` on that came earlier."""
        self.base, self.before, self.ts = base, 0, ts

    def go_on(self, ts: np.ndarray) -> None:
        """The next counted rows have come, and whatever else there is up to the last one's whole
        instant."""
        known = np.concatenate([self.ts, ts])
        kept = known if self.reached == ALWAYS else known[self._first(known) :]
        self.before += len(known) - len(kept)
        self.ts = kept
        self.reached = int(kept[-1]) + self.before + len(kept)

    def _first(self, known: np.ndarray) -> int:
        """Where the rows begin that are still needed."""
        since = max(int(known[-1]) - self.memory, ALWAYS + 1) if self.memory else FOREVER
        return min(max(0, len(self.ts) - 1), int(np.searchsorted(known, since, "left")))

    def rows(self, ts: np.ndarray, number: np.ndarray) -> np.ndarray:
        """The points of counted rows, by their timestamps and arrival numbers."""
        return ts + (number - self.base + 1)

    def first_points(self, instant: np.ndarray) -> np.ndarray:
        """The first point of each instant; where not all rows before it have come, a point not
        later than that."""
        return np.where(
            _real(instant),
            instant + self.before + np.searchsorted(self.ts, instant, "left"),
            instant,
        )

    def instant(self, point: np.ndarray) -> np.ndarray:
        """The instant of each point, of those since the boundary before."""
        known = self.ts + np.arange(self.before + 1, self.before + len(self.ts) + 1)
        return np.where(
            _real(point), point - self.before - np.searchsorted(known, point, "right"), point
        )

    def instant_of(self, point: int) -> int:
        return int(self.instant(np.array([point], np.int64))[0])

    def first_point(self, instant: int) -> int:
        return int(self.first_points(np.array([instant], np.int64))[0])


def _real(at: np.ndarray) -> np.ndarray:
    return (at >= MIN_INSTANT) & (at < FOREVER // 2)


@dataclass(slots=True)
class TimedWindowOp:
    """[RANGE length], [RANGE length UNTIL until AGO] and [NOW] (length 1 µs).

    `life`: as in `dsms.operators.window.TimeWindowOp`, in instants."""

    length: int
    until: int
    timeline: Timeline
    schema: Schema
    width: int
    life: str | None = None
    store: RowStore = field(init=False)
    entered: int = 0  # the first slot that has not entered

    def __post_init__(self) -> None:
        self.store = RowStore(self.schema, self.width)
        self.store.extra.update(enter=Vec(), leave=Vec())

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        self._keep(dated(inputs[0]))
        now, dead = self.timeline.instant_of(upto), self.store.dead
        enter, leave = (self.store.extra[k].view for k in ("enter", "leave"))
        came = int(np.searchsorted(enter, now, side="right"))
        gone = int(np.searchsorted(leave, now, side="right"))
        born, dies = np.arange(self.entered, came), np.arange(dead, gone)
        at_in = self.timeline.first_points(enter[born]) if self.until else self.store.ts.view[born]
        at = np.concatenate([self.timeline.first_points(leave[dies]), at_in])
        out = signed(self.store, np.concatenate([dies, born]), at, len(dies))
        self.entered = came
        self.store.bury(dies)
        if self.store.compact() is not None:  # a queue: the dead are always a prefix of the slots
            self.entered -= gone
        return out

    def _keep(self, rows: Batch) -> None:
        ts = self.timeline.instant(rows.ts)
        leave = later(ts, self.length)
        life = None
        if self.life is not None:
            life = leave if self.life == "external" else np.full(len(rows), FOREVER, np.int64)
        self.store.append(Batch(rows.ts, None, None, rows.ids, rows.cols, life))
        self.store.extra["enter"].extend(later(ts, self.until))
        self.store.extra["leave"].extend(leave)

    def live(self) -> int:
        return self.store.live

    def nbytes(self) -> int:
        return self.store.nbytes

    def next_due(self) -> int:
        enter, leave = (self.store.extra[k].view for k in ("enter", "leave"))
        due = [
            *enter[self.entered : self.entered + 1],
            *leave[self.store.dead : self.store.dead + 1],
        ]
        return min((self.timeline.first_point(int(d)) for d in due), default=FOREVER)


@dataclass(slots=True)
class TimedSinceOp(Stateless):
    """[SINCE instant]: rows stamped at or after it, for ever."""

    since: int
    timeline: Timeline

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        instants = self.timeline.instant(rows.ts)
        return rows.slice(int(np.searchsorted(instants, self.since, side="left")), len(rows))


@dataclass(slots=True)
class TimedDelayOp:
    """[RANGE UNBOUNDED UNTIL until AGO], [SINCE i UNTIL until AGO]; rows wait by the instants at
    which they enter."""

    until: int
    timeline: Timeline
    waiting: BatchQueue[Batch] = field(default_factory=BatchQueue)

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        entered = replace(rows, ts=entering(self.timeline.instant(rows.ts), self.until))
        self.waiting.push(entered)
        ready = self.waiting.take(self.timeline.instant_of(upto))
        out = concat(ready) if ready else entered.slice(0, 0)
        return replace(out, ts=self.timeline.first_points(out.ts))

    def live(self) -> int:
        return self.waiting.rows

    def nbytes(self) -> int:
        return self.waiting.nbytes

    def next_due(self) -> int:
        return self.timeline.first_point(self.waiting.first)


@dataclass(slots=True)
class TimedDeathsOp:
    """Rows that die at different instants, which their `exp` tells: each death is announced at its
    point."""

    timeline: Timeline
    schema: Schema
    width: int = 1
    store: RowStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = RowStore(self.schema, self.width)

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        born = self.store.append(rows)
        exp = self.store.exp.view
        dies = np.flatnonzero(self.store.alive.view & (exp <= self.timeline.instant_of(upto)))
        dies = dies[np.argsort(exp[dies], kind="stable")]
        at = np.concatenate([self.timeline.first_points(exp[dies]), rows.ts])
        out = signed(self.store, np.concatenate([dies, born]), at, len(dies))
        self.store.bury(dies)
        self.store.compact()
        return out

    def live(self) -> int:
        return self.store.live

    def nbytes(self) -> int:
        return self.store.nbytes

    def next_due(self) -> int:
        exp = self.store.exp.view[self.store.alive.view]
        return self.timeline.first_point(int(exp.min())) if len(exp) else FOREVER
