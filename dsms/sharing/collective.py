"""Members that are answered by collective indices: of all groups only those are looked at that an
index finds for the lowest threshold, and of these each query takes what is above its own (Arasu and
Widom 2004, §4).

An index belongs to a column.  It is brought up to the boundary that is answered from what the
column's synopsis holds, so it costs nothing where it is not asked.  Answers are those of the plain
path, since conditions are evaluated again; where sub-windows have negative sums that path is taken.
A SUM beside it could overflow in a group that is not looked at: `Peaks` says when none does.

Where a column keeps the sums of the window (`WindowSums`), these say what is in the groups, and of
a COUNT which of them are above a threshold.

Which groups have few rows, and which are found though they are a little below a threshold, an index
says of the present alone: a member that asks so has one of its own, which is brought from boundary
to boundary (`Seeking.alone`).  So approximate answers don't depend on what is answered together.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.aggregates.parts.additive import Additive
from dsms.aggregates.parts.cells import State
from dsms.operators.expressions import compile_predicate
from dsms.operators.sort import by_columns
from dsms.sharing.answer_source import AnswerSource
from dsms.sharing.column import AggregateColumn
from dsms.sharing.feed import GroupFeed
from dsms.sharing.incremental import Answers
from dsms.sharing.member import Above, Cells, Due, Member
from dsms.sharing.request import Request
from dsms.sharing.search import Search, passing, value_of
from dsms.sharing.searches import least_of, of_small, threshold_of
from dsms.sharing.threshold import UNSEEN, counts, extreme, rounded_up, sums
from dsms.sql.expr import AggCall
from dsms.synopses.collective import CollectiveIndex
from dsms.synopses.extreme_index import ExtremeIndex

P = 2  # levels of each size
SILENT = 64  # boundaries after which it is looked whether something is found at any to come
Place = tuple[int, int]  # a member that is due, and which of its boundaries


class Asking(Protocol):
    """The group whose members are answered."""

    members: list[Member[Request]]

    @property
    def feed(self) -> GroupFeed:
        """What it answers from."""
        ...

    def finished(
        self, member: Member, above: Above, cols: list[pa.Array], span: np.ndarray, n: int
    ) -> Cells:
        """What the member makes of its groups, by the steps `above`."""
        ...


@dataclass(slots=True)
class Bundle:
    """Members that ask for the same aggregates over the same window, of which one probe serves all
    with the same boundary.

    spans    its sub-windows (low, high), by boundary
    alone    the one member, where its index is its own
    step     sub-windows from one answer to the next
    nothing  what there is where no group is found, once it has been made"""

    view: AnswerSource
    call: AggCall
    aggs: tuple[AggCall, ...]
    alone: Member[Any] | None = None
    step: int = 1
    places: list[int] = field(default_factory=list)
    spans: dict[tuple[int, int], list[Place]] = field(default_factory=dict)
    nothing: tuple[list[pa.Array], int] | None = None

    @property
    def column(self) -> AggregateColumn:
        return self.view.column(self.call)

    @property
    def search(self) -> Search:
        """What finds its groups."""
        if self.alone is None:
            return self.column.searches.setdefault(self.call, Search())
        if self.alone.own is None:
            self.alone.own = Search()
        return self.alone.own

    @property
    def loose(self) -> bool:
        """Whether what the index finds is the answer."""
        return self.alone is not None and self.alone.loose is not None


def bundles(group: Asking, due: Sequence[Due[Request]]) -> list[Bundle]:
    """Members that indices answer now, brought up to their boundaries."""
    found: dict[object, Bundle] = {}
    for i, (member, at) in enumerate(due):
        mine, view, asked = threshold_of(member), member.view, member.request
        if mine is None or view is None or not view.single:
            continue
        alone = member if member.seeking.alone else None
        key = (asked.aggs, id(view), mine.call, asked.length, asked.until, id(alone))
        bundle = found.setdefault(key, Bundle(view, mine.call, asked.aggs, alone))
        step = max(1, asked.slide.every // group.feed.span)
        bundle.step = min(bundle.step, step) if bundle.places else step
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
    groups = bundle.column.synopsis.groups
    answers = sum(map(len, bundle.spans.values()))
    subs = len(bundle.spans) * bundle.step
    return bundle.search.pays(groups, len(bundle.spans), answers, subs)


def _ready(group: Asking, bundle: Bundle) -> bool:
    """Whether its indices know all that was in its windows."""
    column, call = bundle.column, bundle.call
    if not extreme(call) and not isinstance(column.algebra, Additive):
        return False
    oldest, newest = min(low for low, _ in bundle.spans), max(high for _, high in bundle.spans)
    if bundle.alone is not None:
        _own_index(bundle, bundle.alone, oldest)
    elif not _index(group, bundle, newest).exact_from(oldest):
        return False
    for other in dict.fromkeys(bundle.aggs):
        if sums(other) and other != call and not bundle.view.column(other).fits(oldest, newest):
            return False
    return True


def _own_index(bundle: Bundle, member: Member[Any], oldest: int) -> None:
    """The member has an index for its threshold, that begins with its window."""
    search, levels = bundle.search, member.seeking.levels
    span = member.seeking.span(UNSEEN)
    least, most = int(min(span)), int(max(span))
    index = search.index
    if not isinstance(index, CollectiveIndex) or not index.serves(least, most):
        search.index = CollectiveIndex.between(least, most, levels, oldest)


def _index(group: Asking, bundle: Bundle, newest: int) -> CollectiveIndex | ExtremeIndex:
    """The column's index, which knows the sub-windows before `newest`; one of counts, all of which
    it can know, is brought there when it is asked."""
    search = _search(group, bundle.search, bundle.column, bundle.call)
    if not counts(bundle.call):
        search.bring(bundle.column, bundle.call, newest, bundle.column.first_held)
    assert search.index is not None
    return search.index


def _search(group: Asking, search: Search, column: AggregateColumn, call: AggCall) -> Search:
    """The column's search, with an index for the thresholds of all members."""
    largest = UNSEEN
    if isinstance(search.index, CollectiveIndex):
        largest = max(UNSEEN, rounded_up(int(search.index.total.max(initial=0))))
    asked = [
        least
        for m in group.members
        if (t := threshold_of(m)) is not None
        and t.call == call
        and not m.seeking.alone
        and m.view is not None
        and m.view.single
        and m.view.column(call) is column
        for least in m.seeking.span(largest)
    ]
    first = column.first_held
    if extreme(call):
        bounds = ExtremeIndex.bounds_for(asked)
        if not isinstance(search.index, ExtremeIndex) or list(search.index.bounds) != list(bounds):
            search.index = ExtremeIndex(bounds, first)
        return search
    least, most = int(min(asked)), int(max(asked))
    if not isinstance(search.index, CollectiveIndex) or not search.index.serves(least, most):
        search.index = CollectiveIndex.between(least, most, P, first)
    return search


# ---------------------------------------------------------------- answers


def answers(
    group: Asking, due: Sequence[Due[Request]], found: Sequence[Bundle]
) -> Generator[None, None, dict[int, Cells]]:
    """The answer rows of the members of these bundles, by their places in `due`."""
    pieces: dict[Place, tuple[list[pa.Array], int]] = {}
    for bundle in found:
        asked = sorted(bundle.spans.items())
        for k, (span, places) in enumerate(asked):
            _answer(group, bundle, span, due, places, pieces)
            for column in {id(c): c for c in map(bundle.view.column, bundle.aggs)}.values():
                column.sums.ahead(column, *span, bundle.step)
            yield
            if k % SILENT == SILENT - 1 and _is_silent(bundle, span[0], due):
                assert bundle.nothing is not None
                rest = (place for _, places in asked[k + 1 :] for place in places)
                pieces.update(dict.fromkeys(rest, bundle.nothing))
                break
    out = {}
    for i in (i for b in found for i in b.places):
        member, at = due[i]
        parts = [pieces[i, j] for j in range(len(at))]
        counts = [n for _, n in parts]
        columns = zip(*(cols for cols, _ in parts), strict=True)
        cols = [c[0] if len(c) == 1 else pa.concat_arrays(c) for c in columns]
        spans = np.repeat(np.arange(len(at)), counts)
        out[i] = group.finished(member, member.loose or member.above, cols, spans, sum(counts))
        if member.kept is not None:
            member.kept = Answers()  # which would have to be told of each boundary
        yield
    return out


def _is_silent(bundle: Bundle, low: int, due: Sequence[Due[Request]]) -> bool:
    """Whether no group passes in sub-windows from `low` on, and so none at later boundaries."""
    if bundle.search.found or bundle.nothing is None or bundle.alone is not None:
        return False
    least = min(least_of(due[i][0]) for i in bundle.places)
    return bundle.search.ended(bundle.column, bundle.call, max(bundle.spans)[1], low, least)


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
    leasts = [least_of(due[i][0]) for i, _ in places]
    code, exact = _found(bundle, span, min(leasts))
    if not len(code) and bundle.nothing is not None:  # as at most boundaries of a silence
        pieces.update(dict.fromkeys(places, bundle.nothing))
        return
    code, value, found = _groups(bundle, span, min(leasts), code, exact)
    keys = group.feed.space.keys.gather(code)
    order = by_columns(keys, len(code))
    code, value, index = code[order], value[order], pa.array(order)
    held = {}
    if found is not None:
        held[id(bundle.column)] = bundle.column.algebra.take(found, order)
    cols = [c.take(index) for c in keys]
    cols += _aggregates(bundle, span, code, held)
    if bundle.alone is not None:  # all that was found
        pieces.update(dict.fromkeys(places, (cols, len(code))))
        return
    taken: dict[float, tuple[list[pa.Array], int]] = {}
    for place, least in zip(places, leasts, strict=True):
        if least not in taken:
            mine = passing(bundle.call, value, least)
            index = pa.array(mine)
            all_of = len(mine) == len(code)
            taken[least] = (cols if all_of else [c.take(index) for c in cols]), len(mine)
        pieces[place] = taken[least]
        if not len(code):
            bundle.nothing = taken[least]


def _aggregates(
    bundle: Bundle, span: tuple[int, int], code: np.ndarray, held: dict[int, State]
) -> Iterator[pa.Array]:
    """Those of these groups; NULL where nobody looks.  `held`: cells by their columns."""
    first = len(bundle.alone.request.keys) if bundle.alone is not None else 0
    for i, agg in enumerate(bundle.aggs):
        column = bundle.view.column(agg)
        if bundle.loose and bundle.alone is not None and not bundle.alone.looks_at(first + i):
            yield pa.nulls(len(code), agg.type.arrow)
            continue
        if id(column) not in held:
            held[id(column)] = _cells(column, span, code)
        yield bundle.view.lower(agg, held[id(column)])


def _cells(column: AggregateColumn, span: tuple[int, int], code: np.ndarray) -> State:
    """Those of these groups."""
    sums = column.sums.over(column, *span)
    if sums is not None:
        return column.algebra.take(sums, code)
    low, high = (np.array([number]) for number in span)
    return column.probe_some(low, high, code)


def _groups(
    bundle: Bundle, span: tuple[int, int], least: float, code: np.ndarray, exact: bool
) -> tuple[np.ndarray, np.ndarray, State | None]:
    """Those of them that pass, their values, and their cells (None where the index's word is
    taken); where numbers are too large for a word, all that may."""
    column, call = bundle.column, bundle.call
    if bundle.loose and not exact:
        return code, np.zeros(len(code), np.int64), None
    state = _cells(column, span, code)
    value = value_of(column, call, state)
    if value is None:
        if bundle.loose and bundle.alone is not None:  # all groups, and nobody looks at them again
            passed = _fulfilling(bundle, bundle.alone, state, len(code))
            code, state = code[passed], column.algebra.take(state, passed)
        return code, np.full(len(code), np.iinfo(np.int64).max), state
    if bundle.alone is not None and of_small(bundle.alone):
        passed = np.flatnonzero((value > 0) & (value < least))
    else:
        passed = passing(call, value, least)
    return code[passed], value[passed], column.algebra.take(state, passed)


def _fulfilling(bundle: Bundle, member: Member[Any], state: State, n: int) -> np.ndarray:
    """The places of the cells that fulfil the member's condition, as it says."""
    found, keys = threshold_of(member), len(member.request.keys)
    assert found is not None and found.condition is not None
    cols: list[pa.Array] = [pa.nulls(n)] * (keys + len(bundle.aggs))
    for i, agg in enumerate(bundle.aggs):
        if agg == found.call:
            cols[keys + i] = bundle.view.lower(agg, state)
    holds = compile_predicate(found.condition)(cols, n, member.above.errors)
    return np.flatnonzero(pc.fill_null(holds, False))


def _found(bundle: Bundle, span: tuple[int, int], least: float) -> tuple[np.ndarray, bool]:
    """Groups, all among them that pass in these sub-windows, and whether they are all there are."""
    code, exact = _candidates(bundle, span, least)
    code = code[: np.searchsorted(code, bundle.column.synopsis.groups)]
    bundle.search.told(len(code))
    return code, exact


def _candidates(bundle: Bundle, span: tuple[int, int], least: float) -> tuple[np.ndarray, bool]:
    """`_found`, by what the index knows of groups."""
    search, column = bundle.search, bundle.column
    index = search.index
    assert index is not None
    if isinstance(index, ExtremeIndex):
        return index.above(span[0], least), False
    if bundle.alone is None:
        if counts(bundle.call):
            if (sums := column.sums.over(column, *span)) is not None:
                return np.flatnonzero(sums.words[:, 0] > least), False
            if index.next < span[1]:  # up to the last boundary at once
                search.bring(column, bundle.call, max(bundle.spans)[1], column.first_held)
        return index.above(span[0], int(least)), False
    search.bring(column, bundle.call, span[1], span[0])
    if index.next != span[1] or not index.exact_from(span[0]):
        return np.arange(column.synopsis.groups), True
    if of_small(bundle.alone):
        return index.below(span[0], int(least)), False
    return index.above(span[0], int(least)), False
