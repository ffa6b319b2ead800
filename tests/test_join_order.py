"""The order of the windows of a MultiJoin, against the figures of Golab 2006, §5.3."""

from __future__ import annotations

from random import Random

import pytest

from dsms.plan.join_order import JoinedWindow, Nested, Pipelined, probing
from tests.benchmarks.multijoin_orders import by_selectivity, heuristic, ordered, windows

TABLE_5_3 = windows([(10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5)])
# with λ1 = 10: the costs in the text come of that, not of the 100 of the table
TABLE_5_5 = windows([(10, 100, 40), (1, 100, 100), (1, 100, 8), (1, 100, 5)])
TABLE_5_6 = windows([(11, 100, 200), (10, 100, 100), (1, 100, 65), (1, 100, 20)])


def cost(table: list[JoinedWindow], order: str) -> float:
    """Of an order like "2134"."""
    return Nested(table).total([int(c) - 1 for c in order])


def test_probing_orders_are_those_of_table_5_2() -> None:
    assert [probing((0, 1, 2), i) for i in range(3)] == [(1, 2), (0, 2), (0, 1)]


def test_table_5_3() -> None:
    costs = Nested(TABLE_5_3)
    assert cost(TABLE_5_3, "1234") == pytest.approx(16000)
    parts = []
    for i in range(4):
        before, x = 0, 0.0
        for j in probing(range(4), i):
            x += costs.look(i, before, j)
            before |= 1 << j
        parts.append(x)
    assert parts == pytest.approx([3800, 3800, 2400, 6000])
    assert ordered(costs)[-1][0] == pytest.approx(86850)
    assert by_selectivity(costs) == [(0, 1, 2, 3), (1, 0, 2, 3)]


def test_table_5_5() -> None:
    costs = Nested(TABLE_5_5)
    assert (costs.best().cost, costs.best().order) == (pytest.approx(16200), (1, 0, 2, 3))
    assert cost(TABLE_5_5, "2341") == pytest.approx(42600)
    assert cost(TABLE_5_5, "1234") == pytest.approx(21000)
    assert ordered(costs)[-1][0] == pytest.approx(135150)
    assert (1, 2, 3, 0) in by_selectivity(costs)
    assert heuristic(costs)[0] == (1, 0, 2, 3)


def test_table_5_6() -> None:
    costs, every = Nested(TABLE_5_6), ordered(Nested(TABLE_5_6))
    found = [cost(TABLE_5_6, o) for o in ("3412", "3142", "3124", "1234", "2134")]
    assert found == pytest.approx([49542, 47977, 51954, 68200, 79000], abs=0.5)
    assert sum(c for c, _ in every) / len(every) == pytest.approx(63362, abs=0.5)
    assert costs.best().order == (2, 0, 3, 1)
    taken, looked = heuristic(costs)
    assert taken == (2, 0, 3, 1)
    assert {(2, 3, 0, 1), (2, 0, 3, 1), (2, 0, 1, 3)} <= set(looked)


@pytest.mark.parametrize("model", [Nested, Pipelined])
def test_the_best_order_and_the_next_are_those_of_all(model: type) -> None:
    """Sets of windows stand for all orders."""
    random = Random(5)
    for n in (3, 4, 5, 5):
        table = [
            JoinedWindow(
                random.choice((1, 2, 10, 50)), random.randint(1, 500), random.randint(1, 90)
            )
            for _ in range(n)
        ]
        costs, every = model(table), ordered(model(table))
        found = costs.best()
        assert [found.cost, found.second_cost] == pytest.approx([every[0][0], every[1][0]])
        assert costs.total(found.order) == pytest.approx(found.cost)
        assert costs.total(found.second) == pytest.approx(found.second_cost)
