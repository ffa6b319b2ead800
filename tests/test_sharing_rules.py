"""The sharing rules one by one, with the examples of Golab 2006, §8.3."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

import dsms
from dsms.sharing.columns import same_data, sources
from dsms.sharing.covers import Atom, Terms, cover, terms
from dsms.sharing.report import Shared
from dsms.sharing.rules import CS8, RULES, SS1, SS2, SS4, Asked, Pair, StateRule, WorkRule
from dsms.sql.expr import AggCall, Col, Lit
from dsms.sql.types import FLOAT, INT
from tests.test_sharing import fresh, how, member, rows, sharing

S = 1_000_000


def register(engine: dsms.Engine, name: str, sql: str, **options: str) -> None:
    told = ", ".join(f"{k} = '{v}'" for k, v in options.items())
    engine.execute(f"CREATE QUERY {name} AS {sql}" + (f" WITH ({told})" if told else ""))


def lines(engine: dsms.Engine, rule: str) -> list[tuple[str, str]]:
    """(shared thing, queries) of a rule in SHOW SHARING."""
    return [(line["shared"], line["queries"]) for line in sharing(engine) if line["rule"] == rule]


def fed(engine: dsms.Engine, seconds: int = 40) -> dict[str, list[dict[str, Any]]]:
    """The last answers after some rows."""
    engine.ingest("s", rows(Random(1), [k / 4 for k in range(4 * seconds)]))
    return {name: q.answer().to_pylist() for name, q in engine.runtime.queries.items()}


def both(engine: dsms.Engine, queries: dict[str, str]) -> None:
    """Register each, and a twin that shares nothing; after some rows both answer the same."""
    for name, sql in queries.items():
        register(engine, name, sql)
        register(engine, f"{name}_alone", sql, path="is")
    found = fed(engine)
    for name in queries:
        assert repr(found[name]) == repr(found[f"{name}_alone"]), name


# ---------------------------------------------------------------- the table


def test_the_table_has_every_rule_once_and_can_grow() -> None:
    assert [r.name for r in RULES] == [
        *(f"SS{i}" for i in range(1, 5)),
        *(f"CS{i}" for i in range(1, 9)),
        "CI",
    ]
    assert all(isinstance(r, StateRule) == r.name.startswith("SS") for r in RULES)
    assert len({r.says for r in RULES}) == len(RULES)


def test_a_rule_added_to_the_table_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = fresh()
    register(engine, "q", "SELECT SUM(n) FROM s [RANGE 10 SLIDE 1]")
    more = WorkRule(
        "CS9", "alone", lambda pair: False, lambda g: iter([Shared(tuple(g.members), g.feed)])
    )
    monkeypatch.setattr("dsms.commands.show_sharing.RULES", (*RULES, more))
    assert lines(engine, "CS9") == [("s, sub-windows of 1 s", "q")]


# ---------------------------------------------------------------- Q1 to Q6


TCP, UDP, U = "p = 'TCP'", "p = 'UDP'", "u = 'U'"
Q = {
    "q1": f"SELECT SUM(n) FROM s [RANGE 10 SLIDE 1] WHERE {TCP}",
    "q2": f"SELECT SUM(n) FROM s [RANGE 10 SLIDE 1] WHERE {UDP}",
    "q3": f"SELECT SUM(n) FROM s [RANGE 10 SLIDE 1] WHERE {TCP} OR {UDP}",
    "q4": f"SELECT MAX(n) FROM s [RANGE 10 SLIDE 1] WHERE {TCP}",
    "q5": f"SELECT MAX(n) FROM s [RANGE 10 SLIDE 1] WHERE {U}",
    "q6": f"SELECT MAX(n) FROM s [RANGE 10 SLIDE 1] WHERE {TCP} OR {U}",
}


def test_q1_to_q6() -> None:
    engine = fresh()
    both(engine, Q)
    assert how(engine, "q3") == ("added", 2), "Q1 and Q2 are a disjoint cover of Q3"
    assert how(engine, "q6") == ("united", 2), "Q4 and Q5 are a cover of Q6"
    assert engine.runtime.shared.made == 3  # TCP, UDP, user = U: Q4 shares rows with Q1
    found = dict(lines(engine, "SS4"))
    assert set(found.values()) == {"q1, q2, q3", "q4, q5, q6"}
    assert {q for _, q in lines(engine, "CS6")} == {"q1, q2, q3", "q4, q5, q6"}


def test_q4_and_q5_are_no_disjoint_cover() -> None:
    engine = fresh()
    sums = {n: Q[n].replace("MAX", "SUM") for n in ("q4", "q5", "q6")}
    both(engine, sums)
    assert how(engine, "q6") == ("", 1)


@pytest.mark.parametrize(
    "aggregate",
    ["SUM(n)", "COUNT(*)", "SUM(f), AVG(f)", "STDDEV(f)", "COUNT(DISTINCT p)", "TOPK(u, 3)"],
)
def test_q3_and_q2_are_a_supercover_of_q1(aggregate: str) -> None:
    engine = fresh()
    queries = {n: Q[n].replace("SUM(n)", aggregate) for n in ("q3", "q2", "q1")}
    both(engine, queries)
    assert how(engine, "q1") == ("subtracted", 2)


def test_maxima_are_not_subtracted() -> None:
    engine = fresh()
    queries = {n: Q[n].replace("SUM", "MAX") for n in ("q3", "q2", "q1")}
    both(engine, queries)
    assert how(engine, "q1") == ("", 1)


def test_first_and_last_ask_for_the_order_of_rows() -> None:
    engine = fresh()
    both(engine, {n: Q[n].replace("SUM(n)", "LAST(n), ARGMAX(u, n)") for n in ("q1", "q2", "q3")})
    assert how(engine, "q3") == ("", 1)


def test_a_cover_per_group() -> None:
    engine = fresh()
    both(
        engine, {n: Q[n].replace("SUM(n)", "u, SUM(n)") + " GROUP BY u" for n in ("q1", "q2", "q3")}
    )
    assert how(engine, "q3") == ("added", 2)


def test_windows_of_covers_are_as_long_at_least() -> None:
    engine = fresh()
    short = {
        "q1": Q["q1"],
        "q2": Q["q2"],
        "long": Q["q3"].replace("RANGE 10", "RANGE 12"),
        "short": Q["q3"].replace("RANGE 10", "RANGE 8"),
    }
    both(engine, {n: short[n] for n in ("q1", "q2", "short")})
    assert how(engine, "short") == ("added", 2)
    engine = fresh()
    both(engine, short)
    assert how(engine, "long") == ("", 1)


def test_covers_can_be_declined() -> None:
    engine = fresh()
    for name in ("q1", "q2"):
        register(engine, name, Q[name])
    register(engine, "q3", Q["q3"], synopsis="own")
    assert how(engine, "q3") == ("", 1) and engine.runtime.shared.made == 3


def test_sub_windows_of_covers_are_aligned() -> None:
    engine = fresh()
    register(engine, "q1", Q["q1"])
    register(engine, "q2", Q["q2"].replace("SLIDE 1", "SLIDE 2"))  # sub-windows of 2 s
    register(engine, "q3", Q["q3"])
    assert how(engine, "q3") == ("", 1)
    register(engine, "four", Q["q3"].replace("RANGE 10 SLIDE 1", "RANGE 8 SLIDE 4"))
    # from the feed of q3: SS1
    assert engine.runtime.shared.made == 3 and how(engine, "four") == ("", 1)


# ---------------------------------------------------------------- the other rules


def test_ss1_windows_and_aggregates() -> None:
    engine = fresh()
    both(
        engine,
        {
            "a": "SELECT SUM(n) FROM s [RANGE 10 SLIDE 2]",
            "b": "SELECT SUM(n) FROM s [RANGE 4 SLIDE 2]",
            "c": "SELECT MAX(n) FROM s [RANGE 6 SLIDE 2]",
        },
    )
    assert lines(engine, "SS1") == [("s, sub-windows of 2 s", "a, b, c")]
    feed, request = member(engine, "a").group.feed, member(engine, "b").request
    assert SS1.applies(Asked(request, False, (feed,))) and not SS1.applies(
        Asked(request, True, (feed,))
    )
    # no predicate
    assert not SS4.applies(Asked(request, False, (feed,), tuple(member(engine, "a").group.members)))


def test_ss2_and_cs3_average_from_sum_and_count() -> None:
    engine = fresh()
    both(
        engine,
        {
            "total": "SELECT SUM(f), COUNT(f) FROM s [RANGE 10 SLIDE 1]",
            "mean": "SELECT AVG(f) FROM s [RANGE 10 SLIDE 1]",
        },
    )
    feed = member(engine, "mean").group.feed
    assert [c.fn for c in feed.columns] == ["sum"]
    assert SS2.applies(Asked(member(engine, "mean").request, False, (feed,)))
    (line,) = [line for line in sharing(engine) if line["rule"] == "CS3"]
    assert line["queries"] == "total, mean" and "sum(s.f), count(s.f), avg(s.f)" in line[
        "synopses"
    ].replace("(f", "(s.f")
    engine.execute("DROP QUERY total")
    assert [c.fn for c in feed.columns] == ["sum"], "AVG reads it still"


def test_cs1_and_cs2() -> None:
    engine = fresh()
    for k in range(3):
        register(
            engine,
            f"r{k}",
            "SELECT SUM(n), u FROM s [RANGE 10 SLIDE 1] GROUP BY u HAVING SUM(n) > " + str(k),
        )
        register(engine, f"b{k}", f"SELECT MAX(n) FROM s [RANGE {k + 2} SLIDE 1] WHERE u = 'U'")
    assert [q for _, q in lines(engine, "CS1")] == ["r0, r1, r2"]
    assert [q for _, q in lines(engine, "CS2")] == ["b0, b1, b2"]


def test_ss3_cs4_and_cs5() -> None:
    engine = fresh()
    for name, kind in (("a", "auto"), ("b", "auto"), ("c", "running"), ("d", "running")):
        sql = "SELECT COUNT(*) FROM s [RANGE 8 SLIDE 1] AS x JOIN s [RANGE 8] AS y ON x.n = y.n"
        register(
            engine,
            name,
            sql.replace("COUNT(*)", "SUM(x.n)") if kind == "running" else sql,
            synopsis=kind,
        )
    assert {q for _, q in lines(engine, "SS3")} == {"a, b", "c, d"}
    assert [q for _, q in lines(engine, "CS5")] == ["a, b"] and [
        q for _, q in lines(engine, "CS4")
    ] == ["c, d"]


def test_cs7_covers_of_basic_intervals() -> None:
    engine = fresh()
    short = "SELECT MAX(n) FROM s [RANGE 4 SLIDE 1] WHERE "
    both(
        engine,
        {
            "a": short + TCP,
            "b": short + U,
            "c": short.replace("RANGE 4", "RANGE 3") + f"{TCP} OR {U}",
        },
    )
    assert [q for _, q in lines(engine, "CS7")] == ["a, b, c"] and not lines(engine, "CS6")


def test_cs8_the_same_with_a_longer_period() -> None:
    engine = fresh()
    sql = "SELECT u, SUM(n) FROM s [RANGE 12 SLIDE {}] GROUP BY u"
    both(engine, {"fast": sql.format(2), "slow": sql.format(4), "odd": sql.format(3)})
    assert CS8.applies(Pair(member(engine, "fast"), member(engine, "slow")))
    assert not CS8.applies(Pair(member(engine, "fast"), member(engine, "odd")))
    assert [q for _, q in lines(engine, "CS8")] == ["fast, slow"]


# ---------------------------------------------------------------- predicates


def atom(text: str) -> Atom:
    engine = fresh()
    register(engine, "q", f"SELECT SUM(n) FROM s [RANGE 2 SLIDE 1] WHERE {text}")
    found = terms(member(engine, "q").request.where)
    assert found is not None
    (one,) = found
    return one


@pytest.mark.parametrize(("one", "other", "apart"), [
    ("p = 'a'", "p = 'b'", True), ("p = 'a'", "u = 'b'", False), ("p = 'a'", "'a' = p", False),
    ("n < 3", "n >= 3", True), ("n < 3", "n > 2", True), ("n <= 3", "n >= 3", False),
    ("n = 3", "n <> 3", True),
    ("n = 4", "n <> 3", False), ("f < 1.5", "f > 1.5", True), ("f < 1.5", "f > 1.4", False),
    ("p < 'b'", "p = 'c'", True),
    ("p < 'b'", "p = 'a'", False), ("n <> 1", "n <> 2", False), ("3 > n", "n = 3", True),
])  # a table  # fmt: skip
def test_disjoint_atoms(one: str, other: str, apart: bool) -> None:
    a, b = atom(one), atom(other)
    assert a.disjoint(b) is apart and b.disjoint(a) is apart


@pytest.mark.parametrize("where", ["p LIKE 'a%'", "n = 1 AND u = 'x'", "n + 1 = 2", "p IS NULL",
                                   "NOT n = 1", "n = f",
                                   "n = 1 OR p LIKE 'a%'", "n = NULL"])  # a table  # fmt: skip
def test_other_predicates_have_no_atoms(where: str) -> None:
    engine = fresh()
    register(engine, "q", f"SELECT SUM(n) FROM s [RANGE 2 SLIDE 1] WHERE {where}")
    assert terms(member(engine, "q").request.where) is None


@pytest.mark.parametrize("seed", range(300))
def test_covers_count_every_row_once(seed: int) -> None:
    """On all rows of a small world: what is added and subtracted is the predicate."""
    random = Random(seed)
    pool = [Atom(c, op, v) for c, op, v in product((0, 1), ("eq", "ne", "le", "ge"), (0, 1, 2))]  # type: ignore[arg-type]
    pool = random.sample(pool, 6)
    offered = [frozenset(random.sample(pool, random.choice((1, 1, 2, 3)))) for _ in range(8)]
    wanted = frozenset(random.sample(pool, random.choice((1, 2, 3, 4))))
    world = list(product((None, 0, 1, 2, 3), repeat=2))
    for overlap in (False, True):
        found = cover(wanted, offered, overlap, not overlap)
        if found is None:
            continue
        for row in world:
            times = sum(holds(offered[i], row) for i in found.plus) - sum(
                holds(offered[i], row) for i in found.less
            )
            assert (min(times, 1) if overlap else times) == holds(wanted, row), (found, row)


def holds(predicate: Terms, row: tuple[int | None, int | None]) -> int:
    tests = {
        "eq": lambda x, v: x == v,
        "ne": lambda x, v: x != v,
        "le": lambda x, v: x <= v,
        "ge": lambda x, v: x >= v,
    }
    return int(any((x := row[a.column]) is not None and tests[a.op](x, a.value) for a in predicate))


def test_a_thousand_predicates_cost_no_more_than_a_few() -> None:
    offered = [frozenset({Atom(0, "eq", i), Atom(0, "eq", i + 1)}) for i in range(2000)]
    assert cover(frozenset({Atom(0, "eq", 1), Atom(0, "eq", 4000)}), offered, False, True) is None


# ---------------------------------------------------------------- columns


def call(
    fn: str, *, distinct: bool = False, keeps: bool = False, params: tuple[object, ...] = ()
) -> AggCall:
    passes = Lit(True, INT) if keeps else None
    return AggCall(fn, (Col(0, FLOAT),), FLOAT, distinct, passes, params)


@pytest.mark.parametrize(("wanted", "column", "fits"), [
    (call("avg"), call("sum"), True), (call("sum"), call("avg"), True),
    (call("count"), call("sum"), True),
    (call("count"), call("var"), True), (call("sum"), call("count"), False),
    (call("sum"), call("var"), False),
    (call("stddev"), call("var_pop"), True), (call("median"), call("quantile", params=(0.9,)),
                                              True),
    (call("count", distinct=True), call("topk", params=(3,)), True),
    (call("topk", params=(3,)), call("topk", params=(9,)), True),
    (call("sum", distinct=True), call("sum"), False),
    (call("sum"), call("sum", distinct=True), False),
    (call("median", distinct=True), call("count", distinct=True), False),
    (call("avg"), call("sum", keeps=True), False),
    (call("max"), call("min"), False), (call("bool_or"), call("bool_and"), True),
])  # a table  # fmt: skip
def test_same_data(wanted: AggCall, column: AggCall, fits: bool) -> None:
    assert same_data(wanted, column) is fits


def test_columns_of_one_query_serve_each_other() -> None:
    found = sources((call("count"), call("avg"), call("sum"), call("max")), True, [])
    assert (
        len(set(found.values())) == 3
        and found[call("count")] == found[call("sum")] == found[call("avg")]
    )
