"""Results of a query go to its archive."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dsms.api import Chunk
from dsms.archiving.archiving import Archiving
from dsms.archiving.around import Around
from dsms.archiving.results import Results
from dsms.archiving.waiting import Leaving
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.running.registered import Registered
from dsms.sql.types import ALWAYS, FOREVER, MIN_INSTANT
from dsms.state.batch import Batch


@dataclass(slots=True)
class Tap:
    """Between a query and its archive: every result row passes here once, whether it has no reader
    or many."""

    archiving: Archiving
    results: Results

    @property
    def nbytes(self) -> int:
        """Of what it keeps, about."""
        return self.results.nbytes

    def step(self, rows: Batch, chunk: Chunk, upto: int) -> None:
        """A step of a continuous query."""
        self.archiving.take(self.results.step(rows, chunk, upto))

    def before(self, rows: Batch, clock: int, upto: int) -> None:
        """A step over what was there when the query, which begins at `clock`, was registered."""
        self._take(self.results.before(rows, clock, upto))

    def begun(self, answer: pa.RecordBatch | None, clock: int) -> None:
        """Behind those steps: the answer that it begins with, where it keeps one."""
        self._take(self.results.begun(answer, clock))

    def _take(self, rows: Leaving | None) -> None:
        if rows is not None:
            self.archiving.take(rows)

    def report(self, chunk: Chunk) -> None:
        """Answers of a periodic one."""
        self.archiving.take(self.results.report(chunk))


def edge(runtime: Around, query: Registered) -> int:
    """The instant up to which all result rows have been made."""
    if isinstance(query, EvaluatedQuery):
        return query.answered
    upto = min(query.clock, runtime.clock_of(query.reads)) if query.early else query.clock
    return ALWAYS if upto >= FOREVER - 1 or upto < MIN_INSTANT else upto


def ended(runtime: Around, query: Registered) -> None:
    """The query is dropped: its answer ends with it, at the instant after its clock."""
    tap = query.archived
    assert isinstance(tap, Tap)
    upto = edge(runtime, query)
    if upto > ALWAYS:
        rest = tap.results.rest(
            None if isinstance(query, EvaluatedQuery) else query.answer(), upto + 1
        )
        if rest is not None:
            tap.archiving.take(rest)
    tap.archiving.edge = max(tap.archiving.edge, tap.archiving.taken)
    tap.archiving.flush()
