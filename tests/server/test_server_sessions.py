"""Sessions are seen, timed and ended; statements share places; nobody computes for a client that is
gone."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest
from harness import Peer, Running

from dsms.sql.ast import ShowKind
from dsms_server.config import Config
from dsms_server.serve import make_engine
from tests.waiting import wait_until

ENDLESS = (
    "SELECT COUNT(*) FROM t a, t b, t c, t d, t e WHERE SQRT(a.k * b.k + c.k * d.k + e.k) = 0.5"
)
KINDS = {
    "join": ENDLESS,
    "rows": "SELECT a.k, b.k, c.k FROM t a, t b, t c, t d, t e",
    "aggregate": "SELECT a.k, AVG(b.k) FROM t a, t b, t c, t d, t e GROUP BY a.k",
    "distinct": "SELECT DISTINCT a.k * b.k + c.k FROM t a, t b, t c, t d, t e",
    "sort": "SELECT a.k FROM t a, t b, t c, t d, t e ORDER BY a.k * b.k + c.k LIMIT 1",
    "insert": "INSERT INTO u SELECT a.k FROM t a, t b, t c, t d, t e WHERE SQRT(a.k * b.k + c.k * "
    "d.k + e.k) = 0.5",
}


@pytest.fixture
def running(serve) -> Iterator[Running]:
    made = serve(make_engine(Config()), max_selects=3)
    values = ", ".join(f"({n})" for n in range(1000))
    with made.peer() as peer:
        sql = (
            f"CREATE TABLE t (k INT); CREATE TABLE u (k INT); INSERT INTO t VALUES {values}; "
            "CREATE STREAM s (k INT)"
        )
        assert "error" not in peer.ask("execute", sql=sql)
        yield made


def seen(peer: Peer) -> list[dict]:
    """SHOW SESSIONS."""
    (found,) = peer.ask("execute", sql="SHOW SESSIONS")["results"]
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def at_work(peer: Peer) -> list[dict]:
    """Those that run something else."""
    return [line for line in seen(peer) if line["statement"] not in (None, "SHOW SESSIONS")]


def begun(running: Running, sql: str = ENDLESS, count: int = 1) -> list[tuple[Peer, int]]:
    """So many sessions in which a statement runs, and its id."""
    made = []
    for _ in range(count):
        peer = running.peer()
        made.append((peer, peer.send("execute", sql=sql)))
    return made


def test_sessions_are_seen(running: Running):
    with running.peer() as admin, running.peer() as other:
        other.ask("hello", version=1, client="sensor")
        other.ask("ingest", stream="s", rows=[[1], [2], [3]])
        other.ask("execute", sql="SELECT k FROM t")
        other.ask("execute", sql="CREATE QUERY q AS SELECT k FROM s")
        other.ask("subscribe", query="q")
        line = next(found for found in seen(admin) if found["client"] == "sensor")
        assert (line["state"], line["statement"], line["seconds"], line["user"]) == (
            "idle",
            None,
            None,
            None,
        )
        assert (line["rows_in"], line["rows_out"], line["subscriptions"]) == (3, 1000, 1)
        assert line["peer"] == "{}:{}".format(*other.socket.getsockname())
        assert line["waiting_bytes"] == 0
        mine = next(found for found in seen(admin) if found["statement"] == "SHOW SESSIONS")
        assert (mine["state"], mine["session"] != line["session"]) == ("running", True)


def test_a_statement_is_shown_in_a_line_of_200_characters(running: Running):
    with running.peer() as admin:
        ((busy, _),) = begun(
            running,
            ENDLESS.replace("COUNT", "/* \x1b[31m\n\n é */ COUNT") + " -- " + "x" * 500,
        )
        wait_until(lambda: at_work(admin), "the statement")
        (line,) = at_work(admin)
        assert line["statement"].startswith("SELECT /* \\u001b[31m é */ COUNT(*)")
        assert len(line["statement"]) == 200
        assert line["statement"].endswith("…")
        busy.socket.close()


@pytest.mark.parametrize("sql", KINDS.values(), ids=KINDS)
def test_a_statement_that_takes_too_long_ends_with_a_code(running: Running, sql: str):
    with running.peer() as peer:
        assert peer.ask("execute", sql="SET statement_timeout = '200 ms'")["results"][0][
            "message"
        ].endswith("is 0.2 s")
        problem = peer.ask("execute", sql=sql)["error"]
        assert problem["code"] == "DS616"
        assert "0.2 s" in problem["message"]
        assert peer.ask("execute", sql="SELECT 1 AS one")["results"][0]["rows"] == [[1]]


def test_each_statement_of_a_script_has_the_time_for_itself(running: Running):
    with running.peer() as peer:
        problem = peer.ask(
            "execute", sql=f"SET statement_timeout = 300 ms; SELECT 1 AS one; {ENDLESS}"
        )
        assert (problem["error"]["code"], problem["error"]["statement"]) == ("DS616", 2)
        assert [found["kind"] for found in problem["results"]] == ["done", "rows"]


def test_the_time_is_that_of_the_session(serve):
    running = serve(make_engine(Config()), statement_timeout=30.0)
    with running.peer() as one, running.peer() as other:
        one.ask("execute", sql="SET statement_timeout TO 0")
        found = [
            p.ask("execute", sql="SHOW SETTINGS LIKE 'statement_t%'")["results"][0]["rows"]
            for p in (one, other)
        ]
        assert found == [[["statement_timeout", "0"]], [["statement_timeout", "30 s"]]]


@pytest.mark.parametrize("value", ["5", "-1 s", "TRUE", "soon", "3 MONTHS", "NULL"])
def test_what_is_no_time(running: Running, value: str):
    with running.peer() as peer:
        assert peer.ask("execute", sql=f"SET statement_timeout = {value}")["error"]["code"] in (
            "DS215",
            "DS101",
        )


@pytest.mark.parametrize("sql", KINDS.values(), ids=KINDS)
def test_a_statement_is_cancelled_by_another_session(running: Running, sql: str):
    if sql.startswith("INSERT"):
        pytest.skip("it runs in the engine's thread, as every change of a table does")
    ((busy, ident),) = begun(running, sql)
    with running.peer() as admin:
        wait_until(lambda: at_work(admin), "the statement")
        (line,) = at_work(admin)
        told = admin.ask("execute", sql=f"CANCEL SESSION {line['session']}")["results"][0][
            "message"
        ]
        assert told == f"session {line['session']}: its statement is cancelled"
        problem = busy.reply(ident)["error"]
        assert (problem["code"], "CANCEL SESSION" in problem["message"]) == ("DS610", True)
        assert busy.ask("execute", sql="SELECT 1 AS one")["results"][0]["rows"] == [[1]]
        wait_until(lambda: not running.server.core.runners.running, "the end of the work")
    busy.socket.close()


def test_a_session_is_closed_by_another(running: Running):
    with running.peer() as admin, running.peer() as other:
        other.ask("execute", sql="SELECT 1 AS one")
        number = max(line["session"] for line in seen(admin))
        assert (
            admin.ask("execute", sql=f"CLOSE SESSION {number}")["results"][0]["message"]
            == f"session {number} is closed"
        )
        assert other.read()["error"]["code"] == "DS662"
        assert other.rest() == b""
        wait_until(
            lambda: number not in [line["session"] for line in seen(admin)],
            "the end of the session",
        )


@pytest.mark.parametrize("verb", ["CANCEL", "CLOSE"])
def test_there_may_be_no_such_session(running: Running, verb: str):
    with running.peer() as peer:
        assert peer.ask("execute", sql=f"{verb} SESSION 999")["error"]["code"] == "DS660"


def test_who_has_nothing_under_way_is_told_so(running: Running):
    with running.peer() as admin, running.peer() as other:
        other.ask("execute", sql="SELECT 1 AS one")
        number = max(line["session"] for line in seen(admin))
        told = admin.ask("execute", sql=f"CANCEL SESSION {number}")["results"][0]["message"]
        assert told == f"session {number} runs nothing"


# ---------------------------------------------------------------- places


def test_endless_statements_leave_a_place(running: Running):
    busy = begun(running, count=2)
    with running.peer() as other:
        wait_until(lambda: len(at_work(other)) == 2, "both statements")
        assert other.ask("execute", sql="SELECT COUNT(*) AS n FROM t")["results"][0]["rows"] == [
            [1000]
        ]
        assert other.ask("ingest", stream="s", rows=[[1]])["accepted"] == 1
    for peer, _ in busy:
        peer.socket.close()


def test_who_waits_for_a_place_is_shown_and_can_be_cancelled(serve):
    running = serve(make_engine(Config()), max_selects=1)
    with running.peer() as admin:
        values = ", ".join(f"({n})" for n in range(1000))
        admin.ask("execute", sql=f"CREATE TABLE t (k INT); INSERT INTO t VALUES {values}")
        runners = running.server.core.runners
        runners._long_seconds = 1e9
        busy = begun(running)
        wait_until(  # it is planned in a place, too, and gives that back before
            lambda: any(run.work.__self__._reading is not None for run in list(runners._running)),
            "the first at its plan",
        )
        busy += begun(running)
        wait_until(
            lambda: sorted(found["state"] for found in at_work(admin)) == ["running", "waiting"],
            "the one that waits",
        )
        states = {found["state"]: found["session"] for found in at_work(admin)}
        admin.ask("execute", sql=f"CANCEL SESSION {states['waiting']}")
        wait_until(
            lambda: [found["state"] for found in at_work(admin)] == ["running"],
            "the end of the other",
        )
        for peer, _ in busy:
            peer.socket.close()


# ---------------------------------------------------------------- clients that are gone


def reset(peer: Peer) -> None:
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.socket.close()


@pytest.mark.parametrize("end", [reset, lambda peer: peer.socket.close()], ids=["reset", "closed"])
def test_statements_end_with_their_client(running: Running, end):
    busy = begun(running, count=2)
    with running.peer() as admin:
        wait_until(lambda: len(at_work(admin)) == 2, "both statements")
        for peer, _ in busy:
            end(peer)
        wait_until(lambda: not at_work(admin), "the end of both")
        wait_until(lambda: not running.server.core.runners.running, "the end of the work")


def test_a_half_closed_client_gets_its_answers(running: Running):
    hours = running.hours()
    with running.peer() as peer:
        first = peer.send("execute", sql="SELECT COUNT(*) AS n FROM t a, t b")
        endless = peer.send("execute", sql=ENDLESS)
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.reply(first)["results"][0]["rows"] == [[1000000]]
        wait_until(
            lambda: hours.waiting and running.server.core.runners.running,
            "the statement, and its time",
        )
        hours.go_on(9.9)
        # the first may just have ended, and the endless one be about to begin
        wait_until(lambda: running.server.core.runners.running == 1, "the statement, that goes on")
        hours.go_on(1.0)
        assert "closed its side" in peer.reply(endless)["error"]["message"]
        assert peer.rest() == b""


def test_who_promised_to_say_more_and_closes_is_gone(running: Running):
    running.hours()
    with running.peer() as peer:
        peer.ask("ping", every=60)
        endless = peer.send("execute", sql=ENDLESS)
        wait_until(lambda: running.server.core.runners.running, "the statement")
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.reply(endless)["error"]["code"] == "DS610"


@pytest.mark.parametrize("kind", [kind.value for kind in ShowKind])
def test_every_list_can_be_cut_to_what_fits_a_pattern(running: Running, kind: str):
    with running.peer() as peer:
        shown, fit, none = (
            peer.ask("execute", sql=f"SHOW {kind}{like}")["results"][0]
            for like in ("", " LIKE '%'", " LIKE 'no such'")
        )
        assert len(fit["rows"]) == len(shown["rows"]) and none["rows"] == []
