"""Windows whose rows say how long they are in them: [VALID UNTIL column], [RANGE (expression)].

Input    append-only (MON), with the column that says it.
State    none, but rows that have yet to enter, and the instants at which some leave.
Cost     O(1) a row.
Output   WK: `exp` is known when a row enters, and rows do not leave in the order in which they came
         (Golab 2006, §3.2).

A row lives over [ts, end): for good where the column is NULL, and not at all where that is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from dsms.operators.timeline import Timeline
from dsms.operators.window import dated, later
from dsms.sql.types import FOREVER, MAX_INSTANT
from dsms.sql.window import Lasting
from dsms.state.batch import Batch, concat
from dsms.state.columns import numpy_valid, numpy_values
from dsms.state.foretold import Foretold
from dsms.state.queue import BatchQueue

MOST = 1 << 62  # µs: more than there are instants


def leaving(ts: np.ndarray, end: pa.Array, spans: bool) -> np.ndarray:
    """The instants at which rows stamped `ts` leave, int64[n]; FOREVER where `end` is NULL, or
    later than any instant.  `spans`: it says how long they stay."""
    exp = numpy_values(end)
    if spans:
        exp = ts + np.clip(exp, -MOST, MOST)
    known = exp <= MAX_INSTANT
    valid = numpy_valid(end)
    return np.where(known if valid is None else known & valid, exp, FOREVER)


@dataclass(slots=True)
class LastingWindowOp:
    """`life`: as in `dsms.operators.window.TimeWindowOp`; `timeline`: instants of the input are
    points, of which deaths are not."""

    window: Lasting
    life: str | None = None
    timeline: Timeline | None = None
    waiting: BatchQueue[Batch] = field(default_factory=BatchQueue)
    foretold: Foretold = field(default_factory=Foretold)

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        came, spec = dated(inputs[0]), self.window
        ts = came.ts if self.timeline is None else self.timeline.instant(came.ts)
        exp = leaving(ts, came.cols[spec.end], spec.spans)
        enter = later(ts, spec.until)
        life = None
        if self.life is not None:
            life = exp if self.life == "external" else np.full(len(came), FOREVER, np.int64)
        born = Batch(enter if spec.until else came.ts, exp, None, came.ids, came.cols, life)
        real = exp > enter
        if not real.all():
            born = born.take(np.flatnonzero(real))
        assert born.exp is not None
        self.foretold.tell(born.exp, upto)
        return self._entered(born, upto) if spec.until else born

    def _entered(self, born: Batch, upto: int) -> Batch:
        self.waiting.push(born)
        now = upto if self.timeline is None else self.timeline.instant_of(upto)
        ready = self.waiting.take(now)
        out = concat(ready) if ready else born.slice(0, 0)
        return out if self.timeline is None else replace(out, ts=self.timeline.first_points(out.ts))

    def live(self) -> int:
        return self.waiting.rows

    def nbytes(self) -> int:
        return self.waiting.nbytes + self.foretold.nbytes

    def next_due(self) -> int:
        first = self.waiting.first
        if self.timeline is None or first == FOREVER:
            return first
        return self.timeline.first_point(first)
