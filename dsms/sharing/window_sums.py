"""The sums of windows that slide, of all groups: changed where rows came and where rows went.

Use      where few of many groups occur in a sub-window, so that a window has many cells (basic
         intervals), and windows that are asked for at boundary after boundary.
State    a cell for each group.
Cost     a cell for each group that occurs in the sub-windows that come and in those that go, where
         a probe reads those of the whole window.
Error    none: what is subtracted was added before, exactly.

After an answer those sub-windows go that the next one won't have: then they may not be held.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dsms.aggregates.parts.additive import Additive, Numbers
from dsms.aggregates.parts.cells import Algebra, State
from dsms.synopses.cells import Synopsis

SHARE = 4  # of the sub-windows of a window: so few may come and go
WIDTHS = 4  # windows of a column that have sums


class Slid(Protocol):
    """A column of a feed."""

    base: int

    @property
    def algebra(self) -> Algebra: ...

    @property
    def synopsis(self) -> Synopsis: ...

    def probe_some(self, low: np.ndarray, high: np.ndarray, group: np.ndarray) -> State:
        """Cells of these groups over sub-windows low <= k < high."""
        ...


@dataclass(slots=True)
class Window:
    """The union of the sub-windows low <= k < high.

    asked  the end of the window at the last answer
    held   the synopsis that it was made of;  sums: None before they are worth it"""

    low: int
    high: int
    asked: int
    held: Synopsis
    sums: Numbers | None = None

    def far(self, low: int, high: int) -> int:
        """Sub-windows that come or go until it is that one."""
        return abs(low - self.low) + abs(high - self.high)

    def moved(self, column: Slid, low: int, high: int) -> bool:
        """Whether it is now the union of low <= k < high, of which the column holds all."""
        if self.sums is None or self.held is not column.synopsis:
            return False
        if self.low < column.base + self.held.first:
            return False
        self._grow(column)
        self._put(column, self.high, high, 1)
        self._put(column, high, self.high, -1)
        self._put(column, low, self.low, 1)
        self._put(column, self.low, low, -1)
        self.low, self.high = low, high
        return True

    def _grow(self, column: Slid) -> None:
        assert self.sums is not None
        more = column.synopsis.groups - len(self.sums.words)
        if more > 0:
            self.sums = column.algebra.concat([self.sums, column.algebra.empty(more)])

    def _put(self, column: Slid, start: int, stop: int, sign: int) -> None:
        how = column.algebra
        assert isinstance(how, Additive) and self.sums is not None
        for number in range(start, stop):
            group, cells = column.synopsis.cells_of(number - column.base)
            self.sums = how.shifted(self.sums, group, cells, sign)


@dataclass(slots=True)
class WindowSums:
    """Of a column.  windows: by their widths in sub-windows."""

    windows: dict[int, Window] = field(default_factory=dict)

    def over(self, column: Slid, low: int, high: int) -> Numbers | None:
        """The cells of all groups over low <= k < high, clipped to what is held; to be read before
        the next call.  None where they are not kept."""
        width = high - low
        if not isinstance(column.algebra, Additive) or column.synopsis.cost(width) < 2 * SHARE:
            return None
        first, end = column.base + column.synopsis.first, column.base + column.synopsis.next
        low, high = max(low, first), min(high, end)
        window = self.windows.get(width)
        if window is None:
            window = self._another(column, width, low, high)
        elif SHARE * window.far(low, high) > width or not window.moved(column, low, high):
            self._begin(column, width, window, low, high)
        if window is not None:
            window.asked = high
        return None if window is None else window.sums

    def _another(self, column: Slid, width: int, low: int, high: int) -> Window | None:
        """One that may have sums from its next answer on, if there is room."""
        self.windows = {w: o for w, o in self.windows.items() if high - o.asked <= w}
        if len(self.windows) == WIDTHS or low >= high:
            return None
        self.windows[width] = found = Window(low, high, high, column.synopsis)
        return found

    def _begin(self, column: Slid, width: int, window: Window, low: int, high: int) -> None:
        """Make its sums of what is held, if it slides in small steps."""
        window.sums = None
        if 0 < SHARE * abs(high - window.asked) <= width and low < high:
            every = np.arange(column.synopsis.groups)
            window.sums = column.probe_some(np.array([low]), np.array([high]), every)
            window.held, window.low, window.high = column.synopsis, low, high

    def ahead(self, column: Slid, low: int, high: int, step: int) -> None:
        """The next answer over such a window will begin so many sub-windows later."""
        window = self.windows.get(high - low)
        if window is not None and window.sums is not None and window.high >= low + step:
            window.moved(column, max(window.low, low + step), window.high)

    @property
    def nbytes(self) -> int:
        return sum(w.sums.words.nbytes for w in self.windows.values() if w.sums is not None)
