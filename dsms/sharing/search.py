"""What a column knows besides its synopsis, for queries that look for few of its groups: a
collective index, what it has cost, and how large sums can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from dsms.aggregates.parts.additive import whole_numbers
from dsms.aggregates.parts.cells import State
from dsms.sharing.threshold import extreme, sums
from dsms.sql.expr import AggCall
from dsms.state.columns import numpy_valid, numpy_values
from dsms.synopses.cells import Synopsis
from dsms.synopses.collective import CollectiveIndex
from dsms.synopses.extreme_index import ExtremeIndex

# nanoseconds, about, on the machine where the benchmark `collective` was run first
EACH = 70.0  # a group that is looked at for an answer
STEP = 8.0  # a level of a group that occurs in a sub-window
COMPARED = 0.4  # a group's stamp
PROBED = 150.0  # a group that is found
ANSWER = 60_000.0  # an answer, whatever is in it
STRETCH = 64  # sub-windows that are looked at together, where there are many
CELLS = 1 << 14  # cells that are looked at together, about
RESTS = 15  # evaluations before an index that did not pay is tried again
MOST = 2**63


class Indexed(Protocol):
    """A column of a feed."""

    synopsis: Synopsis
    base: int

    def lower(self, call: AggCall, state: State) -> pa.Array:
        """The answers of an aggregate that these cells hold the data of."""
        ...


def over(column: Indexed, start: int, stop: int) -> Iterator[tuple[int, np.ndarray, State]]:
    """The sub-windows from `start` to `stop` that are held, with groups and their cells; perhaps
    without some to which nothing came."""
    held = column.synopsis
    for first, end in _stretches(held, start - column.base, stop - column.base):
        for number in range(first, end):
            yield column.base + number, *held.cells_of(number)


def _stretches(held: Synopsis, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Of what is held between these, if it is much, only stretches to which something came."""
    start, stop = max(start, held.first), min(stop, held.next)
    if not held.groups or stop - start < 2 * STRETCH or held.cost(STRETCH) > STRETCH / 4:
        yield start, stop
        return
    some = max(1, CELLS // held.groups)
    begin = np.arange(start, stop, STRETCH)
    end = np.minimum(begin + STRETCH, stop)
    for k in range(0, len(begin), some):
        cells = held.probe(begin[k : k + some], end[k : k + some])
        there = held.algebra.present(cells).reshape(-1, held.groups).any(axis=1)
        yield from ((int(begin[k + i]), int(end[k + i])) for i in np.flatnonzero(there).tolist())


def value_of(column: Indexed, call: AggCall, state: State) -> np.ndarray | None:
    """What the index of `call` is over, of each cell: int64 counts and sums (None: too large), or
    float64 values, -inf where there is none, with their signs changed for MIN."""
    if not extreme(call):
        return whole_numbers(state, sums(call))
    lowered = column.lower(call, state)
    if pa.types.is_decimal(lowered.type):
        lowered = lowered.cast(pa.float64())
    value = numpy_values(lowered).astype(np.float64)
    value = value if call.fn == "max" else -value
    value[np.isnan(value)] = np.inf if call.fn == "max" else -np.inf
    there = numpy_valid(lowered)
    if there is not None:
        value[~there] = -np.inf
    return value


def passing(call: AggCall, value: np.ndarray, least: float) -> np.ndarray:
    """The places of the cells that reach the threshold."""
    return np.flatnonzero(value >= least if extreme(call) else value > least)


@dataclass(slots=True)
class Search:
    """index  None before it is asked;  found: groups that it found last
    came   groups that occurred in the last sub-window
    rests  so many times it is not asked"""

    index: CollectiveIndex | ExtremeIndex | None = None
    found: int = 0
    came: int = 0
    rests: int = 0

    def bring(self, column: Indexed, call: AggCall, upto: int, oldest: int) -> None:
        """Take in the sub-windows before `upto`; none before `oldest` will be asked for."""
        index = self.index
        assert index is not None
        index.grow(column.synopsis.groups)
        first, end = column.base + column.synopsis.first, column.base + column.synopsis.next
        end = min(upto, end)
        if end <= max(first, index.next):
            return
        self.came = 0
        for number, group, state in over(column, index.next, end):
            value = value_of(column, call, state)
            if value is None:
                assert isinstance(index, CollectiveIndex)
                index.spoil(number)
                continue
            there = np.flatnonzero(value > -np.inf if extreme(call) else value)
            group, value = group[there], value[there]
            self.came = len(group) * (number == end - 1)
            if isinstance(index, ExtremeIndex):
                index.update(number, group, value)
            else:
                index.update(number, oldest, group, value)
        index.next = end

    def ended(self, column: Indexed, call: AggCall, upto: int, low: int, least: float) -> bool:
        """Whether no group is found in sub-windows from `low` on; those before `upto` are there."""
        self.bring(column, call, upto, column.base + column.synopsis.first)
        if isinstance(self.index, ExtremeIndex):
            return not len(self.index.above(low, least))
        assert self.index is not None
        return self.index.exact_from(low) and not len(self.index.above(low, int(least)))

    def told(self, found: int) -> None:
        """So many groups were found."""
        self.found = found

    def pays(self, groups: int, windows: int, answers: int, subs: int) -> bool:
        """Whether it costs less than to look at all groups, for so many answers over so many
        windows, after so many sub-windows, as far as is known from the last time."""
        if self.rests:
            self.rests -= 1
            return False
        levels = 8 if self.index is None else self.index.levels
        cost = self.came * subs * levels * STEP + windows * (
            groups * COMPARED + self.found * PROBED
        )
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
        for number, _, state in over(column, self.first + len(self.peaks), upto):
            self._know(number)
            numbers = whole_numbers(state, True)
            self.peaks.append(MOST if numbers is None else int(np.abs(numbers).max(initial=0)))
        self._know(min(upto, column.base + column.synopsis.next))

    def _know(self, upto: int) -> None:
        """Nothing came to the sub-windows before `upto` that are not known."""
        self.peaks += [0] * (upto - self.first - len(self.peaks))

    def fit(self, low: int) -> bool:
        """Whether no sum over sub-windows from `low` on leaves 64 bits."""
        return sum(self.peaks[max(0, low - self.first) :]) < MOST
