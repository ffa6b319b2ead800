"""All groups of an engine: where a new query finds its place, and what goes when one leaves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dsms.operators.expressions import ErrorCounter
from dsms.running.counted import Numbers
from dsms.running.periodic import PeriodicQuery
from dsms.running.sharing.columns import needed
from dsms.running.sharing.feed import Column, Feed, KeySpace
from dsms.running.sharing.group import Group
from dsms.running.sharing.joins import JoinMember, Joins
from dsms.running.sharing.member import Above, Member
from dsms.running.sharing.request import Request
from dsms.sql.expr import AggCall
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch
from dsms.state.ring import Ring


def span_of(wanted: Request) -> int:
    """The longest sub-window of which its window and its SLIDE are made."""
    assert wanted.beat.slide is not None
    return math.gcd(wanted.length, wanted.until, wanted.beat.slide)


def phase_of(wanted: Request, span: int) -> int:
    """Where sub-windows begin so that boundaries fall between them."""
    return (wanted.beat.align or 0) % span


@dataclass(slots=True)
class Registry:
    """Groups by stream."""

    groups: dict[str, list[Group]] = field(default_factory=dict)
    spaces: list[KeySpace] = field(default_factory=list)
    made: int = 0
    joins: Joins = field(default_factory=Joins)

    def of(self, stream: str | None) -> Iterator[Group]:
        """The groups over a stream (None: all)."""
        yield from self.joins.of(stream)
        if stream is not None:
            yield from self.groups.get(stream, ())
            return
        for groups in self.groups.values():
            yield from groups

    def all(self) -> list[Group]:
        """Every group."""
        return list(self.of(None))

    # -- coming -------------------------------------------------------------------------------------------------------

    def join(self, wanted: Request, errors: ErrorCounter, counted: bool, declared: int | None) -> Member:
        """A member for the request, in a group that fits or a new one.  `declared`: the stream's SUBWINDOW."""
        group = self.fitting(wanted, counted) or self._new(wanted, counted, declared)
        return Member(wanted, group, Above(wanted.above, len(wanted.keys), errors))

    def fitting(self, wanted: Request, counted: bool) -> Group | None:
        """SS1: a feed whose sub-windows the query's window and SLIDE are multiples of; the coarsest."""
        found = []
        for group in self.groups.get(wanted.stream, ()):
            feed = group.feed
            same = feed.where == wanted.where and feed.space.exprs == wanted.keys and feed.counted == counted
            if same and span_of(wanted) % feed.span == 0 and phase_of(wanted, feed.span) == feed.phase:
                found.append(group)
        return max(found, key=lambda g: g.feed.span, default=None)

    def _new(self, wanted: Request, counted: bool, declared: int | None) -> Group:
        span = span_of(wanted)
        if declared is not None and not counted:
            span = math.gcd(span, declared)
        space = next((s for s in self.spaces if s.stream == wanted.stream and s.exprs == wanted.keys), None)
        if space is None:
            space = KeySpace(wanted.stream, wanted.keys)
            self.spaces.append(space)
        self.made += 1
        feed = Feed(wanted.stream, wanted.where, space, span, phase_of(wanted, span), counted)
        group = Group(f"{wanted.stream}#{self.made}", feed)
        self.groups.setdefault(wanted.stream, []).append(group)
        return group

    def settle(self, member: Member, query: PeriodicQuery, ring: Ring | None, gone: int, first_number: int) -> int:
        """The member becomes part of its group: its columns are made and filled with what the ring holds.

        `gone`: rows up to this instant can't be had; `first_number`: of the next row, where rows are counted.
        Answers the instant from which its answers miss nothing (ALWAYS: they never do)."""
        group, feed = member.group, member.group.feed
        new = not group.members
        if new and feed.counted:
            group.numbers = Numbers(first_number)
        member.numbers = group.numbers
        member.query = query
        group.members.append(member)
        calls = [c for c in needed(member.request.aggs, bool(member.request.keys)) if c not in feed.columns]
        past = [] if ring is None else ring.rows(ALWAYS)
        if new:
            for call in calls:
                self._column(group, call)
            for rows in past:
                group.push(rows)
        else:
            feed.flush()
            for call in calls:
                self._late_column(group, call, past)
        return _whole_from(member, gone if ring is None else ring.reach, first_number)

    def _column(self, group: Group, call: AggCall) -> Column:
        from dsms.synopses.algebra import algebra
        from dsms.synopses.choose import choose

        feed = group.feed
        how = algebra(call)
        longest = max((m.request.length for m in group.members), default=feed.span) // feed.span
        widths = sorted({(m.request.length - m.request.until) // feed.span for m in group.members})
        groups = feed.space.groups
        synopsis, why = choose(how, widths, groups, longest, len(group.members))
        column = Column(call, how, synopsis, feed.open or 0)
        column.why = why
        column.grow(groups)
        feed.columns[call] = column
        return column

    def _late_column(self, group: Group, call: AggCall, past: Sequence[Batch]) -> None:
        """A column in a feed that runs already; filled from the ring, else it begins with the next sub-window."""
        feed = group.feed
        column = self._column(group, call)
        if feed.open is None:
            return
        column.whole_from = feed.open + 1
        del feed.columns[call]
        if not past:
            feed.columns[call] = column
            return
        side = Feed(feed.stream, feed.where, feed.space, feed.span, feed.phase, feed.counted, {call: column})
        feed.space.feeds.remove(side)
        for rows in past:
            side.push(rows)
        side.close(feed.open)
        column.whole_from = ALWAYS
        feed.columns[call] = column

    # -- going --------------------------------------------------------------------------------------------------------

    def leave(self, member: Member) -> None:
        """The member's query is gone: so is what it alone used."""
        if isinstance(member, JoinMember):
            self.joins.leave(member)
            return
        group, feed = member.group, member.group.feed
        group.members = [m for m in group.members if m is not member]
        used = {c for m in group.members for c in needed(m.request.aggs, bool(m.request.keys))}
        feed.columns = {c: column for c, column in feed.columns.items() if c in used}
        if not group.members:
            self.groups[feed.stream] = [g for g in self.groups[feed.stream] if g is not group]
            feed.space.feeds = [f for f in feed.space.feeds if f is not feed]
            if not feed.space.feeds:
                self.spaces = [s for s in self.spaces if s is not feed.space]


def _whole_from(member: Member, gone: int, first_number: int) -> int:
    """The instant from which the member's boundaries have all their rows."""
    feed, length = member.group.feed, member.request.length
    worst = ALWAYS
    if feed.counted:
        gone = first_number - 1 if first_number else ALWAYS
    for call in needed(member.request.aggs, bool(member.request.keys)):
        column = feed.columns[call]
        if column.whole_from > ALWAYS:
            worst = max(worst, feed.phase + column.whole_from * feed.span + length)
        elif feed.open is not None and column.synopsis.first > 0:
            worst = max(worst, feed.phase + (column.base + column.synopsis.first) * feed.span + length)
        elif gone > ALWAYS and feed.open is None:
            worst = max(worst, gone + length)
    return worst
