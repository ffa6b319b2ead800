"""R-INT: running intervals, the aggregate of everything from the beginning up to each sub-window
(Arasu and Widom 2004, §3.2): an answer is the difference of two.

Use      subtractable aggregates whose cells have a constant size; any number of widths, each for
         the same price.
State    one cell a sub-window and group.     Cost  O(1) a sub-window and an answer, for each group.
Error    none: sums are exact, so what was long ago leaves nothing behind.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dsms.aggregates.parts.cells import Algebra, State
from dsms.aggregates.parts.fold import EMPTY, folds
from dsms.synopses.cells import SynopsisKind, all_cells
from dsms.synopses.tape import Queue, Tape


class Running:
    """The prefix before sub-window k is a run of cells, at where[k - first], of the groups that
    there were then."""

    kind: ClassVar[SynopsisKind] = "running"

    def __init__(self, algebra: Algebra, groups: int = 1) -> None:
        self.algebra = folds(algebra)
        self.groups = groups
        self.first = self.next = 0
        self.tape = Tape(self.algebra)
        # address of the prefix before sub-window first + i
        self.where = Queue(np.zeros(1, np.int64))
        self.width = Queue(np.full(1, groups, np.int64))  # its cells
        self.tape.append(self.algebra.empty(groups), np.arange(groups))

    def grow(self, groups: int) -> None:
        self.groups = groups

    def append(self, state: State, count: int) -> None:
        if not count:
            return
        groups = self.groups
        whole = self._prefix(np.array([self.next]))
        states = self.algebra.concat([whole, state])
        prev = np.arange((count + 1) * groups) - groups
        prev[:groups] = EMPTY
        sums = self.algebra.chain(states, prev, True)
        new = self.algebra.take(sums, np.arange(groups, (count + 1) * groups))
        at = self.tape.append(new, np.tile(np.arange(groups), count))
        self.where.append(at + groups * np.arange(count))
        self.width.append(np.full(count, groups))
        self.next += count

    def trim(self, first: int) -> None:
        first = min(first, self.next)
        if first > self.first:
            self.where.drop(first - self.first)
            self.width.drop(first - self.first)
            self.first = first
            self.tape.drop(int(self.where.view[0]))

    def _prefix(self, before: np.ndarray, some: np.ndarray | None = None) -> State:
        """The prefixes before those sub-windows: groups cells each, or of `some` groups."""
        group = np.arange(self.groups) if some is None else some
        where, width = self.where.view[before - self.first], self.width.view[before - self.first]
        address = where[:, None] + group
        if int(width.min(initial=self.groups)) < self.groups:
            address = np.where(group < width[:, None], address, EMPTY)
        return self.tape.take(address.ravel())

    def probe(self, low: np.ndarray, high: np.ndarray) -> State:
        low = np.clip(low, self.first, self.next)
        high = np.maximum(low, np.clip(high, self.first, self.next))
        return self.algebra.subtract(self._prefix(high), self._prefix(low))

    def probe_some(self, low: np.ndarray, high: np.ndarray, group: np.ndarray) -> State:
        low = np.clip(low, self.first, self.next)
        high = np.maximum(low, np.clip(high, self.first, self.next))
        return self.algebra.subtract(self._prefix(high, group), self._prefix(low, group))

    def cells_of(self, number: int) -> tuple[np.ndarray, State]:
        return all_cells(self, number)

    def cost(self, width: int) -> float:
        return 2.0

    @property
    def nbytes(self) -> int:
        return self.tape.nbytes + self.where.nbytes + self.width.nbytes
