"""The Python client: every way in and out, reconnects, exactly-once rows, gap-free results."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import re
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from harness import Proxy

from dsms_client import AsyncClient, Client, Done, QueryError, UsageError, connect
from tests.waiting import WAIT


@pytest.fixture
def client(server):
    with connect(port=server.port) as db:
        yield db


@pytest.fixture
def proxy(server):
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


def count(db, stream="s"):
    return db.query(f"SELECT COUNT(*) FROM {stream}").rows[0][0]


def test_results_have_every_form(client):
    done, rows = client.execute("CREATE STREAM t (a INT); SELECT 7")
    assert done == Done("stream t created")
    assert (rows.columns, rows.types, rows.rows, len(rows), list(rows)) == (
        ("7",),
        ("INT",),
        [(7,)],
        1,
        [(7,)],
    )
    assert rows.table().to_pydict() == {"7": [7]}
    assert rows.pandas().to_dict("list") == {"7": [7]}
    assert rows.polars().to_dict(as_series=False) == {"7": [7]}
    assert client.query("SELECT 8").rows == [(8,)]
    with pytest.raises(UsageError, match="no statement answered with rows"):
        client.query("CREATE STREAM u (a INT)")


@pytest.mark.parametrize(
    "data",
    [
        {"k": [1, 2], "v": [0.5, None]},
        {"v": np.array([0.5, np.nan]), "k": np.array([1, 2])},
        [[1, 0.5], [2, None]],
        [(np.int64(1), np.float32(0.5)), (2, None)],
        pa.table({"k": pa.array([1, 2], pa.int16()), "v": [0.5, None]}),
        pa.record_batch({"k": [1, 2], "v": [0.5, None]}),
        pd.DataFrame({"k": [1, 2], "v": [0.5, None]}),
        pl.DataFrame({"k": [1, 2], "v": [0.5, None]}),
    ],
    ids=["lists", "numpy", "rows", "scalars", "table", "batch", "pandas", "polars"],
)
def test_rows_come_in_whatever_form(client, data):
    report = client.ingest("s", data)
    assert (report.accepted, report.refused, report.reasons) == (2, 0, ())
    assert client.query("SELECT * FROM s").table().column("k").to_pylist() == [1, 2]


def test_rich_values(client):
    client.execute("CREATE STREAM r (t TIMESTAMP, n INTERVAL, d DECIMAL(8,2), y BYTES)")
    at = dt.datetime(2013, 1, 1, 5, 17)
    rows = [
        [at, dt.timedelta(milliseconds=-1), decimal.Decimal("1.25"), b"\xff"],
        [at.replace(tzinfo=dt.timezone(dt.timedelta(hours=5))), None, None, None],
    ]
    assert client.ingest("r", rows).accepted == 2
    result = client.query("SELECT * FROM r")
    assert result.rows[0] == (1357017420000000, -1000, "1.25", b"\xff")
    first = list(result.table().to_pylist()[0].values())
    assert first == [at, dt.timedelta(milliseconds=-1), decimal.Decimal("1.25"), b"\xff"]
    assert result.table().column("t")[1].as_py() == at - dt.timedelta(hours=5)
    assert result.pandas()["t"][0] == pd.Timestamp(at)


def frames(server) -> float:
    """Requests to ingest so far, as a scrape shows them."""
    text = server.on_loop(server.server.metrics.text).decode()
    return sum(
        float(n) for n in re.findall(r'^dsms_requests_total{op="ingest"} (\S+)$', text, re.M)
    )


def test_much_data_is_cut_into_frames(server, client):
    table = pa.table({"k": np.arange(700_000), "v": np.zeros(700_000)})
    before = frames(server)
    assert client.ingest("s", table).accepted == 700_000
    assert frames(server) - before == 3
    assert client.ingest("s", [[i, None] for i in range(40_000)]).accepted == 40_000
    assert count(client) == 740_000


def test_errors_are_raised_as_their_family(client):
    with pytest.raises(QueryError) as caught:
        client.execute("SELECT 1; NONSENSE here")
    assert (caught.value.code, caught.value.line, caught.value.column, caught.value.statement) == (
        "DS100",
        1,
        9,
        1,
    )
    assert caught.value.hint == "try SELECT 1"
    assert [r.rows for r in caught.value.done] == [[(1,)]]
    with pytest.raises(UsageError, match="no stream `ss`"):
        client.ingest("ss", [[1]])
    with pytest.raises(UsageError, match=r"DS505.*can't be read from an int"):
        client.ingest("s", 5)
    with pytest.raises(UsageError, match="DS402"):
        client.subscribe("nope")


def test_errors_of_rows_nobody_waited_for_come_later(client):
    client.ingest("s", [[1, 1.0]], wait=False)
    client.flush()
    client.ingest("nope", [[1, 1.0]], wait=False)
    with pytest.raises(UsageError, match="no stream `nope`"):
        client.flush()
    assert count(client) == 1


def test_iteration_over_results(client):
    with client.subscribe("q") as results:
        assert (results.columns, results.types, results.query) == (
            ("k", "v"),
            ("INT", "FLOAT"),
            "q",
        )
        client.ingest("s", {"k": [1, 2], "v": [0.5, 1.5]})
        first, second = next(results), next(results)
        assert (first.seq, first.kind, first.at, first.rows) == (0, "insert", 0, [(1, 0.5)])
        assert second.pandas().to_dict("list") == {"k": [2], "v": [1.5]}
        client.ingest("s", pa.table({"k": np.arange(1000), "v": np.zeros(1000)}))
        big = next(results)
        assert (len(big), big.next_seq, big.instants[:3], big.at) == (1000, 1002, [2, 3, 4], 1001)
        assert results.next_seq == 1002
        with pytest.raises(TimeoutError):
            results.next(timeout=0.01)
    with client.subscribe("q", start=1) as results:
        assert next(results).rows == [(2, 1.5)]


def test_two_clients_at_once(server):
    async def run():
        async with AsyncClient(port=server.port) as one, AsyncClient(port=server.port) as two:
            results = await one.subscribe("q")
            await asyncio.gather(*(two.ingest("s", [[i, 0.0]]) for i in range(100)))
            keys = []
            async for push in results:
                keys += [row[0] for row in push.rows]
                if len(keys) == 100:
                    break
            await results.close()
            await one.ping()
            return keys, await two.names()

    keys, names = asyncio.run(run())
    assert keys == list(range(100))
    assert names["streams"] == {"s": [("k", "INT"), ("v", "FLOAT")]}


def test_a_cancelled_task_stops_its_statement(server):
    async def run():
        async with AsyncClient(port=server.port) as db:
            task = asyncio.create_task(db.execute("SPIN"))
            await asyncio.to_thread(server.engine.spinning.wait, WAIT)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await db.query("SELECT 5")).rows

    assert asyncio.run(run()) == [(5,)]


def test_no_server():
    with pytest.raises(UsageError, match=r"DS612.*no dsms server answers at 127\.0\.0\.1:1 "):
        connect(port=1)


def test_token(serve):
    running = serve(token="secret")
    with pytest.raises(UsageError, match="DS605"):
        connect(port=running.port)
    with connect(port=running.port, token="secret") as db:
        assert db.query("SELECT 1").rows == [(1,)]


def test_a_frame_whose_answer_was_lost_is_applied_once(server, proxy):
    with connect(port=proxy.port) as db:
        assert db.ingest("s", [[0, 0.0]]).accepted == 1
        proxy.lose_answers = True
        proxy.answered.clear()
        for key in range(1, 6):
            db.ingest("s", [[key, 0.0]], wait=False)
        assert proxy.answered.wait(WAIT)
        proxy.lose_answers = False
        proxy.cut()
        db.flush()
        assert db.ingest("s", [[6, 0.0]]).accepted == 1
        assert [row[0] for row in db.query("SELECT * FROM s").rows] == [0, 1, 2, 3, 4, 5, 6]
    assert proxy.accepted == 2


def test_many_cuts_lose_and_double_nothing(server, proxy):
    def cutter():
        for _ in range(8):
            proxy.answered.clear()
            proxy.answered.wait(WAIT)
            proxy.cut()

    with connect(port=proxy.port) as db:
        thread = threading.Thread(target=cutter)
        thread.start()
        for first in range(0, 3000, 100):
            db.ingest("s", [[i, 0.0] for i in range(first, first + 100)])
        db.heartbeat("s", 5)
        while thread.is_alive():
            try:
                db.ping()
            except UsageError as problem:
                assert problem.code == "DS611"
        assert [row[0] for row in db.query("SELECT * FROM s").rows] == list(range(3000))
    assert server.engine.calls.count(("heartbeat", "s", 5)) >= 1


def test_a_subscription_survives_cuts_without_gap(server, proxy, client):
    with connect(port=proxy.port) as db:
        results = db.subscribe("q", start=0)
        keys = []
        for first in range(0, 600, 100):
            client.ingest("s", [[i, 0.0] for i in range(first, first + 100)])
            while len(keys) < first + 50:
                push = next(results)
                assert push.seq == len(keys)
                keys += [row[0] for row in push.rows]
            proxy.cut()
        while len(keys) < 600:
            push = next(results)
            assert push.seq == len(keys)
            keys += [row[0] for row in push.rows]
    assert keys == list(range(600))
    assert proxy.accepted > 1


def test_a_reader_that_is_too_slow_catches_up_from_the_log(client):
    results = client.subscribe("q")
    results._inner.buffer_bytes = 20_000
    for first in range(0, 2000, 100):
        client.ingest("s", [[i, 0.0] for i in range(first, first + 100)])
    keys = []
    while len(keys) < 2000:
        push = next(results)
        assert push.seq == len(keys)
        keys += [row[0] for row in push.rows]
    assert keys == list(range(2000))


async def _behind(db, proxy, then=lambda: None):
    """A subscription that has let go, whose reader stopped waiting before the server said how it
    goes on."""
    results = await db.subscribe("q")
    results.buffer_bytes = 0
    await db.ingest("s", [[1, 0.5]])
    assert (await anext(results)).rows == [(1, 0.5)]
    results.buffer_bytes = 1 << 20
    then()
    proxy.passing.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await anext(results)
    return results


def test_a_reader_that_stops_waiting_while_it_catches_up_misses_nothing(proxy):
    async def story():
        async with AsyncClient(port=proxy.port) as db:
            results = await _behind(db, proxy)
            proxy.passing.set()
            await db.ingest("s", [[2, 0.5]])
            assert (await anext(results)).rows == [(2, 0.5)]

    asyncio.run(story())


def test_a_reader_that_stops_waiting_while_it_catches_up_is_told_what_went_wrong(
    server, proxy, monkeypatch
):
    def gone(*args, **options):
        raise UsageError("DS620", "these rows are gone")

    async def story():
        async with AsyncClient(port=proxy.port) as db:
            results = await _behind(
                db, proxy, lambda: monkeypatch.setattr(server.engine, "subscribe", gone)
            )
            proxy.passing.set()
            with pytest.raises(UsageError, match="these rows are gone"):
                await anext(results)

    asyncio.run(story())


def test_a_subscription_that_is_closed_while_it_catches_up_is_given_up(proxy):
    async def story():
        async with AsyncClient(port=proxy.port) as db:
            results = await _behind(db, proxy)
            async with asyncio.TaskGroup() as both:
                both.create_task(results.close())
                asyncio.get_running_loop().call_soon(proxy.passing.set)
            await (await db.subscribe("q")).close()  # a session has one of a query
            assert db._subs == {}

    asyncio.run(story())


def test_a_statement_whose_connection_breaks_says_so(server, proxy):
    with connect(port=proxy.port) as db:
        caught = []

        def spin():
            try:
                db.execute("SPIN")
            except UsageError as problem:
                caught.append(problem)

        thread = threading.Thread(target=spin)
        thread.start()
        assert server.engine.spinning.wait(WAIT)
        proxy.cut()
        thread.join(WAIT)
        assert caught[0].code == "DS611"
        assert db.query("SELECT 1").rows == [(1,)]


def test_no_reconnect_when_not_wanted(proxy):
    db = connect(port=proxy.port, reconnect_seconds=0)
    results = db.subscribe("q")
    proxy.cut()
    with pytest.raises(UsageError, match="DS611"):
        next(results)
    with pytest.raises(UsageError, match="DS611"):
        db.execute("SELECT 1")
    db.close()


def test_a_server_that_stops_is_heard_of(serve):
    running = serve()
    with Client(port=running.port, reconnect_seconds=0) as db:
        db.execute("CREATE STREAM s (k INT); CREATE QUERY q AS SELECT * FROM s")
        results = db.subscribe("q")
        running.await_(running.server.stop())
        with pytest.raises(UsageError, match="the server is stopping"):
            next(results)


def test_the_client_imports_nothing_heavy():
    heavy = [
        "pyarrow",
        "numpy",
        "pandas",
        "polars",
        "rich",
        "prompt_toolkit",
        "aiohttp",
        "uvloop",
        "numba",
        "dsms.api",
    ]
    code = (
        f"import sys, dsms_client.sync, dsms_client.cli; print([m for m in {heavy} if m in "
        "sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
        == "[]"
    )
