"""The pipeline: the operators of one plan, stepped bottom-up whenever the query's clock moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from dsms.operators.base import Operator
from dsms.running.sources import StreamSource
from dsms.state.batch import Batch

Path = tuple[int, ...]
SLICE = 1 << 17  # rows of one source taken in one step


@runtime_checkable
class Reporting(Protocol):
    """An operator that remembers the rows it has reported and not taken back."""

    def current(self) -> Batch:
        """Those rows, each once, in any order (`ts` is of no meaning)."""
        ...


@dataclass(slots=True)
class Stage:
    """One operator of the plan, where it stands, whom it reads, and what it has done."""

    path: Path
    operator: Operator
    inputs: tuple[int, ...]
    rows_in: int = 0
    positive: int = 0
    negative: int = 0
    seconds: float = 0.0

    def run(self, batches: list[Batch | None], upto: int) -> Batch:
        given = []
        for k in self.inputs:
            batch = batches[k]
            assert batch is not None
            given.append(batch)
            batches[k] = None
        self.rows_in += sum(len(b) for b in given)
        out = self.operator.step(given, upto)
        deaths = 0 if out.sign is None else int((out.sign < 0).sum())
        self.negative += deaths
        self.positive += len(out) - deaths
        return out


@dataclass(slots=True)
class Pipeline:
    """Stages in post-order: every stage stands behind its inputs; the last is the root.

    `timer`: seconds, to measure stages with (the engine itself reads no clock); None leaves times at 0."""

    stages: list[Stage]
    sources: dict[int, StreamSource]  # by the plan's stream leaf number
    timer: Callable[[], float] | None = None
    upto: int | None = None
    steps: int = field(default=0)

    def step(self, upto: int) -> Batch:
        """All deltas of the root in (previous upto, upto]."""
        batches: list[Batch | None] = []
        self.steps += 1
        for stage in self.stages:
            began = self.timer() if self.timer else 0.0
            batches.append(stage.run(batches, upto))
            if self.timer:
                stage.seconds += self.timer() - began
        self.upto = upto
        root = batches[-1]
        assert root is not None
        return root

    def next_cut(self, upto: int) -> int:
        """An instant <= `upto` that is not too many rows away."""
        return min((s.cut(upto, SLICE) for s in self.sources.values()), default=upto)

    def next_instant(self, after: int, upto: int) -> int:
        """The first instant in (after, upto] at which something may happen; `upto` if none is known."""
        return min(upto, max(self.next_due(), after + 1))

    def next_due(self) -> int:
        """The earliest instant at which something would happen (not later than that)."""
        return min(s.operator.next_due() for s in self.stages)

    def answer(self) -> Batch | None:
        """What GROUP BY stands by, through the selections and projections above it; None if there is no such root."""
        k, above = len(self.stages) - 1, []
        while not isinstance(self.stages[k].operator, Reporting):
            if len(self.stages[k].inputs) != 1:
                return None
            above.append(self.stages[k].operator)
            (k,) = self.stages[k].inputs
        source = self.stages[k].operator
        assert isinstance(source, Reporting)
        batch = source.current()
        for operator in reversed(above):
            batch = operator.step((batch,), 0 if self.upto is None else self.upto)
        return batch

    def live(self) -> dict[Path, dict[str, float]]:
        """Live counts per stage, for EXPLAIN ANALYZE."""
        return {
            s.path: {
                "rows_in": s.rows_in,
                "positive": s.positive,
                "negative": s.negative,
                "state_rows": s.operator.live(),
                "bytes": s.operator.nbytes(),
                "ms": 1000 * s.seconds,
            }
            for s in self.stages
        }

    def nbytes(self) -> int:
        return sum(s.operator.nbytes() for s in self.stages)
