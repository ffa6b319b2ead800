"""Plans as text: the text binds to the same plan, and rendering that plan gives the same text
again."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from dsms.errors import QueryError
from dsms.plan.chooser import Chooser, with_kind
from dsms.plan.optimize import optimize
from dsms.plan.options import PlanOptions
from dsms.plan.statistics import Statistics
from dsms.sql import ast
from dsms.sql.binder import bind_query
from dsms.sql.catalog import Catalog
from dsms.sql.logical import (
    Append,
    Join,
    Node,
    Output,
    Project,
    Select,
    Window,
    children,
    with_children,
)
from dsms.sql.parser import parse_one
from dsms.sql.render import to_sql
from dsms.sql.window import UNBOUNDED, Time
from tests.effort import examples
from tests.generate.draws import Draws
from tests.generate.queries import Queries
from tests.generate.world import world
from tests.plan_forms import comparable, drawn
from tests.test_binder import SCHEMA, bound, golden
from tests.test_rules import declared

EXAMPLES = examples(60)


def rebound(plan: Output, catalog: Catalog, persistent: bool = True) -> Output:
    return bound(to_sql(plan), catalog, persistent)


def same(plan: Output, again: Output) -> bool:
    names = [f.name for f in plan.schema] == [f.name for f in again.schema]
    return names and comparable(plan) == comparable(again)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return declared(SCHEMA)


@pytest.mark.parametrize("sql", [sql for sql, _ in golden()])
def test_golden_plans_come_back(sql: str, catalog: Catalog) -> None:
    plan = bound(sql, catalog)
    again = rebound(plan, catalog)
    assert same(plan, again), f"{to_sql(plan)}\n{drawn(plan)}\n{drawn(again)}"
    assert to_sql(again) == to_sql(plan)


TWISTED = [
    "SELECT x.v, y.v FROM (SELECT a AS v FROM s [NOW] WHERE b > 0.0) x, (SELECT a AS v FROM t "
    "[NOW]) y WHERE x.v = y.v",
    "SELECT q.n FROM (SELECT n, m FROM (SELECT COUNT(*) AS m, SUM(a) AS n FROM s [NOW]) p) q",
    "SELECT 1 AS x FROM (SELECT COUNT(*) AS m FROM s [NOW]) q",
    "SELECT DISTINCT m FROM (SELECT DISTINCT a, c AS m FROM s [NOW]) q WHERE a > 1",
    "SELECT a FROM (SELECT a FROM s [NOW] UNION SELECT a FROM t [NOW]) q WHERE a > 1 GROUP BY a "
    "HAVING COUNT(*) > 1",
    "SELECT a, a FROM s [NOW] UNION ALL (SELECT a, a FROM t [NOW] UNION ALL SELECT a, a FROM u "
    "[NOW])",
    "SELECT * FROM (SELECT a, a + 1 AS a FROM s [NOW] EXCEPT SELECT a, a FROM t [NOW]) q",
    "SELECT * FROM s [NOW] LEFT JOIN (t [NOW] JOIN u [NOW] ON t.a = u.a) ON s.a = t.a",
    "SELECT * FROM (SELECT a FROM s [NOW] WHERE EXISTS (SELECT * FROM t [NOW] WHERE t.a = s.a)) q "
    "WHERE a > 1",
    "SELECT * FROM s WHERE EXISTS (SELECT 1 FROM t x [NOW] JOIN u y [NOW] ON x.a = y.a WHERE x.x "
    "> 1 AND y.z < b)",
    "SELECT * FROM s [NOW] WHERE EXISTS (SELECT 1)",
    "SELECT s.a AS c FROM s [ROWS 1], t [ROWS 1] WHERE s.a < t.a AND EXISTS (SELECT * FROM n WHERE "
    "n.k = s.a)",
    "SELECT z FROM (SELECT y AS z FROM s [NOW INTERNAL] JOIN n AS m ON s.a = m.k WHERE EXISTS "
    "(SELECT * FROM n WHERE k = a)) [ROWS 2]",
    "SELECT * FROM (SELECT * FROM s [RANGE UNBOUNDED UNTIL 5 min AGO]) [PARTITION BY a ROWS 2] q, "
    "t [SINCE 5 s UNTIL 1 h AGO] WHERE q.a = t.a",
    "SELECT a FROM s [SINCE 5 s UNTIL 1 min AGO SLIDE 1 min INTERNAL]",
    "SELECT c FROM s [NOW] GROUP BY c, 'x', a + 1 HAVING TRUE",
    "SELECT a FROM s [NOW] WHERE a > LENGTH([]) AND LENGTH([NULL, NULL]) < a",
    "SELECT 5 AS five, COUNT(*) FROM s [NOW] GROUP BY five",
    "SELECT Dstream(a) FROM s [RANGE 5] UNION ALL SELECT a FROM t [RANGE 5]",
    "SELECT * FROM s [RANGE 1 min INTERNAL], u [NOW INTERNAL], (SELECT DISTINCT a FROM t [NOW]) q "
    "WHERE q.a = s.a",
    "SELECT * FROM (SELECT Istream(a) FROM s [RANGE 5] WHERE a IN (SELECT a FROM t [ROWS 5])) "
    "[ROWS 2] q",
    "SELECT * FROM (SELECT Istream(a) FROM s [RANGE 5] EXCEPT ALL SELECT a FROM t [RANGE 4]) "
    "[ROWS 2] q",
    "SELECT position('a', c), -a, -(-b), NOT (a > 1), X'00ff', 1e300, -5, DECIMAL '1.50' + a, "
    "INTERVAL '90' s FROM s",
    "SELECT CASE WHEN a IS DISTINCT FROM 1 THEN LEFT(c, 2) ELSE RIGHT(c, 1) END, CONCAT(c, a, "
    "'x') FROM s",
    "SELECT date_trunc('hour', t, 'Europe/Berlin'), EXTRACT(EPOCH FROM t), length(c), FIRST(a) "
    "FROM s GROUP BY t, c",
    'SELECT * FROM s AS "Odd one" [NOW], t AS "select" [NOW] WHERE "Odd one".a = "select".a',
    "SELECT a FROM s [RANGE 1 MONTH SLIDE 1 WEEK TIME ZONE 'Asia/Tokyo'] ORDER BY c DESC, a + 1 "
    "LIMIT 7",
]


@pytest.mark.parametrize("sql", TWISTED)
def test_twisted_queries_come_back(sql: str, catalog: Catalog) -> None:
    plan = bound(sql, catalog)
    again = rebound(plan, catalog)
    assert same(plan, again), f"{to_sql(plan)}\n{drawn(plan)}\n{drawn(again)}"


def test_one_time_queries_come_back(catalog: Catalog) -> None:
    for sql in (
        "SELECT * FROM n, r WHERE n.k = r.k",
        "SELECT y, COUNT(*) FROM n GROUP BY y ORDER BY 2 OFFSET 1",
    ):
        plan = bound(sql, catalog, persistent=False)
        assert same(plan, rebound(plan, catalog, persistent=False))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_query_comes_back(data: st.DataObject) -> None:
    draws = Draws(data.draw)
    declared_world = world(draws)
    catalog = declared(declared_world.ddl())
    sql = Queries(draws, declared_world).query()
    note(sql)
    try:
        plan = bound(sql, catalog)
    except QueryError as refused:
        event(f"refused: {refused.code}")
        return
    note(to_sql(plan))
    again = rebound(plan, catalog)
    assert same(plan, again), f"{drawn(plan)}\n{drawn(again)}"
    event("came back")


# ---------------------------------------------------------------- after rewrites


@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_optimized_plan_is_text_too(data: st.DataObject) -> None:
    """Equal plans mostly, but a condition may find another place: the columns and their types must
    be the same."""
    draws = Draws(data.draw)
    declared_world = world(draws)
    catalog = declared(declared_world.ddl())
    sql = Queries(draws, declared_world).query()
    note(sql)
    plan, _ = optimize(with_kind(bound(sql, catalog)), Chooser(Statistics(), PlanOptions()))
    note(to_sql(plan))
    again = rebound(plan, catalog)
    assert [(f.name, f.type) for f in again.schema] == [(f.name, f.type) for f in plan.schema]


def pushed_below_window(node: Node) -> Node:
    """Select over a time window becomes a time window over Select (what the optimizer may do)."""
    node = (
        with_children(node, tuple(map(pushed_below_window, children(node))))
        if children(node)
        else node
    )
    if (
        isinstance(node, Select)
        and isinstance(node.child, Window)
        and isinstance(node.child.spec, Time)
    ):
        window = node.child
        return Window(
            Select(window.child, node.predicate, window.child.schema), window.spec, window.schema
        )
    return node


def pushed_below_join(node: Node) -> Node:
    """A Select over the left columns of an inner join goes to the left side, below a projection to
    all columns."""
    node = (
        with_children(node, tuple(map(pushed_below_join, children(node))))
        if children(node)
        else node
    )
    if isinstance(node, Select) and isinstance(node.child, Join) and node.child.kind == "inner":
        join = node.child
        left = Select(join.left, node.predicate, join.left.schema)
        return Join(left, join.right, join.kind, join.keys, join.residual, join.schema)
    return node


def test_a_selection_below_a_window(catalog: Catalog) -> None:
    plan = pushed_below_window(bound("SELECT c FROM s [RANGE 10] WHERE a > 1", catalog))
    assert isinstance(plan, Output)
    expected = "SELECT q.c FROM (SELECT s.a, s.b, s.c, s.t FROM s WHERE s.a > 1) [RANGE 10 s] AS q"
    assert to_sql(plan) == expected
    assert same(plan, rebound(plan, catalog))


def test_a_selection_below_a_join(catalog: Catalog) -> None:
    plan = pushed_below_join(
        bound("SELECT c FROM s [ROWS 10], t [NOW] WHERE b > 1 AND s.a = t.a", catalog)
    )
    assert isinstance(plan, Output)
    assert isinstance(plan.child, Project)
    assert isinstance(plan.child.child, Join)
    assert same(plan, rebound(plan, catalog))


def test_under_internal_windows_selections_come_up_again(catalog: Catalog) -> None:
    """A subquery would append on its own there, and its state would never shrink."""
    sql = "SELECT c FROM s [RANGE 10 INTERNAL], t [RANGE 10 INTERNAL] WHERE b > 1 AND s.a = t.a"
    original = bound(sql, catalog)
    plan = pushed_below_join(original)
    assert isinstance(plan, Output)
    assert comparable(plan) != comparable(original)
    again = rebound(plan, catalog)
    assert same(original, again)
    assert isinstance(again.child, Append)


def test_a_plan_without_output_is_a_query(catalog: Catalog) -> None:
    plan = bound("SELECT a FROM s [NOW] UNION SELECT a FROM t [NOW]", catalog)
    assert to_sql(plan.child) == to_sql(plan)


def test_windows_that_hold_everything_are_left_out(catalog: Catalog) -> None:
    plan = bound("SELECT a FROM s [RANGE UNBOUNDED]", catalog)
    assert isinstance(plan.child, Project)
    assert isinstance(plan.child.child, Window)
    assert plan.child.child.spec == UNBOUNDED
    assert to_sql(plan) == "SELECT s.a FROM s"


def test_statements_of_any_kind_are_bound_through_one_door(catalog: Catalog) -> None:
    statement = parse_one("CREATE QUERY q AS SELECT a FROM s")
    assert isinstance(statement, ast.CreateQuery)
    assert comparable(bind_query(statement, catalog)) == comparable(
        bind_query(statement.query, catalog)
    )
