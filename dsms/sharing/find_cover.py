"""Relevant feeds: those that a query with another predicate can be answered from (Golab 2006,
§8.3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsms.aggregates.parts.additive import Additive
from dsms.aggregates.parts.cells import Algebra
from dsms.aggregates.parts.counters import Counters
from dsms.aggregates.parts.picks import Picks
from dsms.aggregates.ranks import RankCells
from dsms.sharing.answer_source import AnswerSource, SignedFeed
from dsms.sharing.columns import sources
from dsms.sharing.covers import Cover, Terms, cover, terms
from dsms.sharing.feed import Feed
from dsms.sharing.request import Request
from dsms.sql.expr import AggCall


def exact(algebra: Algebra) -> bool:
    """Whether cells of several feeds make, in whatever order, the answer over all their rows (not
    FIRST, LAST, ARGMIN, ARGMAX, which ask for the order of rows; nor sketches, whose answers depend
    on how rows were cut)."""
    return isinstance(algebra, Additive | Counters | RankCells) or (
        isinstance(algebra, Picks) and algebra.duplicate_insensitive
    )


@dataclass(frozen=True, slots=True)
class _Offer:
    feed: Feed
    terms: Terms
    sources: Mapping[AggCall, AggCall]

    @property
    def key(self) -> tuple[object, ...]:
        """Cells of offers with the same one can be combined."""
        return tuple(
            (call, s, id(self.feed.columns[s].algebra)) for call, s in self.sources.items()
        )


def covering(wanted: Request, feeds: Sequence[Feed]) -> AnswerSource | None:
    """How the feeds (with the query's stream, keys and sub-windows) answer it; None if they
    don't."""
    mine = terms(wanted.where)
    if not mine:
        return None
    kinds: dict[tuple[object, ...], list[_Offer]] = {}
    for feed in feeds:
        offer = _offer(wanted, feed)
        if offer is not None:
            kinds.setdefault(offer.key, []).append(offer)
    for offers in kinds.values():
        found = _among(wanted, mine, offers)
        if found is not None:
            parts = [SignedFeed(offers[i].feed, offers[i].sources) for i in found.plus]
            parts += [SignedFeed(offers[i].feed, offers[i].sources, less=True) for i in found.less]
            return AnswerSource(tuple(parts), found.how)
    return None


def _offer(wanted: Request, feed: Feed) -> _Offer | None:
    """What of the feed may be of use: it must hold all that is asked for."""
    found = feed.terms
    used = sources(wanted.aggs, bool(wanted.keys), feed.columns)
    if not found or not all(s in feed.columns for s in used.values()):
        return None
    readers = [feed.columns[s].reader(call) for call, s in used.items()]
    return _Offer(feed, found, used) if all(map(exact, readers)) else None


def _among(wanted: Request, mine: Terms, offers: list[_Offer]) -> Cover | None:
    first = offers[0]
    asked = [
        first.feed.columns[first.sources[call]].reader(call) for call in dict.fromkeys(wanted.aggs)
    ]
    overlap = all(a.duplicate_insensitive for a in asked)
    return cover(mine, [o.terms for o in offers], overlap, all(a.subtractable for a in asked))
