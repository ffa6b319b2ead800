"""Which synopsis serves queries over the same sub-windows (Golab 2006, §8.3.1 and §8.4.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dsms.aggregates.parts.cells import Algebra
from dsms.aggregates.parts.fold import folds
from dsms.aggregates.ranks import RankCells
from dsms.synopses.basic import Basic
from dsms.synopses.cells import Synopsis
from dsms.synopses.interval import Interval
from dsms.synopses.landmark import Landmark, clusters
from dsms.synopses.running import Running

# cells of groups times sub-windows up to which every group gets one in every sub-window
DENSE = 1 << 22
MANY = 1 << 14  # groups, of which a sub-window is likely to see few
FEW = 4  # sub-windows that are combined as fast as anything cleverer
GAMMAS = 2  # clusters of widths for which landmarks pay
CLUSTERED = 4  # queries a cluster


def choose(
    algebra: Algebra, widths: Sequence[int], groups: int, b: int, together: int
) -> tuple[Synopsis, str]:
    """(an empty synopsis, why it was chosen).

    widths    of the windows known now, in sub-windows;  b: sub-windows that the longest reaches
              back
    groups    known now;  together: queries that are expected to be answered at once
    """
    constant, b, groups = folds(algebra).constant, max(1, b), max(1, groups)
    if groups > MANY or groups * b > DENSE:
        return Basic(
            algebra, groups
        ), f"basic intervals: of {groups} groups only those that occur take space"
    if algebra.subtractable and constant:
        return Running(
            algebra, groups
        ), "a running synopsis: the aggregate is subtractable, so a span costs two cells"
    if isinstance(algebra, RankCells):
        return Interval(
            algebra, groups
        ), "base intervals of sorted arrays, in which quantiles are selected"
    if b <= FEW:
        return Basic(algebra, groups), f"basic intervals: no window is longer than {b} sub-windows"
    least = b / math.log2(b)
    if together >= least:
        why = (
            f"{together} queries together, at least b / log2 b = {least:.1f}, take one scan of "
            f"b = {b} sub-windows"
        )
        return Basic(algebra, groups), f"basic intervals: {why}"
    gammas = clusters(widths)
    if constant and len(gammas) <= GAMMAS and len(set(widths)) >= CLUSTERED * len(gammas) > 0:
        spans = " and ".join(f"{low} to {high}" for low, high in gammas)
        return Landmark(
            algebra, widths, groups
        ), f"landmark intervals: widths cluster at {spans} sub-windows"
    few = f"{together} queries together are fewer than b / log2 b = {least:.1f} (b = {b})"
    return Interval(
        algebra, groups
    ), f"base intervals: {few}, so each combines at most {2 * b.bit_length()} of them"
