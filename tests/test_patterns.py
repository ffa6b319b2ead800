"""Update patterns and identity of every kind of edge (Golab 2006, §3.2, §3.5.1; design page,
"Labels")."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsms.plan.identity import by_value, leaves, order, width
from dsms.plan.patterns import pattern_of
from dsms.plan.physical import Pattern
from dsms.sql import logical as lp
from dsms.sql.types import INT, STRING
from tests.oracle import plans as p

S, T, U = (replace(p.stream(n, a=INT, x=STRING), leaf=i) for i, n in enumerate("stu"))
R = replace(p.table("r", a=INT, y=STRING), leaf=3)
N = replace(p.table("n", retroactive=False, a=INT, y=STRING), leaf=4)
MINUTE = 60_000_000


def win(node: lp.Node = S, length: int = MINUTE, **more: object) -> lp.Window:
    return p.window(node, "time", length, **more)


def rows(node: lp.Node = S) -> lp.Window:
    return p.window(node, "rows", 10)


def counted(node: lp.Node) -> lp.GroupBy:
    return p.group(node, ("a",), p.agg(node, "count", "x"))


LABELS: dict[str, tuple[lp.Node, str]] = {
    # leaves
    "a stream": (S, "MON"),
    "a table": (R, "STR"),
    "constant rows": (lp.Values(((),), ()), "MON"),
    "a time window": (win(), "WKS"),
    "a window that ends some time ago": (win(until=MINUTE // 2), "WKS"),
    "NOW": (p.window(S, "now"), "WKS"),
    "a count window": (rows(), "STR"),
    "a count window per partition": (p.window(S, "partitioned", 3, by=(0,)), "STR"),
    "an unbounded window": (p.window(S, "unbounded"), "MON"),
    "a landmark window": (p.window(S, "landmark", since=5), "MON"),
    # rule 1
    "selection over a time window": (p.select(win(), "gt", "a", 1), "WKS"),
    "selection over a count window": (p.select(rows(), "gt", "a", 1), "STR"),
    "projection over a stream": (p.project(S, "a"), "MON"),
    "⋈NRR of a stream": (p.join_nrr(S, N, "a"), "MON"),
    "⋈NRR of a time window": (p.join_nrr(win(), N, "a"), "WKS"),
    "left ⋈NRR of a time window": (p.join_nrr(win(), N, "a", kind="left"), "WKS"),
    "ASOF JOIN of a time window": (p.asof(win(), T, "a"), "WKS"),
    "left ASOF JOIN of a count window": (p.asof(rows(), T, "a", kind="left"), "STR"),
    "a pattern over time windows": (p.match(win(), win(T), on="a"), "WK"),
    "⋈NRR of a count window": (p.join_nrr(rows(), N, "a"), "STR"),
    # rule 2
    "union of streams": (p.union(S, T), "MON"),
    "union of equal windows": (p.union(win(S), win(T)), "WKS"),
    "union of equal windows, filtered": (p.union(p.select(win(S), "gt", "a", 1), win(T)), "WKS"),
    "union of unequal windows": (p.union(win(S), win(T, 2 * MINUTE)), "WK"),
    "union of windows that end at different times": (p.union(win(S), win(T, until=5)), "WK"),
    "union of a window and a stream": (p.union(win(S), T), "WK"),
    "union of unions of equal windows": (p.union(p.union(win(S), win(T)), win(U)), "WKS"),
    "union of a window and a join": (
        p.union(p.project(p.join(win(S), win(T), "a"), "a"), win(U)),
        "WK",
    ),
    "union with a count window": (p.union(win(S), rows(T)), "STR"),
    # rule 3
    "join of streams": (p.join(S, T, "a"), "MON"),
    "join of time windows": (p.join(win(S), win(T), "a"), "WK"),
    "join of a time window and a stream": (p.join(win(S), T, "a"), "WK"),
    "join with a count window": (p.join(win(S), rows(T), "a"), "STR"),
    "DISTINCT of a stream": (p.distinct(S), "MON"),
    "DISTINCT of a time window": (p.distinct(win()), "WK"),
    "DISTINCT of a count window": (p.distinct(rows()), "STR"),
    # rule 4
    "negation of time windows": (p.semi(win(S), win(T), "a", anti=True), "STR"),
    "negation of streams": (p.semi(S, T, "a", anti=True), "STR"),
    "EXCEPT": (p.set_op("except", win(S), win(T)), "STR"),
    "INTERSECT": (p.set_op("intersect", win(S), win(T)), "STR"),
    "GROUP BY over a time window": (counted(win()), "STR"),
    "GROUP BY over a stream": (counted(S), "STR"),
    "⋈R of a time window": (p.join(win(S), R, "a"), "STR"),
    "⋈R of a stream": (p.join(S, R, "a"), "STR"),
    "left join of time windows": (p.join(win(S), win(T), "a", kind="left"), "STR"),
    "full join of streams": (p.join(S, T, "a", kind="full"), "STR"),
    # EXISTS
    "EXISTS over time windows": (p.semi(win(S), win(T), "a"), "STR"),
    "EXISTS over streams": (p.semi(S, T, "a"), "MON"),
    "EXISTS of a window in a stream": (p.semi(win(S), T, "a"), "WK"),
    "EXISTS of a count window in a stream": (p.semi(rows(S), T, "a"), "STR"),
    # INTERNAL
    "a join of INTERNAL windows": (
        p.append(p.join(win(S, internal=True), win(T, internal=True), "a")),
        "MON",
    ),
    "aggregates over an INTERNAL window": (p.append(counted(win(internal=True))), "MON"),
    "INTERNAL and one external window": (
        p.append(p.join(win(S), win(T, internal=True), "a"), mixed=True),
        "WK",
    ),
    "a window over a result that stays": (win(p.append(p.join(win(S), win(T), "a"))), "WKS"),
    "a count window over a result that stays": (rows(p.append(p.join(win(S), win(T), "a"))), "STR"),
    # the root
    "the root": (p.output(p.join(win(S), win(T), "a"), "rstream"), "WK"),
    "ORDER BY": (lp.Sort(win(), (), None, 0, S.schema), "WKS"),
    "LIMIT PER": (lp.TopN(win(), (), (), 3, S.schema), "STR"),
    "LIMIT": (lp.Sort(win(), (), 3, 0, S.schema), "STR"),
}


@pytest.mark.parametrize("name", LABELS)
def test_label(name: str) -> None:
    node, label = LABELS[name]
    assert pattern_of(node) is Pattern[label]


def figure_3_5(up: bool) -> lp.Node:
    """S1 ⋈ S2 without those that S3 has; selections as drawn."""
    s1, s2, s3 = (p.select(win(n), "gt", "a", 0) for n in (S, T, U))
    if up:
        return p.semi(p.join(s1, s2, "a"), s3, "a", anti=True)
    return p.join(p.semi(s1, s3, "a", anti=True), s2, "a")


def labels(node: lp.Node) -> list[tuple[str, str]]:
    below = [entry for child in lp.children(node) for entry in labels(child)]
    return [(type(node).__name__, pattern_of(node).name), *below]


def test_the_plans_of_figure_3_5_have_its_labels() -> None:
    leaf = [("Select", "WKS"), ("Window", "WKS"), ("StreamScan", "MON")]
    assert labels(figure_3_5(True)) == [("SemiJoin", "STR"), ("Join", "WK"), *leaf, *leaf, *leaf]
    assert labels(figure_3_5(False)) == [("Join", "STR"), ("SemiJoin", "STR"), *leaf, *leaf, *leaf]


def test_counting_announces_its_deletions() -> None:
    from dsms.plan.patterns import pattern

    assert pattern(p.distinct(win()), [Pattern.WKS], "counting") is Pattern.STR
    assert pattern(p.distinct(S), [Pattern.MON], "counting") is Pattern.MON


# ---------------------------------------------------------------- identity


def test_ids_are_those_of_the_parts() -> None:
    three = p.join(p.join(win(S), win(T), "a"), rows(U), "a")
    assert (width(three), leaves(three), order(three)) == (3, (0, 1, 2), (0, 1, 2))
    nrr = p.join_nrr(p.join(win(S), win(T), "a"), N, "a")
    assert leaves(nrr) == (0, 1, 4)
    assert leaves(p.semi(win(T), win(S), "a")) == (1,)
    assert leaves(counted(p.join(win(S), R, "a"))) == (0, 3)
    assert (width(p.append(three)), leaves(p.append(three))) == (1, (0,))


def test_order_is_that_of_from_whatever_the_join_order() -> None:
    swapped = p.join(p.join(win(U), win(S), "a"), win(T), "a")
    assert leaves(swapped) == (2, 0, 1)
    assert order(swapped) == (1, 2, 0)


def test_branch_and_copy_numbers_decide_last() -> None:
    union = p.union(p.project(p.join(win(S), win(T), "a"), "a"), p.project(win(U), "a"))
    assert width(union) == 3
    assert order(union) == (1, 2, 0)
    joined = p.join(union, R, "a")
    assert order(joined) == (1, 2, 3, 0)
    copies = p.set_op("except", win(S), win(T), all_=True)
    assert (width(copies), order(copies)) == (2, (0, 1))


def test_rows_without_parts_go_by_value() -> None:
    assert not by_value(p.join(p.semi(win(S), counted(win(T)), "a"), win(U), "a"))
    assert by_value(p.join(p.distinct(win(S)), win(T), "a"))
    assert by_value(p.project(counted(win(S)), "a"))
    assert by_value(p.union(win(S), p.distinct(win(T))))
    assert by_value(
        lp.Values(((p.lit(True),),), (lp.StreamScan(S.stream, S.schema, "s").schema[0],))
    )
