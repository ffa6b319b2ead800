"""Cells by key, of which some are written anew at each step: sorted runs, the newest last, of which
neighbours are merged as they come to be of like size (O'Neil et al. 1996, "The log-structured
merge-tree").

Columns of cells can't be changed in place, so one column would be copied at each step.  Nor is a
run one column: it is in pieces, as merging goes on piece by piece from one step to the next, so
that no step is much longer than others.  Until a merge is done both of its runs stand.

An empty cell says that there is none of its key any more; the oldest run has no such.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit

from dsms.aggregates.parts.cells import State
from dsms.aggregates.parts.fold import Folds

FEW = 1024  # entries of a run that is merged with the next in any case
SHARE = 12  # entries merged in a step for each that it brings, about: each is merged log2 times
PIECE = 1 << 13  # entries merged at a time, of each of two runs
LARGEST = 2**63 - 1


@njit(cache=True, nogil=True)
def _before(keys, blocks, key, block, low):
    """How many are less than (key, block), of which the first `low` are."""
    high = len(keys)
    while low < high:
        mid = (low + high) >> 1
        if keys[mid] < key or (keys[mid] == key and blocks[mid] < block):
            low = mid + 1
        else:
            high = mid
    return low


@njit(cache=True, nogil=True)
def _search(keys, blocks, key, block, wanted, run, number, at):
    """Where (key, block) of those `wanted` are in a piece."""
    for i in wanted:
        low = _before(keys, blocks, key[i], block[i], 0)
        if low < len(keys) and keys[low] == key[i] and blocks[low] == block[i]:
            number[i], at[i] = run, low


@njit(cache=True, nogil=True)
def _piece(keys, blocks, key, block, number, piece):
    """In which piece (key, block) would be, by the last of each piece; of those that no newer run
    had (number < 0).  -1: in none."""
    for i in range(len(key)):
        piece[i] = -1
        if number[i] < 0:
            found = _before(keys, blocks, key[i], block[i], 0)
            if found < len(keys):
                piece[i] = found


@dataclass(slots=True)
class Run:
    """Cells by (key, block), each of which occurs once;  there: whether it isn't empty.  A whole
    run, or a piece of one."""

    key: np.ndarray
    block: np.ndarray
    cells: State
    there: np.ndarray


Pieces = list[Run]  # of a run, in order; none is empty


def _size(run: Pieces) -> int:
    return sum(len(piece.key) for piece in run)


@dataclass(slots=True)
class Reader:
    """A run that is being merged: what is before row `row` of its piece number `piece` is done."""

    run: Pieces
    piece: int = 0
    row: int = 0

    @property
    def ended(self) -> bool:
        return self.piece == len(self.run)

    def last(self, most: int) -> tuple[int, int]:
        """The key and the block up to which so many go; the largest, where no more are left."""
        row = self.row + most
        for piece in self.run[self.piece :]:
            if row < len(piece.key):
                return int(piece.key[row]), int(piece.block[row])
            row -= len(piece.key)
        return LARGEST, LARGEST

    def upto(self, key: int, block: int) -> list[tuple[Run, int, int]]:
        """Those up to there: (piece, from row, to row)."""
        found = []
        while not self.ended:
            here, first = self.run[self.piece], self.row
            self.row = _before(here.key, here.block, key, block, first)
            found.append((here, first, self.row))
            if self.row < len(here.key):
                break
            self.piece, self.row = self.piece + 1, 0
        return found


@dataclass(slots=True)
class Merge:
    """Two runs on their way to be one."""

    older: Reader
    newer: Reader
    done: Pieces = field(default_factory=list)

    @property
    def ended(self) -> bool:
        return self.older.ended and self.newer.ended


@dataclass(slots=True)
class Shelf:
    """See the module.

    merges  under way: by the place of the older one of two runs, in order"""

    how: Folds
    runs: list[Pieces] = field(default_factory=list)
    merges: dict[int, Merge] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Not what is under way: it begins anew, and says the same."""
        return {"how": self.how, "runs": self.runs}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.how, self.merges = state["how"], {}
        # earlier versions had whole runs
        self.runs = [[run] if isinstance(run, Run) else run for run in state["runs"]]

    def find(self, key: np.ndarray, block: np.ndarray) -> tuple[np.ndarray, State]:
        """(which there are, the cells of these)."""
        if not len(key):
            return np.zeros(0, np.bool_), self.how.empty(0)
        number, at = np.full(len(key), -1, np.int64), np.zeros(len(key), np.int64)
        asked: list[Run] = []
        for run in reversed(self.runs):
            self._find(run, key, block, number, at, asked)
        found, order, parts = np.zeros(len(key), np.bool_), [], []
        for k in np.unique(number[number >= 0]).tolist():
            piece, mine = asked[k], np.flatnonzero(number == k)
            mine = mine[piece.there[at[mine]]]
            found[mine] = True
            order.append(mine)
            parts.append(self.how.take(piece.cells, at[mine]))
        if not order:
            return found, self.how.empty(0)
        back = np.argsort(np.concatenate(order))
        return found, self.how.take(self.how.concat(parts), back)

    @staticmethod
    def _find(
        run: Pieces,
        key: np.ndarray,
        block: np.ndarray,
        number: np.ndarray,
        at: np.ndarray,
        asked: list[Run],
    ) -> None:
        """Those that are in no newer run: `number` says in which of `asked`."""
        piece = np.empty(len(key), np.int64)
        ends = [np.array([getattr(p, x)[-1] for p in run], np.int64) for x in ("key", "block")]
        _piece(*ends, key, block, number, piece)
        order = np.argsort(piece, kind="stable")
        of, first = np.unique(piece[order], return_index=True)
        for k, wanted in zip(of.tolist(), np.split(order, first[1:]), strict=True):
            if k >= 0:
                _search(run[k].key, run[k].block, key, block, wanted, len(asked), number, at)
                asked.append(run[k])

    def put(self, key: np.ndarray, block: np.ndarray, cells: State) -> None:
        """From now on these are the cells of these keys; of the same key the last."""
        if not len(key):
            return
        run = self._run(key, block, cells, not self.runs)
        if len(run.key):
            self.runs.append([run])
        left = max(SHARE * len(key), PIECE)
        while left > 0 and (at := self._next()) is not None:
            left -= self._go_on(at, PIECE)

    def _next(self) -> int | None:
        """The place of the older of the two runs that are to be merged next: small ones first,
        which are the newest."""
        for at in range(len(self.runs) - 2, -1, -1):
            older, newer = self.runs[at : at + 2]
            alike = _size(older) <= max(2 * _size(newer), FEW)
            if alike and not {at - 1, at, at + 1} & self.merges.keys():
                self.merges[at] = Merge(Reader(older), Reader(newer))
            if at in self.merges:
                return at
        return None

    def _go_on(self, at: int, most: int) -> int:
        """Merge so many entries of each of both runs, or fewer; how many they were."""
        merge = self.merges[at]
        sides = merge.older, merge.newer
        end = min(side.last(most) for side in sides)
        taken = [part for side in sides for part in side.upto(*end)]
        parts = [
            (run.key[a:b], run.block[a:b], self.how.take(run.cells, np.arange(a, b)))
            for run, a, b in taken
        ]
        key, block, cells = zip(*parts, strict=True)
        made = self._run(
            np.concatenate(key), np.concatenate(block), self.how.concat(list(cells)), at == 0
        )
        if len(made.key):
            merge.done.append(made)
        if merge.ended:
            del self.merges[at]
            self.runs[at : at + 2] = [merge.done] if merge.done else []
        return sum(b - a for _, a, b in taken)

    def _run(self, key: np.ndarray, block: np.ndarray, cells: State, oldest: bool) -> Run:
        order = np.lexsort((block, key))
        last = np.ones(len(order), np.bool_)
        last[:-1] = (np.diff(key[order]) != 0) | (np.diff(block[order]) != 0)
        index = order[last]
        if oldest:
            index = index[self.how.present(cells)[index]]
        cells = self.how.take(cells, index)
        return Run(key[index], block[index], cells, self.how.present(cells))

    @property
    def nbytes(self) -> int:
        pieces = [p for run in (*self.runs, *(m.done for m in self.merges.values())) for p in run]
        own = sum(p.key.nbytes + p.block.nbytes + p.there.nbytes for p in pieces)
        return int(own) + sum(self.how.nbytes(p.cells) for p in pieces)
