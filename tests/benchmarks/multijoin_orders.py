"""The join ordering heuristic of Golab 2006, §5.3.2, and what it is held against: all orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product

from dsms.plan.join_order import Costs, JoinedWindow

FAST = 5.0  # times the rate of the slowest stream: "faster than the others" (our reading)
Order = tuple[int, ...]


def windows(table: Sequence[tuple[float, float, float]]) -> list[JoinedWindow]:
    """Of rates, lengths and numbers of values: λ, T, v."""
    return [JoinedWindow(rate, rate * length, values) for rate, length, values in table]


def ordered(costs: Costs) -> list[tuple[float, Order]]:
    """All orders with what they cost, the cheapest first."""
    return sorted((costs.total(o), o) for o in permutations(range(len(costs.windows))))


def heuristic(costs: Costs) -> tuple[Order, list[Order]]:
    """What it takes, and all that it looks at: the orders by selectivity, and those in which each
    fast stream stands at any earlier place."""
    slowest = min(w.rate for w in costs.windows)
    fast = [j for j, w in enumerate(costs.windows) if w.rate >= FAST * slowest]
    looked = [o for first in by_selectivity(costs) for o in (first, *_moved(first, fast))]
    return min(looked, key=costs.total), list(dict.fromkeys(looked))


def by_selectivity(costs: Costs) -> list[Order]:
    """The pair that has the fewest results, either way round; then whatever leaves the fewest."""
    pairs = combinations(range(len(costs.windows)), 2)
    a, b = min(pairs, key=lambda p: results(costs.windows, p))
    return [_followed(costs, (a, b)), _followed(costs, (b, a))]


def _followed(costs: Costs, order: Order) -> Order:
    while len(order) < len(costs.windows):
        rest = [j for j in range(len(costs.windows)) if j not in order]
        order = (*order, min(rest, key=lambda j: results(costs.windows, (*order, j))))
    return order


def results(inputs: Sequence[JoinedWindow], some: Sequence[int]) -> float:
    """φ: results of the join of some windows (§5.3.1)."""
    size, values = 1.0, 1.0
    for k, j in enumerate(some):
        size *= inputs[j].size / (max(values, inputs[j].distinct) if k else 1.0)
        values = min(values, inputs[j].distinct) if k else inputs[j].distinct
    return size


def _moved(order: Order, fast: Sequence[int]) -> Iterator[Order]:
    """Each fast stream at its place or an earlier one, the others in order."""
    slow = [j for j in order if j not in fast]
    for places in product(*(range(order.index(j) + 1) for j in fast)):
        made: list[int | None] = [None] * len(order)
        for j, place in zip(fast, places, strict=True):
            if made[place] is not None:
                break
            made[place] = j
        else:
            rest = iter(slow)
            yield tuple(next(rest) if j is None else j for j in made)
