"""ROWS n SLIDE m beside other inputs, evaluated incrementally: the operators see points of a
`Timeline` for instants.

Rows of all streams wait until a boundary is answered: only then is it known between which counted
rows they came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dsms.api import Cancel
from dsms.operators.answers import Answer
from dsms.operators.base import Operator
from dsms.operators.timeline import Timeline
from dsms.periodic.counted import Numbers
from dsms.periodic.incremental import Incremental
from dsms.running.late_reads import late_reads
from dsms.running.sources import StreamConsumer, StreamSource
from dsms.sql.types import ALWAYS, FOREVER, MIN_INSTANT
from dsms.state.batch import Batch
from dsms.state.queue import BatchQueue


@dataclass(slots=True)
class TimedTable:
    """Changes of a table, each at the point of its instant."""

    source: Operator
    timeline: Timeline

    def step(self, inputs: Sequence[Batch], upto: int) -> Batch:
        rows = self.source.step(inputs, self.timeline.instant_of(upto))
        return replace(rows, ts=self.timeline.first_points(rows.ts))

    def live(self) -> int:
        return self.source.live()

    def nbytes(self) -> int:
        return self.source.nbytes()

    def next_due(self) -> int:
        due = self.source.next_due()
        return due if due < MIN_INSTANT or due == FOREVER else self.timeline.first_point(due)


@dataclass(slots=True)
class TimedRelation:
    """A non-retroactive table, read as of the instants of points."""

    table: Any
    timeline: Timeline

    def __len__(self) -> int:
        return len(self.table)

    def probe(
        self, cols: Sequence[Any], key_columns: tuple[int, ...], ts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.table.probe(cols, key_columns, self.timeline.instant(ts))

    def gather(self, versions: np.ndarray, columns: Sequence[int] | None = None) -> Any:
        return self.table.gather(versions, columns)


@dataclass(slots=True)
class Held:
    """Rows of a stream leaf on their way to `source`.  numbers: set where they are the ones that
    are counted."""

    source: StreamSource
    numbers: Numbers | None
    queue: BatchQueue[Batch] = field(init=False)

    def __post_init__(self) -> None:
        self.queue = BatchQueue("ts" if self.numbers is None else "number")

    def push(self, rows: Batch) -> None:
        if len(rows) and self.numbers is not None:
            self.numbers.see(rows)
        self.queue.push(rows)

    def let(self, instant: int, before: int, timeline: Timeline) -> None:
        """Hand on the rows with timestamps <= `instant`; of counted ones those with numbers less
        than `before`."""
        for rows in self.queue.take(instant if self.numbers is None else before - 1):
            self._hand_on(rows, timeline)

    def _hand_on(self, rows: Batch, timeline: Timeline) -> None:
        counted = self.numbers is not None
        points = timeline.rows(rows.ts, rows.ids[0]) if counted else timeline.first_points(rows.ts)
        self.source.push(replace(rows, ts=points))

    def nbytes(self) -> int:
        return self.queue.nbytes


@dataclass(slots=True)
class Timed(Incremental):
    """`counted`: the key of the stream whose rows the SLIDE counts."""

    timeline: Timeline = field(kw_only=True)
    counted: str = field(kw_only=True)
    held: dict[int, Held] = field(init=False, default_factory=dict)

    def count(self, numbers: Numbers, base: int, earlier: np.ndarray) -> None:
        """Begin: rows are counted on from those of `numbers`; `earlier` ones, from number `base`
        on, are known."""
        self.numbers = numbers
        self.timeline.begin(base, earlier)
        for leaf, stream in self.inner.streams.items():
            source = self.inner.pipeline.sources[leaf]
            self.held[leaf] = Held(source, numbers if stream == self.counted else None)

    def evaluate(self, boundary: int, cancel: Cancel | None) -> Answer:
        assert self.numbers is not None
        if self.timeline.next < boundary:  # else an evaluation that was cancelled goes on
            self.timeline.go_on(self.numbers.between(self.timeline.next, boundary))
            instant = self.numbers.ts(boundary - 1)
            for held in self.held.values():
                held.let(instant, boundary, self.timeline)
        self.inner.advance(self.timeline.reached, cancel)
        self.inner.check()
        self.numbers.forget(boundary - 1)
        return self.current_answer()

    def leaf_sources(self, leaf: int) -> Iterator[StreamConsumer]:
        yield self.held[leaf]

    def next_due(self) -> int:
        return ALWAYS

    def read_tables(self, begun: int) -> int:
        behind = self.timeline.before + len(self.timeline.ts)
        return late_reads(self.inner.output, self.inner.pipeline, begun, behind)

    def nbytes(self) -> int:
        return self.inner.nbytes() + sum(h.nbytes() for h in self.held.values())
