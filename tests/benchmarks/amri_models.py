"""Hash indices by access pattern (Works, Rundensteiner and Agu 2012, §9, Fig 9(a)), as a model that
takes the place of an adaptive join's own indices; and trees of joins given true statistics.

A state has some of the indices that its access patterns could have, each hashed by all attributes
of its pattern together.  A probe takes the index with the most of the attributes that it gives,
and compares the rest; if none has only such attributes it reads all rows.  Indices are chosen for
the patterns that were probed most often: once (static), or after each window of requests
(adaptive), when rows that are there are put under the new ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.commands.shared_joins import numbers
from dsms.engine import Engine
from dsms.operators.adaptive_join import AdaptiveJoinOp
from dsms.plan.options import PlanOptions
from dsms.plan.parts import node_at
from dsms.plan.rejoin import Joins, Unfit, key_columns, places, shape_of
from dsms.running.measuring import Figures
from dsms.running.query import RunningQuery
from dsms.state.bit_kernels import GONE, listed, matches, mixed
from dsms.state.bits import IndexedRows, Probes
from dsms.state.hash_chains import LEAST, HashChains
from dsms.state.vec import Matrix


@njit(cache=True, nogil=True)
def _bucket(words, row, pattern, size):
    """The bucket of a row by all attributes of the pattern; size: a power of two."""
    h = np.uint64(0)
    for a in range(words.shape[1]):
        if pattern >> a & 1:
            h = mixed(np.int64(h >> np.uint64(1)) ^ words[row, a])
    return np.int64(h >> np.uint64(32)) & (size - 1)


@njit(cache=True, nogil=True)
def _chain(head, link, start, words, ends, patterns):
    for slot in range(start, len(words)):
        for k in range(len(patterns)):
            link[slot, k] = -1
            if ends[slot] != GONE:
                bucket = _bucket(words, slot, patterns[k], len(head))
                link[slot, k] = head[bucket, k]
                head[bucket, k] = slot


@njit(cache=True, nogil=True)
def _probe(
    head, link, k, pattern, first, keys, given, when, sign, tied, start, enough, words, ts, ends,
    told, seen,
):  # many arrays  # fmt: skip
    """As `hash_chains.probe_chains`, by index k (-1: all rows are read)."""
    rows, slots = np.empty(256, np.int64), np.empty(256, np.int64)
    n, r = 0, start
    while r < len(keys) and n < enough:
        seen[1] += 1
        slot = len(words) - 1 if k < 0 else head[_bucket(keys, r, pattern, len(head)), k]
        while slot >= first:
            seen[0] += 1
            if matches(slot, r, keys, given, when, sign, tied, words, ts, ends, told):
                rows, slots = listed(rows, slots, n, r, slot)
                n += 1
            slot = slot - 1 if k < 0 else link[slot, k]
        r += 1
    return rows[:n], slots[:n], r


@dataclass(slots=True)
class PatternChains(HashChains):
    """indices  how many;  period: probes after which they are chosen, once unless `adaptive`
    patterns  of the indices, int64[indices]"""

    indices: int = 1
    period: int = 1 << 60
    adaptive: bool = False
    patterns: np.ndarray = field(init=False)
    asked: Counter[int] = field(default_factory=Counter)
    scans: int = 0

    def __post_init__(self) -> None:
        HashChains.__post_init__(self)
        every = sorted(range(1, 1 << self.attributes), key=lambda p: (p.bit_count(), p))
        self._take(every[: self.indices])

    def _take(self, patterns: list[int]) -> None:
        self.patterns = np.array(sorted(patterns), np.int64)
        self.head = np.full((len(self.head), len(patterns)), -1, np.int64)
        self.link, self.filed = Matrix(width=len(patterns)), 0

    def file(self, rows: IndexedRows) -> None:
        n = len(rows.ts)
        self.fresh += n - min(self.filed, n)
        self.link.reserve(max(0, n - self.link.n))
        self.link.n = n
        if n > len(self.head):
            size = len(self.head)
            while size < 2 * n:
                size *= 2
            self.head = np.full((size, len(self.patterns)), -1, np.int64)
            self.filed = 0
        _chain(self.head, self.link.view, self.filed, rows.words, rows.ends, self.patterns)
        self.filed = n

    def probe(
        self, rows: IndexedRows, probes: Probes, start: int, enough: int, seen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, int]:
        if self.asked.total() >= self.period:
            self._choose(rows)
        k = self._index(probes.given)
        pattern = 0 if k < 0 else int(self.patterns[k])
        found = _probe(
            *(self.head, self.link.view, k, pattern, rows.first, probes.keys),
            *(probes.given, probes.when, probes.sign, probes.tied, start, enough),
            *(rows.words, rows.ts, rows.ends, rows.told, seen),
        )
        self.asked[probes.given] += found[2] - start
        self.scans += (found[2] - start) * (k < 0)
        return found

    def _choose(self, rows: IndexedRows) -> None:
        """The patterns probed most often get the indices; those of which nothing is asked keep
        theirs."""
        often = [p for p, _ in self.asked.most_common(self.indices)]
        kept = [p for p in self.patterns.tolist() if p not in often]
        wanted = sorted([*often, *kept][: self.indices])
        self.asked.clear()
        if not self.adaptive:
            self.period = 1 << 60
        if wanted != self.patterns.tolist():
            fresh = self.fresh
            self._take(wanted)
            self.file(rows)
            self.fresh = fresh

    def _index(self, given: int) -> int:
        """The index with the most of the attributes given; -1: none has only such."""
        fits = [k for k, p in enumerate(self.patterns.tolist()) if not p & ~given]
        return max(fits, key=lambda k: int(self.patterns[k]).bit_count(), default=-1)

    def share(self, given: int) -> float:
        k = self._index(given)
        if k < 0:
            return 1.0
        by = int(self.patterns[k])
        return float(np.prod([1 / v for a, v in enumerate(self.values) if by >> a & 1]))

    def renumber(self, rows: IndexedRows) -> None:
        fresh = min(self.fresh, len(rows.ts))
        self.head = np.full((LEAST, len(self.patterns)), -1, np.int64)
        self.link, self.filed = Matrix(width=len(self.patterns)), 0
        self.file(rows)
        self.fresh = fresh


def hashed(indices: int, period: int, adaptive: bool, op: AdaptiveJoinOp) -> None:
    """Give each state so many hash indices by access pattern."""
    for stem in op.stems:
        stem.index = PatternChains(
            len(stem.classes), indices=indices, period=period, adaptive=adaptive
        )


# ---------------------------------------------------------------- trees


Values = Mapping[str, float]  # how many values a key column has, by its name


def tree_for(values: Values, window: int, size: int) -> Callable[[Engine], bool]:
    """Give query q, a tree, the planner's best one where key columns have so many values; rows come
    at one in a millisecond to each stream.  Whether it was another one.

    window: µs; size: rows of a window"""

    def take(engine: Engine) -> bool:
        query = engine.runtime.queries["q"]
        assert isinstance(query, RunningQuery)
        (path,) = places(query.phys)
        there, columns = numbers(query.phys, path), key_columns(node_at(query.phys, path))
        measured = {
            k: Figures(
                size * 1e6 / window,
                size,
                {c: values[phys.node.schema[c].name] for c in columns[k]},
            )
            for k, phys in there.items()
        }
        estimates = {k: f.estimate(there[k]) for k, f in measured.items()}
        joins = Joins(node_at(query.phys, path), estimates, PlanOptions(joins="tree"))
        shape = joins.better().shape
        if shape == shape_of(node_at(query.phys, path)):
            return False
        try:
            engine.replanner.change(engine.runtime, query, path, shape, measured, "told")
        except Unfit:
            return False
        return True

    return take
