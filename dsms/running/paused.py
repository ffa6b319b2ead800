"""A query that is paused: its name, its numbers, its log, its readers and what it answered last.

What it computed with is gone, and so are its needs of what streams keep; that it reads them stays
known, so they can't be dropped.  A stream that it feeds stands still.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from dsms.api import Cancel
from dsms.operators.answers import Answer
from dsms.running.pipeline import Path
from dsms.running.registered import Registered
from dsms.running.sources import StreamConsumer
from dsms.sql.types import ALWAYS, FOREVER


@dataclass(slots=True)
class PausedQuery(Registered):
    """rows      its last answer as readers have it; None: it had none, or only streams
    shown     the instant of that
    last      of one with SLIDE, what its next answer is compared with
    answered  ... and the boundary of that"""

    rows: pa.RecordBatch | None = None
    shown: int = ALWAYS
    last: Answer | None = None
    answered: int = ALWAYS

    def __post_init__(self) -> None:
        self.reads = tuple(sorted(set(self.streams.values())))

    @classmethod
    def of(cls, query: Registered) -> PausedQuery:
        """In the place of a query that stands where its clock is."""
        rows = query.answer() if query.output.kind == "rstream" else None
        made = cls(
            query.definition,
            query.phys,
            query.log,
            query.errors,
            query.streams,
            query.tables,
            query.state_limit,
            query.clock,
            query.readers,
            rows=rows,
            shown=query.shown_clock,
            last=getattr(query, "last", None),
            answered=getattr(query, "answered", ALWAYS),
        )
        made.feed, query.feed = query.feed, None
        return made

    @property
    def begun(self) -> int:
        return ALWAYS

    @property
    def read_tables(self) -> int:
        return FOREVER

    @property
    def shown_clock(self) -> int:
        return self.shown

    def put_in(self, clock: int, due: Callable[[], int]) -> tuple[int, bool]:
        """Nothing, until it is resumed: its stream waits."""
        return self.clock, False

    def advance(self, upto: int, cancel: Cancel | None = None) -> None:
        """It stays where it is."""

    def answer(self) -> pa.RecordBatch | None:
        return self.rows

    def answer_rows(self) -> int:
        return 0 if self.rows is None else self.rows.num_rows

    def sources_of(self, stream: str) -> Iterator[StreamConsumer]:
        return iter(())

    def live(self) -> dict[Path, dict[str, float]]:
        return {}

    def nbytes(self) -> int:
        return 0 if self.rows is None else int(self.rows.nbytes)
