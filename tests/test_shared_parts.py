"""Continuous queries share parts of their plans, and answer as if each had run alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.plan import above
from dsms.plan.parts import keys_of, node_at
from dsms.plan.planner import plan
from dsms.running.shared_parts import is_worth
from dsms.settings import Settings
from dsms.sql.ast import SelectStatement
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_one
from tests.effort import examples
from tests.generate.stories import kept_stories, stories
from tests.hosts import Host as AnyHost
from tests.stories.model import Section, Story
from tests.stories.play import some_ways
from tests.test_equivalence import check

SECOND = 1_000_000
TABLES = (
    "CREATE TABLE r (k INT, n STRING); CREATE TABLE p (k INT PRIMARY KEY, w INT) NON RETROACTIVE"
)
AB = (
    "CREATE STREAM a (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t{0}; "
    "CREATE STREAM b (k INT, w INT, t TIMESTAMP) TIMESTAMP BY t{0}"
)
GROUPS = "SELECT k, COUNT(*) AS c FROM a [RANGE 2 s] GROUP BY k"
JOIN = "a [RANGE 2 s], b [RANGE 2 s] WHERE a.k = b.k"
ALIKE = "a [RANGE 2 s] AS p, b [RANGE 2 s] AS q WHERE q.k = p.k"
LOWER = st.sampled_from(
    [
        "a [RANGE 2 s] AS a, b [RANGE 2 s] AS b WHERE a.k = b.k",
        "a [RANGE 2 s] AS a, b [RANGE 2 s] AS b WHERE a.k = b.k AND a.v + b.v > 1",
        "a [RANGE 1 s] AS a, b [RANGE 3 s UNTIL 1 s AGO] AS b WHERE a.k = b.k",
        "a [ROWS 2] AS a, b [RANGE 2 s] AS b WHERE a.k = b.k",
        "a [RANGE 2 s] AS a, b [RANGE 1 s] AS b, a [NOW] AS c WHERE a.k = b.k AND b.k = c.k",
        "a [RANGE 2 s] AS a, a [RANGE 1 s] AS b WHERE a.k = b.v",
        "a [RANGE 2 s] AS a JOIN r AS b ON a.k = b.k, b [RANGE 1 s] AS c WHERE c.k = a.k",
        "a [RANGE 2 s] AS a LEFT JOIN b [RANGE 1 s] AS b ON a.k = b.k WHERE a.k >= 0",
        "a [RANGE 2 s] AS a JOIN p AS b ON a.k = b.k, b [RANGE 1 s] AS c WHERE c.k = a.k",
        "a [RANGE 2 s] AS a, b [RANGE 2 s] AS b WHERE a.k = b.k AND 6 / (a.v - b.v) > 1",
        "(SELECT a.k, COUNT(*) AS v FROM a [RANGE 3 s] AS a JOIN r ON a.k = r.k GROUP BY a.k) "
        "AS a, b [RANGE 2 s] AS b WHERE a.k = b.k",
        "(SELECT k, v FROM a [RANGE 3 s] ORDER BY v DESC LIMIT 2 PER k) AS a, b [RANGE 2 s] AS b "
        "WHERE a.k = b.k",
    ]
)
UPPER = st.sampled_from(
    [
        "SELECT a.k, b.k AS j FROM {}",
        "SELECT Istream(a.k + 1 AS x) FROM {}",
        "SELECT Dstream(a.k) FROM {}",
        "SELECT * FROM (SELECT a.k, a.v, b.k AS j FROM {}) AS q WHERE q.k = 1 OR q.j + q.v > 2",
        "SELECT a.v, COUNT(*) AS c, MAX(a.k) AS m FROM {} GROUP BY a.v",
        "SELECT x.c FROM (SELECT a.k, COUNT(*) AS c FROM {} GROUP BY a.k) AS x WHERE x.c > 1",
        "SELECT COUNT(*) AS c FROM {}",
        "SELECT DISTINCT a.k FROM {}",
        "SELECT a.k / a.v AS x FROM {}",
        "SELECT x.c FROM (SELECT a.k, COUNT(*) AS c FROM {} GROUP BY a.k) AS x WHERE x.c = 1",
    ]
)
SINGLE = st.sampled_from(
    [
        "SELECT k, COUNT(*) AS c, AVG(v) AS m FROM a [RANGE 2 s] GROUP BY k",
        "SELECT k, COUNT(*) AS c, AVG(v) AS m FROM a [RANGE 2 s] GROUP BY k HAVING COUNT(*) > 1",
        "SELECT k, SUM(v) AS s FROM a [RANGE 2 s] WHERE k <> v GROUP BY k",
        "SELECT v, SUM(k) AS s FROM a [RANGE 2 s] WHERE k <> v GROUP BY v",
        "SELECT MAX(v) AS m FROM a [RANGE 2 s]",
        "SELECT k, v FROM a [RANGE 3 s] ORDER BY v LIMIT 1 PER k",
        "SELECT k, v FROM a [RANGE 3 s] ORDER BY v LIMIT 2 PER k",
        "SELECT v FROM a [ROWS 3] ORDER BY k, v DESC LIMIT 1",
        "SELECT Istream(MAX(v) AS m) FROM a [RANGE 2 s]",
        "SELECT DISTINCT v FROM a [RANGE 1 s]",
        "SELECT k, v FROM a [ROWS 3] WHERE k <> 1",
        "SELECT k FROM a [RANGE 3 s] EXCEPT SELECT k FROM b [RANGE 2 s]",
        "SELECT k FROM a [RANGE 3 s] WHERE k IN (SELECT k FROM b [RANGE 2 s])",
        "SELECT SUM(v + 9223372036854775800) AS s FROM a [RANGE 2 s]",
        "SELECT FIRST(v) AS f, k FROM a [RANGE 3 s] GROUP BY k",
        "SELECT k, COUNT(*) AS c FROM (SELECT k, v, COUNT(*) AS n FROM a [RANGE 2 s] "
        "GROUP BY k, v) AS q GROUP BY k",
    ]
)
OPTIONS = st.sampled_from(
    ["", "", "", "", " WITH (on_error = 'stop')", " WITH (strategy = 'nt')",
     " WITH (strategy = 'direct')"]
)  # by the line  # fmt: skip
ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 2), st.none() | st.integers(0, 3), st.integers(-1, 2)),
    max_size=5,
)
CHANGES = st.sampled_from(
    [
        "INSERT INTO r VALUES (1, 'x')", "INSERT INTO r VALUES (2, 'y'), (0, 'z')",
        "DELETE FROM r WHERE k = 1", "UPDATE r SET n = 'u' WHERE k = 2",
        "INSERT INTO p VALUES ({}, 1)", "UPDATE p SET w = w + 1", "DELETE FROM p WHERE k = 1",
    ]
)  # by the line  # fmt: skip
POOL = st.lists(LOWER, min_size=1, max_size=2).flatmap(
    lambda lows: st.lists(
        st.one_of(st.builds(lambda u, low: u.format(low), UPPER, st.sampled_from(lows)), SINGLE),
        min_size=1,
        max_size=3,
    )
)  # of which the queries of one example are made
STEPS = POOL.flatmap(lambda pool: st.lists(step_of(pool), min_size=6, max_size=20))


def step_of(pool: list[str]) -> st.SearchStrategy[tuple[str, Any]]:
    query = st.tuples(st.sampled_from(pool), OPTIONS, st.booleans())
    return st.one_of(
        st.tuples(st.just("a"), ROWS),
        st.tuples(st.just("b"), ROWS),
        st.tuples(st.just("both"), ROWS),
        st.tuples(st.just("query"), query),
        st.tuples(st.just("query"), query),
        st.tuples(st.just("query"), query),
        st.tuples(st.just("drop"), st.integers(0, 9)),
        st.tuples(st.just("time"), st.integers(0, 8)),
        st.tuples(st.just("change"), CHANGES),
        st.tuples(st.just("look"), st.integers(0, 9)),
        st.tuples(st.just("restart"), st.none()),
    )


class Host(AnyHost):
    """One that shares, or one that does not."""

    def __init__(self, folder: str, on: bool, pauses: bool, retain: bool) -> None:
        kept = " RETAIN 5 s" if retain else ""
        columns = "(k INT, v INT, t TIMESTAMP) TIMESTAMP BY t SLACK 1 s"
        streams = [f"CREATE STREAM {name} {columns}{kept}" for name in "ab"]
        super().__init__(folder, pauses, [*streams, TABLES], shared_parts=on)

    def look(self) -> list[str]:
        return super().look() + [self.run(f"SELECT * FROM {name}") for name in self.readers]


def same(steps: list[tuple[str, Any]], pauses: bool, retain: bool) -> int:
    """Play it with and without sharing; how many queries came to share something."""
    with TemporaryDirectory() as on, TemporaryDirectory() as off:
        hosts = [Host(on, True, pauses, retain), Host(off, False, pauses, retain)]
        now, number, shared, names = 0, 0, set[str](), list[str]()
        for kind, given_ in [*steps, ("time", 20), ("look", 0), ("end", None)]:
            told: list[Any] = [None, None]
            match kind:
                case "a" | "b" | "both" if given_:
                    ts = []
                    for row in given_:
                        now += row[-1] * SECOND // 2
                        ts.append(max(now, 0))
                    k, v, _ = (list(c) for c in zip(*given_, strict=True))
                    for host in hosts:
                        for stream in "ab" if kind == "both" else kind:
                            host.engine.ingest(stream, {"k": k, "v": v, "t": ts})
                case "query":
                    sql, options, late = given_
                    name = f"q{number}"
                    number += 1
                    told = [h.run(f"CREATE QUERY {name} AS {sql}{options}") for h in hosts]
                    if name in hosts[0].engine.runtime.catalog.queries:
                        names.append(name)
                        start = 0 if late else None
                        for h in hosts:
                            h.readers[name] = h.engine.subscribe(name, start)
                case "drop" if names:
                    name = names.pop(given_ % len(names))
                    for host in hosts:
                        host.run(f"DROP QUERY {name}")
                        del host.readers[name]
                case "time":
                    now += given_ * SECOND // 2
                    for host in hosts:
                        for stream in "ab":
                            host.engine.heartbeat(stream, now)
                case "change":
                    told = [h.run(given_.format(number)) for h in hosts]
                case "look":
                    told = [h.look() for h in hosts]
                case "restart":
                    for host in hosts:
                        host.restart()
                case "end":
                    for host in hosts:
                        host.engine.end("a")
                        host.engine.end("b")
                    told = [h.look() for h in hosts]
            assert told[0] == told[1], (kind, given_)
            got, want = (host.taken() for host in hosts)
            assert got == want, (kind, given_)
            queries = hosts[0].engine.runtime.queries.items()
            shared |= {n for n, q in queries if getattr(q, "shares", False)}
        for host in hosts:
            host.engine.close()
        return len(shared)


@settings(max_examples=examples(150), deadline=None)
@given(STEPS, st.booleans(), st.booleans())
def test_answers_are_the_same_without_it(
    steps: list[tuple[str, Any]], pauses: bool, retain: bool
) -> None:
    same(steps, pauses, retain)


def twins(story: Story, more: str) -> Story:
    """The query of a story beside equal ones, which came before and after it."""
    place = next(k for k, s in enumerate(story.sections) if s.kind == "query")
    sql = story.sections[place].body
    before, after = Section("query", "before", sql), Section("query", "after", sql)
    sections = [*story.sections[:place], after, *story.sections[place:]]
    sections.insert(1, before)
    sections.insert(place + 2 if more else len(sections), Section("query", "more", sql))
    return replace(story, sections=sections)


@settings(max_examples=examples(36), deadline=None)
@given(st.one_of(stories(), kept_stories()), st.integers(0, 9999), st.booleans())
def test_the_oracle_knows_nothing_of_it(story: Story, seed: int, more: bool) -> None:
    check(twins(story, "x" if more else ""), some_ways(seed)[:3])


@settings(max_examples=examples(36), deadline=None)
@given(st.one_of(stories(), kept_stories()), st.integers(0, 9999))
def test_plans_whose_selections_stay_above_answer_the_same(story: Story, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(above, "LITTLE", 1e9)
        check(twins(story, ""), [way for way in some_ways(seed) if way.optimize][:3])


def plan_of(made: Engine, select: str) -> Any:
    statement = parse_one(select)
    assert isinstance(statement, SelectStatement)
    return plan(bind_query(statement, made.runtime.catalog))


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (f"SELECT a.k FROM {JOIN}", f"SELECT p.k + 1 AS x FROM {ALIKE}", True),
        (
            f"SELECT a.k FROM {JOIN}",
            f"SELECT p.k FROM {ALIKE.replace('RANGE 2', 'RANGE 3')}",
            False,
        ),
        ("SELECT k, v FROM a [ROWS 2]", "SELECT z.k AS y, v AS x FROM a [ROWS 2] AS z", True),
        ("SELECT k, v FROM a [ROWS 2]", "SELECT k, v FROM a [ROWS 3]", False),
        ("SELECT DISTINCT k FROM a [RANGE 1 s]", "SELECT DISTINCT k FROM a [RANGE 1000 ms]", True),
        ("SELECT k FROM a [RANGE 1 s] WHERE v <> 1", "SELECT k FROM a [RANGE 1 s] WHERE v <> 2", 0),
        ("SELECT k, SUM(v) FROM a [NOW] GROUP BY k", "SELECT k, SUM(v) FROM b [NOW] GROUP BY k", 0),
        ("SELECT 1.0 * v FROM a [ROWS 2]", "SELECT CAST(v AS FLOAT) FROM a [ROWS 2]", True),
    ],
)
def test_which_parts_are_the_same(one: str, other: str, common: bool) -> None:
    made = Engine()
    made.execute(AB.format("").replace("w INT", "v INT"))
    keys = []
    for select in (one, other):
        phys = plan_of(made, select)
        found = keys_of(phys).items()
        keys.append({key for path, key in found if path and is_worth(node_at(phys, path))})
    assert bool(keys[0] & keys[1]) == bool(common)


def engine(*queries: str, on: bool = True, more: str = "") -> Engine:
    made = Engine(settings=Settings(shared_parts=on))
    made.execute(AB.format(more))
    for k, sql in enumerate(queries):
        made.execute(f"CREATE QUERY q{k} AS {sql}")
    return made


def shown(made: Engine, statement: str) -> list[Any]:
    (rows,) = made.execute(statement)
    return [tuple(row.values()) for row in rows.data.to_pylist()]  # type: ignore[union-attr]


def fed(made: Engine, first: int, count: int, keys: int = 3) -> None:
    """Rows of both streams, half a second apart."""
    at = [(first + i) * SECOND // 2 for i in range(count)]
    k = [i % keys for i in range(count)]
    made.ingest("a", {"k": k, "v": k, "t": at})
    made.ingest("b", {"k": k, "w": k, "t": at})


def test_who_shares_what_is_shown() -> None:
    made = engine(
        f"SELECT a.k, w FROM {JOIN}",
        f"SELECT a.k, COUNT(*) AS c FROM {JOIN} GROUP BY a.k",
        f"SELECT * FROM (SELECT a.k, COUNT(*) AS c FROM {JOIN} GROUP BY a.k) AS x WHERE c > 2",
        f"SELECT a.k, w + 1 AS x FROM {JOIN}",
        "SELECT a.k FROM a [RANGE 3 s], b [RANGE 2 s] WHERE a.k = b.k",
    )
    once = "the queries have this part of their plans in common: it runs, and has its state, once"
    assert shown(made, "SHOW SHARING") == [
        ("SP", "GroupBy a.k; count(*), of a, b", None, "q1, q2", 2, once),
        ("SP", "Join a.k = b.k, of a, b", None, "q0, q3", 2, once),
    ]
    assert shown(made, "EXPLAIN QUERY q2")[-2:] == [
        ("runs once for all queries that have it: GroupBy a.k; count(*)",),
        ("GroupBy a.k; count(*): shared with q1",),
    ]
    made.execute("DROP QUERY q1; DROP QUERY q3; DROP QUERY q2")
    assert shown(made, "SHOW SHARING") == []
    assert shown(made, "EXPLAIN QUERY q0")[-1] == ("Join a.k = b.k: shared with none now",)
    made.execute("DROP QUERY q0")
    assert not made.runtime.dispatch.parts


@pytest.mark.parametrize("on", [True, False])
def test_a_part_is_not_ahead_of_all_that_stand_on_it(on: bool) -> None:
    """Else a change of its table would be dated behind it."""
    made = engine(on=on)
    made.execute(f"{TABLES}; INSERT INTO r VALUES (0, 'x')")
    counted = "SELECT a.k, COUNT(*) AS n FROM a [RANGE 9 s] JOIN r ON a.k = r.k GROUP BY a.k"
    both = f"({counted}) AS x, b [RANGE 9 s] WHERE b.k = x.k"
    made.execute(f"CREATE QUERY q AS SELECT x.n FROM {both}")
    made.execute(f"CREATE QUERY o AS SELECT x.n + w AS m FROM {both} AND w > 0")
    assert len(made.runtime.dispatch.parts) == on
    made.ingest("a", [[1, 1, SECOND], [1, 1, 5 * SECOND]])
    made.heartbeat("a", 10 * SECOND)  # and b has had no row yet
    made.execute("INSERT INTO r VALUES (1, 'y')")
    assert made.runtime.tables["r"].last_change == 5 * SECOND
    made.ingest("b", [[1, 1, 6 * SECOND]])
    made.heartbeat("b", 9 * SECOND)
    assert [(p.at, p.data.to_pylist()) for p in made.subscribe("q", 0).take() if p.data] == [  # type: ignore[union-attr]
        (6 * SECOND, [{"n": 2}])
    ]


def test_parts_stand_on_parts() -> None:
    both = f"SELECT a.k, w FROM {JOIN}"
    made = engine(
        f"SELECT k, COUNT(*) AS c FROM ({both}) AS q GROUP BY k",
        f"SELECT k, COUNT(*) AS c FROM ({both}) AS q GROUP BY k HAVING COUNT(*) > 1",
        "SELECT k, MAX(c) AS m FROM (SELECT a.k, a.v, COUNT(*) AS c FROM "
        f"{JOIN} GROUP BY a.k, a.v) AS q GROUP BY k",
        "SELECT * FROM (SELECT k, MAX(c) AS m FROM (SELECT a.k, a.v, COUNT(*) AS c FROM "
        f"{JOIN} GROUP BY a.k, a.v) AS q GROUP BY k) AS z WHERE m > 1",
        f"SELECT v, c + 1 AS d FROM (SELECT a.k, a.v, COUNT(*) AS c FROM {JOIN} "
        "GROUP BY a.k, a.v) AS q",
    )
    depths = [part.depth for part in made.runtime.dispatch.parts.values()]
    assert depths == sorted(depths) and max(depths) == 1
    fed(made, 0, 6)
    for name in list(made.runtime.queries):
        made.execute(f"DROP QUERY {name}")
    assert not made.runtime.dispatch.parts


def test_a_join_is_shared_at_once_and_groups_when_their_windows_are_equal() -> None:
    """The younger one may not see what came before it; of a GROUP BY that is over when the older
    one has let go of it."""
    queries = [
        f"SELECT a.k, w FROM {JOIN}",
        "SELECT k, COUNT(*) AS c FROM a [RANGE 2 s] GROUP BY k",
    ]
    made = engine(*queries)
    fed(made, 0, 3)
    made.execute(f"CREATE QUERY join_too AS {queries[0]}")
    made.execute(f"CREATE QUERY group_too AS {queries[1]}")
    assert [line[3] for line in shown(made, "SHOW SHARING")] == ["q0, join_too"]
    assert made.runtime.queries["join_too"].feeds[0].least  # type: ignore[attr-defined]
    fed(made, 3, 3)
    assert len(shown(made, "SHOW SHARING")) == 1
    fed(made, 6, 6)
    assert [line[3] for line in shown(made, "SHOW SHARING")] == ["q0, join_too", "q1, group_too"]
    assert not made.runtime.parts.pending


def test_over_kept_rows_groups_are_shared_at_once() -> None:
    made = engine(GROUPS, more=" RETAIN 3 s")
    fed(made, 0, 12)
    made.execute(f"CREATE QUERY too AS {GROUPS}")
    assert [line[3] for line in shown(made, "SHOW SHARING")] == ["q0, too"]


def test_what_does_not_fit_is_looked_at_ever_more_seldom() -> None:
    """The older MAX keeps the ids of a row that the younger one has never had."""
    made = engine("SELECT MAX(v) AS m FROM a [RANGE 2 s]")
    made.ingest("a", {"k": [0], "v": [9], "t": [0]})
    made.ingest("a", {"k": [0, 0], "v": [9, 9], "t": [SECOND, SECOND + 1]})
    made.execute("CREATE QUERY too AS SELECT MAX(v) AS m FROM a [RANGE 2 s]")
    looks = []
    for i in range(4, 120):
        made.ingest("a", {"k": [0], "v": [9], "t": [i * SECOND // 2]})
        looks.append(made.runtime.parts.pending["too"][0])
    assert 2 < len(set(looks)) < 10 and looks == sorted(looks)
    assert shown(made, "SHOW SHARING") == []
    made.ingest("a", {"k": [0] * 3, "v": [1] * 3, "t": [90 * SECOND, 200 * SECOND, 300 * SECOND]})
    made.ingest("a", {"k": [0] * 2, "v": [2] * 2, "t": [301 * SECOND, 302 * SECOND]})
    assert [line[3] for line in shown(made, "SHOW SHARING")] == ["q0, too"]


def test_an_overflow_in_a_part_stops_all_its_queries() -> None:
    sums = "SELECT SUM(v) AS s FROM a [RANGE 2 s]"
    made = engine(sums, f"SELECT s + 1 AS r FROM ({sums}) AS q", "SELECT COUNT(*) FROM a [NOW]")
    assert [line[3] for line in shown(made, "SHOW SHARING")] == ["q0, q1"]
    top = 2**63 - 1
    made.ingest("a", {"k": [0, 0, 0], "v": [1, top, 1], "t": [0, SECOND, 9 * SECOND]})
    status = [(line[0], line[1].split()[0]) for line in shown(made, "SHOW QUERIES FULL")]
    assert status == [("q0", "stopped:"), ("q1", "stopped:"), ("q2", "running")]
    made.execute("DROP QUERY q0; DROP QUERY q1")
    assert not made.runtime.dispatch.parts


def test_rows_that_fail_in_a_part_count_for_all() -> None:
    low = f"SELECT a.k, w FROM {JOIN} AND 6 / (v - w) > -9"
    made = engine(low, low + " AND a.k < 9")
    alone = engine(low, low + " AND a.k < 9", on=False)
    made.execute(f"CREATE QUERY q2 AS {low}")
    alone.execute(f"CREATE QUERY q2 AS {low}")
    for host in (made, alone):
        fed(host, 0, 8)
        host.execute(f"CREATE QUERY q3 AS {low}")  # it has not met the rows that failed
        fed(host, 8, 4)
    counts = [[line[9:11] for line in shown(host, "SHOW QUERIES FULL")] for host in (made, alone)]
    assert counts[0] == counts[1] and counts[0][0][0] > counts[0][3][0] > 0
    assert [line[3] for line in shown(made, "SHOW SHARING")] == ["q0, q2"]


def test_readers_with_conditions_of_their_own_sleep_until_there_are_rows_for_them() -> None:
    """What the selections of the first two have pushed down stays theirs; from the third on the
    join has a plan in which others find it."""
    made = engine(*[f"SELECT a.k, v, w FROM {JOIN} AND v = {i}" for i in range(8)])
    assert shown(made, "SHOW SHARING")[0][3] == "q2, q3, q4, q5, q6, q7"
    fed(made, 0, 1)
    steps = {name: q.pipeline.steps for name, q in made.runtime.queries.items()}  # type: ignore[attr-defined]
    at = [4 * SECOND, 5 * SECOND]
    made.ingest("a", {"k": [4, 9], "v": [4, 9], "t": at})
    made.ingest("b", {"k": [4, 9], "w": [4, 9], "t": at})
    moved = {n for n, q in made.runtime.queries.items() if q.pipeline.steps > steps[n]}  # type: ignore[attr-defined]
    assert moved == {"q0", "q1", "q4"}
    assert [made.next_seq(f"q{i}") for i in (3, 4)] == [0, 1]


def test_state_is_there_once_and_comes_back_once(tmp_path: Path) -> None:
    sql = f"SELECT Istream(a.k, w) FROM {JOIN}"
    made, alone = Engine(str(tmp_path)), engine(*[sql] * 10, on=False)
    made.execute(AB.format(""))
    for k in range(10):
        made.execute(f"CREATE QUERY q{k} AS {sql}")
    for host in (made, alone):
        fed(host, 0, 2000, 500)
        host.execute(f"CREATE QUERY late AS {sql}")
        fed(host, 2000, 2, 500)
    both = [sum(line[8] for line in shown(host, "SHOW QUERIES FULL")) for host in (made, alone)]
    assert both[0] < both[1] / 5
    made.close()
    again = Engine(str(tmp_path))
    (part,) = again.runtime.dispatch.parts.values()
    assert len(part.feeds) == 11 and sum(bool(feed.least) for feed in part.feeds) == 1
    for host in (again, alone):
        fed(host, 2002, 2, 500)
        host.heartbeat("a", 10**9)
        host.heartbeat("b", 10**9)
    names = ["late", *(f"q{k}" for k in range(10))]
    assert [again.next_seq(n) for n in names] == [alone.next_seq(n) for n in names]
    again.close()
