"""Aggregates over window joins from shared join synopses: answers are those of the operators, bit
for bit.

Each engine with synopses has a twin whose queries are registered WITH (path = 'is'), and is given
the same rows in other pieces.  The twin is judged by the oracle (test_periodic_equivalence).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dsms
from dsms.api import Cancel
from dsms.errors import DsmsError
from dsms.periodic.query import PeriodicQuery
from dsms.periodic.silence import SILENCE
from dsms.settings import Settings
from dsms.sharing.join_group import JoinGroup
from dsms.sharing.member import Member
from tests.effort import examples

S = 1_000_000
STREAMS = """CREATE STREAM a (k INT, s STRING, v INT, f FLOAT, t TIMESTAMP) TIMESTAMP BY t{more};
             CREATE STREAM b (k INT, s STRING, w INT, g FLOAT, t TIMESTAMP) TIMESTAMP BY t{more};"""
NUMBER, REAL = {"a": "v", "b": "w"}, {"a": "f", "b": "g"}

SHAPES = (
    "SELECT COUNT(*), SUM(v + w), MIN(f), MAX(g), AVG(w) FROM a {x}, b {y} WHERE a.k = b.k",
    "SELECT SUM(f), SUM(f * g), STDDEV(g), VAR_POP(f) FROM a {x}, b {y} WHERE a.k = b.k",
    "SELECT a.k, COUNT(*) AS n, SUM(v), MIN(b.s) FROM a {x}, b {y} WHERE a.k = b.k AND v > 0 "
    "GROUP BY a.k",
    "SELECT b.s, MEDIAN(v), COUNT(DISTINCT w), TOPK(a.s, 2) FROM b {y}, a {x} WHERE b.k = a.k "
    "GROUP BY b.s",
    "SELECT h, m / 2 FROM (SELECT v % 2 AS h, MAX(w) AS m, COUNT(*) AS n FROM a {x}, b {y} WHERE "
    "v < w GROUP BY v % 2) WHERE n > 1",
    "SELECT a.s, BOOL_OR(v > w), SUM(w) FILTER (WHERE g > 0) FROM a {x} JOIN b {y} ON a.k = b.k "
    "GROUP BY a.s HAVING COUNT(*) > 1 ORDER BY 1 DESC LIMIT 2",
    "SELECT x.k, COUNT(*), SUM(x.v - y.v) FROM a {x} AS x, a {y} AS y WHERE x.k = y.k AND x.v < "
    "y.v GROUP BY x.k",
    "SELECT Istream(a.k, COUNT(*)) FROM a {x}, b {y} WHERE a.k = b.k GROUP BY a.k",
)


def query(shape: str, x: float, y: float, slide: float, align: str = "") -> str:
    return shape.format(x=f"[RANGE {x} s SLIDE {slide} s{align}]", y=f"[RANGE {y} s]")


@dataclass
class Twins:
    """An engine with synopses, and one with operators alone."""

    ours: dsms.Engine
    theirs: dsms.Engine

    @staticmethod
    def fresh(more: str = "") -> Twins:
        both = dsms.Engine(), dsms.Engine()
        for engine in both:
            engine.execute(STREAMS.format(more=more))
        return Twins(*both)

    def register(self, name: str, sql: str, synopsis: str = "auto") -> None:
        self.ours.execute(f"CREATE QUERY {name} AS {sql} WITH (synopsis = '{synopsis}')")
        self.theirs.execute(f"CREATE QUERY {name} AS {sql} WITH (path = 'is')")
        evaluator = asked(self.ours, name).evaluator
        assert isinstance(evaluator, Member) and isinstance(evaluator.group, JoinGroup)
        assert asked(self.theirs, name).evaluator.path == "IS"

    def both(self, do: str, *args: Any) -> None:
        for engine in (self.ours, self.theirs):
            getattr(engine, do)(*args)

    def ingest(self, random: Random, stream: str, rows: dict[str, list[Any]]) -> None:
        """The same rows, cut differently."""
        for engine in (self.ours, self.theirs):
            left = rows
            while left["t"]:
                n = random.randint(1, len(left["t"]))
                engine.ingest(stream, {c: v[:n] for c, v in left.items()})
                left = {c: v[n:] for c, v in left.items()}

    def agree(self, names: Sequence[str], since: int = 0) -> int:
        """Whether all that was reported is the same, from that boundary on; how many rows."""
        count = 0
        for name in names:
            mine, twin = (told(engine, name, since) for engine in (self.ours, self.theirs))
            assert mine == twin, name
            assert asked(self.ours, name).answered == asked(self.theirs, name).answered
            count += len(mine)
        return count


def asked(engine: dsms.Engine, name: str) -> PeriodicQuery:
    found = engine.runtime.queries[name]
    assert isinstance(found, PeriodicQuery)
    found.check()
    return found


def told(engine: dsms.Engine, name: str, since: int = 0) -> list[tuple[Any, ...]]:
    """(boundary, values as they are written: -0.0 is not 0.0) of all result rows."""
    out = []
    for chunk in asked(engine, name).log.since(0):
        columns = [c.to_pylist() for c in chunk.data.columns]
        out += [
            tuple(map(repr, row))
            for row in zip(chunk.at.tolist(), *columns, strict=True)
            if row[0] >= since
        ]
    return out


def groups(engine: dsms.Engine) -> list[JoinGroup]:
    return list(engine.runtime.shared.joins.of(None))


def rows(random: Random, stream: str, start: int, n: int) -> dict[str, list[Any]]:
    ts = []
    for _ in range(n):
        start += random.choice([0, 0, 1, 200_000, 500_000, S, 2_500_000])
        ts.append(start)
    return {
        "k": random.choices([1, 1, 2, None], k=n),
        "s": random.choices(["x", "y", "", None], k=n),
        NUMBER[stream]: random.choices([None, -5, 2, 3, 7], k=n),
        REAL[stream]: random.choices(
            [None, 0.1, 1e300, -1e300, -2.5, 1 / 3, float("nan"), 3e-310], k=n
        ),
        "t": ts,
    }


def feed(twins: Twins, random: Random, steps: int) -> None:
    """Rows of both streams in turns, from where they are."""
    at = dict.fromkeys("ab", max(0, *(e.newest for e in twins.ours.runtime.inputs.values())))
    for _ in range(steps):
        stream = min(at, key=lambda k: at[k]) if random.random() < 0.7 else random.choice("ab")
        some = rows(random, stream, at[stream], random.randint(1, 8))
        at[stream] = some["t"][-1]
        twins.ingest(random, stream, some)


def end_period(twins: Twins, at: dict[str, int]) -> None:
    """A row of each stream, and nothing more until a second is over."""
    for stream, instant in at.items():
        row = {"k": [1], "s": ["x"], NUMBER[stream]: [2], REAL[stream]: [1.0], "t": [instant]}
        twins.both("ingest", stream, row)
    for stream, instant in at.items():
        twins.both("heartbeat", stream, instant + S - 1)


@given(st.integers(0, 2**32), st.integers(2, 12))
@settings(max_examples=examples(25), deadline=None)
def test_answers_are_those_of_the_operators(seed, steps):
    random, twins = Random(seed), Twins.fresh()
    names = [f"q{i}" for i in range(random.randint(1, 5))]
    shapes = random.sample(SHAPES, 2)
    for name in names:
        x, slide = random.randint(1, 7), random.choice([1, 2, 3, 5])
        y = x if random.random() < 0.4 else random.randint(1, 7)
        align = random.choice(["", "", " ALIGN TO TIMESTAMP '1970-01-01 00:00:00.5'"])
        kind = random.choice(["auto", "basic", "interval", "running"])
        twins.register(name, query(random.choice(shapes), x, y, slide, align), kind)
    feed(twins, random, steps)
    twins.both("end", "a")
    twins.both("end", "b")
    twins.agree(names)


@given(st.integers(0, 2**32))
@example(seed=258500)
@settings(max_examples=examples(12), deadline=None)
def test_queries_come_and_go(seed):
    """The rings hold a minute: groups are made anew with longer windows while they run, and no
    answer changes."""
    random, twins = Random(seed), Twins.fresh(" RETAIN 1 MINUTE")
    names, made = [], 0
    for _ in range(8):
        if names and random.random() < 0.3:
            gone = names.pop(random.randrange(len(names)))
            twins.both("execute", f"DROP QUERY {gone}")
        else:
            x = random.randint(1, 8)
            y = x if random.random() < 0.5 else random.randint(1, 8)
            names.append(f"q{made}")
            twins.register(
                names[-1], query(random.choice(SHAPES[:4]), x, y, random.choice([1, 2, 3]))
            )
            made += 1
        feed(twins, random, random.randint(1, 4))
        twins.agree(names)
    assert sum(len(g.members) for g in groups(twins.ours)) == len(names)
    for name in names:
        twins.both("execute", f"DROP QUERY {name}")
    assert groups(twins.ours) == []


@pytest.mark.parametrize("beside", [None, 1, 3])
def test_a_query_that_comes_as_a_period_ends_is_answered_at_once(beside):
    """In a group of its own, one that is made anew for it, and one that is there: no row has to
    come for that."""
    twins = Twins.fresh(" RETAIN 1 MINUTE")
    if beside is not None:
        twins.register("beside", query(COUNT, beside, beside, 1))
    end_period(twins, {"a": 0, "b": 0})
    twins.register("q", query(COUNT, 2, 2, 1))
    assert len(groups(twins.ours)) == 1
    assert twins.agree(["q"]) == 1


def test_a_query_that_comes_when_all_has_ended_is_answered_from_a_group_made_anew():
    """The last period of the one that was there ends later: the group has gone on to there."""
    twins = Twins.fresh(" RETAIN 1 MINUTE")
    twins.register("p", query(COUNT, 2, 2, 2))
    end_period(twins, {"a": 2 * S, "b": 2 * S})
    twins.both("end", "a")
    twins.both("end", "b")
    twins.register("q", query(COUNT, 2, 2, 1))
    assert len(groups(twins.ours)) == 1
    assert told(twins.ours, "q") == [(repr(3 * S), "1", "4", "1.0", "1.0", "2.0")]
    assert twins.agree(["p", "q"]) == 3


@given(st.integers(0, 2**32))
@settings(max_examples=examples(12), deadline=None)
def test_queries_come_as_periods_end(seed):
    random, twins = Random(seed), Twins.fresh(" RETAIN 1 MINUTE")
    names = [f"q{i}" for i in range(5)]
    for i, name in enumerate(names):
        feed(twins, random, random.randint(1, 4))
        last = max(e.newest for e in twins.ours.runtime.inputs.values())
        for stream in "ab":
            twins.both("heartbeat", stream, last // S * S + S - 1)
            if i == len(names) - 1:
                twins.both("end", stream)
        x = random.randint(1, 8)
        y = x if random.random() < 0.5 else random.randint(1, 8)
        twins.register(name, query(random.choice(SHAPES[:4]), x, y, random.choice([1, 1, 2, 3])))
        twins.agree(names[: i + 1])


# ---------------------------------------------------------------- who shares


COUNT = SHAPES[0]


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


# ---------------------------------------------------------------- time, groups, faults


def test_many_groups_come_and_are_forgotten():
    """Codes of keys that no window holds are used again."""
    twins = Twins.fresh()
    sql = (
        "SELECT a.k, COUNT(*), SUM(w) FROM a [RANGE 2 s SLIDE 1 s], b [RANGE {n} s] WHERE a.k = "
        "b.k GROUP BY a.k"
    )
    twins.register("p", sql.format(n=2))
    twins.register("q", sql.format(n=1))
    for k in range(12):
        keys = list(range(1500 * k, 1500 * k + 1500))
        ts = [k * S + i for i in range(1500)]
        for stream in "ab":
            named = {
                "k": keys,
                "s": [None] * 1500,
                NUMBER[stream]: keys,
                REAL[stream]: [None] * 1500,
                "t": ts,
            }
            twins.both("ingest", stream, named)
    (group,) = groups(twins.ours)
    assert group.feed.space.keys.rows < 12 * 1500 / 2
    assert twins.agree(["p", "q"]) > 12_000


def test_a_long_silence():
    twins, random = Twins.fresh(), Random(8)
    twins.register("p", query(COUNT, 4, 4, 1))
    feed(twins, random, 6)
    for engine in (twins.ours, twins.theirs):
        for stream in "ab":
            engine.heartbeat(stream, 400_000 * S)
    assert asked(twins.ours, "p").answered == 400_000 * S
    done = len(told(twins.ours, "p"))
    assert SILENCE < done < SILENCE + 50  # what is behind them is told as one
    some = {"k": [1], "s": ["x"], "v": [2], "f": [1.0], "t": [400_001 * S]}
    twins.both("ingest", "a", some)
    twins.both("ingest", "b", {"k": [1], "s": ["x"], "w": [2], "g": [1.0], "t": [400_001 * S]})
    twins.both("end", "a")
    twins.both("end", "b")
    assert twins.agree(["p"], 400_001 * S)


def test_an_overflow_stops_one_query_and_no_other():
    twins = Twins.fresh()
    join = "FROM a [RANGE 2 s SLIDE 1 s], b [RANGE 2 s] WHERE a.k = b.k"
    twins.register("sum", f"SELECT SUM(v) {join}")
    twins.register("count", f"SELECT COUNT(*), MAX(v) {join}")
    big = 2**62
    for stream, number in (("a", "v"), ("b", "w")):
        some = {
            "k": [1, 1, 1],
            "s": ["x"] * 3,
            number: [big] * 3,
            REAL[stream]: [1.0] * 3,
            "t": [0, 1, 2],
        }
        twins.both("ingest", stream, some)
        twins.both("heartbeat", stream, 5 * S)
    for engine in (twins.ours, twins.theirs):
        failure = engine.runtime.queries["sum"].failure
        assert failure is not None and failure.code == "DS706"
    assert twins.agree(["count"])


def test_failing_values_are_counted_for_all_who_read_them():
    twins = Twins.fresh()
    for name, n in (("p", 2), ("q", 3)):
        sql = f"SELECT SUM(v / w) FROM a [RANGE {n} s SLIDE 1 s], b [RANGE {n} s] WHERE a.k = b.k"
        twins.register(name, sql)
    twins.both("ingest", "a", {"k": [1], "s": ["x"], "v": [4], "f": [1.0], "t": [0]})
    twins.both(
        "ingest", "b", {"k": [1, 1], "s": ["x"] * 2, "w": [0, 2], "g": [1.0] * 2, "t": [0, 0]}
    )
    for stream in "ab":
        twins.both("heartbeat", stream, 5 * S)
    assert twins.agree(["p", "q"]) == 10
    assert [asked(twins.ours, name).errors.by_code for name in "pq"] == [{"DS701": 1}] * 2


def test_too_many_results_at_one_instant_stop_all_who_share_the_join():
    engine = dsms.Engine(settings=replace(Settings(), step_rows=100))
    engine.execute(STREAMS.format(more=""))
    for name, n in (("p", 2), ("q", 3)):
        engine.execute(f"CREATE QUERY {name} AS {query(COUNT, n, n, 1)}")
    n = 20
    engine.ingest("a", {"k": [1] * n, "s": ["x"] * n, "v": [1] * n, "f": [1.0] * n, "t": [0] * n})
    engine.ingest("b", {"k": [1] * n, "s": ["x"] * n, "w": [1] * n, "g": [1.0] * n, "t": [0] * n})
    engine.end("a")
    engine.end("b")
    assert [engine.runtime.queries[q].failure.code for q in "pq"] == ["DS631"] * 2
    engine.execute(f"CREATE QUERY r AS {query(COUNT, 2, 2, 1)}")
    assert asked(engine, "r").failure is None and len(groups(engine)) == 2


def test_state_beyond_its_limit_stops_the_query_that_has_the_limit():
    twins = Twins.fresh()
    twins.ours.execute(f"CREATE QUERY small AS {query(COUNT, 4, 4, 1)} WITH (max_state = 10)")
    twins.register("p", query(COUNT, 4, 4, 1))
    feed(twins, Random(9), 4)
    assert twins.ours.runtime.queries["small"].failure.code == "DS630"
    assert twins.agree(["p"])


class Later(Cancel):
    """Asks to stop at every chance."""

    def check(self) -> None:
        raise DsmsError("DS610", "stopped")


def test_a_cancelled_step_is_gone_on_with():
    twins, random = Twins.fresh(), Random(10)
    twins.register("p", query(COUNT, 3, 2, 1))
    feed(twins, random, 6)
    latest = max(e.newest for e in twins.ours.runtime.inputs.values())
    for stream in "ab":
        twins.theirs.heartbeat(stream, latest + 5 * S)
        try:
            twins.ours.heartbeat(stream, latest + 5 * S, Later())
        except DsmsError as error:
            assert error.code == "DS610"
    feed(twins, random, 6)
    assert twins.agree(["p"])


def test_elastic_queries_are_answered_when_there_is_time():
    engine = dsms.Engine(settings=replace(Settings(), deferred=True))
    engine.execute(STREAMS.format(more=""))
    join = "SELECT COUNT(*), SUM(v) FROM a [RANGE {n} s SLIDE 1 s], b [RANGE {n} s] WHERE a.k = b.k"
    for name, n in (("p", 2), ("q", 4)):
        engine.execute(f"CREATE QUERY {name} AS {join.format(n=n)} WITH (boundaries = 'elastic')")
    for stream in "ab":
        some = {"k": [1] * 6, "s": ["x"] * 6, NUMBER[stream]: [1] * 6, REAL[stream]: [1.0] * 6}
        engine.ingest(stream, {**some, "t": [i * S for i in range(6)]})
    while engine.work():
        pass
    assert told(engine, "p")[-1] == (repr(5 * S), "4", "4")
    assert told(engine, "q")[-1] == (repr(5 * S), "16", "16")
