"""Answers say how many accepted rows wait behind the clock: over TCP, in both clients, in every
format of the shell."""

from __future__ import annotations

import asyncio
import io

import pytest

from dsms.engine import Engine
from dsms_client import AsyncClient, connect
from dsms_client.shell.runner import Runner

S = 1_000_000
DECLARE = """
CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t SLACK 15 MIN RETAIN 1 h;
CREATE TABLE r (k INT);
"""
COUNT = "SELECT COUNT(*) AS n FROM s [RANGE 1 h]"
NOTE = "NOTE: the answer is {}: {} behind the clock (SHOW STREAMS says for what)\n"


@pytest.fixture
def server(serve):
    running = serve(Engine())
    with connect(port=running.port) as db:
        db.execute(DECLARE)
        db.ingest("s", [[n, n * 60 * S] for n in range(40)])
    return running


def test_frames(server):
    with server.peer() as peer:
        count, table = peer.ask("execute", sql=f"{COUNT}; SELECT k FROM r")["results"]
    assert (count["as_of"], count["waiting"], count["rows"]) == (24 * 60 * S - 1, 16, [[24]])
    assert "waiting" not in table


def test_clients(server):
    with connect(port=server.port) as db:
        assert (db.query(COUNT).rows, db.query(COUNT).waiting) == ([(24,)], 16)
        assert db.query("SELECT k FROM r").waiting is None
        db.heartbeat("s", 60 * 60 * S)
        assert (db.query(COUNT).rows, db.query(COUNT).waiting) == ([(39,)], 0)

    async def ask():
        async with AsyncClient(port=server.port) as db:
            return (await db.query(COUNT)).waiting

    assert asyncio.run(ask()) == 0


@pytest.mark.parametrize("form", ["table", "csv", "json", "vertical"])
def test_every_format_of_the_shell_says_so_beside_the_data(server, form):
    with connect(port=server.port) as db:
        out, err = io.StringIO(), io.StringIO()
        shell = Runner(lambda _: db, form, out, err)
        assert shell.script(f"{COUNT}; SHOW STREAMS; SELECT k FROM r;")
        assert err.getvalue() == NOTE.format(
            "as of 1970-01-01 00:23:59.999999", "16 accepted rows wait"
        )
        assert "24" in out.getvalue() and "NOTE" not in out.getvalue()
        db.heartbeat("s", 60 * 60 * S)
        shell.script(f"{COUNT};")
        assert err.getvalue().count("NOTE") == 1


def test_before_any_clock(serve):
    running = serve(Engine())
    with connect(port=running.port) as db:
        db.execute(DECLARE + "CREATE STREAM u (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
        db.ingest("s", [[1, 0]])
        err = io.StringIO()
        Runner(lambda _: db, "csv", io.StringIO(), err).script(
            "SELECT COUNT(*) FROM s [RANGE 1 h], u [RANGE 1 h];"
        )
        assert err.getvalue() == NOTE.format("from before any clock", "1 accepted row waits")
