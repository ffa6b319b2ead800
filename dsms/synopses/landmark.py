"""L-INT: intervals that begin or end at landmarks (Arasu and Widom 2004, §3.1.2), for windows of
widths known before.

Use      widths that cluster: those within a factor of two of each other share landmarks, as far
         apart as the shortest of them is wide (a gamma group).  A span of such a width contains a
         landmark: what lies before it ends there, what lies behind begins there.  Spans of other
         widths are put together from sub-windows, until `expect` is given them; the sub-windows
         still held count from then on.
State    a cell for each group of a sub-window, and up to three more for each gamma group, empty or
         not: not for groups that are many and rarely there.
Cost     O(1) amortised a sub-window and gamma group; two cells a span, for each group.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from dsms.aggregates.parts.cells import Algebra, State
from dsms.aggregates.parts.fold import EMPTY, folds
from dsms.synopses.basic import Basic
from dsms.synopses.cells import SynopsisKind, all_cells, some_cells
from dsms.synopses.tape import Queue, Tape

FACTOR = 2


def clusters(widths: Iterable[int]) -> list[tuple[int, int]]:
    """The (shortest, longest) of each gamma group."""
    out: list[tuple[int, int]] = []
    for width in sorted({w for w in widths if w > 0}):
        if out and width <= FACTOR * out[-1][0]:
            out[-1] = (out[-1][0], width)
        else:
            out.append((width, width))
    return out


class Runs:
    """Runs of equally many cells on a tape, by number: run first + i begins at where[i] and has
    rows of width[i]."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.first = 0
        self.where, self.width = Queue(), Queue()

    @property
    def next(self) -> int:
        return self.first + len(self.where)

    def add(self, where: np.ndarray, width: int) -> None:
        """The next ones."""
        self.where.append(where)
        self.width.append(np.full(len(where), width))

    def trim(self, first: int) -> int:
        """Those before `first` go; how many these are."""
        gone = max(0, min(first - self.first, len(self.where)))
        self.where.drop(gone)
        self.width.drop(gone)
        self.first = self.first + gone if len(self.where) else max(first, self.first)
        self.tape.drop(int(self.where.view[0]) if len(self.where) else self.tape.end)
        return gone

    def take(self, number: np.ndarray, row: np.ndarray, groups: int) -> State:
        """Rows of runs, `groups` cells each; a number before all: empty ones."""
        if not len(self.where):
            return self.tape.take(np.full(len(number) * groups, EMPTY))
        held = number >= self.first
        place = np.where(held, number - self.first, 0)
        width = self.width.view[place]
        address = (self.where.view[place] + row * width)[:, None] + np.arange(groups)
        there = held[:, None] & (np.arange(groups) < width[:, None])
        return self.tape.take(np.where(there, address, EMPTY).ravel())

    @property
    def nbytes(self) -> int:
        return self.tape.nbytes + self.where.nbytes + self.width.nbytes


class Gamma:
    """Widths from `shortest` to `longest`; landmarks are multiples of `shortest`.

    behind  run k: what lies from the last landmark up to and with sub-window k
    before  run a, for the landmark a * shortest: row j is what lies in the j + 1 sub-windows before
            it
    depth   rows of each such run
    """

    def __init__(self, owner: Basic, shortest: int, longest: int) -> None:
        self.owner = owner
        self.shortest, self.longest = shortest, longest
        self.behind, self.before = Runs(Tape(owner.algebra)), Runs(Tape(owner.algebra))
        self.depth = Queue()
        self.behind.first = owner.first
        self.before.first = owner.first // shortest + 1

    def take_in(self) -> None:
        """What the owner has and this has not."""
        count = self.owner.next - self.behind.next
        if count > 0:
            self._behind(count)
            self._before()

    def _behind(self, count: int) -> None:
        owner, groups, start = self.owner, self.owner.groups, self.behind.next
        sub = np.arange(start, start + count)
        carry = self.behind.take(np.array([start - 1]), np.zeros(1, np.int64), groups)
        state = owner.algebra.concat([carry, owner.cells(sub)])
        prev = np.arange(-groups, count * groups)
        prev[:groups] = EMPTY
        prev[groups:][np.repeat(sub % self.shortest == 0, groups)] = EMPTY
        sums = owner.algebra.chain(state, prev, True)
        new = owner.algebra.take(sums, np.arange(groups, (count + 1) * groups))
        at = self.behind.tape.append(new, np.tile(np.arange(groups), count))
        self.behind.add(at + groups * np.arange(count), groups)

    def _before(self) -> None:
        owner, groups = self.owner, self.owner.groups
        marks = np.arange(self.before.next, owner.next // self.shortest + 1)
        if not len(marks):
            return
        ends = marks * self.shortest
        depth = np.minimum(self.longest, ends - owner.first)
        first = np.cumsum(depth) - depth
        row = np.arange(int(depth.sum())) - np.repeat(first, depth)
        state = owner.cells(np.repeat(ends, depth) - 1 - row)
        prev = np.arange(len(row) * groups) - groups
        prev[np.repeat(row == 0, groups)] = EMPTY
        sums = owner.algebra.chain(state, prev, False)
        at = self.before.tape.append(sums, np.tile(np.arange(groups), len(row)))
        self.before.add(at + groups * first, groups)
        self.depth.append(depth)

    def serves(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Which spans it answers."""
        mark = (high - 1) // self.shortest
        rows = mark * self.shortest - low
        known = (mark >= self.before.first) & (mark < self.before.next)
        place = np.where(known, mark - self.before.first, 0)
        deep = self.depth.view[place] >= rows if len(self.depth) else known
        return (high > low) & (rows >= 0) & ((rows == 0) | (known & deep))

    def probe(self, low: np.ndarray, high: np.ndarray) -> State:
        """Spans that it answers."""
        groups, mark = self.owner.groups, (high - 1) // self.shortest
        rows = mark * self.shortest - low
        older = self.before.take(np.where(rows > 0, mark, EMPTY), rows - 1, groups)
        newer = self.behind.take(high - 1, np.zeros_like(high), groups)
        return self.owner.algebra.combine(older, newer)

    def trim(self, first: int) -> None:
        self.behind.trim(first)
        self.depth.drop(self.before.trim(first // self.shortest + 1))


class Landmark:
    """The synopsis; `widths` are those of the windows that will be asked for, in sub-windows."""

    kind: ClassVar[SynopsisKind] = "landmark"

    def __init__(self, algebra: Algebra, widths: Iterable[int], groups: int = 1) -> None:
        self.algebra = folds(algebra)
        self.groups = groups
        self.first = self.next = 0
        self.basic = Basic(self.algebra, groups)
        self.widths = set(widths)
        self.gammas = [Gamma(self.basic, *span) for span in clusters(self.widths)]

    def expect(self, widths: Iterable[int]) -> None:
        """These widths will be asked for, too."""
        self.widths |= set(widths)
        old = {(g.shortest, g.longest): g for g in self.gammas}
        self.gammas = [old.get(span) or Gamma(self.basic, *span) for span in clusters(self.widths)]
        for gamma in self.gammas:
            gamma.take_in()

    def grow(self, groups: int) -> None:
        self.groups = groups
        self.basic.grow(groups)

    def append(self, state: State, count: int) -> None:
        self.basic.append(state, count)
        self.next = self.basic.next
        for gamma in self.gammas:
            gamma.take_in()

    def trim(self, first: int) -> None:
        first = min(first, self.next)
        if first > self.first:
            self.first = first
            self.basic.trim(first)
            for gamma in self.gammas:
                gamma.trim(first)

    def probe(self, low: np.ndarray, high: np.ndarray) -> State:
        low = np.clip(low, self.first, self.next)
        high = np.maximum(low, np.clip(high, self.first, self.next))
        left, parts, order = np.arange(len(low)), [], []
        for gamma in self.gammas:
            served = gamma.serves(low[left], high[left])
            if served.any():
                mine, left = left[served], left[~served]
                parts.append(gamma.probe(low[mine], high[mine]))
                order.append(mine)
        if len(left):
            parts.append(self.basic.probe(low[left], high[left]))
            order.append(left)
        if len(parts) == 1:
            return parts[0]
        place = np.argsort(np.concatenate(order)) if order else left
        cells = (place[:, None] * self.groups + np.arange(self.groups)).ravel()
        return self.algebra.take(self.algebra.concat(parts), cells)

    def probe_some(self, low: np.ndarray, high: np.ndarray, group: np.ndarray) -> State:
        return some_cells(self, low, high, group)

    def cells_of(self, number: int) -> tuple[np.ndarray, State]:
        return all_cells(self, number)

    def cost(self, width: int) -> float:
        known = any(g.shortest <= width <= g.longest for g in self.gammas)
        return 2.0 if known else float(width)

    @property
    def nbytes(self) -> int:
        return self.basic.nbytes + sum(g.behind.nbytes + g.before.nbytes for g in self.gammas)
