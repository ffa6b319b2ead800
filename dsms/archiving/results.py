"""What of a query's results is archived, and with which lifetimes.

Births       the death of a row is known when it is born (MON, WKS, WK): it lands at once.  A
             DISTINCT value that is handed to a younger row is a row for each.
Departures   it is not (STR): a row lands when it has left the answer.
Reported     results without a life of their own count from the instant they are reported: periodic
             answers, Dstream.

FOR d: a row is kept from its death on for d; a row that never dies, from its birth on; for good
where no FOR is said.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from dsms.api import Chunk
from dsms.archiving.lives import Lives
from dsms.archiving.waiting import Leaving, dated, kept_until
from dsms.operators.basic import by_parts
from dsms.operators.sink import Sink
from dsms.plan.physical import Pattern, Phys
from dsms.running.assemble import sink_spec
from dsms.sql import logical as lp
from dsms.sql.types import FOREVER, Schema
from dsms.state.batch import Batch


class Results(Protocol):
    """Makes the archive's rows of a query's results; called with each of its steps, in order."""

    def step(self, rows: Batch, chunk: Chunk, upto: int) -> Leaving:
        """Of a step up to `upto`: deltas of the plan's root, and what is reported of them."""
        ...

    def report(self, chunk: Chunk) -> Leaving:
        """Of a periodic answer."""
        ...

    def before(self, rows: Batch, clock: int, upto: int) -> Leaving | None:
        """Of a step over the past of a query that begins at `clock`: its first answer is born
        then."""
        ...

    def begun(self, answer: pa.RecordBatch | None, clock: int) -> Leaving | None:
        """Behind those steps, of its first answer (None: it keeps none)."""
        ...

    def rest(self, answer: pa.RecordBatch | None, at: int) -> Leaving | None:
        """The query ends at the instant `at`: what is in its answer leaves it."""
        ...

    @property
    def nbytes(self) -> int: ...


@dataclass(slots=True)
class Births:
    """order: permutation of the id columns into FROM order;  made: rows so far, which numbers
    them."""

    lifetime: int | None
    order: tuple[int, ...]
    made: int = 0
    nbytes: int = 0

    def step(self, rows: Batch, chunk: Chunk, upto: int) -> Leaving:
        return self._born(rows)

    def _born(self, rows: Batch) -> Leaving:
        if rows.sign is not None:
            rows = rows.take(np.flatnonzero(rows.sign > 0))
        rows = by_parts(rows, self.order)
        number = np.arange(self.made, self.made + len(rows), dtype=np.int64)
        self.made += len(rows)
        born = dated(rows.ts)
        death = rows.exps()
        dies = kept_until(np.where(death == FOREVER, born, death), self.lifetime)
        return Leaving(born, born, dies, number, rows.cols)

    def before(self, rows: Batch, clock: int, upto: int) -> Leaving | None:
        live = rows.take(np.flatnonzero(rows.exps() > clock))
        return self._born(
            Batch(np.full(len(live), clock, np.int64), live.exp, live.sign, live.ids, live.cols)
        )

    def begun(self, answer: pa.RecordBatch | None, clock: int) -> Leaving | None:
        return None

    def report(self, chunk: Chunk) -> Leaving:
        raise AssertionError("a continuous query")

    def rest(self, answer: pa.RecordBatch | None, at: int) -> Leaving | None:
        return None


@dataclass(slots=True)
class Reported:
    """Every row that is reported, from then on."""

    lifetime: int | None
    nbytes: int = 0

    def step(self, rows: Batch, chunk: Chunk, upto: int) -> Leaving:
        return self.report(chunk)

    def before(self, rows: Batch, clock: int, upto: int) -> Leaving | None:
        return None

    def begun(self, answer: pa.RecordBatch | None, clock: int) -> Leaving | None:
        return None

    def report(self, chunk: Chunk) -> Leaving:
        at = dated(chunk.at)
        number = np.arange(chunk.seq, chunk.seq + len(chunk), dtype=np.int64)
        return Leaving(at, at, kept_until(at, self.lifetime), number, tuple(chunk.data.columns))

    def rest(self, answer: pa.RecordBatch | None, at: int) -> Leaving | None:
        return None


@dataclass(slots=True)
class Departures:
    """own: tells what enters and leaves where the query itself does not (Istream)."""

    lifetime: int | None
    schema: Schema
    own: Sink | None = None
    lives: Lives = field(init=False)

    def __post_init__(self) -> None:
        self.lives = Lives(len(self.schema))

    def step(self, rows: Batch, chunk: Chunk, upto: int) -> Leaving:
        reported = chunk if self.own is None else self.own.step(rows, upto)
        return self._left(tuple(reported.data.columns), reported.sign, reported.at, reported.seq)

    def before(self, rows: Batch, clock: int, upto: int) -> Leaving | None:
        if self.own is not None:
            self.own.step(rows, upto)
        return None

    def begun(self, answer: pa.RecordBatch | None, clock: int) -> Leaving | None:
        return self._all(answer, 1, clock)

    def _left(
        self, cols: tuple[pa.Array, ...], sign: np.ndarray, at: np.ndarray, seq: int
    ) -> Leaving:
        ended, born = self.lives.step(cols, sign, at)
        where = pa.array(ended)
        death = dated(at[ended])
        return Leaving(
            death,
            dated(born),
            kept_until(death, self.lifetime),
            seq + ended,
            tuple(c.take(where) for c in cols),
        )

    def report(self, chunk: Chunk) -> Leaving:
        raise AssertionError("a continuous query")

    def rest(self, answer: pa.RecordBatch | None, at: int) -> Leaving | None:
        return self._all(answer, -1, at)

    def _all(self, answer: pa.RecordBatch | None, sign: int, at: int) -> Leaving | None:
        """All rows of the answer enter it, or leave it, at an instant."""
        if self.own is not None and self.own.kept is not None:
            answer = self.own.snapshot()
        if answer is None or not answer.num_rows:
            return None
        n = answer.num_rows
        return self._left(
            tuple(answer.columns), np.full(n, sign, np.int8), np.full(n, at, np.int64), 0
        )

    @property
    def nbytes(self) -> int:
        return self.lives.nbytes + (0 if self.own is None else self.own.nbytes())


def results_of(phys: Phys, lifetime: int | None, eager_instants: bool = False) -> Results:
    """How the results of a plan are archived."""
    node = phys.node
    assert isinstance(node, lp.Output)
    if node.slide is not None or node.kind == "dstream":
        return Reported(lifetime)
    spec = sink_spec(phys, eager_instants)
    pattern = phys.children[0].pattern
    if pattern is Pattern.MON or (pattern < Pattern.STR and phys.strategy != "nt"):
        return Births(lifetime, spec.order)
    if node.kind == "rstream":
        return Departures(lifetime, node.schema)
    reporting = sink_spec(
        replace(phys, node=replace(node, kind="rstream"), states=()), eager_instants
    )
    return Departures(lifetime, node.schema, Sink(reporting))
