"""Queries that find their groups by a collective index, beside twins that look at every group."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dsms
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.sharing import search, searches
from dsms.sharing.member import Member
from dsms.sharing.threshold import threshold
from tests.effort import examples
from tests.join_twins import asked, told

S = 1_000_000
STREAM = "CREATE STREAM s (k STRING, x INT, d DECIMAL(12, 2), f FLOAT, t TIMESTAMP) TIMESTAMP BY t;"
HAVING = (
    "COUNT(*) > {n}",
    "COUNT(*) >= {n} AND MAX(x) > 2",
    "{n} < COUNT(x)",
    "COUNT(*) = {n}",
    "SUM(x) > {n}",
    "SUM(x) > {n}.5",
    "SUM(d) >= {n}",
    "SUM(d) BETWEEN {n} AND 50",
    "COUNT(*) FILTER (WHERE f > 0) > {n}",
    "SUM(x) > {n} AND COUNT(*) > 1",
    "COUNT(*) < {n}",
    "COUNT(*) <= {n} AND SUM(x) > 1",
    "{n} >= COUNT(*) AND COUNT(x) < 5",
    "MAX(x) > {n}",
    "MIN(x) <= {n} AND MAX(f) > 0",
    "MAX(d) >= {n}.25",
    "MAX(f) > 0.{n}",
    "MIN(f) < -0.2",
    "0.1 > MIN(f)",
    "MAX(x) = {n}",
    "MIN(d) < {n}",
    "MAX(t) > TIMESTAMP '1970-01-01 00:00:{n:02}'",
)
SHAPES = (
    "SELECT k, COUNT(*) AS n FROM s {w} GROUP BY k HAVING {h}",
    "SELECT COUNT(*) AS n, k, SUM(x) AS x, SUM(d) AS d FROM s {w} GROUP BY k HAVING {h}",
    "SELECT k, AVG(x) AS m, MAX(f) AS f, 10 / COUNT(*) AS r FROM s {w} GROUP BY k HAVING {h}",
    "SELECT k, x % 3 AS g, SUM(f) AS f FROM s {w} GROUP BY k, x % 3 HAVING {h}",
    "SELECT Istream(k, SUM(x)) FROM s {w} WHERE x > 1 GROUP BY k HAVING {h}",
    "SELECT k, MEDIAN(f) AS m FROM s {w} GROUP BY k HAVING {h} ORDER BY m LIMIT 4",
    "SELECT k, COUNT(DISTINCT x) AS c FROM s {w} GROUP BY k HAVING {h} AND k > 'g1'",
)
WINDOWS = (
    "[RANGE 12 s SLIDE 4 s]",
    "[RANGE 12 s SLIDE 2 s]",
    "[RANGE 40 s SLIDE 4 s]",
    "[RANGE 8 s UNTIL 4 s AGO SLIDE 4 s]",
    "[ROWS 60 SLIDE 20]",
)


def members(engine: Engine) -> list[Member[Any]]:
    return [m for g in engine.runtime.shared.all() for m in g.members]


def found(engine: Engine) -> int:
    """Groups that indices found at the last boundaries, of all queries."""
    return sum(s.found for m in members(engine) if (s := searches.search_of(m)) is not None)


def rows(rng: Random, n: int, start: int, wild: bool) -> tuple[list[list[Any]], int]:
    """Rows of few large groups and many small ones; `wild`: negative ones among them."""
    out, t = [], start
    for _ in range(n):
        t += rng.choice([0, 20_000, 100_000])
        x = rng.choice([None, rng.randint(-3 if wild else 0, 9)])
        d = None if x is None else f"{x}.{rng.randint(0, 99):02}"
        key = None if rng.random() < 0.05 else f"g{int(rng.paretovariate(0.7)) % 40}"
        out.append([key, x, d, rng.choice([None, rng.random() - 0.5]), t])
    return out, t


class Pair:
    """An engine whose queries ask indices, and one whose queries are operators."""

    def __init__(self, queries: list[str], wish: str = "collective") -> None:
        self.ours, self.twin = Engine(), Engine()
        self.names = [f"q{i}" for i in range(len(queries))]
        for engine, option in ((self.ours, f"synopsis = {wish}"), (self.twin, "path = 'is'")):
            engine.execute(STREAM)
            for name, sql in zip(self.names, queries, strict=True):
                engine.execute(f"CREATE QUERY {name} AS {sql} WITH ({option})")

    def push(self, rng: Random, came: list[list[Any]]) -> None:
        for engine in (self.ours, self.twin):
            start = 0
            while start < len(came):
                stop = start + rng.randint(1, 120)
                engine.ingest("s", came[start:stop])
                start = stop

    def agree(self) -> None:
        for name in self.names:
            assert told(self.ours, name) == told(self.twin, name), name
            assert asked(self.ours, name).errors.count == asked(self.twin, name).errors.count


def drawn(rng: Random) -> str:
    having = rng.choice(HAVING).format(n=rng.choice([0, 1, 3, 8, 20, 33]))
    return rng.choice(SHAPES).format(w=rng.choice(WINDOWS), h=having)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(60), deadline=None)
def test_answers_are_those_of_all_groups(seed):
    """Also where sums are negative for a while, and several boundaries are answered at once."""
    rng = Random(seed)
    pair = Pair([drawn(rng) for _ in range(rng.randint(1, 6))])
    t = 0
    for wild in (False, rng.random() < 0.5, False):
        came, t = rows(rng, rng.randint(1, 500), t, wild)
        pair.push(rng, came)
        t += rng.choice([0, 0, 30 * S])
    for engine in (pair.ours, pair.twin):
        engine.heartbeat("s", t + 60 * S)
    pair.agree()


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(20), deadline=None)
def test_auto_changes_no_answer(seed):
    """Whatever the cost model thinks of it, back and forth."""
    rng = Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "ANSWER", 0.0)
        patch.setattr(search, "EACH", rng.choice([0.5, 5.0, 100.0]))
        patch.setattr(search, "RESTS", 2)
        queries = [drawn(rng) for _ in range(3)]
        queries += [
            q.replace("SELECT k, COUNT(*) AS n", "SELECT k, COUNT(*) AS m") for q in queries
        ]
        pair = Pair(queries, "auto")
        came, t = rows(rng, 800, 0, False)
        pair.push(rng, came)
        for engine in (pair.ours, pair.twin):
            engine.heartbeat("s", t + 60 * S)
        pair.agree()


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(12), deadline=None)
def test_restarts_and_queries_that_come_and_go(tmp_path_factory, seed):
    rng = Random(seed)
    path = tmp_path_factory.mktemp("data")
    sql = [drawn(rng) for _ in range(4)]
    ours, twin = Engine(path), Engine()
    for engine in (ours, twin):
        engine.execute(STREAM)
    made, t = dict[str, str](), 0
    for step in range(4):
        name = f"q{step}"
        ours.execute(f"CREATE QUERY {name} AS {sql[step]} WITH (synopsis = collective)")
        twin.execute(f"CREATE QUERY {name} AS {sql[step]} WITH (synopsis = none)")
        made[name] = sql[step]
        if step == 2 and rng.random() < 0.5:
            for engine in (ours, twin):
                engine.execute("DROP QUERY q0")
            del made["q0"]
        came, t = rows(rng, 200, t, rng.random() < 0.2)
        for engine in (ours, twin):
            engine.ingest("s", came)
        if rng.random() < 0.5:
            ours.close()
            ours = Engine(path)
    for engine in (ours, twin):
        engine.heartbeat("s", t + 60 * S)
    for name in made:
        assert told(ours, name) == told(twin, name), name
    ours.close()


def many(engine: Engine, seconds: int, keys: int = 6000) -> None:
    """Each second a tenth of the keys, each for a few times alone, and ten that come always."""
    for s in range(seconds):
        new = [f"k{(s * keys // 10 + i) % (keys * 3)}" for i in range(keys // 10)]
        names = [*new, *(f"always{i}" for i in range(10))]
        engine.ingest(
            "s",
            {
                "k": names,
                "x": [1] * len(names),
                "d": [None] * len(names),
                "f": [None] * len(names),
                "t": [s * S] * len(names),
            },
        )


def test_groups_that_are_forgotten_and_come_again():
    """Codes of groups are handed out again; the index knows nothing of who had them before."""
    pair = Pair(
        ["SELECT k, COUNT(*) AS n FROM s [RANGE 5 s SLIDE 1 s] GROUP BY k HAVING COUNT(*) > 3"]
    )
    for engine in (pair.ours, pair.twin):
        many(engine, 60)
        engine.heartbeat("s", 100 * S)
    pair.agree()
    (mine,) = members(pair.ours)
    assert mine.group.feed.space.keys.capacity < 15_000
    assert len({row[1] for row in told(pair.ours, "q0")}) == 10


def test_a_column_of_many_groups_becomes_sparse(monkeypatch):
    """Where groups have become many after the query was registered, only those that occur are
    kept."""
    from dsms.sharing import choose_synopsis
    from dsms.synopses import choose

    monkeypatch.setattr(choose_synopsis, "MANY", 1000)
    monkeypatch.setattr(choose, "MANY", 1000)
    monkeypatch.setattr("dsms.sharing.stream_group.MANY", 1000)
    pair = Pair(
        ["SELECT k, COUNT(*) AS n FROM s [RANGE 5 s SLIDE 1 s] GROUP BY k HAVING COUNT(*) > 3"]
    )
    for engine in (pair.ours, pair.twin):
        many(engine, 20)
        engine.heartbeat("s", 21 * S)
    pair.agree()
    (mine,) = members(pair.ours)
    kinds = {c.synopsis.kind for c in mine.group.feed.columns.values()}
    assert kinds == {"basic"}
    assert 10 <= found(pair.ours) < 1000


@pytest.mark.parametrize("gap", [3_000, 2**31 * 100 + 50, 2 * 10**17])
def test_after_a_silence(gap):
    """What came before it is gone, however many boundaries have passed."""
    engine = Engine()
    engine.execute("CREATE STREAM s (k STRING, t TIMESTAMP) TIMESTAMP BY t")
    for name in ("collective", "running"):
        engine.execute(
            f"CREATE QUERY {name} AS SELECT k, COUNT(*) AS n FROM s [RANGE 400 us SLIDE 100 us] "
            f"GROUP BY k HAVING COUNT(*) > 2 WITH (synopsis = {name})"
        )
    engine.ingest("s", {"k": ["a"] * 9 + ["b"] * 2, "t": list(range(0, 550, 50))})
    engine.ingest("s", {"k": ["b", "a", "b", "b"], "t": [gap + i for i in range(4)]})
    engine.heartbeat("s", gap + 10_000)
    found, other = (
        [(p.at, p.kind, p.data.to_pylist()) for p in engine.subscribe(n, 0).take() if p.data]
        for n in ("collective", "running")
    )
    assert found == other and any(at > gap for at, _, _ in found)


def test_sums_that_overflow_fail_as_they_do_without():
    """A SUM beside the threshold, of a group that no index finds."""
    query = "SELECT k, SUM(x) AS n FROM s [RANGE 5 s SLIDE 1 s] GROUP BY k HAVING COUNT(*) > 2"
    pair = Pair([query])
    most = 2**62
    came = [
        ["a", most, None, None, 0],
        ["b", 1, None, None, 0],
        ["b", 1, None, None, 0],
        ["b", 1, None, None, 0],
        ["a", most, None, None, 2 * S],
    ]
    pair.push(Random(0), came)
    for engine in (pair.ours, pair.twin):
        engine.heartbeat("s", 4 * S)
        failure = engine.runtime.queries["q0"].failure
        assert isinstance(failure, DsmsError) and failure.code == "DS706"


def test_explain_and_show_sharing_tell():
    sql = "SELECT k, SUM(d) AS d FROM s [RANGE 5 s SLIDE 1 s] GROUP BY k HAVING SUM(d) > {}"
    pair = Pair([sql.format(10), sql.format("10.25"), sql.format(99)])
    before = plan(pair.ours, "QUERY q0")
    assert "collective index: sum(d) > 10.00, to be asked first at the next boundary" in before
    came, _ = rows(Random(1), 600, 0, False)
    pair.push(Random(2), came)
    after = plan(pair.ours, "QUERY q0")
    assert f"collective index: sum(d) > 10.00: looked at {found_once(pair.ours)} of " in after
    (shared,) = [r for r in sharing(pair.ours) if r["rule"] == "CI"]
    assert shared["queries"] == "q0, q1, q2" and shared["synopses"] == "running: sum(d)"
    assert not [r for r in sharing(pair.twin) if r["rule"] == "CI"]
    none = sql.replace("SUM(d) > {}", "AVG(d) > 3")
    assert "collective index: none" in plan(pair.ours, f"{none} WITH (synopsis = collective)")
    new = plan(pair.ours, f"{sql.format(5)} WITH (synopsis = collective)")
    assert "collective index: a new one" in new


def found_once(engine: Engine) -> int:
    (one,) = {s.found for m in members(engine) if (s := searches.search_of(m)) is not None}
    return one


def plan(engine: Engine, what: str) -> str:
    return "\n".join(engine.execute(f"EXPLAIN {what}")[0].data.column(0).to_pylist())


def sharing(engine: Engine) -> list[dict[str, Any]]:
    return engine.execute("SHOW SHARING")[0].data.to_pylist()


def test_look_ups_ask_the_index():
    engine, twin = Engine(), Engine()
    for e, synopsis in ((engine, "collective"), (twin, "none")):
        e.execute(STREAM)
        e.execute(
            "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 60 s] GROUP BY k "
            f"HAVING COUNT(*) > 5 ON LOOKUP WITH (synopsis = {synopsis})"
        )
        came, _ = rows(Random(4), 900, 0, False)
        e.ingest("s", came)
    mine, other = (e.execute("LOOKUP q")[0].data for e in (engine, twin))
    assert mine.equals(other) and len(mine) > 3
    assert len(mine) <= found(engine) < 40


@pytest.mark.parametrize(
    ("having", "expected"),
    [
        ("COUNT(*) > 10", ("count_star", 10)),
        ("10 <= COUNT(*)", ("count_star", 9)),
        ("SUM(d) > 3", ("sum", 300)),
        ("SUM(d) > 10.5", ("sum", 1048)),
        ("SUM(x) BETWEEN 3 AND 5", ("sum", 2)),
        ("SUM(x) > 0 AND COUNT(*) > 7", ("count_star", 7)),
        ("COUNT(*) > 5 AND SUM(x) / COUNT(*) > 3", None),
        ("COUNT(DISTINCT x) > 3", None),
        ("COUNT(*) < 5", None),
        ("SUM(x) >= 0", None),
        ("SUM(f) > 1", None),
        ("COUNT(*) > 2 OR COUNT(*) = 1", None),
        ("MAX(x) > 7", ("max", 7.0)),
        ("7 >= MIN(f)", ("min", -7.0)),
        ("MAX(f) < 7", None),
        ("MAX(f) > 2 AND COUNT(*) > 1", ("count_star", 1)),
        ("MIN(k) < 'a'", None),
    ],
)
def test_what_is_a_threshold(having, expected):
    engine = dsms.Engine()
    engine.execute(STREAM)
    engine.execute(
        f"CREATE QUERY q AS SELECT k FROM s [RANGE 5 s SLIDE 1 s] GROUP BY k HAVING {having}"
    )
    (member,) = members(engine)
    got = threshold(member.request, member.above.nodes)
    assert (None if got is None else (got.call.fn, got.least)) == expected
