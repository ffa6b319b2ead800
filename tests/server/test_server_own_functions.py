"""Functions of one's own over a connection: shell, completion, dump and restore, the audit log, and
the folder of those in Python that a server is told of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.document import Document

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.python_functions import host
from dsms_client import connect
from dsms_client.shell.complete import ShellCompleter
from dsms_server.config import Config
from dsms_server.serve import make_engine
from tests.hanging import DECLARED as HANGING
from tests.hanging import goes_on, hanging
from tests.server.test_server_dump import ran

GM = "CREATE AGGREGATE gm(x FLOAT) AS EXP(SUM(LN(x)) / COUNT(x))"
EXAMPLES = str(Path(__file__).resolve().parents[2] / "examples" / "functions")


def test_the_shell_tells_of_them_and_completes_them(serve: Any) -> None:
    running = serve(Engine())
    with connect(port=running.port) as client:
        client.execute(GM)
        code, shown, _ = ran(running, "shell", "-c", "\\d gm")
        assert code == 0 and "EXP(SUM(LN(x)) / COUNT(x))" in shown and "subtractable" in shown
        completer, typed = ShellCompleter(client), Document("SELECT gm")
        first = completer.get_completions(Document("SELECT g"), None)
        assert "gm" in [c.text.lower() for c in first]
        client.execute("DROP AGGREGATE gm; CREATE FUNCTION gmx(x INT) AS x")
        completer.forget()
        assert "gmx" in [c.text.lower() for c in completer.get_completions(typed, None)]


def test_a_dump_has_them_before_what_calls_them(serve: Any, tmp_path: Path) -> None:
    before, after, file = Engine(), Engine(), tmp_path / "dump.sql"
    before.execute(
        f"CREATE STREAM s (k STRING, x FLOAT, t TIMESTAMP) TIMESTAMP BY t; {GM};"
        "CREATE FUNCTION half(x FLOAT) AS x / 2;"
        "CREATE QUERY q AS SELECT k, gm(half(x)) FROM s [RANGE 1 MIN] GROUP BY k"
    )
    code, text, _ = ran(serve(before), "dump")
    file.write_text(text)
    assert code == 0 and text.index(GM) < text.index("CREATE STREAM")
    code, _, complaints = ran(serve(after), "restore", str(file))
    assert code == 0, complaints
    assert after.runtime.catalog.functions == before.runtime.catalog.functions
    assert after.runtime.catalog.queries["q"].sql == before.runtime.catalog.queries["q"].sql


def test_the_audit_log_says_what_was_made(serve: Any, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    running = serve(Engine(), audit_log=str(log))
    with running.peer() as peer:
        assert peer.ask("execute", sql=f"{GM}; DROP AGGREGATE gm")["ok"]
    running.stop = lambda: None
    type(running).stop(running)
    said = [json.loads(line) for line in log.read_text().splitlines()]
    commands = [line.get("command") for line in said if line.get("command")]
    assert {"CREATE AGGREGATE", "DROP AGGREGATE"} <= set(commands)


def test_a_server_names_a_folder_of_functions_in_python() -> None:
    config = Config(functions=EXAMPLES, function_timeout=60.0).check()
    assert config.for_spark[-1].seconds == 60.0
    engine = make_engine(config)
    try:
        made = "CREATE FUNCTION celsius(f FLOAT) RETURNS FLOAT AS PYTHON 'weather:celsius'"
        engine.execute(made)
        (rows,) = engine.execute("SELECT celsius(212) AS c")
        assert rows.data.to_pylist() == [{"c": 100.0}]  # type: ignore[union-attr]
    finally:
        engine.close()
        host.close()
    with pytest.raises(UsageError, match="DS640"):
        Config(functions="nowhere").check()


def test_requests_that_are_cancelled_cut_calls_off(serve: Any, tmp_path: Path) -> None:
    running = serve(Engine())
    with hanging(tmp_path) as begun, running.peer() as peer, running.peer() as other:
        peer.ask("execute", sql=HANGING)
        peer.ask("execute", sql="CREATE QUERY q AS SELECT waits(x) AS y FROM s")
        ident = peer.send("ingest", stream="s", rows=[[101, 1_000_000], [1, 2_000_000]])
        assert begun.read_text() == "begun"
        peer.ask("cancel", request=ident)
        goes_on(begun)  # what a query of others has called is not cut off, but waited for
        assert peer.reply(ident)["accepted"] == 2
        (row,) = other.ask("execute", sql="SHOW QUERIES")["results"][0]["rows"]
        assert row[1] == "running"
        sql = "SELECT waits(x + 200) FROM s [RANGE 1 h]"
        ident = other.send("execute", sql=sql)
        assert begun.read_text() == "begun"
        other.ask("cancel", request=ident)
        assert other.reply(ident)["error"]["code"] == "DS610"
