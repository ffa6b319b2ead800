"""What comes of a stream's rows: taken, late or refused; handed on; counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.api import IngestReport
from dsms.intake.convert import Converted, Refusal
from dsms.state.batch import Batch, concat

LATE = "late"  # why such rows were not taken
CODE = "DS365"  # of those that contradict a punctuation
CONTRADICTING = "that contradict a punctuation"


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a frame.  `late_columns`: the late rows in arrival order, for the stream of
    LATE INTO (None if there are none or the stream says LATE DROP).  `late_places`: int64[late],
    their positions in what the writer sent.  `contradicting`: how many of the late ones a
    punctuation had said would not come."""

    accepted: int
    late: int = 0
    refusals: tuple[Refusal, ...] = ()
    late_columns: tuple[pa.Array, ...] | None = None
    late_places: np.ndarray | None = field(default=None, compare=False, repr=False)
    contradicting: int = 0

    def report(self, converted: Converted | None = None) -> IngestReport:
        """The reply to the writer, with what was refused before, on conversion."""
        refusals = (() if converted is None else converted.refusals) + self.refusals
        positions = [(r.reason, r.places) for r in refusals if r.places is not None]
        if self.late and self.late_places is not None:
            positions.append((LATE, self.late_places))
        return IngestReport(
            self.accepted,
            self.late,
            sum(r.count for r in refusals),
            reasons=(*map(str, refusals), *self._contradictions()),
            positions=tuple(positions),
        )

    def _contradictions(self) -> Iterator[str]:
        """What is told of rows that a punctuation had said would not come."""
        if self.contradicting:
            rows = "1 row is" if self.contradicting == 1 else f"{self.contradicting} rows are"
            yield f"{rows} late ({CODE}): a punctuation of the stream said that none such comes"


@dataclass(frozen=True, slots=True)
class Released:
    """What a release hands on.

    `complete`: rows of the instants in (previous `upto`, `upto`], in batch order, in as many
    batches as need no copy.  `fresh`: rows that settled since the last release, in (ts, arrival)
    order: those of `complete` and, early, those of the newest instant, each exactly once over all
    releases.  For readers that need no whole instants (stateless plans).  A reader sticks to one of
    the two.
    """

    complete: tuple[Batch, ...]
    fresh: tuple[Batch, ...]
    upto: int

    def rows(self) -> Batch | None:
        """`complete` as one batch; None if there are no rows."""
        return concat(self.complete) if self.complete else None

    def early(self) -> Batch | None:
        """`fresh` as one batch; None if there are no rows."""
        return concat(self.fresh) if self.fresh else None


@dataclass(slots=True)
class Counts:
    """What a stream has seen since it was declared or the engine started."""

    accepted: int = 0
    late: int = 0
    contradicting: int = 0  # of the late ones, those that a punctuation had said would not come
    refused: Counter[str] = field(default_factory=Counter)  # by reason


def no_late_rows(cols: tuple[pa.Array, ...], when: str) -> Refusal:
    """All of these rows, which came late elsewhere, are refused here."""
    return Refusal(f"late rows {when}", len(cols[0]), 0, "LATE INTO")
