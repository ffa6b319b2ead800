"""A group: queries whose windows are made of the same sub-windows, answered from shared feeds.

All members that are due are answered together, over all their boundaries at once: their spans are
probed in one call per aggregate, lowered in one, and cut apart again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from dsms.api import Cancel
from dsms.errors import DsmsError
from dsms.operators.pieces import finished
from dsms.operators.sort import ordered
from dsms.periodic.counted import Numbers
from dsms.periodic.elastic import Backlog
from dsms.periodic.query import PeriodicQuery
from dsms.periodic.silence import LESS, Arrivals
from dsms.plan.boundaries import boundaries
from dsms.running.faults import too_much_state
from dsms.sharing import same_query, ungrouped
from dsms.sharing.answer_source import AnswerSource
from dsms.sharing.columns import ROWS
from dsms.sharing.feed import CELLS, GroupFeed, numbers_of
from dsms.sharing.lowering import lowering
from dsms.sharing.member import Above, Cells, Due, Kind, Member, share_errors
from dsms.sharing.portions import portions
from dsms.sharing.request import Wanted
from dsms.sql.expr import AggCall
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch

MANY = 4096  # boundaries of one query answered in one go


def _due_of(member: Member) -> int | None:
    """The boundary that a member waits for; None: it has none, or had enough."""
    query = member.sliding
    return None if query is None or query.failure is not None else query.due


F = TypeVar("F", bound=GroupFeed)
R = TypeVar("R", bound=Wanted)


@dataclass(slots=True)
class Group(ABC, Generic[F, R]):
    """Members with the same feed, and what they ask.  `clock`: its streams are complete up to
    here."""

    name: str
    feed: F
    members: list[Member[R]] = field(default_factory=list)
    clock: int = ALWAYS
    numbers: Numbers | None = None  # where time is counted in rows
    kinds: dict[Kind, Kind] = field(default_factory=dict)  # of plain members, each once
    _known: tuple[int, int, int] = (0, -1, 0)  # of which members the longest window is known
    arrivals: Arrivals = field(default_factory=lambda: Arrivals(FOREVER))
    told: int | None = None  # the sub-window up to which `backlog` knows of updates
    backlog: Backlog | None = None  # where elastic members wait

    @property
    @abstractmethod
    def streams(self) -> tuple[str, ...]:
        """Keys of the streams it reads."""

    @property
    @abstractmethod
    def sides(self) -> tuple[str, ...]:
        """Keys of the streams whose columns, one stream after the other, its aggregates are
        over."""

    # -- rows and time -----------------------------------------------------------------------------

    @abstractmethod
    def take(self, stream: str, rows: Batch) -> None:
        """Complete rows of one of its streams."""

    @abstractmethod
    def begin(self, first_row: int) -> None:
        """One of its streams has rows."""

    @abstractmethod
    def advance(self, upto: int, cancel: Cancel | None = None) -> None:
        """Answer all boundaries b with b - 1 <= upto of all members."""

    @abstractmethod
    def cost(self, member: Member[R]) -> float:
        """Cells that an evaluation of the member combines."""

    @abstractmethod
    def _trim(self) -> None:
        """Let go of what no boundary to come asks for."""

    def settled(self) -> None:
        """All that has been handed over is in the feed."""
        return

    def heard(self, stream: str, rows: Batch) -> None:
        """Rows of a stream have come."""
        self.arrivals.gap = min(
            (q.quiet for m in self.members if (q := m.sliding) is not None), default=1
        )
        self.arrivals.heard(stream, rows.ts)

    def _far(self) -> int:
        """Sub-windows without rows that are passed over instead of stored."""
        return min(4 * (self._reach() // self.feed.span) + 8192, LESS)

    def _reach(self) -> int:
        """The longest window."""
        if self._known[:2] != (id(self.members), len(self.members)):
            longest = max((m.request.length for m in self.members), default=0)
            self._known = id(self.members), len(self.members), longest
        return self._known[2]

    def _take_updates(self, upto: int) -> None:
        """Elastic members: their sub-windows move on at once, they are answered later."""
        if upto <= ALWAYS:
            return
        elastic = [m for m in self.members if m.query is not None and m.query.elastic]
        number = self.feed.number(upto + 1)
        if not elastic or number == self.told:
            return
        self.feed.flush()
        if self.feed.open is not None and number - self.feed.open > self._far():
            self.feed.jump(number)
        self.feed.close(number)
        self._trim()
        self._within_limits(elastic)
        if self.backlog is not None:
            self.backlog.updated(
                self.name, number - (self.feed.began if self.told is None else self.told)
            )
        self.told = number

    def latest(self, clock: int) -> int:
        """The newest boundary that is complete at `clock`."""
        self.settled()
        upto = self.clock if self.feed.counted else max(clock, self.clock)
        self._take_updates(upto)
        if self.feed.open is None:
            return self.feed.phase
        return self.feed.phase + self.feed.open * self.feed.span

    def over(self, last_row: int) -> int:
        """The clock where no row follows the last one: its sub-window is complete, too."""
        if self.feed.counted or last_row == ALWAYS:
            return last_row
        return self.feed.phase + (self.feed.number(last_row) + 1) * self.feed.span - 1

    def refresh(self, names: tuple[str, ...]) -> None:
        """Answer those members as of the latest sub-window (CS1, CS2: together)."""
        self.settled()
        if self.feed.open is None:
            return
        boundary = self.feed.phase + self.feed.open * self.feed.span
        chosen = [
            m
            for m in self.members
            if m.query is not None and m.query.name in names and m.query.failure is None
        ]
        at = np.array([boundary], np.int64)
        self._answer(
            [(m, at) for m in chosen if m.query is not None and m.query.clock < boundary - 1]
        )

    def _all_due(self, limit: int) -> list[Due[R]]:
        """Members with the boundaries up to `limit` that can be answered; those of one SLIDE share
        an array."""
        most = max(1, min(MANY, CELLS // numbers_of(self.feed)))
        known: dict[tuple[object, ...], np.ndarray] = {}
        due = []
        for member in self.members:
            query = member.sliding
            if query is None or query.due is None or query.elastic or query.failure is not None:
                continue
            last = self.limit(query, limit)
            if query.due > last:
                continue
            slide = member.request.slide
            key = (slide.every, slide.align, query.due, last)
            if key not in known:
                known[key] = boundaries(slide, query.due - 1, last, most)
            due.append((member, known[key]))
        return due

    def limit(self, query: PeriodicQuery, upto: int) -> int:
        """The last boundary <= `upto` that a member may answer now, or an earlier instant than its
        next one; those that silence keeps from being reported are skipped."""
        upto = min(upto, query.until)
        while query.due is not None and query.due <= upto and query.numbers is None:
            reported_until = query.reported_until(self.arrivals)
            if query.due <= reported_until:
                return min(upto, reported_until)
            query.pass_over(min(self.arrivals.after(query.due - 1), upto))
        return upto

    def _forget(self) -> None:
        """Arrivals that no member asks for any more."""
        self.arrivals.forget(
            min([d for m in self.members if (d := _due_of(m)) is not None], default=ALWAYS)
        )

    def _within_limits(self, members: Iterable[Member[R]]) -> None:
        """Stop those whose part of the state, with their answers, is larger than it may be."""
        part = self.nbytes // max(1, len(self.members))
        for member in members:
            query = member.query
            if query is not None and query.failure is None:
                used = part + query.answer_bytes()
                if used > query.state_limit:
                    query.fail(too_much_state(query.name, used, query.state_limit))

    # -- answers -----------------------------------------------------------------------------------

    def _answer_parts(self, due: list[Due[R]]) -> Iterator[None]:
        """Answer and report, some of the members at a time."""
        for part in self._portions(due):
            yield from self._answering(part)
            yield

    def _portions(self, due: list[Due[R]]) -> Iterator[list[Due[R]]]:
        """Those that are answered in one go."""
        return portions(due, numbers_of(self.feed))

    def _answer(self, due: list[Due[R]]) -> None:
        """Answer and report; where an answer fails, the boundaries before it stand."""
        for _ in self._answering(due):
            pass

    def _answering(self, due: list[Due[R]]) -> Iterator[None]:
        """`_answer`, a column of the answers at a time."""
        due = self._plainly(due)
        if not due:
            return
        try:
            found = yield from self.answers(due)
        except DsmsError as error:
            self._one_by_one(due, error)
            return
        for (member, at), (cols, span, n) in zip(due, found, strict=True):
            query = member.sliding
            assert query is not None
            query.report(at, span, cols, n)
            if n > CELLS // 4:
                yield

    def _plainly(self, due: list[Due[R]]) -> list[Due[R]]:
        """Answer global aggregates; the other members remain."""
        kinds: dict[int, list[Due[R]]] = {}  # by id: a group has each kind once
        rest = []
        for one in due:
            if (alike := one[0].plain) is None:
                rest.append(one)
            elif id(alike) in kinds:
                kinds[id(alike)].append(one)
            else:
                kinds[id(alike)] = [one]
        if kinds:
            share_errors(self.feed.feeds, self.members)
        for mine in kinds.values():
            try:
                ungrouped.answer(self, mine)
            except DsmsError:
                rest += mine
        return rest

    def _one_by_one(self, due: list[Due], error: DsmsError) -> None:
        if len(due) == 1 and len(due[0][1]) == 1:
            member = due[0][0]
            assert member.query is not None
            member.query.fail(error)
            return
        for member, at in due:
            assert member.query is not None
            for b in at:
                if member.query.failure is None:
                    self._answer([(member, np.array([b], np.int64))])

    def answers(self, due: Sequence[Due[R]]) -> Generator[None, None, list[Cells]]:
        """For each member its answer rows over its boundaries, in order of boundary and then in
        their fixed order: columns of the answer, the index of the boundary of each row, and their
        number."""
        share_errors(self.feed.feeds, self.members)
        alike: dict[object, list[int]] = {}
        for i, (member, _) in enumerate(due):
            key = (
                member.request.aggs,
                member.view,
                None if member.kept is None else member.request,
            )
            alike.setdefault(key, []).append(i)
        out: list[Cells | None] = [None] * len(due)
        for places in alike.values():
            found = yield from self._with_twins([due[i] for i in places])
            for i, cells in zip(places, found, strict=True):
                out[i] = cells
        return [c for c in out if c is not None]

    def _with_twins(self, due: list[Due[R]]) -> Generator[None, None, list[Cells]]:
        """`_alike`, where members that ask the same are answered once (CS8)."""
        leader = same_query.leaders(due)
        own = [i for i, k in enumerate(leader) if i == k]
        if len(own) == len(due):
            return (yield from self._alike(due))
        failed = [due[i][0].above.errors.count for i in own]
        found = yield from self._alike([due[i] for i in own])
        cells = dict(zip(own, found, strict=True))
        clean = {i for i, n in zip(own, failed, strict=True) if due[i][0].above.errors.count == n}
        for i, k in enumerate(leader):
            if i != k:  # errors are counted where they occur
                if k in clean:
                    cells[i] = same_query.part(cells[k], due[k][1], due[i][1])
                else:
                    (cells[i],) = yield from self._alike([due[i]])
        return [cells[i] for i in range(len(due))]

    def _alike(self, due: Sequence[Due[R]]) -> Generator[None, None, list[Cells]]:
        """Members with the same aggregates (CS1, CS2): one probe for all spans."""
        many = len(due) * numbers_of(self.feed) > CELLS // 4
        first = due[0][0].request
        asked = self.asks(due)
        view = due[0][0].view
        cell, code, span = self._rows(asked, view)
        cols = self.feed.space.keys.gather(code) if first.keys else []
        kept = due[0][0].kept if len(due) == 1 else None
        for agg in first.aggs:
            if many:
                yield
            cols.append((yield from lowering(self.feed.columns, agg, asked, view, cell, kept)))
        starts = np.concatenate([[0], np.cumsum([len(b) for _, b in due])])
        cuts = np.searchsorted(span, starts) if len(first.keys) else starts
        out = []
        for k, (member, _) in enumerate(due):
            a, b = int(cuts[k]), int(cuts[k + 1])
            mine = [c.slice(a, b - a) for c in cols]
            if many:
                yield
            out.append(self.finished(member, member.above, mine, span[a:b] - starts[k], b - a))
        return out

    @abstractmethod
    def asks(self, due: Sequence[Due[R]]) -> tuple[np.ndarray, ...]:
        """What synopses are asked for each boundary."""

    def _rows(
        self, asked: tuple[np.ndarray, ...], view: AnswerSource | None
    ) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
        """Cells that give a row (None: all), their groups, and their spans, in order of span and
        key."""
        spans = len(asked[0])
        if not self.feed.space.exprs:
            return None, np.zeros(spans, np.int64), np.arange(spans)
        counts = np.asarray(self.lowered(ROWS, asked, view))
        groups = len(counts) // spans
        codes = self.feed.space.in_order()
        codes = codes[codes < groups]
        cells = (np.arange(spans, dtype=np.int64)[:, None] * groups + codes[None, :]).ravel()
        cells = cells[counts[cells] > 0]
        return cells, cells % groups, cells // groups

    def lowered(
        self, agg: AggCall, asked: tuple[np.ndarray, ...], view: AnswerSource | None
    ) -> pa.Array:
        """The answers of an aggregate, of all cells."""
        return finished(lowering(self.feed.columns, agg, asked, view, None, None))

    def finished(
        self, member: Member, above: Above, cols: list[pa.Array], span: np.ndarray, n: int
    ) -> Cells:
        """What the member makes of its groups, by the steps `above`."""
        cols, left, n = above.run(cols, n)
        span = span if left is None else span[left]
        if n > 1 and not above.by_keys:
            order = ordered([(pa.array(span), False, False), *((c, False, False) for c in cols)], n)
            index = pa.array(order)
            cols, span = [c.take(index) for c in cols], span[order]
        return cols, span, n

    @property
    def nbytes(self) -> int:
        return self.feed.nbytes
