"""A tape: cells written one behind the other, each with the group it belongs to; old ones go, new
ones come.

An address is the number of a cell since the beginning and stays what it is while other cells go.
Amortised O(1) a cell; at most four times the room that is needed.
"""

from __future__ import annotations

import numpy as np

from dsms.aggregates.parts.cells import State
from dsms.aggregates.parts.fold import EMPTY, Folds

LEAST = 64  # cells of room


class Queue:
    """int64 numbers that come at the end and go in front: `view` is what there is.  Amortised O(1)
    a number."""

    def __init__(self, values: np.ndarray | None = None) -> None:
        self.data = np.zeros(0, np.int64) if values is None else values
        self.start, self.stop = 0, len(self.data)

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def view(self) -> np.ndarray:
        return self.data[self.start : self.stop]

    def append(self, values: np.ndarray) -> None:
        """More at the end."""
        if self.stop + len(values) > len(self.data):
            old = self.view
            self.data = np.zeros(max(LEAST, 2 * (len(old) + len(values))), np.int64)
            self.data[: len(old)] = old
            self.start, self.stop = 0, len(old)
        self.data[self.stop : self.stop + len(values)] = values
        self.stop += len(values)

    def drop(self, count: int) -> None:
        """The first `count` go."""
        self.start += min(count, len(self))

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)


class Tape:
    """Cells of an algebra by address."""

    def __init__(self, algebra: Folds) -> None:
        self.algebra = algebra
        self._begin()

    def _begin(self) -> None:
        self.state = self.algebra.empty(LEAST)
        self.group = np.zeros(LEAST, np.int64)
        self.origin = 0  # the address of the first cell of room
        self.dead = 0  # cells in front that are not needed
        self.used = 0

    @property
    def end(self) -> int:
        """The address that the next cell will get."""
        return self.origin + self.used

    def keep(self, state: State, groups: int, count: int) -> np.ndarray:
        """Write `count` * `groups` cells, those of a sub-window after those of the one before it,
        without cells that are empty if these are many; int64[count + 1], the addresses where each
        sub-window begins and the last ends."""
        there = self.algebra.present(state)
        if 4 * int(np.count_nonzero(there)) >= 3 * len(there):
            at = self.append(state, np.tile(np.arange(groups), count))
            return at + groups * np.arange(count + 1)
        index = np.flatnonzero(there)
        at = self.append(self.algebra.take(state, index), index % groups)
        return at + np.searchsorted(index, groups * np.arange(count + 1))

    def append(self, state: State, group: np.ndarray) -> int:
        """Write cells; the address of the first."""
        state, n, at = self.algebra.settled(state), len(group), self.end
        if self.used + n > len(self.group):
            self._make_room(n)
        self.state = self.algebra.write(self.state, self.used, state)
        self.group[self.used : self.used + n] = group
        self.used += n
        return at

    def _make_room(self, extra: int) -> None:
        live = self.used - self.dead
        room = max(LEAST, 2 * (live + extra))
        kept = self.algebra.take(self.state, np.arange(self.dead, self.used))
        group = self.group[self.dead : self.used]
        self.state = self.algebra.write(self.algebra.empty(room), 0, kept)
        self.group = np.zeros(room, np.int64)
        self.group[:live] = group
        self.origin, self.used, self.dead = self.origin + self.dead, live, 0

    def drop(self, address: int) -> None:
        """Cells before the address are not needed any more."""
        self.dead = min(self.used, max(self.dead, address - self.origin))

    def merge(self, low: np.ndarray, high: np.ndarray, base: np.ndarray, cells: int) -> State:
        """`Folds.merge` of runs of addresses."""
        return self.algebra.merge(
            self.state, self.group, low - self.origin, high - self.origin, base, cells
        )

    def take(self, address: np.ndarray) -> State:
        """The cells at those addresses; -1: empty ones."""
        return self.algebra.take(self.state, np.where(address < 0, EMPTY, address - self.origin))

    @property
    def nbytes(self) -> int:
        return int(self.algebra.nbytes(self.state) + self.group.nbytes)
