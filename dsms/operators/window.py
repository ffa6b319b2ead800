"""Windows: what turns an append-only input into rows with lifetimes.

Time windows stamp `exp` and keep nothing (Golab 2006, §2.3.2); under the negative tuple approach
the window keeps its rows and announces each death (§2.3.3, Fig 2.2).  A window that ends some time
ago holds rows back until they enter.  Count windows are in `window_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dsms.operators.base import Stateless
from dsms.plan.deaths import Deaths
from dsms.plan.physical import State
from dsms.sql.types import ALWAYS, FOREVER, Schema
from dsms.state.batch import Batch, concat
from dsms.state.live import LiveInput
from dsms.state.queue import BatchQueue


def later(ts: np.ndarray, by: int) -> np.ndarray:
    """ts + by, never beyond FOREVER."""
    return np.where(ts > FOREVER - by, FOREVER, ts + by)


def entering(ts: np.ndarray, until: int) -> np.ndarray:
    """The instants at which rows enter a window that ends so long ago; what was there before every
    instant is there."""
    return np.where(ts <= ALWAYS, ts, later(ts, until))


def dated(rows: Batch) -> Batch:
    """Rows born at an instant: what was there before every instant (an empty answer) is in no time
    window."""
    if not len(rows) or rows.ts[0] > ALWAYS:
        return rows
    return rows.slice(int(np.searchsorted(rows.ts, ALWAYS, side="right")), len(rows))


@dataclass(slots=True)
class TimeWindowOp(Stateless):
    """[RANGE length] and [NOW] (length 1 µs): a row stamped ts lives over [ts, ts + length).

    `life`: None where all windows of the block are of one kind; else whether results outlive this
    part ("internal") or die with it ("external").
    """

    length: int
    life: str | None = None
    deaths: Deaths | None = None  # of a length that follows the calendar

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        rows = dated(inputs[0])
        exp = later(rows.ts, self.length) if self.deaths is None else self.deaths.exp(rows.ts)
        life = None
        if self.life is not None:
            life = exp if self.life == "external" else np.full(len(rows), FOREVER, np.int64)
        return Batch(rows.ts, exp, None, rows.ids, rows.cols, life)


@dataclass(slots=True)
class HistoricalWindowOp:
    """[RANGE length UNTIL until AGO]: a row stamped ts lives over [ts + until, ts + length)."""

    length: int
    until: int
    life: str | None = None
    deaths: Deaths | None = None
    waiting: BatchQueue[Batch] = field(default_factory=BatchQueue)

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        rows = dated(inputs[0])
        exp = later(rows.ts, self.length) if self.deaths is None else self.deaths.exp(rows.ts)
        life = None
        if self.life is not None:
            life = exp if self.life == "external" else np.full(len(rows), FOREVER, np.int64)
        born = Batch(later(rows.ts, self.until), exp, None, rows.ids, rows.cols, life)
        self.waiting.push(born)
        ready = self.waiting.take(upto)
        return concat(ready) if ready else born.slice(0, 0)

    def live(self) -> int:
        return self.waiting.rows

    def nbytes(self) -> int:
        return self.waiting.nbytes

    def next_due(self) -> int:
        return self.waiting.first


@dataclass(slots=True)
class LandmarkWindowOp(Stateless):
    """[SINCE instant]: rows stamped at or after it, for ever."""

    since: int

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        return rows.slice(int(np.searchsorted(rows.ts, self.since, side="left")), len(rows))


@dataclass(slots=True)
class DelayOp:
    """[RANGE UNBOUNDED UNTIL until AGO], [SINCE i UNTIL until AGO]: a row stamped ts enters at ts +
    until, and stays."""

    until: int
    waiting: BatchQueue[Batch] = field(default_factory=BatchQueue)

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        entered = replace(rows, ts=entering(rows.ts, self.until))
        self.waiting.push(entered)
        ready = self.waiting.take(upto)
        return concat(ready) if ready else entered.slice(0, 0)

    def live(self) -> int:
        return self.waiting.rows

    def nbytes(self) -> int:
        return self.waiting.nbytes

    def next_due(self) -> int:
        return self.waiting.first


FIFO = State("fifo")


@dataclass(slots=True)
class NegativeOp:
    """The window state of the negative tuple approach: every death that `exp` foretells is
    announced instead."""

    schema: Schema
    width: int
    state: State = FIFO
    kept: LiveInput = field(init=False)

    def __post_init__(self) -> None:
        self.kept = LiveInput(self.schema, self.width, self.state, strict=False)

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        (rows,) = inputs
        _, spoken = self.kept.arrive(rows)
        events = self.kept.depart(rows, spoken, upto)
        out = self.kept.store.batch(
            events.slot, events.at, events.sign, np.full(len(events), FOREVER, np.int64)
        )
        self.kept.settle()
        return out

    def live(self) -> int:
        return self.kept.store.live

    def nbytes(self) -> int:
        return self.kept.nbytes

    def next_due(self) -> int:
        return self.kept.expiry.next_due()
