"""The data source `dsms`: an archive, a server's answers, rows into a stream, results as a
stream."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import dsms
import dsms_spark
from dsms.errors import UsageError
from dsms.sql.types import BYTES, INT, INTERVAL, STRING, TIMESTAMP, Field, decimal
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import Archive, create
from dsms.storage.archive.schema import stored_schema
from dsms_client import connect
from tests.effort import SLOW
from tests.server.harness import Running

pytestmark = pytest.mark.xdist_group("spark")
S = 1_000_000
EVERY = 10 * S
COLUMNS = (
    Field("k", STRING),
    Field("v", INT),
    Field("d", decimal(8, 2)),
    Field("i", INTERVAL),
    Field("b", BYTES),
    Field("t", TIMESTAMP),
)
STREAM = (
    "CREATE STREAM s (k INT, v DECIMAL(8, 2), i INTERVAL, b BYTES, t TIMESTAMP) TIMESTAMP BY "
    "t RETAIN 1 DAY"
)


@pytest.fixture(scope="module")
def source(spark):
    return dsms_spark.register(spark)


@pytest.fixture
def server(tmp_path):
    running = Running(dsms.Engine())
    yield running
    running.stop()


def at(server: Running) -> str:
    return f"127.0.0.1:{server.port}"


def error_text(work) -> str:
    """What is said of a failure."""
    with pytest.raises(Exception) as caught:
        work()
    return str(caught.value)


# -- archives --------------------------------------------------------------------------------------


def landed(archive: Archive, step: int, count: int = 20) -> None:
    """Rows of one step: numbered on, keys `a`, `b`, ... by step, kept for 40 s."""
    numbers = range(step * count, (step + 1) * count)
    ts = [step * EVERY + i for i in range(count)]
    columns = [
        [f"{chr(97 + step)}{n % 4}" for n in numbers],
        list(numbers),
        [Decimal(n) / 4 for n in numbers],
        [n * S for n in numbers],
        [None if n % 3 else bytes([n]) for n in numbers],
        ts,
        ts,
        [t + 40 * S for t in ts],
        list(numbers),
    ]
    schema = stored_schema(COLUMNS)
    rows = pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )
    Landing(archive).write(rows, (step + 1) * EVERY - 1)


@pytest.fixture(scope="module")
def folder(source, tmp_path_factory) -> Path:
    """Six steps: five in the index, of which the first has expired, and one that waits."""
    from dsms_spark.update import update

    place = tmp_path_factory.mktemp("archive") / "it's [an] archive"
    archive = create(str(place), "s", "stream", COLUMNS, "k", Layout(2, 2, EVERY, 40 * S), 40 * S)
    for step in range(5):
        landed(archive, step)
    update(source, archive)
    landed(archive, 5)
    return place


def read(source, folder: Path, **options: str):
    return source.read.format("dsms").option("path", str(folder)).options(**options).load()


def test_an_archive_has_the_rows_that_have_not_expired_in_sparks_types(source, folder):
    frame = read(source, folder)
    assert [f.dataType.simpleString() for f in frame.schema] == [
        "string",
        "bigint",
        "decimal(8,2)",
        "interval day to second",
        "binary",
        "timestamp",
    ]
    rows = sorted(frame.collect(), key=lambda r: r.v)
    # two steps are 40 s ago, and one of them not wholly
    assert [r.v for r in rows] == list(range(40, 120))
    row = rows[5]
    assert (row.k, row.d, row.i, row.b) == ("c1", Decimal("11.25"), dt.timedelta(seconds=45), b"-")
    frame.createOrReplaceTempView("archived")
    (first,) = source.sql("SELECT unix_micros(MIN(t)) AS x, SUM(v) AS s FROM archived").collect()
    assert (first.x, first.s) == (2 * EVERY, sum(range(40, 120)))


def test_conditions_on_the_key_choose_files(source, folder):
    from pyspark.sql.datasource import EqualTo, GreaterThan, IsNotNull, LessThan

    from dsms_spark.options import struct
    from dsms_spark.source_archive import ArchiveReader

    def files(*conditions) -> int:
        reader = ArchiveReader({"path": str(folder)}, struct([(f.name, f.type) for f in COLUMNS]))
        # Spark looks at each row itself
        assert reader.pushFilters(list(conditions)) == list(conditions)
        return len(reader.partitions())

    # b and d, c and e, and what waits
    assert files() == files(IsNotNull(("k",)), GreaterThan(("v",), 3)) == 3
    assert (
        files(EqualTo(("k",), "b1"))
        == files(GreaterThan(("k",), "d9"))
        == files(LessThan(("k",), "bz"))
        == 2
    )
    assert (
        files(EqualTo(("k",), "z")) == files(GreaterThan(("k",), "f"), LessThan(("k",), "c")) == 1
    )
    moment = dt.datetime(1970, 1, 1, 0, 0, 50, tzinfo=dt.UTC)
    assert files(GreaterThan(("__ts",), moment)) == 1 and files(LessThan(("__ts",), moment)) == 3
    frame = read(source, folder).where("k = 'd1' AND v > 61")
    assert sorted(r.v for r in frame.collect()) == [65, 69, 73, 77]


@SLOW
def test_where_no_file_is_left_there_are_no_rows(source, folder, tmp_path):
    frame = read(source, folder, since="2030-01-01")
    assert frame.count() == 0 and [f.name for f in frame.schema] == [f.name for f in COLUMNS]
    assert frame.collect() == read(source, folder).where("k = 'b1' AND k = 'zz'").collect() == []
    nothing = tmp_path / "nothing yet"
    create(str(nothing), "s", "stream", COLUMNS, "k", Layout(2, 2, EVERY, 40 * S), 40 * S)
    assert read(source, nothing, marks="true").count() == 0


def test_options_since_until_and_marks(source, folder):
    frame = read(
        source, folder, since="1970-01-01T00:00:30", until="1970-01-01T00:00:40", marks="true"
    )
    rows = sorted(frame.collect(), key=lambda r: r.v)
    assert [r.v for r in rows] == list(range(60, 80)) and [r["__id"] for r in rows] == list(
        range(60, 80)
    )
    assert (rows[0]["__exp"] - rows[0]["__ts"]).total_seconds() == 40
    late = read(source, folder, marks="true").where("__ts >= timestamp_seconds(50)")
    assert sorted(r.v for r in late.collect()) == list(range(100, 120))


@SLOW
def test_wrong_options_are_named(source, folder, tmp_path):
    assert (
        "DS640" in (said := error_text(lambda: read(source, folder, sinc="x").collect()))
        and "did you mean since?" in said
    )
    assert "DS953" in error_text(lambda: read(source, tmp_path / "nothing here"))
    assert "2013-02-30 is no instant" in error_text(
        lambda: read(source, folder, since="2013-02-30").collect()
    )


def test_a_reading_that_two_updates_have_overtaken_says_so(source, folder):
    from dsms_spark.options import struct
    from dsms_spark.source_archive import ArchiveReader, FilePartition

    reader = ArchiveReader({"path": str(folder)}, struct([(f.name, f.type) for f in COLUMNS]))
    with pytest.raises(UsageError, match=r"is gone: the archive has been updated") as caught:
        list(
            reader.read(FilePartition(str(folder), "index/nothing.parquet", -(2**63), 2**63 - 1, 0))
        )
    assert caught.value.code == "DS954"


# -- answers and rows ------------------------------------------------------------------------------


def some(source, count: int, first: int = 0):
    """Rows of the stream `s`, one a second."""
    return source.range(first, first + count).selectExpr(
        "id % 3 AS k",
        "CAST(id / 4 AS DECIMAL(8, 2)) AS v",
        "make_dt_interval(0, 0, 0, id) AS i",
        "IF(id % 2 = 0, NULL, CAST(CAST(id AS STRING) AS BINARY)) AS b",
        "timestamp_seconds(id) AS t",
    )


def write(frame, server: Running, stream: str = "s", **options: str) -> None:
    frame.write.format("dsms").options(server=at(server), stream=stream, **options).mode(
        "append"
    ).save()


def answer(source, server: Running, **options: str):
    return source.read.format("dsms").option("server", at(server)).options(**options).load()


def test_rows_go_in_and_answers_come_out_in_the_same_types(source, server):
    with connect("127.0.0.1", server.port) as db:
        db.execute(
            f"{STREAM}; CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY k"
        )
        sent = some(source, 30).coalesce(1)
        write(sent, server)
        db.heartbeat("s", 100 * S)
    back = answer(source, server, stream="s", window="RANGE 1 HOUR")
    assert back.schema.simpleString() == sent.schema.simpleString()
    assert sorted(back.collect(), key=lambda r: r.t) == sorted(sent.collect(), key=lambda r: r.t)
    sums = answer(
        source,
        server,
        sql="SELECT k, SUM(v) AS v FROM s [RANGE 1 HOUR] GROUP BY k ORDER BY k LIMIT 1;",
    )
    assert [tuple(r) for r in sums.collect()] == [(0, Decimal("33.75"))]
    twice = answer(source, server, sql="SELECT k, k FROM s [RANGE 1 HOUR] ORDER BY k LIMIT 1")
    assert [r.asDict() for r in twice.collect()] == [{"k": 0, "k_1": 0}]
    rows = answer(source, server, query="q").collect()
    assert sorted((r.k, r.n, r._kind) for r in rows) == [(k, 10, "snapshot") for k in range(3)]
    assert {r._seq for r in rows} == {57}  # 30 inserts, 27 deletes of what they replace


@SLOW
def test_a_task_that_is_run_again_adds_nothing_twice(server):
    """Two tries of one task, as Spark makes them; the first dies before it is done."""
    from dsms_spark.source_server import FRAME_ROWS, StreamWriter

    count = 3 * FRAME_ROWS
    rows = pa.record_batch({"k": range(count), "t": [i * S for i in range(count)]})
    with connect("127.0.0.1", server.port) as db:
        db.execute("CREATE STREAM n (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 DAY")
        writer = StreamWriter({"server": at(server), "stream": "n"}, "error")

        def broken():
            yield rows.slice(0, 2 * FRAME_ROWS + 7)
            raise OSError("the machine is gone")

        with pytest.raises(OSError, match="the machine is gone"):
            writer.write(broken())
        # other batches than the first time
        cuts = (rows.slice(i, 10_000) for i in range(0, count, 10_000))
        report = writer.write(cuts)
        assert (report.accepted, report.late, report.refused) == (FRAME_ROWS, 0, 0)
        writer.commit([report])
        (streams,) = [r for r in db.query("SHOW STREAMS").rows if r[0] == "n"]
        assert count in streams


@SLOW
def test_rows_that_are_refused_fail_the_job_unless_that_is_said(source, server):
    with connect("127.0.0.1", server.port) as db:
        db.execute("CREATE STREAM n (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 DAY")
    frame = source.sql(
        "SELECT 1L AS k, IF(id = 1, NULL, timestamp_seconds(id)) AS t FROM range(3)"
    ).coalesce(1)
    assert (
        "DS512" in (said := error_text(lambda: write(frame, server, "n")))
        and "1 rows were refused" in said
    )
    write(frame.where("t > timestamp_seconds(1)"), server, "n", refused="ignore", end="true")
    assert "only be appended to" in error_text(
        lambda: (
            frame.write.format("dsms")
            .options(server=at(server), stream="n")
            .mode("overwrite")
            .save()
        )
    )


def test_what_a_server_says_reaches_the_user(source, server):
    assert "DS203" in error_text(lambda: answer(source, server, query="nobody"))
    assert "DS640" in error_text(lambda: answer(source, server, stream="s"))
    assert "DS101" in error_text(lambda: answer(source, server, sql="SELEC 1"))
    assert "DS612" in error_text(
        lambda: source.read.format("dsms").options(server="127.0.0.1:1", sql="SELECT 1").load()
    )


# -- results as a stream ---------------------------------------------------------------------------


def stream_to(source, server: Running, target: Path, **options: str) -> list[tuple[int, str, int]]:
    """Read what there is, from the checkpoint on; all that has been written, by number."""
    results = (
        source.readStream.format("dsms")
        .option("server", at(server))
        .option("query", "q")
        .options(**options)
    )
    run = results.load().writeStream.format("parquet").option("path", str(target / "out"))
    run = (
        run.option("checkpointLocation", str(target / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    run.awaitTermination()
    rows = source.read.parquet(str(target / "out")).collect()
    return sorted((r._seq, r._kind, r.k) for r in rows)


def test_a_stream_goes_on_from_its_checkpoint_and_has_each_row_once(source, server, tmp_path):
    with connect("127.0.0.1", server.port) as db:
        db.execute(
            f"{STREAM}; CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 5 s] GROUP BY k"
        )
        subscription = db.subscribe("q", 0)
        db.ingest("s", [[i % 3, None, None, None, i * S] for i in range(20)])
        first = stream_to(source, server, tmp_path)
        db.ingest("s", [[i % 3, None, None, None, i * S] for i in range(20, 40)])
        second = stream_to(source, server, tmp_path, maxRowsPerTrigger="7")
        want = []
        while len(want) < len(second):
            push = subscription.next(10)
            want += [
                (push.seq + i, push.kind, row[0])
                for i, row in enumerate(push.rows)
                if push.kind != "snapshot"
            ]
    assert second[: len(first)] == first and len(first) < len(second)
    assert second == want and [r[0] for r in second] == list(range(len(want)))


def test_offsets(server):
    from dsms_spark.options import named_types
    from dsms_spark.source_stream import ResultReader

    def reader(query: str = "q", most: int | None = None, **options: str) -> ResultReader:
        given = {"server": at(server), "query": query, **options}
        return ResultReader(given, named_types([("k", "INT")]), most)

    with connect("127.0.0.1", server.port) as db:
        db.execute("CREATE STREAM n (k INT, t TIMESTAMP) TIMESTAMP BY t")
        db.execute("CREATE QUERY q AS SELECT k FROM n [RANGE 5 s] WITH (result_log = 5)")
        for i in range(21):  # the log lets go of what was told together
            db.ingest("n", [[i, i * S]])
    assert [
        reader(**o).initialOffset()["seq"] for o in ({}, {"start": "latest"}, {"start": "7"})
    ] == [0, 35, 7]
    assert reader().latestOffset({"seq": 3}) == {"seq": 35} == reader().latestOffset()
    assert (
        reader(most=4).latestOffset({"seq": 3}) == {"seq": 7}
        and reader().partitions({"seq": 4}, {"seq": 4}) == []
    )
    for work, code in (
        (lambda: reader(start="soon").initialOffset(), "DS640"),
        (lambda: reader("p").latestOffset(), "DS401"),
        (lambda: reader().latestOffset({"seq": 36}), "DS409"),  # numbered anew
        # not kept
        (lambda: list(reader().read(*reader().partitions({"seq": 0}, {"seq": 9}))), "DS409"),
    ):
        with pytest.raises(UsageError) as caught:
            work()
        assert caught.value.code == code


def test_micro_batches_are_written_once_even_when_they_are_run_again(source, server, tmp_path):
    rows = (
        source.range(30)
        .selectExpr("id % 3 AS k", "timestamp_seconds(id) AS t")
        .coalesce(1)
        .sortWithinPartitions("t")
    )
    rows.write.parquet(str(tmp_path / "in"))
    with connect("127.0.0.1", server.port) as db:
        db.execute("CREATE STREAM n (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 DAY")

        def run(checkpoint: str) -> int:
            frame = source.readStream.schema("k bigint, t timestamp").parquet(str(tmp_path / "in"))
            out = frame.writeStream.format("dsms").options(
                server=at(server), stream="n", writer="w"
            )
            out.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(
                availableNow=True
            ).start().awaitTermination()
            shown = db.query("SHOW STREAMS")
            return shown.rows[0][shown.columns.index("accepted")]

        assert run("a") == 30
        assert run("b") == 30  # a checkpoint that knows nothing: the first micro-batch comes again


@SLOW
def test_an_archive_query_leaves_the_callers_session_the_active_one(source, tmp_path):
    from dsms_spark.session import for_jobs

    with for_jobs(source) as other:
        other.createDataFrame([(1,)], "x int").count()
    assert type(source).getActiveSession() is source
