"""Members that are answered by collective indices: of all groups only those are looked at that an
index finds for the lowest threshold, and of these each query takes what is above its own (Arasu and
Widom 2004, §4).

An index belongs to a column.  It is brought up to the boundary that is answered from what the
column's synopsis holds, so it costs nothing where it is not asked.  Answers are those of the plain
path, since conditions are evaluated again; where sub-windows have negative sums that path is taken.
A SUM beside it could overflow in a group that is not looked at: `Peaks` says when none does.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.additive import Additive
from dsms.aggregates.parts.cells import State
from dsms.operators.sort import by_columns
from dsms.sharing.answer_source import AnswerSource
from dsms.sharing.column import AggregateColumn
from dsms.sharing.feed import GroupFeed
from dsms.sharing.incremental import Answers
from dsms.sharing.member import Cells, Due, Member
from dsms.sharing.request import Request
from dsms.sharing.search import Peaks, Search, passing, value_of
from dsms.sharing.threshold import (
    UNSEEN,
    Threshold,
    extreme,
    rounded_up,
    sums,
    threshold,
)
from dsms.sql.expr import AggCall
from dsms.synopses.collective import CollectiveIndex
from dsms.synopses.extreme_index import ExtremeIndex

P = 2  # levels of each size

Place = tuple[int, int]  # a member that is due, and which of its boundaries


class Asking(Protocol):
    """The group whose members are answered."""

    members: list[Member[Request]]

    @property
    def feed(self) -> GroupFeed:
        """What it answers from."""
        ...

    def finished(self, member: Member, cols: list[pa.Array], span: np.ndarray, n: int) -> Cells:
        """What the member makes of its groups."""
        ...


@dataclass(slots=True)
class Bundle:
    """Members that ask for the same aggregates over the same window, of which one probe serves all
    with the same boundary.  `low`, `high`: its sub-windows, by boundary."""

    view: AnswerSource
    call: AggCall
    aggs: tuple[AggCall, ...]
    places: list[int] = field(default_factory=list)
    spans: dict[tuple[int, int], list[Place]] = field(default_factory=dict)

    @property
    def column(self) -> AggregateColumn:
        return self.view.column(self.call)


def threshold_of(member: Member[Any]) -> Threshold | None:
    """By what an index finds the member's groups; None if it can't, or is not to."""
    seeking = member.seeking
    if not seeking.known:
        one = isinstance(member.request, Request)
        seeking.know(threshold(member.request, member.above.nodes) if one else None)
    return None if seeking.wish == "none" else seeking.threshold


def bundles(group: Asking, due: Sequence[Due[Request]]) -> list[Bundle]:
    """Members that indices answer now, brought up to their boundaries."""
    found: dict[object, Bundle] = {}
    for i, (member, at) in enumerate(due):
        mine, view, asked = threshold_of(member), member.view, member.request
        if mine is None or view is None or not view.single:
            continue
        key = (asked.aggs, id(view), mine.call, asked.length, asked.until)
        bundle = found.setdefault(key, Bundle(view, mine.call, asked.aggs))
        bundle.places.append(i)
        low = group.feed.numbers(at - asked.length).tolist()
        high = group.feed.numbers(at - asked.until).tolist()
        for j, span in enumerate(zip(low, high, strict=True)):
            bundle.spans.setdefault(span, []).append((i, j))
    return [b for b in found.values() if _pays(group, b, due) and _ready(group, b)]


def _pays(group: Asking, bundle: Bundle, due: Sequence[Due[Request]]) -> bool:
    """Whether it is asked for, or costs less than to look at every group."""
    if any(due[i][0].seeking.wish == "collective" for i in bundle.places):
        return True
    search = bundle.column.searches.get(bundle.call)
    groups = bundle.column.synopsis.groups
    answers = sum(map(len, bundle.spans.values()))
    slide = min(due[i][0].request.slide.every for i in bundle.places)
    subs = len(bundle.spans) * max(1, slide // group.feed.span)
    return (search or Search()).pays(groups, len(bundle.spans), answers, subs)


def _ready(group: Asking, bundle: Bundle) -> bool:
    """Whether its indices know all that was in its windows."""
    column, call = bundle.column, bundle.call
    if not extreme(call) and not isinstance(column.algebra, Additive):
        return False
    oldest, newest = min(low for low, _ in bundle.spans), max(high for _, high in bundle.spans)
    search = _search(group, column, call)
    search.bring(column, call, newest)
    assert search.index is not None
    if not search.index.exact_from(oldest):
        return False
    for other in dict.fromkeys(bundle.aggs):
        if sums(other) and other != call and not _fits(bundle.view.column(other), oldest, newest):
            return False
    return True


def _fits(column: AggregateColumn, low: int, high: int) -> bool:
    """Whether no sum over these sub-windows can overflow."""
    if not isinstance(column.algebra, Additive):
        return False
    if column.peaks is None:
        column.peaks = Peaks()
    column.peaks.bring(column, high)
    return column.peaks.fit(low)


def _search(group: Asking, column: AggregateColumn, call: AggCall) -> Search:
    """The column's search, with an index for the thresholds of all members."""
    search = column.searches.setdefault(call, Search())
    largest = UNSEEN
    if isinstance(search.index, CollectiveIndex):
        largest = max(UNSEEN, rounded_up(int(search.index.total.max(initial=0))))
    asked = [
        least
        for m in group.members
        if (t := threshold_of(m)) is not None
        and t.call == call
        and m.view is not None
        and m.view.single
        and m.view.column(call) is column
        for least in m.seeking.span(largest)
    ]
    first = column.base + column.synopsis.first
    if extreme(call):
        bounds = ExtremeIndex.bounds_for(asked)
        if not isinstance(search.index, ExtremeIndex) or list(search.index.bounds) != list(bounds):
            search.index = ExtremeIndex(bounds, first)
        return search
    least, most = int(min(asked)), int(max(asked))
    if not isinstance(search.index, CollectiveIndex) or not search.index.serves(least, most):
        search.index = CollectiveIndex.between(least, most, P, first)
    return search


def search_of(member: Member[Any]) -> Search | None:
    """What finds the member's groups; None before it has been asked."""
    asked, view = threshold_of(member), member.view
    if asked is None or view is None or not view.single:
        return None
    return view.column(asked.call).searches.get(asked.call)


def index_of(member: Member[Any]) -> CollectiveIndex | ExtremeIndex | None:
    """The index that finds the member's groups, if there is one."""
    found = search_of(member)
    return None if found is None or found.rests else found.index


def forget(column: AggregateColumn, members: Sequence[Member[Any]]) -> None:
    """Let go of what no member asks any more."""
    asked = {t.call for m in members if (t := threshold_of(m)) is not None}
    column.searches = {c: s for c, s in column.searches.items() if c in asked}


# ---------------------------------------------------------------- answers


def answers(
    group: Asking, due: Sequence[Due[Request]], found: Sequence[Bundle]
) -> Generator[None, None, dict[int, Cells]]:
    """The answer rows of the members of these bundles, by their places in `due`."""
    pieces: dict[Place, tuple[list[pa.Array], int]] = {}
    for bundle in found:
        for span, places in sorted(bundle.spans.items()):
            _answer(group, bundle, span, due, places, pieces)
            yield
    out = {}
    for i in (i for b in found for i in b.places):
        member, at = due[i]
        parts = [pieces[i, j] for j in range(len(at))]
        counts = [n for _, n in parts]
        columns = zip(*(cols for cols, _ in parts), strict=True)
        cols = [c[0] if len(c) == 1 else pa.concat_arrays(c) for c in columns]
        out[i] = group.finished(member, cols, np.repeat(np.arange(len(at)), counts), sum(counts))
        if member.kept is not None:
            member.kept = Answers()  # which would have to be told of each boundary
        yield
    return out


def _answer(
    group: Asking,
    bundle: Bundle,
    span: tuple[int, int],
    due: Sequence[Due[Request]],
    places: Sequence[Place],
    pieces: dict[Place, tuple[list[pa.Array], int]],
) -> None:
    """Members with the same window and boundary: keys ++ aggregates of the groups above their
    thresholds, in the order of the keys."""
    leasts = [_least(due[i][0]) for i, _ in places]
    code, value, found = _groups(bundle, span, min(leasts))
    keys = group.feed.space.keys.gather(code)
    order = by_columns(keys, len(code))
    code, value, index = code[order], value[order], pa.array(order)
    held = {id(bundle.column): bundle.column.algebra.take(found, order)}
    cols = [c.take(index) for c in keys]
    low, high = (np.array([number]) for number in span)
    for agg in bundle.aggs:
        column = bundle.view.column(agg)
        if id(column) not in held:
            held[id(column)] = column.probe_some(low, high, code)
        cols.append(bundle.view.lower(agg, held[id(column)]))
    taken: dict[float, tuple[list[pa.Array], int]] = {}
    for place, least in zip(places, leasts, strict=True):
        if least not in taken:
            mine = passing(bundle.call, value, least)
            index = pa.array(mine)
            all_of = len(mine) == len(code)
            taken[least] = (cols if all_of else [c.take(index) for c in cols]), len(mine)
        pieces[place] = taken[least]


def _groups(
    bundle: Bundle, span: tuple[int, int], least: float
) -> tuple[np.ndarray, np.ndarray, State]:
    """Groups that pass `least` in these sub-windows, their values, and their cells; where
    numbers are too large for a word, all groups that may be."""
    column, call = bundle.column, bundle.call
    search = column.searches[call]
    index = search.index
    assert index is not None
    if isinstance(index, ExtremeIndex):
        code = index.above(span[0], least)
    else:
        code = index.above(span[0], int(least))
    code = code[: np.searchsorted(code, column.synopsis.groups)]
    low, high = (np.array([number]) for number in span)
    state = column.probe_some(low, high, code)
    value = value_of(column, call, state)
    search.told(len(code))
    if value is None:
        return code, np.full(len(code), np.iinfo(np.int64).max), state
    above = passing(call, value, least)
    return code[above], value[above], column.algebra.take(state, above)


def _least(member: Member[Any]) -> float:
    found = threshold_of(member)
    assert found is not None
    return found.least
