"""From outside: TLS, an engine inside the shell's own process, the prompt on a terminal."""

from __future__ import annotations

import os
import signal
import ssl

import pytest
from process import Terminal

from dsms_client import UsageError, connect
from dsms_client.cli import main
from tests.waiting import WAIT


def test_tls(serve, certificate, capsys):
    cert, key = certificate
    running = serve(tls_cert=cert, tls_key=key)
    with connect("localhost", running.port, tls=ssl.create_default_context(cafile=cert)) as db:
        db.execute("CREATE STREAM s (k INT)")
        assert db.ingest("s", [[i] for i in range(50_000)]).accepted == 50_000
        assert len(db.query("SELECT * FROM s")) == 50_000
    with pytest.raises(UsageError, match=r"DS612|DS607"):
        connect("localhost", running.port, tls=True)
    with pytest.raises(UsageError, match="DS607"):
        connect("localhost", running.port)
    argv = [
        "shell",
        "--host",
        "localhost",
        "--port",
        str(running.port),
        "--tls-ca",
        cert,
        "-c",
        "SELECT 1",
    ]
    assert main(argv) == 0
    assert "(1 row)" in capsys.readouterr().out


def test_plain_clients_of_what_is_no_server(serve):
    running = serve(http_port=0)
    with pytest.raises(UsageError, match="DS607"):
        connect(port=running.server.http_port)


def test_a_port_that_is_taken(serve):
    running = serve()
    with pytest.raises(UsageError, match=r"DS640.*cannot listen"):
        serve(port=running.port)
    with pytest.raises(UsageError, match=r"DS640.*cannot listen"):
        serve(http_port=running.port)


def test_an_engine_inside_the_shell(tmp_path, capsys):
    data = str(tmp_path / "data")
    assert (
        main(["shell", "--embedded", "--data", data, "-c", "CREATE STREAM s (k INT); SELECT 1"])
        == 0
    )
    assert (
        main(
            ["shell", "--embedded", "--data", data, "--format", "csv", "-c", "DESCRIBE s; SELECT x"]
        )
        == 1
    )
    out = capsys.readouterr()
    assert "k,INT" in out.out
    assert "SELECT x" in out.err
    assert main(["shell", "--data", data, "-c", "SELECT 1"]) == 2


def test_the_prompt(server, tmp_path):
    with server.peer() as peer:
        peer.ask("ingest", stream="s", rows=[[1, 0.5]])
    terminal = Terminal(server.port, tmp_path)
    try:
        terminal.expect("dsms>")
        terminal.type("SELECT\r")
        terminal.expect("   ->")
        terminal.type("42;\r")
        terminal.expect(r"42\s+\(1 row\)|QueryError")
        terminal.type("\\subscribe q 0\r")
        terminal.expect(r"q at 1970-01-01 00:00:00: 1 result rows so far")
        with server.peer() as peer:
            peer.ask("ingest", stream="s", rows=[[77, 0.5]])
        terminal.expect("77")
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.expect("dsms>")
        terminal.type("SPIN;\r")
        assert server.engine.spinning.wait(WAIT)
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.expect("cancelled")
        terminal.type("NONSENSE x;\r")
        terminal.expect(r"QueryError DS100 at line 1, column 9")
        terminal.type("\\q\r")
        assert terminal.process.wait(WAIT) == 0
    finally:
        terminal.close()
    assert "SPIN;" in (tmp_path / ".dsms_history").read_text()
