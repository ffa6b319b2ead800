"""Queries that come and go beside each other share synopses; their answers are those of twins that
share nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

import dsms
from dsms.periodic.query import PeriodicQuery
from dsms.settings import Settings
from dsms.sharing.member import Member
from tests.effort import SLOW

S = 1_000_000
STREAM = "CREATE STREAM s (p STRING, u STRING, n INT, f FLOAT, t TIMESTAMP) TIMESTAMP BY t"


def fresh(more: str = "") -> dsms.Engine:
    engine = dsms.Engine()
    engine.execute(STREAM + more)
    return engine


def rows(random: Random, seconds: Sequence[float]) -> dict[str, list[Any]]:
    n = len(seconds)
    return {
        "p": random.choices(["TCP", "UDP", "ICMP", "ESP", None], k=n),
        "u": random.choices(["U", "V", "W", None], k=n),
        "n": random.choices([*range(-3, 9), None], k=n),
        "f": [random.choice([0.1, 1e17, -1e17, 3.7, 1 / 3, None]) for _ in range(n)],
        "t": [int(t * S) for t in seconds],
    }


def member(engine: dsms.Engine, name: str) -> Member:
    query = engine.runtime.queries[name]
    assert isinstance(query, PeriodicQuery) and isinstance(query.evaluator, Member)
    return query.evaluator


def how(engine: dsms.Engine, name: str) -> tuple[str, int]:
    """How feeds are combined for a query, and how many."""
    view = member(engine, name).view
    assert view is not None
    return view.how, len(view.parts)


def sharing(engine: dsms.Engine) -> list[dict[str, Any]]:
    return engine.execute("SHOW SHARING")[0].data.to_pylist()


@dataclass
class Watched:
    """What a query has answered, by boundary."""

    engine: dsms.Engine
    name: str
    reader: Any = field(init=False)
    reported: dict[int, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reader = self.engine.subscribe(self.name, 0)

    @property
    def whole(self) -> int:
        query = self.engine.runtime.queries[self.name]
        assert isinstance(query, PeriodicQuery)
        return query.partial_until

    def answers(self) -> dict[int, list[str]]:
        for push in self.reader.take():
            if push.kind == "result":
                ats = [push.at] * push.data.num_rows if push.ats is None else push.ats.to_pylist()
                for at, row in zip(ats, push.data.to_pylist(), strict=True):
                    self.reported.setdefault(at, []).append(repr(tuple(row.values())))
        return self.reported


@dataclass
class Pair:
    """A query and its twin."""

    engine: dsms.Engine
    name: str
    sql: str
    one: Watched = field(init=False)
    twin: Watched = field(init=False)
    since: int = field(init=False)

    def __post_init__(self) -> None:
        self.engine.execute(f"CREATE QUERY {self.name} AS {self.sql}")
        self.engine.execute(f"CREATE QUERY twin_{self.name} AS {self.sql} WITH (path = 'is')")
        self.one, self.twin = (
            Watched(self.engine, self.name),
            Watched(self.engine, f"twin_{self.name}"),
        )
        self.since = max(self.one.whole, self.twin.whole)

    def check(self) -> int:
        """Both have answered the same since both are whole; how many boundaries that is."""
        for watched in (self.one, self.twin):
            assert self.engine.runtime.queries[watched.name].failure is None
        mine, theirs = self.one.answers(), self.twin.answers()
        ats = sorted({*mine, *theirs})
        last: list[list[str] | None] = [None, None]
        for at in ats:
            pairs = zip((mine, theirs), last, strict=True)
            here = [told.get(at, None if "GROUP BY" in self.sql else old) for told, old in pairs]
            assert at <= self.since or here[0] == here[1], (self.name, self.sql, at / S)
            last = here  # what a global aggregate goes on answering where a silence is passed over
        return sum(at > self.since for at in ats)

    def drop(self) -> int:
        """Both are dropped; see `check`."""
        checked = self.check()
        self.engine.execute(f"DROP QUERY {self.name}")
        self.engine.execute(f"DROP QUERY twin_{self.name}")
        return checked


# ---------------------------------------------------------------- one after the other


def test_a_cover_keeps_its_feeds_when_their_queries_are_dropped() -> None:
    engine, random = fresh(), Random(3)
    sql = "SELECT SUM(f), COUNT(*) FROM s [RANGE 10 SLIDE 1] WHERE "
    one, two = Pair(engine, "q1", sql + "p = 'TCP'"), Pair(engine, "q2", sql + "p = 'UDP'")
    both = Pair(engine, "q3", sql + "p = 'TCP' OR p = 'UDP'")
    assert how(engine, "q3") == ("added", 2)
    engine.ingest("s", rows(random, range(30)))
    one.drop()
    engine.ingest("s", rows(random, range(30, 60)))
    two.drop()
    engine.ingest("s", rows(random, range(60, 90)))
    assert both.check() > 80
    again = Pair(engine, "q1", sql + "p = 'TCP'")  # the feed is there still
    assert how(engine, "q1") == ("", 1) and engine.runtime.shared.made == 2
    engine.ingest("s", rows(random, range(90, 120)))
    assert again.check() and both.check()
    both.drop()
    again.drop()
    shared = engine.runtime.shared
    assert not shared.groups and not shared.spaces and not shared.alike


def test_a_cover_outlives_a_restart(tmp_path: Path) -> None:
    engine, random = dsms.Engine(str(tmp_path)), Random(9)
    engine.execute(STREAM)
    sql = "SELECT SUM(f), COUNT(*) FROM s [RANGE 10 SLIDE 1] WHERE "
    names = ("p = 'TCP'", "p = 'UDP'", "p = 'TCP' OR p = 'UDP'")
    pairs = [Pair(engine, f"q{i}", sql + where) for i, where in enumerate(names)]
    engine.ingest("s", rows(random, range(30)))
    engine.close()
    engine = dsms.Engine(str(tmp_path))
    assert how(engine, "q2") == ("added", 2)
    engine.ingest("s", rows(random, range(30, 60)))
    for pair in pairs:
        pair.one, pair.twin = Watched(engine, pair.name), Watched(engine, f"twin_{pair.name}")
        pair.engine = engine
        assert pair.check() > 50
    Pair(engine, "more", sql + names[-1])
    # and finds those who ask the same
    assert member(engine, "more").view is member(engine, "q2").view
    engine.close()


def test_a_cover_joins_feeds_that_have_run_for_long() -> None:
    engine, random = fresh(), Random(4)
    sql = (
        "SELECT u, MIN(p), AVG(n), COUNT(DISTINCT f) FROM s [RANGE 20 SLIDE 2] WHERE {} GROUP BY u"
    )
    parts = [
        Pair(engine, f"q{i}", sql.format(f"p = '{p}'"))
        for i, p in enumerate(("TCP", "UDP", "ICMP"))
    ]
    engine.ingest("s", rows(random, range(50)))
    whole = Pair(engine, "whole", sql.format("p IN ('TCP', 'UDP', 'ICMP')"))
    assert how(engine, "whole") == ("added", 3)
    engine.ingest("s", rows(random, range(50, 120)))
    assert whole.one.whole < 50 * S  # it has the history of the feeds
    assert whole.check() > 20 and all(p.check() > 20 for p in parts)


def test_a_long_silence_leaves_covers_right() -> None:
    engine, random = fresh(), Random(5)
    sql = "SELECT u, SUM(n) FROM s [RANGE 10 SLIDE 1] WHERE {} GROUP BY u"
    pairs = [
        Pair(engine, f"q{i}", sql.format(w))
        for i, w in enumerate(("n < 2", "n >= 2", "n < 2 OR n >= 2"))
    ]
    assert how(engine, "q2") == ("added", 2)
    for start in (0, 100_000, 100_020, 400_000):
        engine.ingest("s", rows(random, [start + k / 3 for k in range(60)]))
        assert all(p.check() for p in pairs)


def test_a_longer_window_is_extended_from_the_ring() -> None:
    engine, random = fresh(" RETAIN 1 min"), Random(6)
    sql = "SELECT SUM(n) FROM s [RANGE {} SLIDE 1]"
    short = Pair(engine, "short", sql.format(5))
    engine.ingest("s", rows(random, range(50)))
    long = Pair(engine, "long", sql.format(40))
    assert member(engine, "long").group is member(engine, "short").group
    assert long.since <= 0
    engine.ingest("s", rows(random, range(50, 80)))
    assert long.check() >= 29 and short.check() >= 70


def test_a_longer_window_without_a_ring_says_until_when_it_is_partial() -> None:
    engine, random = fresh(), Random(7)
    short = Pair(engine, "short", "SELECT SUM(n) FROM s [RANGE 5 SLIDE 1]")
    engine.ingest("s", rows(random, range(50)))
    long = Pair(engine, "long", "SELECT SUM(n) FROM s [RANGE 40 SLIDE 1]")
    assert 80 * S <= long.one.whole <= 90 * S
    engine.ingest("s", rows(random, range(50, 120)))
    assert long.check() >= 29 and short.check()


def test_the_slower_twin_goes_on_when_the_faster_is_dropped() -> None:
    engine, random = fresh(), Random(8)
    sql = "SELECT u, MAX(f) FROM s [RANGE 12 SLIDE {}] GROUP BY u"
    fast, slow = Pair(engine, "fast", sql.format(2)), Pair(engine, "slow", sql.format(6))
    assert member(engine, "fast").same == member(engine, "slow").same
    engine.ingest("s", rows(random, range(40)))
    assert fast.check() > 15 and slow.check() > 5
    assert any(
        line["rule"] == "CS8" and line["queries"] == "fast, slow" for line in sharing(engine)
    )
    fast.drop()
    engine.ingest("s", rows(random, range(40, 80)))
    assert slow.check() > 10


def test_an_elastic_twin_takes_the_period_of_the_faster_one_until_it_is_dropped() -> None:
    engine, random = dsms.Engine(settings=Settings(deferred=True)), Random(10)
    engine.execute(STREAM)
    sql = "SELECT u, SUM(n) FROM s [RANGE 12 SLIDE {}] GROUP BY u"
    for name, slide in (("fast", 2), ("slow", 6)):
        engine.execute(f"CREATE QUERY {name} AS {sql.format(slide)} WITH (boundaries = 'elastic')")

    def period(name: str) -> int:
        late = engine.runtime.backlog.lateness(name)
        assert late is not None
        return late.period

    assert (period("fast"), period("slow")) == (1, 1)  # in updates of 2 s
    for second in range(0, 40, 2):
        engine.ingest("s", rows(random, [second, second + 1]))
        while engine.work():
            pass
    fast, slow = (engine.runtime.queries[name].answer().to_pylist() for name in ("fast", "slow"))
    assert fast == slow and fast
    engine.execute("DROP QUERY fast")
    assert period("slow") == 3


def test_covered_elastic_queries_are_scheduled_with_those_that_cover_them() -> None:
    engine, random = dsms.Engine(settings=Settings(deferred=True)), Random(11)
    engine.execute(STREAM)
    sql = "SELECT SUM(n) FROM s [RANGE 12 SLIDE 2] WHERE {} WITH (boundaries = '{}')"
    parts = {"a": "p = 'TCP'", "b": "p = 'UDP'", "c": "p = 'TCP' OR p = 'UDP'"}
    for name, where in parts.items():
        engine.execute(f"CREATE QUERY {name} AS {sql.format(where, 'elastic')}")
    own = sql.format(parts["c"], "every").replace("WITH (", "WITH (synopsis = 'own', ")
    engine.execute(f"CREATE QUERY d AS {own}")
    assert how(engine, "c") == ("added", 2) and list(engine.runtime.backlog.units) == ["s#1"]
    for second in range(0, 40, 2):
        engine.ingest("s", rows(random, [second, second + 1]))
        while engine.work():
            pass
        answers = {n: engine.runtime.queries[n].answer() for n in "abcd"}
        if all(answers.values()):
            assert answers["c"].equals(answers["d"])
    assert all(q.answered == 38 * S for q in engine.runtime.queries.values())


def test_the_synopsis_follows_the_number_of_queries_together() -> None:
    """Basic intervals once b / log2 b = 64 / 6 queries are answered together; landmarks where
    widths are close."""
    engine, random = fresh(), Random(9)
    sql = "SELECT MAX(f) FROM s [RANGE {} SLIDE 1]"
    pairs = [Pair(engine, "q64", sql.format(64))]
    (column,) = member(engine, "q64").group.feed.columns.values()
    kinds = []
    for k in range(1, 24):
        engine.ingest("s", rows(random, [8 * k + j / 2 for j in range(16)]))
        pairs.append(Pair(engine, f"q{k}", sql.format(64 - 2 * k)))
        kinds.append(type(column.synopsis).__name__)
    assert (
        list(dict.fromkeys(kinds)) == ["Interval", "Landmark", "Basic"]
        and "b / log2 b" in column.why
    )
    engine.ingest("s", rows(random, range(200, 300)))
    for pair in pairs[2:]:
        assert pair.drop() > 50
        engine.ingest("s", rows(random, [300 + int(pair.name[1:])]))
    assert type(column.synopsis).__name__ != "Basic"
    engine.ingest("s", rows(random, range(330, 400)))
    assert all(pair.check() > 100 for pair in pairs[:2])


# ---------------------------------------------------------------- at random

ATOMS = (  # predicates are made of some of these
    ("p = 'TCP'", "p = 'UDP'", "p = 'ICMP'", "p = 'ESP'", "p = 'TCP'", "p = 'UDP'"),
    ("p = 'TCP'", "u = 'U'", "u = 'V'", "p <> 'TCP'", "u = 'W'"),
    ("n < 1", "n >= 5", "n = 2", "n = 3", "n > 0", "5 < n"),
    ("f < 0.2", "f = 3.7", "f > 3.7", "f >= 3.7", "f = 0.25"),
)
ANSWERS = (
    "SUM(n)", "AVG(n)", "COUNT(n)", "SUM(f), AVG(f)", "COUNT(f)", "COUNT(*)", "MAX(p)",
    "MIN(n), MAX(n)",
    "COUNT(DISTINCT p)", "TOPK(p, 2)", "MEDIAN(n)", "QUANTILE(n, 0.9)", "STDDEV(f)", "MAX(f)",
    "LAST(p)",
    "COUNT(DISTINCT u), SUM(n)", "SUM(n) FILTER (WHERE u = 'V')",
)  # a long list  # fmt: skip


def query(random: Random, answers: Sequence[str], atoms: Sequence[str], keys: str) -> str:
    length, slide = random.choice([8, 16, 16]), random.choice([2, 2, 4])
    items = ", ".join(filter(None, [keys, random.choice(answers)]))
    terms = " OR ".join(random.sample(atoms, random.choice([0, 1, 1, 1, 2, 2, 3])))
    passes = f" WHERE {terms}" if terms else ""
    by = f" GROUP BY {keys}" if keys else ""
    return f"SELECT {items} FROM s [RANGE {length} SLIDE {slide}]{passes}{by}"


LONG = pytest.mark.fuzz  # these make hundreds of thousands of answers


@pytest.mark.parametrize(
    "seeds",
    [(0, 3), pytest.param((1, 2, 6, 7), marks=SLOW), pytest.param((4, 5, 8, 9), marks=LONG)],
)
def test_queries_come_and_go(seeds: tuple[int, ...]) -> None:
    checked, covered = zip(*map(come_and_go, seeds), strict=True)
    assert all(checked) and sum(covered) > 2 * len(seeds)


def come_and_go(seed: int) -> tuple[int, int]:
    """How many answers were compared, and how many queries were covered by others."""
    random = Random(seed)
    engine = fresh(random.choice(["", "", " RETAIN 8 SECONDS", " RETAIN 1 min"]))
    alive: dict[str, Pair] = {}
    answers, keys = random.sample(ANSWERS, 1), random.choice(["", "u"])  # few, so that many share
    clock, checked, covered = 0.0, 0, 0
    for step in range(40):
        if random.random() < 0.6 or not alive:
            alive[f"q{step}"] = Pair(
                engine, f"q{step}", query(random, answers, ATOMS[seed % len(ATOMS)], keys)
            )
            covered += how(engine, f"q{step}")[1] > 1
        elif random.random() < 0.4:
            checked += alive.pop(random.choice(sorted(alive))).drop()
        n = random.randint(1, 12)
        gaps = [random.choice([0, 0.25, 0.5, 1, 3]) for _ in range(n)]
        seconds = [clock + sum(gaps[: i + 1]) for i in range(n)]
        clock = seconds[-1]
        engine.ingest("s", rows(random, seconds))
        if random.random() < 0.3:
            clock += random.choice([0.5, 4, 30])
            engine.heartbeat("s", int(clock * S))
        if random.random() < 0.03:
            clock += 100_000
        sharing(engine)
    checked += sum(pair.drop() for pair in alive.values())
    assert not any(engine.runtime.shared.groups.values()) and not engine.runtime.shared.spaces
    return checked, covered
