"""What the queries of a group share, rule by rule (see `rules`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsms.sharing import searches
from dsms.sharing.column import FeedColumn
from dsms.sharing.columns import ROWS, needed
from dsms.sharing.feed import Feed, SingleFeed
from dsms.sharing.group import Group
from dsms.sharing.join_feed import JoinFeed
from dsms.sharing.member import Member
from dsms.sql.expr import AggCall
from dsms.synopses.cells import SynopsisKind

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """members  the queries that share, in order of registration (of covers: those covering, then
             those covered)
    feed     whose rows;  calls: the columns of it, where it is not all about them
    others   more feeds (covers): `less` says which are subtracted
    length   of the window that all have, µs or rows; None: any
    """

    members: tuple[Member, ...]
    feed: SingleFeed
    calls: tuple[AggCall, ...] = ()
    kinds: tuple[SynopsisKind, ...] = ()
    others: tuple[tuple[Feed, bool], ...] = ()
    length: int | None = None


def reads(member: Member) -> Iterator[tuple[AggCall, FeedColumn]]:
    """Each aggregate with the columns that answer it."""
    if member.view is None:
        held = member.group.feed.columns
        yield from (
            (c, held[c])
            for c in needed(member.request.aggs, bool(member.request.keys))
            if c in held
        )
        return
    for part in member.view.parts:
        yield from ((call, part.column(call)) for call in part.sources)


def columns(member: Member) -> list[FeedColumn]:
    """The columns that it reads, each once."""
    return list({id(c): c for _, c in reads(member)}.values())


def window(member: Member) -> Key:
    """What of its windows must be alike where one probe serves several."""
    return getattr(member.request, "lengths", (member.request.length, member.request.until))


def covered(member: Member) -> bool:
    return member.view is not None and not member.view.single


# ---------------------------------------------------------------- state


def feeds(group: Group) -> Iterator[Shared]:
    """SS1: several queries of a feed."""
    for feed in group.feed.feeds:
        mine = tuple(m for m in group.members if not covered(m) and m.reads(feed))
        if len(mine) > 1 and isinstance(feed, Feed):
            yield Shared(mine, feed)


def data(group: Group) -> Iterator[Shared]:
    """SS2: a column that several aggregates read."""
    for feed, key, column, readers in _read(group):
        calls = tuple(dict.fromkeys(call for _, call in readers))
        if len(calls) > 1 and isinstance(feed, Feed):
            members = dict.fromkeys(i for i, _ in readers)
            yield Shared(
                tuple(group.members[i] for i in members),
                feed,
                (key, *(c for c in calls if c != key)),
                (column.synopsis.kind,),
            )


def joins(group: Group) -> Iterator[Shared]:
    """SS3: several queries of a join."""
    if isinstance(group.feed, JoinFeed) and len(group.members) > 1:
        kinds = tuple(dict.fromkeys(c.synopsis.kind for c in group.feed.columns.values()))
        yield Shared(tuple(group.members), group.feed, (), kinds)


def covers(group: Group) -> Iterator[Shared]:
    """SS4: queries answered from the feeds of others."""
    for view in dict.fromkeys(m.view for m in group.members if covered(m)):
        assert view is not None
        mine = [m for m in group.members if m.view is view]
        theirs = _covering(group, mine[0])
        parts = tuple((p.feed, p.less) for p in view.parts)
        kinds = tuple(dict.fromkeys(c.synopsis.kind for _, c in view.columns()))
        yield Shared((*theirs, *mine), view.parts[0].feed, (), kinds, parts)


# ---------------------------------------------------------------- computation


def same_windows(group: Group) -> Iterator[Shared]:
    """CS1."""
    yield from _together(group, ("running", "interval", "landmark"), window)


def scans(group: Group) -> Iterator[Shared]:
    """CS2."""
    yield from _together(group, ("basic",), lambda m: ())


def same_joins(group: Group) -> Iterator[Shared]:
    """CS4."""
    yield from _together(group, ("intervaljoin", "runningjoin"), window)


def join_scans(group: Group) -> Iterator[Shared]:
    """CS5."""
    yield from _together(group, ("basicintervaljoin",), lambda m: ())


def divisions(group: Group) -> Iterator[Shared]:
    """CS3: a column read for several aggregates over one window."""
    for feed, key, column, readers in _read(group):
        by: dict[Key, list[tuple[int, AggCall]]] = {}
        for i, call in readers:
            by.setdefault(window(group.members[i]), []).append((i, call))
        for mine in by.values():
            members, calls = dict.fromkeys(i for i, _ in mine), dict.fromkeys(c for _, c in mine)
            if len(members) > 1 and len(calls) > 1:
                found = tuple(group.members[i] for i in members)
                yield Shared(
                    found,
                    feed,
                    (key, *(c for c in calls if c != key)),
                    (column.synopsis.kind,),
                    (),
                    found[0].request.length,
                )


def covered_windows(group: Group) -> Iterator[Shared]:
    """CS6."""
    for member in filter(covered, group.members):
        yield from _candidates(group, member, basic=False)


def covered_scans(group: Group) -> Iterator[Shared]:
    """CS7."""
    for member in filter(covered, group.members):
        yield from _candidates(group, member, basic=True)


def same_queries(group: Group) -> Iterator[Shared]:
    """CS8: queries that differ in their SLIDE, slower ones multiples of the fastest."""
    by: dict[int, list[Member]] = {}
    for member in group.members:
        by.setdefault(member.same, []).append(member)
    for number, mine in by.items():
        if number and len(mine) > 1:
            fast = min(mine, key=lambda m: m.request.slide.every)
            found = [m for m in mine if m is not fast and _divides(fast, m)]
            if found and fast.view is not None:
                parts = () if fast.view.single else tuple((p.feed, p.less) for p in fast.view.parts)
                yield Shared((fast, *found), fast.view.parts[0].feed, (), (), parts)


def _divides(fast: Member, slow: Member) -> bool:
    a, b = fast.request.slide, slow.request.slide
    return b.every % a.every == 0 and ((a.align or 0) - (b.align or 0)) % a.every == 0


def indices(group: Group) -> Iterator[Shared]:
    """CI: queries that ask one collective index."""
    by: dict[int, list[Member]] = {}
    for member in group.members:
        if (index := searches.index_of(member)) is not None:
            by.setdefault(id(index), []).append(member)
    for mine in by.values():
        asked, view = searches.threshold_of(mine[0]), mine[0].view
        if len(mine) > 1 and asked is not None and view is not None:
            kind = view.column(asked.call).synopsis.kind
            yield Shared(tuple(mine), view.parts[0].feed, (asked.call,), (kind,))


Reader = tuple[int, AggCall]  # place of the member in its group, the aggregate that it asks for


def _read(group: Group) -> Iterator[tuple[SingleFeed, AggCall, FeedColumn, list[Reader]]]:
    """Every column of the group, with its readers."""
    readers: dict[int, list[Reader]] = {}
    for i, member in enumerate(group.members):
        for call, column in reads(member):
            readers.setdefault(id(column), []).append((i, call))
    for feed in group.feed.feeds:
        for key, column in feed.columns.items():
            yield feed, key, column, readers.get(id(column), [])


def _together(
    group: Group, kinds: tuple[SynopsisKind, ...], alike: Callable[[Member], Key]
) -> Iterator[Shared]:
    """Members whose `alike` is the same, by what they read; columns read by the same ones in
    one."""
    found: dict[
        tuple[int, tuple[int, ...]], tuple[SingleFeed, list[AggCall], list[SynopsisKind]]
    ] = {}
    for feed, key, column, readers in _read(group):
        if column.synopsis.kind not in kinds:
            continue
        by: dict[Key, dict[int, None]] = {}
        for i, _ in readers:
            if not covered(group.members[i]):
                by.setdefault(alike(group.members[i]), {})[i] = None
        for mine in by.values():
            if len(mine) > 1:
                entry = found.setdefault((id(feed), tuple(mine)), (feed, [], []))
                entry[1].append(key)
                entry[2].append(column.synopsis.kind)
    for (_, places), (feed, calls, held) in found.items():
        members = tuple(group.members[i] for i in places)
        same = len({window(m) for m in members}) == 1
        yield Shared(
            members,
            feed,
            tuple(calls),
            tuple(dict.fromkeys(held)),
            (),
            members[0].request.length if same else None,
        )


def _covering(group: Group, member: Member) -> list[Member]:
    """The queries whose synopses a covered one is answered from."""
    mine = {id(c) for call, c in reads(member) if call != ROWS}
    return [m for m in group.members if not covered(m) and any(id(c) in mine for c in columns(m))]


def _candidates(group: Group, member: Member, basic: bool) -> Iterator[Shared]:
    """The queries that run before a covered one, and it."""
    assert member.view is not None
    kinds = tuple(dict.fromkeys(c.synopsis.kind for _, c in member.view.columns()))
    if ("basic" in kinds) != basic:
        return
    before = _covering(group, member)
    if not basic:
        before = [m for m in before if window(m) == window(member)]
    if before:
        parts = tuple((p.feed, p.less) for p in member.view.parts)
        yield Shared(
            (*before, member),
            member.view.parts[0].feed,
            (),
            kinds,
            parts,
            None if basic else member.request.length,
        )
