"""A tape: cells written one behind the other, each with the group it belongs to; old ones go, new
ones come.

An address is the number of a cell since the beginning and stays what it is while other cells go.
Amortised O(1) a cell; at most four times the room that is needed, and BLOCK cells in front.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

from dsms.aggregates.parts.cells import State
from dsms.aggregates.parts.fold import EMPTY, Folds, ranges

LEAST = 64  # cells of room
BLOCK = 1 << 17  # cells of a block, unless more are written in one go
RUNS = 256  # of addresses that are taken one after the other


@njit(cache=True, nogil=True)
def _below(group, origin, low, high, edges, out):
    """Add to out[k, r] how many cells of run r that stand in a block have a group below
    edges[k]."""
    for r in range(len(low)):
        a, b = max(low[r] - origin, 0), min(high[r] - origin, len(group))
        if a < b:
            for k in range(len(edges)):
                out[k, r] += np.searchsorted(group[a:b], edges[k])


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


@dataclass(slots=True, eq=False)
class Block:
    """Cells from the address `origin` on, of which `used` have been written."""

    origin: int
    state: State
    group: np.ndarray
    used: int = 0

    @property
    def end(self) -> int:
        return self.origin + self.used


class Tape:
    """Cells of an algebra by address.

    blocks   they follow each other; none grows beyond BLOCK cells, so what is copied in one go has
             a bound
    address  of the first cell that is needed"""

    def __init__(self, algebra: Folds) -> None:
        self.algebra = algebra
        self.blocks = [Block(0, algebra.empty(LEAST), np.zeros(LEAST, np.int64))]
        self.address = 0

    @property
    def end(self) -> int:
        """The address that the next cell will get."""
        return self.blocks[-1].end

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

    def keep_part(self, state: State, first: int) -> None:
        """`keep` for cells of the groups from `first` on, of one sub-window; those of the groups
        before them were written last."""
        there = np.flatnonzero(self.algebra.present(state))
        if len(there) < self.algebra.size(state):
            state = self.algebra.take(state, there)
        self.append(state, there + first)

    def cut(self, low: np.ndarray, high: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """int64[len(edges), n]: where in runs of addresses, each of which has its cells in the
        order of their groups, those of groups from edges[k] on begin."""
        found = np.tile(low, (len(edges), 1))
        for block in self.blocks:
            _below(block.group[: block.used], block.origin, low, high, edges, found)
        return found

    def append(self, state: State, group: np.ndarray) -> int:
        """Write cells; the address of the first."""
        state, n, block = self.algebra.settled(state), len(group), self.blocks[-1]
        if block.used + n > len(block.group) or self.algebra.heavy(block.state):
            block = self._with_room(n)
        at = block.end
        block.state = self.algebra.write(block.state, block.used, state)
        block.group[block.used : block.used + n] = group
        block.used += n
        return at

    def _with_room(self, extra: int) -> Block:
        """The last block, now with room for so many cells."""
        last = self.blocks[-1]
        dead = min(max(0, self.address - last.origin), last.used)
        live = last.used - dead
        if live + extra > BLOCK or self.algebra.heavy(last.state):
            origin, live = last.end, 0
        else:
            origin = last.origin + dead
        room = max(LEAST, live + extra, min(2 * (live + extra), BLOCK))
        block = Block(origin, self.algebra.empty(room), np.zeros(room, np.int64), live)
        if origin == last.end:
            self.blocks.append(block)
            self._let_go()
            return block
        kept = self.algebra.take(last.state, np.arange(dead, last.used))
        block.state = self.algebra.write(block.state, 0, kept)
        block.group[:live] = last.group[dead : last.used]
        self.blocks[-1] = block
        return block

    def drop(self, address: int) -> None:
        """Cells before the address are not needed any more."""
        self.address = min(self.end, max(self.address, address))
        self._let_go()

    def _let_go(self) -> None:
        while len(self.blocks) > 1 and self.blocks[1].origin <= self.address:
            del self.blocks[0]

    def merge(self, low: np.ndarray, high: np.ndarray, base: np.ndarray, cells: int) -> State:
        """`Folds.merge` of runs of addresses."""
        first = self.blocks[0]
        if len(self.blocks) > 1 and (full := high > low).any():
            first = self.blocks[self._block(low[full].min())]
            if int(high[full].max()) > first.end:
                parts, _ = self._parts(ranges(low, high), len(self.blocks) * len(low))
                state = self.algebra.concat([self.algebra.take(b.state, i) for b, i in parts])
                group = np.concatenate([b.group[i] for b, i in parts])
                ends = np.cumsum(high - low)
                return self.algebra.merge(state, group, ends - (high - low), ends, base, cells)
        low, high = low - first.origin, high - first.origin
        return self.algebra.merge(first.state, first.group, low, high, base, cells)

    def merge_some(self, low: int, high: int, place: np.ndarray, cells: int, runs: int) -> State:
        """Of the cells from one address to another, those of `runs` sub-windows, the ones of groups
        with place[group] >= 0, together in the cells place[group]."""
        parts = [(b.state, b.group, start, stop) for b, start, stop in self._runs(low, high)]
        return self.algebra.merge_placed(parts, place, cells, max(1, runs))

    def cells(self, low: int, high: int) -> tuple[np.ndarray, State]:
        """The cells from one address to another, and their groups."""
        found = list(self._runs(low, high))
        if not found:
            return np.zeros(0, np.int64), self.algebra.empty(0)
        states = [self.algebra.take(b.state, np.arange(start, stop)) for b, start, stop in found]
        return np.concatenate([b.group[start:stop] for b, start, stop in found]), (
            states[0] if len(states) == 1 else self.algebra.concat(states)
        )

    def _runs(self, low: int, high: int) -> Iterator[tuple[Block, int, int]]:
        """The places in blocks that addresses from `low` to `high` are."""
        for block in self.blocks:
            start, stop = max(low, block.origin), min(high, block.end)
            if start < stop:
                yield block, start - block.origin, stop - block.origin

    def take(self, address: np.ndarray) -> State:
        """The cells at those addresses; -1: empty ones."""
        parts, order = self._parts(address, RUNS)
        taken = [self.algebra.take(b.state, i) for b, i in parts]
        if len(taken) == 1:
            return taken[0]
        state = self.algebra.concat(taken)
        if order is None:
            return state
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return self.algebra.take(state, back)

    def _block(self, address: np.ndarray) -> np.ndarray:
        """The numbers of the blocks that have those addresses."""
        return np.searchsorted([b.origin for b in self.blocks[1:]], address, side="right")

    def _parts(
        self, address: np.ndarray, most: int
    ) -> tuple[list[tuple[Block, np.ndarray]], np.ndarray | None]:
        """The addresses as places in blocks: runs of them that lie in one block, or if these are
        more than `most`, all of each block together, and then the order in which they are."""
        if len(self.blocks) == 1:
            first = self.blocks[0]
            return [(first, np.where(address < 0, EMPTY, address - first.origin))], None
        where, order = self._block(address), None
        cuts = np.flatnonzero(np.diff(where)) + 1
        if len(cuts) > most:
            order = np.argsort(where, kind="stable")
            address, where = address[order], where[order]
            cuts = np.flatnonzero(np.diff(where)) + 1
        blocks = (
            [self.blocks[i] for i in where[np.append(0, cuts)]] if len(where) else self.blocks[:1]
        )
        runs = zip(blocks, np.split(address, cuts), strict=True)
        return [(b, np.where(a < 0, EMPTY, a - b.origin)) for b, a in runs], order

    @property
    def nbytes(self) -> int:
        return int(sum(self.algebra.nbytes(b.state) + b.group.nbytes for b in self.blocks))
