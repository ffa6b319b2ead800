"""What a column knows besides its synopsis, for queries that look for few of its groups: a
collective index, what it has cost, and how large sums can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dsms.aggregates.parts.additive import whole_numbers
from dsms.aggregates.parts.cells import State
from dsms.synopses.cells import Synopsis
from dsms.synopses.collective import CollectiveIndex

# nanoseconds, about, on the machine where the benchmark `collective` was run first
EACH = 130.0  # a group that is looked at for an answer
STEP = 8.0  # a level of a group that occurs in a sub-window
COMPARED = 0.4  # a group's stamp
PROBED = 150.0  # a group that is found
ANSWER = 60_000.0  # an answer, whatever is in it
RESTS = 15  # evaluations before an index that did not pay is tried again
MOST = 2**63


class Indexed(Protocol):
    """A column of a feed."""

    synopsis: Synopsis
    base: int


def over(column: Indexed, start: int, stop: int) -> Iterator[tuple[int, np.ndarray, State]]:
    """The sub-windows from `start` to `stop` that are held, with groups and their cells."""
    held = column.synopsis
    for number in range(max(start - column.base, held.first), min(stop - column.base, held.next)):
        yield column.base + number, *held.cells_of(number)


@dataclass(slots=True)
class Search:
    """index  None before it is asked;  found: groups that it found last
    came   groups that occurred in sub-windows since it was asked before
    rests  so many times it is not asked"""

    index: CollectiveIndex | None = None
    found: int = 0
    came: int = 0
    rests: int = 0

    def bring(self, column: Indexed, summed: bool, upto: int) -> None:
        """Take in the sub-windows before `upto`."""
        index = self.index
        assert index is not None
        self.came = 0
        index.grow(column.synopsis.groups)
        for number, group, state in over(column, index.next, upto):
            amount = whole_numbers(state, summed)
            if amount is None:
                index.spoil(number)
                continue
            index.update(number, column.base + column.synopsis.first, group, amount)
            self.came += int(np.count_nonzero(amount))

    def told(self, found: int) -> None:
        """So many groups were found."""
        self.found = found

    def pays(self, groups: int, windows: int, answers: int) -> bool:
        """Whether it costs less than to look at all groups, for so many answers over so many
        windows, as far as is known from the last time."""
        if self.rests:
            self.rests -= 1
            return False
        levels = 8 if self.index is None else self.index.levels
        cost = self.came * levels * STEP + windows * (groups * COMPARED + self.found * PROBED)
        if cost + answers * ANSWER < answers * groups * EACH:
            return True
        self.rests = RESTS if self.index is not None else 0
        self.came = self.found = 0
        return False

    @property
    def nbytes(self) -> int:
        return 0 if self.index is None else self.index.nbytes


@dataclass(slots=True)
class Peaks:
    """The largest number of each sub-window, whatever its sign: no sum over several is larger than
    all of these together.  first: the sub-window of peaks[0]."""

    first: int = 0
    peaks: list[int] = field(default_factory=list)

    def bring(self, column: Indexed, upto: int) -> None:
        """Take in the sub-windows before `upto`."""
        oldest = column.base + column.synopsis.first
        if oldest > self.first + len(self.peaks):
            self.first, self.peaks = oldest, []
        elif oldest > self.first:
            self.peaks, self.first = self.peaks[oldest - self.first :], oldest
        for _, _, state in over(column, self.first + len(self.peaks), upto):
            numbers = whole_numbers(state, True)
            self.peaks.append(MOST if numbers is None else int(np.abs(numbers).max(initial=0)))

    def fit(self, low: int) -> bool:
        """Whether no sum over sub-windows from `low` on leaves 64 bits."""
        return sum(self.peaks[max(0, low - self.first) :]) < MOST
