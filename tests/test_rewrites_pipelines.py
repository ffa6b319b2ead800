"""Rewrite rules: joins of many windows in one operator, where that costs less or is asked for."""

from __future__ import annotations

from dataclasses import replace

from dsms.plan.chooser import Chooser
from dsms.plan.optimize import apply
from dsms.plan.options import PlanOptions
from dsms.plan.planner import plan
from dsms.plan.rules import Context
from dsms.plan.statistics import Statistics
from dsms.sql import logical as lp
from dsms.sql.types import INT, STRING
from tests.oracle import plans as p
from tests.plan_forms import shape
from tests.test_rewrites import BY_NAME, SW, TW, UW, R, three, win

MANY_RESULTS = Statistics(
    dict.fromkeys("stu", 100.0), distinct={(n, i): 5.0 for n in "stu" for i in (0, 1)}
)


def piped(node: lp.Node, stats: Statistics = MANY_RESULTS, joins: str = "auto") -> lp.Node:
    chooser = Chooser(stats, PlanOptions(joins=joins))  # type: ignore[arg-type]
    ctx = Context(chooser.options, lambda n: chooser.build(n)[0])
    return apply(BY_NAME["pipeline_joins"], node, ctx)


def few(shared: str) -> Statistics:
    """Of s, t and u, of which two have few results with each other."""
    values = {(n, 0): 5000.0 if n in shared else 5.0 for n in "stu"}
    return Statistics(dict.fromkeys("stu", 100.0), distinct=values)


def test_windows_with_many_results_are_joined_in_one_operator() -> None:
    for keys in (((0, 3), (0, 6)), ((0, 3), (3, 6))):
        found = piped(three(*keys))
        assert shape(found) == f"MultiJoin s.a = t.a = u.a ({SW}, {TW}, {UW})"
        assert found.schema == three().schema


def test_conditions_that_hold_for_some_windows_are_asked_of_results() -> None:
    found = piped(three((0, 3), (0, 6), (1, 4), (1, 8)), joins="pipeline")
    assert shape(found).startswith("MultiJoin s.a = t.a = u.a AND ")
    assert piped(three((0, 3), (1, 7)), joins="pipeline") == three((0, 3), (1, 7))


def test_windows_equal_in_several_columns_have_several_keys() -> None:
    found = piped(three((0, 3), (0, 6), (1, 4), (1, 7)))
    assert isinstance(found, lp.MultiJoin)
    assert len(found.keys) == 2


def test_any_equalities_that_connect_all_windows_can_be_joined_adaptively() -> None:
    chain = piped(three((0, 3), (1, 7)), joins="adaptive")
    assert shape(chain).startswith("MultiJoin ")
    assert isinstance(chain, lp.MultiJoin)
    assert sorted(same.count(None) for same in chain.keys) == [1, 1]
    assert chain.schema == three().schema
    assert isinstance(piped(three((0, 3), (0, 6)), joins="adaptive"), lp.MultiJoin)
    apart = three((0, 3))
    assert piped(apart, joins="adaptive") == apart


def test_a_cycle_is_joined_adaptively_if_that_costs_less() -> None:
    """A chain is not: no window of it is asked for in more than two ways."""
    cycle = three((0, 3), (1, 7), (4, 6))
    found = piped(cycle)
    assert isinstance(found, lp.MultiJoin)
    assert [same.count(None) for same in found.keys] == [1, 1, 1]
    rare = Statistics(
        dict.fromkeys("stu", 100.0), distinct={(n, i): 1e6 for n in "stu" for i in (0, 1)}
    )
    assert not isinstance(piped(cycle, rare), lp.MultiJoin)
    assert not isinstance(piped(three((0, 3), (1, 7))), lp.MultiJoin)


def test_tables_are_joined_beside() -> None:
    found = piped(p.join(three((0, 3), (0, 6)), R, "a"), joins="pipeline")
    assert f"MultiJoin s.a = t.a = u.a (Join s.a = r.a ({SW}, Table r), {TW}" in shape(found)


def test_a_tree_of_few_results_may_be_an_input() -> None:
    """Which sub-results are worth keeping (§9.2)."""
    v = win(replace(p.stream("v", a=INT, b=INT, c=STRING), leaf=5))
    rates = {"s": 10.0, "t": 50.0, "u": 10.0, "v": 50.0}
    values = {("s", 0): 2.0, ("t", 0): 100.0, ("u", 0): 5.0, ("v", 0): 10_000.0}
    found = piped(p.join(three((0, 3), (0, 6)), v, "a"), Statistics(rates, distinct=values))
    assert f", {TW}, {UW})" in shape(found)
    assert "MultiJoin s.a = t.a = u.a (Join s.a = v.a (" in shape(found)


def test_a_query_can_say_how_it_joins() -> None:
    node = p.output(three((0, 3), (0, 6)), "rstream")
    for stats in (MANY_RESULTS, few("stu")):
        forced = plan(node, stats, PlanOptions(joins="pipeline"))
        assert "MultiJoin" in shape(forced.node)
        assert "pipeline_joins" in forced.rules
        tree = plan(node, stats, PlanOptions(joins="tree"))
        assert "MultiJoin" not in shape(tree.node)
        auto = plan(node, stats)
        assert auto.cost.total <= min(tree.cost.total, forced.cost.total) * (1 + 1e-9)
