"""Rewrite rules: what each changes and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsms.errors import InternalError
from dsms.plan import optimize as driver
from dsms.plan.chooser import Chooser
from dsms.plan.demand import Demand
from dsms.plan.identity import leaves
from dsms.plan.optimize import apply
from dsms.plan.options import PlanOptions
from dsms.plan.planner import plan
from dsms.plan.rules import RULES, Context, Rule
from dsms.plan.rules.base import pick
from dsms.plan.statistics import Statistics
from dsms.sql import logical as lp
from dsms.sql.expr import Call, Col, Expr, Lit
from dsms.sql.types import BOOL, INT, STRING, Field, list_of
from dsms.sql.window import Rows
from tests.oracle import plans as p
from tests.plan_forms import shape

S, T, U = (replace(p.stream(n, a=INT, b=INT, c=STRING), leaf=i) for i, n in enumerate("stu"))
R = replace(p.table("r", a=INT, y=INT), leaf=3)
N = replace(p.table("n", False, a=INT, y=INT), leaf=4)
BY_NAME = {r.name: r for r in RULES}


def win(node: lp.Node, seconds: int = 10, **more: object) -> lp.Window:
    return p.window(node, "time", seconds * 1_000_000, **more)


WS, WT, WU = win(S), win(T), win(U)


def context(**more: object) -> Context:
    chooser = Chooser(Statistics(), PlanOptions())
    return Context(chooser.options, lambda node: chooser.build(node)[0], **more)  # type: ignore[arg-type]


def apply_named(name: str, node: lp.Node, **more: object) -> lp.Node:
    return apply(BY_NAME[name], node, context(**more))


def both(fn: str, left: Expr, right: Expr) -> Call:
    return Call(fn, (left, right), BOOL)


def where(node: lp.Node, *parts: Expr) -> lp.Select:
    return lp.Select(node, parts[0] if len(parts) == 1 else Call("and", parts, BOOL), node.schema)


def at(node: lp.Node, index: int) -> Col:
    return Col(index, node.schema[index].type, node.schema[index].name)


def is_(node: lp.Node, index: int, value: object) -> Call:
    return both("eq", at(node, index), p.lit(value))


def fallible(node: lp.Node, index: int) -> Call:
    """A condition that a zero divisor makes fail."""
    return both("gt", Call("div", (Lit(1, INT), at(node, index)), INT), Lit(0, INT))


JOIN = p.join(WS, WT, "a")
LEFT = p.join(WS, WT, "a", kind="left")
FULL = p.join(WS, WT, "a", kind="full")
COUNTED = p.window(S, "rows", 5)
GROUPED = p.group(WS, ("a",), p.agg(WS, "count", "b"))
OVER = p.over(S, ("a",), p.agg(S, "sum", "b"))
TWO_OVER = p.over(S, ("a",), p.agg(S, "sum", "b"), p.agg(S, "max", "b"))
COUNTED_OVER = p.over(S, ("a",), p.agg(S, "sum", "b"), spec=Rows(5))
UNION = p.union(WS, WT)
NEGATION = p.semi(WS, WT, "a", anti=True)
EXISTS = p.semi(WS, WT, "a")
DISTINCT = p.distinct(p.project(WS, "a", "b"))
COMPUTED = lp.Project(
    WS, (Call("neg", (at(WS, 0),), INT), at(WS, 1)), p.project(WS, "a", "b").schema
)

OPENED = lp.Unnest(
    WS,
    Call("list_value", (at(WS, 0), at(WS, 1)), list_of(INT)),
    "inner",
    False,
    (*WS.schema, Field("x", INT)),
)

MANY = lp.MultiJoin(
    (WS, WT, WU), (tuple(at(w, 0) for w in (WS, WT, WU)),), None, WS.schema + WT.schema + WU.schema
)

SW, TW, UW = (
    "Window RANGE 10 s (Stream s)",
    "Window RANGE 10 s (Stream t)",
    "Window RANGE 10 s (Stream u)",
)
J = "Join s.a = t.a"


def compared(*parts: Expr, anti: bool = False, right: lp.Node = WT) -> lp.SemiJoin:
    """Rows of s by how they stand to those of t."""
    residual = parts[0] if len(parts) == 1 else Call("and", parts, BOOL)
    return replace(p.semi(WS, right, anti=anti), residual=residual)


def unknown_too(fn: str, left: Expr, right: Expr) -> Call:
    return Call("coalesce", (both(fn, left, right), Lit(True, BOOL)), BOOL)


CHANGES: dict[str, tuple[str, lp.Node, str]] = {
    "merge": ("merge_selections",
        where(where(WS, is_(WS, 0, 1)), is_(WS, 1, 2)), f"Select (s.a = 1) AND (s.b = 2) ({SW})"),
    "merge says it once": ("merge_selections",
        where(where(WS, is_(WS, 0, 1)), is_(WS, 0, 1)), f"Select s.a = 1 ({SW})"),
    "and true": ("simplify_predicate", where(WS, is_(WS, 0, 1), p.lit(True)),
                 f"Select s.a = 1 ({SW})"),
    "true": ("simplify_predicate", where(WS, p.lit(True)), SW),
    "and false": ("simplify_predicate", where(WS, is_(WS, 0, 1), p.lit(False)),
                  f"Select FALSE ({SW})"),
    "not not": ("simplify_predicate",
                where(WS, Call("not", (Call("not", (is_(WS, 0, 1),), BOOL),), BOOL)),
                f"Select s.a = 1 ({SW})"),
    "project": ("select_through_project", where(p.project(WS, "b", "a"),
                                                is_(p.project(WS, "b", "a"), 0, 1)),
                f"Project s.b, s.a (Select s.b = 1 ({SW}))"),
    "join": ("select_through_join", where(JOIN, is_(JOIN, 1, 1), is_(JOIN, 4, 2),
                                          both("lt", at(JOIN, 1), at(JOIN, 4))),
             f"{J} AND s.b < t.b (Select s.b = 1 ({SW}), Select t.b = 2 ({TW}))"),
    "left join": ("select_through_join", where(LEFT, is_(LEFT, 1, 1),
                                               Call("is_null", (at(LEFT, 4),), BOOL)),
                  f"Select t.b IS NULL (LeftJoin s.a = t.a (Select s.b = 1 ({SW}), {TW}))"),
    "right join": ("select_through_join", where(p.join(WS, WT, "a", kind="right"), is_(JOIN, 1, 1),
                                                is_(JOIN, 4, 1)),
                   f"Select s.b = 1 (RightJoin s.a = t.a ({SW}, Select t.b = 1 ({TW})))"),
    "nrr": ("select_through_nrr", where(p.join_nrr(WS, N, "a"), is_(WS, 1, 1),
                                        is_(p.join_nrr(WS, N, "a"), 4, 2)),
            f"JoinNRR n ON s.a = n.a AND n.y = 2 (Select s.b = 1 ({SW}))"),
    "asof": ("select_through_asof", where(p.asof(WS, T, "a"), is_(WS, 1, 1),
                                          is_(p.asof(WS, T, "a"), 4, 2)),
             f"Select t.b = 2 (AsofJoin s.a = t.a (Select s.b = 1 ({SW}), Stream t))"),
    "unnest": ("select_through_unnest", where(OPENED, is_(WS, 1, 1), is_(OPENED, 3, 2)),
               f"Select x = 2 (Unnest list_value(s.a, s.b) (Select s.b = 1 ({SW})))"),
    "padded asof": ("outer_to_inner", where(p.asof(WS, T, "a", kind="left"), is_(JOIN, 4, 2)),
                    f"Select t.b = 2 (AsofJoin s.a = t.a ({SW}, Stream t))"),
    "over": ("select_through_over", where(OVER, is_(OVER, 0, 1), is_(OVER, 1, 2)),
             "Select s.b = 2 (Over sum(s.b) PARTITION BY s.a (Select s.a = 1 (Stream s)))"),
    "negation": ("select_through_semijoin", where(NEGATION, is_(WS, 1, 1)),
                 f"Negation s.a = t.a (Select s.b = 1 ({SW}), {TW})"),
    "union": ("select_through_union", where(UNION, is_(UNION, 0, 1)),
              f"Union (Select s.a = 1 ({SW}), Select t.a = 1 ({TW}))"),
    "group": ("select_through_group", where(GROUPED, is_(GROUPED, 0, 1), is_(GROUPED, 1, 3)),
              f"Select count = 3 (GroupBy s.a; count(s.b) (Select s.a = 1 ({SW})))"),
    "distinct": ("select_through_distinct", where(DISTINCT, is_(DISTINCT, 0, 1)),
                 f"Distinct (Select a = 1 (Project s.a, s.b ({SW})))"),
    "set op": ("select_through_set_op", where(p.set_op("except", WS, WT, True), is_(WS, 0, 1)),
               f"Except ALL (Select s.a = 1 ({SW}), Select t.a = 1 ({TW}))"),
    "append": ("select_through_append", where(p.append(JOIN), is_(JOIN, 0, 1)),
               f"Append (Select s.a = 1 ({J} ({SW}, {TW})))"),
    "time window": ("select_below_window", where(WS, is_(WS, 0, 1)),
                    "Window RANGE 10 s (Select s.a = 1 (Stream s))"),
    "now": ("select_below_window", where(p.window(S, "now"), is_(S, 0, 1)),
            "Window NOW (Select s.a = 1 (Stream s))"),
    "on": ("residual_to_inputs", replace(JOIN, residual=is_(JOIN, 4, 2)),
           f"{J} ({SW}, Select t.b = 2 ({TW}))"),
    "on of a left join": ("residual_to_inputs",
        replace(LEFT, residual=Call("and", (is_(JOIN, 1, 1), is_(JOIN, 4, 2)), BOOL)),
                          f"LeftJoin s.a = t.a AND s.b = 1 ({SW}, Select t.b = 2 ({TW}))"),
    "on of a negation": ("residual_to_inputs",
        replace(NEGATION, residual=Call("and", (is_(JOIN, 1, 1), is_(JOIN, 4, 2)), BOOL)),
                         f"Negation s.a = t.a AND s.b = 1 ({SW}, Select t.b = 2 ({TW}))"),
    "on of EXISTS": ("residual_to_inputs", replace(EXISTS, residual=is_(JOIN, 1, 1)),
                     f"SemiJoin s.a = t.a (Select s.b = 1 ({SW}), {TW})"),
    "equality": ("residual_to_keys", replace(JOIN, keys=(),
                                             residual=both("eq", at(JOIN, 4), at(JOIN, 1))),
                 f"Join s.b = t.b ({SW}, {TW})"),
    "padded rows rejected": ("outer_to_inner", where(LEFT, is_(LEFT, 4, 1)),
                             f"Select t.b = 1 ({J} ({SW}, {TW}))"),
    "full to left": ("outer_to_inner",
        where(FULL, is_(FULL, 1, 1)), f"Select s.b = 1 (LeftJoin s.a = t.a ({SW}, {TW}))"),
    "full to inner": ("outer_to_inner", where(FULL, is_(FULL, 1, 1), is_(FULL, 4, 1)),
                      f"Select (s.b = 1) AND (t.b = 1) ({J} ({SW}, {TW}))"),
    "is not null": ("outer_to_inner", where(LEFT, Call("is_not_null", (at(LEFT, 3),), BOOL)),
                    f"Select t.a IS NOT NULL ({J} ({SW}, {TW}))"),
    "constant": ("transitive_constants", p.join(where(WS, is_(WS, 0, 5)), WT, "a"),
                 f"{J} (Select s.a = 5 ({SW}), Select t.a = 5 ({TW}))"),
    "constant under a window": ("transitive_constants",
                                p.join(win(where(S, is_(S, 0, 5))), WT, "a"),
                                f"{J} (Window RANGE 10 s (Select s.a = 5 (Stream s)), Select t.a "
                                f"= 5 ({TW}))"),
    "constant of a negation": ("transitive_constants",
                               p.semi(where(WS, is_(WS, 0, 5)), WT, "a", anti=True),
                               f"Negation s.a = t.a (Select s.a = 5 ({SW}), Select t.a = 5 "
                               f"({TW}))"),
    "distinct groups": ("drop_distinct", p.distinct(GROUPED), f"GroupBy s.a; count(s.b) ({SW})"),
    "distinct in EXISTS": ("exists_ignores_distinct",
        p.semi(WS, p.distinct(WT), "a"), f"SemiJoin s.a = t.a ({SW}, {TW})"),
    "greater than some": (
        "compare_extremes", compared(both("gt", at(JOIN, 1), at(JOIN, 4))),
        f"SemiJoin s.b > min ({SW}, GroupBy min(t.b) ({TW}))"),
    "less than none": (
        "compare_extremes", compared(both("gt", at(JOIN, 4), at(JOIN, 1)), anti=True),
        f"Negation s.b < max ({SW}, GroupBy max(t.b) ({TW}))"),
    "at least all": (
        "compare_extremes", compared(unknown_too("lt", at(JOIN, 1), at(JOIN, 4)), anti=True),
        f"Negation unknown IS NOT NULL AND (unknown OR coalesce(s.b < max, TRUE)) ({SW}, "
        f"GroupBy max(t.b), bool_or(t.b IS NULL) ({TW}))"),
    "other than some": (
        "compare_extremes", compared(both("ne", at(JOIN, 1), at(JOIN, 4)), is_(JOIN, 0, 1)),
        f"SemiJoin (s.a = 1) AND ((s.b <> min) OR (s.b <> max)) ({SW}, "
        f"GroupBy min(t.b), max(t.b) ({TW}))"),
    "projections": ("merge_projections", pick(COMPUTED, [1, 0]), f"Project s.b, -s.a ({SW})"),
    "same columns": ("drop_projection", p.project(WS, "a", "b", "c"), SW),
    "negation up": ("negation_pull_up", p.join(NEGATION, WU, "a"),
                    f"Negation s.a = t.a (Join s.a = u.a ({SW}, {UW}), {TW})"),
    "negation up from the right": ("negation_pull_up", p.join(WU, NEGATION, "a"),
                                   f"Negation s.a = t.a (Join u.a = s.a ({UW}, {SW}), {TW})"),
    "negation down": ("negation_push_down", p.semi(p.join(WS, WU, "a"), WT, "a", anti=True),
                      f"Join s.a = u.a (Negation s.a = t.a ({SW}, {TW}), {UW})"),
    "negation down a left join": ("negation_push_down",
                                  p.semi(p.join(WS, WU, "a", kind="left"), WT, "a", anti=True),
                                  f"LeftJoin s.a = u.a (Negation s.a = t.a ({SW}, {TW}), {UW})"),
    "outer join up": ("outer_join_pull_up", p.join(LEFT, WU, "a"),
                      "Project s.a, s.b, s.c, t.a, t.b, t.c, ... (9 columns) "
                      f"(LeftJoin s.a = t.a (Join s.a = u.a ({SW}, {UW}), {TW}))"),
    "narrow join": ("narrow_join", p.project(JOIN, "b"),
                    f"Project s.b ({J} (Project s.a, s.b ({SW}), Project t.a ({TW})))"),
    "narrow count window": ("narrow_window",
        p.project(COUNTED, "b"), "Project s.b (Window ROWS 5 (Project s.b (Stream s)))"),
    "narrow partitions": ("narrow_window", p.project(p.window(S, "partitioned", 2, by=(2,)), "a"),
                          "Project s.a (Window PARTITION BY c ROWS 2 (Project s.a, s.c (Stream "
                          "s)))"),
    "narrow group": ("narrow_group", GROUPED, f"GroupBy s.a; count(s.b) (Project s.a, s.b ({SW}))"),
    "narrow EXISTS": ("narrow_exists", EXISTS, f"SemiJoin s.a = t.a ({SW}, Project t.a ({TW}))"),
    "narrow negation": ("narrow_semijoin", p.project(NEGATION, "b"),
                        f"Project s.b (Negation s.a = t.a (Project s.a, s.b ({SW}), {TW}))"),
    "narrow union": ("narrow_union", p.project(UNION, "b"),
                     f"Union (Project s.b ({SW}), Project t.b ({TW}))"),
    "narrow many windows": ("narrow_multi_join", p.project(MANY, "b"),
                            f"Project s.b (MultiJoin s.a = t.a = u.a (Project s.a, s.b ({SW}), "
                            f"Project t.a ({TW}), Project u.a ({UW})))"),
    "narrow select": ("narrow_select", p.project(where(WS, is_(WS, 1, 1)), "a"),
                      f"Project s.a (Select s.b = 1 (Project s.a, s.b ({SW})))"),
    "narrow asof": ("narrow_asof", p.project(p.asof(WS, T, "a", after=(2, 2)), "b"),
                    f"Project s.b (AsofJoin s.a = t.a earlier ({SW}, "
                    "Project t.a, t.c (Stream t)))"),
    "narrow match": ("narrow_match",
                     p.project(p.match(WS, WU, WT, on="a", kinds=("one", "none", "one"),
                                       conditions=(None, None,
                                                   both("lt", at(WS, 1), Col(7, INT, "b")))), "b"),
                     "Project s.b (Match a, NOT b, c within 1 min PER s.a; c: s.b < t.b ("
                     f"Project s.a, s.b ({SW}), Project u.a ({UW}), Project t.a, t.b ({TW})))"),
    "narrow unnest": ("narrow_unnest", p.project(OPENED, "x"),
                      f"Project x (Unnest list_value(s.a, s.b) (Project s.a, s.b ({SW})))"),
    "narrow over": ("narrow_over", p.project(TWO_OVER, "b", "max"),
                    "Project s.b, max (Over max(s.b) PARTITION BY s.a (Project s.a, s.b "
                    "(Stream s)))"),
    "over nothing": ("narrow_over", p.project(OVER, "b"), "Project s.b (Project s.b (Stream s))"),
    "narrow nrr": ("narrow_nrr", p.project(p.join_nrr(WS, N, "a"), "y"),
                   f"Project n.y (JoinNRR n ON s.a = n.a (Project s.a ({SW})))"),
}  # a table  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_change(case: str) -> None:
    name, node, after = CHANGES[case]
    assert shape(apply_named(name, node)) == after


KEPT: dict[str, tuple[str, lp.Node]] = {
    "a count window": ("select_below_window", where(COUNTED, is_(S, 0, 1))),
    "a partitioned window, even on its column": (
        "select_below_window", where(p.window(S, "partitioned", 2, by=(0,)), is_(S, 0, 1))),
    "OVER of a count window": ("select_through_over", where(COUNTED_OVER, is_(OVER, 0, 1))),
    "other columns than the keys of OVER": ("select_through_over", where(OVER, is_(OVER, 1, 1))),
    "the right side of ASOF JOIN": ("select_through_asof",
                                    where(p.asof(WS, T, "a"), is_(JOIN, 4, 1))),
    "what may be padded by ASOF LEFT JOIN": (
        "outer_to_inner", where(p.asof(WS, T, "a", kind="left"), is_(JOIN, 1, 1))),
    "the padded side of a left join": ("select_through_join", where(LEFT, is_(LEFT, 4, 1))),
    "either side of a full join": ("select_through_join",
                                   where(FULL, is_(FULL, 1, 1), is_(FULL, 4, 1))),
    "a condition that can fail": ("select_below_window", where(WS, fallible(WS, 0))),
    "a computed column that can fail": ("select_through_project",
                                        where(COMPUTED, is_(COMPUTED, 0, 1))),
    "an aggregate": ("select_through_group", where(GROUPED, is_(GROUPED, 1, 1))),
    "the one group without keys": (
        "select_through_group", where(p.group(WS, (), p.agg(WS, "count", "b")), p.lit(False))),
    "a preserved row's condition in ON": ("residual_to_inputs",
                                          replace(LEFT, residual=is_(JOIN, 1, 1))),
    "what a negation asks of its own row": ("residual_to_inputs",
                                            replace(NEGATION, residual=is_(JOIN, 1, 1))),
    "NOT IN": ("residual_to_inputs", replace(NEGATION, null_aware=True, residual=is_(JOIN, 4, 1))),
    "equality under NOT IN": (
        "residual_to_keys", replace(NEGATION, null_aware=True,
                                    residual=both("eq", at(JOIN, 1), at(JOIN, 4)))),
    "equality that can fail": (
        "residual_to_keys",
        replace(JOIN, residual=both("eq", at(JOIN, 1),
                                    Call("div", (Lit(1, INT), at(JOIN, 4)), INT)))),
    "a padded row that passes": ("outer_to_inner", where(LEFT,
                                                         Call("is_null", (at(LEFT, 4),), BOOL))),
    "a padded row that may pass": (
        "outer_to_inner", where(LEFT, Call("or", (is_(LEFT, 4, 1), is_(LEFT, 1, 1)), BOOL))),
    "a constant on the padded side": ("transitive_constants",
                                      p.join(WS, where(WT, is_(WT, 0, 5)), "a", kind="left")),
    "a constant on the right of a negation": (
        "transitive_constants", p.semi(WS, where(WT, is_(WT, 0, 5)), "a", anti=True)),
    "a constant that is known": (
        "transitive_constants", p.join(win(where(S, is_(S, 0, 5))), win(where(T, is_(T, 0, 5))),
                                       "a")),
    "distinct rows of a stream": ("drop_distinct", DISTINCT),
    "copies of EXCEPT ALL": ("drop_distinct", p.distinct(p.set_op("except", WS, WT, True))),
    "a computed column read twice": (
        "merge_projections", lp.Project(COMPUTED, (at(COMPUTED, 0), at(COMPUTED, 0)),
                                        COMPUTED.schema)),
    "a column that can fail, not read": ("merge_projections", pick(COMPUTED, [1])),
    "other columns": ("drop_projection", p.project(WS, "b", "a", "c")),
    "negation on the padded side": ("negation_pull_up", p.join(WU, NEGATION, "a", kind="left")),
    "negation over both sides": (
        "negation_push_down",
        replace(p.semi(p.join(WS, WU, "a"), WT, "a", anti=True),
                residual=both("lt", at(JOIN, 4), Col(7, INT)))),
    "negation onto the input of ⋈R": ("negation_push_down",
                                      p.semi(p.join(WS, R, "a"), WT, "a", anti=True)),
    "negation past ⋈NRR": ("negation_push_down", p.semi(p.join_nrr(WS, N, "a"), WT, "a",
                                                        anti=True)),
    "a join that asks about the padded part": (
        "outer_join_pull_up", replace(p.join(LEFT, WU), keys=((at(LEFT, 4), at(WU, 0)),))),
    "distinct that somebody may place": ("distinct_push_down", p.distinct(JOIN)),
    "distinct that somebody may place, over EXISTS": ("distinct_below_semijoin",
                                                      p.distinct(EXISTS)),
    "two inputs": ("reorder_joins", JOIN),
    "two inputs, in one operator": ("pipeline_joins", JOIN),
    "columns that are all read": ("narrow_join", p.project(JOIN, "a", "b", "c")),
    "a filter over a scan": ("narrow_select", p.project(where(S, is_(S, 1, 1)), "a")),
}  # a table  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_no_change(case: str) -> None:
    name, node = KEPT[case]
    if case == "columns that are all read":
        node = lp.Project(JOIN, tuple(at(JOIN, i) for i in range(6)), JOIN.schema)
    assert apply_named(name, node) is node


def test_distinct_goes_down_where_nobody_can_tell() -> None:
    free = {"asked": Demand.NOTHING}
    assert shape(apply_named("distinct_push_down", p.distinct(UNION), **free)) == (
        f"Distinct (Union (Distinct ({SW}), Distinct ({TW})))"
    )
    assert shape(apply_named("distinct_push_down", p.distinct(p.project(JOIN, "b")), **free)) == (
        f"Distinct (Project s.b ({J} (Distinct (Project s.a, s.b ({SW})), {TW})))"
    )
    assert shape(
        apply_named("distinct_below_semijoin", p.distinct(p.project(NEGATION, "a")), **free)
    ) == (f"Negation a = t.a (Distinct (Project s.a ({SW})), {TW})")
    hidden = p.distinct(p.project(NEGATION, "b"))
    assert apply_named("distinct_below_semijoin", hidden, **free) is hidden


# ---------------------------------------------------------------- join orders

FAST = Statistics(
    {"s": 100.0, "t": 100.0, "u": 0.1}, distinct={(n, i): 10.0 for n in "stu" for i in (0, 1)}
)


def three(*keys: tuple[int, int]) -> lp.Join:
    """(s ⋈ t) ⋈ u; keys are pairs of columns of s ++ t ++ u."""
    low = tuple((at(JOIN, a), at(WT, b - 3)) for a, b in keys if b < 6)
    first = replace(p.join(WS, WT), keys=low)
    top = p.join(first, WU)
    return replace(top, keys=tuple((at(top, a), at(WU, b - 6)) for a, b in keys if b >= 6))


def reordered(node: lp.Node, **more: object) -> lp.Node:
    chooser = Chooser(FAST, PlanOptions())
    return apply(
        BY_NAME["reorder_joins"],
        node,
        Context(chooser.options, lambda n: chooser.build(n)[0], **more),
    )  # type: ignore[arg-type]


def test_a_slow_stream_is_joined_first() -> None:
    found = reordered(three((0, 3), (0, 6)))
    assert "Join s.a = t.a (Join s.a = u.a" in shape(found)
    assert leaves(found) == (0, 2, 1)
    assert found.schema == three().schema


def test_equalities_that_follow_connect_inputs_too() -> None:
    """s.a = t.a and t.a = u.a let s meet u before t comes."""
    assert "(Join t.a = u.a" in shape(
        reordered(three((0, 3), (3, 6)))
    ) or "(Join s.a = u.a" in shape(reordered(three((0, 3), (3, 6))))


def test_two_equalities_on_one_column_are_both_kept() -> None:
    """s.a = t.a and s.b = t.a say s.a = s.b as well, which one equality per join would forget."""
    found = shape(reordered(three((0, 3), (1, 3), (0, 6))))
    assert "s.a = t.a" in found
    assert "s.b = t.a" in found


def test_branches_of_a_union_keep_the_order_of_ids() -> None:
    found = reordered(three((0, 3), (0, 6)), ordered=True)
    assert leaves(found) == (0, 1, 2)


def test_a_condition_without_columns_keeps_the_order() -> None:
    node = replace(three((0, 3), (0, 6)), residual=both("eq", p.lit("x"), p.lit("y")))
    assert reordered(node) is node


def test_a_table_does_not_meet_a_strict_input() -> None:
    """The count window comes first in FROM, but ⋈R goes below it (§3.5.3)."""
    joined = p.join(p.join(p.window(S, "rows", 3), WT, "a"), R, "a")
    shown = shape(plan(p.output(joined, "rstream")).node)
    assert shown.index("Table r") > shown.index("Join", shown.index("Join") + 1)
    assert "t.a = r.a" in shown


def test_negation_is_pulled_above_a_table() -> None:
    """Whatever it costs: the input of ⋈R may not be strict if that can be helped (§3.5.3)."""
    selective = Statistics({"s": 100.0, "t": 100.0}, distinct={("s", 0): 5.0, ("t", 0): 5.0})
    shown = shape(plan(p.output(p.join(NEGATION, R, "a"), "rstream"), selective).node)
    assert shown.startswith("Rstream (Negation s.a = t.a (Join s.a = r.a")


# ---------------------------------------------------------------- the driver


def worse(node: lp.Node, ctx: Context) -> lp.Node:
    return (
        p.semi(node, win(U), "a", anti=True)
        if isinstance(node, lp.Window) and node.child is S
        else node
    )


def fewer(node: lp.Node, ctx: Context) -> lp.Node:
    return p.project(node, "a") if isinstance(node, lp.Window) else node


def swapped(node: lp.Node, ctx: Context) -> lp.Node:
    return replace(node, left=node.right, right=node.right) if isinstance(node, lp.Join) else node


def restless(node: lp.Node, ctx: Context) -> lp.Node:
    if not isinstance(node, lp.Window):
        return node
    return replace(node, spec=replace(node.spec, length=node.spec.length + 1))


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (worse, "pattern worse"),
        (fewer, "changed the columns"),
        (swapped, "identity"),
        (restless, "come to an end"),
    ],
)
def test_a_bad_rule_is_blamed_by_name(
    bad: object, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "RULES", (Rule(bad),))  # type: ignore[arg-type]
    with pytest.raises(InternalError, match=f"{bad.__name__} .*{what}") as caught:  # type: ignore[attr-defined]
        plan(p.output(JOIN, "rstream"))
    assert caught.value.code == "DS910"


def test_what_follows_from_what_is_known_is_said_once() -> None:
    """A condition that ends up inside of ⋈NRR follows again from the other side: that must come to
    an end."""
    nrr = p.join_nrr(WS, N, "a")
    asked = replace(p.join(nrr, WT), keys=((at(nrr, 3), at(WT, 0)),))
    shown = shape(plan(p.output(where(asked, is_(asked, 5, 1)), "rstream")).node)
    assert shown.count("n.a = 1") == 1


def test_rules_can_be_left_out() -> None:
    query = p.output(where(JOIN, is_(JOIN, 1, 1)), "rstream")
    assert "select_through_join" in plan(query).rules
    assert (
        "select_through_join"
        not in plan(query, options=PlanOptions(disabled=frozenset({"select_through_join"}))).rules
    )
    assert plan(query, options=PlanOptions(optimize=False)).rules == ()
