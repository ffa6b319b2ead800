"""Which synopsis a column has, as queries come and go (Golab 2006, §8.3.1): chosen anew when the
number of those that read it together has changed by a quarter, or a window is longer, and moved
sub-window by sub-window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dsms.aggregates.parts.cells import Algebra
from dsms.sharing.column import AggregateColumn
from dsms.sharing.feed import CELLS, Feed
from dsms.synopses.basic import Basic
from dsms.synopses.cells import Synopsis, appending
from dsms.synopses.choose import MANY, choose
from dsms.synopses.landmark import Landmark

CHANGED = 1.25
BACK = 2  # times more queries that would have to keep the basic intervals, for them to be given up


Widths = Mapping[tuple[int, int], int]


def reading(
    column: AggregateColumn, feed: Feed, width: int, reach: int, more: int = 1
) -> Iterator[None]:
    """One more (or less) query reads windows of `width` sub-windows that reach back `reach` of
    them.  Piece by piece; nobody may see the column before the last."""
    column.widths = _with(column.widths, width, reach, more)
    if not column.widths:
        return
    if more > 0 and isinstance(column.synopsis, Landmark):
        column.synopsis.expect([width])
    if _outgrown(column, column.widths):
        column.chosen_for = _asked(column.widths)
        made, why = _chosen(column, feed.space.groups, column.widths)
        if type(made) is not type(column.synopsis):
            yield from moving(column, made)
            column.why = why


def outgrown(column: AggregateColumn, feed: Feed) -> Iterator[None]:
    """The column moves where groups have become so many that few occur in a sub-window.  Piece by
    piece; nobody may see the column before the last."""
    if isinstance(column.synopsis, Basic) or feed.space.groups <= MANY or not column.widths:
        return
    made, why = _chosen(column, feed.space.groups, column.widths)
    if isinstance(made, Basic):
        yield from moving(column, made)
        column.why = why


def foreseen(
    how: Algebra, column: AggregateColumn | None, groups: int, width: int, reach: int
) -> Synopsis:
    """The kind of synopsis that a column (None: a new one) has once one more query reads it."""
    if column is None:
        return choose(how, [width], groups, reach, 1)[0]
    widths = _with(column.widths, width, reach)
    return _chosen(column, groups, widths)[0] if _outgrown(column, widths) else column.synopsis


def _with(widths: Widths, width: int, reach: int, more: int = 1) -> dict[tuple[int, int], int]:
    counts = {**widths, (width, reach): widths.get((width, reach), 0) + more}
    return {key: count for key, count in counts.items() if count}


def _asked(widths: Widths) -> tuple[int, int]:
    """So many queries, and how far back the longest window reaches."""
    return sum(widths.values()), max(reach for _, reach in widths)


def _outgrown(column: AggregateColumn, widths: Widths) -> bool:
    (together, longest), (known, reached) = _asked(widths), column.chosen_for
    return longest > reached or not known / CHANGED < together < known * CHANGED


def _chosen(column: AggregateColumn, groups: int, widths: Widths) -> tuple[Synopsis, str]:
    (together, longest), spans = _asked(widths), sorted({width for width, _ in widths})
    found = choose(column.algebra, spans, groups, longest, together)
    if isinstance(column.synopsis, Basic) and not isinstance(found[0], Basic):
        found = choose(column.algebra, spans, groups, longest, BACK * together)
    return found


def moving(column: AggregateColumn, synopsis: Synopsis) -> Iterator[None]:
    """The column's sub-windows come into another synopsis."""
    old, groups = column.synopsis, column.synopsis.groups
    synopsis.grow(groups)
    most = max(1, CELLS // max(1, groups))
    for start in range(old.first, old.next, most):
        low = np.arange(start, min(start + most, old.next))
        yield from appending(synopsis, old.probe(low, low + 1), len(low))
        yield
    column.whole_from = column.first_complete
    column.base, column.synopsis = column.base + old.first, synopsis
