"""Which synopsis a column has, as queries come and go (Golab 2006, §8.3.1): chosen anew when the number of those that
read it together has changed by a quarter, or a window is longer, and moved sub-window by sub-window."""

from __future__ import annotations

import numpy as np

from dsms.sharing.feed import CELLS, Column, Feed
from dsms.synopses.basic import Basic
from dsms.synopses.cells import Synopsis
from dsms.synopses.choose import choose
from dsms.synopses.landmark import Landmark

CHANGED = 1.25
BACK = 2  # times more queries that would have to keep the basic intervals, for them to be given up


def read(column: Column, feed: Feed, width: int, reach: int, more: int = 1) -> None:
    """One more (or less) query reads windows of `width` sub-windows that reach back `reach` of them."""
    key = width, reach
    column.widths[key] = column.widths.get(key, 0) + more
    if not column.widths[key]:
        del column.widths[key]
    if not column.widths:
        return
    if more > 0 and isinstance(column.synopsis, Landmark):
        column.synopsis.expect([width])
    together, (known, longest) = sum(column.widths.values()), column.chosen_for
    if reach > longest or not known / CHANGED < together < known * CHANGED:
        column.chosen_for = together, max(r for _, r in column.widths)
        _choose(column, feed, together)


def _choose(column: Column, feed: Feed, together: int) -> None:
    widths, longest = sorted({w for w, _ in column.widths}), max(r for _, r in column.widths)
    groups = feed.space.groups
    made, why = choose(column.algebra, widths, groups, longest, together)
    if isinstance(column.synopsis, Basic) and not isinstance(made, Basic):
        made, why = choose(column.algebra, widths, groups, longest, BACK * together)
    if type(made) is not type(column.synopsis):
        move(column, made)
        column.why = why


def move(column: Column, synopsis: Synopsis) -> None:
    """The column's sub-windows in another synopsis."""
    old, groups = column.synopsis, column.synopsis.groups
    synopsis.grow(groups)
    most = max(1, CELLS // groups)
    for start in range(old.first, old.next, most):
        low = np.arange(start, min(start + most, old.next))
        synopsis.append(old.probe(low, low + 1), len(low))
    column.whole_from = column.reach
    column.base, column.synopsis = column.base + old.first, synopsis
