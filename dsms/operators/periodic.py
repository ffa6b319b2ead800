"""Operators of periodic queries, where only the state as of each boundary counts (Golab 2006,
§3.3.4, §5.2.2).

LazyOp            lazy evaluation without restore: what happens between two boundaries happens at
                  the later one, so that operators above do their work once a period, and what lives
                  only in between is never made.
PeriodicAppendOp  a block over INTERNAL windows with a SLIDE (or inside Wstream) hands on its answer
                  at each boundary.

The answer of boundary b is the one after instant b - 1: so that is where rows are put.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dsms.operators.answers import Answer, new_rows
from dsms.operators.sink import Sink, SinkSpec, fitting_state
from dsms.operators.timeline import Timeline
from dsms.plan.boundaries import boundaries, next_boundary
from dsms.plan.identity import by_value, order, width
from dsms.plan.physical import Phys
from dsms.sql.types import ALWAYS, FOREVER, MIN_INSTANT
from dsms.sql.window import Slide
from dsms.state.batch import Batch, concat, empty_batch


def last_instants(slide: Slide, at: np.ndarray) -> np.ndarray:
    """For each instant the last one before the next boundary; FOREVER and ALWAYS stay."""
    if slide.regular:
        align = slide.align or 0
        out = (
            align
            + ((np.clip(at, ALWAYS // 4, FOREVER // 4) - align) // slide.every + 1) * slide.every
            - 1
        )
        return np.where((at >= FOREVER // 4) | (at <= ALWAYS // 4), at, out)
    out = at.copy()
    real = np.flatnonzero((at < FOREVER // 4) & (at > ALWAYS // 4))
    if len(real):
        low, high = int(at[real].min()), int(at[real].max())
        found = boundaries(slide, low, next_boundary(slide, high))
        out[real] = found[np.searchsorted(found, at[real], side="right")] - 1
    return out


@dataclass(slots=True)
class LazyOp:
    """Rows born and dying at the ends of periods: not at all, if in the same one.  Only over WKS
    and WK edges."""

    slide: Slide
    waiting: list[Batch] = field(default_factory=list)  # of a period that is not over

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        rows = inputs[0]
        if len(rows):
            ts, exp = last_instants(self.slide, rows.ts), last_instants(self.slide, rows.exps())
            late = Batch(ts, exp, None, rows.ids, rows.cols)
            seen = np.flatnonzero(exp > ts)
            rows = late if len(seen) == len(ts) else late.take(seen)
        if not self.waiting and (not len(rows) or rows.ts[-1] <= upto):
            return rows
        return self._ready(rows, upto)

    def _ready(self, rows: Batch, upto: int) -> Batch:
        rows_so_far = concat([*self.waiting, rows])
        stop = int(np.searchsorted(rows_so_far.ts, upto, side="right"))
        self.waiting = (
            [rows_so_far.slice(stop, len(rows_so_far))] if stop < len(rows_so_far) else []
        )
        return rows_so_far.slice(0, stop)

    def live(self) -> int:
        return sum(len(b) for b in self.waiting)

    def nbytes(self) -> int:
        return sum(int(b.ts.nbytes) * 3 + sum(c.nbytes for c in b.cols) for b in self.waiting)

    def next_due(self) -> int:
        return int(self.waiting[0].ts[0]) if self.waiting else FOREVER


@dataclass(slots=True)
class PeriodicAppendOp:
    """At each boundary: of rows with parts those that are new in the block's answer, of others
    (aggregates) the whole answer, or with `entries` those that are new, too; with `departures`
    those that have gone since the last one.  What is handed on stays, and is numbered in order.

    Steps must come to the last instant before every boundary (`dsms.periodic.query` sees to it)."""

    child: Phys
    slide: Slide
    # instants are points, and a boundary is behind the last one reached
    timeline: Timeline | None = None
    entries: bool = False
    departures: bool = False
    sink: Sink = field(init=False)
    by_value: bool = field(init=False)
    before: Answer | None = None
    serial: int = 0
    nothing: Batch = field(init=False)

    def __post_init__(self) -> None:
        node = self.child.node
        self.by_value = by_value(node)
        self.sink = Sink(
            SinkSpec(
                "rstream",
                node.schema,
                width(node),
                order(node),
                self.by_value,
                True,
                True,
                fitting_state(self.child),
                self.child.strict,
            )
        )
        self.nothing = empty_batch(node.schema, 1)

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        self.sink.step(inputs[0], upto)
        if upto < MIN_INSTANT or not self._ends(upto):
            return self.nothing
        rows = self.sink.answer()
        shown = rows
        if self.departures:
            shown = (
                rows.take(np.empty(0, np.int64))
                if self.before is None
                else new_rows(self.before, rows)
            )
        elif self.entries or not self.by_value:
            shown = rows if self.before is None else new_rows(rows, self.before)
        self.before = rows if self.departures or self.entries or not self.by_value else None
        ids = np.arange(self.serial, self.serial + shown.n, dtype=np.int64)
        self.serial += shown.n
        return Batch(np.full(shown.n, upto, np.int64), None, None, (ids,), shown.cols)

    def _ends(self, upto: int) -> bool:
        """Whether a boundary is just behind."""
        if self.timeline is not None:
            return upto == self.timeline.reached
        return next_boundary(self.slide, upto) == upto + 1

    def live(self) -> int:
        return self.sink.live()

    def nbytes(self) -> int:
        return self.sink.nbytes()

    def next_due(self) -> int:
        return self.sink.next_due()
