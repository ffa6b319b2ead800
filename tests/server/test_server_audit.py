"""What the audit log of a server holds: who came, what was done, and what came of it."""

from __future__ import annotations

import errno
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from dsms.engine import Engine
from dsms_client.sync import connect
from dsms_server.audit.file import AuditFile
from dsms_server.server import Server
from tests import forked
from tests.server.process import Process
from tests.waiting import WAIT, wait_until

ADMIN = "the-token-of-the-administrator"
DECLARED = """
CREATE STREAM s (k INT); CREATE STREAM hidden (k INT); CREATE QUERY q AS SELECT k FROM s;
CREATE USER bob PASSWORD 'correct horse'; GRANT INSERT ON s TO bob; GRANT SUBSCRIBE ON q TO bob;
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


@pytest.fixture
def running(serve, log: Path):
    engine = Engine()
    engine.execute(DECLARED)
    return serve(engine, token=ADMIN, auth=True, guess_seconds=0, audit_log=str(log))


def events(running, log: Path, *kinds: str) -> list[dict]:
    """What has been said so far, of these kinds."""
    writer = running.server.audit.writer
    wait_until(lambda: not writer.waiting)
    found = [json.loads(line) for line in log.read_bytes().splitlines()]
    return [event for event in found if not kinds or event["event"] in kinds]


def outcomes(found: list[dict]) -> list[tuple[str, str]]:
    return [(event["event"], event["outcome"]) for event in found if "outcome" in event]


def bob(peer) -> None:
    assert peer.ask("hello", version=1, user="bob", password="correct horse", client="till")["ok"]


def test_who_did_what_and_what_came_of_it(running, log: Path):
    with running.peer() as peer:
        bob(peer)
        where = "{}:{}".format(*peer.socket.getsockname())
        peer.ask("execute", sql="SHOW STREAMS; SELECT k FROM hidden; SELECT 1")
        peer.ask("execute", sql="CREATE STREAM x (k INT)")
        peer.ask("execute", sql="SELEKT 1")
        peer.ask("execute", sql="ALTER USER bob PASSWORD 'another horse'")
        with pytest.raises(EOFError):
            peer.ask("execute", sql="SELECT 1")  # what he came with is another now
    wait_until(lambda: events(running, log, "logout"))
    start, *found = events(running, log)
    assert start["event"] == "start" and start["n"] == 1
    assert outcomes(found) == [
        ("login", "ok"),
        ("select", "ok"),
        ("select", "DS203"),
        ("change", "DS670"),
        ("change", "DS101"),
        ("rights", "ok"),
        ("logout", "DS605"),
    ]
    session = running.server.sessions  # they are gone
    assert not session and {event["session"] for event in found} == {1}
    for event in found:
        assert (event["user"], event["address"], event["client"]) == ("bob", where, "till")
    assert found[1]["command"] == "SHOW" and found[1]["rows"] == 1
    assert found[4]["text"] == "SELEKT 1"
    assert found[5]["text"] == "ALTER USER bob PASSWORD '***'"
    assert all("horse" not in str(event) for event in found)


def test_who_was_not_let_in(running, log: Path):
    with running.peer() as peer:
        peer.ask("hello", version=1, user="bob", password="wrong")
        peer.ask("hello", version=1, token="wrong")
        peer.ask("execute", sql="SELECT 'what a stranger says'")
    found = events(running, log, "login", "login_refused", "logout")
    assert outcomes(found) == [("login_refused", "DS605")] * 2  # the last two are one, at first
    assert found[0]["claimed"] == "bob" and "claimed" not in found[1]
    running.on_loop(lambda: running.server.audit._flush())
    *_, last = events(running, log)
    assert (last["event"], last["count"], last["errors"]) == ("login_refused", 1, {"DS605": 1})
    assert last["address"] == "127.0.0.1" and "session" not in last  # it may be of several
    assert b"stranger" not in log.read_bytes()


def test_a_guess_is_written_down_though_nobody_waits_for_its_answer(running, log: Path):
    hours = running.hours()
    running.on_loop(lambda: setattr(running.server.guesses, "_first", 1.0))
    with running.peer() as peer:
        peer.send("hello", version=1, token="wrong")
        wait_until(lambda: events(running, log, "login_refused"))
    hours.go_on(60)
    wait_until(lambda: not running.server.sessions)
    assert outcomes(events(running, log)) == [("login_refused", "DS605")]


def test_frames_are_summed_up_by_session_and_stream(running, log: Path):
    with running.peer() as peer:
        bob(peer)
        for _ in range(50):
            peer.ask("ingest", stream="s", rows=[[1], [2]])
        peer.ask("ingest", stream="s", rows=[["x"]])
        peer.ask("ingest", stream="hidden", rows=[[1]])
    wait_until(lambda: events(running, log, "logout"))
    first, hidden, rest = events(running, log, "ingest")
    assert (first["frames"], first["accepted"], first["stream"]) == (1, 2, "s")
    assert (hidden["stream"], hidden["outcome"]) == ("hidden", "DS401")
    assert (rest["frames"], rest["accepted"], rest["refused"], rest["outcome"]) == (50, 98, 1, "ok")
    (gone,) = events(running, log, "logout")
    assert gone["rows_in"] == 101 and gone["n"] > rest["n"]


def test_an_interval_ends_when_its_time_is_over(running, log: Path):
    with running.peer() as peer:
        bob(peer)
        for _ in range(3):
            peer.ask("ingest", stream="s", rows=[[1]])
        trail = running.server.audit
        trail._due = 1e12  # which the server's own looks never reach
        running.on_loop(lambda: trail.sweep(1e12 - 0.1))
        assert len(events(running, log, "ingest")) == 1
        running.on_loop(lambda: trail.sweep(1e12))
        assert [event["frames"] for event in events(running, log, "ingest")] == [1, 2]


def test_subscriptions_heartbeats_and_ends(running, log: Path):
    with running.peer() as peer:
        bob(peer)
        for name in ("q", "q", "nothing"):
            peer.ask("subscribe", query=name)
        peer.ask("unsubscribe", query="q")
        peer.ask("subscribe", query="q")
        for _ in range(3):
            peer.ask("heartbeat", stream="s", ts=0)
        peer.ask("end", stream="hidden")
        running.on_loop(lambda: None)
        with running.peer() as other:
            other.ask("hello", version=1, token=ADMIN)
            other.ask("execute", sql="REVOKE SUBSCRIBE ON q FROM bob")
        assert peer.push()["code"] == "DS670"
        assert peer.ask("execute", sql="CLOSE SESSION 4711")["error"]["code"] == "DS660"
    wait_until(lambda: len(events(running, log, "logout")) == 2)
    kinds = ("subscribe", "unsubscribe", "heartbeat", "end", "session")
    assert outcomes(events(running, log, *kinds)) == [
        ("subscribe", "ok"),
        ("subscribe", "DS643"),
        ("subscribe", "DS401"),
        ("unsubscribe", "ok"),
        ("subscribe", "ok"),
        ("heartbeat", "DS508"),
        ("end", "DS401"),
        ("unsubscribe", "DS670"),
        ("session", "DS660"),
        ("heartbeat", "DS508"),
    ]
    assert events(running, log, "session")[0]["command"] == "CLOSE SESSION"


def test_a_session_that_is_closed_says_by_what(running, log: Path):
    with running.peer() as peer, running.peer() as admin:
        bob(peer)
        admin.ask("hello", version=1, token=ADMIN)
        admin.ask("execute", sql="CLOSE SESSION 1")
        wait_until(lambda: events(running, log, "logout"))
    assert outcomes(events(running, log, "logout"))[0] == ("logout", "DS662")


def test_a_statement_is_written_before_its_answer(serve, log: Path):
    running = serve(Engine(), audit_log=str(log), audit_required=True)
    with running.peer() as peer:
        for n in range(5):
            peer.ask("execute", sql=f"SELECT {n}; CREATE STREAM s{n} (k INT)")
            found = [json.loads(line) for line in log.read_bytes().splitlines()]
            assert outcomes(found[-4:]) == [
                ("select", "begun"),
                ("select", "ok"),
                ("change", "begun"),
                ("change", "ok"),
            ]


def test_what_is_chosen_is_written(serve, log: Path):
    engine = Engine()
    engine.execute(DECLARED)
    options = {"token": ADMIN, "auth": True, "audit": ("changes", "refused")}
    running = serve(engine, audit_log=str(log), **options)
    with running.peer() as peer:
        bob(peer)
        peer.ask("execute", sql="SHOW STREAMS")
        peer.ask("execute", sql="SELECT * FROM q")  # he may know of it, and not read it
        peer.ask("execute", sql="SET statement_timeout = '5 s'")
        peer.ask("ingest", stream="s", rows=[[1]])
        peer.ask("end", stream="q")
    running.on_loop(lambda: None)
    assert outcomes(events(running, log)) == [("select", "DS670"), ("change", "ok")]


class Full:
    """Writing to the audit log fails while `full`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        put = AuditFile._put

        def limited(file: AuditFile, batch: list[bytes], first: bool = True) -> bool:
            if self.full and batch:
                raise OSError(errno.ENOSPC, "No space left on device")
            return put(file, batch, first)

        monkeypatch.setattr(AuditFile, "_put", limited)
        monkeypatch.setattr("dsms_server.audit.writer.AGAIN_SECONDS", 0.001)


def code(reply: dict) -> str:
    return reply.get("error", {}).get("code", "ok")


def test_where_it_is_required_nothing_is_done_unwritten(serve, log: Path, monkeypatch):
    disk, engine = Full(monkeypatch), Engine()
    running = serve(engine, audit_log=str(log), audit_required=True)
    with running.peer() as peer:
        made = "CREATE STREAM s (k INT); CREATE QUERY q AS SELECT k FROM s"
        assert code(peer.ask("execute", sql=made)) == "ok"
        assert code(peer.ask("ingest", stream="s", rows=[[1]])) == "ok"
        disk.full = True
        reply = peer.ask("execute", sql="CREATE STREAM t (k INT)")
        assert code(reply) == "DS674" and "No space left" in reply["error"]["message"]
        assert code(peer.ask("execute", sql="SELECT 1")) == "DS674"
        assert code(peer.ask("ingest", stream="s", rows=[[2]])) == "DS674"
        assert code(peer.ask("heartbeat", stream="s", ts=0)) == "DS674"
        assert code(peer.ask("end", stream="s")) == "DS674"
        assert code(peer.ask("subscribe", query="q")) == "DS674"
        assert code(peer.ask("ping")) == "ok"
        running.on_loop(running.server.update_gauges)
        assert running.server.metrics.audit_failing._value.get() == 1
        disk.full = False
        wait_until(lambda: not running.server.audit.writer.complaint)
        assert code(peer.ask("execute", sql="CREATE STREAM t (k INT)")) == "ok"
        assert peer.ask("ingest", stream="s", rows=[[3]])["accepted"] == 1
    assert [s.name for s in engine.streams()] == ["s", "t"]
    assert ("change", "DS674") in outcomes(events(running, log))


def test_a_disk_that_hangs_does_not_keep_the_server_from_stopping(serve, log: Path, monkeypatch):
    running = serve(Engine(), audit_log=str(log), audit_required=True)
    gate, asked = Event(), Event()
    with running.peer() as peer:
        peer.ask("hello", version=1)
        put, flush = AuditFile._put, Server._flush

        def hang(file: AuditFile, batch: list[bytes], first: bool = True) -> bool:
            asked.set()
            assert gate.wait(WAIT)
            return put(file, batch, first)

        async def no_patience(server: Server) -> None:
            monkeypatch.setattr("dsms_server.audit.writer.PATIENCE", 0.0)
            await flush(server)

        monkeypatch.setattr("dsms_server.audit.writer.PATIENCE", 1e9)
        monkeypatch.setattr("dsms_server.server.AUDIT_SECONDS", 0.0)
        monkeypatch.setattr(AuditFile, "_put", hang)
        monkeypatch.setattr(Server, "_flush", no_patience)
        monkeypatch.setattr(running.server, "config", replace(running.config, stop_seconds=0.0))
        peer.send("execute", sql="CREATE STREAM s (k INT)")
        assert asked.wait(WAIT)
        running.await_(running.server.stop())
    assert running.engine.streams() == []
    gate.set()


def test_of_a_server_that_is_killed_all_that_was_answered_is_written(tmp_path: Path):
    log = tmp_path / "a"
    process = Process(str(tmp_path / "data"), options=("--audit-log", str(log), "--audit-required"))
    try:
        with connect(port=process.port) as client:
            for n in range(20):
                client.execute(f"CREATE STREAM s{n} (k INT)")
            process.kill()
    finally:
        process.kill()
    found = [json.loads(line) for line in log.read_bytes().splitlines()]
    begun, done = (
        [event["text"] for event in found if "text" in event and event["outcome"] == outcome]
        for outcome in ("begun", "ok")
    )
    assert begun == done == [f"CREATE STREAM s{n} (k INT)" for n in range(20)]


def test_where_it_is_not_the_server_goes_on_and_counts(serve, log: Path, monkeypatch):
    disk = Full(monkeypatch)
    running = serve(Engine(), audit_log=str(log))
    writer = running.server.audit.writer
    writer._most = (20, 1 << 20)
    with running.peer() as peer:
        disk.full = True
        for n in range(40):
            assert code(peer.ask("execute", sql=f"SELECT {n}")) == "ok"
        assert writer.lost > 0
        disk.full = False
        wait_until(lambda: not writer.complaint)
        lost = sum(event["count"] for event in events(running, log, "lost"))  # as it could be told
        assert lost == writer.lost
        assert len(events(running, log, "select")) + lost >= 40
        running.on_loop(running.server.update_gauges)
        assert running.server.metrics.audit_lost._value.get() == lost


def test_a_file_that_cannot_be_written_is_said_at_the_start(tmp_path: Path, capfd):
    words = ["serve", "--no-warmup", "--port", "0", "--audit-log", str(tmp_path / "no" / "a")]
    done = forked.run([sys.executable, "-m", "dsms_client", *words], capture_output=True)
    assert done.returncode != 0
    assert b"DS640" in done.stderr and b"No such file" in done.stderr


def test_a_server_goes_on_in_a_new_file_after_sighup(tmp_path: Path):
    log, old = tmp_path / "a", tmp_path / "old"
    options = ("--audit-log", str(log), "--audit", "statements")
    process = Process(str(tmp_path / "data"), options=options)
    try:
        with connect(port=process.port) as client:
            client.execute("SELECT 1")
        wait_until(lambda: b"SELECT 1" in log.read_bytes())
        os.rename(log, old)
        process.reopen()
        wait_until(log.exists)
        with connect(port=process.port) as client:
            client.execute("SELECT 2")
        assert process.stop() == 0
    finally:
        process.kill()
    found = [[json.loads(line) for line in p.read_bytes().splitlines()] for p in (old, log)]
    assert [event.get("text") for event in found[0]] == [None, "SELECT 1"]
    assert [event.get("text") for event in found[1]] == ["SELECT 2", None]
    assert [event["n"] for part in found for event in part] == [1, 2, 3, 4]
    assert (log.stat().st_mode & 0o777, found[1][-1]["event"]) == (0o600, "stop")
