"""Which queries may share what: the rules SS1-SS4 (state) and CS1-CS8 (computation) of Golab 2006,
§8.3 and §8.4.3, and CI (Arasu and Widom 2004, §4), as a table.

A new rule is one more entry of RULES: when it applies, and what of a group it finds shared (SHOW
SHARING tells it).  Where a query finds its state the registry asks SS1 (a feed of its own kind),
SS2 (in `columns`: a column with the same data), SS3 (in `joins`) and SS4 (feeds that cover its
predicate).  Members of a group that are due at the same time are always answered together; the CS
rules say how far they then share work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsms.sharing import report, searches
from dsms.sharing.columns import sources
from dsms.sharing.covers import terms
from dsms.sharing.feed import Feed
from dsms.sharing.group import Group
from dsms.sharing.join_feed import JoinFeed
from dsms.sharing.join_request import JoinRequest
from dsms.sharing.member import Member
from dsms.sharing.python_calls import python_calls
from dsms.sharing.report import Shared
from dsms.sharing.request import Request, phase_of, span_of
from dsms.synopses.cells import SynopsisKind


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that looks for state, and feeds there are; `members`: queries that are answered from
    some of them."""

    wanted: Request | JoinRequest
    counted: bool
    feeds: tuple[Feed, ...]
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Two members of a group that are due together."""

    one: Member
    other: Member


@dataclass(frozen=True, slots=True)
class StateRule:
    """`applies`: whether the query may be answered from these feeds;  `found`: what a group shares
    by the rule."""

    name: str
    says: str
    applies: Callable[[Asked], bool]
    found: Callable[[Group], Iterator[Shared]]


@dataclass(frozen=True, slots=True)
class WorkRule:
    """`applies`: whether the two share work;  `found`: what a group shares by the rule."""

    name: str
    says: str
    applies: Callable[[Pair], bool]
    found: Callable[[Group], Iterator[Shared]]


Rule = StateRule | WorkRule


# ---------------------------------------------------------------- state


def aligned(asked: Asked, feed: Feed) -> bool:
    """Whether the query's window and SLIDE are made of sub-windows of the feed, of the same stream
    by the same keys."""
    wanted = asked.wanted
    if (
        not isinstance(wanted, Request)
        or feed.stream != wanted.stream
        or feed.counted != asked.counted
    ):
        return False
    divides = span_of(wanted) % feed.span == 0 and phase_of(wanted, feed.span) == feed.phase
    return divides and feed.space.exprs == wanted.keys and _same_python(wanted, feed)


def _same_python(wanted: Request, feed: Feed) -> bool:
    """Whether the query calls in Python what the feed does: a fault there stops all that share
    it."""
    mine = python_calls((*wanted.where, *wanted.keys, *wanted.aggs))
    return mine == python_calls((*feed.where, *feed.space.exprs, *feed.columns))


def _same_feed(asked: Asked) -> bool:
    wanted = asked.wanted
    return isinstance(wanted, Request) and all(
        f.where == wanted.where and aligned(asked, f) for f in asked.feeds
    )


def _same_data(asked: Asked) -> bool:
    """Some aggregate finds its data in the column of another one."""
    if not isinstance(asked.wanted, Request) or not _same_feed(asked):
        return False
    used = [sources(asked.wanted.aggs, bool(asked.wanted.keys), f.columns) for f in asked.feeds]
    return any(s != call for u in used for call, s in u.items())


def _same_join(asked: Asked) -> bool:
    wanted, feeds = asked.wanted, asked.feeds
    return isinstance(wanted, JoinRequest) and all(
        isinstance(f, JoinFeed)
        and wanted.span % f.shape.span == 0
        and f.shape.answers(wanted.lengths)
        for f in feeds
    )


def _covers(asked: Asked) -> bool:
    """The feeds may be of use: their windows are at least as long, and all predicates are made of
    atoms."""
    if not isinstance(asked.wanted, Request) or not terms(asked.wanted.where):
        return False
    return all(aligned(asked, f) and f.terms and _reaches(asked, f) for f in asked.feeds)


def _reaches(asked: Asked, feed: Feed) -> bool:
    return any(m.request.length >= asked.wanted.length for m in asked.members if m.reads(feed))


# ---------------------------------------------------------------- computation


def _same_window(pair: Pair) -> bool:
    one, other = pair.one.request, pair.other.request
    if isinstance(one, JoinRequest) or isinstance(other, JoinRequest):
        return (
            isinstance(one, JoinRequest)
            and isinstance(other, JoinRequest)
            and one.lengths == other.lengths
        )
    return (one.length, one.until) == (other.length, other.until)


def _common(pair: Pair) -> set[SynopsisKind]:
    """Kinds of the synopses that both read."""
    mine = {id(c): c.synopsis.kind for c in report.columns(pair.one)}
    return {mine[id(c)] for c in report.columns(pair.other) if id(c) in mine}


def _one_is_covered(pair: Pair) -> bool:
    a, b = pair.one.view, pair.other.view
    if a is None or b is None or a.single == b.single:
        return False
    return bool({id(p.feed) for p in a.parts} & {id(p.feed) for p in b.parts})


def _divided(pair: Pair) -> bool:
    """One column is read by both, for different aggregates."""
    mine = {(id(c), call) for call, c in report.reads(pair.one)}
    theirs = {(id(c), call) for call, c in report.reads(pair.other)}
    return _same_window(pair) and any(a == b and x != y for a, x in mine for b, y in theirs)


def _only_slower(pair: Pair) -> bool:
    one, other = pair.one, pair.other
    if not one.same or one.same != other.same:
        return False
    fast, slow = sorted((one.request.slide.every, other.request.slide.every))
    align = (one.request.slide.align or 0) - (other.request.slide.align or 0)
    return slow % fast == 0 and align % fast == 0


def _indices(member: Member) -> set[int]:
    """The index that it asks."""
    found = searches.index_of(member)
    return set() if found is None else {id(found)}


RANGES: set[SynopsisKind] = {"running", "interval", "landmark"}
BASIC: set[SynopsisKind] = {"basic"}
JOIN_RANGES: set[SynopsisKind] = {"intervaljoin", "runningjoin"}
JOIN_BASIC: set[SynopsisKind] = {"basicintervaljoin"}

SS1 = StateRule(
    "SS1",
    "the same data per sub-window answers windows of any length that are made of these sub-windows",
    _same_feed,
    report.feeds,
)
SS2 = StateRule(
    "SS2",
    "sums and their counts in aligned sub-windows answer AVG, and other aggregates of the same "
    "data",
    _same_data,
    report.data,
)
SS3 = StateRule(
    "SS3",
    "join results by their expiration answer joins of windows of equal lengths, and of unequal "
    "ones that reach into the flagged intervals",
    _same_join,
    report.joins,
)
SS4 = StateRule(
    "SS4",
    "the predicates are covered by those of other synopses over windows at least as long",
    _covers,
    report.covers,
)
CS1 = WorkRule(
    "CS1",
    "over windows of the same length a running or interval synopsis is probed once",
    lambda p: _same_window(p) and bool(_common(p) & RANGES),
    report.same_windows,
)
CS2 = WorkRule(
    "CS2",
    "one scan of basic intervals, from the youngest to the oldest, passes the answers of all "
    "windows",
    lambda p: bool(_common(p) & BASIC),
    report.scans,
)
CS3 = WorkRule(
    "CS3",
    "over the same window AVG divides what SUM and COUNT have combined",
    _divided,
    report.divisions,
)
CS4 = WorkRule(
    "CS4",
    "joins of windows of the same lengths are read from an interval or running join synopsis once",
    lambda p: _same_window(p) and bool(_common(p) & JOIN_RANGES),
    report.same_joins,
)
CS5 = WorkRule(
    "CS5",
    "one scan of a basic interval join synopsis passes the answers over all windows",
    lambda p: bool(_common(p) & JOIN_BASIC),
    report.join_scans,
)
CS6 = WorkRule(
    "CS6",
    "a covered query follows those whose synopses cover it, over windows of the same length",
    lambda p: _one_is_covered(p) and _same_window(p) and bool(_common(p) & RANGES),
    report.covered_windows,
)
CS7 = WorkRule(
    "CS7",
    "a covered query follows those whose basic intervals cover it, over any window",
    lambda p: _one_is_covered(p) and bool(_common(p) & BASIC),
    report.covered_scans,
)
CS8 = WorkRule(
    "CS8",
    "the same query with a longer period takes the answers of the one with the shorter period",
    _only_slower,
    report.same_queries,
)

CI = WorkRule(
    "CI",
    "a collective index finds the groups above the lowest threshold, and of these each query takes "
    "what is above its own",
    lambda p: bool(_indices(p.one) & _indices(p.other)),
    report.indices,
)

RULES: tuple[Rule, ...] = (SS1, SS2, SS3, SS4, CS1, CS2, CS3, CS4, CS5, CS6, CS7, CS8, CI)
