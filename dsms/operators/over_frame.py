"""The rows in a frame of OVER, and what its calls are of them.

Each row is followed by the aggregates of GROUP BY (`dsms.aggregates`): the rows that have left the
frame of its group depart, it arrives, and that event asks for the answers.  Rows leave in the order
in which they came, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.aggregates.parts.base import Aggregate, Answers, GroupEvents
from dsms.aggregates.parts.distinct import Distinct
from dsms.aggregates.parts.links import NIL, moved_links, renamed
from dsms.aggregates.parts.texts import OwnTexts
from dsms.aggregates.parts.words import NONE, Codes, Coding
from dsms.aggregates.sums import WholeRows, overflow
from dsms.errors import QueryError
from dsms.operators import over_kernels
from dsms.operators.group_args import ArgColumn
from dsms.operators.group_keys import GroupKeys
from dsms.operators.group_touch import Scratch
from dsms.operators.over_bounds import Bounds
from dsms.operators.pieces import Look
from dsms.sql import logical as lp
from dsms.state.columns import Column, arrow_values
from dsms.state.lengthening import grown
from dsms.state.vec import Vec

Columns = Sequence[pa.Array]
Evaluate = Callable[[Columns, int], pa.Array]
DROP_FROM = 4096  # slots of rows that are gone; fewer are left lying
NO_WORDS = np.empty(0, np.int64)


@dataclass(slots=True)
class Folded:
    """A call that is an aggregate of the rows in the frame.

    columns  its arguments, by slot;  serving  follows the rows;  coding  what its answers mean"""

    columns: list[ArgColumn]
    serving: Aggregate
    coding: Coding


@dataclass(slots=True)
class Before:
    """LAG: the value of the row at the beginning of the frame, where that is full.

    default  what stands where there is no such row; None: NULL"""

    value: Evaluate
    default: Evaluate | None
    kept: Column  # by slot


@dataclass(slots=True)
class FrameRows:
    """The rows in the frame of each group.

    keeps   whether rows leave; else nothing is kept of them
    keys    evaluators of what rows are grouped by
    calls   per call: an aggregate, LAG, or (None) the number of rows"""

    frame: lp.Frame
    keeps: bool
    keys: list[Evaluate]
    calls: list[Folded | Before | None]
    groups: GroupKeys = field(init=False)
    count: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # by group
    head: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # by group
    tail: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # by group
    seen: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # by group
    ts: Vec = field(default_factory=Vec)  # by slot, and so the following
    number: Vec = field(default_factory=Vec)
    place: Vec = field(default_factory=Vec)
    code: Vec = field(default_factory=Vec)
    after: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    gone: Vec = field(default_factory=lambda: Vec(np.bool_))
    oldest: int = 0
    alive: int = 0  # groups with rows
    kept: int = 0  # rows in frames
    scratch: Scratch = field(default_factory=Scratch)
    failure: tuple[QueryError, int] | None = None  # the first row whose sum does not fit

    def __post_init__(self) -> None:
        self.groups = GroupKeys(tuple(k.type for k in self.frame.by))

    # ------------------------------------------------------------ rows come

    def step(self, cols: Columns, rows: Bounds, upto: int, look: Look) -> list[pa.Array]:
        """What the calls are of each of these rows; `cols` are those of the rows that count, which
        `rows.places` tells among all `rows.n`."""
        n = len(rows.ts)
        code = self.groups.codes([k(cols, n) for k in self.keys], n, look)
        self._room(self.groups.capacity)
        lag = NO_WORDS
        if self.keeps:
            events, lag = self._followed(cols, code, rows, upto)
        else:
            events = self._gathered(code)
        answers = []
        for call in self.calls:
            look()
            match call:
                case None:
                    answers.append(_spread(arrow_values(events.live.copy(), None), rows))
                case Before():
                    answers.append(_spread(self._before(call, cols, n, lag), rows))
                case Folded():
                    answers.append(_spread(self._folded(call, cols, events, rows.ts), rows))
        self._settle()
        return answers

    def _room(self, capacity: int) -> None:
        self.count = grown(self.count, capacity)
        if self.keeps:
            self.seen = grown(self.seen, capacity)
            self.head, self.tail = (grown(e, capacity, NIL) for e in (self.head, self.tail))

    def _gathered(self, code: np.ndarray) -> GroupEvents:
        n = len(code)
        live = np.empty(n, np.int64)
        over_kernels.gather(code, self.count, live)
        places = np.arange(n, dtype=np.int64)
        sign = np.ones(n, np.int8)
        return GroupEvents(code, sign, places, places, live, touches=n, groups=self.groups.capacity)

    def _followed(
        self, cols: Columns, code: np.ndarray, rows: Bounds, upto: int
    ) -> tuple[GroupEvents, np.ndarray]:
        n, first = len(code), self.ts.n
        self.ts.extend(rows.ts)
        self.number.extend(rows.number)
        for vec in (self.place, self.code, self.gone):
            vec.extend_fill(n, 0)
        self.after = grown(self.after, self.ts.n, NIL)
        for call in self.calls:
            if isinstance(call, Before):
                call.kept.append(call.value(cols, n))
        most = 2 * n + self.kept
        e_code, e_slot, e_emit = self.scratch.ints(most, 3)
        e_sign = self.scratch.signs8(most)
        live, lag = np.empty(n, np.int64), np.empty(n, np.int64)
        back = NIL if self.frame.rows is None else self.frame.rows
        m, self.oldest, alive = over_kernels.follow(
            code,
            first,
            rows.since_of(self.frame),
            rows.least,
            back,
            np.array(rows.limit_of(self.frame, upto), np.int64),
            self.head,
            self.tail,
            self.seen,
            self.count,
            self.ts.view,
            self.number.view,
            self.place.view,
            self.code.view,
            self.after,
            self.gone.view,
            self.oldest,
            e_code,
            e_sign,
            e_slot,
            e_emit,
            live,
            lag,
        )
        self.alive += alive
        self.kept += n - (m - n)
        events = (e_code[:m], e_sign[:m], e_slot[:m], e_emit[:m])
        return GroupEvents(*events, live, touches=n, groups=self.groups.capacity), lag

    # ------------------------------------------------------------ answers

    def _folded(self, call: Folded, cols: Columns, events: GroupEvents, ts: np.ndarray) -> pa.Array:
        n = events.touches
        lifted = [c.lift(cols, n) for c in call.columns]
        if self.keeps:
            for column, new in zip(call.columns, lifted, strict=True):
                column.keep(new, n)
            lifted = [c.view() for c in call.columns]
        high = np.zeros(n, np.int64) if call.coding.wide else NONE
        out = Answers(np.zeros(n, np.int64), high, np.zeros(n, np.bool_))
        call.serving.run(events, tuple(lifted), out)
        self._check(call.serving, ts)
        return call.coding.decode(out.words, out.high, out.valid, np.arange(n))

    def _check(self, serving: Aggregate, ts: np.ndarray) -> None:
        """Note the first row whose sum does not fit: the query must stop there."""
        inside = serving.inside if isinstance(serving, Distinct) else serving
        if isinstance(inside, WholeRows) and inside.over >= 0:
            at = int(ts[inside.over])
            if self.failure is None or at < self.failure[1]:
                self.failure = overflow(inside.result), at

    def _before(self, call: Before, cols: Columns, n: int, lag: np.ndarray) -> pa.Array:
        some = lag >= 0
        if some.all():
            return call.kept.gather(lag)
        found = call.kept.gather(lag[some])
        places = pa.array(np.maximum(np.cumsum(some) - 1, 0), mask=~some)
        values = found.take(places) if len(found) else pa.nulls(n, found.type)
        if call.default is None:
            return values
        return pc.if_else(pa.array(some), values, call.default(cols, n))

    # ------------------------------------------------------------ rows go

    def _settle(self) -> None:
        """Let go of slots, groups and coded values that nothing uses any more."""
        dead = self.ts.n - self.kept
        if self.keeps and dead >= DROP_FROM and 2 * dead >= self.ts.n:
            self._compact()
        if self.keeps and self.groups.wants_purge(self.alive):
            self.groups.purge(self.count[: self.groups.capacity] > 0)
        for call in self.calls:
            if isinstance(call, Folded):
                self._purge(call)

    def _compact(self) -> None:
        live = ~self.gone.view
        kept = np.flatnonzero(live)
        where = np.cumsum(live) - 1
        where[~live] = NIL
        for vec in (self.ts, self.number, self.place, self.code, self.gone):
            vec.keep(kept)
        self.after = moved_links(self.after, where, kept)
        self.head, self.tail = renamed(self.head, where), renamed(self.tail, where)
        self.oldest = 0
        for call in self.calls:
            if isinstance(call, Before):
                call.kept.keep(kept)
            elif call is not None:
                for column in call.columns:
                    column.moved(kept)
                call.serving.moved(where)

    def _purge(self, call: Folded) -> None:
        used = self.kept + self.groups.capacity
        for k, column in enumerate(call.columns):
            if isinstance(column.coding, Codes) and column.coding.crowded(2 * used):
                own = [column.held(~self.gone.view)] if self.keeps else []
                column.coding.purge([*own, *call.serving.held()[k : k + 1]])
        if isinstance(call.serving, OwnTexts):
            call.serving.forget(NO_WORDS)

    @property
    def nbytes(self) -> int:
        vecs = (self.ts, self.number, self.place, self.code, self.gone)
        arrays = (self.count, self.head, self.tail, self.seen, self.after)
        own = sum(v.nbytes for v in vecs) + sum(a.nbytes for a in arrays)
        return int(own + self.scratch.nbytes + self.groups.nbytes + sum(map(_size, self.calls)))


def _size(call: Folded | Before | None) -> int:
    match call:
        case Folded():
            columns = sum(c.nbytes + c.coding.nbytes for c in call.columns)
            return int(call.serving.nbytes + columns)
        case Before():
            return call.kept.nbytes
        case None:
            return 0


def _spread(values: pa.Array, rows: Bounds) -> pa.Array:
    """The values of the rows that count among all; NULL for the others."""
    if rows.places is None:
        return values
    index = np.zeros(rows.n, np.int64)
    index[rows.places] = np.arange(len(rows.places))
    missing = np.ones(rows.n, np.bool_)
    missing[rows.places] = False
    return (
        values.take(pa.array(index, mask=missing)) if len(values) else pa.nulls(rows.n, values.type)
    )
