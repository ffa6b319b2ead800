"""A query ON LOOKUP that keeps nothing: when it is asked, its windows are read from the rings, by
an index where there is one, and the plan is run over that (a window scan, Golab 2006, §7.2.1).

Rows that come cost it nothing; that pays where an index finds few rows, or nobody asks for long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dsms.api import Cancel
from dsms.oneshot.reads import Read
from dsms.oneshot.run import Prepared
from dsms.operators.answers import Answer
from dsms.operators.expressions import ErrorCounter
from dsms.periodic.counted import Numbers
from dsms.periodic.evaluated import Fed
from dsms.plan import paths
from dsms.running.sources import StreamConsumer
from dsms.sql import logical as lp
from dsms.state.batch import Batch

# the rows that a plan needs as of an instant, by leaf
Fetch = Callable[[lp.Node, Mapping[int, Read], int, Cancel | None], Mapping[int, Sequence[Batch]]]


@dataclass(slots=True)
class Probed(Fed):
    """prepared  the plan, rendered;  needed: what it reads, by leaf;  fetch: gets it"""

    prepared: Prepared
    needed: Mapping[int, Read]
    fetch: Fetch
    errors: ErrorCounter
    numbers: Numbers | None = None
    path: paths.Kind = "WS"
    together: bool = False
    deltas: bool = False

    def evaluate(self, boundary: int, cancel: Cancel | None) -> Answer:
        at = boundary - 1
        given = self.fetch(self.prepared.plan, self.needed, at, cancel)
        rows, ids = self.prepared.rows(given, at, self.errors, cancel)
        return Answer(rows.num_rows, tuple(rows.columns), ids)

    def sources_of(self, stream: str) -> Iterator[StreamConsumer]:
        """The rings take the rows."""
        return iter(())

    def nbytes(self) -> int:
        return 0
