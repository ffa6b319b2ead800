"""Values of other libraries over a real connection, and files by the command: as in process."""

from __future__ import annotations

import asyncio
import datetime as dt
import shlex
from collections import namedtuple
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from dsms.engine import Engine
from dsms_client import UsageError, connect
from dsms_client.aio import AsyncClient
from dsms_client.cli import main
from tests.effort import thinned

DECLARE = """CREATE STREAM s (i INT, d DECIMAL(20,2), x STRING, t TIMESTAMP, n INTERVAL) TIMESTAMP BY t
             RETAIN 100000 d"""  # noqa: E501
Row = namedtuple("Row", "i d x t n")
SECOND = np.timedelta64(1, "s")
AT = dt.datetime(2013, 9, 15, 23, 44, 27)
EXACT = Decimal("12345678901234567.89")


@pytest.fixture
def server(serve):
    return serve(Engine())


@pytest.fixture
def client(server):
    with connect(port=server.port) as db:
        db.execute(DECLARE)
        yield db


def kept(client):
    client.heartbeat("s", pd.Timestamp("2100-01-01"))
    return [tuple(row) for row in client.query("SELECT i, d, x, t, n FROM s [RANGE 100000 d]").rows]


def test_rows_of_other_libraries(client):
    rows = [Row(np.int8(1), EXACT, np.str_("a"), np.datetime64("2013-09-15T23:44:27"), SECOND)]
    rows += [
        {"I": pd.NA, "D": "1", "X": None, "T": pd.Timestamp(AT, tz="UTC"), "N": pd.Timedelta("1s")}
    ]
    rows += [(2.0, 5, "b", AT, np.timedelta64("NaT"))]
    assert client.ingest("s", rows).accepted == 3
    micros = 1379288667_000000
    assert kept(client) == [
        (1, str(EXACT), "a", micros, 10**6),
        (None, "1.00", None, micros, 10**6),
        (2, "5.00", "b", micros, None),
    ]


@thinned(2)
@pytest.mark.parametrize("form", ["rows", "columns", "mixed", "arrow"])
def test_lists_may_be_many_and_long(client, form):
    """A frame of them held too many values to be read, and its writer waited for ever."""
    client.execute("CREATE STREAM l (k INT, v LIST(INT)) RETAIN 1 h")
    for rows, items in ((5000, 3), (30, 30_000), (2, 65_536)):
        lists = [[n] * items for n in range(rows)]
        if form == "mixed":
            lists[0] = "[" + "0, " * (items - 1) + "0]"
        columns = {"k": [items] * rows, "v": lists}
        data = [list(row) for row in zip(*columns.values(), strict=True)]
        frames = {"rows": data, "arrow": pa.table(columns) if form == "arrow" else None}
        assert client.ingest("l", frames.get(form, columns)).accepted == rows
    (asked,) = client.execute(
        "SELECT k, COUNT(*), MIN(LENGTH(v)), MAX(LENGTH(v)), SUM(LIST_SUM(v)) "
        "FROM l [RANGE 1 h] GROUP BY k"
    )
    assert sorted(asked.rows) == [
        (3, 5000, 3, 3, 3 * sum(range(5000))),
        (30_000, 30, 30_000, 30_000, 30_000 * sum(range(30))),
        (65_536, 2, 65_536, 65_536, 65_536),
    ]


def test_a_request_that_holds_too_much_is_answered(client):
    """Its error was one of no request, so its sender waited for ever."""
    for ask in (
        lambda: client.query("SELECT " + ", ".join("?" * 5000), [1] * 5000),
        lambda: client.ingest("s", [{"i": [[0] * 2000] * 2000}]),
    ):
        with pytest.raises(UsageError, match="holds too much") as problem:
            ask()
        assert problem.value.code == "DS600"
    assert client.query("SELECT ?", [1]).rows == [(1,)]


def test_what_a_row_can_not_hold_is_refused_alone(client):
    report = client.ingest(
        "s",
        [
            (AT, 0, "a", AT, None),
            (1, 0, Decimal(1), AT, None),
            (2**70, 0, "a", AT, None),
            (1, 0, "\ud800", AT, None),
            (1, 0, "a", AT, dt.time(1)),
            (1, 0, "a", AT, None),
        ],
    )
    assert (report.accepted, report.refused) == (1, 5)


def test_frames(client):
    polars = pl.DataFrame({"x": ["a", None], "t": [AT, AT]})
    pandas = pd.DataFrame({"i": [1, None], "t": [AT, AT]})
    assert client.ingest("s", polars).accepted == client.ingest("s", pandas).accepted == 2
    assert sorted(map(str, kept(client))) == sorted(
        map(
            str,
            [
                (None, None, "a", 1379288667_000000, None),
                (None, None, None, 1379288667_000000, None),
                (1, None, None, 1379288667_000000, None),
                (None, None, None, 1379288667_000000, None),
            ],
        )
    )
    twice = pd.DataFrame([[1, AT, 2]], columns=["i", "t", "i"])
    for frame, code in (
        (twice, "DS506"),
        (pd.DataFrame({"i": [1j], "t": [AT]}), "DS503"),
        (5, "DS505"),
    ):
        with pytest.raises(UsageError, match=code):
            client.ingest("s", frame)


def test_heartbeats_are_instants(client, server):
    for wrong in (1379288667_000000_000, 1.5, "soon"):
        with pytest.raises(UsageError, match="DS508"):
            client.heartbeat("s", wrong)

    async def beat():
        async with AsyncClient(port=server.port) as db:
            await db.heartbeat("s", AT)

    asyncio.run(beat())
    assert server.engine.runtime.inputs["s"].promised == 1379288667_000000


@pytest.fixture
def load(client, server, capsys):
    def run(line):
        code = main(
            [*shlex.split(line), "--stream", "s", "--port", str(server.port), "--no-end", "--quiet"]
        )
        return code, capsys.readouterr().err

    return run


def test_files_of_numbers_need_a_unit(client, load, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t,i,d\n1379288667.631000,1,12345678901234567.89\n")
    code, err = load(f"load {path}")
    assert code == 2 and "DS503" in err and "--time-unit" in err
    assert load(f"load {path} --time-unit s") == (0, "")
    assert kept(client) == [(1, str(EXACT), None, 1379288667_631000, None)]


def test_files_are_read_exactly(client, load, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"t": 1379288667.631000, "d": 12345678901234567.89}\n{"T": 1379288668, "I": '
        "9007199254740993}\n"
    )
    assert load(f"load {path} --time-unit s")[0] == 0
    parquet = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(
        pa.table(
            {
                "x": pa.array(["view"], pa.string_view()),
                "t": pa.array([1379288669], pa.timestamp("s")),
            }
        ),
        parquet,
    )
    assert load(f"replay {parquet} --speed max")[0] == 0
    assert [row[:4] for row in kept(client)] == [
        (None, str(EXACT), None, 1379288667_631000),
        (9007199254740993, None, None, 1379288668_000000),
        (None, None, "view", 1379288669_000000),
    ]


def test_what_spark_sends_is_what_it_has(client, server):
    source_server = pytest.importorskip("dsms_spark.source_server")
    batch = pa.record_batch(
        {
            "t": pa.array([AT], pa.timestamp("us", "Europe/Berlin")),
            "n": pa.array([5], pa.duration("us")),
            "d": pa.array([EXACT], pa.decimal128(38, 2)),
            "i": pa.array([7], pa.int16()),
            "x": pa.array(["a"], pa.large_string()),
        }
    )
    options = {"server": f"127.0.0.1:{server.port}", "stream": "s"}
    assert source_server.sent(options, "w", 0, iter([batch])).accepted == 1
    assert kept(client) == [(7, str(EXACT), "a", 1379288667_000000, 5)]


CHANGES = [
    {"id": 1, "v": "a", "__op": "c", "ms": 1000},
    {"id": 2, "v": "b", "__op": "r", "ms": 1000},
    {"id": 1, "v": "c", "__op": "u", "ms": 2000},
    {"id": 2, "v": None, "__op": "d", "ms": 2000},
    {"id": 3, "v": None, "__op": "t", "ms": 2000},
]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "client"])
def test_changes_of_a_table_elsewhere(server, capsys, tmp_path, kind):
    """As Debezium's ExtractNewRecordState writes them, into a stream with KEY."""
    frame, path = pd.DataFrame(CHANGES), tmp_path / f"a.{kind}"
    with connect(port=server.port) as db:
        db.execute("CREATE STREAM s (id INT, v STRING, ms INT) TIMESTAMP BY ms UNIT ms KEY (id)")
        if kind == "client":
            report = db.ingest("s", frame.rename(columns={"__op": "_op"}))
            assert (report.accepted, report.refused) == (4, 1)
        else:
            {
                "csv": lambda: frame.to_csv(path, index=False),
                "jsonl": lambda: frame.to_json(path, orient="records", lines=True),
                "parquet": lambda: frame.to_parquet(path),
            }[kind]()
            line = f"load {path} --map _op=__op --stream s --port {server.port} --no-end"
            assert main(shlex.split(line)) == 1
            assert "'t' is none of I, U, C, R, +, D, -" in capsys.readouterr().err
        db.heartbeat("s", 9 * 10**6)
        assert db.query("SELECT id, v FROM s").rows == [(1, "c")]


DICTS = (
    {1: 2},
    {(1, 2): 2},
    {None: 1},
    {1: {2: 3}},
    {"a": 2},
    {n: n for n in range(100)},
    {2**70: Decimal(1)},
)


@pytest.mark.parametrize("size", [0, 5000], ids=["small", "large"])
def test_dicts_refuse_their_row_alone_as_in_process(client, size):
    """A dict with keys that are no text was DS600, and all rows of the frame were lost."""
    engine = Engine()
    for to in (engine, client):
        to.execute("CREATE TABLE b (v INT, x STRING)")
    for value in (*DICTS, *([one] for one in DICTS)):
        for rows in ([[value, "x" * size], [5, ""]], [{"v": value, "x": "x" * size}, {"v": 5}]):
            there, here = client.ingest("b", rows), engine.ingest("b", rows)
            assert (there.accepted, there.refused, there.reasons) == (1, 1, here.reasons)
        for misfit in (
            [{1: 2, "x": "x" * size}, [5, ""]],
            {"v": [value, 5], "x": ["x" * size, ""]},
        ):
            said = []
            for to in (client, engine):
                with pytest.raises(UsageError) as told:
                    to.ingest("b", misfit)
                said.append(str(told.value))
            assert said[0] == said[1]


def test_a_column_of_no_type_is_not_called_one_of_a_stream(client):
    """Of a table, too, it was said that it is of a stream."""
    client.execute("CREATE TABLE b (v INT)")
    with pytest.raises(UsageError, match=r"DS503.* of (table )?b\b"):
        client.ingest("b", pa.table({"v": pa.array([{"a": 1}])}))


def test_dicts_refuse_their_row_alone_of_those_that_do_not_wait(server):
    async def sent():
        async with AsyncClient(port=server.port) as db:
            await db.execute("CREATE TABLE b (v INT)")
            reports = await asyncio.gather(*(db.ingest("b", [[{n: 2}], [n]]) for n in range(9)))
            return [report.accepted for report in reports]

    assert asyncio.run(sent()) == [1] * 9
