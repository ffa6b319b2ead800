"""Queries ON LOOKUP: kept ready, answered when asked (Arasu and Widom 2004, §1.1.3).

One over a single window is a member of a group like any periodic query, but with no boundaries of
its own: a look-up probes the shared synopses as of the latest sub-window.  One whose rows an index
finds reads them when it is asked (`dsms.periodic.probed`).  Any other is a continuous query that is
only moved when it is asked, or when too many rows wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.api import Cancel, Subscription
from dsms.errors import DsmsError, UsageError
from dsms.operators.answers import Answer
from dsms.operators.sort import sort_order
from dsms.periodic.counted import Numbers
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.periodic.probed import Probed
from dsms.plan import paths
from dsms.python_functions.cutting import CUT, uncut
from dsms.running.faults import CANCELLED
from dsms.running.late_reads import late_reads
from dsms.running.pipeline import Path
from dsms.running.query import RunningQuery
from dsms.running.sources import StreamConsumer
from dsms.sql.open_values import Step
from dsms.sql.types import ALWAYS
from dsms.state.columns import all_taken

WAITING = 1 << 17  # rows that may wait for a look-up
PARTS = (60, 64, 50, 48, 40, 32, 30, 24, 20, 16, 12, 10, 8, 6, 5, 4, 3, 2)


def lookup_span(length: int, until: int) -> int:
    """The sub-window of a window without SLIDE: about a sixtieth of it."""
    for parts in PARTS:
        if length % parts == 0 and until % (length // parts) == 0:
            return length // parts
    return int(np.gcd(length, until))


@dataclass(slots=True)
class Waiting:
    """The evaluator of a look-up that no synopsis fits: operators that wait."""

    inner: RunningQuery
    numbers: Numbers | None = None
    path: paths.Kind = "IS"
    together: bool = False
    deltas: bool = False

    def evaluate(self, boundary: int, cancel: Cancel | None) -> Answer:
        with uncut():  # rows that are for all who ask
            self.inner.advance(boundary - 1, cancel)
        self.inner.check()
        rows = self.inner.answer()
        assert rows is not None
        return Answer(rows.num_rows, tuple(rows.columns))

    def sources_of(self, stream: str) -> Iterator[StreamConsumer]:
        return self.inner.sources_of(stream)

    def leaf_sources(self, leaf: int) -> Iterator[StreamConsumer]:
        yield self.inner.pipeline.sources[leaf]

    def next_due(self) -> int:
        return ALWAYS

    def read_tables(self, begun: int) -> int:
        return late_reads(self.inner.output, self.inner.pipeline, begun)

    def seed(self, upto: int) -> None:
        self.inner.start()
        self.inner.advance(upto)
        self.inner.check()

    def waiting(self) -> int:
        """Rows that wait."""
        return sum(s.waiting for s in self.inner.pipeline.sources.values())

    def live(self) -> dict[Path, dict[str, float]]:
        return self.inner.live()

    def nbytes(self) -> int:
        return self.inner.nbytes()


@dataclass(slots=True)
class LookupQuery(EvaluatedQuery):
    """A query ON LOOKUP.  `above`: what is done to what its evaluator answers, once the values of
    its parameters are known."""

    lookups: int = 0
    above: tuple[Step, ...] = ()

    def advance(self, upto: int, cancel: Cancel | None = None) -> None:
        """Only where too many rows wait; one that reads when it is asked takes note of the time."""
        if isinstance(self.evaluator, Waiting) and self.failure is None and upto > self.clock:
            if self.evaluator.waiting() > WAITING:
                self.evaluator.inner.advance(upto, cancel)
            self._as_inner()
        if isinstance(self.evaluator, Probed) and self.failure is None:
            self.clock = max(self.clock, upto)

    def looked(self) -> int:
        """The instant as of which it may be asked yet."""
        return self.clock

    def _as_inner(self) -> None:
        """Operators that have failed don't go on."""
        if isinstance(self.evaluator, Waiting) and self.evaluator.inner.failure is not None:
            self.fail(copy(self.evaluator.inner.failure))

    def subscribe(self, reader: Subscription, start: int | None) -> None:
        """DS329: nothing is ever told."""
        raise UsageError(
            "DS329",
            f"query {self.name} is ON LOOKUP: it is answered when it is asked, and tells nothing",
            hint=f"ask it: LOOKUP {self.name}; or register it without ON LOOKUP",
        )

    def answer(self) -> pa.RecordBatch | None:
        """What it was last asked; None before that."""
        return None if self.last is None else self.batch(self.last)

    def answer_rows(self) -> int:
        return 0 if self.last is None else self.last.n

    def _finished(self, rows: Answer, finish: Callable[[Answer], Answer]) -> Answer:
        """A row that may not fail stops the query here as it does in operators."""
        try:
            return finish(rows)
        except DsmsError as failure:
            if failure.code not in (CANCELLED, CUT):
                self.fail(copy(failure))
            raise

    def ask(
        self,
        clock: int,
        boundary: int,
        cancel: Cancel | None,
        finish: Callable[[Answer], Answer] | None = None,
    ) -> tuple[Answer, int]:
        """The answer before `boundary`, and the instant it holds at; `clock`: that of its
        streams; `finish`: what is done to what the evaluator answers."""
        self.lookups += 1
        try:
            rows = self.evaluator.evaluate(boundary, cancel)
        finally:
            self._as_inner()
        rows = rows if finish is None else self._finished(rows, finish)
        if self.sort is not None:
            order = sort_order(rows.cols, rows.n, self.sort, self.errors)
            rows = Answer(len(order), all_taken(rows.cols, order))
        self.last, self.answered, self.clock = rows, boundary - 1, boundary - 1
        if self.numbers is not None:
            self.answered = clock
        return rows, self.answered
