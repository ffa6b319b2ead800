"""ALTER STREAM s ADD COLUMN: as if the stream had had the column from the beginning, and its
default in all rows that came before; queries that were there go on as they were."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms import Engine
from dsms.errors import DsmsError, UsageError
from tests.effort import examples
from tests.recovery_world import World, told

S = 1_000_000
DECLARED = """
CREATE STREAM late (k INT, v INT, t TIMESTAMP{late}) TIMESTAMP BY t;
CREATE STREAM s (k INT, v INT, t TIMESTAMP{s}) TIMESTAMP BY t SLACK 2 s LATE INTO late
    RETAIN 1 h SUBWINDOW 2 s INDEX BY (k);
CREATE STREAM x (k INT, w INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM f (k INT, n INT, at TIMESTAMP{f}) TIMESTAMP BY at RETAIN 1 h;
CREATE TABLE r (k INT PRIMARY KEY, name STRING);
INSERT INTO r VALUES (0, 'a'), (1, 'b')
"""
ALTERED = """
ALTER STREAM late ADD COLUMN c INT DEFAULT 7;
ALTER STREAM s ADD COLUMN c INT DEFAULT 7;
ALTER STREAM f ADD COLUMN g STRING
"""
BEFORE = {
    "all_": "SELECT {star} FROM s [RANGE 3 s]",
    "some": "SELECT k, v FROM s WHERE v > 1",
    "sums": "SELECT k, SUM(v) AS v FROM s [RANGE 5 s] GROUP BY k",
    "pairs": "SELECT s.k, v, w FROM s [RANGE 5 s], x [RANGE 5 s] WHERE s.k = x.k",
    "pairs2": "SELECT x.k, w, v FROM x [RANGE 5 s], s [RANGE 5 s] WHERE s.k = x.k",
    "tops": "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
    "shared": "SELECT k, SUM(v) AS n FROM s [RANGE 6 s SLIDE 2 s] GROUP BY k",
    "joint": "SELECT s.k, COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s], x [RANGE 4 s] "
    "WHERE s.k = x.k GROUP BY s.k",
    "last": "SELECT k, v FROM s [ROWS 3]",
    "counted": "SELECT SUM(v) AS v FROM s [ROWS 4 SLIDE 2 ROWS]",
    "named": "SELECT s.k, v, name FROM s [RANGE 2 s], r WHERE s.k = r.k",
    "names": "SELECT DISTINCT k FROM s [RANGE 4 s]",
    "lates": "SELECT k, v FROM late [RANGE UNBOUNDED]",
    "scan": "SELECT k, v FROM s [RANGE 4 s SLIDE 2 s] ORDER BY v LIMIT 2",
}
FEED = """CREATE QUERY feeds AS INSERT INTO f (k, n)
    SELECT Istream(k, COUNT(*)) FROM s [RANGE 3 s] GROUP BY k"""
AFTER = {
    "new_all": "SELECT * FROM s [RANGE 3 s]",
    "new_sums": "SELECT k, SUM(c) AS c FROM s [RANGE 5 s] GROUP BY k",
    "new_tops": "SELECT k, SUM(c) AS c, MAX(v) AS m FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
    "new_pairs": "SELECT s.k, v, w, c FROM s [RANGE 5 s], x [RANGE 5 s] WHERE s.k = x.k",
    "new_pairs2": "SELECT x.k, w, v, c FROM x [RANGE 5 s], s [RANGE 5 s] WHERE s.k = x.k",
    "new_joint": "SELECT s.k, SUM(c) AS n FROM s [RANGE 4 s SLIDE 2 s], x [RANGE 4 s] "
    "WHERE s.k = x.k GROUP BY s.k",
    "new_joint2": "SELECT x.k, SUM(c) AS n FROM x [RANGE 4 s SLIDE 2 s], s [RANGE 4 s] "
    "WHERE s.k = x.k GROUP BY x.k",
    "new_lates": "SELECT * FROM late [RANGE UNBOUNDED]",
    "new_fed": "SELECT * FROM f [RANGE 2 s]",
}
ONCE = (
    "SELECT * FROM s [RANGE 1 h]",
    "SELECT * FROM f [RANGE 1 h]",
    "SELECT v, c FROM s [RANGE 1 h] WHERE k = 1",
)
ROW = st.tuples(
    st.sampled_from("ssx"), st.integers(0, 2), st.integers(0, 4), st.integers(-2 * S, 3 * S)
)
ROWS = st.lists(ROW, max_size=10)


@dataclass
class Player:
    """One of the two engines; `plain`: the columns were there from the beginning."""

    plain: bool
    engine: Engine
    at: dict[str, int] = field(default_factory=lambda: {"s": 0, "x": 0})
    got: dict[str, list[tuple]] = field(default_factory=dict)

    def declare(self) -> None:
        added = {"late": ", c INT", "s": ", c INT", "f": ", g STRING"}
        self.engine.execute(DECLARED.format(**(added if self.plain else dict.fromkeys(added, ""))))
        for name, sql in BEFORE.items():
            star = "k, v, t" if self.plain else "*"
            self.engine.execute(f"CREATE QUERY {name} AS {sql.format(star=star)}")
        self.engine.execute(FEED)

    def alter(self) -> None:
        if not self.plain:
            self.engine.execute(ALTERED)
        for name, sql in AFTER.items():
            self.engine.execute(f"CREATE QUERY {name} AS {sql}")

    def send(self, rows: list[tuple], new: bool) -> None:
        for n, (stream, k, v, later) in enumerate(rows):
            at = self.at[stream] + later
            self.at[stream] = max(self.at[stream], at)
            row: dict[str, Any] = {"k": k, "t": at, ("v" if stream == "s" else "w"): v}
            if stream == "s" and new and n % 3 == 0:
                row["c"] = v
            elif stream == "s" and self.plain:
                row["c"] = 7
            self.engine.ingest(stream, [row])

    def read(self, names: Any) -> None:
        for name in names:
            known = self.got.setdefault(name, [])
            reader = self.engine.subscribe(name, len(known))
            for push in reader.take():
                known += told(push)
            self.engine.unsubscribe(reader)

    def once(self) -> list[list[dict]]:
        return [self.engine.execute(sql)[0].data.to_pylist() for sql in ONCE]


@given(ROWS, ROWS, ROWS, st.sampled_from(["", "before", "behind", "both", "end"]))
@settings(max_examples=examples(150), deadline=None)
def test_it_is_as_if_the_column_had_been_there(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple],
    after: list[tuple],
    at_last: list[tuple],
    crashes: str,
) -> None:
    world = World(tmp_path_factory.mktemp("data"), checkpoint_bytes=1500)
    world.open()
    one, other = Player(False, world.engine), Player(True, Engine())

    def crash(*when: str) -> None:
        if crashes in when:
            world.crash()
            world.open()
            assert not world.engine.recovered.notes
            one.engine = world.engine

    for player in (one, other):
        player.declare()
        player.send(before, False)
    crash("before", "both")
    for player in (one, other):
        player.alter()
    crash("behind", "both")
    for player in (one, other):
        player.send(after, True)
    crash("end")
    assert one.once() == other.once()
    for player in (one, other):
        player.send(at_last, True)
        player.engine.end("s")
        player.engine.end("x")
        player.read([*BEFORE, *AFTER])
    for name in (*BEFORE, *AFTER):
        assert one.got[name] == other.got[name], name
    world.crash()


MADE = """
CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
ALTER STREAM s ADD COLUMN a INT NOT NULL DEFAULT -3;
ALTER STREAM s ADD COLUMN b DECIMAL(6,2) DEFAULT 1.5;
ALTER STREAM s ADD COLUMN c TIMESTAMP DEFAULT TIMESTAMP '1970-01-01 00:00:01';
ALTER STREAM s ADD COLUMN d STRING DEFAULT 'x'
"""
FORMS: list[Any] = [
    [[1, 0]],
    [[1, 0, -3], [1, 0]],
    [{"k": 1, "t": 0}],
    [[1, 0], {"k": 1, "t": 0}],
    {"k": [1], "t": [0]},
    pa.table({"K": [1], "t": [0]}),
    pl.DataFrame({"k": [1], "t": [0], "d": ["x"]}),
]


@pytest.mark.parametrize("data", FORMS, ids=lambda data: str(data)[:20])
def test_rows_may_leave_added_columns_out(data: Any) -> None:
    engine = Engine()
    engine.execute(MADE)
    assert engine.ingest("s", data).refused == 0
    engine.heartbeat("s", S)
    (found,) = engine.execute("SELECT k, a, CAST(b AS STRING) AS b, c, d FROM s [RANGE 1 h]")
    rows = found.data.to_pylist()
    assert rows and all(list(row.values()) == [1, -3, "1.50", S, "x"] for row in rows)


def test_null_is_a_value() -> None:
    engine = Engine()
    engine.execute(MADE)
    report = engine.ingest("s", [[1, 0, 1, None, None, None], [1, 0, None]])
    assert report.reasons == ("1 row refused (NULL in a NOT NULL column): row 1: column a: NULL",)
    engine.heartbeat("s", S)
    (found,) = engine.execute("SELECT b, c, d FROM s [RANGE 1 h]")
    assert found.data.to_pylist() == [{"b": None, "c": None, "d": None}]


def test_a_stream_may_be_declared_with_defaults() -> None:
    engine = Engine()
    engine.execute(
        "CREATE STREAM s (a INT DEFAULT 4, t TIMESTAMP, b FLOAT DEFAULT (2)) "
        "TIMESTAMP BY t RETAIN 1 h"
    )
    engine.ingest("s", [[1, 0]])
    engine.ingest("s", {"t": [1]})
    engine.heartbeat("s", S)
    (found,) = engine.execute("SELECT a, b FROM s [RANGE 1 h]")
    assert [tuple(row.values()) for row in found.data.to_pylist()] == [(1, 2.0), (4, 2.0)]


def test_what_is_in_the_way(tmp_path: Any) -> None:
    engine = Engine(str(tmp_path))
    engine.execute("CREATE STREAM l (k INT, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO l")
    engine.execute("CREATE STREAM d AS SELECT k FROM s")
    for sql, code in (
        ("ALTER STREAM s ADD COLUMN c INT", "DS235.*late rows go to l"),
        ("ALTER STREAM l ADD COLUMN c INT NOT NULL", "DS235.*NOT NULL"),
        ("ALTER STREAM l ADD COLUMN K INT", "DS212"),
        ("ALTER STREAM d ADD COLUMN c INT", "DS235.*its query"),
        ("ALTER STREAM z ADD COLUMN c INT", "DS401"),
        ("ALTER STREAM l ADD COLUMN c INT DEFAULT 'x'", "DS218"),
        ("ALTER STREAM l ADD COLUMN c INT DEFAULT (1 + 1)", "DS235.*no constant"),
        ("ALTER STREAM l ADD COLUMN c INT AS (k)", "DS110"),
        ("ALTER STREAM l ADD COLUMN c INT PRIMARY KEY", "DS110"),
        ("CREATE TABLE r (k INT DEFAULT 1)", "DS110"),
        ("CREATE STREAM z (k INT AS (1) DEFAULT 1)", "DS109"),
    ):
        with pytest.raises(DsmsError, match=code):
            engine.execute(sql)
    engine.close()


def test_the_clock_of_an_altered_stream_is_set_back() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    engine.execute("CREATE QUERY q AS SELECT * FROM s [RANGE 5 s]")
    engine.ingest("s", [[1, 0]])
    engine.execute("ALTER STREAM s ADD COLUMN c INT")
    engine.heartbeat("s", 1000 * S)
    engine.execute("ALTER STREAM s SET CLOCK TO TIMESTAMP '1970-01-01 00:00:01'")
    engine.ingest("s", [[2, S, 5]])
    engine.heartbeat("s", 2 * S)
    (snapshot,) = engine.subscribe("q").take()
    assert snapshot.data.to_pylist() == [{"k": 1, "t": 0}, {"k": 2, "t": S}]


def test_a_computed_time_stays_where_it_is(tmp_path: Any) -> None:
    for n in range(3):
        engine = Engine(str(tmp_path))
        if n == 0:
            engine.execute("CREATE STREAM s (a INT) TIMESTAMP BY (a) AS t UNIT s RETAIN 1 h")
        if n == 1:
            engine.execute("ALTER STREAM s ADD COLUMN c INT DEFAULT 9")
        engine.ingest("s", [[n]])
        engine.heartbeat("s", (n + 1) * S - 1)
        (found,) = engine.execute("SELECT * FROM s [RANGE 1 h]")
        if n:
            assert [tuple(r.values()) for r in found.data.to_pylist()] == [
                (k, k, 9) for k in range(n + 1)
            ]
            (done,) = engine.execute(
                "CREATE STREAM IF NOT EXISTS s (a INT, t INT AS (a), c INT DEFAULT 9) "
                "TIMESTAMP BY t UNIT s RETAIN 1 h"
            )
            assert done.warnings == ()
        engine.close()


def test_rights() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    engine.execute("CREATE USER ann PASSWORD 'a long one'; GRANT SELECT (k) ON s TO ann")
    with pytest.raises(UsageError, match="DS670"):
        engine.execute("ALTER STREAM s ADD COLUMN c INT", user="ann")
    engine.execute("ALTER STREAM s ADD COLUMN c INT")
    (found,) = engine.execute("DESCRIBE s", user="ann")
    assert [row["column"] for row in found.data.to_pylist()] == ["k"]


def test_rows_that_nobody_has_asked_to_keep_get_the_column_too(tmp_path):
    def asked(db):
        (found,) = db.execute("SELECT k, c FROM n [RANGE 10 s]")
        return found.data.to_pylist()

    db = Engine(data=str(tmp_path))
    db.execute("CREATE STREAM n (k INT, t TIMESTAMP) TIMESTAMP BY t")
    db.ingest("n", {"k": [1, 2], "t": [1 * S, 2 * S]})
    db.execute("ALTER STREAM n ADD COLUMN c INT DEFAULT 7")
    db.ingest("n", {"k": [3], "t": [3 * S], "c": [8]})
    db.heartbeat("n", 3 * S)
    expected = [{"k": 1, "c": 7}, {"k": 2, "c": 7}, {"k": 3, "c": 8}]
    assert asked(db) == expected
    db.close()
    again = Engine(data=str(tmp_path))
    assert asked(again) == expected
    again.close()
