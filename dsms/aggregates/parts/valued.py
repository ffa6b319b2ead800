"""Something counted for each value in each group: rows (group, word, high word, count), found by
the first three."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.state.chains import END, Chains, bucket_of, cut, mask_over, put
from dsms.state.lengthening import grown

NOTHING = -1  # in place of a group: the row is spare
FRESH, SPARE = 0, 1  # of the state: the first row that was never used, the first spare one


@njit(cache=True, nogil=True)
def _hash(g, w, h):
    x = np.uint64(w) * np.uint64(0x9E3779B97F4A7C15)
    x ^= (x >> np.uint64(29)) ^ np.uint64(g)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= (x >> np.uint64(32)) ^ np.uint64(h)
    x *= np.uint64(0x94D049BB133111EB)
    return x >> np.uint64(20)


@njit(cache=True, nogil=True)
def find(head, link, size, rows, g, w, h):
    """The row of (group, word, high word); END if there is none."""
    buckets = np.uint64(size[0])
    at = head[bucket_of(_hash(g, w, h), mask_over(buckets), buckets)]
    while at != END and (rows[at, 0] != g or rows[at, 1] != w or rows[at, 2] != h):
        at = link[at, 0]
    return at


@njit(cache=True, nogil=True)
def enter(head, link, size, rows, state, g, w, h):
    """A row for what has none, with a count of 0; there is room for it."""
    at = state[SPARE]
    if at == END:
        at = state[FRESH]
        state[FRESH] += 1
    else:
        state[SPARE] = rows[at, 1]
    rows[at, 0], rows[at, 1], rows[at, 2], rows[at, 3] = g, w, h, 0
    put(head, link, size, at, _hash(g, w, h))
    return at


@njit(cache=True, nogil=True)
def leave(head, link, size, rows, state, row):
    """The row is spare."""
    buckets = np.uint64(size[0])
    at = bucket_of(np.uint64(link[row, 1]), mask_over(buckets), buckets)
    found, before = head[at], np.int64(END)
    while found != row:
        before, found = found, link[found, 0]
    cut(head, link, size, at, before, row)
    rows[row, 0], rows[row, 1], rows[row, 3] = NOTHING, state[SPARE], 0
    state[SPARE] = row


@njit(cache=True, nogil=True)
def _put_all(head, link, size, rows):
    for at in range(len(rows)):
        put(head, link, size, at, _hash(rows[at, 0], rows[at, 1], rows[at, 2]))


@dataclass(slots=True)
class Valued:
    """rows   int64[., 4], see the module; `count` is the caller's, and 0 in spare rows
    state  see FRESH and SPARE;  kernel  what kernels take"""

    rows: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    state: np.ndarray = field(default_factory=lambda: np.array([0, END], np.int64))
    chains: Chains = field(default_factory=Chains)

    @property
    def kernel(self) -> tuple[np.ndarray, ...]:
        return *self.chains.kernel, self.rows, self.state

    def reserve(self, more: int) -> None:
        """Room for so many rows more."""
        if not self.chains.made:
            self.chains.clear(0, 0)
        need = int(self.state[FRESH]) + more
        self.rows = grown(self.rows, need, None)
        self.chains.reserve(need, more)

    @property
    def _there(self) -> np.ndarray:
        used = self.rows[: self.state[FRESH]]
        return used[(used[:, 0] != NOTHING) & (used[:, 3] > 0)]

    @property
    def words(self) -> np.ndarray:
        """Of all rows that count something."""
        return self._there[:, 1]

    def __getstate__(self) -> dict[str, np.ndarray]:
        return {"rows": self._there}

    def __setstate__(self, state: dict[str, np.ndarray]) -> None:
        Valued.__init__(self)
        self.take(state["rows"])

    def take(self, rows: np.ndarray) -> None:
        """Have these rows, and no others."""
        if rows.ndim != 2 or rows.shape[1] != 4:
            raise ValueError("no rows of four")
        self.rows = rows
        self.state[:] = len(rows), END
        self.chains.clear(len(rows), len(rows))
        _put_all(*self.chains.kernel, rows)

    def count_by(self, where: np.ndarray) -> None:
        """Counts are places, from 1 on, that have moved."""
        used = self.rows[: self.state[FRESH]]
        there = used[:, 3] > 0
        used[there, 3] = where[used[there, 3] - 1] + 1

    def let_go(self, closed: np.ndarray) -> None:
        """Without the rows of these groups (bool by group)."""
        there = self._there
        open_ = ~closed[there[:, 0]]
        if not open_.all():
            self.chains = Chains()  # with room for what stays
            self.take(there[open_])

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes) + self.chains.nbytes


def ready() -> None:
    """Have the kernel that no row meets, but what is read from a file, compiled or loaded now."""
    Valued().take(np.zeros((0, 4), np.int64))
