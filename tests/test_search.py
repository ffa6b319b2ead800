"""What finds few of a column's groups is brought up to date over long silences."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from dsms.sharing.columns import ROWS
from dsms.sharing.search import Peaks, Search
from dsms.sql.expr import AggCall
from dsms.synopses.basic import Basic
from dsms.synopses.collective import CollectiveIndex
from dsms.synopses.interval import Interval
from dsms.synopses.running import Running
from tests.effort import thinned
from tests.test_window_sums import SUM, Column

FIRST, LONG = 5, 1500


def filled(kind: Any, call: AggCall, search: Search, peaks: Peaks) -> Column:
    """A column of which both know each sub-window as it ends; rows come to few."""
    rng, column = Random(3), Column(call, FIRST)
    column.synopsis = kind(column.algebra, column.groups)
    for number in range(LONG):
        some = [(rng.randint(0, 4), rng.randint(1, 9)) for _ in range(3)]
        column.push(some if rng.random() < 0.005 or number == 700 else [])
        search.bring(column, call, FIRST + number + 1, FIRST)
        peaks.bring(column, FIRST + number + 1)
    return column


@thinned()
@pytest.mark.parametrize("call", [ROWS, SUM], ids=["count", "sum"])
@pytest.mark.parametrize("kind", [Basic, Interval, Running])
def test_sub_windows_of_a_silence_are_passed_over(kind: Any, call: AggCall) -> None:
    often, once = (Search(CollectiveIndex.between(0, 99, 2, FIRST)) for _ in range(2))
    peaks, known = Peaks(), Peaks()
    column = filled(kind, call, often, peaks)
    read, cells_of = list[int](), column.synopsis.cells_of
    column.synopsis.cells_of = lambda number: (read.append(number), cells_of(number))[1]
    once.bring(column, call, FIRST + LONG + 9, FIRST)
    known.bring(column, FIRST + LONG)
    assert len(read) < LONG or kind is Basic  # of both
    if call is SUM:
        assert (known.first, known.peaks) == (peaks.first, peaks.peaks) and max(peaks.peaks) > 0
    assert isinstance(often.index, CollectiveIndex) and isinstance(once.index, CollectiveIndex)
    assert (once.index.next, once.came) == (often.index.next, often.came)
    for low in range(FIRST, FIRST + LONG, 25):
        for least in (0, 1, 3, 20):
            assert np.array_equal(often.index.above(low, least), once.index.above(low, least))
    assert not once.ended(column, call, FIRST + LONG, FIRST, 0)
    assert once.ended(column, call, FIRST + LONG, FIRST + LONG - 1, 0) == (once.came == 0)
