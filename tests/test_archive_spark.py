"""An engine with Spark beside it: answers, failures, limits, cancellation; and archives asked
without an engine."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgpack
import pyarrow as pa
import pytest

import dsms
from dsms.api import Cancel, Rows
from dsms.errors import DsmsError, QueryError, UsageError
from dsms.settings import Settings
from dsms.sql.types import FLOAT, INT, STRING, Field
from dsms.storage.archive.job import ArchiveJob
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import Archive, create
from dsms.storage.archive.schema import stored_schema
from dsms_spark.execute import Runner, query, run_asked, run_job
from dsms_spark.pipe import packed, unpacked
from dsms_spark.query import Asked
from dsms_spark.query import ask as asked
from dsms_spark.update import update
from tests.archive_local import Local
from tests.effort import SLOW, sampled, thinned
from tests.spark_session import spark  # noqa: F401
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("spark")
S = 1_000_000
STREAM = """CREATE STREAM s (k INT, v INT, x FLOAT, n STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min
            ARCHIVE FOR 1 h CLUSTER BY k UPDATE EVERY 10 s"""  # noqa: E501


class Piped(Runner):
    """As a server's Spark process gets its jobs."""

    def run(self, job: ArchiveJob, cancel: Cancel | None = None) -> pa.RecordBatch:
        there = unpacked(msgpack.unpackb(msgpack.packb(packed(job))))
        assert (
            isinstance(there, ArchiveJob)
            and there.plan == job.plan
            and there.sources == job.sources
        )
        return unpacked(msgpack.unpackb(msgpack.packb(packed(super().run(there, cancel)))))


class World:
    """An engine whose archive is partly indexed, partly landed, and partly live; its twin has no
    Spark."""

    def __init__(self, spark, folder: Path) -> None:  # noqa: F811
        self.spark, self.folder = spark, folder
        self.engine = dsms.Engine(
            settings=Settings(
                archive=str(folder), archive_runner=Piped(spark), archive_local_bytes=-1
            )
        )
        self.engine.execute(STREAM)
        self.engine.execute(
            "CREATE TABLE r (k INT PRIMARY KEY, name STRING); INSERT INTO r VALUES (0, 'o'), (1, "
            "'i')"
        )
        self.feed(range(300))
        update(spark, Archive(str(folder / "s")))
        self.feed(range(300, 420))

    def feed(self, seconds: range) -> None:
        odd = (0.0, -0.0, float("nan"), 1.5, None, 2.5, 0.1)
        rows = [[t % 5, t, odd[t % 7], "abc"[t % 3], t * S] for t in seconds]
        self.engine.ingest("s", rows)
        self.engine.heartbeat("s", (seconds[-1]) * S)

    def ask(self, sql: str, cancel: Cancel | None = None) -> list[tuple]:
        (rows,) = self.engine.execute(sql, cancel=cancel)
        assert isinstance(rows, Rows)
        self.as_of = rows.as_of
        return list(zip(*(c.to_pylist() for c in rows.data.columns), strict=True))

    def both(self, sql: str) -> list[tuple]:
        """Answered by Spark, by DuckDB in this process, and by the twin."""
        settings = self.engine.runtime.settings
        told = [self.ask(f"{sql} WITH (archive = {by})") for by in ("spark", "duckdb")]
        before, settings.archive_runner = settings.archive_runner, Local()
        try:
            told.append(self.ask(sql))
        finally:
            settings.archive_runner = before
        assert repr(told[0]) == repr(told[1]) == repr(told[2]), sql
        return told[0]


@pytest.fixture(scope="module")
def world(spark, tmp_path_factory) -> World:  # noqa: F811
    return World(spark, tmp_path_factory.mktemp("archives"))


# ---------------------------------------------------------------- answers

QUESTIONS = [
    "SELECT k, COUNT(*), SUM(v), AVG(x), MIN(n), COUNT(DISTINCT x) FROM ARCHIVE s [RANGE 5 min] "
    "GROUP BY k",
    "SELECT COUNT(*), SUM(v), MIN(t), MAX(t) FROM s [RANGE 6 min ARCHIVE] WHERE k IN (1, 3) AND v "
    "% 2 = 0",
    "SELECT v, x FROM s [RANGE 1 h ARCHIVE] WHERE k = 4 AND x > 2",
    "SELECT v FROM ARCHIVE s WHERE t >= TIMESTAMP '1970-01-01 00:04:50' AND n = 'a' AND x = 0",
    "SELECT v, x FROM ARCHIVE s ORDER BY x DESC, n, v DESC LIMIT 7 OFFSET 2",
    "SELECT v FROM s [ROWS 130 ARCHIVE] WHERE k = 1",
    "SELECT k, v, n FROM ARCHIVE s ORDER BY x DESC NULLS FIRST, n LIMIT 3 PER k",
    "SELECT q.n, COUNT(*) FROM (SELECT n, k, COUNT(*) AS c FROM ARCHIVE s GROUP BY n, k ORDER BY "
    "c LIMIT 2 PER n) q GROUP BY q.n",
    "SELECT k, i, p FROM ARCHIVE s, UNNEST([v, k, v * 2]) WITH ORDINALITY AS t (i, p) WHERE i > k",
    "SELECT i, COUNT(*), FIRST(v) FROM s [RANGE 1 h ARCHIVE] LEFT JOIN UNNEST(CASE WHEN k > 1 THEN "
    "[k, k] END) AS t (i) ON TRUE GROUP BY i",
    "SELECT r.name, MEDIAN(a.x), SUM(a.v * 2) FROM s [RANGE 1 h ARCHIVE] a JOIN r ON a.k = r.k "
    "GROUP BY r.name",
    "SELECT a.v, b.v FROM ARCHIVE s [RANGE 130 s] a LEFT JOIN s [RANGE 20 s] b ON a.k = b.k AND "
    "a.v + b.v > 760",
    "SELECT x FROM ARCHIVE s EXCEPT SELECT x FROM s [RANGE 3 s]",
    "SELECT DISTINCT k + 1 AS one, n FROM s [RANGE 1 h ARCHIVE] WHERE NOT EXISTS (SELECT * FROM r "
    "WHERE r.k = s.k)",
    "SELECT FIRST(v), LAST(n), ARGMAX(v, x), APPROX_COUNT_DISTINCT(v), TOPK(k, 2) FROM ARCHIVE s",
    "SELECT k, MAX(v), MIN(v) FROM ARCHIVE s [PARTITION BY k ROWS 3] GROUP BY k",
    "SELECT v FROM ARCHIVE s [RANGE UNBOUNDED UNTIL 150 s AGO] WHERE k = 1",
    "SELECT v FROM s [SINCE 50 s UNTIL 20 s AGO ARCHIVE]",
    "SELECT v FROM (SELECT * FROM ARCHIVE s [RANGE UNBOUNDED UNTIL 150 s AGO]) [ROWS 130]",
    "SELECT v FROM (SELECT * FROM ARCHIVE s [RANGE UNBOUNDED UNTIL 150 s AGO]) [PARTITION BY k "
    "ROWS 3]",
]


@pytest.mark.parametrize("sql", sampled(QUESTIONS, 3))
def test_index_landing_and_live_rows_answer_together(sql: str, world: World) -> None:
    assert world.both(sql)
    assert world.as_of == 419 * S


@SLOW
@pytest.mark.parametrize("sql", [q for q in QUESTIONS if " PER " in q or "UNNEST" in q])
def test_first_rows_and_items_of_lists_are_found_by_spark(sql: str, world: World) -> None:
    assert world.both(sql)


def test_a_key_is_looked_for_in_few_files(world: World) -> None:
    sql = "SELECT SUM(v) FROM ARCHIVE s [RANGE 30 s] WHERE k = 3"
    lines = [r["plan"] for r in world.engine.execute(f"EXPLAIN {sql}")[0].data.to_pylist()]
    (files,) = (line for line in lines if line.startswith("  files: "))
    read, _, there = files.removeprefix("  files: ").partition(",")[0].partition(" of ")
    assert int(read) < int(there)
    assert any("k = 3" in line and "inserted after 1970-01-01 00:06:29" in line for line in lines)
    assert world.both(sql)


# ---------------------------------------------------------------- failures


@thinned(3)
@pytest.mark.parametrize(
    ("select", "code"),
    [
        ("SELECT 10 / (v - 7) FROM ARCHIVE s", "DS701"),
        ("SELECT COUNT(*) FROM ARCHIVE s WHERE 9223372036854775807 + v > 0", "DS702"),
        ("SELECT CAST(n AS INT) FROM ARCHIVE s", "DS703"),
        ("SELECT v FROM ARCHIVE s ORDER BY 1 / k", "DS701"),
        ("SELECT SUM(v * 20000000000000000) FROM ARCHIVE s", "DS706"),
        ("SELECT SUM(9223372036854775807) FROM ARCHIVE s", "DS706"),
    ],
)
def test_a_row_that_fails_ends_the_query(select: str, code: str, world: World) -> None:
    with pytest.raises(QueryError, match=code) as caught:
        world.ask(select)
    assert "Traceback" not in str(caught.value)


def test_what_no_row_asks_for_does_not_fail(world: World) -> None:
    assert world.ask(
        "SELECT COUNT(*) FROM ARCHIVE s WHERE CASE WHEN v > 7 THEN 10 / (v - 7) END > 1"
    ) == [(5,)]
    assert world.ask("SELECT SUM(10 / (v - 7)) FILTER (WHERE v > 7 AND v < 10) FROM ARCHIVE s") == [
        (15,)
    ]


def test_more_rows_than_the_memory_limit_are_refused(world: World) -> None:
    settings = world.engine.runtime.settings
    before, settings.statement_bytes = settings.statement_bytes, 1 << 20
    try:
        for what in ("a.v, b.v, a.n || b.n", "MEDIAN(a.v + b.v), MEDIAN(a.v - b.v)"):
            with pytest.raises(
                UsageError, match=r"DS633: .* takes more than 1 MiB, which is the limit"
            ):
                world.ask(f"SELECT {what} FROM s [RANGE 1 h ARCHIVE] a, s [RANGE 1 h ARCHIVE] b")
    finally:
        settings.statement_bytes = before


@SLOW
def test_a_cancelled_query_stops_soon(world: World) -> None:
    """Cancelled when Spark has begun with it."""
    cancel, tracker = Cancel(), world.spark.sparkContext.statusTracker()

    def stop() -> None:
        wait_until(tracker.getActiveJobsIds, "a job of Spark")
        cancel.set()

    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(UsageError, match="DS610"):
        world.ask(
            "SELECT COUNT(*) FROM ARCHIVE s a, ARCHIVE s b, ARCHIVE s c WHERE a.v + b.v < c.v",
            cancel,
        )
    assert world.ask("SELECT COUNT(*) FROM ARCHIVE s WHERE v < 5") == [(5,)]


def test_an_archive_whose_files_are_gone_says_so(spark, tmp_path: Path) -> None:  # noqa: F811
    made = create(
        str(tmp_path / "s"), "s", "stream", (Field("k", INT),), "k", Layout(1, 1, 10 * S), None
    )
    Landing(made).write(
        pa.table([[1], [5], [2**62], [0]], schema=stored_schema((Field("k", INT),))), 5
    )
    job = asked(made.url, "SELECT k FROM ARCHIVE s").job
    (tmp_path / "s" / "landing" / "000000000001.parquet").unlink()
    with pytest.raises(UsageError, match="DS954") as caught:
        run_job(spark, job)
    assert caught.value.hint == "ask again"


def test_a_query_that_updates_overtake_is_asked_again(spark, tmp_path: Path) -> None:  # noqa: F811
    schema = (Field("k", INT),)
    made = create(str(tmp_path / "s"), "s", "stream", schema, "k", Layout(1, 1, 10 * S), None)
    Landing(made).write(pa.table([[1], [5], [2**62], [0]], schema=stored_schema(schema)), 5)
    asks = []

    def again() -> Asked:
        asks.append(asked(made.url, "SELECT k FROM ARCHIVE s"))
        return asks[-1]

    before = again()
    for k in (2, 3):
        update(spark, made)
        rows = [[k], [10 * k * S], [2**62], [k]]
        Landing(made).write(pa.table(rows, schema=stored_schema(schema)), 10 * k * S + 9)
    update(spark, made)
    at_last, answer = run_asked(spark, before, again)
    assert at_last is asks[1]
    assert sorted(answer.column(0).to_pylist()) == [1, 2, 3]


# ---------------------------------------------------------------- what Parquet's statistics do not
# know


@SLOW
def test_floats_are_not_skipped_by_statistics(spark, tmp_path: Path) -> None:  # noqa: F811
    """A file's largest FLOAT is written without NaN, which is larger; and -0.0 is not found where
    0.0 is sought."""
    schema = (Field("x", FLOAT), Field("n", STRING))
    made = create(str(tmp_path / "f"), "f", "stream", schema, "x", Layout(1, 1, 10 * S), None)
    rows = [[1.0, float("nan"), -0.0], ["a", "b", "c"], [1, 2, 3], [2**62] * 3, [0, 1, 2]]
    Landing(made).write(pa.table(rows, schema=stored_schema(schema)), 10 * S - 1)
    told = [
        ("x > 5", ["b"]),
        ("x = 0", ["c"]),
        ("x = 0.0 AND n = 'c'", ["c"]),
        ("x IN (0.0, 7)", ["c"]),
        ("x <= 0", ["c"]),
    ]
    for updated in (False, True):
        if updated:
            update(spark, made)
            assert made.manifest().rows == 3
        for where, want in told:
            assert (
                query(made.url, f"SELECT n FROM ARCHIVE f WHERE {where}", spark)["n"].to_pylist()
                == want
            ), where


def test_columns_that_came_later_are_null_before(spark, tmp_path: Path) -> None:  # noqa: F811
    old = (Field("k", INT),)
    made = create(str(tmp_path / "a"), "a", "stream", old, "k", Layout(1, 1, 10 * S), None)
    Landing(made).write(pa.table([[1], [5], [2**62], [0]], schema=stored_schema(old)), 9)
    new = (Field("k", INT), Field("name", STRING))
    made = create(str(tmp_path / "a"), "a", "stream", new, "k", Layout(1, 1, 10 * S), None)
    Landing(made).write(pa.table([[2], ["x"], [15], [2**62], [1]], schema=stored_schema(new)), 19)
    found = query(made.url, "SELECT k, name FROM ARCHIVE a WHERE name IS NULL OR name = 'x'", spark)
    assert found.to_pydict() == {"k": [1, 2], "name": [None, "x"]}


# ---------------------------------------------------------------- without an engine


def test_archives_are_asked_without_a_server(spark, world: World) -> None:  # noqa: F811
    sql = (
        "SELECT k, COUNT(*) AS n, MAX(t) AS last FROM ARCHIVE s [RANGE 1 min] GROUP BY k ORDER "
        "BY k LIMIT 2"
    )
    table = query(str(world.folder), sql, spark)
    seam = world.engine.runtime.archivings["s"].seam
    after = seam - 60 * S
    rows = [t for t in range(420) if after < t * S <= seam]
    want = [(k, sum(t % 5 == k for t in rows), max(t for t in rows if t % 5 == k)) for k in (0, 1)]
    start = datetime(1970, 1, 1, tzinfo=UTC)
    assert [tuple(r.values()) for r in table.to_pylist()] == [
        (k, n, start + timedelta(seconds=t)) for k, n, t in want
    ]
    assert query([str(world.folder / "s")], "SELECT COUNT(*) AS n FROM ARCHIVE s", spark)[
        "n"
    ].to_pylist() == [seam // S + 1]
    lines = asked(str(world.folder), sql).lines()
    assert any(line.startswith("archive s: archived up to ") for line in lines)


@pytest.mark.parametrize(
    ("sql", "code", "what"),
    [
        ("SELECT * FROM s", "DS414", "s is read live"),
        ("SELECT * FROM s [RANGE 5 ARCHIVE]", "DS414", "nothing is live"),
        ("SELECT * FROM ARCHIVE ss", "DS203", "unknown stream or table `ss`"),
        ("SELECT * FROM u, ARCHIVE s", "DS953", "there is no archive of u here"),
        ("DROP STREAM s", "DS414", "by SELECT"),
        ("SELECT nope FROM ARCHIVE s", "DS201", "unknown column `nope`"),
    ],
)
def test_what_only_a_server_can_answer_is_told(
    sql: str, code: str, what: str, world: World
) -> None:
    with pytest.raises(DsmsError) as caught:
        asked(str(world.folder), sql)
    assert (caught.value.code, what in caught.value.message) == (code, True), caught.value


def test_functions_of_ones_own_are_called_where_spark_works(world: World, tmp_path: Path) -> None:
    """Expressions, and those in Python, in Spark's workers; aggregates in Python here."""
    (tmp_path / "spark_own.py").write_text(
        "import pyarrow.compute as pc\n\n"
        "def half(x):\n    return pc.divide(x, 2.0)\n\n"
        "class Largest:\n"
        "    def lift(self, x):\n        return x\n"
        "    def combine(self, a, b):\n        return pc.max_element_wise(a, b)\n"
        "    def lower(self, s):\n        return s\n"
    )
    made = (
        "CREATE FUNCTION half(x FLOAT) RETURNS FLOAT AS PYTHON 'spark_own:half';"
        "CREATE AGGREGATE largest(x FLOAT) RETURNS FLOAT AS PYTHON 'spark_own:Largest';"
        "CREATE AGGREGATE middle(x FLOAT) AS SUM(x) / COUNT(x);"
    )
    select = (
        "SELECT k, {} AS a, {} AS b, {} AS c FROM ARCHIVE s [RANGE 5 min] GROUP BY k ORDER BY k"
    )
    own = select.format("middle(v)", "SUM(half(v + 1))", "largest(v)")
    plain = select.format("AVG(v)", "SUM((v + 1) / 2.0)", "MAX(v * 1.0)")
    folder = str(world.folder)
    found = query(folder, made + own, world.spark, functions=str(tmp_path))
    assert found.to_pylist() == query(folder, plain, world.spark).to_pylist()
