"""ALTER STREAM s SET CLOCK: afterwards all is as if the stream had never got that far, and its
queries were new.

That is held against another engine whose clock was right: the rows that were stamped too late come
to it just before the instant, and the queries are registered there at it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dsms.api import Done
from dsms.engine import Engine
from dsms.errors import QueryError, UsageError
from dsms.running import pipeline
from dsms.sharing import stream_group
from tests.archives import killed
from tests.effort import effort, sampled, thinned
from tests.stories.play import rows_of, snapshot, taken
from tests.stories.text import Line

S = 1_000_000
T = 1_700_000_000 * S
YEAR = 365 * 86_400 * S
DECLARE = """
CREATE STREAM s (k INT, v INT) RETAIN 1100 d SUBWINDOW 5 s;
CREATE STREAM o (k INT, w INT) RETAIN 1100 d;
CREATE STREAM e (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1100 d;
CREATE TABLE r (k INT PRIMARY KEY, n INT);
CREATE TABLE f (k INT PRIMARY KEY, n INT) NON RETROACTIVE;
INSERT INTO r VALUES (0, 10), (1, 11), (2, 12);
INSERT INTO f VALUES (0, 10), (1, 11), (2, 12);
"""
QUERIES = {
    "plain": "SELECT k, v FROM s WHERE v % 2 = 0",
    "groups": "SELECT k, COUNT(*), SUM(v) FROM s [RANGE 20 s] GROUP BY k",
    "newest": "SELECT v FROM s [ROWS 4]",
    "kinds": "SELECT DISTINCT k FROM s [RANGE 7 s]",
    "comes": "SELECT ISTREAM(k, v) FROM s [RANGE 9 s]",
    "leaves": "SELECT DSTREAM(k, v) FROM s [RANGE 9 s]",
    "slides": "SELECT k, SUM(v) FROM s [RANGE 20 s SLIDE 5 s] GROUP BY k ORDER BY k",
    "scans": "SELECT k, MAX(v) FROM s [RANGE 20 s SLIDE 5 s] GROUP BY k ORDER BY k WITH (path = "
    "'ws')",
    "counts": "SELECT SUM(v) FROM s [ROWS 6 SLIDE 3 ROWS]",
    "joins": "SELECT s.k, v, w FROM s [RANGE 15 s], o [RANGE 15 s] WHERE s.k = o.k",
    "slidjoins": "SELECT COUNT(*) FROM s [RANGE 20 s SLIDE 5 s] JOIN o [RANGE 20 s SLIDE 5 s] ON "
    "s.k = o.k",
    "tables": "SELECT v, n FROM s [RANGE 20 s] JOIN r ON s.k = r.k",
    "asof": "SELECT v, n FROM s [RANGE 20 s] JOIN f ON s.k = f.k",
    "alone": "SELECT COUNT(*) FROM o [RANGE 20 s]",
    "asked": "SELECT SUM(v) FROM s [RANGE 20 s] ON LOOKUP",
    "reads": "SELECT k, COUNT(*) AS n FROM newest n JOIN tables t ON n.v = t.v JOIN r ON r.n = t.n "
    "GROUP BY k",
    "readslides": "SELECT COUNT(*) FROM slides",
}
# no answer of changes
STREAMED = {"plain", "comes", "leaves", "slides", "scans", "counts", "slidjoins", "readslides"}


def register(engine: Engine, names: list[str]) -> None:
    for name in names:
        engine.execute(f"CREATE QUERY {name} AS {QUERIES[name]}")


@dataclass
class Life:
    """What happens to an engine: rows of s and o, at their instants."""

    seed: int
    wrong: int = YEAR  # by so much the clock was
    before: list[tuple[int, str, list[int]]] = field(default_factory=list)
    ahead: list[tuple[int, str, list[int]]] = field(default_factory=list)
    after: list[tuple[int, str, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        chance = Random(self.seed)
        at = T
        for part, base in ((self.before, 0), (self.ahead, self.wrong), (self.after, 0)):
            for _ in range(chance.randrange(8, 20)):
                at += chance.choice([0, S // 2, S, 3 * S])
                # o is not written while the clock is wrong
                stream = "s" if base else chance.choice("sso")
                part.append((base + at, stream, [chance.randrange(3), chance.randrange(50)]))
            at += S
        self.to = self.after[0][0] - S // 2
        self.end = at + 60 * S

    @property
    def declare(self) -> str:
        """All that comes is kept, in short sub-windows if that is not too long."""
        return DECLARE if self.wrong == YEAR else DECLARE.replace("1100 d", "1 h")

    def play(self, engine: Engine, rows: list[tuple[int, str, list[int]]]) -> None:
        for at, stream, row in rows:
            engine.advance(at)
            engine.ingest(stream, [row])


def answers(engine: Engine, names: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in names:
        if "LOOKUP" in QUERIES[name]:
            out[name] = rows_of(engine.execute(f"LOOKUP {name}")[0].data)  # type: ignore[union-attr]
        elif name not in STREAMED:
            out[name] = Counter(snapshot(engine.subscribe(name)))
    for select in (
        "SELECT k, v FROM s [RANGE 30 s]",
        "SELECT COUNT(*) FROM s [RANGE 700 d]",
        "SELECT v FROM s [ROWS 3]",
    ):
        out[select] = Counter(rows_of(engine.execute(select)[0].data))  # type: ignore[union-attr]
    return out


def told(engine: Engine, name: str, since: int) -> list[tuple[int | None, str, tuple]]:
    """Result rows from a number on, or as far back as the log goes, without their numbers."""
    log = engine.runtime.queries[name].log
    since = max(since, log.chunks[0].seq if log.chunks else log.next_seq)
    lines: list[Line] = list(taken(engine.subscribe(name, since), since))
    return [(line.at, line.sign, line.values) for line in lines]


def numbers(engine: Engine, names: list[str]) -> dict[str, int]:
    return {n: engine.next_seq(n) for n in names if "LOOKUP" not in QUERIES[n]}


def set_back(engine: Engine, life: Life, names: list[str]) -> dict[str, int]:
    """A wrong clock, and its correction; the numbers of results by then."""
    life.play(engine, life.before)
    life.play(engine, life.ahead)
    before = numbers(engine, names)
    engine.advance(life.to)
    engine.execute("ALTER STREAM s SET CLOCK TO NOW; ALTER STREAM o SET CLOCK TO NOW")
    return before


def never_wrong(life: Life, names: list[str]) -> Engine:
    """The engine whose clock was right.  o had no rows meanwhile, but its own queries were
    registered anew, too."""
    engine = Engine()
    engine.execute(life.declare)
    life.play(engine, life.before)
    engine.advance(life.to - 1)
    for _, stream, row in life.ahead:
        engine.ingest(stream, [row])
    engine.advance(life.to)
    register(engine, names)
    return engine


@thinned()
@pytest.mark.parametrize("wrong", [YEAR, 200 * S])
@pytest.mark.parametrize("seed", sampled(range(8), 4))
def test_queries_go_on_as_if_registered_then(seed: int, wrong: int) -> None:
    life, names = Life(seed, wrong), list(QUERIES)
    engine = Engine()
    engine.execute(life.declare)
    register(engine, names)
    before = set_back(engine, life, names)
    right = never_wrong(life, names)
    assert answers(engine, names) == answers(right, names)
    for each in (engine, right):
        life.play(each, life.after)
        each.advance(life.end - 30 * S)
    assert answers(engine, names) == answers(right, names)
    for each in (engine, right):
        each.advance(life.end)
    assert answers(engine, names) == answers(right, names)
    for name, seq in before.items():
        assert told(engine, name, seq) == told(right, name, 0), name


@thinned()
@pytest.mark.parametrize("seed", sampled(range(3), 3))
@pytest.mark.parametrize("checkpointed", ["never", "before", "after"])
def test_it_is_done_again_after_a_restart(tmp_path: Path, seed: int, checkpointed: str) -> None:
    life, names = Life(seed, 200 * S), list(QUERIES)
    data = str(tmp_path / "data")
    stored, plain = Engine(data), Engine()
    assert stored.saver is not None
    stored.saver.durable.least = 1  # closed sub-windows have files
    for engine in (stored, plain):
        engine.execute(life.declare)
        register(engine, names)
    if checkpointed == "before":
        stored.saver.checkpoint()
    before = set_back(stored, life, names)
    assert set_back(plain, life, names) == before
    if checkpointed == "after":
        stored.saver.checkpoint()
    killed(stored)
    stored = Engine(data)
    assert stored.recovered is not None and not stored.recovered.notes
    assert answers(stored, names) == answers(plain, names) and numbers(stored, names) == numbers(
        plain, names
    )
    for engine in (stored, plain):
        life.play(engine, life.after)
        engine.advance(life.end)
    assert answers(stored, names) == answers(plain, names)
    for name in before:
        assert told(stored, name, 0) == told(plain, name, 0), name
    stored.close()
    stored = Engine(data)
    assert answers(stored, names) == answers(plain, names)
    killed(stored)


def cut_back(engine: Engine, life: Life, names: list[str], between: Callable[[int], None]) -> int:
    """`set_back`, with something between any two pieces of it; how many there are."""
    life.play(engine, life.before)
    life.play(engine, life.ahead)
    engine.advance(life.to)
    engine.execute("ALTER STREAM o SET CLOCK TO NOW")
    slices, n = engine.slices("ALTER STREAM s SET CLOCK TO NOW"), 0
    for n, statement in enumerate(slices):
        if statement.result is None:
            between(n)
    return n


@pytest.mark.parametrize("seed", sampled(range(4), 4))
def test_rows_and_others_come_while_queries_begin_anew(tmp_path: Path, seed, monkeypatch) -> None:
    """After any piece: rows, a process that ends, a reader, a statement that names the query."""
    monkeypatch.setattr(pipeline, "SLICE", 3)
    monkeypatch.setattr(stream_group, "PIECE", 3)
    life, names = Life(seed, 200 * S), list(QUERIES)

    def run(data: str | None, between: Callable[[Engine, int], None]) -> tuple[Engine, int]:
        engine = Engine(data)
        engine.execute(life.declare)
        register(engine, names)
        return engine, cut_back(engine, life, names, lambda n: between(engine, n))

    whole, pieces = run(None, lambda engine, n: None)
    life.play(whole, life.after)
    expected = answers(whole, names)
    assert pieces > 10
    for stop in range(1, pieces, 5 if effort() else 11):
        folder, copy = tmp_path / f"db{stop}", tmp_path / f"copy{stop}"

        def between(engine: Engine, n: int, stop=stop, folder=folder, copy=copy) -> None:
            if n == stop:
                life.play(engine, life.after)
                shutil.copytree(folder, copy)
                name = names[stop % len(names)]
                if stop % 2:
                    assert engine.execute(f"SHOW CREATE QUERY {name}")
                elif name not in STREAMED and "LOOKUP" not in QUERIES[name]:
                    assert Counter(snapshot(engine.subscribe(name))) == expected[name]

        cut, _ = run(str(folder), between)
        again = Engine(str(copy))
        for engine in (cut, again):
            assert answers(engine, names) == expected
            for name in numbers(whole, names):
                assert told(engine, name, 0) == told(whole, name, 0), name
            killed(engine)


def test_windows_by_hand() -> None:
    """A small one, written down: rows at 0 s, 1 s, then one a year ahead, and the clock set to 3
    s."""
    engine = Engine()
    engine.execute(
        "CREATE STREAM s (v INT) RETAIN 1100 d; CREATE QUERY q AS SELECT SUM(v) FROM s [RANGE 10 "
        "s SLIDE 5 s]"
    )
    for at, v in ((T, 1), (T + S, 2), (T + YEAR, 4)):
        engine.advance(at)
        engine.ingest("s", [[v]])
    engine.advance(T + 3 * S)
    seq = engine.next_seq("q")
    engine.execute("ALTER STREAM s SET CLOCK TO NOW")
    engine.ingest("s", [[8]])
    engine.advance(T + 16 * S)
    assert told(engine, "q", seq) == [
        (T + 5 * S, "=", (15,)),
        (T + 10 * S, "=", (15,)),
        (T + 15 * S, "=", (None,)),
    ]


# ---------------------------------------------------------------- readers


def wrong_by_a_year(*queries: str) -> Engine:
    engine = Engine()
    engine.execute(DECLARE)
    register(engine, list(queries))
    engine.advance(T)
    engine.ingest("s", [[0, 2]])
    engine.advance(T + YEAR)
    engine.ingest("s", [[0, 4]])
    engine.advance(T + S)
    return engine


def test_readers_of_changes_are_told_to_begin_anew() -> None:
    engine = wrong_by_a_year("groups")
    reader = engine.subscribe("groups")
    snapshot(reader)
    seq = engine.next_seq("groups")
    engine.execute("ALTER STREAM s SET CLOCK TO NOW")
    assert [(p.kind, p.code) for p in reader.take()] == [("end", "DS418")] and reader.closed
    with pytest.raises(UsageError, match="can't be had") as raised:
        engine.subscribe("groups", seq - 1)
    assert raised.value.code == "DS409" and engine.next_seq("groups") >= seq
    assert snapshot(engine.subscribe("groups")) == [(0, 2, 6)]


@pytest.mark.parametrize("name", ["plain", "comes", "slides"])
def test_other_readers_read_on(name: str) -> None:
    engine = wrong_by_a_year(name)
    reader = engine.subscribe(name, 0)
    seen = list(taken(reader, 0))
    engine.execute("ALTER STREAM s SET CLOCK TO NOW")
    engine.ingest("s", [[0, 8]])
    engine.advance(T + 12 * S)
    more = list(taken(reader, len(seen)))
    assert more and not reader.closed and {m.at for m in more} <= set(range(T, T + 13 * S, S))
    assert told(engine, name, 0) == [(line.at, line.sign, line.values) for line in seen + more]


# ---------------------------------------------------------------- what else goes by the clock


def test_changes_of_tables_are_dated_back() -> None:
    engine = wrong_by_a_year("tables", "asof")
    engine.advance(T + YEAR + S)  # a change now is dated behind answers of that year
    engine.execute("INSERT INTO r VALUES (5, 50); INSERT INTO f VALUES (5, 50)")
    engine.advance(T + 2 * S)
    engine.execute("ALTER STREAM s SET CLOCK TO NOW; UPDATE r SET n = 51 WHERE k = 5")
    engine.ingest("s", [[5, 7]])
    engine.advance(T + 3 * S)
    assert (7, 51) in snapshot(engine.subscribe("tables")) and (7, 50) in snapshot(
        engine.subscribe("asof")
    )


def test_a_change_that_is_dated_back_counts_once() -> None:
    """The table had forgotten all up to the instant at which the clock stood, when it came."""
    made = Engine()
    made.execute(
        "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t; CREATE TABLE h (k INT, n INT); "
        "CREATE QUERY q AS SELECT s.k, h.n FROM s [RANGE 18 s] JOIN h ON s.k = h.k"
    )
    made.heartbeat("s", 6000 * S)
    made.execute(
        "INSERT INTO h VALUES (1, 5); ALTER STREAM s SET CLOCK TO TIMESTAMP '1970-01-01 00:16:42'"
    )
    made.ingest("s", [[1, 1003 * S]])
    made.heartbeat("s", 1004 * S)
    assert made.execute("SELECT * FROM q")[0].data.to_pylist() == [{"k": 1, "n": 5}]


def test_a_wrong_heartbeat_is_taken_back() -> None:
    engine = Engine()
    engine.execute(
        "CREATE STREAM e (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h; CREATE QUERY q AS SELECT "
        "COUNT(*) FROM e [RANGE 1 min SLIDE 10 s] WITH (boundaries = 'every')"
    )
    engine.ingest("e", [[1, T], [2, T + S]])
    engine.heartbeat("e", T + 20 * YEAR)
    assert engine.ingest("e", [[3, T + 2 * S]]).late == 1
    with pytest.raises(UsageError, match="has a row of") as raised:
        engine.execute(f"ALTER STREAM e SET CLOCK TO {T // S} s")
    assert raised.value.code == "DS417"
    engine.execute(f"ALTER STREAM e SET CLOCK TO {T // S + 2} s")
    assert engine.ingest("e", [[3, T + 2 * S], [4, T + 30 * S]]).late == 0
    seq = engine.next_seq("q") - 1
    assert told(engine, "q", seq)[-1][0] == T + 30 * S - T % (10 * S)


def test_what_had_left_with_the_wrong_clock_does_not_come_back() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM e (k INT, t TIMESTAMP) TIMESTAMP BY t SLACK 5 s RETAIN 1 h")
    engine.ingest("e", [[1, T], [2, T + S]])
    engine.heartbeat("e", T + YEAR)
    engine.execute(f"ALTER STREAM e SET CLOCK TO {T // S + 2} s")
    engine.ingest("e", [[4, T + 4 * S], [3, T + 3 * S], [9, T + 20 * S]])
    (rows,) = engine.execute("SELECT k FROM e [RANGE 13 s]")  # up to 15 s, less an instant
    assert rows_of(rows.data) == [(3,), (4,)]
    # what had left does not come back
    with pytest.raises(UsageError, match="the clock was set back") as gone:
        engine.execute("SELECT k FROM e [RANGE 1 h] WITH (complete = required)")
    assert gone.value.code == "DS407"
    (part,) = engine.execute("SELECT k FROM e [RANGE 1 h]")
    assert rows_of(part.data) == [(3,), (4,)] and part.since == T + S + 1


# ---------------------------------------------------------------- what it says


def done(engine: Engine, sql: str) -> Done:
    (result,) = engine.execute(sql)
    assert isinstance(result, Done)
    return result


def test_what_it_says() -> None:
    engine = wrong_by_a_year("groups", "alone")
    said = done(engine, "ALTER STREAM S SET CLOCK TO NOW")
    assert said.message == (
        "the clock of stream s is set back from 2024-11-13T22:13:20Z to 2023-11-14T22:13:21Z; "
        "registered anew: groups"
    )
    again = done(engine, "ALTER STREAM s SET CLOCK TO NOW")
    assert (
        again.message == "the clock of stream s has not passed 2023-11-14T22:13:21Z"
        and not again.warnings
    )


def test_whose_answers_are_partial_is_said() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (v INT); CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 10 s]")
    engine.advance(T)
    engine.ingest("s", [[1]])
    engine.advance(T + YEAR)
    (note,) = done(engine, f"ALTER STREAM s SET CLOCK TO {T // S + 1} s").warnings
    assert note.startswith(
        "query q: its windows reach back to rows that are gone, or kept for SELECT alone: answers "
        "are partial until 2023-"
    )


def test_what_can_not_be() -> None:
    engine = Engine()
    engine.execute(DECLARE)
    for name in ("nobody", "r"):
        with pytest.raises(UsageError) as unknown:
            engine.execute(f"ALTER STREAM {name} SET CLOCK TO NOW")
        assert unknown.value.code == "DS401"
    with pytest.raises(UsageError) as timeless:
        engine.execute("ALTER STREAM s SET CLOCK TO NOW")
    assert timeless.value.code == "DS509"
    engine.advance(T)
    engine.end("s")
    with pytest.raises(UsageError, match="has ended") as ended:
        engine.execute("ALTER STREAM s SET CLOCK TO NOW")
    assert ended.value.code == "DS417"
    with pytest.raises(QueryError, match="ALTER changes users, queries, names, and of a stream"):
        engine.execute("ALTER STREAM s DROP COLUMN c")


def test_who_was_reading_asks_again() -> None:
    engine = wrong_by_a_year()
    select = engine.begin("SELECT COUNT(*) FROM s [RANGE 700 d]")
    select.step()
    engine.execute("ALTER STREAM s SET CLOCK TO NOW")
    with pytest.raises(UsageError) as raised:
        while not select.step():
            pass
    assert raised.value.code == "DS411"


def test_a_new_stream_begins_at_the_time_that_it_is_now() -> None:
    engine = wrong_by_a_year()
    engine.execute("CREATE STREAM young (v INT)")
    engine.ingest("young", [[1]])
    assert engine.stamped_after(T + S) == {"s": T + YEAR, "o": T + YEAR}
