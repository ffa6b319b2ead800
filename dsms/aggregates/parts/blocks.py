"""What an aggregate answers after each touch, for any algebra and any order in which rows leave:
cells of blocks of rows.

The rows of a group that count are numbered as they come, from 0 when it has none.  A block of
level l has the numbers from k * 2^l to (k + 1) * 2^l - 1, and its cell is made of those of its two
halves; the answer is that of the smallest block which has all rows of its group (`top`).  So how
cells are put together depends on the rows alone, and not on how they were cut into batches: even
where `combine` rounds, the answers are the same numbers.

A step is worked on level by level: of each block that an event is in, a version for each touch that
has events in it, made of the latest versions of its halves.  So `combine` is called once for a
level, with all groups and touches of the step.

State    rows leave ("leaving"): the cells of all blocks that have rows, up to the top of their
         group, about two a row.   They never do: of each level the one block that waits for its
         other half.
Cost     log2(rows of the group) combined cells an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numba import njit

from dsms.aggregates.parts.base import GroupEvents
from dsms.aggregates.parts.cells import State
from dsms.aggregates.parts.fold import EMPTY, Folds
from dsms.aggregates.parts.links import NIL
from dsms.aggregates.parts.shelf import Shelf
from dsms.aggregates.parts.versions import BEFORE, Versions, climb, in_order, together
from dsms.state.lengthening import grown

WHOLE = 63  # instead of a level: the cell of all rows of a group whose rows never leave


@njit(cache=True, nogil=True)
def _top(low, high):
    """The level of the smallest block with both numbers."""
    level = 0
    while low != high:
        low, high, level = low >> 1, high >> 1, level + 1
    return level


class Numbers(NamedTuple):
    """place   by slot: the number of its row, -1 if it does not count (empty: rows never leave)
    head, tail, rows   by group: from which number to before which its rows are, and how many"""

    place: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    rows: np.ndarray


class Bounds(NamedTuple):
    """Of the groups of a step, by their places among these.

    begin, tail, top_old   the head, the tail and the top as the step began (-1: no rows)
    top         of all rows that it has in this step
    low, high   scratch"""

    begin: np.ndarray
    tail: np.ndarray
    top_old: np.ndarray
    top: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, groups: int) -> Bounds:
        """Of so many, not filled in."""
        return cls(*np.empty((6, groups), np.int64))


@njit(cache=True, nogil=True)
def _number(events, counts, at, numbers, bounds, touch, number):
    """The touch of each event and the number of its row, -1 if that does not count.

    events  as `GroupEvents.events`;  counts: whether their rows count;  at: by event, the place of
            its group among those of the step"""
    code, sign, slot, emit = events
    place, head, tail, count = numbers
    begin, tail_old, top_old, top, low, high = bounds
    for i in range(len(code) - 1, -1, -1):
        k = at[i]
        if emit[i] >= 0:
            low[k] = emit[i]
        touch[i] = low[k]
    for i in range(len(code)):
        g, k = code[i], at[i]
        tail_old[k] = tail[g]
        if count[g] > 0:
            begin[k], low[k], high[k] = head[g], head[g], tail[g] - 1
            top_old[k] = _top(low[k], high[k])
        else:
            begin[k], low[k], high[k], top_old[k] = -1, 1 << 62, -1, -1
    for i in range(len(code)):
        g, k, s, number[i] = code[i], at[i], slot[i], -1
        if sign[i] > 0 and counts[i]:
            if count[g] == 0:
                head[g] = tail[g] = 0
            next_one = tail[g]
            number[i] = next_one
            tail[g] += 1
            count[g] += 1
            low[k], high[k] = min(low[k], next_one), max(high[k], next_one)
        elif sign[i] < 0 and place[s] >= 0:
            gone = number[i] = place[s]
            count[g] -= 1
            if gone == head[g]:
                head[g] += 1
        if len(place) and sign[i] > 0:
            place[s] = number[i]
    for k in range(len(top)):
        top[k] = _top(low[k], high[k]) if high[k] >= 0 else -1


@njit(cache=True, nogil=True)
def _tops(groups, numbers, top):
    """The tops of the groups as they are now, -1 of those without rows."""
    for k in range(len(groups)):
        g = groups[k]
        top[k] = _top(numbers.head[g], numbers.tail[g] - 1) if numbers.rows[g] > 0 else -1


Kept = tuple[np.ndarray, np.ndarray, State]  # keys, blocks, cells


def _ints() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass(slots=True)
class Blocks:
    """See the module.

    how      the algebra;  leaving: whether rows may leave
    place    by slot: the number of its row, -1 if it does not count (empty: rows never leave)
    head, tail, count   by group: the number of its first row (or of one before), the next number,
                        rows
    kept     cells by group * 64 + level and block"""

    how: Folds
    leaving: bool
    place: np.ndarray = field(default_factory=_ints)
    head: np.ndarray = field(default_factory=_ints)
    tail: np.ndarray = field(default_factory=_ints)
    count: np.ndarray = field(default_factory=_ints)
    kept: Shelf = field(init=False)

    def __post_init__(self) -> None:
        self.kept = Shelf(self.how)

    def after(
        self, feed: GroupEvents, counts: np.ndarray, lift: Callable[[np.ndarray], State]
    ) -> tuple[State, np.ndarray]:
        """(cells, for each touch which of them answers; -1: none).

        counts  bool by slot, or empty (all do): whether its row counts
        lift    the cells of the rows of slots, one each"""
        of_event = counts[feed.slot] if len(counts) else np.ones(len(feed.code), np.bool_)
        step = _Step(self, feed, of_event)
        changed = np.flatnonzero(step.number >= 0)
        come = np.flatnonzero(feed.sign[changed] > 0)
        where = np.full(len(changed), EMPTY, np.int64)
        where[come] = np.arange(len(come))
        cells = self.how.take(lift(feed.slot[changed[come]]), where) if len(come) else None
        leaves = Versions(
            feed.code[changed],
            step.number[changed],
            step.touch[changed],
            self.how.empty(len(changed)) if cells is None else cells,
        )
        roots = step.risen(in_order(self.how, leaves))
        return roots.cells, step.answering(roots)

    def moved(self, where: np.ndarray) -> None:
        """Slots were compacted."""
        if self.leaving:
            self.place = grown(self.place, len(where), NIL)[np.flatnonzero(where >= 0)]

    @property
    def numbers(self) -> Numbers:
        """By slot and by group."""
        return Numbers(self.place, self.head, self.tail, self.count)

    @property
    def nbytes(self) -> int:
        own = sum(a.nbytes for a in (self.place, self.head, self.tail, self.count))
        return int(own) + self.kept.nbytes


class _Step:
    """The versions of one step."""

    def __init__(self, blocks: Blocks, feed: GroupEvents, counts: np.ndarray) -> None:
        self.blocks, self.feed, self.how = blocks, feed, blocks.how
        n = len(feed.code)
        blocks.head, blocks.tail, blocks.count = (
            grown(a, feed.groups) for a in (blocks.head, blocks.tail, blocks.count)
        )
        if blocks.leaving:
            slots = int(feed.slot.max(initial=-1)) + 1
            blocks.place = grown(blocks.place, slots, NIL)
        self.groups, at = np.unique(feed.code, return_inverse=True)
        self.bounds = Bounds.of(len(self.groups))
        self.touch, self.number = np.empty(n, np.int64), np.empty(n, np.int64)
        _number(feed.events, counts, at, blocks.numbers, self.bounds, self.touch, self.number)

    def _at(self, group: np.ndarray) -> np.ndarray:
        """The places of these groups among those of the step."""
        return np.searchsorted(self.groups, group)

    def risen(self, leaves: Versions) -> Versions:
        """The versions of the tops; all that is to be kept is kept."""
        roots: list[Versions] = []
        done: list[tuple[int, Versions]] = []
        here, level = self._begun(leaves, 0), 0
        if not self.blocks.leaving:
            roots.append(self._wholes())
        while len(here.group) or level <= int(self.bounds.top.max(initial=-1)):
            up = self.bounds.top[self._at(here.group)] == level
            if up.any():
                roots.append(here.some(self.how, up))
            done.append((level, here))
            here = self._begun(self._parents(here.some(self.how, ~up), level), level + 1)
            level += 1
        found = in_order(self.how, together(self.how, roots)) if roots else here
        self._keep(done, found)
        return found

    def _begun(self, here: Versions, level: int) -> Versions:
        """With the tops of groups as the step began that are of this level."""
        if not self.blocks.leaving:
            return here
        which = self.bounds.top_old == level
        if not which.any():
            return here
        groups, block = self.groups[which], self.bounds.begin[which] >> level
        _, cells = self.blocks.kept.find(groups * 64 + level, block)
        tops = Versions(groups, block, np.full(len(groups), BEFORE), cells)
        return in_order(self.how, together(self.how, [tops, here]))

    def _wholes(self) -> Versions:
        """The cells of whole groups as the step began."""
        groups = self.groups[self.bounds.tail > 0]
        zero = np.zeros(len(groups), np.int64)
        _, cells = self.blocks.kept.find(groups * 64 + WHOLE, zero)
        return Versions(groups, zero, np.full(len(groups), BEFORE), cells)

    def _parents(self, of: Versions, level: int) -> Versions:
        n = len(of.group)
        group, block, version, left, right = (np.empty(n, np.int64) for _ in "12345")
        m = climb(of.group, of.block, of.version, group, block, version, left, right)
        group, block, version, left, right = (a[:m] for a in (group, block, version, left, right))
        if not m:
            return Versions(group, block, version, self.how.empty(0))
        sides = [
            self._halves(of.cells, which, group, 2 * block + k, level)
            for k, which in enumerate((left, right))
        ]
        return Versions(group, block, version, self.how.combine(*sides))

    def _halves(
        self, cells: State, which: np.ndarray, group: np.ndarray, block: np.ndarray, level: int
    ) -> State:
        """The versions `which`, or what was kept of these blocks."""
        before = np.flatnonzero(which < 0)
        if not self.blocks.leaving:
            waits = (self.bounds.tail[self._at(group[before])] >> level) - 1 == block[before]
            before = before[waits & (block[before] & 1 == 0)]
        if not len(before):
            return self.how.take(cells, which)
        key = group[before] * 64 + level
        found, older = self.blocks.kept.find(
            key, block[before] if self.blocks.leaving else np.zeros(len(key), np.int64)
        )
        index, n = which.copy(), self.how.size(cells)
        index[before[found]] = n + np.arange(np.count_nonzero(found))
        return self.how.take(self.how.concat([cells, older]), index)

    # -- what is kept ------------------------------------------------------------------------------

    def _keep(self, done: list[tuple[int, Versions]], roots: Versions) -> None:
        """Of each block the last version."""
        keys, blocks, cells = [], [], []
        for key, block, found in (
            self._leaving(done) if self.blocks.leaving else self._waiting(done, roots)
        ):
            keys.append(key)
            blocks.append(block)
            cells.append(found)
        if keys:
            self.blocks.kept.put(
                np.concatenate(keys), np.concatenate(blocks), self.how.concat(cells)
            )

    def _leaving(self, done: list[tuple[int, Versions]]) -> Iterator[Kept]:
        """Those of blocks with rows; none above the tops as they are now."""
        head, top = self.blocks.head, np.empty(len(self.groups), np.int64)
        _tops(self.groups, self.blocks.numbers, top)
        most = np.where(top < 0, -1, self.bounds.top)
        for level in range(int(most.max(initial=-1)) + 1):
            group = self.groups[(top < level) & (level <= most)]
            if len(group):
                yield group * 64 + level, head[group] >> level, self.how.empty(len(group))
        for level, of in done:
            at = self._at(of.group)
            new = (of.version > BEFORE) | (self.bounds.top_old[at] < level)
            kept = np.flatnonzero(of.latest() & new)
            gone = np.where(top[at[kept]] < level, EMPTY, kept)
            yield of.group[kept] * 64 + level, of.block[kept], self.how.take(of.cells, gone)

    def _waiting(self, done: list[tuple[int, Versions]], roots: Versions) -> Iterator[Kept]:
        """Those of blocks that wait for their other halves, and of whole groups."""
        for level, of in done:
            waits = self.blocks.tail[of.group] >> level
            kept = of.some(self.how, of.latest() & (waits & 1 == 1) & (of.block == waits - 1))
            yield kept.group * 64 + level, np.zeros_like(kept.group), kept.cells
        kept = roots.some(self.how, roots.latest() & (roots.version > BEFORE))
        yield kept.group * 64 + WHOLE, np.zeros_like(kept.group), kept.cells

    # -- answers -----------------------------------------------------------------------------------

    def answering(self, roots: Versions) -> np.ndarray:
        """By touch, which of the versions answers it; -1: none."""
        touches = self.feed.touches
        group = np.full(touches, -1, np.int64)
        group[self.touch] = self.feed.code
        wanted = group * (touches + 1) + np.arange(1, touches + 1)
        there = roots.group * (touches + 1) + roots.version + 1
        at = np.searchsorted(there, wanted, side="right") - 1
        at[(group < 0) | (at < 0)] = -1
        if len(roots.group):
            at[roots.group[at] != group] = -1
        return at
