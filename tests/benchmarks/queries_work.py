"""The work that `queries` schedules: synthetic traffic, its counters per interval, and queries over
them.

Basic interval synopsis: one set of counters per interval.  A query merges those of its window,
youngest first, and sorts what comes out; queries executed together merge once, as far as the
longest window goes.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass

import numpy as np

RING = 128  # intervals of traffic, repeated: more than any window has
TOP = 10
KEYS = ("source", "destination", "source+destination", "protocol", "port", "protocol+port",
        "source+protocol", "destination+port")  # a long list  # fmt: skip

Answer = tuple[int, ...] | int


@dataclass(frozen=True, slots=True)
class Query:
    """window, slide: in intervals;  phi: of a quantile of bandwidth per key, None: the top-k
    keys."""

    name: str
    window: int
    slide: int
    phi: float | None


def queries_of(key: str, count: int, seed: int = 0) -> list[Query]:
    """The first `count` random queries of a group: windows of 20 to 100, slides of 1 to half of
    that (§8.5.1)."""
    rng = np.random.default_rng([seed, zlib.crc32(key.encode())])
    found = []
    for i in range(count):
        window = int(rng.integers(20, 101))
        slide = int(rng.integers(1, window // 2 + 1))
        phi = float(rng.choice([0.5, 0.9, 0.99])) if rng.random() < 0.5 else None
        found.append(Query(f"{key} {i}", window, slide, phi))
    return found


@dataclass(frozen=True, slots=True)
class Counters:
    """Bandwidth by key: in interval i, the cells `cells[i]` (int64, ascending) have used `sums[i]`
    bytes (int64)."""

    size: int
    cells: list[np.ndarray]
    sums: list[np.ndarray]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Packet headers of `RING` intervals with random attributes: name -> int64[RING, tuples]."""

    columns: dict[str, np.ndarray]
    values: dict[str, int]

    @classmethod
    def random(cls, tuples: int, addresses: int, seed: int) -> Traffic:
        """`tuples` an interval; as many sources and destinations as said, a tenth as many protocols
        and ports."""
        rng = np.random.default_rng(seed)
        few = max(2, addresses // 10)
        values = {"source": addresses, "destination": addresses, "protocol": few, "port": few}
        columns = {name: rng.integers(0, n, (RING, tuples)) for name, n in values.items()}
        columns["bytes"] = rng.integers(40, 1501, (RING, tuples))
        return cls(columns, values)

    def counters(self, key: str) -> Counters:
        """Bandwidth by one attribute or a combination `a+b`; keys interned to dense cells."""
        names = key.split("+")
        code = self.columns[names[0]]
        for name in names[1:]:
            code = code * self.values[name] + self.columns[name]
        distinct, cell = np.unique(code, return_inverse=True)
        cell = cell.reshape(code.shape)
        cells, sums = [], []
        for i in range(RING):
            used, at = np.unique(cell[i], return_inverse=True)
            cells.append(used)
            sums.append(np.bincount(at, self.columns["bytes"][i]).astype(np.int64))
        return Counters(len(distinct), cells, sums)


class Basic:
    """A basic interval synopsis over counters.

    in_place  False: an interval's counters are brought into the window's cells, then combined cell
              by cell, which costs what the window holds;  True: added at the cells that the
              interval has, which costs what that holds
    spent     CPU seconds of the last execution: merging, answering
    """

    def __init__(self, counters: Counters, in_place: bool) -> None:
        self.counters, self.in_place = counters, in_place
        self.cells = counters.size
        self.spent = (0.0, 0.0)

    def execute(self, queries: list[Query], updates: int = RING) -> dict[str, Answer]:
        """Answers of all, one scan; the youngest interval is the one of the last update."""
        began, answering = time.thread_time(), 0.0
        out: dict[str, Answer] = {}
        state, done = np.zeros(self.cells, np.int64), 0
        for query in sorted(queries, key=lambda q: q.window):
            state = self._merge(state, updates, done, query.window)
            done = query.window
            before = time.thread_time()
            out[query.name] = answer(state, query.phi)
            answering += time.thread_time() - before
        self.spent = (time.thread_time() - began - answering, answering)
        return out

    def _merge(self, state: np.ndarray, updates: int, start: int, stop: int) -> np.ndarray:
        cells, sums = self.counters.cells, self.counters.sums
        for age in range(start, stop):
            at = (updates - 1 - age) % RING
            if self.in_place:
                state[cells[at]] += sums[at]
            else:
                column = np.zeros(self.cells, np.int64)
                column[cells[at]] = sums[at]
                state = state + column
        return state

    def recomputed(self, query: Query, updates: int) -> Answer:
        """The answer from scratch."""
        ages = [(updates - 1 - age) % RING for age in range(query.window)]
        cells = np.concatenate([self.counters.cells[at] for at in ages])
        sums = np.concatenate([self.counters.sums[at] for at in ages])
        total = np.bincount(cells, sums, self.cells).astype(np.int64)
        if query.phi is None:
            order = np.lexsort((np.arange(self.cells), -total))
            return tuple(int(total[i]) for i in order[:TOP])
        used = np.sort(total[total > 0])
        return int(used[int(query.phi * len(used))])


def answer(state: np.ndarray, phi: float | None) -> Answer:
    """Bandwidths of the top keys, largest first, or a quantile over the keys seen."""
    return top(state) if phi is None else quantile(state, phi)


def top(state: np.ndarray) -> tuple[int, ...]:
    """The largest of each of `TOP` stretches are as many; so nothing below the least of them is
    among the top."""
    stretch = len(state) // TOP
    if stretch > 1:
        floor = state[: stretch * TOP].reshape(TOP, stretch).max(axis=1).min()
        state = state[state >= floor]
    return tuple(np.sort(state)[-TOP:][::-1].tolist())


def quantile(state: np.ndarray, phi: float) -> int:
    """Cells in classes by their upper bits; only the class that has the answer is sorted."""
    shift = max(0, int(state.max()).bit_length() - 12)
    upper = state >> shift
    sizes = np.bincount(upper)
    zeros = len(state) - np.count_nonzero(state)
    at = zeros + int(phi * (len(state) - zeros))
    ends = np.cumsum(sizes)
    found = int(np.searchsorted(ends, at, side="right"))
    inside = np.sort(state[upper == found])
    return int(inside[at - (ends[found] - sizes[found])])


class Running:
    """A running synopsis: bandwidth by key since the start, per update; windows by one
    subtraction."""

    def __init__(self, counters: Counters) -> None:
        self.counters, self.cells = counters, counters.size
        dense = np.zeros((RING + 1, counters.size), np.int64)
        for i in range(RING):
            dense[i + 1][counters.cells[i]] = counters.sums[i]
        self._since = dense.cumsum(axis=0)

    def look_up(self, cell: int, window: int, updates: int) -> int:
        """Bandwidth of one key over the last `window` intervals."""
        return self._until(cell, updates) - self._until(cell, updates - window)

    def _until(self, cell: int, updates: int) -> int:
        rounds, rest = divmod(updates, RING)
        return rounds * int(self._since[-1, cell]) + int(self._since[rest, cell])

    def recomputed(self, cell: int, window: int, updates: int) -> int:
        """The same from the intervals."""
        total = 0
        for age in range(window):
            at = (updates - 1 - age) % RING
            total += int(self.counters.sums[at][self.counters.cells[at] == cell].sum())
        return total
