"""`dsms subscribe`: what it writes in each format, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from subprocess import PIPE

import pyarrow as pa
import pyarrow.parquet
import pytest

from dsms.engine import Engine
from dsms_client.sync import connect
from tests import forked
from tests.server.harness import Running
from tests.server.process import Process
from tests.waiting import WAIT

SECOND = 1_000_000
SCRIPT = """
CREATE STREAM s (k INT, w STRING, t TIMESTAMP) TIMESTAMP BY t;
CREATE QUERY q AS SELECT w, COUNT(*) AS n, MAX(t) AS t FROM s GROUP BY w;
"""
FIRST, SECOND_ROW = "1970-01-01 00:00:00", "1970-01-01 00:00:01"
JSON = [
    {"$seq": 0, "$sign": 1, "$at": FIRST, "w": "a,b", "n": 1, "t": FIRST},
    {"$seq": 1, "$sign": -1, "$at": SECOND_ROW, "w": "a,b", "n": 1, "t": FIRST},
    {"$seq": 2, "$sign": 1, "$at": SECOND_ROW, "w": "a,b", "n": 2, "t": SECOND_ROW},
    {"$seq": 3, "$sign": 1, "$at": "1970-01-01 00:00:02", "w": None, "n": 1},
]


@pytest.fixture
def server(serve) -> Running:
    """A query with four result rows."""
    running = serve(Engine())
    with connect(port=running.port) as db:
        db.execute(SCRIPT)
        rows = [[1, "a,b", 0], [2, "a,b", SECOND], [3, None, 2 * SECOND]]
        db.ingest("s", rows)
        db.heartbeat("s", 2 * SECOND)
    return running


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def without_time(rows):
    return [{key: value for key, value in row.items() if key != "t"} for row in rows]


def test_json_lines_from_a_number_on(dsms):
    code, out, err = dsms("subscribe", "q", "--from", "0", "--count", "4")
    assert (code, err) == (0, "")
    assert without_time(lines(out)) == without_time(JSON)
    code, out, _ = dsms("subscribe", "q", "--from", "2", "--count", "1")
    assert without_time(lines(out)) == without_time(JSON[2:3])


def test_csv_has_a_header(dsms):
    _, out, _ = dsms("subscribe", "q", "--from", "0", "--count", "2", "--format", "csv")
    assert out.splitlines() == [
        "$seq,$sign,$at,w,n,t",
        f'0,1,{FIRST},"a,b",1,{FIRST}',
        f'1,-1,{SECOND_ROW},"a,b",1,{FIRST}',
    ]


def test_the_answer_comes_first_without_numbers(dsms):
    _, out, _ = dsms("subscribe", "q", "--count", "2")
    rows = lines(out)
    assert [row["$seq"] for row in rows] == [None, None]
    assert {(row["w"], row["n"], row["$sign"]) for row in rows} == {("a,b", 2, 1), (None, 1, 1)}


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow"])
def test_files_are_whole(dsms, tmp_path, name):
    path = tmp_path / name
    assert dsms("subscribe", "q", "--from", "0", "--count", "3", "--output", str(path))[0] == 0
    if name.endswith("parquet"):
        table = pyarrow.parquet.read_table(path)
    else:
        table = pa.ipc.open_stream(path.read_bytes()).read_all()
    assert table.column("$seq").to_pylist() == [0, 1, 2]
    assert table.column("$sign").to_pylist() == [1, -1, 1]
    assert table.column("n").to_pylist() == [1, 1, 2]
    assert table.schema.field("$at").type == pa.timestamp("us")


def test_what_is_wrong_is_said(dsms, tmp_path):
    assert dsms("subscribe", "nope")[0] == 2
    assert dsms("subscribe", "q", "--from", "-1")[0] == 2
    code, out, err = dsms("subscribe", "q", "--from", "9")
    assert (code, out) == (2, "") and "DS409" in err
    code, _, err = dsms("subscribe", "q", "--output", str(tmp_path / "no" / "where.csv"))
    assert code == 2 and "cannot write" in err


def command(port, *words):
    return forked.Popen(
        [sys.executable, "-m", "dsms_client", "subscribe", "q", "--port", str(port), *words],
        stdout=PIPE,
        stderr=PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_a_signal_ends_it_with_whole_rows(server, number, code):
    with command(server.port, "--from", "0") as run:
        seen = [run.stdout.readline() for _ in range(4)]
        run.send_signal(number)
        rest, _ = run.communicate(timeout=WAIT)
    assert run.returncode == code
    assert without_time(lines("".join(seen) + rest)) == without_time(JSON)


def test_a_parquet_file_is_whole_after_a_signal(server, tmp_path):
    path = tmp_path / "out.parquet"
    with command(server.port, "--from", "0", "--output", str(path)) as run:
        while not path.exists():
            os.sched_yield()
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=WAIT)
    assert run.returncode == 143
    assert pyarrow.parquet.read_table(path).column_names[:3] == ["$seq", "$sign", "$at"]


def test_it_ends_when_nobody_reads(server):
    with command(server.port, "--from", "0") as run:
        run.stdout.readline()
        run.stdout.close()
        run.wait(timeout=WAIT)
        assert run.stderr.read() == ""
    assert run.returncode == 0


def test_it_ends_with_the_query(server):
    with command(server.port, "--from", "0") as run, connect(port=server.port) as db:
        for _ in range(4):
            run.stdout.readline()
        db.execute("DROP QUERY q")
        rest, _ = run.communicate(timeout=WAIT)
    assert (run.returncode, rest) == (0, "")


def test_after_a_crash_of_the_server_no_row_comes_twice(tmp_path):
    server = Process(str(tmp_path / "data"))
    try:
        with connect(port=server.port) as db:
            db.execute(SCRIPT.replace("TIMESTAMP BY t", "TIMESTAMP BY t WITH (durability = sync)"))
            with command(server.port, "--from", "0", "--count", "4") as run:
                db.ingest("s", [[1, "a,b", 0], [2, "a,b", SECOND]])
                seen = run.stdout.readline()
                server.kill()
                server.start()
                db.ingest("s", [[3, None, 2 * SECOND]])
                db.heartbeat("s", 2 * SECOND)
                rest, err = run.communicate(timeout=WAIT)
        assert without_time(lines(seen + rest)) == without_time(JSON)
        assert run.returncode == 0 and "trying again" in err
    finally:
        server.kill()
