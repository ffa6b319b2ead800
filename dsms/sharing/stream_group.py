"""A group over one stream: its rows, its clock, and the boundaries that are due."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dsms.api import Cancel
from dsms.plan.boundaries import next_boundary
from dsms.sharing import collective, searches
from dsms.sharing.choose_synopsis import MANY, outgrown
from dsms.sharing.feed import Feed, GroupFeed, numbers_of
from dsms.sharing.group import Group
from dsms.sharing.member import Cells, Due, Member, share_errors
from dsms.sharing.portions import portions
from dsms.sharing.request import Request
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch

_OVER = object()
PIECE = 1 << 17  # rows that go into the feed together: others have turns between its columns


@dataclass(slots=True)
class StreamGroup(Group[GroupFeed, Request]):
    """Members with the same feed.  `clock`: the stream is complete up to here (or this row
    number).

    waiting    rows that are not in the feed yet, in order
    under_way  what an interrupted call has left of its work; nobody may see the feed before that
               is done (`settled`)"""

    waiting: deque[Batch] = field(default_factory=deque)
    under_way: Iterator[None] | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        return (self.feed.stream,)

    @property
    def sides(self) -> tuple[str, ...]:
        return (self.feed.stream,)

    # -- rows --------------------------------------------------------------------------------------

    def take(self, stream: str, rows: Batch) -> None:
        self.waiting.append(rows)

    def fill(self, past: Sequence[Batch], then: Iterator[None]) -> None:
        """Rows of before, and what is to be done once they are in the feed."""
        self.waiting.extend(past)
        self.under_way = self.feed.space.work(self._filling(then))

    def _filling(self, then: Iterator[None]) -> Iterator[None]:
        yield from self._take_in()
        yield from then

    def _take_in(self) -> Iterator[None]:
        """The rows that wait go into the feed, a piece at a time."""
        while self.waiting:
            rows = self.waiting.popleft()
            for start in range(0, len(rows), PIECE):
                stop = min(start + PIECE, len(rows))
                yield from self._push(rows.slice(start, stop) if stop - start < len(rows) else rows)
                yield

    def _push(self, rows: Batch) -> Iterator[None]:
        """Complete rows of the stream.  Where they jump far ahead, what lies before is answered
        first."""
        if self.feed.open is None:
            self.feed.flush()  # rows that wait begin it: else a leap behind them is not seen
        instants = rows.ts
        if self.numbers is not None:
            instants = rows.ids[0]
            self.numbers.see(rows)
        else:
            self.heard(self.feed.stream, rows)
        newest, known = (
            int(instants[-1]),
            self.clock if self.feed.open is not None else self._waited(int(instants[0])),
        )
        if (newest - known) // self.feed.span > self._far():
            gaps = np.flatnonzero(
                np.diff(self.feed.numbers(np.append(known, instants))) > self._far()
            )
            for start, stop in pairwise(np.unique([0, *gaps, len(rows)]).tolist()):
                yield from self._leap(int(instants[start]))
                yield from self.feed.pushing(rows.slice(start, stop))
                self.clock = int(instants[stop - 1])
            return
        yield from self.feed.pushing(rows)
        self.clock = max(self.clock, newest)

    def _waited(self, instant: int) -> int:
        """From where on sub-windows are asked for, if the first row comes at that instant."""
        dues = [
            q.due - 1 for m in self.members if (q := m.sliding) is not None and q.due is not None
        ]
        return max(self.clock, min([*dues, instant]))

    def _leap(self, instant: int) -> Iterator[None]:
        """A row of that instant comes after nothing for long."""
        yield from self._answered(instant - 1)
        if self.feed.open is not None and self.feed.number(instant) - self.feed.open > self._far():
            self.feed.jump(self.feed.number(instant))

    def begin(self, first_row: int) -> None:
        for member in self.members:
            if (query := member.sliding) is not None:
                query.begin(first_row)

    # -- time --------------------------------------------------------------------------------------

    def advance(self, upto: int, cancel: Cancel | None = None) -> None:
        self._go_on(cancel)
        self.under_way = self.feed.space.work(self._moving(upto))
        self._go_on(cancel)

    def settled(self) -> None:
        self._go_on(None)
        for _ in self._take_in():
            pass

    def _go_on(self, cancel: Cancel | None) -> None:
        """Do what is under way.  Where `cancel` raises, the next call goes on from there."""
        while self._worked():
            if cancel is not None:
                cancel.between()

    def _worked(self) -> bool:
        """Do a piece of what is under way; False if that was the last."""
        try:
            if self.under_way is not None and next(self.under_way, _OVER) is not _OVER:
                return True
        except BaseException:
            self.under_way = None
            raise
        self.under_way = None
        return False

    def _moving(self, upto: int) -> Iterator[None]:
        yield from self._take_in()
        yield from self._answered(upto)

    def _answered(self, upto: int) -> Iterator[None]:
        """Answer all boundaries up to there, a part of the members at a time."""
        upto = self.clock if self.feed.counted else max(upto, self.clock)
        self.clock = upto
        while due := self._all_due(upto + 1):
            # members wait for each other, so that sub-windows can go
            last = min(int(b[-1]) for _, b in due)
            if any(int(b[-1]) > last for _, b in due):
                due = [(m, mine) for m, b in due if len(mine := b[b <= last])]
            yield from self.feed.closing(self.feed.number(last))
            yield from self._answer_parts(due)
            self._trim()
            yield from self._outgrown()
            self._within_limits(m for m, _ in due)
            yield
        self._catch_up(upto)
        self._take_updates(upto)

    def _outgrown(self) -> Iterator[None]:
        """Columns of many groups keep only those that occur."""
        if self.feed.space.groups > MANY:
            for feed in self.feed.feeds:
                if isinstance(feed, Feed):
                    for column in feed.columns.values():
                        yield from outgrown(column, feed)

    def _catch_up(self, upto: int) -> None:
        """Boundaries were passed over: the sub-windows before them are empty, and none is read any
        more."""
        if (
            upto > ALWAYS
            and self.feed.open is not None
            and self.feed.number(upto + 1) - self.feed.open > self._far()
        ):
            self.feed.flush()
            self.feed.jump(self.feed.number(upto + 1))

    def _trim(self) -> None:
        self._forget()
        if self.feed.open is not None:
            oldest = self.feed.open
            for feed in self.feed.feeds:
                alone = feed is self.feed
                readers = [
                    m
                    for m in self.members
                    if m.query is not None and m.query.failure is None and (alone or m.reads(feed))
                ]
                mine = min([self.feed.open, *map(self._oldest, readers)])
                feed.trim(mine)
                oldest = min(oldest, mine)
            self.feed.space.forget(within=self.under_way is not None)
            if self.numbers is not None:
                self.numbers.forget(self.feed.phase + oldest * self.feed.span)

    def _oldest(self, member: Member[Request]) -> int:
        assert member.query is not None
        query = member.sliding
        due = None if query is None else query.due
        if member.query.elastic and self.feed.open is not None:
            due = self.feed.phase + self.feed.open * self.feed.span
        if member.kept is not None and due is not None:
            due -= member.request.slide.every  # what expires is still to be subtracted
        if due is None:
            due = next_boundary(member.request.slide, self.clock)
        return self.feed.number(due - member.request.length)

    def cost(self, member: Member[Request]) -> float:
        wanted, view = member.request, member.view
        assert view is not None
        read = [
            p.feed.columns[s]
            for p in view.parts
            for s in dict.fromkeys(p.sources[a] for a in wanted.aggs)
        ]
        width = (wanted.length - wanted.until) // self.feed.span
        return sum(c.synopsis.cost(width) for c in read) * self.feed.space.groups

    # -- answers -----------------------------------------------------------------------------------

    def _portions(self, due: list[Due[Request]]) -> Iterator[list[Due[Request]]]:
        """Members whose groups an index may find share it: many of them in one go."""
        seek = [d for d in due if searches.threshold_of(d[0]) is not None]
        if seek:
            due = [d for d in due if searches.threshold_of(d[0]) is None]
            yield from portions(seek, 1)
        if due:
            yield from portions(due, numbers_of(self.feed))

    def answers(self, due: Sequence[Due[Request]]) -> Generator[None, None, list[Cells]]:
        found = collective.bundles(self, due)
        share_errors(self.feed.feeds, self.members)
        cells = yield from collective.answers(self, due, found)
        rest = [i for i in range(len(due)) if i not in cells]
        for part in portions([due[i] for i in rest], numbers_of(self.feed)) if rest else ():
            others = yield from Group.answers(self, part)
            at = {id(m): k for k, (m, _) in enumerate(part)}
            cells |= {i: others[at[id(due[i][0])]] for i in rest if id(due[i][0]) in at}
        return [cells[i] for i in range(len(due))]

    def asks(self, due: Sequence[Due[Request]]) -> tuple[np.ndarray, ...]:
        """Spans of sub-windows, by their ends."""
        first = due[0][1]
        if all(b is first for _, b in due):
            lengths = np.array([(m.request.length, m.request.until) for m, _ in due], np.int64)
            ends = self.feed.numbers(first[None, None, :] - lengths.T[:, :, None])
            return ends[0].ravel(), ends[1].ravel()
        low = np.concatenate([self.feed.numbers(b - m.request.length) for m, b in due])
        return low, np.concatenate([self.feed.numbers(b - m.request.until) for m, b in due])
