"""The choice of hybrid scheduling against brute force, and what a scan costs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import combinations
from math import gcd, lcm

import pytest

from dsms.schedulers.hybrid import CostModel, cheapest, once, rate
from dsms.schedulers.multiples import Multiples
from dsms.schedulers.tasks import SubGroup, Task
from tests.effort import sampled

# ------------------------------------------------------------------ the choice of hybrid scheduling


def partitions(items: list) -> Iterator[list[list]]:
    if not items:
        yield []
        return
    first, *rest = items
    for parts in partitions(rest):
        yield [[first], *parts]
        for i in range(len(parts)):
            yield [*parts[:i], [first, *parts[i]], *parts[i + 1 :]]


def update_by_update(blocks: list[list[SubGroup]]) -> float:
    """What a schedule costs, counted over a least common multiple of its periods."""
    periods = [min(g.period for g in b) for b in blocks]
    horizon, total = lcm(*periods), 0.0
    for t in range(1, horizon + 1):
        due = [g for b, p in zip(blocks, periods, strict=True) if t % p == 0 for g in b]
        total += once(due) if due else 0.0
    return total / horizon


def random_groups(rng: random.Random, count: int, longest: int = 12) -> list[SubGroup]:
    periods = rng.sample(range(1, longest + 1), count)
    post = rng.choice((0, 1, 10))
    return [SubGroup(p, rng.choice((rng.randint(1, 60), 30)), post * rng.random()) for p in periods]


@pytest.mark.parametrize("seed", range(40))
def test_the_choice_equals_brute_force_over_all_mergings(seed: int):
    rng = random.Random(seed)
    groups = random_groups(rng, rng.randint(1, 5))
    choice = cheapest(groups)
    costs = [update_by_update(parts) for parts in partitions(groups)]
    assert choice.cost == pytest.approx(min(costs), rel=1e-12)
    assert update_by_update([list(b) for b in choice.blocks]) == pytest.approx(
        choice.cost, rel=1e-12
    )
    assert choice.exact
    assert sorted(g.period for b in choice.blocks for g in b) == sorted(g.period for g in groups)


@pytest.mark.parametrize("seed", range(4))
def test_the_choice_equals_brute_force_for_seven_sub_groups(seed: int):
    groups = random_groups(random.Random(seed), 7, 24)
    best = min(rate(parts, Multiples(range(1, 25))) for parts in partitions(groups))
    assert cheapest(groups).cost == pytest.approx(best, rel=1e-4)


def test_sub_groups_need_not_be_neighbours_to_merge():
    """13 runs with 3; 5 stays alone, its post-processing is too expensive."""
    blocks = cheapest([SubGroup(3, 40), SubGroup(5, 2, post=100), SubGroup(13, 41)]).blocks
    assert [[g.period for g in b] for b in blocks] == [[3, 13], [5]]


@pytest.mark.parametrize("count", [60, 200])
def test_many_sub_groups_are_chosen_fast_and_no_worse_than_the_simple_ways(count: int):
    rng = random.Random(count)
    groups = [
        SubGroup(p, rng.randint(p, p + 300), rng.random())
        for p in rng.sample(range(1, 4 * count), count)
    ]
    began = time.thread_time()
    choice = cheapest(groups)
    # of this thread: a tenth of a second where the processor is not shared
    assert time.thread_time() - began < 3
    assert choice.cost <= min(rate([[g] for g in groups]), rate([groups])) * (1 + 1e-9)
    assert len(choice.blocks) < count / 2  # §8.5.2: often half as many tasks
    assert not choice.exact
    assert choice == cheapest(list(reversed(groups)))


@pytest.mark.parametrize("seed", sampled(range(20), 2))
def test_unions_of_multiples_by_inclusion_and_exclusion(seed: int):
    rng = random.Random(seed)
    periods = rng.sample(range(1, 40), rng.randint(1, 6))
    exact = 0.0
    for n in range(1, len(periods) + 1):
        exact += (-1) ** (n + 1) * sum(1 / lcm(*some) for some in combinations(periods, n))
    multiples = Multiples(periods)
    assert multiples.union(periods) == pytest.approx(exact, rel=1e-12 if multiples.exact else 1e-3)


def test_long_periods_have_a_common_measure():
    day = Multiples([86_400, 3_600, 10])
    assert day.exact
    assert day.union([86_400, 3_600]) == pytest.approx(1 / 3_600)
    odd = Multiples([86_399, 3_607, 11])
    assert not odd.exact
    assert odd.union([86_399, 3_607]) == pytest.approx(1 / 86_399 + 1 / 3_607, rel=0.02)
    assert gcd(86_399, 3_607) == 1


def test_what_a_scan_costs():
    task = Task("q", 1, 33, weight=2.0)
    assert [CostModel(s).access(task) for s in ("basic", "interval", "running")] == [64, 20, 2]
