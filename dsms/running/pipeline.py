"""The pipeline: the operators of one plan, stepped bottom-up whenever the query's clock moves.

A step goes to an instant that is not too many waiting rows away, and its deltas come in pieces
where an operator makes too many of them (`dsms.operators.pieces`).  Neither changes an answer:
every operator takes instants as wholes, and whatever comes out is in the order of instants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dsms.errors import DsmsError
from dsms.operators.base import Operator
from dsms.operators.basic import ProjectOp
from dsms.operators.expressions import ErrorCounter
from dsms.operators.pieces import Look, Piece, Pieces, aligned, go_on
from dsms.running.sources import StreamSource
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch

Path = tuple[int, ...]
SLICE = 1 << 17  # rows of one source taken in one step, at most
CAREFUL = 1 << 13  # ... in the first one
LEAST = 1 << 10  # ... where steps have to be short
MANY = 1 << 21  # rows out of all operators from which steps get smaller


@runtime_checkable
class Reporting(Protocol):
    """An operator that remembers the rows it has reported and not taken back."""

    def current(self) -> Batch:
        """Those rows, each once, in any order (`ts` is of no meaning)."""
        ...

    def standing(self) -> int:
        """How many they are."""
        ...


@runtime_checkable
class Fallible(Protocol):
    """An operator that may find, at some instant, that the query must stop; its output then ends
    before that."""

    failure: tuple[DsmsError, int] | None


@dataclass(slots=True)
class Stage:
    """One operator of the plan, its place, its inputs, and what it has done."""

    path: Path
    operator: Operator
    inputs: tuple[int, ...]
    rows_in: int = 0
    positive: int = 0
    negative: int = 0
    seconds: float = 0.0
    errors: ErrorCounter | None = None  # rows that fail in it; None: counted with those of others
    in_pieces: Pieces | None = field(init=False)
    fallible: Fallible | None = field(init=False)
    special: bool = field(init=False)

    def __post_init__(self) -> None:
        self.in_pieces = self.operator if isinstance(self.operator, Pieces) else None
        self.fallible = self.operator if isinstance(self.operator, Fallible) else None
        self.special = self.in_pieces is not None or self.fallible is not None

    def run(self, given: Sequence[Batch], upto: int, pipeline: Pipeline) -> Iterator[Piece]:
        """The operator's deltas, counted and timed."""
        pipeline.look()
        timer = pipeline.timer
        began = timer() if timer else 0.0
        for batch in given:
            self.rows_in += len(batch.ts)
        for piece in (
            self._deltas(given, upto, pipeline.look)
            if self.special
            else (self._whole(given, upto),)
        ):
            rows, sign = len(piece[0].ts), piece[0].sign
            deaths = 0 if sign is None else int(np.count_nonzero(sign < 0))
            self.negative += deaths
            self.positive += rows - deaths
            pipeline.made += rows
            if timer:
                self.seconds += timer() - began
            yield piece
            began = timer() if timer else 0.0

    def _whole(self, given: Sequence[Batch], upto: int) -> Piece:
        return self.operator.step(given, upto), upto

    def _deltas(self, given: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        if self.in_pieces is not None:
            yield from self.in_pieces.pieces(given, upto, look)
            return
        out = self.operator.step(given, upto)
        if self.fallible is not None and self.fallible.failure is not None:
            error, at = self.fallible.failure
            if at > ALWAYS:
                yield out, at - 1
            raise error
        yield out, upto


@dataclass(slots=True)
class Pipeline:
    """Stages in post-order: every stage stands behind its inputs; the last is the root.

    timer  seconds, to measure stages with (the engine itself reads no clock); None leaves times at
           0
    look   called between stretches of work.  What it raises ends a step midway, so this pipeline
           can't go on
    rows   rows of one source for the next step, by what the last ones made of theirs
    """

    stages: list[Stage]
    sources: dict[int, StreamSource]  # by the plan's stream leaf number
    timer: Callable[[], float] | None = None
    look: Look = go_on
    upto: int | None = None
    steps: int = 0
    rows: int = field(default_factory=lambda: min(CAREFUL, SLICE))
    made: int = 0  # rows out of all operators in this step
    most: int = field(default_factory=lambda: SLICE)  # rows of one source in a step
    paced: bool = False  # `most` follows how long steps take

    def pace(self) -> None:
        """From now on steps become longer only where `hurry` lets them."""
        if not self.paced:
            self.paced, self.most = True, self.rows

    def hurry(self, short: bool) -> None:
        """Make steps shorter, or let them become longer again."""
        least = min(LEAST, SLICE)
        self.most = max(min(self.rows, self.most) // 2, least) if short else 2 * self.most
        self.most = min(self.most, SLICE)
        self.rows = min(self.rows, self.most)

    def pieces(self, upto: int) -> Iterator[Piece]:
        """A step: all deltas of the root in (previous upto, upto], piece by piece."""
        self.steps += 1
        self.made = 0
        for piece in self._flow(len(self.stages) - 1, upto):
            self.upto = piece[1]
            yield piece
        if self.made > MANY:
            self.rows = max(self.rows // 2, 1)
        elif self.rows // 2 <= self.made < MANY // 4:
            self.rows = min(2 * self.rows, self.most)

    def _flow(self, k: int, upto: int) -> Iterator[Piece]:
        """What comes out of the k-th stage in this step."""
        stage = self.stages[k]
        if len(stage.inputs) == 1:
            for rows, until in self._flow(stage.inputs[0], upto):
                yield from stage.run((rows,), until, self)
        elif stage.inputs:
            for given, until in aligned([self._flow(child, upto) for child in stage.inputs], upto):
                yield from stage.run(given, until, self)
        else:
            yield from stage.run((), upto, self)

    def next_cut(self, upto: int) -> int:
        """An instant <= `upto` that is not too many rows away."""
        return min((s.cut(upto, self.rows) for s in self.sources.values()), default=upto)

    def next_instant(self, after: int, upto: int) -> int:
        """The first instant in (after, upto] at which something may happen; `upto` if none is
        known."""
        return min(upto, max(self.next_due(), after + 1))

    def next_due(self) -> int:
        """The earliest instant at which something would happen (not later than that)."""
        return min(s.operator.next_due() for s in self.stages)

    def answer(self) -> Batch | None:
        """What GROUP BY stands by, through the selections and projections above it; None if there
        is no such root."""
        source, above = self._reporting()
        if source is None:
            return None
        batch = source.current()
        for operator in reversed(above):
            batch = operator.step((batch,), 0 if self.upto is None else self.upto)
        return batch

    def answer_rows(self) -> int | None:
        """How many rows `answer` has, which are made only where a selection stands above."""
        source, above = self._reporting()
        if source is not None and all(isinstance(operator, ProjectOp) for operator in above):
            return source.standing()
        batch = self.answer()
        return None if batch is None else len(batch)

    def _reporting(self) -> tuple[Reporting | None, list[Operator]]:
        """The operator that remembers what it has reported, and those above it, the root first."""
        above: list[Operator] = []
        stage = self.stages[-1]
        while not isinstance(stage.operator, Reporting):
            if len(stage.inputs) != 1:
                return None, above
            above.append(stage.operator)
            stage = self.stages[stage.inputs[0]]
        return stage.operator, above

    def live(self) -> dict[Path, dict[str, Any]]:
        """Live counts per stage, for EXPLAIN ANALYZE; of some operators also a `report`."""
        return {
            s.path: {
                "rows_in": s.rows_in,
                "positive": s.positive,
                "negative": s.negative,
                "state_rows": s.operator.live(),
                "bytes": s.operator.nbytes(),
                "ms": 1000 * s.seconds,
                **({"report": s.operator.report()} if hasattr(s.operator, "report") else {}),
            }
            for s in self.stages
        }

    def nbytes(self) -> int:
        return sum(s.operator.nbytes() for s in self.stages)
