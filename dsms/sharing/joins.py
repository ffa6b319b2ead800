"""Periodic aggregates over window joins that share a join and its synopses (Golab 2006, §8.3.2).

SS3  A group answers queries over the same join with the same GROUP BY: over windows of equal length
     n s, 1 <= n <= b, and of lengths n1 s and n2 s, b - g <= n1, n2 <= b.  If all windows differ by
     the same, none need flags.
CS4  Queries over the same windows are probed once, whatever the synopsis.
CS5  Over a basic interval synopsis one pass answers all windows.
Grow Where a query asks for longer windows, finer sub-windows or other columns, the group is made
anew for all of its
     members, if the rings still hold what their windows reach; otherwise the query has a group of
     its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Protocol

import numpy as np

from dsms.api import Cancel
from dsms.errors import DsmsError, UsageError
from dsms.operators.expressions import ErrorCounter
from dsms.periodic.query import PeriodicQuery
from dsms.running.past import Past, complete_after
from dsms.settings import Settings
from dsms.sharing import ungrouped
from dsms.sharing.columns import needed
from dsms.sharing.feed import CELLS
from dsms.sharing.group import Group
from dsms.sharing.join_feed import JoinFeed, JoinShape, new_feed
from dsms.sharing.join_request import JoinRequest
from dsms.sharing.member import Above, Due, Member
from dsms.sharing.shared_join import SharedJoin, shared_join
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch
from dsms.state.ring import Ring

MOST_CELLS = 1 << 13  # of one group and aggregate
FLAGS = 32  # g at most


class Surroundings(Protocol):
    """What a new group needs to know of the runtime."""

    settings: Settings
    rings: dict[str, Ring]
    first_rows: dict[str, int]

    def handed_on(self, stream: str) -> int: ...

    def clock_of(self, streams: Sequence[str]) -> int: ...


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
        self._within_limits()

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
                limit = max(
                    first, self.feed.phase + self.feed.number(int(rows.ts[0])) * self.feed.span
                )
            self._answer_from(first, limit)
        self.feed.push(rows)

    def _answer_from(self, first: int, limit: int) -> None:
        """Boundaries from the first that is due to the last before which nothing more comes."""
        self.feed.close(self.feed.number(first))
        self._answer(self._all_due(limit))
        self._trim()

    def _next_due(self) -> int:
        """The earliest boundary that a member waits for."""
        queries = [
            q
            for m in self.members
            if (q := m.sliding) is not None and q.failure is None and not q.elastic
        ]
        return min(
            (q.due for q in queries if q.due is not None and q.due <= q.until), default=FOREVER
        )

    def _trim(self) -> None:
        self._forget()
        self.feed.space.forget()

    def _stop(self, error: DsmsError) -> None:
        """The join can't go on: its members stop, and it takes no further ones."""
        self.failure = error
        for member in self.members:
            if member.query is not None and member.query.failure is None:
                member.query.fail(error)

    def _within_limits(self) -> None:
        used = self.nbytes
        for query in [
            m.query for m in self.members if m.query is not None and m.query.failure is None
        ]:
            if used > query.state_limit:
                limit = f"its limit is {query.state_limit >> 20} MiB"
                hint = "narrow its windows, or register it WITH (max_state = bytes)"
                query.fail(
                    UsageError(
                        "DS630",
                        f"query {query.name} shares {used >> 20} MiB of state; {limit}",
                        hint=hint,
                    )
                )

    @property
    def nbytes(self) -> int:
        return self.feed.nbytes + self.stem.pipeline.nbytes()

    def cost(self, member: Member[JoinRequest]) -> float:
        n1, n2 = self.feed.shape.counted(member.request.lengths)
        return float(
            (min(n1, n2) + abs(n1 - n2)) * len(set(member.request.aggs)) * self.feed.space.groups
        )

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
        return (
            at,
            np.repeat([n for n, _ in pairs], counts),
            np.repeat([n for _, n in pairs], counts),
        )


@dataclass(slots=True)
class Joins:
    """The groups over joins."""

    groups: list[JoinGroup] = field(default_factory=list)
    made: int = 0

    def of(self, stream: str | None) -> Iterator[JoinGroup]:
        """Those that read a stream (None: all)."""
        for group in self.groups:
            if stream is None or stream in group.streams:
                yield group

    def join(
        self, wanted: JoinRequest, errors: ErrorCounter, runtime: Surroundings, synopsis: str
    ) -> Member[JoinRequest]:
        """A member for the request: of a group that answers it as it is, that can be made to, or of
        a new one."""
        group = self._fitting(wanted, synopsis) or self._grown(wanted, runtime, synopsis)
        if group is None:
            group = self._new(wanted, runtime, synopsis)
            self.groups.append(group)
        return Member[JoinRequest](wanted, group, Above(wanted.above, len(wanted.keys), errors))

    def fits(self, wanted: JoinRequest) -> bool:
        """Whether a group answers it as it is."""
        return self._fitting(wanted, "auto") is not None

    def settle(
        self, member: Member[JoinRequest], query: PeriodicQuery, runtime: Surroundings
    ) -> int:
        """The member becomes part of its group; answers the instant from which its answers miss
        nothing."""
        group = _group_of(member)
        member.query = query
        group.members.append(member)
        member.plain = ungrouped.kind(member)
        group.hear_waiting()
        for stream in group.streams:
            if stream in runtime.first_rows:
                group.begin(runtime.first_rows[stream])
        pasts = [Past(k, f"{k}", n) for k, n in enumerate(member.request.lengths)]
        missing = {f"{k}": group.gone[k] for k in range(len(group.sides))}
        return complete_after(pasts, {}, missing, query.registered)

    def leave(self, member: Member[JoinRequest]) -> None:
        """The member's query is gone: so is what it alone used."""
        group = _group_of(member)
        group.members = [m for m in group.members if m is not member]
        used = {c for m in group.members for c in needed(m.request.aggs, bool(m.request.keys))}
        group.feed.columns = {c: column for c, column in group.feed.columns.items() if c in used}
        if not group.members:
            self.groups = [g for g in self.groups if g is not group]

    # -- finding a place ---------------------------------------------------------------------------

    def _alike(self, wanted: JoinRequest, synopsis: str) -> list[JoinGroup]:
        return [
            g
            for g in self.groups
            if g.failure is None
            and g.asked.join == wanted.join
            and g.asked.keys == wanted.keys
            and synopsis in ("auto", g.feed.asked)
        ]

    def _fitting(self, wanted: JoinRequest, synopsis: str) -> JoinGroup | None:
        """SS3; of several the one with the fewest intervals."""
        found = []
        for group in self._alike(wanted, synopsis):
            shape = group.feed.shape
            known = set(needed(wanted.aggs, bool(wanted.keys))) <= set(group.feed.columns)
            meets = wanted.span % shape.span == 0 and _phase(wanted, shape.span) == shape.phase
            if known and meets and wanted.used <= group.stem.used and shape.answers(wanted.lengths):
                found.append(group)
        return min(found, key=lambda g: g.feed.shape.cells, default=None)

    def _grown(self, wanted: JoinRequest, runtime: Surroundings, synopsis: str) -> JoinGroup | None:
        """A group made anew for its members and the new one, where no answer misses a row for
        it."""
        for group in self._alike(wanted, synopsis):
            requests = [m.request for m in group.members]
            shape = fitting_shape([*requests, wanted])
            if (
                shape is None
                or shape.cells * group.feed.space.groups > CELLS
                or group.stem.flow is not None
            ):
                continue
            if _in_reach(group, shape, runtime):
                renew(group, [*requests, wanted], shape, runtime)
                return group
        return None

    def _new(self, wanted: JoinRequest, runtime: Surroundings, synopsis: str) -> JoinGroup:
        shape = fitting_shape([wanted])
        assert shape is not None
        self.made += 1
        name = f"{wanted.join.left.stream} * {wanted.join.right.stream}#{self.made}"
        feed, upstream = _made([wanted], shape, synopsis, runtime)
        group = JoinGroup(name, feed, stem=upstream, gone=(ALWAYS, ALWAYS), asked=wanted)
        _fill(group, runtime, runtime.clock_of(group.streams))
        return group


def _group_of(member: Member[JoinRequest]) -> JoinGroup:
    assert isinstance(member.group, JoinGroup)
    return member.group


def _phase(wanted: JoinRequest, span: int) -> int:
    """Where sub-windows begin so that boundaries fall between them."""
    return (wanted.slide.align or 0) % span


def fitting_shape(requests: Sequence[JoinRequest]) -> JoinShape | None:
    """The coarsest sub-windows and the fewest intervals that answer all; None where they are too
    many."""
    span = gcd(*(r.span for r in requests))
    phases = {_phase(r, span) for r in requests}
    pairs = [(r.lengths[0] // span, r.lengths[1] // span) for r in requests]
    if len(phases) > 1:
        return None
    if len({n1 - n2 for n1, n2 in pairs}) == 1:
        shape = JoinShape(span, phases.pop(), max(n for n, _ in pairs), max(n for _, n in pairs))
    else:
        b = max(max(p) for p in pairs)
        g = b - min(min(p) for p in pairs if p[0] != p[1])
        shape = JoinShape(span, phases.pop(), b, b, g)
    return shape if len(requests) == 1 or (shape.cells <= MOST_CELLS and shape.g <= FLAGS) else None


# ---------------------------------------------------------------- groups made, and made anew


def _made(
    requests: Sequence[JoinRequest], shape: JoinShape, synopsis: str, runtime: Surroundings
) -> tuple[JoinFeed, SharedJoin]:
    from dsms.aggregates.registry import algebra

    first, used = requests[0], frozenset[int]().union(*(r.used for r in requests))
    errors = ErrorCounter()
    upstream = shared_join(first, used, shape, errors, runtime.settings)
    feed = new_feed(
        shape, first.keys, upstream.times, upstream.mapped, first.join.left.stream, synopsis
    )
    feed.errors = errors
    pairs = len({r.lengths for r in requests})
    for call in dict.fromkeys(c for r in requests for c in needed(r.aggs, bool(r.keys))):
        feed.column(call, algebra(call), pairs)
    return feed, upstream


def _gone(stream: str, runtime: Surroundings) -> int:
    """Rows of the stream up to there can't be had."""
    ring = runtime.rings.get(stream)
    return runtime.handed_on(stream) if ring is None else ring.reach


def _front(group: JoinGroup, runtime: Surroundings) -> int:
    """Where a member that comes now begins: streams that have ended take a group on to the boundary
    behind them."""
    return min(group.clock, runtime.clock_of(group.streams))


def _in_reach(group: JoinGroup, shape: JoinShape, runtime: Surroundings) -> bool:
    """Whether the rings hold what the windows reach, or at least all that the group has seen."""
    front = _front(group, runtime)
    for stream, length, had in zip(group.sides, shape.lengths, group.gone, strict=True):
        gone = _gone(stream, runtime)
        if gone > ALWAYS and gone > had and gone > front - length:
            return False
    return True


def _fill(group: JoinGroup, runtime: Surroundings, clock: int) -> None:
    """What the rings hold of its windows goes in; nothing is answered."""
    lengths: Mapping[str, int] = {}
    for stream, length in zip(group.sides, group.feed.shape.lengths, strict=True):
        lengths = {**lengths, stream: max(length, lengths.get(stream, 0))}
    for stream, length in lengths.items():
        ring = runtime.rings.get(stream)
        for rows in (
            () if ring is None else ring.rows(ALWAYS if clock <= ALWAYS else clock - length)
        ):
            group.stem.push(stream, rows)
    group.gone = (_gone(group.sides[0], runtime), _gone(group.sides[1], runtime))
    for rows, _ in group.stem.pieces(clock):
        group.feed.push(rows)
    if clock > ALWAYS:
        group.feed.close(group.feed.number(clock + 1))
    group.clock = clock
    failed = group.feed.errors
    failed.count, failed.first, failed.by_code = 0, None, {}


def renew(
    group: JoinGroup, requests: Sequence[JoinRequest], shape: JoinShape, runtime: Surroundings
) -> None:
    """The group with other windows, sub-windows or columns."""
    front = _front(group, runtime)
    group.feed, group.stem = _made(requests, shape, group.feed.asked, runtime)
    _fill(group, runtime, front)
