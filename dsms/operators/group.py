"""GROUP BY with aggregates, continuous: after every instant the group's new row, if it differs from
the reported one.

Input    any pattern; how rows leave (never, in order of arrival, anyhow) decides how they are kept
         (`group_feed`) and which structure finds MIN and MAX (`dsms.aggregates`).
Output   STR: a deletion (ids, values as reported) and an insertion per changed group and instant
         (Golab 2006, §3.2.2).  A global aggregate also answers over no rows: from the first step
         on, born ALWAYS.
State    words of the arguments of the live rows, one answer per group (Golab 2006, §3.5.3:
         "aggregation stores its input and output").  Groups without rows are forgotten.
Cost     O(1) to O(log n) per arrival and departure, see the aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.aggregates.extremes import extreme
from dsms.aggregates.parts.base import Aggregate, Answers, Leaving, Sheds
from dsms.aggregates.parts.distinct import Distinct
from dsms.aggregates.parts.texts import OwnTexts
from dsms.aggregates.parts.words import NONE, Codes, arg_coding, form
from dsms.aggregates.registry import answer_coding, follow
from dsms.aggregates.sums import WholeRows, overflow
from dsms.errors import QueryError
from dsms.operators.ages import Age
from dsms.operators.basic import by_parts
from dsms.operators.group_args import ArgColumn, lives_column, lives_of
from dsms.operators.group_closed import Closed
from dsms.operators.group_feed import GrowFeed, Input, LiveFeed
from dsms.operators.group_fifo import FifoFeed
from dsms.operators.group_keys import GroupKeys
from dsms.operators.group_rows import Reported
from dsms.operators.group_touch import Touches
from dsms.operators.letting_go import merged
from dsms.operators.pieces import InPieces, Look, Piece, go_on, stretches
from dsms.plan.physical import State
from dsms.sql.expr import AggCall, columns
from dsms.sql.logical import GroupBy
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch, empty_batch

Evaluate = Callable[[Sequence[pa.Array], int], pa.Array]
SLICE = 32_768  # rows worked on at a time, so that what the kernels pass on stays in the cache


def leaving(state: State, strict: bool) -> Leaving:
    """How rows leave an input that is kept like that."""
    if not strict and state.kind not in ("fifo", "calendar", "list"):
        return "never"
    return "in order" if state.kind == "fifo" and not strict else "anyhow"


@dataclass(slots=True)
class GroupByOp(InPieces):
    """See the module.

    node           keys, aggregates, schemas;  child_width  id columns of the input edge;  order
                   their FROM order
    state, strict  how the input is kept, and whether it carries deletions
    keys, args, filters   compiled expressions (cols, n) -> array: per key, per aggregate and
                          argument, per aggregate
    """

    node: GroupBy
    child_width: int
    state: State
    strict: bool
    keys: Sequence[Evaluate]
    args: Sequence[Sequence[Evaluate]]
    filters: Sequence[Evaluate | None]
    order: tuple[int, ...]
    eager_instants: bool = False
    age: Age | None = None  # aggregates go by it, for rows do not come in that order
    timed: bool = False  # rows tell when they entered, behind the ids (`plan.identity.timed`)
    started: bool = False
    failure: tuple[QueryError, int] | None = None  # why the query must stop, and at which instant
    groups: GroupKeys = field(init=False)
    columns: list[ArgColumn] = field(init=False)  # distinct arguments of all aggregates
    uses: list[tuple[int, ...]] = field(init=False)  # per aggregate: its arguments in `columns`
    aggregates: list[Aggregate] = field(init=False)
    feed: Input = field(init=False)
    reported: Reported = field(init=False)
    read: frozenset[int] = field(init=False)  # columns of the input that any expression reads
    # where INTERNAL and external windows mix: when a group's first member dies
    soonest: Aggregate | None = None
    closed: Closed = field(default_factory=Closed)

    def __post_init__(self) -> None:
        how = leaving(self.state, self.strict) if self.age is None else "out of age"
        self.groups = GroupKeys(tuple(k.type for k in self.node.keys))
        self._share_args()
        self.aggregates = [follow(call, how) for call in self.node.aggs]
        codings = [
            answer_coding(call, tuple(self.columns[k].coding for k in used), serving)
            for call, used, serving in zip(self.node.aggs, self.uses, self.aggregates, strict=True)
        ]
        self.reported = Reported(self.child_width, self.timed, codings, always=not self.node.keys)
        match how:
            case "never":
                self.feed = GrowFeed(self.child_width)
            case "in order":
                self.feed = FifoFeed(self.child_width, self.columns, keyed=bool(self.node.keys))
            case _:
                self.feed = LiveFeed(
                    self.child_width,
                    self.state,
                    self.strict,
                    self.columns,
                    self.eager_instants,
                    self.age,
                )
        exprs = [*self.node.keys, *(a for c in self.node.aggs for a in c.args)]
        exprs += [c.filter for c in self.node.aggs if c.filter is not None]
        self.read = frozenset(i for e in exprs for i in columns(e))

    def _share_args(self) -> None:
        known: dict[tuple[object, ...], int] = {}
        self.columns, self.uses = [], []
        for call, evals, filter_ in zip(self.node.aggs, self.args, self.filters, strict=True):
            self.uses.append(
                tuple(self._arg(call, k, evals, filter_, known) for k in range(max(1, len(evals))))
            )

    def _arg(
        self,
        call: AggCall,
        k: int,
        evals: Sequence[Evaluate],
        filter_: Evaluate | None,
        known: dict[tuple[object, ...], int],
    ) -> int:
        """Position in `columns` of argument k of a call; COUNT(*) has one that only says which rows
        pass."""
        expr = call.args[k] if call.args else None
        how = form(call, k)
        key = (repr(expr), repr(call.filter), how)
        if key not in known:
            known[key] = len(self.columns)
            evaluate = evals[k] if evals else None
            self.columns.append(ArgColumn(evaluate, filter_, arg_coding(call, k), how != "valid"))
        return known[key]

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        (rows,) = inputs
        if not in_order_already(rows, self.order):
            rows = by_parts(rows, self.order)
        for (part,), until in stretches((rows,), upto, SLICE):
            look()
            out = self._step(part, until, look)
            if self.failure is not None:
                yield from self._last(out)
            yield out, until
            self._purge()
        if not self.closed.promises.idle:
            self._sweep(look=look)

    def _last(self, out: Batch) -> Iterator[Piece]:
        """What was answered before the query must stop; then why."""
        assert self.failure is not None
        error, at = self.failure
        if len(out):
            yield out, at - 1
        raise error

    def _step(self, rows: Batch, upto: int, look: Look) -> Batch:
        cols, n, life = self._inserted(rows)
        codes = self.groups.codes([k(cols, n) for k in self.keys], n, look)
        look()
        lifted = [
            c.lift(cols, n) for c in self.columns[: len(self.columns) - (self.soonest is not None)]
        ]
        if rows.life is not None and self.soonest is None:
            self._watch_lives()
        if self.soonest is not None:
            lifted.append(lives_of(life, n))
        seed = not self.started and not self.node.keys
        self.started = True
        self.closed.came(n)
        bare = Batch(rows.ts, rows.exp, rows.sign, rows.ids, ())
        touches = self.feed.step(bare, codes, lifted, self.groups.capacity, upto, seed)
        if not touches.feed.touches:
            self._settle()
            return empty_batch(self.node.schema, self.child_width + self.timed)
        answers = self._answers(touches, look)
        look()
        ranks = (*self.order, self.child_width) if self.timed else self.order
        before = self._overflow(touches)
        out = self.reported.report(
            touches, answers, self._lives(touches), self.groups, ranks, before
        )
        self._settle()
        return out if before == FOREVER else out.slice(0, int(np.searchsorted(out.ts, before)))

    def _overflow(self, touches: Touches) -> int:
        """The first instant at which a SUM does not fit, which stops the query: what is answered
        before it stands.  FOREVER: all of them do."""
        sums = [a.inside if isinstance(a, Distinct) else a for a in self.aggregates]
        over = [(a.over, a) for a in sums if isinstance(a, WholeRows) and a.over >= 0]
        if not over:
            return FOREVER
        touch, aggregate_ = min(over, key=lambda o: o[0])
        at = int(touches.at[touch])
        self.failure = (overflow(aggregate_.result), at)
        return at

    def _watch_lives(self) -> None:
        """From now on find when the first member of each group dies: its row rests on all of
        them."""
        self.columns.append(lives_column(self.feed.slots))
        how = leaving(self.state, self.strict) if self.age is None else "out of age"
        self.soonest = extreme(down=False, leaving=how)

    def _lives(self, touches: Touches) -> np.ndarray | None:
        """int64 by touch, or None where it does not matter."""
        if self.soonest is None:
            return None
        t = touches.feed.touches
        out = Answers(np.zeros(t, np.int64), NONE, np.zeros(t, np.bool_))
        self.soonest.run(touches.feed, (touches.args[-1],), out)
        return np.where(out.valid, out.words, FOREVER)

    def _inserted(self, rows: Batch) -> tuple[Sequence[pa.Array], int, np.ndarray | None]:
        """Of the insertions: the columns (only those that are read are of that length), their
        number, their lives."""
        index = None if rows.sign is None else np.flatnonzero(rows.sign > 0)
        if index is None or len(index) == len(rows):
            return rows.cols, len(rows), rows.life
        where = pa.array(index)
        cols = [c.take(where) if i in self.read else c for i, c in enumerate(rows.cols)]
        return cols, len(index), None if rows.life is None else rows.life[index]

    def _answers(self, touches: Touches, look: Look) -> list[Answers]:
        answers = self.reported.before(touches)
        t = touches.feed.touches
        for aggregate_, used, a in zip(self.aggregates, self.uses, answers, strict=True):
            look()
            aggregate_.run(touches.feed, tuple(touches.args[k] for k in used), a.first(t))
        return answers

    def _settle(self) -> None:
        where = self.feed.settle()
        if where is not None:
            for a in (*self.aggregates, *([] if self.soonest is None else [self.soonest])):
                a.moved(where)

    def _purge(self) -> None:
        """Forget groups without rows, and coded values that nothing uses any more."""
        if self.groups.wants_purge(self.feed.groups.alive):
            self.groups.purge(self.feed.groups.has_rows(self.groups.capacity))
        kept = self.feed.live + self.feed.groups.alive
        for k, column in enumerate(self.columns):
            if isinstance(column.coding, Codes) and column.coding.crowded(2 * kept):
                column.coding.purge(self._held(k))
        for k, serving in enumerate(self.aggregates):
            if isinstance(serving, OwnTexts):
                serving.forget(self.reported.held(k))

    def _held(self, column: int) -> list[np.ndarray]:
        """Words of a column's values wherever they are kept."""
        out = [self.feed.held(column)]
        for i, (aggregate_, used) in enumerate(zip(self.aggregates, self.uses, strict=True)):
            out += [words for k, words in zip(used, aggregate_.held(), strict=False) if k == column]
            if self.reported.slates[i].coding is self.columns[column].coding:
                out.append(self.reported.held(i))
        return out

    @property
    def sheds(self) -> list[Sheds]:
        """Aggregates that let go of something where a group changes no more."""
        if not isinstance(self.feed, GrowFeed):
            return []
        return [a for a in self.aggregates if isinstance(a, Sheds)]

    def let_go(
        self,
        columns: Sequence[int],
        values: Sequence[pa.Array],
        before: tuple[int, pa.Array] | None = None,
    ) -> None:
        """No row comes any more to the groups whose keys `columns` have one of the combinations of
        `values`: of them only their answers stay.

        before  to those alone in which another key, at that place, is less than this value of the
                combination"""
        if not self.sheds:
            return
        codes = self.groups.known(columns, values) if before is None else None
        if codes is not None:
            self._close(codes)
            return
        many = len(values[0])
        self.closed.promises.promised((tuple(columns), list(values), before), many)
        self._sweep(many)

    def _sweep(self, many: int = 0, look: Look = go_on) -> None:
        """Close groups of which something was promised, if it is time to look for some."""
        sweep, found = self.closed.promises, list[np.ndarray]()
        for _, codes in sweep.places([self.groups.place.n], many, look):
            if len(sweep.walking) > 1:
                sweep.walking = merged(sweep.walking)
            found.append(self.groups.matching(codes, sweep.walking))
        sweep.ended()
        if found:
            self._close(np.concatenate(found))

    def _close(self, codes: np.ndarray) -> None:
        shut = self.closed.close(codes, self.feed.groups.count)
        if shut is None:
            return
        for aggregate_ in self.sheds:
            aggregate_.let_go(shut)
        for k, column in enumerate(self.columns):
            if isinstance(column.coding, Codes):
                column.coding.purge(self._held(k))

    def standing(self) -> int:
        """How many rows `current` gives."""
        return int(np.count_nonzero(self.reported.there))

    def current(self) -> Batch:
        """The rows reported and not taken back, one per group; `ts` has no meaning."""
        return self.reported.current(self.groups)

    def live(self) -> int:
        return self.feed.live

    def nbytes(self) -> int:
        own = self.groups.nbytes + self.feed.nbytes + self.reported.nbytes
        return (
            own
            + sum(a.nbytes for a in self.aggregates)
            + sum(c.coding.nbytes for c in self.columns)
        )

    def next_due(self) -> int:
        return self.feed.next_due()


@njit(cache=True, nogil=True)
def _climbs(ts, ids):
    for i in range(1, len(ts)):  # noqa: SIM110
        if ts[i] == ts[i - 1] and ids[i] <= ids[i - 1]:
            return False
    return True


def in_order_already(rows: Batch, order: Sequence[int]) -> bool:
    """Quick and surely right when true: rows of one instant ascend by their first arrival number
    alone."""
    return rows.sign is None and bool(order) and bool(_climbs(rows.ts, rows.ids[order[0]]))
