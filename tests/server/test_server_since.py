"""Answers say since when they are complete: over TCP, in both clients, in every format of the
shell; and what a server keeps of streams without RETAIN is an option."""

from __future__ import annotations

import asyncio
import io

import pytest

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.settings import Settings
from dsms_client import AsyncClient, connect
from dsms_client.shell.runner import Runner
from dsms_server import retained
from dsms_server.config import Config, build
from dsms_server.serve import make_engine

S = 1_000_000
DECLARE = """
CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE TABLE r (k INT);
"""
COUNT = "SELECT COUNT(*) AS n FROM s [RANGE 1 h]"
NOTE = (
    "NOTE: the answer is complete from 1970-01-01 00:00:29.000001 on: rows before that are not "
    "kept any more (WITH (complete = required) refuses it instead)\n"
)


@pytest.fixture
def server(serve):
    running = serve(Engine(settings=Settings(retain_default=10 * S, retain_default_rows=0)))
    with connect(port=running.port) as db:
        db.execute(DECLARE)
        for n in range(40):
            db.ingest("s", [[n, n * S]])
        db.heartbeat("s", 39 * S)
    return running


def test_frames(server):
    with server.peer() as peer:
        sql = f"{COUNT}; SELECT k FROM s [NOW]; SELECT k FROM r"
        count, now, table = peer.ask("execute", sql=sql)["results"]
    assert (count["since"], count["waiting"], count["rows"]) == (29 * S + 1, 0, [[10]])
    assert "since" not in now and "since" not in table


def test_clients(server):
    with connect(port=server.port) as db:
        assert (db.query(COUNT).rows, db.query(COUNT).since) == ([(10,)], 29 * S + 1)
        assert db.query("SELECT k FROM s [RANGE 5 s]").since is None
        with pytest.raises(UsageError, match="DS407"):
            db.query(f"{COUNT} WITH (complete = required)")

    async def ask():
        async with AsyncClient(port=server.port) as db:
            return (await db.query(COUNT)).since

    assert asyncio.run(ask()) == 29 * S + 1


@pytest.mark.parametrize("form", ["table", "csv", "json", "vertical"])
def test_every_format_of_the_shell_says_so_beside_the_data(server, form):
    with connect(port=server.port) as db:
        out, err = io.StringIO(), io.StringIO()
        shell = Runner(lambda _: db, form, out, err)
        assert shell.script(f"{COUNT}; SHOW STREAMS; SELECT k FROM r; SELECT k FROM s [NOW];")
        assert err.getvalue() == NOTE and "NOTE" not in out.getvalue()


def test_answers_copied_to_files_say_so_too(server, tmp_path):
    """Neither that rows wait nor since when it is complete was said."""
    with connect(port=server.port) as db:
        db.execute("CREATE STREAM w (t TIMESTAMP) TIMESTAMP BY t SLACK 1 h RETAIN 1 h")
        db.ingest("w", [[0], [S]])
        told = []
        for ask in (f"({COUNT})", "(SELECT COUNT(*) AS n FROM w [RANGE 1 h])"):
            out, err = io.StringIO(), io.StringIO()
            assert Runner(lambda _: db, "table", out, err).script(
                f"\\copy {ask} to {tmp_path}/o.csv"
            )
            told.append(err.getvalue())
    assert told[0] == NOTE and "2 accepted rows wait behind the clock" in told[1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, None),
        ("0", (0, 0)),
        ("10 min", (600 * S, 0)),
        ("1000 rows", (0, 1000)),
        ("1 row", (0, 1)),
        ("10 min, 1000000 rows", (600 * S, 1_000_000)),
        ("5 rows,1 h 30 min", (5400 * S, 5)),
    ],
)
def test_the_option_is_a_length_and_a_number(text, found):
    assert retained.parse(text) == found


@pytest.mark.parametrize("text", ["", "10", "ten minutes", "-5 min", "3 rows 5", "1 h,"])
def test_what_is_no_length_is_refused(text):
    with pytest.raises(UsageError, match="DS640"):
        build({"retain_default": text})


def test_the_option_reaches_the_engine():
    engine = make_engine(Config(retain_default="5 min", memory=800 << 20))
    found = engine.runtime.settings
    assert (found.retain_default, found.retain_default_rows) == (300 * S, 0)
    assert found.retain_default_bytes == 100 << 20
    plain = make_engine(Config(memory=0)).runtime.settings
    assert (plain.retain_default, plain.retain_default_rows) == (600 * S, 1_000_000)
    assert plain.retain_default_bytes == 256 << 20
