"""By what the groups of a member of a group of queries are found: a threshold, and an index over a
column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsms.sharing.column import AggregateColumn
from dsms.sharing.member import Member, loosened
from dsms.sharing.request import Request
from dsms.sharing.search import Search
from dsms.sharing.threshold import Threshold, threshold
from dsms.synopses.collective import CollectiveIndex
from dsms.synopses.extreme_index import ExtremeIndex


def threshold_of(member: Member[Any]) -> Threshold | None:
    """By what an index finds the member's groups; None if it can't, or is not to."""
    seeking = member.seeking
    if not seeking.known:
        nodes, one = member.above.nodes, isinstance(member.request, Request)
        below = seeking.wish == "collective"
        found = threshold(member.request, nodes, seeking.within, below) if one else None
        seeking.know(found)
        member.loose = loosened(member.above, found) if seeking.within and found else None
    return None if seeking.wish == "none" else seeking.threshold


def least_of(member: Member[Any]) -> float:
    """What the aggregates of its groups are above, or, of one of small groups, below."""
    found = threshold_of(member)
    assert found is not None
    return found.least


def of_small(member: Member[Any]) -> bool:
    """Whether it asks for groups that have few rows."""
    return (found := threshold_of(member)) is not None and found.below


def search_of(member: Member[Any]) -> Search | None:
    """What finds the member's groups; None before it has been asked."""
    asked, view = threshold_of(member), member.view
    if asked is None or view is None or not view.single:
        return None
    return member.own if member.seeking.alone else view.column(asked.call).searches.get(asked.call)


def index_of(member: Member[Any]) -> CollectiveIndex | ExtremeIndex | None:
    """The index that finds the member's groups, if there is one."""
    found = search_of(member)
    return None if found is None or found.rests else found.index


def forget(column: AggregateColumn, members: Sequence[Member[Any]]) -> None:
    """Let go of what no member asks any more."""
    asked = {t.call for m in members if (t := threshold_of(m)) is not None}
    column.searches = {c: s for c, s in column.searches.items() if c in asked}
