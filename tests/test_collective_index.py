"""CI-COUNT and CI-SUM (Arasu and Widom 2004, §4) by themselves: what a look-up finds against counts
over the elements, and a sub-window's step against UPDATE of Figure 7, element by element."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.synopses import collective
from dsms.synopses.collective import (
    ABSENT,
    CollectiveIndex,
    first_beyond,
    last_within,
    level_of,
    start,
)
from dsms.synopses.extreme_index import ExtremeIndex
from tests.effort import examples

GROUPS = 5


def error(p: int) -> float:
    return 3 / 4 if p == 1 else 2 / (p + 2)


class Figure7:
    """State and UPDATE as printed, for one group."""

    def __init__(self) -> None:
        self.m = 0
        self.stamps: dict[int, int] = {}

    def update(self, stamp: int) -> None:
        self.m += 1
        z = ((self.m + 1) & -(self.m + 1)).bit_length() - 1
        for level in range(z, 0, -1):
            if level - 1 in self.stamps:
                self.stamps[level] = self.stamps[level - 1]
        self.stamps[0] = stamp


def stream(rng: Random, subs: int) -> list[dict[int, int]]:
    """For each sub-window how many elements (or what sums) come to which group."""
    most = rng.choice([1, 3, 50, 1000])
    rate = rng.random()
    return [
        {g: rng.randint(0, most) for g in range(GROUPS) if rng.random() < rate} for _ in range(subs)
    ]


def push(index: CollectiveIndex, sub: int, oldest: int, came: dict[int, int]) -> None:
    came = {g: n for g, n in came.items() if n}
    index.update(sub, oldest, *(np.array(list(x), np.int64) for x in (came, came.values())))


def counts(rows: list[dict[int, int]], low: int) -> dict[int, int]:
    out: dict[int, int] = defaultdict(int)
    for came in rows[low:]:
        for g, n in came.items():
            out[g] += n
    return out


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(60), deadline=None)
def test_a_step_is_update_of_figure_7(seed):
    rng = Random(seed)
    index = CollectiveIndex(p=1, levels=12)
    index.grow(GROUPS)
    printed = defaultdict(Figure7)
    for sub, came in enumerate(stream(rng, rng.randint(1, 40))):
        push(index, sub, 0, came)
        for g, n in came.items():
            for _ in range(n):
                printed[g].update(sub)
        for g in range(GROUPS):
            expected = [printed[g].stamps.get(level, ABSENT) for level in range(12)]
            assert index.stamps[:, g].tolist() == expected


@pytest.mark.parametrize("p", range(1, 8))
def test_levels_follow_each_other(p):
    """Each distance has one level; p levels of each size (§4.1.2)."""
    found = [int(level_of(p, d)) for d in range(1, 2000)]
    assert found == sorted(found)
    for level in range(found[-1]):
        mine = [d for d in range(1, 2000) if found[d - 1] == level]
        assert mine[0] == start(p, level) and len(mine) == 2 ** (level // p)
        for d in mine:
            assert last_within(p, d) == level - (d < mine[-1])
            assert first_beyond(p, d) == level + (d > mine[0])


@given(seed=st.integers(0, 2**32), p=st.integers(1, 6))
@settings(max_examples=examples(150), deadline=None)
def test_look_ups_find_all_and_little_else(seed, p):
    """Any window and threshold of a random stream: a superset, within the error of p levels."""
    rng = Random(seed)
    rows = stream(rng, rng.randint(1, 40))
    reach = rng.randint(1, 40)
    index = CollectiveIndex(p=p, levels=14 * p)
    for sub, came in enumerate(rows):
        push(index, sub, sub + 1 - reach, came)
        low = rng.randint(max(0, sub + 1 - reach), sub + 1)
        exact, v = counts(rows[: sub + 1], low), rng.choice([0, 1, 2, 7, rng.randint(0, 5000)])
        found = set(index.above(low, v).tolist())
        assert {g for g, n in exact.items() if n > v} <= found
        assert all(exact[g] > v * (1 - error(p)) for g in found)
        if v:
            found = set(index.below(low, v).tolist())
            assert {g for g, n in exact.items() if 0 < n < v} <= found
            assert all(0 < exact[g] < v * (1 + 2 * error(p)) for g in found)


@given(seed=st.integers(0, 2**32), p=st.integers(1, 4))
@settings(max_examples=examples(100), deadline=None)
def test_units_leave_out_nothing_that_is_right(seed, p):
    rng = Random(seed)
    rows = stream(rng, rng.randint(1, 30))
    least = rng.randint(0, 3000)
    most = least + rng.randint(0, 3000)
    reach = rng.randint(1, 30)
    index = CollectiveIndex.between(least, most, p)
    assert index.serves(least, most) and index.levels <= 8 * p + p * (most // (least + 1) + 1)
    for sub, came in enumerate(rows):
        push(index, sub, sub + 1 - reach, came)
        low, v = rng.randint(max(0, sub + 1 - reach), sub + 1), rng.randint(least, most)
        exact, found = counts(rows[: sub + 1], low), set(index.above(low, v).tolist())
        assert {g for g, n in exact.items() if n > v} <= found
        unit = 2**index.unit
        assert all(exact[g] > v * (1 - error(p)) - 2 * unit for g in found)


def test_thresholds_that_it_was_not_made_for_need_another():
    index = CollectiveIndex.between(100, 1000, 2)
    assert index.serves(100, 1000) and index.serves(500, 900)
    assert not index.serves(10, 1000)
    assert not index.serves(100, 100_000)


def test_what_is_negative_spoils_look_ups_until_it_has_left():
    index = CollectiveIndex(levels=8)
    push(index, 0, 0, {0: 5, 1: 2})
    assert index.exact_from(0)
    push(index, 1, 0, {0: -5, 1: 3})
    assert not index.exact_from(0) and not index.exact_from(1) and index.exact_from(2)
    push(index, 2, 0, {0: 4})
    assert 0 in index.above(2, 3).tolist()
    push(index, 3, 0, {0: collective.MOST + 1})
    assert not index.exact_from(3) and index.exact_from(4)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(40), deadline=None)
def test_long_streams_begin_to_count_anew(seed):
    """Sums and stamps that would grow without end are told from later ones; look-ups don't
    notice."""
    rng = Random(seed)
    rows = stream(rng, 60)
    plain, other = CollectiveIndex(p=2, levels=20), CollectiveIndex(p=2, levels=20)
    kept = collective.ROOM
    try:
        for sub, came in enumerate(rows):
            collective.ROOM = kept
            push(plain, sub, sub - 9, came)
            collective.ROOM = 3
            push(other, sub, sub - 9, came)
            for low in range(max(0, sub - 8), sub + 1):
                v = rng.randint(0, 900)
                assert plain.above(low, v).tolist() == other.above(low, v).tolist()
    finally:
        collective.ROOM = kept
    assert other.origin > plain.origin


@pytest.mark.parametrize("to", [2**31 - 1, 2**31, 2**31 + 5, 2**40, 2**61])
def test_a_long_silence_leaves_nothing(to):
    """As many sub-windows may pass as no stamp can tell apart."""
    index = CollectiveIndex(p=2, levels=20)
    push(index, 0, -9, {0: 7, 1: 3})
    push(index, to, to - 9, {1: 6})
    assert index.above(to - 8, 4).tolist() == [1] and index.above(to, 0).tolist() == [1]


def test_sums_beyond_all_numbers():
    index, most = CollectiveIndex(p=1, levels=61), collective.MOST
    for sub in range(40):
        push(index, sub, 0, {0: most, 1: 1})
        assert 0 < index.total[0] < 2**63
        assert index.above(sub, most - 1).tolist() == [0]
        assert index.above(sub, 3).tolist() == [0]
        assert index.above(max(0, sub - 3), 3).tolist() == ([0, 1] if sub > 1 else [0])


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(100), deadline=None)
def test_groups_with_large_values(seed):
    """CI-MAX: exact at its bounds, a superset between them."""
    rng = Random(seed)
    thresholds = [rng.uniform(-3, 3) for _ in range(rng.choice([1, 3, 60]))]
    index = ExtremeIndex(ExtremeIndex.bounds_for(thresholds))
    assert index.levels <= 16 and index.bounds[0] == min(thresholds)
    rows: list[dict[int, float]] = []
    for sub in range(rng.randint(1, 40)):
        rows.append({g: rng.gauss(0, 1.5) for g in range(GROUPS) if rng.random() < 0.3})
        index.update(sub, np.array(list(rows[-1]), np.int64), np.array(list(rows[-1].values())))
        low, v = rng.randint(0, sub + 1), rng.choice(thresholds)
        found = set(index.above(low, v).tolist())
        passed = {b for b in index.bounds if b <= v}
        assert found == {g for came in rows[low:] for g, x in came.items() if x >= max(passed)}
        assert found >= {g for came in rows[low:] for g, x in came.items() if x >= v}
