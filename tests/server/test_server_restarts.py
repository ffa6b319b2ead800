"""A server that is killed and started again on the same port and data: shell and loads go on,
nothing is done twice."""

from __future__ import annotations

import os
import re
import signal
import sys
from subprocess import PIPE

import pytest
from harness import WAIT, Proxy
from process import Process, Terminal

from dsms_client import connect
from dsms_client.line import Line
from tests import forked
from tests.effort import SLOW

DECLARED = """CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 DAY WITH (durability = sync);
CREATE QUERY q AS SELECT k FROM s"""  # noqa: E501
SECOND = 1_000_000


@pytest.fixture
def process(tmp_path):
    server = Process(str(tmp_path / "data"))
    with connect(port=server.port) as client:
        client.execute(DECLARED)
    yield server
    server.kill()


@pytest.fixture
def terminal(process, tmp_path):
    shell = Terminal(process.port, tmp_path)
    shell.expect("dsms>")
    yield shell
    shell.close()


def ingest(port, *keys):
    with connect(port=port, connect_seconds=WAIT) as client:
        client.ingest("s", [[k, k * SECOND] for k in keys])
        client.heartbeat("s", keys[-1] * SECOND)


def test_the_shell_waits_for_its_server_and_says_so(process, terminal):
    terminal.type("SELECT 41;\r")
    terminal.expect(r"41\s+\(1 row\)")
    process.kill()
    terminal.type("SELECT 42;\r")
    terminal.expect("was lost; trying again, Ctrl-C gives up")
    process.start()
    terminal.expect("connected again")
    terminal.expect(r"42\s+\(1 row\)")
    process.kill()
    process.start()  # while nobody looks
    terminal.type("SELECT 43;\r")
    terminal.expect("and is there again|connected again")
    terminal.expect(r"43\s+\(1 row\)")


def test_ctrl_c_and_exit_work_without_a_server(process, terminal):
    process.kill()
    terminal.type("SELECT 42;\r")
    terminal.expect("trying again")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.expect("cancelled")
    terminal.expect("dsms>")
    terminal.type("SEL\t")  # completion asks no server that is not there
    terminal.expect("SELECT")
    terminal.type("\x03")
    terminal.expect("dsms>")
    terminal.type("exit\r")
    assert terminal.process.wait(WAIT) == 0


def test_ctrl_c_and_exit_work_where_the_server_is_frozen(process, terminal):
    ingest(process.port, 1, 2)
    terminal.type("\\subscribe q 0\r")
    terminal.expect("2 result rows so far")
    process.freeze()
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.expect("dsms>")
    terminal.type("help; SELECT 42;\r")
    # so the prompt, which takes signals in its own way, is over
    terminal.expect("Ctrl-C stops a statement that runs")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.expect("cancelled")
    terminal.type("exit\r")
    assert terminal.process.wait(WAIT) == 0


def test_the_live_view_goes_on_where_it_stopped(process, terminal):
    ingest(process.port, 1, 2)
    terminal.type("\\subscribe q 0\r")
    terminal.expect("2 result rows so far")
    process.kill()
    terminal.expect("trying again")
    process.start()
    terminal.expect("connected again")
    ingest(process.port, 71)
    terminal.expect("3 result rows so far")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.expect("dsms>")


@SLOW
def test_watch_goes_on(process, terminal):
    ingest(process.port, 1, 2)
    terminal.type("SELECT COUNT(*) AS rows_now FROM s [RANGE 1 DAY];\r")
    terminal.expect(r"2\s+\(1 row\)")
    terminal.type("\\watch 0.05\r")
    terminal.expect("as of")
    process.kill()
    terminal.expect("trying again")
    process.start()
    ingest(process.port, 71)
    terminal.expect(r"3\s+\(1 row\)")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.expect("dsms>")


def test_lines_of_a_subscription_have_no_gap_and_none_twice(process):
    words = [
        sys.executable,
        "-m",
        "dsms_client",
        "shell",
        "--port",
        str(process.port),
        "--format",
        "csv",
    ]
    with forked.Popen(
        [*words, "-c", "\\subscribe q 0"], stdout=PIPE, stderr=PIPE, text=True
    ) as shell:
        lines = iter(shell.stdout.readline, "")
        assert next(lines) == "$kind,$at,k\n"
        for k in (1, 2, 3):
            if k > 1:
                process.kill()
                process.start()
            ingest(process.port, k)
            assert next(lines).endswith(f",{k}\n")
        with connect(port=process.port) as client:
            client.execute("DROP QUERY q")
        assert next(lines).startswith("the query has ended")
        assert shell.wait(WAIT) == 0
        assert "trying again" in shell.stderr.read()


@pytest.mark.parametrize(
    "command",
    [
        ["load", "--end", "--batch", "500"],
        pytest.param(["replay", "--end", "--speed", "max"], marks=SLOW),
    ],
)
def test_files_are_loaded_once_over_a_server_that_dies(process, tmp_path, command):
    path, count = tmp_path / "a.csv", 200_000
    with path.open("w") as out:
        out.write("k,t\n")
        out.writelines(
            f"{k},1970-01-01 {k // 36000:02d}:{k // 600 % 60:02d}:{k // 10 % 60:02d}\n"
            for k in range(count)
        )
    words = [
        sys.executable,
        "-m",
        "dsms_client",
        *command,
        str(path),
        "--stream",
        "s",
        "--port",
        str(process.port),
    ]
    with forked.Popen(words, stderr=PIPE, text=True) as load:
        for _ in range(2):
            with connect(port=process.port) as client:
                before = accepted(client)
                while load.poll() is None and accepted(client) <= before:
                    pass  # each look is a request
            process.kill()
            process.start()
        _, err = load.communicate(timeout=WAIT)
    counts = re.search(
        r"([0-9,]+) rows accepted by s(?:, ([0-9,]+) taken before the connection was lost)? in", err
    )
    assert load.returncode == 0 and counts is not None, err
    assert err.count("was lost; trying again") == err.count("connected again") == 2
    assert sum(int((n or "0").replace(",", "")) for n in counts.groups()) == count, err
    with connect(port=process.port) as client:
        assert client.query("SELECT COUNT(*), COUNT(DISTINCT k) FROM s [RANGE 1 DAY]").rows == [
            (count, count)
        ]


def accepted(client):
    shown = client.query("SHOW STREAMS")
    return dict(zip(shown.columns, shown.rows[0], strict=True))["accepted"]


def test_a_statement_under_way_is_told_as_perhaps_done(server, tmp_path):
    proxy = Proxy(server.port)
    terminal = Terminal(proxy.port, tmp_path)
    try:
        terminal.expect("dsms>")
        terminal.type("SPIN;\r")
        assert server.engine.spinning.wait(WAIT)
        proxy.cut()
        terminal.expect("UsageError DS611: the connection to 127.0.0.1:[0-9]+ was lost")
        terminal.expect("may have been done or not; it is not repeated")
        terminal.type("quit\r")
        assert terminal.process.wait(WAIT) == 0
    finally:
        terminal.close()
        proxy.close()


def test_what_is_told_of_the_line():
    lines = []
    line, lost = Line(lines.append), ValueError()
    lost.message = "it was lost"
    with line.waiting():
        line.changed(lost)
        line.changed(None)
        line.changed(lost)
    line.changed(None)
    line.changed(lost)
    line.changed(None)
    with line.waiting():
        pass
    line.changed(lost)
    with line.waiting():
        line.changed(None)
    once = ["it was lost; trying again, Ctrl-C gives up", "connected again"]
    assert lines == [*once, once[0], "it was lost, and is there again", *once]


def test_a_client_that_gave_up_looks_again_at_the_next_request(process):
    with connect(port=process.port, reconnect_seconds=0.01) as client:
        client.ping()
        process.kill()
        with pytest.raises(Exception, match=r"DS61[12]"):
            while True:
                client.ping()
        with pytest.raises(Exception, match=r"DS612: no dsms server answers"):
            while True:
                client.query("SELECT 1")
        process.start()
        assert client.query("SELECT 7").rows == [(7,)]
