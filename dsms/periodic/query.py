"""A periodic query as it runs: at each boundary b it reports Q(b - 1), as the whole answer or as
its changes (§3.3.4).

How an answer is got at is an `Evaluator`'s business (`evaluated`); this file says when, and what of
it is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from dsms.api import Cancel, Chunk, Push
from dsms.errors import DsmsError
from dsms.operators.answers import Answer, concat, new_rows
from dsms.operators.sort import sort_order
from dsms.periodic.evaluated import EvaluatedQuery, Foretelling
from dsms.periodic.incremental import Incremental
from dsms.periodic.runs import runs
from dsms.periodic.silence import (
    SILENCE,
    Arrivals,
    empty_from,
    gone_at,
    latest_boundary,
    matters_for,
    quiet,
    steady,
    wakes,
)
from dsms.plan.boundaries import boundaries, next_boundary
from dsms.running.faults import CANCELLED, explained
from dsms.running.registered import ENDED, Registered
from dsms.sql.types import ALWAYS, FOREVER, MAX_INSTANT, Schema
from dsms.sql.window import NO_SLIDE, Slide
from dsms.state.batch import Batch
from dsms.state.columns import taken
from dsms.state.foretold import Foretold

ROWS = 1 << 16  # of repeated answers, reported in one go


@runtime_checkable
class Interruptible(Protocol):
    """An evaluator that can read for an answer before it gives it.  scanned: the boundary it has
    read for, if any."""

    scanned: int | None

    def scan(self, boundary: Callable[[], int]) -> Iterator[None]:
        """Read, a slice at a time, for the boundary that is the latest one then."""
        ...


@runtime_checkable
class Stepped(Protocol):
    """An evaluator in which blocks have boundaries of their own."""

    def passes(self, instant: int) -> None:
        """These append nothing up to that instant any more."""
        ...


@dataclass(slots=True)
class PeriodicQuery(EvaluatedQuery):
    """A query with SLIDE."""

    width: int = field(kw_only=True)  # id columns of its answers
    due: int | None = None  # the boundary to be answered next
    until: int = FOREVER  # after this instant there are no boundaries: all its streams have ended
    first: int = ALWAYS  # the first boundary
    latest: pa.RecordBatch | None = None  # instead of `last`: its last row is the answer
    reached: int = ALWAYS  # the instant up to which boundaries have passed, if it is elastic
    arrivals: Arrivals = field(init=False)

    slide: Slide = field(init=False)  # that governs it
    reach: int = field(init=False)  # µs after which a row matters no more
    quiet: int = field(init=False)  # µs that are reported when nothing is left
    steady: bool = field(init=False)  # nothing changes then
    wakes: bool = field(init=False, default=False)  # unless sessions of long gaps end

    def __post_init__(self) -> None:
        self.slide = self.output.slide or NO_SLIDE
        self.reach, self.quiet = matters_for(self.output), quiet(self.slide, self.output)
        self.steady, self.wakes = steady(self.output), wakes(self.output)
        self.arrivals = Arrivals(self.quiet)
        EvaluatedQuery.__post_init__(self)

    def at_work(self) -> tuple[object, int]:
        if not isinstance(self.evaluator, Incremental) or self.numbers is not None:
            return None, FOREVER
        soon = self.elastic or self.due is None
        return self.evaluator.inner, ALWAYS if soon else (self.due or 0) - 1

    def looked(self) -> int:
        """The instant up to which it has answered, or could not have."""
        if self.due is None:
            return self.clock if self.numbers is None else ALWAYS
        if self.numbers is None:
            return self.due - 1
        return (
            self.numbers.ts(self.clock)
            if self.numbers.starts and self.clock >= self.numbers.starts[0]
            else ALWAYS
        )

    def begin(self, first_row: int) -> None:
        """Rows are there: the first boundary is the one after registration or the first row,
        whichever is later."""
        if self.numbers is not None:
            first_row = self.registered
        if self.due is None:
            begun = max(self.registered, first_row)
            self.first = self.due = next_boundary(self.slide, begun)
            self._passes(begun)

    def take_rows(self, stream: str, rows: Sequence[Batch]) -> None:
        """Rows of a stream come."""
        for batch in rows:
            self.heard(stream, batch.ts)
        Registered.take_rows(self, stream, rows)

    @property
    def left_to_group(self) -> bool:
        """Whether its group answers it."""
        return self.grouped and self.due is not None

    def put_in(self, clock: int, due: Callable[[], int]) -> tuple[int, bool]:
        """See `Registered`.  Rows of a boundary have its instant."""
        upto, ended = due(), clock >= ENDED and self.failure is None
        if self.due is None:
            return upto, ended
        if self.numbers is None:
            upto = min(self.due - 1, max(upto, self.clock + 1))
            return upto, ended and self.due > self.ends
        if self.due - 1 > self.numbers.upto(upto):
            return upto, ended
        return max(self.looked() - 1, ALWAYS), False

    def no_more(self, newest: Callable[[str], int], front: int) -> None:
        """All its streams have ended, with these rows (by stream: `silence.empty_from`), and got to
        `front`: the first boundary at which none of them is left in its windows is the last."""
        if self.until == FOREVER and self.numbers is None:
            empty = empty_from(self.output, newest)
            self.until = max(int(next_boundary(self.slide, empty)), front + 1)

    def advance(self, upto: int, cancel: Cancel | None = None) -> None:
        """Answer all boundaries b with b - 1 <= `upto`."""
        if self.evaluator.together or self.elastic:
            return
        upto = upto if self.numbers is None else self.numbers.upto(upto)
        while self.failure is None and self.due is not None:
            end = min(upto, self.ends - 1)
            if self.due - 1 > end:
                return
            if self.numbers is not None or not self._silent(end):
                self._evaluated(self.due, cancel)
            if cancel is not None and self.due is not None and self.due - 1 <= upto:
                cancel.between()

    def heard(self, source: str, instants: np.ndarray) -> None:
        """Rows of a stream have come, or changes of a table (int64[n], ascending)."""
        if self.numbers is None:
            self.arrivals.heard(source, instants)

    def reported_until(self, arrivals: Arrivals) -> int:
        """The last boundary that is reported if nothing comes any more."""
        assert self.due is not None
        newest = max(self.first, arrivals.before(self.due))
        return min(FOREVER, gone_at(self.slide, self.reach, newest) + self.quiet)

    def _foretold(self) -> Sequence[tuple[Foretold, int]]:
        return self.evaluator.foretold() if isinstance(self.evaluator, Foretelling) else ()

    @property
    def closed(self) -> int:
        """Up to where it may be answered, once its streams have ended; ALWAYS before that."""
        last = MAX_INSTANT if self._foretold() else self.until - 1  # `ends`, as rows are seen
        return ALWAYS if self.until == FOREVER else last

    @property
    def ends(self) -> int:
        """The last boundary there is, as far as that is known; FOREVER: there are more."""
        known = () if self.until == FOREVER else self._foretold()
        lasts = [min(f.last + after, MAX_INSTANT) for f, after in known if f.last > ALWAYS]
        return max([self.until, *(next_boundary(self.slide, last) for last in lasts)])

    def _silent(self, upto: int) -> bool:
        """Whether the answer stays as it is up to boundaries that have passed; that is reported
        then, or passed over."""
        assert self.due is not None
        newest = max(self.first, self.arrivals.before(self.due))
        if self.answered <= gone_at(self.slide, self.reach, newest):
            return False
        known = self._foretold()
        newest = max([newest, *(f.before(self.due) for f, _ in known)])
        gone = gone_at(self.slide, self.reach, newest)
        if self.answered <= gone:
            return False
        after = [self.arrivals.after(self.due - 1), *(f.after(self.due - 1) for f, _ in known)]
        stirs, reported_up_to = min(*after, upto + 1), min(FOREVER, gone + self.quiet)
        if self.wakes:
            stirs = min(stirs, self.evaluator.next_due())
        if self.due > stirs or (self.due <= reported_up_to and not self.steady):
            return False
        if self.due > reported_up_to:
            self.pass_over(stirs)
        else:
            self._repeat(min(stirs, reported_up_to))
        self.arrivals.forget(self.due)
        return True

    def _repeat(self, upto: int) -> None:
        """The next boundaries up to `upto` answer as the last one did."""
        assert self.due is not None
        again = self.last if self.output.kind == "rstream" and not self.evaluator.deltas else None
        n = 0 if again is None else again.n
        at = boundaries(self.slide, self.due - 1, upto, max(1, ROWS // max(1, n)))
        self.evaluations += len(at)
        self.answered = int(at[-1])
        if again is not None and n:
            self._publish(np.repeat(at, n), again.take(np.tile(np.arange(n), len(at))))
        else:
            self.tell(Push(self.name, self.seq, "progress", self.answered))
        self._answered(self.answered)

    def _evaluated(self, boundary: int, cancel: Cancel | None) -> None:
        try:
            self._answer(boundary, cancel)
        except Exception as fault:
            if isinstance(fault, DsmsError) and fault.code == CANCELLED:
                raise
            self.fail(explained(self.name, fault, f"at boundary {boundary}"))
        else:
            self._answered(boundary)

    def refresh(self, names: tuple[str, ...] = ()) -> None:
        """Evaluate once, as of the latest boundary that has passed (elastic queries; see
        `behind`)."""
        if self.failure is not None or self.due is None or self.due > self.reached:
            return
        self._evaluated(self._latest(), None)

    def slices(self) -> Iterator[None]:
        """`refresh`, a sub-window at a time where a scan can be interrupted: it answers the
        boundary that is the latest one when it commits (or, under `ws`, when it begins)."""
        if (
            isinstance(self.evaluator, Interruptible)
            and self.due is not None
            and self.due <= self.reached
        ):
            yield from self.evaluator.scan(self._latest)
            if self.evaluator.scanned is not None and self.failure is None:
                self._evaluated(self.evaluator.scanned, None)
                return
        self.refresh()

    def _latest(self) -> int:
        """The latest boundary that has passed and is not answered."""
        assert self.due is not None
        return max(int(next_boundary(self.slide, self.reached - self.slide.every)), self.due)

    def behind(self, upto: int) -> int:
        """Time has come to `upto`: how many boundaries have passed since the last call."""
        upto = self.numbers.upto(upto) if self.numbers is not None else min(upto, self.ends - 1)
        if self.due is None or upto + 1 <= self.reached:
            return 0
        after, self.reached = max(self.reached, self.due - 1), upto + 1
        return len(boundaries(self.slide, after, upto + 1, SILENCE))

    def _answered(self, boundary: int) -> None:
        self.clock = boundary - 1
        self.due = next_boundary(self.slide, boundary)

    def pass_over(self, instant: int) -> None:
        """The boundaries up to `instant` answer as the last one did, over no rows."""
        instant = min(instant, self.ends)
        if self.due is not None and self.due <= instant:
            last = latest_boundary(self.slide, self.due - 1, instant)
            self.answered = last
            self.tell(Push(self.name, self.seq, "progress", last))
            self._answered(last)
            self._passes(last)

    def _passes(self, instant: int) -> None:
        if isinstance(self.evaluator, Stepped):
            self.evaluator.passes(instant)

    def take(self, rows: pa.RecordBatch, at: np.ndarray, sign: np.ndarray, each: int) -> None:
        """Answers of one row at every boundary `at`; `each`: bytes of a row, about."""
        self.evaluations += len(at)
        self.latest, self.last = rows, None
        self.answered = int(at[-1])
        self.publish(Chunk(self.log.next_seq, sign, at, rows, each * len(at)))
        self._answered(self.answered)

    def report(self, at: np.ndarray, span: np.ndarray, cols: list[pa.Array], n: int) -> None:
        """Answers of several boundaries at once: boundary of each, then the rows of all in order of
        boundary (`span`: its index) and then in their fixed order."""
        self.evaluations += len(at)
        if self.sort is not None:
            order = sort_order(cols, n, self.sort, self.errors, spans=span)
            cols, span, n = [taken(c, order) for c in cols], span[order], len(order)
        reported_up_to = (
            at
            if self.numbers is None
            else np.array([self.numbers.ts(int(b) - 1) for b in at], np.int64)
        )
        if self.output.kind == "rstream":
            first = int(np.searchsorted(span, len(at) - 1))
            self.last = Answer(n - first, tuple(c.slice(first, n - first) for c in cols))
            shown = Answer(n, tuple(cols))
        else:
            shown, span = self._changes_of(len(at), Answer(n, tuple(cols)), span)
        self.answered = int(reported_up_to[-1])
        for first, end, silent in runs(reported_up_to, span):
            if silent is not None:
                self.tell(Push(self.name, self.seq, "progress", silent))
            piece = shown if end - first == shown.n else shown.take(np.arange(first, end))
            self._publish(reported_up_to[span[first:end]], piece)
        if not shown.n or span[-1] < len(at) - 1:
            self.tell(Push(self.name, self.seq, "progress", self.answered))
        self._answered(int(at[-1]))

    def _changes_of(self, count: int, rows: Answer, span: np.ndarray) -> tuple[Answer, np.ndarray]:
        cuts = np.searchsorted(span, np.arange(count + 1))
        parts = [self._changes(rows.take(np.arange(a, b))) for a, b in pairwise(cuts)]
        return concat(parts), np.repeat(np.arange(count), [p.n for p in parts])

    def _answer(self, boundary: int, cancel: Cancel | None) -> None:
        shown = self.evaluator.evaluate(boundary, cancel)
        self.evaluations += 1
        if self.sort is not None:
            shown = shown.take(sort_order(shown.cols, shown.n, self.sort, self.errors))
        if not self.evaluator.deltas:
            shown = self._changes(shown)
        at = boundary if self.numbers is None else self.numbers.ts(boundary - 1)
        self.answered = at
        self._publish(np.full(shown.n, at, np.int64), shown)
        if not shown.n:
            self.tell(Push(self.name, self.seq, "progress", at))

    def _publish(self, at: np.ndarray, shown: Answer) -> None:
        if shown.n:
            self.publish(Chunk(self.seq, np.zeros(shown.n, np.int8), at, self.batch(shown, at)))

    def publish(self, chunk: Chunk) -> None:
        """Answers, numbered on from `seq`."""
        if self.archived is not None:
            self.archived.report(chunk)
        Registered.publish(self, chunk)

    def goes_on(self, last: Answer | None, answered: int) -> None:
        """It comes in the place of a query that gave that answer at the boundary `answered`: what
        entered or left since is what it tells first."""
        if self.numbers is None:
            self.registered = max(self.registered, answered)
            if self.due is not None and self.due <= answered:
                self.first = self.due = next_boundary(self.slide, answered)
        if self.output.kind == "rstream":
            return
        if isinstance(self.evaluator, Incremental) and self.evaluator.deltas:
            self.evaluator.tell_from(answered)
        elif last is not None:
            self.last = _values(last, self.output.schema)

    def _changes(self, now: Answer) -> Answer:
        """What of the answer is reported."""
        before = self.last if self.last is not None else now.take(np.empty(0, np.int64))
        self.last = now
        # by value, as where one is of another plan: what only ORDER BY sees is no part of a row
        if not now.ids or not before.ids:
            now, before = (_values(a, self.output.schema) for a in (now, before))
        match self.output.kind:
            case "istream":
                return new_rows(now, before)
            case "dstream":
                return new_rows(before, now)
        return now

    def answer(self) -> pa.RecordBatch | None:
        """The last answer; None before the first, and for a query that only streams."""
        if self.last is None and self.latest is not None:
            return self.latest.slice(self.latest.num_rows - 1)
        if self.last is None or self.output.kind != "rstream":
            return None
        return self.batch(self.last, np.full(self.last.n, self.answered, np.int64))

    def answer_rows(self) -> int:
        return int(self.latest is not None) if self.last is None else self.last.n


def _values(rows: Answer, schema: Schema) -> Answer:
    """The rows as they are told (more columns are there for ORDER BY only)."""
    return Answer(rows.n, rows.cols[: len(schema)])
