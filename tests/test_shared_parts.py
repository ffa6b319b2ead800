"""Continuous queries share parts of their plans, and answer as if each had run alone."""

from __future__ import annotations

from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from tests.effort import examples
from tests.generate.stories import kept_stories, stories
from tests.stories.model import Section, Story
from tests.stories.play import some_ways
from tests.test_equivalence import check

SECOND = 1_000_000
TABLES = (
    "CREATE TABLE r (k INT, n STRING); CREATE TABLE p (k INT PRIMARY KEY, w INT) NON RETROACTIVE"
)
LOWER = st.sampled_from(
    [
        "a [RANGE 2 s] AS a, b [RANGE 2 s] AS b WHERE a.k = b.k",
        "a [RANGE 2 s] AS a, b [RANGE 2 s] AS b WHERE a.k = b.k AND a.v + b.v > 1",
        "a [RANGE 1 s] AS a, b [RANGE 3 s UNTIL 1 s AGO] AS b WHERE a.k = b.k",
        "a [ROWS 2] AS a, b [RANGE 2 s] AS b WHERE a.k = b.k",
        "a [RANGE 2 s] AS a, a [RANGE 1 s] AS b WHERE a.k = b.v",
        "a [RANGE 2 s] AS a JOIN r AS b ON a.k = b.k, b [RANGE 1 s] AS c WHERE c.k = a.k",
        "a [RANGE 2 s] AS a LEFT JOIN b [RANGE 1 s] AS b ON a.k = b.k WHERE a.k >= 0",
        "a [RANGE 2 s] AS a JOIN p AS b ON a.k = b.k, b [RANGE 1 s] AS c WHERE c.k = a.k",
        "a [RANGE 2 s] AS a, b [RANGE 2 s] AS b WHERE a.k = b.k AND 6 / (a.v - b.v) > 1",
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
     " WITH (strategy = 'direct')", " WITH (max_state = 40000)"]
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


class Host:
    """An engine in a folder, its readers, and what they were given."""

    def __init__(self, folder: str, on: bool, pauses: bool, retain: bool) -> None:
        self.folder, self.on, self.pauses = folder, on, pauses
        self.readers: dict[str, Any] = {}
        self.engine = self.opened()
        for name in "ab":
            kept = " RETAIN 5 s" if retain else ""
            self.engine.execute(
                f"CREATE STREAM {name} (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t SLACK 1 s{kept}"
            )
        self.engine.execute(TABLES)

    def opened(self) -> Engine:
        pause = (lambda: True) if self.pauses else None
        return Engine(self.folder, Settings(shared_parts=self.on, pause=pause))

    def restart(self) -> None:
        self.engine.close()
        self.engine = self.opened()
        for name in self.readers:
            self.readers[name] = self.engine.subscribe(name, self.engine.next_seq(name))

    def run(self, sql: str) -> str:
        try:
            return str(self.engine.execute(sql))
        except DsmsError as error:
            return f"{error.code} {error.message}"

    def settled(self) -> None:
        """Whoever is to move has moved."""
        while self.engine.work():
            pass

    def taken(self) -> dict[str, Any]:
        self.settled()
        return {
            name: [
                (p.seq, p.kind, p.at, p.ats, p.code, p.message, None if p.data is None else
                 str(p.data.to_pylist()))
                for p in reader.take()
            ]
            for name, reader in self.readers.items()
        }  # a line a push  # fmt: skip

    def look(self) -> list[str]:
        self.settled()
        (shown,) = self.engine.execute("SHOW QUERIES")
        unlike = {"state_bytes", "cost"}
        columns = [c for c in shown.data.column_names if c not in unlike]  # type: ignore[union-attr]
        lines = [str(row) for row in shown.data.select(columns).to_pylist()]  # type: ignore[union-attr]
        return lines + [str(self.run(f"SELECT * FROM {name}")) for name in self.readers]


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


@settings(max_examples=examples(240), deadline=None)
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


@settings(max_examples=examples(60), deadline=None)
@given(st.one_of(stories(), kept_stories()), st.integers(0, 9999), st.booleans())
def test_the_oracle_knows_nothing_of_it(story: Story, seed: int, more: bool) -> None:
    check(twins(story, "x" if more else ""), some_ways(seed)[:3])
