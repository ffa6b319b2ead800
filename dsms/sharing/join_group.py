"""A group over a join: rows of both streams joined once, and its members answered from what comes
out (Golab 2006, §8.3.2).

CS4  Queries over the same windows are probed once, whatever the synopsis.
CS5  Over a basic interval synopsis one pass answers all windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dsms.api import Cancel
from dsms.errors import DsmsError
from dsms.sharing.columns import needed
from dsms.sharing.group import Group
from dsms.sharing.join_feed import JoinFeed
from dsms.sharing.join_request import JoinRequest
from dsms.sharing.member import Due, Member
from dsms.sharing.shared_join import SharedJoin
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch


@dataclass(slots=True)
class JoinGroup(Group[JoinFeed, JoinRequest]):
    """`gone`: rows of either stream up to there are missing.  `failure`: what stopped the join."""

    stem: SharedJoin = field(kw_only=True)
    gone: tuple[int, int] = field(kw_only=True)
    asked: JoinRequest = field(kw_only=True)
    first_row: int = FOREVER
    failure: DsmsError | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.stem.names.values())))

    @property
    def sides(self) -> tuple[str, ...]:
        return self.asked.join.left.stream, self.asked.join.right.stream

    # -- rows and time -----------------------------------------------------------------------------

    def take(self, stream: str, rows: Batch) -> None:
        self.heard(stream, rows)
        self.stem.push(stream, rows)

    def hear_waiting(self) -> None:
        """Rows that are not joined yet are heard again: by the silence of a new member, too."""
        if self.stem.flow is None:
            self.arrivals.cut(self.clock)
            for stream, rows in self.stem.waiting():
                self.heard(stream, rows)

    def begin(self, first_row: int) -> None:
        """One of the streams has rows; members begin when the clock of both gets there."""
        self.first_row = min(self.first_row, first_row)

    def advance(self, upto: int, cancel: Cancel | None = None) -> None:
        """Join all rows up to there, and answer the boundaries on the way."""
        if self.failure is not None:
            return
        self._begin_members(upto)
        try:
            self._welcome()
            for rows, until in self.stem.pieces(upto):
                self.clock = until
                self._through(rows, until)
                if cancel is not None:
                    cancel.between()
        except DsmsError as error:
            if error.code == "DS610":
                raise
            self._stop(error)
            return
        self.clock = max(self.clock, upto)
        self._take_updates(self.clock)
        self._within_limits(self.members)

    def _begin_members(self, upto: int) -> None:
        for member in self.members:
            if (query := member.sliding) is not None and self.first_row <= upto:
                query.begin(self.first_row)

    def _welcome(self) -> None:
        """A member that came at the instant before a boundary is answered there: nothing has to
        come for it."""
        while (first := self._next_due()) - 1 <= self.clock:
            self._answer_from(first, self.clock + 1)

    def _through(self, rows: Batch, until: int) -> None:
        """Results up to an instant: those before a boundary go in before it is answered."""
        while (first := self._next_due()) - 1 <= until:
            stop = int(np.searchsorted(rows.ts, first, side="left"))
            self.feed.push(rows.slice(0, stop))
            rows = rows.slice(stop, len(rows))
            limit = until + 1  # nothing is born in sub-windows from here to there
            if len(rows):
                born = self.feed.number(int(rows.ts[0]))
                limit = max(first, self.feed.phase + born * self.feed.span)
            self._answer_from(first, limit)
        self.feed.push(rows)

    def _answer_from(self, first: int, limit: int) -> None:
        """Boundaries from the first that is due to the last before which nothing more comes."""
        self.feed.close(self.feed.number(first))
        self._answer(self._all_due(limit))
        self._trim()

    def _next_due(self) -> int:
        """The earliest boundary that a member waits for."""
        going = [q for m in self.members if (q := m.sliding) is not None and q.failure is None]
        dues = (q.due for q in going if not q.elastic and q.due is not None and q.due <= q.until)
        return min(dues, default=FOREVER)

    def _trim(self) -> None:
        self._forget()
        self.feed.space.forget()

    def _stop(self, error: DsmsError) -> None:
        """The join can't go on: its members stop, and it takes no further ones."""
        self.failure = error
        for member in self.members:
            if member.query is not None and member.query.failure is None:
                member.query.fail(error)

    @property
    def nbytes(self) -> int:
        return self.feed.nbytes + self.stem.pipeline.nbytes()

    def cost(self, member: Member[JoinRequest]) -> float:
        read = max(self.feed.shape.counted(member.request.lengths))  # sub-windows
        return float(read * len(set(member.request.aggs)) * self.feed.space.groups)

    # -- answers -----------------------------------------------------------------------------------

    def _answer(self, due: list[Due[JoinRequest]]) -> None:
        """Columns that are read for several lists of aggregates are scanned once for all."""
        for call, column in self.feed.columns.items():
            users = [d for d in due if call in needed(d[0].request.aggs, bool(d[0].request.keys))]
            if len({m.request.aggs for m, _ in users}) > 1:
                column.prepare(*self.asks(users))
        try:
            Group._answer(self, due)
        finally:
            for column in self.feed.columns.values():
                column.scan = None

    def asks(self, due: Sequence[Due[JoinRequest]]) -> tuple[np.ndarray, ...]:
        """Boundaries, and the lengths of both windows, in sub-windows."""
        counts = [len(b) for _, b in due]
        pairs = [self.feed.shape.counted(m.request.lengths) for m, _ in due]
        at = np.concatenate([self.feed.numbers(b) for _, b in due])
        left, right = zip(*pairs, strict=True)
        return at, np.repeat(left, counts), np.repeat(right, counts)
