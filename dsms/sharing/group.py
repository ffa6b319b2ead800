"""A group: queries over one stream whose windows are made of the same sub-windows, answered from shared feeds.

All members that are due are answered together, over all their boundaries at once: their spans are probed in one call
per aggregate, lowered in one, and cut apart again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from dsms.api import Cancel
from dsms.errors import DsmsError
from dsms.operators.sort import ordered
from dsms.periodic.counted import Numbers
from dsms.periodic.elastic import Backlog
from dsms.periodic.query import PeriodicQuery
from dsms.periodic.silence import LESS, Arrivals
from dsms.plan.boundaries import boundaries, next_boundary
from dsms.sharing import same_query, ungrouped
from dsms.sharing.answer_source import AnswerSource
from dsms.sharing.columns import ROWS
from dsms.sharing.feed import CELLS, GroupFeed
from dsms.sharing.incremental import Answers
from dsms.sharing.member import Cells, Due, Kind, Member
from dsms.sql.expr import AggCall
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch

MANY = 4096  # boundaries of one query answered in one go


def _due_of(member: Member) -> int | None:
    """The boundary that a member waits for; None: it has none, or had enough."""
    query = member.query
    return None if query is None or query.failure is not None else query.due


@dataclass(slots=True)
class Group:
    """Members with the same feed.  `clock`: the stream is complete up to here (or this row number)."""

    name: str
    feed: GroupFeed
    members: list[Member] = field(default_factory=list)
    clock: int = ALWAYS
    numbers: Numbers | None = None  # where time is counted in rows
    kinds: dict[Kind, Kind] = field(default_factory=dict)  # of plain members, each once
    _known: tuple[int, int, int] = (0, -1, 0)  # of which members the longest window is known
    arrivals: Arrivals = field(default_factory=lambda: Arrivals(FOREVER))
    told: int | None = None  # the sub-window up to which `backlog` knows of updates
    backlog: Backlog | None = None  # where elastic members wait

    @property
    def streams(self) -> tuple[str, ...]:
        """Keys of the streams it reads."""
        return (self.feed.stream,)

    @property
    def sides(self) -> tuple[str, ...]:
        """Keys of the streams whose columns, one stream after the other, its aggregates are over."""
        return (self.feed.stream,)

    # -- rows and time ------------------------------------------------------------------------------------------------

    def take(self, stream: str, rows: Batch) -> None:
        """Complete rows of one of its streams."""
        self.push(rows)

    def push(self, rows: Batch) -> None:
        """Complete rows of the stream.  Where they jump far ahead, what lies before is answered first."""
        instants = rows.ts
        if self.numbers is not None:
            instants = rows.ids[0]
            self.numbers.see(rows)
        else:
            self.heard(self.feed.stream, rows)
        newest, known = int(instants[-1]), self.clock if self.feed.open is not None else self._waited(int(instants[0]))
        if (newest - known) // self.feed.span > self._far():
            gaps = np.flatnonzero(np.diff(self.feed.numbers(np.append(known, instants))) > self._far())
            for start, stop in pairwise(np.unique([0, *gaps, len(rows)]).tolist()):
                self._leap(int(instants[start]))
                self.feed.push(rows.slice(start, stop))
                self.clock = int(instants[stop - 1])
            return
        self.feed.push(rows)
        self.clock = max(self.clock, newest)

    def heard(self, stream: str, rows: Batch) -> None:
        """Rows of a stream have come."""
        self.arrivals.gap = min((m.query.quiet for m in self.members if m.query is not None), default=1)
        self.arrivals.heard(stream, rows.ts)

    def _waited(self, instant: int) -> int:
        """From where on sub-windows are asked for, if the first row comes at that instant."""
        dues = [m.query.due - 1 for m in self.members if m.query is not None and m.query.due is not None]
        return max(self.clock, min([*dues, instant]))

    def _far(self) -> int:
        """Sub-windows without rows that are passed over instead of stored."""
        return min(4 * self._longest() + 8192, LESS)

    def _longest(self) -> int:
        """Sub-windows of the longest window."""
        return self._reach() // self.feed.span

    def _reach(self) -> int:
        """The longest window."""
        if self._known[:2] != (id(self.members), len(self.members)):
            longest = max((m.request.length for m in self.members), default=0)
            self._known = id(self.members), len(self.members), longest
        return self._known[2]

    def _leap(self, instant: int) -> None:
        """A row of that instant comes after nothing for long."""
        self.advance(instant - 1)
        if self.feed.open is not None and self.feed.number(instant) - self.feed.open > self._far():
            self.feed.jump(self.feed.number(instant))

    def begin(self, first_row: int) -> None:
        """The stream has rows."""
        for member in self.members:
            if member.query is not None:
                member.query.begin(first_row)

    def advance(self, upto: int, cancel: Cancel | None = None) -> None:
        """Answer all boundaries b with b - 1 <= upto of all members."""
        upto = self.clock if self.feed.counted else max(upto, self.clock)
        self.clock = upto
        while due := self._all_due(upto):
            last = min(int(b[-1]) for _, b in due)  # members wait for each other, so that sub-windows can go
            if any(int(b[-1]) > last for _, b in due):
                due = [(m, mine) for m, b in due if len(mine := b[b <= last])]
            self.feed.close(self.feed.number(last))
            self._answer(due)
            self._trim()
            if cancel is not None:
                cancel.between()
        self._catch_up(upto)
        self._take_updates(upto)

    def _catch_up(self, upto: int) -> None:
        """Boundaries were passed over: the sub-windows before them are empty, and none is read any more."""
        if upto > ALWAYS and self.feed.open is not None and self.feed.number(upto + 1) - self.feed.open > self._far():
            self.feed.flush()
            self.feed.jump(self.feed.number(upto + 1))

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
        if self.backlog is not None:
            self.backlog.updated(self.name, number - (self.feed.began if self.told is None else self.told))
        self.told = number

    def latest(self, clock: int) -> int:
        """The newest boundary that is complete at `clock`."""
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
        if self.feed.open is None:
            return
        boundary = self.feed.phase + self.feed.open * self.feed.span
        chosen = [m for m in self.members if m.query is not None and m.query.name in names and m.query.failure is None]
        at = np.array([boundary], np.int64)
        self._answer([(m, at) for m in chosen if m.query is not None and m.query.clock < boundary - 1])

    def _all_due(self, upto: int) -> list[Due]:
        """Members with the boundaries that can be answered; those of one SLIDE share an array."""
        most = max(1, min(MANY, CELLS // self.feed.space.groups))
        known: dict[tuple[object, ...], np.ndarray] = {}
        due = []
        for member in self.members:
            query = member.query
            if query is None or query.due is None or query.elastic or query.failure is not None:
                continue
            limit = self.limit(query, upto + 1)
            if query.due > limit:
                continue
            slide = member.request.slide
            key = (slide.every, slide.align, query.due, limit)
            if key not in known:
                known[key] = boundaries(slide, query.due - 1, limit, most)
            due.append((member, known[key]))
        return due

    def limit(self, query: PeriodicQuery, upto: int) -> int:
        """The last boundary <= `upto` that a member may answer now, or an earlier instant than its next one; those that
        silence keeps from being told are passed over."""
        upto = min(upto, query.until)
        while query.due is not None and query.due <= upto and query.numbers is None:
            told = query.told_until(self.arrivals)
            if query.due <= told:
                return min(upto, told)
            query.pass_over(min(self.arrivals.after(query.due - 1), upto))
        return upto

    def _forget(self) -> None:
        """Arrivals that no member asks for any more."""
        self.arrivals.forget(min([d for m in self.members if (d := _due_of(m)) is not None], default=ALWAYS))

    def _trim(self) -> None:
        self._forget()
        if self.feed.open is not None:
            oldest = self.feed.open
            for feed in self.feed.feeds:
                alone = feed is self.feed
                readers = [m for m in self.members if m.query is not None and (alone or m.reads(feed))]
                mine = min([self.feed.open, *map(self._oldest, readers)])
                feed.trim(mine)
                oldest = min(oldest, mine)
            self.feed.space.forget()
            if self.numbers is not None:
                self.numbers.forget(self.feed.phase + oldest * self.feed.span)

    def _oldest(self, member: Member) -> int:
        assert member.query is not None
        due = member.query.due
        if member.query.elastic and self.feed.open is not None:
            due = self.feed.phase + self.feed.open * self.feed.span
        if member.kept is not None and due is not None:
            due -= member.request.slide.every  # what expires is still to be subtracted
        if due is None:
            due = next_boundary(member.request.slide, self.clock)
        return self.feed.number(due - member.request.length)

    # -- answers ------------------------------------------------------------------------------------------------------

    def _answer(self, due: list[Due]) -> None:
        """Answer and report; where an answer fails, the boundaries before it stand."""
        due = self._plainly(due)
        if not due:
            return
        try:
            found = self.answers(due)
        except DsmsError as error:
            self._one_by_one(due, error)
            return
        for (member, at), (cols, span, n) in zip(due, found, strict=True):
            assert member.query is not None
            member.query.report(at, span, cols, n)

    def _plainly(self, due: list[Due]) -> list[Due]:
        """Answer global aggregates; the other members remain."""
        kinds: dict[int, list[Due]] = {}  # by id: a group has each kind once
        rest = []
        for one in due:
            if (alike := one[0].plain) is None:
                rest.append(one)
            elif id(alike) in kinds:
                kinds[id(alike)].append(one)
            else:
                kinds[id(alike)] = [one]
        if kinds:
            self._share_errors(due)
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

    def answers(self, due: Sequence[Due]) -> list[Cells]:
        """For each member its answer rows over its boundaries, in order of boundary and then in their fixed order:
        columns of the answer, the index of the boundary of each row, and their number."""
        self._share_errors(due)
        alike: dict[object, list[int]] = {}
        for i, (member, _) in enumerate(due):
            key = (member.request.aggs, member.view, None if member.kept is None else member.request)
            alike.setdefault(key, []).append(i)
        out: list[Cells | None] = [None] * len(due)
        for places in alike.values():
            for i, cells in zip(places, self._with_twins([due[i] for i in places]), strict=True):
                out[i] = cells
        return [c for c in out if c is not None]

    def _with_twins(self, due: list[Due]) -> list[Cells]:
        """`_alike`, where members that ask the same are answered once (CS8)."""
        leader = same_query.leaders(due)
        own = [i for i, k in enumerate(leader) if i == k]
        if len(own) == len(due):
            return self._alike(due)
        failed = [due[i][0].above.errors.count for i in own]
        cells = dict(zip(own, self._alike([due[i] for i in own]), strict=True))
        clean = {i for i, n in zip(own, failed, strict=True) if due[i][0].above.errors.count == n}
        for i, k in enumerate(leader):
            if i != k:  # errors are counted by whoever has them
                cells[i] = same_query.part(cells[k], due[k][1], due[i][1]) if k in clean else self._alike([due[i]])[0]
        return [cells[i] for i in range(len(due))]

    def _share_errors(self, due: Sequence[Due]) -> None:
        """Values that failed below count for every member that reads them."""
        for feed in self.feed.feeds:
            failed = feed.errors
            if not failed.count:
                continue
            for member in [m for m in self.members if m.reads(feed)]:
                for code, rows in failed.by_code.items():
                    member.above.errors.add(rows, code, (failed.first or "").partition(": ")[2])
            failed.count, failed.first, failed.by_code = 0, None, {}

    def _alike(self, due: Sequence[Due]) -> list[Cells]:
        """Members with the same aggregates (CS1, CS2): one probe for all spans."""
        first = due[0][0].request
        asked = self.asks(due)
        view = due[0][0].view
        cell, code, span = self._rows(asked, view)
        cols = self.feed.space.keys.gather(code) if first.keys else []
        kept = due[0][0].kept if len(due) == 1 else None
        cols += [self.lowered(agg, asked, view, cell, kept) for agg in first.aggs]
        starts = np.concatenate([[0], np.cumsum([len(b) for _, b in due])])
        cuts = np.searchsorted(span, starts) if len(first.keys) else starts
        out = []
        for k, (member, _) in enumerate(due):
            a, b = int(cuts[k]), int(cuts[k + 1])
            mine = [c.slice(a, b - a) for c in cols]
            out.append(self._finished(member, mine, span[a:b] - starts[k], b - a))
        return out

    def asks(self, due: Sequence[Due]) -> tuple[np.ndarray, ...]:
        """What synopses are asked for each boundary: spans of sub-windows, by their ends."""
        first = due[0][1]
        if all(b is first for _, b in due):
            lengths = np.array([(m.request.length, m.request.until) for m, _ in due], np.int64)
            ends = self.feed.numbers(first[None, None, :] - lengths.T[:, :, None])
            return ends[0].ravel(), ends[1].ravel()
        low = np.concatenate([self.feed.numbers(b - m.request.length) for m, b in due])
        return low, np.concatenate([self.feed.numbers(b - m.request.until) for m, b in due])

    def _rows(self, asked: tuple[np.ndarray, ...],
              view: AnswerSource | None) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:  # fmt: skip
        """Cells that give a row (None: all), their groups, and their spans, in order of span and key."""
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

    def lowered(self, agg: AggCall, asked: tuple[np.ndarray, ...], view: AnswerSource | None,
                cell: np.ndarray | None = None, kept: Answers | None = None) -> pa.Array:  # fmt: skip
        """The answers of an aggregate, of all cells or those at `cell`."""
        column = self.feed.columns[agg] if view is None else view.column(agg)
        if kept is not None:
            state = kept.states(agg, column, *asked)
        else:
            state = column.probe(*asked) if view is None else view.probe(agg, *asked)
        if view is not None:
            return view.lower(agg, state, cell)
        return column.algebra.lower(state if cell is None else column.algebra.take(state, cell))

    def _finished(self, member: Member, cols: list[pa.Array], span: np.ndarray, n: int) -> Cells:
        cols, left, n = member.above.run(cols, n)
        span = span if left is None else span[left]
        if n > 1 and not member.above.by_keys:
            order = ordered([(pa.array(span), False, False), *((c, False, False) for c in cols)], n)
            index = pa.array(order)
            cols, span = [c.take(index) for c in cols], span[order]
        return cols, span, n

    @property
    def nbytes(self) -> int:
        return self.feed.nbytes
