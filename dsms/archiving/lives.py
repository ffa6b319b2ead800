"""Births and deaths of result rows, identified by value: what a query has reported, as rows with
lifetimes.

The oldest of equal rows is the one that leaves: equal rows can't be distinguished, so at every
instant the archive holds what the answer held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.state.intern import Intern
from dsms.state.vec import Vec

NONE = -1


@njit(cache=True, nogil=True)
def _pair(code, sign, at, head, tail, link, birth, free, free_n, out_row, out_born):
    """Insertions queue up behind the equal ones, a deletion takes the oldest; (deaths, free slots
    left).

    head, tail  by code: the oldest and youngest slot of that value, -1: none;  link: by slot, the
                next younger one
    free        slots not in use, as many as there are insertions at least"""
    found = 0
    for i in range(len(code)):
        c = code[i]
        if sign[i] > 0:
            free_n -= 1
            slot = free[free_n]
            birth[slot], link[slot] = at[i], NONE
            if head[c] == NONE:
                head[c] = slot
            else:
                link[tail[c]] = slot
            tail[c] = slot
        elif head[c] != NONE:
            slot = head[c]
            head[c] = link[slot]
            out_row[found], out_born[found] = i, birth[slot]
            found += 1
            free[free_n] = slot
            free_n += 1
    return found, free_n


@dataclass(slots=True)
class Lives:
    """The rows that have been reported and not taken back; `columns`: how many they have."""

    columns: int
    codes: Intern = field(init=False)
    head: Vec = field(default_factory=Vec)
    tail: Vec = field(default_factory=Vec)
    link: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    birth: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    free: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    spare: int = 0  # of `free`

    def __post_init__(self) -> None:
        self.codes = Intern(max(1, self.columns))

    @property
    def live(self) -> int:
        """Rows reported and not taken back."""
        return len(self.birth) - self.spare

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + self.head.nbytes + self.tail.nbytes + 24 * len(self.birth))

    def step(
        self, cols: Sequence[pa.Array], sign: np.ndarray, at: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Changes in order (int8 signs, int64 instants): the positions of those that end a life,
        and its beginning."""
        n = len(at)
        code = self.codes.codes(cols, n) if cols else np.zeros(n, np.int64)
        for vec in (self.head, self.tail):
            vec.extend_fill(max(self.codes.capacity - vec.n, 1 - vec.n, 0), NONE)
        self._make_room(int(np.count_nonzero(sign > 0)))
        row, born = np.empty(n, np.int64), np.empty(n, np.int64)
        found, self.spare = _pair(
            code,
            sign,
            at,
            self.head.view,
            self.tail.view,
            self.link,
            self.birth,
            self.free,
            self.spare,
            row,
            born,
        )
        self._forget()
        return row[:found], born[:found]

    def _make_room(self, births: int) -> None:
        if births <= self.spare:
            return
        old = len(self.birth)
        size = max(64, 2 * old, old + births)
        self.birth, self.link = np.resize(self.birth, size), np.resize(self.link, size)
        free = np.empty(size, np.int64)
        free[: self.spare] = self.free[: self.spare]
        free[self.spare : self.spare + size - old] = np.arange(old, size)
        self.free, self.spare = free, self.spare + size - old

    def _forget(self) -> None:
        """Values of which no row is left are not remembered."""
        if self.codes.wants_purge(self.live):
            self.codes.purge(self.head.view[: self.codes.capacity] != NONE)


def ready() -> None:
    """Compile the kernel, or load it."""
    Lives(1).step([pa.array([1, 1])], np.array([1, -1], np.int8), np.array([0, 1], np.int64))
