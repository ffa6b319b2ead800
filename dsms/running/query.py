"""A registered query as it runs: its plan, pipeline, sink, result log and readers."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.api import Cancel, Chunk
from dsms.errors import DsmsError
from dsms.operators.base import Stateless
from dsms.operators.basic import by_parts
from dsms.operators.passing import Through
from dsms.operators.pieces import Piece
from dsms.operators.sink import Sink
from dsms.running.chosen import REGISTERED, Chosen
from dsms.running.faults import explained, too_much_state
from dsms.running.late_reads import late_reads
from dsms.running.moving import advance
from dsms.running.part import PartFeed, failure_below, feeds_of, let_go, live, reached
from dsms.running.pipeline import Path, Pipeline
from dsms.running.registered import Registered
from dsms.running.sources import StreamSource
from dsms.sql.plan_reads import answers_of
from dsms.sql.types import ALWAYS, arrow_schema
from dsms.state.batch import Batch

LARGE = 1 << 16  # rows of a piece after which state is looked at
NEAR = 1 << 20  # bytes below the limit: from there on state is looked at after each piece
SELDOM = 16  # pieces between two looks at the state, at most


@dataclass(slots=True)
class RunningQuery(Registered):
    """A continuous query.  `early` where the plan keeps nothing and reads one stream."""

    pipeline: Pipeline = field(kw_only=True)
    sink: Sink = field(kw_only=True)
    begun: int = ALWAYS  # the instant to which the step under way, or the last one, goes
    flow: Iterator[Piece] | None = None  # what remains of the step under way
    pieces: int = 0  # since state was looked at
    patience: int = 1  # pieces after which it is looked at
    seen_bytes: int = 0  # of state, when it was looked at
    shares: bool = False  # parts of its plan run for others, too
    moved_answer: bool = False  # an operator that had its answer is among these
    # the arrival number of the first row that it was given, by stream leaf, and the instant from
    # which on it sees tables change; None: not known
    starts: dict[int, int] | None = None
    since: int = ALWAYS
    chosen: Chosen = REGISTERED  # why it runs by this plan
    # by stream, the number of the first promise that it does not go by (`promised`)
    promised: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plain = all(
            isinstance(s.operator, StreamSource | Stateless | Through) and len(s.inputs) <= 1
            for s in self.pipeline.stages
        )
        self.reads = tuple(sorted(set(self.streams.values())))
        self.early = plain and len(self.streams) == 1 and not self.tables and self.sink.kept is None
        self.early = self.early and not any(answers_of(self.output))

    def start(self) -> None:
        """Report what is there before every instant: the empty answer of a global aggregate, rows
        of tables."""
        self.log.known_from = ALWAYS
        self._begin(ALWAYS)
        self.advance(ALWAYS)

    def begin(self, clock: int, tells: bool = True) -> Iterator[None]:
        """Start at an instant, with what its sources were given of the past; piece by piece.

        How its answer came about is not reported; the answer at that instant is the first thing
        that a view reports, if it `tells` of it."""
        self.log.known_from = clock
        if clock == ALWAYS:
            self._begin(ALWAYS)
            yield from self.going(ALWAYS)
            return
        self._begin(ALWAYS)
        yield from self.going(clock, clock)
        self.sink.seq = 0
        if self.failure is None and tells:
            yield from self._reporting_first(clock)

    def _reporting_first(self, clock: int) -> Iterator[None]:
        kept = self.sink.kept is not None
        rows = (yield from self.sink.snapshotting(at_once=True)) if kept else self.answer()
        if self.archived is not None:
            self.archived.begun(rows, clock)
        if rows is None or self.sink.spec.kind != "rstream":
            return
        n = rows.num_rows
        self.sink.seq = n
        self.publish(Chunk(0, np.ones(n, np.int8), np.full(n, clock, np.int64), rows))

    @property
    def read_tables(self) -> int:
        return late_reads(self.output, self.pipeline, self.clock)

    def advance(self, upto: int, cancel: Cancel | None = None) -> None:
        """Answer all instants <= `upto`.  An error stops the query and is kept.

        `cancel` raises between two pieces of work; the next call goes on where this one stopped."""
        advance(self, upto, cancel)

    def going(self, upto: int, past: int | None = None) -> Iterator[None]:
        """`advance`, piece by piece.

        past    the instant at which it begins: what comes of those up to there is not reported"""
        for feed in self.feeds:
            yield from feed.part.going(upto)
        upto = reached(self.pipeline, upto)
        while self.failure is None and (
            self.flow is not None or upto > self.clock or self._early_rows(upto)
        ):
            if self.flow is None:
                self._begin(self._next_cut(upto))
            self._go_on(past)
            yield
        if self.failure is None and (broken := failure_below(self.pipeline, self.clock)):
            self.fail(copy(broken))

    @property
    def feeds(self) -> list[PartFeed]:
        """Where it takes up what shared parts of its plan make."""
        return feeds_of(self.pipeline) if self.shares else []

    def _next_cut(self, upto: int) -> int:
        """How far the next step goes.  Where a failing row stops the query, instant by instant, so
        that what was answered before that row's instant stands."""
        if self.errors.mode == "stop":
            return self.pipeline.next_instant(self.clock, upto)
        return self.pipeline.next_cut(upto)

    def _early_rows(self, upto: int) -> bool:
        return (
            self.early
            and upto == self.clock
            and any(s.next_due() <= upto for s in self.pipeline.sources.values())
        )

    def next_due(self) -> int:
        """The earliest instant at which something would happen in it (not later than that)."""
        return min(self.pipeline.next_due(), self.sink.next_due())

    def skip(self, upto: int) -> None:
        """Nothing happens in it up to there."""
        if upto > self.clock:
            self.clock = self.begun = self.pipeline.upto = upto

    def _begin(self, upto: int) -> None:
        self.begun = upto
        self.flow = self.pipeline.pieces(upto)

    def _go_on(self, past: int | None) -> None:
        """Report the next piece of the step under way, or find that it is done."""
        assert self.flow is not None
        try:
            piece = next(self.flow, None)
            if piece is None:
                self.flow = None
                return
            rows, upto = piece
            reported = self.sink.step(rows, upto)
            if self.archived is not None and past is not None:
                self.archived.before(rows, past, upto)
            elif self.archived is not None:
                self.archived.step(rows, reported, upto)
            if past is None:
                self.publish(reported)
            self.clock = upto
            self.pieces += 1
            if self.pieces >= self.patience or len(rows) > LARGE:
                self._check_state()
        except Exception as fault:
            self.fail(explained(self.name, fault, f"on the way to instant {self.begun}"))

    def _check_state(self) -> None:
        """Hold state against its limit.  The next look comes before it is reached, if state grows
        no more than twice as fast as since the last look."""
        used = self._own_bytes() + sum(feed.part.whole() for feed in self.feeds)
        if used > self.state_limit:
            raise too_much_state(self.name, used, self.state_limit)
        left = self.state_limit - used
        a_piece = max(used - self.seen_bytes, 0) // max(self.pieces, 1)
        most = left // (2 * a_piece + 1)
        self.patience = 1 if left < NEAR else min(max(most, 1), SELDOM)
        self.pieces, self.seen_bytes = 0, used

    def fail(self, error: DsmsError) -> None:
        """The query stops, midway in its step, and takes up nothing more."""
        self.flow = None
        for feed in self.feeds:
            let_go(feed)
        Registered.fail(self, error)

    def answer(self) -> pa.RecordBatch | None:
        """The answer as of the query's clock; None for a query that only streams."""
        if self.sink.kept is not None:
            return self.sink.snapshot(at_once=self.moved_answer)
        rows = self.pipeline.answer()
        if rows is None:
            return None
        cols = by_parts(
            Batch(np.zeros_like(rows.ts), None, None, rows.ids, rows.cols), self.sink.spec.order
        ).cols
        return pa.RecordBatch.from_arrays(list(cols), schema=arrow_schema(self.sink.spec.schema))

    def answer_rows(self) -> int:
        if self.sink.kept is not None:
            return self.sink.live()
        rows = self.pipeline.answer_rows() if self.sink.spec.kind == "rstream" else None
        return rows or 0

    def live(self) -> dict[Path, dict[str, Any]]:
        """Live counts per place in the plan; the root's are those of the answer that is kept."""
        counts = live(self.pipeline)
        counts[()].update(state_rows=self.answer_rows(), bytes=self.sink.nbytes())
        return counts

    def nbytes(self) -> int:
        """Of its own, and its share of what it has with others."""
        return self._own_bytes() + sum(feed.part.share() for feed in self.feeds)

    def _own_bytes(self) -> int:
        own = self.pipeline.nbytes() + self.sink.nbytes()
        return own if self.archived is None else own + self.archived.nbytes

    def sources_of(self, stream: str) -> Iterator[StreamSource]:
        """The plan's leaves that read a stream by themselves."""
        for leaf, key in self.streams.items():
            if key == stream and leaf in self.pipeline.sources:
                yield self.pipeline.sources[leaf]

    def keep_answer(self, rows: Batch | None) -> None:
        """Keep the answer, these rows (None: it has none yet), in the sink: the operator that had
        it is no longer its own."""
        spec = replace(self.sink.spec, view=True)
        seq, self.sink = self.sink.seq, Sink(spec)
        if rows is not None:
            self.sink.step(rows, self.clock)
        self.sink.seq, self.moved_answer = seq, True
