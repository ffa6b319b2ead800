"""ALTER STREAM s REOPEN: all goes on as if, in place of the end, a heartbeat had come at the
instant that the reply names."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms import Engine
from dsms.errors import UsageError
from tests.effort import examples
from tests.recovery_world import World, told

S = 1_000_000
DECLARED = """
CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t SLACK 2 s RETAIN 1 h;
CREATE STREAM x (k INT, w INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM d TIMESTAMP BY at AS SELECT Istream(k, COUNT(*) AS n) FROM s [RANGE 4 s] GROUP BY k;
CREATE STREAM e TIMESTAMP BY at AS SELECT Istream(k, v) FROM s [RANGE 3 s SLIDE 2 s];
CREATE TABLE r (k INT PRIMARY KEY, name STRING);
CREATE TABLE nr (k INT PRIMARY KEY, name STRING) NON RETROACTIVE;
INSERT INTO r VALUES (0, 'a'), (1, 'b');
INSERT INTO nr VALUES (0, 'a'), (1, 'b');
"""
QUERIES = {
    "plain": "SELECT k, v FROM s WHERE v > 1",
    "sums": "SELECT k, SUM(v) AS v FROM s [RANGE 5 s] GROUP BY k",
    "gone": "SELECT Dstream(k, v) FROM s [RANGE 3 s]",
    "pairs": "SELECT s.k, v, w FROM s [RANGE 5 s], x [RANGE 5 s] WHERE s.k = x.k",
    "tops": "SELECT k, COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
    "both": "SELECT COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s], x [RANGE 4 s] WHERE s.k = x.k",
    "last": "SELECT k, v FROM s [ROWS 3]",
    "named": "SELECT s.k, name FROM s [RANGE 2 s], nr WHERE s.k = nr.k",
    "fed": "SELECT k, n FROM d [RANGE 2 s]",
    "fed2": "SELECT COUNT(*) AS n FROM e [RANGE 2 s], x [RANGE 3 s] WHERE e.k = x.k",
    "closed": "SELECT k, COUNT(*) AS n FROM s [SESSION 3 s BY k INTERNAL] GROUP BY k",
    "silent": "SELECT a.k FROM MATCH (a s, NOT b x) [RANGE 4 s INTERNAL] PER k SKIP PAST LAST",
    "entered": "SELECT k, v FROM s [RANGE 5 s UNTIL 2 s AGO]",
}


def declared(engine: Engine) -> None:
    engine.execute(DECLARED)
    for name, sql in QUERIES.items():
        engine.execute(f"CREATE QUERY {name} AS {sql}")


@dataclass
class Readers:
    """Everything that all queries have told, by number."""

    rows: dict[str, list[tuple]] = field(default_factory=dict)

    def read(self, engine: Engine) -> None:
        for name in QUERIES:
            known = self.rows.setdefault(name, [])
            reader = engine.subscribe(name, len(known))
            for push in reader.take():
                known += told(push)
            engine.unsubscribe(reader)


ROWS = st.lists(
    st.tuples(st.sampled_from("sx"), st.integers(0, 2), st.integers(0, 4), st.integers(0, 3 * S)),
    max_size=8,
)


def send(engine: Engine, rows: list[tuple], at: dict[str, int]) -> None:
    for stream, k, v, later in rows:
        at[stream] += later
        engine.ingest(stream, [[k, v, at[stream]]])


def opened_at(engine: Engine) -> int:
    return engine.runtime.inputs["s"].promised


@given(ROWS, ROWS, ROWS, st.booleans(), st.booleans())
@settings(max_examples=examples(120), deadline=None)
def test_it_is_as_if_a_heartbeat_had_come_instead(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple],
    meanwhile: list[tuple],
    after: list[tuple],
    crash: bool,
    follows: bool,
) -> None:
    meanwhile = [row for row in meanwhile if row[0] == "x"]
    world, ended, at = World(tmp_path_factory.mktemp("data")), Readers(), {"s": 0, "x": 0}
    world.open()
    declared(world.engine)
    send(world.engine, before, at)
    world.engine.end("s")
    send(world.engine, meanwhile, at)
    ended.read(world.engine)
    (done,) = world.engine.execute("ALTER STREAM s REOPEN")
    assert "is open again" in done.message
    if crash:
        world.crash()
        world.open()
        assert not world.engine.recovered.notes
    upto = opened_at(world.engine)
    base = dict(at, s=max(at["s"], upto + 1 + 2 * S)) if follows else at
    now = dict(base)
    send(world.engine, after, now)
    for name in ("s", "x"):
        world.engine.end(name)
    ended.read(world.engine)
    world.crash()

    other, engine, now = Readers(), Engine(), {"s": 0, "x": 0}
    declared(engine)
    send(engine, before, now)
    if upto >= 0:
        engine.heartbeat("s", upto)
    send(engine, meanwhile, now)
    now = dict(base)
    send(engine, after, now)
    for name in ("s", "x"):
        engine.end(name)
    other.read(engine)
    for name in QUERIES:
        assert ended.rows[name] == other.rows[name], name


def test_rows_that_come_before_what_was_answered_are_late() -> None:
    engine = Engine()
    declared(engine)
    engine.ingest("s", [[0, 1, 5 * S], [1, 1, 4 * S]])
    engine.ingest("x", [[0, 1, 20 * S]])
    (done,) = engine.execute("ALTER STREAM s REOPEN")
    assert done.message == "stream s is open"
    engine.end("s")
    with pytest.raises(
        UsageError, match=r"DS507.*ended(.|\n)*ALTER STREAM s REOPEN takes that back"
    ):
        engine.ingest("s", [[0, 1, 30 * S]])
    (done,) = engine.execute("ALTER STREAM s REOPEN")
    assert done.message == (
        "stream s is open again behind 1970-01-01T00:00:19.999999Z; so are d, e"
    )
    report = engine.ingest("s", [[0, 1, 20 * S - 1], [0, 2, 20 * S]])
    assert (report.accepted, report.late) == (1, 1)


def test_a_stream_on_system_time_stamps_behind_what_was_answered() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM c (k INT); CREATE STREAM x (k INT, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute("CREATE QUERY q AS SELECT c.k FROM c [RANGE 9 s], x [RANGE 9 s] WHERE c.k = x.k")
    engine.execute("CREATE QUERY p AS SELECT Istream(k) FROM c [RANGE 9 s]")
    engine.advance(5 * S)
    engine.ingest("c", [[1]])
    engine.end("c")
    engine.ingest("x", [[1, 8 * S]])
    engine.execute("ALTER STREAM c REOPEN")
    engine.ingest("c", [[2]])
    engine.advance(20 * S)
    reader = engine.subscribe("p", 0)
    assert [row[1:] for push in reader.take() for row in told(push)] == [(5 * S, 1), (8 * S, 2)]


def test_what_is_in_the_way() -> None:
    engine = Engine()
    declared(engine)
    engine.execute("CREATE QUERY q AS SELECT s.k, name FROM s [RANGE 9 s], r WHERE s.k = r.k")
    engine.ingest("s", [[0, 1, 5 * S]])
    engine.end("s")
    with pytest.raises(UsageError, match="DS442: stream d ends where the streams end"):
        engine.execute("ALTER STREAM d REOPEN")
    engine.execute("INSERT INTO r VALUES (2, 'c') AT '1970-01-01 00:00:03'")
    with pytest.raises(UsageError, match="DS442: table r has changed since query q ended"):
        engine.execute("ALTER STREAM s REOPEN")
    engine.execute("DROP QUERY q; ALTER STREAM s REOPEN")
    with pytest.raises(UsageError, match="DS401"):
        engine.execute("ALTER STREAM zz REOPEN")


def test_what_was_archived_at_the_end_is_gone_on_with(tmp_path: object) -> None:
    engine = Engine(str(tmp_path))
    engine.execute("CREATE STREAM a (k INT, t TIMESTAMP) TIMESTAMP BY t SUBWINDOW 10 s ARCHIVE")
    engine.ingest("a", [[1, 1 * S], [2, 12 * S]])
    engine.end("a")
    engine.execute("ALTER STREAM a REOPEN")
    engine.ingest("a", [[3, 13 * S], [4, 25 * S]])
    engine.end("a")
    engine.close()
    files = Path(str(tmp_path)).glob("archive/a/**/*.parquet")
    assert sorted(k for f in files for k in pq.read_table(f)["k"].to_pylist()) == [1, 2, 3, 4]
