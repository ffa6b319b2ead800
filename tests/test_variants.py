"""What EXPLAIN prints is what runs: each variant of a node is one operator, and the planner alone
chooses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dsms.aggregates.parts.words import Coding, coding
from dsms.engine import Engine
from dsms.operators.build import Builder
from dsms.operators.passing import Piped
from dsms.periodic.query import PeriodicQuery
from dsms.plan.explain_text import nodes
from dsms.plan.options import PlanOptions
from dsms.plan.physical import Phys
from dsms.plan.planner import plan
from dsms.plan.variants import one_word
from dsms.running.assemble import Leaves, assemble
from dsms.sql.types import Kind, Type
from tests.stories.declared import Declared

DDL = """
CREATE STREAM s (a INT, b INT, c STRING, d DECIMAL(30, 2), t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM u (a INT, b INT, c STRING, d DECIMAL(30, 2), t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM v (a INT, b INT, t TIMESTAMP) TIMESTAMP BY t KEY (a);
CREATE TABLE r (k INT PRIMARY KEY, y STRING);
CREATE TABLE n (k INT PRIMARY KEY, y STRING) NON RETROACTIVE;
"""
S, U = "s [RANGE 1 MINUTE]", "u [RANGE 1 MINUTE]"
INTERNAL = "[RANGE 1 MINUTE INTERNAL]"

QUERIES = [
    f"SELECT MAX(a) AS m FROM {S}",
    f"SELECT MIN(c) AS m FROM {S}",
    f"SELECT MIN(d) AS m FROM {S}",
    "SELECT MIN(a) AS m FROM s [ROWS 5]",
    "SELECT MIN(b) AS m FROM v [RANGE 1 MINUTE]",
    "SELECT MIN(a) AS m FROM s",
    f"SELECT MIN(a) AS m, COUNT(*) AS n FROM {S}",
    f"SELECT b, MIN(a) AS m FROM {S} GROUP BY b",
    f"SELECT MIN(s.a) AS m FROM {S}, {U} WHERE s.a = u.a",
    f"SELECT DISTINCT a FROM {S}",
    "SELECT DISTINCT a FROM s [ROWS 5]",
    f"SELECT a FROM {S} ORDER BY a LIMIT 2 PER b",
    "SELECT a FROM s [ROWS 5] ORDER BY a LIMIT 2 PER b",
    "SELECT a FROM s ORDER BY a LIMIT 2",
    f"SELECT s.a FROM {S}, {U} WHERE s.a = u.a",
    f"SELECT s.a FROM {S}, {U} WHERE s.a < u.a",
    f"SELECT s.a FROM {S}, {U} WHERE s.a = u.a OR s.b = u.b AND s.c < u.c",
    f"SELECT s.a FROM {S}, {U}, u [ROWS 5] v WHERE s.a = u.a AND u.a = v.a",
    f"SELECT s.a FROM {S}, {U}, u [ROWS 5] v WHERE s.a = u.a AND u.b = v.b",
    f"SELECT s.a FROM {S} LEFT JOIN {U} ON s.a = u.a",
    f"SELECT s.a FROM {S} LEFT JOIN {U} ON s.a < u.a",
    f"SELECT s.a, n.y FROM {S}, n WHERE s.a = n.k",
    "SELECT s.a, n.y FROM s [ROWS 5], n WHERE s.a = n.k",
    f"SELECT s.a, u.b FROM {S} ASOF JOIN u ON s.a = u.a",
    "SELECT s.a, u.b FROM s [ROWS 5] ASOF JOIN u ON s.a = u.a WITHIN 5 s",
    "SELECT x.a, y.b FROM MATCH (x s, y u) [RANGE 5 s] PER a",
    f"SELECT s.a, w FROM {S}, UNNEST(STRING_SPLIT(c, ' ')) AS w",
    f"SELECT s.a, r.y FROM {S}, r WHERE s.a = r.k",
    f"SELECT a, SUM(b) OVER (PARTITION BY a) AS x FROM {S}",
    f"SELECT a FROM {S} WHERE EXISTS (SELECT * FROM {U} WHERE u.a = s.a)",
    f"SELECT a FROM {S} WHERE NOT EXISTS (SELECT * FROM {U} WHERE u.a = s.a AND u.b < s.b)",
    f"SELECT a FROM {S} WHERE a NOT IN (SELECT a FROM {U})",
    f"SELECT a FROM {S} WHERE a NOT IN (SELECT a FROM {U} WHERE u.b = s.b)",
    f"SELECT a FROM {S} EXCEPT SELECT a FROM {U}",
    f"SELECT s.a FROM s {INTERNAL}, u {INTERNAL} WHERE s.a = u.a",
    f"SELECT s.a FROM s {INTERNAL}, {U} WHERE s.a = u.a",
    f"SELECT MIN(s.a) AS m FROM s {INTERNAL}",
    "SELECT COUNT(*) AS n FROM (SELECT Istream(a) FROM s [ROWS 5]) AS q",
    "SELECT a FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS INTERNAL]",
    "SELECT a FROM s [PARTITION BY a ROWS 2] WHERE b > 0",
    "SELECT a FROM s [SESSION 5 s BY b]",
    "SELECT a FROM s [SESSION (a * INTERVAL '1' SECOND) BY b]",
    "SELECT COUNT(*) AS n FROM s [SESSION (a * INTERVAL '1' SECOND) INTERNAL]",
    "SELECT a FROM s [WHEN a > 1 UNTIL a = 0 BY b]",
    "SELECT b, COUNT(*) AS n FROM s [SESSION 5 s BY b INTERNAL] GROUP BY b",
    "SELECT COUNT(*) AS n FROM s [WHEN a > 1 UNTIL a = 0 INTERNAL]",
    "SELECT a FROM s [PARTITION BY a ROWS 2 RANGE 5 s]",
    "SELECT a FROM s [PARTITION BY a EVERY 5 s]",
    "SELECT a FROM s [PARTITION BY a FIRST 5]",
    "SELECT a FROM s [PARTITION BY a EVERY 5 s UNTIL 1 s AGO]",
    "SELECT a FROM s [RANGE (a * INTERVAL '1' SECOND)]",
    "SELECT a FROM s [RANGE (a * INTERVAL '1' SECOND) UNTIL 1 s AGO]",
    "SELECT a FROM s [NOW] UNION ALL SELECT a FROM u [NOW]",
    "SELECT a FROM s [RANGE UNBOUNDED UNTIL 5 s AGO] UNION ALL SELECT a FROM u [SINCE 1 s UNTIL "
    "5 s AGO]",
]
SHED = [
    f"SELECT s.a FROM {S}, {U} WHERE s.a = u.a",
    f"SELECT s.a FROM {S}, {U} WHERE s.a < u.a",
    f"SELECT s.a FROM {S}, {U}, u [NOW] v WHERE s.a = u.a AND u.a = v.a",
]
OPERATORS = {
    "GroupBy array": "GroupByOp",
    "GroupBy deque": "ExtremeOp",
    "GroupBy closing": "ClosingGroupOp",
    "Distinct delta-star": "DeltaStarOp",
    "Distinct input-storing": "InputStoringOp",
    "Distinct counting": "CountingDistinctOp",
    "TopN skyband": "TopOp",
    "TopN first": "TopOp",
    "TopN ordered": "TopOp",
    "Join hash": "JoinOp",
    "Join nested-loop": "JoinOp",
    "Join hash-each": "EitherJoinOp",
    "Join hash-shedding": "SheddingJoinOp",
    "Join nested-loop-shedding": "SheddingJoinOp",
    "MultiJoin pipeline": "MultiJoinOp",
    "MultiJoin pipeline-shedding": "SheddingJoinOp",
    "MultiJoin adaptive": "AdaptiveJoinOp",
    "JoinNRR probe": "JoinNRROp",
    "JoinNRR probe-stored": "StoredJoinNRROp",
    "AsofJoin merge": "AsofJoinOp",
    "AsofJoin merge-stored": "StoredAsofJoinOp",
    "Match automaton": "MatchOp",
    "Match automaton-negative": "MatchOp, NegativeOp",
    "Unnest unnest": "UnnestOp",
    "Over frames": "OverOp",
    "SemiJoin counting": "KeyedSemiJoinOp",
    "SemiJoin matching": "MatchingSemiJoinOp",
    "SetOp counting": "SetOpOp",
    "Append append": "AppendOp",
    "Append append-negative": "AppendOp, NegativeOp",
    "Append netted": "NettedAppendOp",
    "Append periodic": "PeriodicAppendOp",
    "Window time": "TimeWindowOp",
    "Window time-negative": "TimeWindowOp, NegativeOp",
    "Window now": "TimeWindowOp",
    "Window now-negative": "TimeWindowOp, NegativeOp",
    "Window rows": "RowsWindowOp",
    "Window partitioned": "PartitionedWindowOp",
    "Window partitioned-aged": "AgedWindowOp",
    "Window lasting": "LastingWindowOp",
    "Window lasting-negative": "LastingWindowOp, NegativeOp",
    "Window historical-lasting": "LastingWindowOp",
    "Window historical-lasting-negative": "LastingWindowOp, NegativeOp",
    "Window latest": "LatestWindowOp",
    "Window session": "SessionWindowOp",
    "Window session-close": "SessionWindowOp",
    "Window session-gaps": "GapsWindowOp",
    "Window session-gaps-close": "GapsWindowOp",
    "Window when": "WhenWindowOp",
    "Window when-close": "WhenWindowOp",
    "Window first": "FirstWindowOp",
    "Window throttled": "ThrottleOp, TimeWindowOp",
    "Window throttled-negative": "ThrottleOp, TimeWindowOp, NegativeOp",
    "Window historical-throttled": "ThrottleOp, HistoricalWindowOp",
    "Window historical-throttled-negative": "ThrottleOp, HistoricalWindowOp, NegativeOp",
    "Window unbounded": "Through",
    "Window historical-unbounded": "DelayOp",
    "Window historical-landmark": "LandmarkWindowOp, DelayOp",
    "Select select": "SelectOp",
    "Project project": "ProjectOp",
    "Union merge": "MergeOp",
    "Output stream": "Through",
    "Output view": "Through",
    "StreamScan stream": "StreamSource",
    "TableScan table": "Nothing",
}


class Nothing:
    """A source without rows."""


def built(sql: str, **options: Any) -> Iterator[tuple[str, str]]:
    """(node and variant as EXPLAIN prints it, the operators that run it), of all nodes of a query's
    plan."""
    declared = Declared()
    declared.run(DDL)
    phys = plan(declared.register("q", sql), options=PlanOptions(**options))
    leaves = Leaves(lambda node: Nothing(), {}, {}, [])  # type: ignore[arg-type, return-value]
    stages = assemble(phys, Builder(leaves.source, lambda node: None), leaves, None).stages
    by_path: dict[tuple[int, ...], Phys] = dict(nodes(phys))
    for stage in stages:
        node = by_path[stage.path]
        found = f"{type(node.node).__name__} {node.variant}"
        # outer joins stand around a join
        if getattr(node.node, "kind", "inner") not in ("left", "right", "full"):
            yield found, names(stage.operator)


def names(operator: Any) -> str:
    if isinstance(operator, Piped):
        return f"{names(operator.first)}, {names(operator.second)}"
    return type(operator).__name__


@pytest.mark.parametrize("strategy", ["upa", "direct", "nt"])
@pytest.mark.parametrize("sql", QUERIES)
def test_a_variant_is_one_operator(sql: str, strategy: str) -> None:
    for joins in ("pipeline", "adaptive"):
        for printed, runs in built(sql, strategy=strategy, joins=joins):
            assert runs == OPERATORS[printed], printed


@pytest.mark.parametrize("sql", SHED)
def test_joins_that_let_go_of_rows_are_others(sql: str) -> None:
    for strategy in ("upa", "direct"):
        for printed, runs in built(sql, strategy=strategy, joins="pipeline", over="shed"):
            assert runs == OPERATORS[printed], printed


def test_every_variant_is_met() -> None:
    options = [
        {"strategy": s, "joins": j}
        for s in ("upa", "direct", "nt")
        for j in ("pipeline", "adaptive")
    ]
    met = {printed for sql in QUERIES for given in options for printed, _ in built(sql, **given)}
    met |= {printed for sql in SHED for printed, _ in built(sql, joins="pipeline", over="shed")}
    assert met == set(OPERATORS)


@pytest.mark.parametrize(
    "type_",
    [
        *(Type(k) for k in Kind if k is not Kind.DECIMAL),
        Type(Kind.DECIMAL, 18, 2),
        Type(Kind.DECIMAL, 19, 2),
    ],
    ids=str,
)
def test_the_planner_knows_which_values_are_one_word(type_: Type) -> None:
    kept = coding(type_)
    assert one_word(type_) == (type(kept) is Coding and not kept.wide)


PERIODIC = [
    "SELECT SUM(a) AS m FROM s [RANGE 1 MINUTE SLIDE 1 SECOND]",
    "SELECT COUNT(DISTINCT a) AS n FROM s [RANGE 10 MINUTES SLIDE 1 SECOND]",
    "SELECT COUNT(DISTINCT a) AS n FROM s [RANGE 2 MINUTES SLIDE 1 SECOND]",
    "SELECT b, TOPK(c, 2) AS top FROM s [RANGE 10 MINUTES SLIDE 1 SECOND] WHERE a = 1 GROUP BY b",
    "SELECT b, TOPK(c, 2) AS top FROM s [RANGE 10 MINUTES SLIDE 5 MINUTES] WHERE a = 1 GROUP BY b",
    "SELECT MIN(a) AS m FROM s [RANGE 1 MINUTE SLIDE 1 SECOND]",
    "SELECT COUNT(DISTINCT b) AS n FROM s [ROWS 1000 SLIDE 10 ROWS]",
    "SELECT COUNT(DISTINCT s.c) AS n FROM s [RANGE 1 MINUTE SLIDE 1 SECOND], u [RANGE 1 MINUTE] "
    "WHERE s.a = u.a",
    "SELECT a FROM s [RANGE 1 MINUTE SLIDE 30 SECONDS]",
]


@pytest.mark.parametrize("wish", ["auto", "'is'", "ws", "ss", "iss"])
def test_the_access_path_that_is_explained_is_taken(wish: str) -> None:
    engine = Engine()
    engine.execute(DDL)
    taken = []
    for k, select in enumerate(PERIODIC):
        sql = f"{select} WITH (path = {wish})"
        before = explained(engine, sql)
        engine.execute(f"CREATE QUERY q{k} AS {sql}")
        query = engine.runtime.queries[f"q{k}"]
        assert isinstance(query, PeriodicQuery)
        assert query.evaluator.path == before == explained(engine, f"QUERY q{k}")
        taken.append(before)
    assert "ISS" in taken if wish in ("auto", "iss") else "ISS" not in taken


def explained(engine: Engine, what: str) -> str:
    """The access path that EXPLAIN names."""
    lines = engine.execute(f"EXPLAIN {what}")[0].data["plan"].to_pylist()
    return next(line.split()[2] for line in lines if line.startswith("access path: "))
