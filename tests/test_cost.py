"""The cost model against figures that Golab 2006 prints, and against what it must prefer."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from dsms.plan.chooser import Chooser
from dsms.plan.demand import Demand, demand
from dsms.plan.estimate import Estimate
from dsms.plan.options import PlanOptions
from dsms.plan.physical import Phys
from dsms.plan.planner import notes, plan
from dsms.plan.statistics import ColumnStatistics, Statistics, selectivity
from dsms.sql import logical as lp
from dsms.sql.expr import Call, Lit
from dsms.sql.types import BOOL, INT, STRING
from tests.oracle import plans as p

SECOND = 1_000_000
STREAMS = [replace(p.stream(f"s{i}", a=INT, b=INT), leaf=i) for i in range(5)]
# rate, window, distinct values
TABLE_5_3 = {1: (10, 100, 500), 2: (1, 100, 50), 3: (1, 200, 40), 4: (3, 100, 5)}
TABLE_5_5 = {1: (100, 100, 40), 2: (1, 100, 100), 3: (1, 100, 8), 4: (1, 100, 5)}


def stats_of(table: dict[int, tuple[int, int, int]]) -> Statistics:
    rates = {f"s{i}": float(rate) for i, (rate, _, _) in table.items()}
    return Statistics(rates, distinct={(f"s{i}", 0): float(v) for i, (_, _, v) in table.items()})


def windows(table: dict[int, tuple[int, int, int]]) -> dict[int, lp.Window]:
    return {i: p.window(STREAMS[i], "time", t * SECOND) for i, (_, t, _) in table.items()}


def joined(order: tuple[int, ...], table: dict[int, tuple[int, int, int]]) -> lp.Node:
    first, *others = (windows(table)[i] for i in order)
    for other in others:
        first = p.join(first, other, "a")
    return first


def estimate(node: lp.Node, stats: Statistics) -> Estimate:
    return Chooser(stats, PlanOptions()).build(node)[1]


@pytest.mark.parametrize(
    ("inputs", "size"),
    [((1, 2), 200), ((1, 3), 400), ((1, 4), 600), ((2, 3), 400), ((2, 4), 600), ((3, 4), 1500),
     ((1, 2, 3), 800), ((1, 2, 4), 1200)],
)  # a table  # fmt: skip
def test_sizes_of_joins_are_those_of_table_5_4(inputs: tuple[int, ...], size: int) -> None:
    assert estimate(joined(inputs, TABLE_5_3), stats_of(TABLE_5_3)).size == pytest.approx(size)


def test_a_join_produces_what_each_side_finds_in_the_other() -> None:
    """λ1·C2/v + λ2·C1/v, and Little's law: size = rate · mean lifetime."""
    found = estimate(joined((1, 2), TABLE_5_3), stats_of(TABLE_5_3))
    assert found.rate == pytest.approx(10 * 100 / 500 + 1 * 1000 / 500)
    assert found.life == pytest.approx(50)


def cost(node: lp.Node, stats: Statistics, **options: object) -> float:
    return Chooser(stats, PlanOptions(**options)).build(node)[0].cost.total  # type: ignore[arg-type]


@pytest.mark.parametrize("table", [TABLE_5_3, TABLE_5_5])
def test_reordering_finds_a_tree_as_cheap_as_the_best_pipeline(
    table: dict[int, tuple[int, int, int]],
) -> None:
    stats = stats_of(table)
    costs = [
        cost(p.output(joined(order, table), "rstream"), stats) for order in permutations(table)
    ]
    found = plan(p.output(joined((4, 3, 2, 1), table), "rstream"), stats)
    assert found.cost.total <= min(costs) * 1.01 + restoring(found)
    assert max(costs) > 1.1 * min(costs)


def restoring(phys: Phys) -> float:
    """What the projection that puts the columns back costs."""
    own = phys.cost.own if isinstance(phys.node, lp.Project) else 0.0
    return own + sum(restoring(c) for c in phys.children)


# ---------------------------------------------------------------- Query 4 (§3.5.3, §3.6.5)

W = 100 * SECOND


def query_4() -> lp.Output:
    s1, s2, s3 = (p.window(STREAMS[i], "time", W) for i in (1, 2, 3))
    return p.output(p.semi(p.join(s1, s2, "a"), s3, "a", anti=True), "rstream")


def negation_stands_on_top(phys: Phys) -> bool:
    return isinstance(phys.children[0].node, lp.SemiJoin)


def keys(v1: float, v2: float, v3: float) -> dict[tuple[str, int], float]:
    return {("s1", 0): v1, ("s2", 0): v2, ("s3", 0): v3}


def test_a_selective_negation_goes_below_a_join_that_multiplies() -> None:
    big = Statistics({"s1": 100, "s2": 100, "s3": 100}, distinct=keys(20, 20, 20))
    chosen = plan(query_4(), big)
    assert not negation_stands_on_top(chosen)
    assert "negation_push_down" in chosen.rules


def test_negation_stays_above_a_join_of_few_results() -> None:
    few = Statistics({"s1": 10, "s2": 10, "s3": 10}, distinct=keys(10_000, 10_000, 10_000))
    chosen = plan(query_4(), few)
    assert negation_stands_on_top(chosen)
    pushed = plan(query_4(), few, PlanOptions(negation="down"))
    assert not negation_stands_on_top(pushed)
    assert chosen.cost.total < pushed.cost.total


def test_negation_can_be_pulled_up_too() -> None:
    s1, s2, s3 = (p.window(STREAMS[i], "time", W) for i in (1, 2, 3))
    below = p.output(p.join(p.semi(s1, s3, "a", anti=True), s2, "a"), "rstream")
    few = Statistics({"s1": 10, "s2": 10, "s3": 10}, distinct=keys(10_000, 10_000, 10_000))
    assert negation_stands_on_top(plan(below, few))
    assert "negation_pull_up" in plan(below, few).rules


# ---------------------------------------------------------------- strategies and structures


def structures(phys: Phys) -> list[str]:
    own = [f"{type(phys.node).__name__} {s.of} {s.kind}" for s in phys.states]
    return own + [s for c in phys.children for s in structures(c)]


@pytest.mark.parametrize(
    ("strategy", "kinds"),
    [
        ("upa", ["Output output calendar", "Join left fifo", "Join right fifo"]),
        ("direct", ["Output output list", "Join left list", "Join right list"]),
        (
            "nt",
            [
                "Output output hash",
                "Join left hash",
                "Join right hash",
                "Window window fifo",
                "Window window fifo",
            ],
        ),
    ],
)
def test_structures_follow_the_strategy(strategy: str, kinds: list[str]) -> None:
    query = p.output(joined((1, 2), TABLE_5_3), "rstream")
    assert structures(plan(query, options=PlanOptions(strategy))) == kinds  # type: ignore[arg-type]


def test_update_patterns_make_the_cheapest_plan() -> None:
    """Query 1 with many results: UPA below both others, DIRECT far above (Fig 3.9)."""
    query, stats = p.output(joined((1, 2), TABLE_5_3), "rstream"), Statistics({"s1": 10, "s2": 10})
    upa, direct, nt = (
        plan(query, stats, PlanOptions(s)).cost.total for s in ("upa", "direct", "nt")
    )
    assert upa < nt < direct


def test_a_count_window_is_kept_by_identity() -> None:
    counted = p.window(STREAMS[1], "rows", 5)
    assert structures(plan(p.output(counted, "rstream"))) == [
        "Output output hash",
        "Window window fifo",
    ]


def test_a_strict_edge_whose_rows_also_die_silently_is_a_calendar() -> None:
    """Hashed state waits for deletions to be told, but most of these rows just leave their
    window."""
    negation = p.semi(windows(TABLE_5_3)[1], windows(TABLE_5_3)[2], "a", anti=True)
    assert structures(plan(p.output(negation, "rstream")))[0] == "Output output calendar"


def distinct_variant(node: lp.Node, strategy: str = "upa", distinct: str = "auto") -> str:
    options = PlanOptions(strategy, distinct=distinct, optimize=False)  # type: ignore[arg-type]

    def find(phys: Phys) -> str:
        if isinstance(phys.node, lp.Distinct):
            return phys.variant
        return next(filter(None, map(find, phys.children)), "")

    return find(plan(p.output(node, "rstream"), options=options))


def test_distinct_is_chosen_by_its_input() -> None:
    window = windows(TABLE_5_3)[1]
    plain, counted = p.distinct(window), p.distinct(p.window(STREAMS[1], "rows", 5))
    assert [distinct_variant(plain, s) for s in ("upa", "direct", "nt")] == [
        "delta-star",
        "input-storing",
        "counting",
    ]
    assert [distinct_variant(counted, s) for s in ("upa", "direct", "nt")] == ["counting"] * 3
    assert distinct_variant(p.distinct(STREAMS[1]), "nt") == "delta-star"
    assert distinct_variant(plain, distinct="counting") == "counting"
    assert distinct_variant(counted, distinct="delta-star") == "counting"


def test_a_value_does_not_change_hands_where_its_age_is_asked_for() -> None:
    inner = p.distinct(windows(TABLE_5_3)[1])
    table = p.table("n", False, a=INT, y=STRING)
    assert distinct_variant(p.join_nrr(inner, table, "a")) == "counting"
    assert distinct_variant(p.append(inner)) == "counting"
    assert distinct_variant(p.group(inner, ("a",), p.agg(inner, "count", "b"))) == "counting"
    assert distinct_variant(p.group(inner, (), p.agg(inner, "first", "b"))) == "counting"
    assert distinct_variant(p.group(inner, (), p.agg(inner, "count", "b"))) == "delta-star"
    assert distinct_variant(p.join(inner, windows(TABLE_5_3)[2], "a")) == "delta-star"


def test_nothing_but_values_counts_on_the_right_of_exists() -> None:
    semi = p.semi(STREAMS[1], STREAMS[2], "a")
    assert demand(semi, 1, Demand.AGE) is Demand.NOTHING
    assert demand(semi, 0, Demand.AGE) is Demand.AGE


def test_partitions_are_as_asked_or_fit_the_size() -> None:
    query = p.output(joined((1, 2), TABLE_5_3), "rstream")

    def calendar(rate: float, **options: int) -> tuple[int, bool]:
        made = plan(query, Statistics({"s1": rate, "s2": rate}), PlanOptions(**options))  # type: ignore[arg-type]
        return made.states[0].partitions, made.states[0].fixed

    assert calendar(0.1) == (10, False)
    assert 10 < calendar(10)[0] < 4096
    assert calendar(10_000) == (4096, False)
    assert calendar(10, partitions=50) == (50, True)


# ---------------------------------------------------------------- selectivity


@pytest.mark.parametrize(
    ("fn", "value", "share"),
    [("eq", 7, 0.1), ("eq", 1, 0.5), ("ne", 1, 0.5), ("lt", 3, 1 / 3), ("eq", None, 0.0)],
)
def test_selectivity(fn: str, value: object, share: float) -> None:
    columns = [ColumnStatistics(6, ((1, 0.5),))]
    assert selectivity(
        Call(fn, (p.col(STREAMS[0], "a"), Lit(value, INT)), BOOL), columns
    ) == pytest.approx(share)


def test_selectivities_combine() -> None:
    columns = [ColumnStatistics(10)]
    one = Call("eq", (p.col(STREAMS[0], "a"), Lit(1, INT)), BOOL)
    two = Call("in", (p.col(STREAMS[0], "a"), Lit(1, INT), Lit(2, INT)), BOOL)
    assert selectivity(Call("and", (one, two), BOOL), columns) == pytest.approx(0.02)
    assert selectivity(Call("or", (one, one), BOOL), columns) == pytest.approx(0.19)
    assert selectivity(Call("not", (one,), BOOL), columns) == pytest.approx(0.9)


# ---------------------------------------------------------------- notes and the default output


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (p.join(STREAMS[1], windows(TABLE_5_3)[2], "a"), "the left input has no window"),
        (p.distinct(STREAMS[1]), "number of different rows"),
        (p.group(STREAMS[1], ("a",), p.agg(STREAMS[1], "count", "b")), "number of groups"),
        (p.window(STREAMS[1], "partitioned", 3, by=(0,)), "number of partitions (3 rows each)"),
        (STREAMS[1], "the answer grows without bound"),
    ],
)
def test_state_that_grows_is_told(node: lp.Node, text: str) -> None:
    assert any(text in note for note in notes(plan(p.output(node, "rstream"))))


def test_bounded_state_is_not_complained_about() -> None:
    assert notes(plan(query_4())) == ()
    assert notes(plan(p.output(STREAMS[1], "istream"))) == ()


def test_the_default_output_follows_the_plan_as_bound() -> None:
    def kind(node: lp.Node, **options: object) -> str:
        return plan(p.output(node), options=PlanOptions(**options)).node.kind  # type: ignore[union-attr, arg-type]

    assert kind(p.join(STREAMS[1], STREAMS[2], "a")) == "istream"
    assert kind(windows(TABLE_5_3)[1]) == "rstream"
    outer = p.join(STREAMS[1], STREAMS[2], "a", kind="left")
    rejected = lp.Select(
        outer, Call("gt", (p.col(STREAMS[1], "a"), p.col(outer, "b")), BOOL), outer.schema
    )
    assert kind(rejected) == kind(rejected, optimize=False) == "rstream"
