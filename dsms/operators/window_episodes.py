"""[SESSION gap BY k] and [WHEN start UNTIL stop BY k]: episodes of a key, which end as a whole.

Input    MON: rows in order of (ts, arrival).
State    The rows of open episodes, chained by key; of sessions whose rows have gaps of their own a
         heap of the instants at which the open ones end, each of them there once.  What has ended
         is let go of at once.
Cost     O(1) a row; with such a heap O(log keys) where a session begins, ends, or has been
         prolonged since its entry was last looked at.
Output   STR: all rows of an episode leave, announced, at its end.  `at_close`: MON: nothing until
         an episode ends, then its rows, as of that instant.

A row that leaves in the instant in which it came was never there; an episode that begins and ends
in one instant was none (as a join result exists only if ts < exp).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.operators.base import Builds
from dsms.operators.basic import by_parts
from dsms.operators.episode_kernels import (
    closed,
    come_and_go,
    rows_of,
    sessions,
    steady_sessions,
    whens,
)
from dsms.operators.group_keys import Dense, coded
from dsms.operators.pieces import InStretches, Look
from dsms.operators.window import dated, later
from dsms.plan.identity import order, width
from dsms.sql.logical import Window
from dsms.sql.types import ALWAYS, FOREVER, Schema
from dsms.sql.window import Session, When
from dsms.state.batch import Batch
from dsms.state.columns import numpy_true, numpy_valid, numpy_values
from dsms.state.intern import Intern
from dsms.state.rows import RowStore
from dsms.state.vec import Vec, Vec2

Evaluate = Callable[[Sequence[pa.Array], int], pa.Array]
NONE = -1


@dataclass(slots=True)
class EpisodesOp(InStretches):
    """What windows of episodes share: the chains of their rows.

    by        columns of the key;  order  id columns by which rows of one instant are sorted
    at_close  rows are told when their episode ends, instead of as they come and leave"""

    by: tuple[int, ...]
    at_close: bool
    schema: Schema
    width: int
    order: tuple[int, ...]
    store: RowStore = field(init=False)
    codes: Intern = field(init=False)
    # by code: the last slot of the open episode, and how many rows it has
    last: Vec2 = field(default_factory=Vec2)
    dense: Dense | None = None  # of one INT key

    def __post_init__(self) -> None:
        self.store = RowStore(self.schema, self.width)
        self.store.extra["before"] = Vec()
        self.codes = Intern(len(self.by))
        one = len(self.by) == 1 and self.schema[self.by[0]].type.arrow == pa.int64()
        self.dense = Dense() if one else None

    def stretch(self, inputs: Sequence[Batch], upto: int, look: Look) -> Batch:
        rows = by_parts(dated(inputs[0]), self.order)
        n = len(rows)
        codes = coded(self.codes, self.dense, [rows.cols[k] for k in self.by], n, look)
        self._room(n)
        slots = self.store.append(rows)
        self.store.extra["before"].extend_fill(n, NONE)
        inside = np.zeros(n, np.bool_)
        # each open episode has a row, and each row may end one
        ended = np.empty((self.store.live, 3), np.int64)
        first = len(self.store) - n
        gone, left = self._follow(rows, codes, first, upto, inside, ended)
        outside = slots[~inside]
        out = self._told(rows.ts, inside, first, ended[:gone], left)
        self._settle(outside)
        return out

    def _follow(
        self,
        rows: Batch,
        codes: np.ndarray,
        first: int,
        upto: int,
        inside: np.ndarray,
        ended: np.ndarray,
    ) -> tuple[int, int]:
        """Chain the rows; how many episodes have ended, and how many rows these have."""
        raise NotImplementedError

    def _room(self, n: int) -> None:
        """For all keys that are known, and n rows."""
        self.last.extend_fill(self.codes.capacity - self.last.n, (NONE, 0))

    def _chains(self) -> tuple[np.ndarray, np.ndarray]:
        return self.last.data, self.store.extra["before"].data

    def _told(
        self, ts: np.ndarray, inside: np.ndarray, first: int, ended: np.ndarray, left: int
    ) -> Batch:
        """What is told of the step; the rows that have left are buried."""
        dead = np.empty(left, np.int64)
        rows_of(ended, self.store.extra["before"].data, dead)
        room = left if self.at_close else left + len(ts)
        slot, at, sign = np.empty(room, np.int64), np.empty(room, np.int64), None
        known = self.store.ts.data
        if self.at_close:
            told = closed(ended, dead, known, slot, at)
        else:
            sign = np.empty(room, np.int8)
            told = come_and_go(ts, inside, first, ended, dead, known, slot, at, sign)
            sign = sign[:told] if len(ended) else None
        out = self.store.batch(slot[:told], at[:told], sign, mortal=False)
        self.store.bury(dead)
        return out

    def _settle(self, outside: np.ndarray) -> None:
        """Rows that are in no episode go, gaps are closed, and keys without rows forgotten."""
        self.store.bury(outside)
        where = self.store.compact()
        if where is not None:
            for slots in (self.last.view[:, 0], self.store.extra["before"].view):
                there = slots >= 0
                slots[there] = where[slots[there]]
            self._moved(where)
        if self.codes.wants_purge(self.store.live):
            self.codes.purge(self.last.view[:, 0] >= 0)
            if self.dense is not None:
                self.dense.forget()

    def _moved(self, where: np.ndarray) -> None:
        """Rows have gone to other slots: the new one of each old one, -1 of those that are gone."""

    def live(self) -> int:
        return self.store.live

    def nbytes(self) -> int:
        own = self.last.nbytes + (0 if self.dense is None else self.dense.nbytes)
        return own + self.store.nbytes + self.codes.nbytes

    def next_due(self) -> int:
        return FOREVER


@dataclass(slots=True)
class SessionWindowOp(EpisodesOp):
    """[SESSION gap BY ...]; `gap`: µs.  Rows fall due in the order of their slots."""

    gap: int = field(kw_only=True)
    seen: int = 0  # slots from there on have not fallen due

    def __post_init__(self) -> None:
        EpisodesOp.__post_init__(self)
        self.store.extra["code"] = Vec()

    def _follow(
        self,
        rows: Batch,
        codes: np.ndarray,
        first: int,
        upto: int,
        inside: np.ndarray,
        ended: np.ndarray,
    ) -> tuple[int, int]:
        self.store.extra["code"].extend(codes)
        inside[:] = True
        slots = first, self.seen, self.store.ts.data, self.store.extra["code"].data
        self.seen, gone, left = steady_sessions(
            rows.ts, codes, self.gap, upto, *slots, *self._chains(), ended
        )
        return gone, left

    def _moved(self, where: np.ndarray) -> None:
        self.seen = int(np.count_nonzero(where[: self.seen] >= 0))

    def next_due(self) -> int:
        if self.seen == len(self.store):
            return FOREVER
        return int(self.store.ts.data[self.seen]) + self.gap


@dataclass(slots=True)
class GapsWindowOp(EpisodesOp):
    """[SESSION (gap) BY ...]; `gap` gives the INTERVAL of each row."""

    gap: Evaluate = field(kw_only=True)
    end: Vec = field(default_factory=Vec)  # by code: where the open session ends
    due: Vec = field(default_factory=Vec)  # a heap of such ends, with the codes of their keys
    due_code: Vec = field(default_factory=Vec)

    def _room(self, n: int) -> None:
        EpisodesOp._room(self, n)
        self.end.extend_fill(self.codes.capacity - self.end.n, ALWAYS)
        self.due.reserve(n)
        self.due_code.reserve(n)

    def _follow(
        self,
        rows: Batch,
        codes: np.ndarray,
        first: int,
        upto: int,
        inside: np.ndarray,
        ended: np.ndarray,
    ) -> tuple[int, int]:
        heap = self.due.data, self.due_code.data, self.due.n
        dues, gone, left = sessions(
            rows.ts,
            codes,
            prolonged(rows.ts, self.gap(rows.cols, len(rows))),
            upto,
            first,
            self.end.data,
            *heap,
            *self._chains(),
            inside,
            ended,
        )
        self.due.n = self.due_code.n = dues
        return gone, left

    def nbytes(self) -> int:
        return EpisodesOp.nbytes(self) + self.end.nbytes + self.due.nbytes + self.due_code.nbytes

    def last_end(self) -> int:
        """When the last of the sessions that are told at their close ends, if no row prolongs it;
        ALWAYS: none is open, or will ever end."""
        if not self.at_close:
            return ALWAYS
        ends = self.end.view[self.last.view[:, 0] >= 0]
        return int(np.max(ends[ends < FOREVER], initial=ALWAYS))

    def next_due(self) -> int:
        return int(self.due.data[0]) if self.due.n else FOREVER


def prolonged(ts: np.ndarray, gap: int | pa.Array) -> np.ndarray:
    """Up to where each row prolongs its session: its own instant, where it does not.  `gap`: µs,
    or those of each row; NULL, zero and less do not."""
    if isinstance(gap, int):
        return later(ts, gap)
    spans = np.maximum(numpy_values(gap), 0)
    valid = numpy_valid(gap)
    if valid is not None:
        spans = np.where(valid, spans, 0)
    return np.where(ts > FOREVER - spans, FOREVER, ts + spans)


@dataclass(slots=True)
class WhenWindowOp(EpisodesOp):
    """[WHEN start UNTIL stop BY ...]."""

    start: Evaluate = field(kw_only=True)
    stop: Evaluate = field(kw_only=True)

    def _follow(
        self,
        rows: Batch,
        codes: np.ndarray,
        first: int,
        upto: int,
        inside: np.ndarray,
        ended: np.ndarray,
    ) -> tuple[int, int]:
        start, stop = (numpy_true(says(rows.cols, len(rows))) for says in (self.start, self.stop))
        return whens(rows.ts, codes, start, stop, first, *self._chains(), inside, ended)


def episodes_op(make: Builds, node: Window, spec: Session | When) -> EpisodesOp:
    """The operator of such a window."""
    wide = width(node)
    common = spec.by, spec.at_close, node.schema, wide, order(node) if wide > 1 else (0,)
    match spec:
        case Session():
            if isinstance(spec.gap, int):
                return SessionWindowOp(*common, gap=spec.gap)
            return GapsWindowOp(*common, gap=make.expr(spec.gap))
        case When(start, stop):
            return WhenWindowOp(*common, start=make.predicate(start), stop=make.predicate(stop))
