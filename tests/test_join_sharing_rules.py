"""Which queries share a join synopsis, and what SHOW SHARING says of it."""

from __future__ import annotations

from random import Random

import pytest

from tests.join_twins import (
    COUNT,
    NUMBER,
    REAL,
    SHAPES,
    S,
    Twins,
    asked,
    feed,
    groups,
    query,
)


def test_a_join_over_windows_of_several_lengths_is_one_synopsis():
    """§8.3.2: (n s, n s)-joins by the plain part, (7s, 8s)- and (6s, 8s)-joins by flagged values: b
    = 8, g = 2."""
    twins = Twins.fresh()
    for i, (x, y) in enumerate([(8, 8), (3, 3), (7, 8), (8, 6), (8, 8)]):
        twins.register(f"q{i}", query(COUNT, x, y, 1))
    (group,) = groups(twins.ours)
    assert (group.feed.shape.b, group.feed.shape.g, len(group.members)) == (8, 2, 5)
    feed(twins, Random(1), 12)
    assert twins.agree([f"q{i}" for i in range(5)]) > 30


def test_windows_that_differ_by_the_same_need_no_flags():
    twins = Twins.fresh()
    for i, (x, y) in enumerate([(2, 9), (1, 8), (4, 11)]):
        twins.register(f"q{i}", query(COUNT, x, y, 1))
    (group,) = groups(twins.ours)
    assert group.feed.shape.lengths == (4 * S, 11 * S) and group.feed.shape.g == 0
    feed(twins, Random(2), 12)
    assert twins.agree(["q0", "q1", "q2"]) > 15


def test_windows_too_different_for_flags_have_a_group_of_their_own():
    twins = Twins.fresh()
    twins.register("same", query(COUNT, 60, 60, 1))
    twins.register("other", query(COUNT, 3, 60, 1))
    assert sorted(g.feed.shape.g for g in groups(twins.ours)) == [0, 0]
    feed(twins, Random(3), 12)
    assert twins.agree(["same", "other"]) > 10


def test_the_same_join_in_other_words():
    twins = Twins.fresh()
    first = (
        "SELECT a.k, SUM(w) FROM a [RANGE 4 s SLIDE 2 s], b [RANGE 4 s] WHERE a.k = b.k AND v "
        "> 2 GROUP BY a.k"
    )
    second = (
        "SELECT key, total FROM (SELECT x.k AS key, SUM(y.w) AS total FROM b [RANGE 6 s SLIDE 2 "
        "s] AS y JOIN (SELECT k, v FROM a [RANGE 6 s]) AS x ON y.k = x.k WHERE x.v > 2 GROUP BY "
        "x.k)"
    )
    twins.register("p", first)
    twins.register("q", second)
    assert [len(g.members) for g in groups(twins.ours)] == [2]
    feed(twins, Random(4), 12)
    assert twins.agree(["p", "q"]) > 5


@pytest.mark.parametrize(
    "other",
    [
        "SELECT COUNT(*) FROM a [RANGE 4 s SLIDE 2 s], b [RANGE 4 s] WHERE a.k = b.k AND v > 2",
        "SELECT COUNT(*) FROM a [RANGE 4 s SLIDE 2 s], b [RANGE 4 s] WHERE a.s = b.s",
        "SELECT COUNT(*) FROM a [RANGE 4 s SLIDE 2 s], b [RANGE 4 s] WHERE a.k = b.k GROUP BY a.s",
        "SELECT COUNT(*) FROM a [RANGE 4 s SLIDE 2 s ALIGN TO TIMESTAMP '1970-01-01 00:00:01'], b "
        "[RANGE 4 s] WHERE a.k = b.k",
    ],
)
def test_what_is_not_the_same_join(other):
    twins = Twins.fresh()
    twins.register(
        "p", "SELECT COUNT(*) FROM a [RANGE 4 s SLIDE 2 s], b [RANGE 4 s] WHERE a.k = b.k"
    )
    twins.register("q", other)
    assert [len(g.members) for g in groups(twins.ours)] == [1, 1]
    feed(twins, Random(5), 10)
    twins.agree(["p", "q"])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT LAST(v) FROM a [RANGE 4 s SLIDE 2 s], b [RANGE 4 s] WHERE a.k = b.k",
        "SELECT ARGMAX(v, w) FROM a [RANGE 4 s SLIDE 2 s], b [RANGE 4 s] WHERE a.k = b.k",
        "SELECT COUNT(*) FROM a [RANGE 4 s SLIDE 2 s] LEFT JOIN b [RANGE 4 s] ON a.k = b.k",
        "SELECT COUNT(*) FROM a [RANGE 4 s UNTIL 2 s AGO SLIDE 2 s], b [RANGE 4 s] WHERE a.k = b.k",
        "SELECT COUNT(*) FROM a [RANGE 4 s SLIDE 2 s], b WHERE a.k = b.k",
        "SELECT Rstream-restore(COUNT(*)) FROM a [RANGE 4 s SLIDE 2 s], b [RANGE 4 s SLIDE 2 s] "
        "WHERE a.k = b.k",
        "SELECT COUNT(*) FROM a [RANGE 1 DAY SLIDE 1 s], b [RANGE 1 DAY] WHERE a.k = b.k",
    ],
)
def test_what_join_synopses_do_not_answer(sql):
    engine = Twins.fresh().ours
    engine.execute(f"CREATE QUERY q AS {sql}")
    asked(engine, "q")
    assert not groups(engine)


def test_a_query_that_comes_late_starts_a_group_where_the_past_is_gone():
    """Without rings the group can't be made to reach further; the new one says until when it is
    partial."""
    twins, random = Twins.fresh(), Random(6)
    twins.register("short", query(COUNT, 2, 2, 1))
    feed(twins, random, 10)
    twins.register("long", query(COUNT, 5, 5, 1))
    twins.register("within", query(COUNT, 1, 1, 1))
    assert [len(g.members) for g in groups(twins.ours)] == [2, 1]
    front = max(asked(twins.ours, "long").partial_until, 0)
    assert front == asked(twins.theirs, "long").partial_until > 0
    assert asked(twins.ours, "within").partial_until < 0  # the group that is there misses nothing
    feed(twins, random, 10)
    twins.agree(["short", "long"])
    twins.agree(["within"], asked(twins.theirs, "within").partial_until + S)


def test_one_scan_serves_all_aggregates_of_a_column(monkeypatch):
    """CS5: lists of aggregates may differ, a boundary probes a column once."""
    from dsms.synopses.bij import BasicIntervalJoin

    twins = Twins.fresh()
    for i, (aggs, n) in enumerate(
        [("COUNT(*)", 4), ("COUNT(*), SUM(v)", 3), ("SUM(v)", 4), ("COUNT(*)", 2)]
    ):
        twins.register(
            f"q{i}",
            f"SELECT {aggs} FROM a [RANGE {n} s SLIDE 1 s], b [RANGE {n} s] WHERE a.k = b.k",
        )
    probes: list[int] = []
    before = BasicIntervalJoin.probe
    monkeypatch.setattr(
        BasicIntervalJoin,
        "probe",
        lambda self, *asked: (probes.append(len(asked[0])), before(self, *asked))[1],
    )
    (group,) = groups(twins.ours)
    assert len(group.feed.columns) == 2
    feed(twins, Random(7), 3)
    probes.clear()
    before_evaluations = asked(twins.ours, "q0").evaluations
    latest = max(e.newest for e in twins.ours.runtime.inputs.values())
    for stream in "ab":
        twins.both("heartbeat", stream, latest // S * S + 2 * S - 1)
    passed = asked(twins.ours, "q0").evaluations - before_evaluations
    assert passed and sum(probes) <= passed * (3 + 2)  # three windows of COUNT(*), two of SUM(v)
    twins.agree([f"q{i}" for i in range(4)])


def test_show_sharing_names_the_rules():
    twins = Twins.fresh()
    twins.register("p", query(COUNT, 4, 4, 1))
    twins.register("q", query(COUNT, 4, 3, 1))
    rules = {line["rule"] for line in twins.ours.execute("SHOW SHARING")[0].data.to_pylist()}
    assert {"SS3", "CS5"} <= rules
    plan = "\n".join(twins.ours.execute("EXPLAIN QUERY q")[0].data.column(0).to_pylist())
    assert "BIJ" in plan and "g = 1" in plan and "shared with: p" in plan
    kinds = {line["kind"] for line in twins.ours.execute("SHOW WINDOWS")[0].data.to_pylist()}
    assert kinds == {"basicintervaljoin"}


def test_many_groups_and_few_results_are_left_to_operators():
    """An update of a synopsis goes through all intervals of all groups: it must be shared, or asked
    for."""
    twins = Twins.fresh()
    n = 20_000
    for stream in "ab":
        named = {
            "k": list(range(n)),
            "s": [None] * n,
            NUMBER[stream]: [1] * n,
            REAL[stream]: [None] * n,
        }
        twins.ours.ingest(stream, {**named, "t": [10_000 * i for i in range(n)]})
    sql = query(SHAPES[2], 600, 600, 1)
    twins.ours.execute(f"CREATE QUERY p AS {sql}")
    assert asked(twins.ours, "p").evaluator.path == "IS"
    twins.ours.execute(f"CREATE QUERY q AS {sql} WITH (path = 'ss')")
    twins.ours.execute(f"CREATE QUERY r AS {sql}")
    assert [asked(twins.ours, name).evaluator.path for name in "qr"] == ["SS", "SS"]
