"""The bit-address index against a filter over all rows."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from dsms.plan.index_choice import IndexConfig
from dsms.state.bit_kernels import GONE
from dsms.state.bits import BitIndex, IndexedRows, Probes
from dsms.state.hash_chains import HashChains, different
from tests.effort import sampled


def drawn_config(random: Random, attributes: int) -> IndexConfig:
    bits = tuple(random.choice((0, 0, 1, 2, 3, 5)) for _ in range(attributes))
    high = [a for a in range(attributes) if bits[a]]
    random.shuffle(high)
    return IndexConfig(bits, tuple(high))


class Model:
    """All rows, in an index and beside it."""

    def __init__(self, random: Random, attributes: int) -> None:
        self.random, self.attributes = random, attributes
        empty = np.empty(0, np.int64)
        self.rows = IndexedRows(np.empty((0, attributes), np.int64), empty, empty, empty > 0)
        self.index = BitIndex(attributes, drawn_config(random, attributes))
        self.chains = HashChains(attributes)
        self.now = 0

    def arrive(self, n: int) -> None:
        rng = np.random.default_rng(self.random.randrange(1 << 30))
        ts = self.now + np.sort(rng.integers(0, 5, n))
        ends = np.where(rng.random(n) < 0.1, GONE, ts + rng.integers(1, 40, n))
        words = rng.integers(0, 4, (n, self.attributes))
        rows, self.now = self.rows, int(ts[-1]) if n else self.now
        self.rows = IndexedRows(
            np.concatenate([rows.words, words]),
            np.concatenate([rows.ts, ts]),
            np.concatenate([rows.ends, ends]),
            np.concatenate([rows.told, rng.random(n) < 0.3]),
        )
        self.index.file(self.rows)
        self.chains.file(self.rows)

    def change(self) -> None:
        """Seal, take another configuration, sort again, drop, close gaps."""
        index, random = self.index, self.random
        for what in random.sample(("seal", "use", "sort", "drop", "close"), 2):
            config = drawn_config(random, self.attributes)
            if what == "seal":
                index.seal(self.rows)
            elif what == "use":
                index.use(config, self.rows)
            elif what == "sort":
                places = range(len(index.table))
                index.sort_again([p for p in places if random.random() < 0.5], config, self.rows)
            elif what == "drop":
                index.drop(self.now)
            else:
                kept = np.flatnonzero(self.rows.ends > self.now)
                where = np.full(len(self.rows.ts), -1, np.int64)
                where[kept] = np.arange(len(kept))
                rows = self.rows
                arrays = (rows.words[kept], rows.ts[kept], rows.ends[kept], rows.told[kept])
                self.rows = IndexedRows(*arrays)
                index.renumber(where, self.rows, random.choice((0, 30)))
                self.chains.count(rows)
                self.chains.renumber(self.rows)

    def check(self) -> None:
        n, random = 12, self.random
        rng = np.random.default_rng(random.randrange(1 << 30))
        given = random.randrange(1 << self.attributes)
        probes = Probes(
            rng.integers(0, 4, (n, self.attributes)),
            given,
            self.now + np.sort(rng.integers(0, 9, n)),
            rng.choice(np.array([1, -1], np.int8), n),
            random.random() < 0.5,
        )
        for index in (self.index, self.chains):
            found, start, seen = [], 0, np.zeros(3, np.int64)
            while start < n and (given or index is self.index):
                r, s, start = index.probe(self.rows, probes, start, random.choice((1, 50)), seen)
                found += list(zip(r.tolist(), s.tolist(), strict=True))
            if start == n:
                assert sorted(found) == self.expected(probes)
                assert seen[0] >= len(found)

    def expected(self, p: Probes) -> list[tuple[int, int]]:
        out, rows = [], self.rows
        for r, (now, sign) in enumerate(zip(p.when, p.sign, strict=True)):
            for s in range(len(rows.ts)):
                ts, end = rows.ts[s], rows.ends[s]
                if sign > 0:
                    there = end > now and (ts < now or (p.tied and ts == now))
                else:
                    dies = p.tied and end == now and rows.told[s]
                    there = ts < now and (end > now or dies)
                same = (rows.words[s] == p.keys[r]) | [
                    not p.given >> a & 1 for a in range(self.attributes)
                ]
                if there and same.all():
                    out.append((r, s))
        return out


@pytest.mark.parametrize("seed", sampled(range(24), 4))
def test_it_finds_what_a_filter_finds(seed: int) -> None:
    """Under any configurations, and however its partitions come, change and go."""
    random = Random(seed)
    model = Model(random, random.choice((1, 2, 3, 4)))
    for _ in range(14):
        model.arrive(random.choice((0, 1, 5, 40)))
        model.check()
        model.change()
        model.check()


def test_a_given_attribute_spares_rows() -> None:
    """High bits that are given leave one range; low ones alone several; none, all rows."""
    n = 4096
    rng = np.random.default_rng(1)
    words, none = rng.integers(0, 1 << 40, (n, 2)), np.zeros(n, np.int64)
    rows = IndexedRows(words, none, none + 9, none > 0)
    index = BitIndex(2, IndexConfig((5, 5), (0, 1)))
    index.file(rows)
    index.seal(rows)
    for given, most, visits in ((1, 2 * n >> 5, 1), (2, 2 * n >> 5, 32), (3, 40, 1), (0, n, 1)):
        seen = np.zeros(3, np.int64)
        now = np.ones(1, np.int64)
        probes = Probes(words[7:8], given, now, now.astype(np.int8), False)
        found = index.probe(rows, probes, 0, 1 << 20, seen)[1]
        assert 7 in found
        assert seen[0] <= most
        assert seen[1] == visits
        assert seen[2] == (given == 0)


def test_what_expired_is_dropped_whole() -> None:
    none = np.zeros(10, np.int64)
    rows = IndexedRows(none.reshape(10, 1), none, none + 5, none > 0)
    index = BitIndex(1, IndexConfig((2,), (0,)))
    index.file(rows)
    index.seal(rows)
    index.drop(4)
    assert index.configs() == [(IndexConfig((2,), (0,)), 10)]
    index.drop(5)
    assert index.configs() == []


@pytest.mark.parametrize("most", [0, 1, 3, 100, 10**9])
def test_values_are_counted(most: int) -> None:
    rng = np.random.default_rng(most)
    for count in (0, 1, 2, 3, 700):
        words = rng.integers(-most, most + 1, (count, 3))
        words[: count // 3] = np.iinfo(np.int64).min
        for start in (0, count // 2, count):
            want = [len(np.unique(words[start:, a])) for a in range(3)]
            assert different(words, start).tolist() == want
