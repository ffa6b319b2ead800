"""Cells by key, of which some are written anew at each step: sorted runs, the newest last, of which
neighbours are merged as they come to be of like size (O'Neil et al. 1996, "The log-structured
merge-tree").

Columns of cells can't be changed in place, so one column would be copied at each step.  An empty
cell says that there is none of its key any more; the oldest run has no such.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts.cells import State
from dsms.aggregates.parts.fold import Folds

FEW = 1024  # entries of a run that is merged with the next in any case


@njit(cache=True, nogil=True)
def _search(keys, blocks, key, block, run, number, at):
    """Where (key, block) are in a run, for those that no newer one had (number < 0)."""
    for i in range(len(key)):
        if number[i] >= 0:
            continue
        low, high = 0, len(keys)
        while low < high:
            mid = (low + high) >> 1
            if keys[mid] < key[i] or (keys[mid] == key[i] and blocks[mid] < block[i]):
                low = mid + 1
            else:
                high = mid
        if low < len(keys) and keys[low] == key[i] and blocks[low] == block[i]:
            number[i], at[i] = run, low


@dataclass(slots=True)
class Run:
    """Cells by (key, block), each of which occurs once;  there: whether it isn't empty."""

    key: np.ndarray
    block: np.ndarray
    cells: State
    there: np.ndarray


@dataclass(slots=True)
class Shelf:
    """See the module."""

    how: Folds
    runs: list[Run] = field(default_factory=list)

    def find(self, key: np.ndarray, block: np.ndarray) -> tuple[np.ndarray, State]:
        """(which there are, the cells of these)."""
        number, at = np.full(len(key), -1, np.int64), np.zeros(len(key), np.int64)
        for k in range(len(self.runs) - 1, -1, -1):
            run = self.runs[k]
            _search(run.key, run.block, key, block, k, number, at)
        found, order, parts = np.zeros(len(key), np.bool_), [], []
        for k in np.unique(number[number >= 0]).tolist():
            run, mine = self.runs[k], np.flatnonzero(number == k)
            mine = mine[run.there[at[mine]]]
            found[mine] = True
            order.append(mine)
            parts.append(self.how.take(run.cells, at[mine]))
        if not order:
            return found, self.how.empty(0)
        back = np.argsort(np.concatenate(order))
        return found, self.how.take(self.how.concat(parts), back)

    def put(self, key: np.ndarray, block: np.ndarray, cells: State) -> None:
        """From now on these are the cells of these keys; of the same key the last."""
        if not len(key):
            return
        self.runs.append(self._run(key, block, cells))
        while len(self.runs) > 1 and self._alike(*self.runs[-2:]):
            older, newer = self.runs[-2:]
            self.runs[-2:] = [
                self._run(
                    np.concatenate([older.key, newer.key]),
                    np.concatenate([older.block, newer.block]),
                    self.how.concat([older.cells, newer.cells]),
                )
            ]
        self._without_empty()

    @staticmethod
    def _alike(older: Run, newer: Run) -> bool:
        return len(older.key) <= max(2 * len(newer.key), FEW)

    def _run(self, key: np.ndarray, block: np.ndarray, cells: State) -> Run:
        order = np.lexsort((block, key))
        last = np.ones(len(order), np.bool_)
        last[:-1] = (np.diff(key[order]) != 0) | (np.diff(block[order]) != 0)
        index = order[last]
        cells = self.how.take(cells, index)
        return Run(key[index], block[index], cells, self.how.present(cells))

    def _without_empty(self) -> None:
        oldest = self.runs[0]
        if len(self.runs) == 1 and not oldest.there.all():
            index = np.flatnonzero(oldest.there)
            cells = self.how.take(oldest.cells, index)
            self.runs = [Run(oldest.key[index], oldest.block[index], cells, oldest.there[index])]

    @property
    def nbytes(self) -> int:
        own = sum(r.key.nbytes + r.block.nbytes + r.there.nbytes for r in self.runs)
        return int(own) + sum(self.how.nbytes(r.cells) for r in self.runs)
