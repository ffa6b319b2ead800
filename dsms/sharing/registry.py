"""All groups of an engine: where a new query finds its place, and what goes when one leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from dsms.aggregates.parts.cells import Algebra
from dsms.operators.expressions import ErrorCounter
from dsms.periodic.counted import Numbers
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.plan.paths import Offer
from dsms.sharing import choose_synopsis, searches
from dsms.sharing.answer_source import AnswerSource, SignedFeed
from dsms.sharing.choose_synopsis import foreseen
from dsms.sharing.column import AggregateColumn
from dsms.sharing.columns import sources
from dsms.sharing.covers import terms
from dsms.sharing.feed import Feed
from dsms.sharing.feed_set import FeedSet
from dsms.sharing.find_cover import covering, exact
from dsms.sharing.group import Group
from dsms.sharing.incremental import combined
from dsms.sharing.join_group import JoinGroup
from dsms.sharing.joins import Joins
from dsms.sharing.key_space import KeySpace
from dsms.sharing.member import Above, Answering, Member
from dsms.sharing.request import Request, made_of, phase_of
from dsms.sharing.rules import SS1, SS4, Asked
from dsms.sharing.stream_group import StreamGroup
from dsms.sql.expr import AggCall
from dsms.sql.types import ALWAYS
from dsms.sql.window import NO_SLIDE
from dsms.state.batch import Batch
from dsms.state.ring import Ring
from dsms.synopses.choose import choose


@dataclass(slots=True)
class Registry:
    """Groups by stream."""

    groups: dict[str, list[StreamGroup]] = field(default_factory=dict)
    spaces: list[KeySpace] = field(default_factory=list)
    made: int = 0
    joins: Joins = field(default_factory=Joins)
    # requests without their SLIDE, numbered
    alike: dict[Request, int] = field(default_factory=dict)
    numbered: int = 0

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

    # -- coming ------------------------------------------------------------------------------------

    def join(
        self,
        wanted: Request,
        errors: ErrorCounter,
        counted: bool,
        declared: int | None,
        covers: bool = True,
    ) -> Member:
        """A member for the request, in a group that fits or a new one.  `declared`: the stream's
        SUBWINDOW; `covers`: whether feeds with other predicates may answer it (SS4)."""
        found = self.find(wanted, counted, covers)
        if found is None:
            feed = self._new(wanted, counted, declared)
            self.made += 1
            group = StreamGroup(f"{wanted.stream}#{self.made}", feed)
            self.groups.setdefault(wanted.stream, []).append(group)
            view = AnswerSource((SignedFeed(feed, {}),))
        else:
            view = found[1]
            group = self._bundled(view)
        return Member(wanted, group, Above(wanted.above, len(wanted.keys), errors), view=view)

    def find(
        self, wanted: Request, counted: bool, covers: bool = True
    ) -> tuple[StreamGroup, AnswerSource] | None:
        """Feeds there are that answer the query, and the group of the first of them."""
        return self._placed(wanted, counted) or (self._covered(wanted, counted) if covers else None)

    def offer(
        self, wanted: Request, counted: bool, declared: int | None, covers: bool = True
    ) -> Offer:
        """What synopses, those that there are or new ones, offer the query that asks to `join`."""
        found, have = self.find(wanted, counted, covers), dict[AggCall, AggregateColumn]()
        if found is None:
            span, space = made_of(wanted, counted, declared), self._space(wanted)
        elif found[1].single:
            feed = found[1].parts[0].feed
            span, space, have = feed.span, feed.space, feed.columns
        else:
            return Offer()
        used = sources(wanted.aggs, bool(wanted.keys), have)
        groups = 1 if space is None else space.groups
        width, reach = (wanted.length - wanted.until) // span, wanted.length // span
        calls = [used[a] for a in wanted.aggs]
        hows = {c: have[c].algebra if c in have else self._algebra(wanted.stream, c) for c in calls}
        if not hows or not all(how.subtractable for how in hows.values()):
            return Offer()
        read = [foreseen(how, have.get(call), groups, width, reach) for call, how in hows.items()]
        return Offer(cells=combined(read, width, max(1, wanted.slide.every // span)))

    def _placed(self, wanted: Request, counted: bool) -> tuple[StreamGroup, AnswerSource] | None:
        """SS1: a feed whose sub-windows the query's window and SLIDE are multiples of; the
        coarsest."""
        found = [
            (group, feed)
            for group in self.groups.get(wanted.stream, ())
            for feed in _feeds(group)
            if SS1.applies(Asked(wanted, counted, (feed,)))
        ]
        if not found:
            return None
        group, feed = max(found, key=lambda pair: pair[1].span)
        columns = sources(wanted.aggs, bool(wanted.keys), feed.columns)
        return group, AnswerSource((SignedFeed(feed, columns),))

    def _covered(self, wanted: Request, counted: bool) -> tuple[StreamGroup, AnswerSource] | None:
        """SS4: feeds that cover the query's predicate, all of the same sub-windows; the coarsest.
        (And the group of the first of them.)"""
        mine = terms(wanted.where)
        if counted or not mine:
            return None
        there = [(g, f) for g in self.groups.get(wanted.stream, ()) for f in _feeds(g) if f.terms]
        touching = frozenset(t for _, f in there if f.terms and f.terms & mine for t in f.terms)
        feeds = [
            (group, feed)
            for group, feed in there
            if feed.terms and feed.terms <= touching
            if SS4.applies(Asked(wanted, counted, (feed,), tuple(group.members)))
        ]
        for span in sorted({f.span for _, f in feeds}, reverse=True):
            view = covering(wanted, [f for _, f in feeds if f.span == span])
            if view is not None:
                return next(g for g, f in feeds if view.reads(f)), view
        return None

    def _new(self, wanted: Request, counted: bool, declared: int | None) -> Feed:
        span, space = made_of(wanted, counted, declared), self._space(wanted)
        if space is None:
            space = KeySpace(wanted.stream, wanted.keys)
            self.spaces.append(space)
        return Feed(wanted.stream, space, span, phase_of(wanted, span), counted, where=wanted.where)

    def _space(self, wanted: Request) -> KeySpace | None:
        return next(
            (s for s in self.spaces if s.stream == wanted.stream and s.exprs == wanted.keys), None
        )

    def _bundled(self, view: AnswerSource) -> StreamGroup:
        """The groups of its feeds as one, whose feeds move together."""
        first, *others = [
            g for g in self.groups[view.parts[0].feed.stream] if any(map(view.reads, g.feed.feeds))
        ]
        for group in (first, *others) if others else ():
            group.settled()
        if others:
            first.feed = FeedSet(f for g in (first, *others) for f in _feeds(g))
        for group in others:
            first.clock = max(first.clock, group.clock)
            first.told = group.told if first.told is None else first.told
            self.groups[first.feed.stream].remove(group)
            for member in group.members:
                member.group = first
                first.members.append(member)
                if group.backlog is not None and member.query is not None:
                    first.backlog = group.backlog
                    group.backlog.move(member.query.name, group.name, first.name, first)
        return first

    # -- becoming part of a group ------------------------------------------------------------------

    def settle(
        self, member: Member, query: EvaluatedQuery, ring: Ring | None, gone: int, first_number: int
    ) -> int:
        """The member becomes part of its group: its columns are made and filled with what the ring
        holds.

        `gone`: rows up to this instant can't be had; `first_number`: of the next row, where rows
        are counted.  Answers the instant, or the row, from which its answers miss nothing (ALWAYS:
        they never do)."""
        group = _group_of(member)
        group.settled()
        assert member.view is not None
        new = not group.members
        if new and group.feed.counted:
            group.numbers = Numbers(first_number)
        member.numbers, member.query = group.numbers, query
        member.same = self._number(member.request)
        group.members.append(member)
        gone = gone if ring is None else ring.reach
        past = [] if ring is None else ring.rows(ALWAYS)
        if group.feed.counted and gone > ALWAYS:
            gone = (int(past[0].ids[0][0]) if past else first_number) - 1
        for part in member.view.parts:
            self._columns(member, part.feed, _Past(past, gone), new)
        member.view = self._interned(member)
        if new and past:
            group.fill(past, _counting(member, 1))
        else:
            _count(member, 1)
        return gone + member.request.length if new and gone > ALWAYS else _whole_from(member)

    def _number(self, wanted: Request) -> int:
        """A number for all requests that differ in nothing but their SLIDE (CS8)."""
        alike = replace(wanted, slide=NO_SLIDE)
        if alike not in self.alike:
            self.numbered += 1
            self.alike[alike] = self.numbered
        return self.alike[alike]

    def _interned(self, member: Member) -> AnswerSource:
        """The member's view; the same object for members that are probed together."""
        wanted, view = member.request, member.view
        assert view is not None
        parts = view.parts
        if view.single:
            asked = (wanted.aggs, bool(wanted.keys))
            parts = tuple(replace(p, sources=sources(*asked, p.feed.columns)) for p in parts)
        made = AnswerSource(parts, view.how)
        others = (m.view for m in member.group.members if m.view is not None)
        return next((v for v in others if v.key == made.key), made)

    def _columns(self, member: Member, feed: Feed, past: _Past, new: bool) -> None:
        """The columns that the member reads of the feed, as far back as its window reaches if that
        can be had."""
        assert member.view is not None
        if member.view.single:
            wanted = sources(member.request.aggs, bool(member.request.keys), feed.columns)
        else:
            wanted = next(dict(p.sources) for p in member.view.parts if p.feed is feed)
        if not new:
            feed.flush()
        for call in dict.fromkeys(wanted.values()):
            column = feed.columns.get(call)
            if column is None:
                feed.columns[call] = self._column(member.group, feed, call)
                if not new:
                    self._fill(feed, call, past)
                feed.columns[call].whole_from = past.number(feed)
                continue
            helps = past.rows and past.number(feed) < column.first_complete
            if helps and _short(column, feed, member):
                feed.columns[call] = made = self._column(member.group, feed, call)
                self._fill(feed, call, past)
                made.whole_from = past.number(feed)
                made.widths, made.chosen_for = column.widths, column.chosen_for

    def _column(self, group: Answering, feed: Feed, call: AggCall) -> AggregateColumn:
        how = self._algebra(feed.stream, call)
        members = [m for m in group.members if m.reads(feed)]
        longest = max((m.request.length for m in members), default=feed.span) // feed.span
        widths = sorted({(m.request.length - m.request.until) // feed.span for m in members})
        groups = feed.space.groups
        synopsis, why = choose(how, widths, groups, longest, 1)
        column = AggregateColumn(call, how, synopsis, base=feed.open or 0)
        column.why = why
        column.grow(groups)
        return column

    def _algebra(self, stream: str, call: AggCall) -> Algebra:
        """One algebra for all columns of the stream that hold the same aggregate: their cells can
        be combined."""
        from dsms.aggregates.registry import algebra

        others = (
            f.columns[call]
            for g in self.groups.get(stream, ())
            for f in _feeds(g)
            if call in f.columns
        )
        known = next((c.algebra for c in others if exact(c.algebra)), None)
        return known or algebra(call)

    def _fill(self, feed: Feed, call: AggCall, past: _Past) -> None:
        """A column in a feed that runs already; filled from the ring, else it begins with the next
        sub-window."""
        column = feed.columns[call]
        if feed.open is None or not past.rows:
            return
        columns, where = {call: column}, feed.where
        side = Feed(
            feed.stream, feed.space, feed.span, feed.phase, feed.counted, columns, where=where
        )
        feed.space.feeds.remove(side)
        for rows in past.rows:
            side.push(rows)
        side.close(feed.open)

    # -- going -------------------------------------------------------------------------------------

    def leave(self, member: Member) -> None:
        """The member's query is gone: so is what it alone used."""
        member.group.settled()
        member.query = None  # which has the member, too
        if isinstance(member.group, JoinGroup):
            self.joins.leave(member)
            return
        group, stream = _group_of(member), member.request.stream
        _count(member, -1)
        group.members, group._known = [m for m in group.members if m is not member], (0, -1, 0)
        if not any(m.same == member.same for m in group.members):
            self._forget(member)
        kept = []
        for feed in _feeds(group):
            used = {id(c) for m in group.members if m.view is not None for _, c in m.view.columns()}
            feed.columns = {c: column for c, column in feed.columns.items() if id(column) in used}
            for column in feed.columns.values():
                searches.forget(column, group.members)
            if any(m.reads(feed) for m in group.members):
                kept.append(feed)
            else:
                feed.space.feeds = [f for f in feed.space.feeds if f is not feed]
        if not kept:
            self._without(stream, group)
            self.spaces = [s for s in self.spaces if s.feeds]
        elif len(kept) < len(group.feed.feeds):
            group.feed = kept[0] if len(kept) == 1 else FeedSet(kept)

    def expel(self, group: Group) -> None:
        """The group can't go on: it gets no rows and no members any more."""
        for stream in list(self.groups):
            self._without(stream, group)
        self.joins.groups = [g for g in self.joins.groups if g is not group]

    def _without(self, stream: str, group: Group) -> None:
        kept = [g for g in self.groups.get(stream, ()) if g is not group]
        if kept:
            self.groups[stream] = kept
        else:
            self.groups.pop(stream, None)

    def _forget(self, member: Member) -> None:
        everywhere = (m for g in self.groups.get(member.request.stream, ()) for m in g.members)
        if not any(m.same == member.same for m in everywhere):
            self.alike.pop(replace(member.request, slide=NO_SLIDE), None)


@dataclass(frozen=True, slots=True)
class _Past:
    """What the ring holds, and the instant (or row number) up to which rows are gone."""

    rows: list[Batch]
    gone: int

    def number(self, feed: Feed) -> int:
        """The first sub-window that misses none."""
        return ALWAYS if self.gone <= ALWAYS else -((feed.phase - self.gone - 1) // feed.span)


def _group_of(member: Member[Request]) -> StreamGroup:
    assert isinstance(member.group, StreamGroup)
    return member.group


def _feeds(group: StreamGroup) -> list[Feed]:
    return [f for f in group.feed.feeds if isinstance(f, Feed)]


def _count(member: Member, more: int) -> None:
    for _ in _counting(member, more):
        pass


def _counting(member: Member, more: int) -> Iterator[None]:
    """The columns that the member reads have one more (or less) reader."""
    asked = member.request
    for feed, column in member.view.columns() if member.view is not None else ():
        width, reach = (asked.length - asked.until) // feed.span, asked.length // feed.span
        yield from choose_synopsis.reading(column, feed, width, reach, more)


def _short(column: AggregateColumn, feed: Feed, member: Member) -> bool:
    """Whether the column does not reach back as far as the member's window does."""
    reach = member.request.length // feed.span
    return feed.open is not None and column.first_complete > feed.open - reach


def _whole_from(member: Member) -> int:
    """The instant from which the member's boundaries have all their rows."""
    assert member.view is not None
    worst = ALWAYS
    for feed, column in member.view.columns():
        reach = column.whole_from if feed.open is None else column.first_complete
        if reach > ALWAYS:
            worst = max(worst, feed.phase + reach * feed.span - 1 + member.request.length)
    return worst
