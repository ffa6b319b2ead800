"""A query whose answers an evaluator finds: at its boundaries (`query`) or when it is asked
(`lookup`).

How it does is its access path (Golab 2006, §7.2.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from dsms.api import Cancel
from dsms.operators.answers import Answer
from dsms.operators.stamps import stamped
from dsms.periodic.counted import Numbers
from dsms.plan import paths
from dsms.running.pipeline import Path
from dsms.running.registered import Registered
from dsms.running.sources import StreamConsumer
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, arrow_schema
from dsms.state.foretold import Foretold


class Evaluator(Protocol):
    """How a periodic query gets at its answers."""

    path: paths.Kind  # WS, IS, SS, ISS
    numbers: Numbers | None  # arrival numbers stand for instants
    together: bool  # its group answers it
    deltas: bool  # `evaluate` gives what has come since the last boundary, not the whole answer

    def evaluate(self, boundary: int, cancel: Cancel | None) -> Answer:
        """The answer of a boundary, later than all before; rows in their fixed order.  Raises
        DsmsError."""
        ...

    def sources_of(self, stream: str) -> Iterator[StreamConsumer]:
        """Where rows of a stream go."""
        ...

    def leaf_sources(self, leaf: int) -> Iterator[StreamConsumer]:
        """Where rows of a stream leaf go."""
        ...

    def next_due(self) -> int:
        """Before this instant nothing changes (not later than that)."""
        ...

    def seed(self, upto: int) -> None:
        """Take in what was given as history, up to that instant; the first boundary reports of
        it."""
        ...

    def read_tables(self, begun: int) -> int:
        """Of what ended up to this instant in tables nothing will be asked again, when they have
        been looked at up to `begun`."""
        ...

    def live(self) -> dict[Path, dict[str, float]]:
        """Live counts per place in the plan."""
        ...

    def nbytes(self) -> int: ...


@runtime_checkable
class Foretelling(Protocol):
    """An evaluator whose windows know when some of their rows will leave."""

    def foretold(self) -> Sequence[tuple[Foretold, int]]:
        """These instants, by window, and the µs for which each still matters to windows above."""
        ...


class Fed:
    """An evaluator that reads what others keep: nothing of the plan is its own."""

    __slots__ = ()

    def leaf_sources(self, leaf: int) -> Iterator[StreamConsumer]:
        return iter(())

    def next_due(self) -> int:
        return ALWAYS

    def seed(self, upto: int) -> None:
        return

    def read_tables(self, begun: int) -> int:
        return begun

    def live(self) -> dict[Path, dict[str, float]]:
        return {}


@dataclass(slots=True)
class EvaluatedQuery(Registered):
    """`evaluator` finds the answers."""

    evaluator: Evaluator = field(kw_only=True)
    sort: lp.Sort | None = field(kw_only=True)
    why: str = ""  # it takes this access path
    registered: int = ALWAYS  # its clock when it was registered
    numbers: Numbers | None = None  # SLIDE counts rows: boundaries are numbers of rows
    last: Answer | None = None
    answered: int = ALWAYS  # the boundary of `last`
    evaluations: int = 0
    # evaluated when there is time (`dsms.periodic.elastic`), or when it is asked
    elastic: bool = False

    def __post_init__(self) -> None:
        self.grouped = self.evaluator.together
        self.reads = tuple(sorted(set(self.streams.values())))

    def registered_at(self, clock: int) -> None:
        """It begins at this instant, before which it had no answer."""
        self.registered = self.log.known_from = clock

    @property
    def begun(self) -> int:
        """The instant up to which it has looked at tables."""
        return self.clock if self.numbers is None else self.answered

    @property
    def read_tables(self) -> int:
        return self.evaluator.read_tables(self.begun)

    @property
    def shown_clock(self) -> int:
        return self.answered

    def batch(self, rows: Answer, at: np.ndarray | None = None) -> pa.RecordBatch:
        """Answers as they are reported; `at`: the boundary of each row, int64[n], if there is
        one."""
        cols = list(rows.cols[: len(self.output.schema)])  # more are there for ORDER BY only
        if at is not None and self.output.stamps:
            cols = stamped(cols, self.output.stamps, at)
        return pa.RecordBatch.from_arrays(cols, schema=arrow_schema(self.output.schema))

    def live(self) -> dict[Path, dict[str, float]]:
        """Live counts per place in the plan; the root's are those of the answers."""
        counts = self.evaluator.live()
        counts.setdefault((), {}).update(
            rows_out=self.seq, state_rows=self.answer_rows(), bytes=self.nbytes()
        )
        return counts

    def nbytes(self) -> int:
        """Bytes of state and waiting rows, about."""
        return self.evaluator.nbytes() + self.answer_bytes()

    def answer_bytes(self) -> int:
        """Bytes of the answer that is kept."""
        return 0 if self.last is None else sum(c.nbytes for c in self.last.cols)

    def sources_of(self, stream: str) -> Iterator[StreamConsumer]:
        """Where rows of a stream go."""
        return self.evaluator.sources_of(stream)
