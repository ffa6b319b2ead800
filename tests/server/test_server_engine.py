"""The server over the real engine: whole stories, from a statement to its pushes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet
import pytest
from harness import Proxy

from dsms.engine import Engine
from dsms_client import QueryError, UsageError, connect
from tests import forked
from tests.waiting import WAIT

DECLARE = """
CREATE STREAM s (k INT, v FLOAT, t TIMESTAMP) TIMESTAMP BY t;
CREATE QUERY big AS SELECT k, v FROM s WHERE v > 0.5;
CREATE QUERY sums AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 5 ms] GROUP BY k;
"""


@pytest.fixture
def server(serve):
    return serve(Engine())


@pytest.fixture
def client(server):
    with connect(port=server.port) as db:
        db.execute(DECLARE)
        yield db


def rows(count, start=0):
    """Rows 1 ms apart."""
    return [[i % 7, (i * 37 % 100) / 100, i * 1000] for i in range(start, start + count)]


def collect(results, until):
    """Result rows up to number `until`, as (seq, kind, at, row)."""
    out = []
    while not out or out[-1][0] < until - 1:
        push = results.next(timeout=WAIT)
        for offset, (at, row) in enumerate(zip(push.instants, push.rows, strict=True)):
            numbered = push.seq + (offset if push.kind != "snapshot" else 0)
            out.append((numbered, push.kind, at, row))
    return out


def test_results_do_not_depend_on_frames(serve):
    collected = []
    for cut in (1, 7, 300, 1500):
        running = serve(Engine())
        with connect(port=running.port) as db:
            db.execute(DECLARE)
            results = db.subscribe("sums", start=0)
            data = rows(1500)
            for first in range(0, 1500, cut) if cut > 1 else range(100):
                db.ingest("s", data[first : first + cut], wait=False)
            if cut == 1:
                db.ingest("s", data[100:])
            db.end("s")
            collected.append(collect(results, 1500))
    assert all(len(t) >= 1500 for t in collected)
    shortest = min(map(len, collected))
    assert all(t[:shortest] == collected[0][:shortest] for t in collected)
    assert [row[0] for row in collected[0]] == list(range(len(collected[0])))


def test_arrow_and_rows_tell_the_same(server, client):
    with (
        connect(port=server.port, data="arrow") as other,
        connect(port=server.port, data="rows") as plain,
    ):
        readers = [c.subscribe("sums", start=0) for c in (other, plain)]
        client.ingest(
            "s", pa.table({"k": [1, 2, 1], "v": [0.5, None, 1.5], "t": [1000, 1000, 2000]})
        )
        client.heartbeat("s", 100_000)
        first, second = (collect(reader, 6) for reader in readers)
    assert first == second
    assert first[0][1:] == ("insert", 1000, (1, 1, 0.5))
    assert {kind for _, kind, _, _ in first} == {"insert", "delete"}


def test_a_view_begins_with_a_snapshot_and_resumes(server, client):
    client.ingest("s", [[1, 0.25, 1000], [2, 0.5, 2000]])
    client.heartbeat("s", 2000)
    with client.subscribe("sums") as results:
        snapshot = next(results)
        assert (snapshot.kind, snapshot.seq, snapshot.at) == ("snapshot", 2, 2000)
        assert sorted(snapshot.rows) == [(1, 1, 0.25), (2, 1, 0.5)]
        client.ingest("s", [[1, 0.5, 3000]])
        client.heartbeat("s", 3000)
        pushes = [next(results), next(results)]
        assert [(p.kind, p.seq, p.at, p.rows) for p in pushes] == [
            ("delete", 2, 3000, [(1, 1, 0.25)]),
            ("insert", 3, 3000, [(1, 2, 0.75)]),
        ]
    with client.subscribe("sums", start=3) as results:
        assert next(results).rows == [(1, 2, 0.75)]
    with pytest.raises(UsageError, match="DS409: there is no result row 99 yet: the next one is 4"):
        client.subscribe("sums", start=99)


def test_what_became_of_each_row_is_reported(client):
    data = rows(40_000)
    data[30_000][2] = None
    data[39_999][2] = 5
    data[20_000] = [1, "x", 20_000_000]
    report = client.ingest("s", data)
    assert (report.accepted, report.late, report.refused) == (39_997, 1, 2)
    reasons = " ".join(report.reasons)
    assert "(NULL timestamp): row 30000:" in reasons
    assert "(wrong value): row 20000:" in reasons
    shown = client.query("SHOW STREAMS").table().to_pylist()[0]
    assert (shown["accepted"], shown["late"], shown["refused"]) == (39_997, 1, 2)


def test_a_row_stamped_on_arrival_is_answered_without_another(client):
    client.execute(
        "CREATE STREAM now (k INT); CREATE QUERY c AS SELECT COUNT(*) AS n FROM now [RANGE 1 HOUR]"
    )
    with client.subscribe("c", start=0) as results:
        client.ingest("now", [[1]])
        counts = []
        while 1 not in counts:
            counts += [row[0] for row in results.next(timeout=WAIT).rows]


def test_dropping_a_query_ends_its_subscriptions(client):
    results = client.subscribe("big")
    client.execute("DROP QUERY big")
    end = results.next(timeout=WAIT)
    assert end.kind == "end"
    assert "dropped" in end.message
    assert results.next(timeout=WAIT) is None


def test_rows_are_applied_once_over_a_line_that_breaks(server, client):
    proxy = Proxy(server.port)
    with connect(port=proxy.port) as db:
        for first in range(0, 2000, 100):
            db.ingest("s", rows(100, first), wait=False)
            if first % 500 == 0:
                proxy.cut()
        db.flush()
    proxy.close()
    assert client.query("SHOW STREAMS").table().column("accepted").to_pylist() == [2000]


def test_limits_of_the_engine_have_codes(serve):
    from dsms.settings import Settings

    running = serve(Engine(None, Settings(queries=1)))
    with connect(port=running.port) as db:
        with pytest.raises(UsageError) as caught:
            db.execute(DECLARE)
        assert caught.value.statement == 2 and caught.value.code == "DS634"
        assert len(caught.value.done) == 2


def start(*options, said=None):
    """`dsms serve` in a process of its own: (process, port).  `said` takes the lines before the one
    that names it."""
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = forked.Popen(
        [sys.executable, "-m", "dsms_client", "serve", "--no-warmup", "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    for line in process.stderr:
        if found := re.search(r"listens on 127\.0\.0\.1:(\d+)", line):
            return process, int(found[1])
        (said if said is not None else []).append(line)
    raise AssertionError(f"the server did not start: {process.wait()}")


def test_values_that_cannot_be_are_the_querys_fault(client):
    with pytest.raises(QueryError, match="DS701: division by zero"):
        client.execute("SELECT 1 / 0")


def test_decimals_are_written_out_on_the_wire(client):
    row = client.query(
        "SELECT DECIMAL '-0.0000000001' AS a, DECIMAL '0.0000000' AS b, DECIMAL '0.000001' AS c"
    ).rows[0]
    assert row == ("-0.0000000001", "0.0000000", "0.000001")


def test_a_server_without_a_folder_says_that_it_forgets(tmp_path):
    lines: list[str] = []
    for options, says in (
        ((), True),
        (("--archive", str(tmp_path / "a")), True),
        (("--data", str(tmp_path)), False),
    ):
        lines.clear()
        process, _ = start(*options, said=lines)
        process.terminate()
        process.communicate(timeout=WAIT)
        assert any("note: nothing is kept: without --data" in line for line in lines) is says
        assert any("archives stay" in line for line in lines) is ("--archive" in options)


def test_the_process_stops_gracefully_and_remembers(tmp_path):
    process, port = start("--data", str(tmp_path / "data"))
    with connect(port=port, reconnect_seconds=0) as db:
        db.execute(DECLARE)
        db.execute(
            "CREATE TABLE r (k INT PRIMARY KEY, name STRING); INSERT INTO r VALUES (1, 'one'), "
            "(2, 'two')"
        )
        results = db.subscribe("big")
        db.ingest("s", rows(50_000), wait=False)
        db.ping()
        process.send_signal(signal.SIGTERM)
        seen = 0
        with pytest.raises(UsageError, match="the server is stopping"):
            while True:
                seen += len(next(results))
        assert seen == sum(row[1] > 0.5 for row in rows(50_000))
    assert process.wait(WAIT) == 0
    process, port = start("--data", str(tmp_path / "data"), "--token", "secret")
    with connect(port=port, token="secret") as db:
        assert {"SUM", "GEOMEAN", "UPPER"} <= set(db.functions())
        names = db.names()
        assert (list(names["streams"]), sorted(names["queries"])) == (["s"], ["big", "sums"])
        assert db.query("SELECT name FROM r ORDER BY k").rows == [("one",), ("two",)]
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT) == 0
    process.stderr.close()


def test_an_unknown_query_is_answered_with_those_there_are(client):
    with pytest.raises(UsageError, match="DS401") as refused:
        client.subscribe("nothing")
    assert "known names: big, sums" in (refused.value.hint or "")
    with pytest.raises(UsageError, match="DS401") as refused:
        client.subscribe("bog")
    assert "did you mean big?" in (refused.value.hint or "")
    for n in range(20):
        client.execute(f"CREATE QUERY more{n} AS SELECT k FROM s")
    with pytest.raises(UsageError, match="DS401") as refused:
        client.subscribe("nothing")
    assert refused.value.hint == "known names: big, sums, more0, more1, more2 and 17 more"
    with pytest.raises(UsageError, match="DS405") as refused:
        client.execute("DROP STREAM s")
    assert (
        refused.value.message == "stream s is read by big, more0, more1, more10, more11 and 17 more"
    )


def test_a_table_changes_at_the_newest_instant_of_any_stream(client):
    client.execute(
        "CREATE STREAM late (v INT, t TIMESTAMP) TIMESTAMP BY t; CREATE TABLE r (k INT PRIMARY KEY)"
    )
    client.ingest("s", rows(10))
    client.ingest("late", [[1, 3_000_000]])
    (first, done) = client.execute("INSERT INTO r VALUES (1); INSERT INTO r VALUES (2)")
    assert "1970" not in first.message  # the first rows of a table hold from the beginning
    assert done.message == "1 row inserted as of 1970-01-01T00:00:03Z"


def test_max_future_binds_the_heartbeats_of_clients(client):
    client.execute("CREATE STREAM near (v INT, t TIMESTAMP) TIMESTAMP BY t MAX FUTURE 10 s")
    client.ingest("near", [[1, 1_000_000]])
    with pytest.raises(
        UsageError, match=r"DS508: heartbeat .*9999.* is more than MAX FUTURE 10 s after .*:01Z"
    ) as far:
        client.heartbeat("near", 253_402_300_799_000_000)
    assert far.value.hint == "if time really went on, send heartbeats in steps no longer than that"
    for second in (11, 21, 31):  # as far as it goes
        client.heartbeat("near", second * 1_000_000)
    with pytest.raises(UsageError, match="DS508"):
        client.heartbeat("near", 41_000_001)
    report = client.ingest("near", [[2, 31_000_000], [3, 41_000_000], [4, 51_000_001]])
    assert (report.accepted, report.late, report.refused) == (1, 1, 1)
    client.execute("CREATE STREAM first (v INT, t TIMESTAMP) TIMESTAMP BY t MAX FUTURE 10 s")
    client.heartbeat("first", 1_600_000_000_000_000)
    client.heartbeat("first", 5)  # an earlier promise stands, and does no harm


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "arrow"])
def test_rows_that_the_server_refuses_are_told_by_their_lines(dsms, tmp_path, form):
    assert dsms("shell", "-c", "CREATE STREAM strict (k INT NOT NULL, v FLOAT)")[0] == 0
    path, rejects = tmp_path / f"a.{form}", tmp_path / "rejects.csv"
    if form == "csv":
        path.write_text("k,v\n1,0.5\nx,1\n2,1\nNULL,2\n3,4\n")
    elif form == "jsonl":
        path.write_text('{"k":1,"v":2}\n\n{"k":"x"}\n{"k":2}\n{"v":2}\n{"k":3}\n')
    else:
        table = pa.table({"k": [0, 1, 2, 3, None, 5], "v": [2**53 + 1] + [1] * 5})
        if form == "arrow":
            with pa.ipc.new_file(path, table.schema) as sink:
                sink.write_table(table, 4)
        else:
            pa.parquet.write_table(table, path)
    more = ("--stream", "strict", "--batch", "2", "--rejects", str(rejects))
    code, _, err = dsms("load", str(path), *more)
    assert code == 1 and "refused by the server: 1 row refused" in err and "): line 5: " in err
    assert [line[:2] for line in rejects.read_text().splitlines()[1:]] in (
        ["3,", "5,"],
        ["1,", "5,"],
    )


def test_a_report_is_of_the_same_types_both_ways(client):
    client.execute("CREATE STREAM alike (t TIMESTAMP) TIMESTAMP BY t")
    engine = Engine()
    engine.execute("CREATE STREAM alike (t TIMESTAMP) TIMESTAMP BY t")
    here, there = engine.ingest("alike", [[1]]), client.ingest("alike", [[1]])
    for name in ("accepted", "late", "refused", "repeated", "reasons"):
        assert repr(getattr(here, name)) == repr(getattr(there, name))


def test_clients_promise_by_key(client):
    client.execute("CREATE STREAM p (k INT, d DECIMAL(4,2), t TIMESTAMP) TIMESTAMP BY t")
    client.heartbeat("p", None, where={"k": [1, 2]})
    client.heartbeat("p", 5_000_000, where={"K": 3, "d": Decimal("0.50")})
    client.execute("PUNCTUATE p WHERE k IS NULL")
    sent = [[1, None, 1], [3, Decimal("0.5"), 5_000_000], [3, None, 2], [None, None, 3], [4, 1, 4]]
    report = client.ingest("p", sent)
    assert (report.accepted, report.late, report.refused) == (2, 3, 0)
    assert "DS365" in report.reasons[0]
    with pytest.raises(UsageError, match="DS501"):
        client.heartbeat("p", 0, where={"z": 1})
    with pytest.raises(UsageError, match="DS508"):
        client.heartbeat("p", None)
