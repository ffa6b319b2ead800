"""The `dsms` command, in this process: exit codes, what is printed where, files that are loaded."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import threading
from subprocess import PIPE

import pyarrow as pa
import pyarrow.parquet
import pytest

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.sizes import size_of
from dsms_client.cli import COMMANDS
from dsms_client.commands import serve as serve_command
from dsms_client.link import Link
from dsms_server import config
from dsms_server.serve import make_engine, run
from tests import forked
from tests.server.harness import Running
from tests.waiting import WAIT, reserved


def test_every_command_has_help_with_an_example(dsms):
    code, out, _ = dsms("--help")
    assert code == 0
    assert all(name in out for name in COMMANDS)
    for name in COMMANDS:
        code, out, _ = dsms(name, "--help")
        assert code == 0
        assert "example" in out
        assert f"dsms {name}" in out
    assert dsms()[0] == 2
    assert dsms("nonsense")[0] == 2


def test_shell_c(dsms):
    assert dsms("shell", "-c", "SELECT 1; SELECT 22") == (
        0,
        "1\n-\n1\n(1 row)\n22\n--\n22\n(1 row)\n",
        "",
    )
    code, out, err = dsms("shell", "-c", "SELECT 1;\nSELECT\n  NONSENSE x; SELECT 2")
    assert (code, out) == (1, "1\n-\n1\n(1 row)\n")
    assert err.splitlines() == [
        "QueryError DS100 at line 2, column 8: cannot read 'SELECT\\n  NONSENSE x'",
        "  SELECT",
        "        ^",
        "HINT: try SELECT 1",
    ]


def test_shell_f_and_standard_input(dsms, tmp_path):
    inner = tmp_path / "inner.sql"
    inner.write_text("-- a comment; with a semicolon\nSELECT 5 ;")
    script = tmp_path / "outer.sql"
    script.write_text(f"CREATE STREAM t (a INT);\n\\format csv\n\\i {inner}\nSELECT 6")
    assert dsms("shell", "-f", str(script)) == (
        0,
        "stream t created\nformat is csv\n5\n5\n6\n6\n",
        "",
    )
    assert dsms("shell", "-f", "-", stdin="SELECT 1")[0] == 0
    assert dsms("shell", "--format", "json", stdin="SELECT 1;\n\\q\nSELECT 2;") == (
        0,
        '{"1": 1}\n',
        "",
    )
    code, _, err = dsms("shell", "-f", str(tmp_path / "none.sql"))
    assert code == 2
    assert "cannot read" in err
    assert dsms("shell", "-c", "SELECT 1", "-f", "x")[0] == 2


def test_help_exit_and_quit(dsms):
    code, out, err = dsms("shell", "-c", "help")
    assert (code, err) == (0, "") and "\\subscribe q" in out and "exit" in out
    assert dsms("shell", "--format", "csv", stdin="SELECT 1;\nexit\nSELECT 2;") == (0, "1\n1\n", "")
    assert dsms("shell", "--format", "csv", "-c", "SELECT 1; quit; SELECT 2", "-c", "SELECT 3") == (
        0,
        "1\n1\n",
        "",
    )


def test_shell_without_a_server_says_how_to_start_one(dsms):
    code, _, err = dsms("shell", "--port", "1", "--wait", "0", "-c", "SELECT 1")
    assert code == 2
    assert "no dsms server answers at 127.0.0.1:1 (Connection refused)" in err
    assert "start one with `dsms serve`" in err


def test_commands_wait_for_a_server_that_is_starting(dsms):
    """It listens when the first attempt has failed already."""
    held = reserved()
    port = held.getsockname()[1]
    refused, started = threading.Event(), []
    attempt = Link.open

    async def watched(*args):
        try:
            return await attempt(*args)
        finally:
            refused.set()

    def start() -> None:
        refused.wait(WAIT)
        started.append(Running(Engine(), port=port))

    starting = threading.Thread(target=start)
    starting.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Link, "open", watched)
            assert (
                dsms(
                    "shell",
                    "--port",
                    str(port),
                    "--wait",
                    str(WAIT),
                    "--format",
                    "csv",
                    "-c",
                    "SELECT 7",
                )[0]
                == 0
            )
    finally:
        starting.join()
        started[0].stop()
        held.close()
    assert dsms("shell", "--wait", "soon", "-c", "SELECT 1")[0] == 2


def test_backslash_commands(dsms):
    code, out, err = dsms("shell", "-c", "\\d\n\\d s\n\\timing on\nSELECT 1;\n\\?")
    assert code == 0
    assert "stream | s    | k INT, v FLOAT" in out
    assert "query  | q    | k INT, v FLOAT" in out
    assert "k      | INT" in out
    assert "timing is on" in out
    assert "time: " in out
    assert "\\subscribe q" in out
    code, _, err = dsms("shell", "-c", "\\formt json")
    assert (code, err) == (1, "unknown command \\formt\nHINT: did you mean `\\format`?\n")
    for wrong in (
        "\\format xml",
        "\\i",
        "\\i /none",
        "\\watch",
        "\\watch x",
        "\\subscribe",
        "\\subscribe none",
    ):
        assert dsms("shell", "-c", wrong)[0] == 1


def test_d_says_when_queries_are_answered_and_how(dsms):
    _, out, _ = dsms("shell", "-c", "CREATE QUERY each10 AS SELECT * FROM s;\n\\d\n\\d s")
    lines = [[cell.strip() for cell in line.split("|")] for line in out.splitlines()]
    assert ["query", "each10", "k INT, v FLOAT", "every 10 s, path SS"] in lines
    assert ["query", "q", "k INT, v FLOAT", "at each change"] in lines
    assert ["stream", "s", "k INT, v FLOAT", ""] in lines


def test_watch_repeats_a_one_time_query_and_says_as_of_when(dsms, monkeypatch):
    rounds = []

    def sleep(seconds):
        rounds.append(seconds)
        if len(rounds) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("dsms_client.shell.meta.time.sleep", sleep)
    code, out, err = dsms("shell", "-c", "SELECT 1;\n\\watch 0.5\nSELECT 1;")
    assert (code, rounds, err) == (0, [0.5] * 3, "")
    assert (
        len([line for line in out.splitlines() if re.match(r"as of \d{4}-\d\d-\d\d ", line)]) == 3
    )
    assert out.count("(1 row)") == 5  # once before, three times, and once more after Ctrl-C


def test_subscribe_prints_rows_until_the_query_ends(dsms, server):
    with server.peer() as peer:
        peer.ask("ingest", stream="s", rows=[[1, 0.5], [2, None]])
        peer.ask("execute", sql="DROP QUERY q")
    code, out, _ = dsms("shell", "-c", "\\subscribe q 0")
    assert code == 0
    assert out.splitlines() == [
        "+ 1970-01-01 00:00:00  1 | 0.5",
        "+ 1970-01-01 00:00:00.000001  2 | NULL",
        "the query has ended: the query was dropped",
    ]


def test_subscribe_ends_with_its_reader(server):
    """As in `| head -1`, where no further row comes whose writing would fail."""
    with server.peer() as peer:
        peer.ask("ingest", stream="s", rows=[[1, 0.5]])
    words = ["shell", "--port", str(server.port), "-c", "\\subscribe q 0"]
    with forked.Popen(
        [sys.executable, "-m", "dsms_client", *words], stdout=PIPE, stderr=PIPE, text=True
    ) as shell:
        assert shell.stdout.readline() == "+ 1970-01-01 00:00:00  1 | 0.5\n"
        shell.stdout.close()
        assert (shell.wait(WAIT), shell.stderr.read()) == (0, "")


def test_data_is_utf8_whatever_the_locale(server):
    words = [
        "shell",
        "--port",
        str(server.port),
        "--format",
        "csv",
        "-c",
        'CREATE STREAM u ("ü" INT); DESCRIBE u',
    ]
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [sys.executable, "-m", "dsms_client", *words], capture_output=True, env=env
    )
    assert (done.returncode, done.stderr) == (0, b"") and "ü" in done.stdout.decode()


CSV = 'K,v,more\n1,0.5,x\nx,1,x\n2,,x\n3\n"4",1e3,"x\ny"\n5,bad,x\n'


def test_load_csv_reports_rejected_lines(dsms, server, tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(CSV)
    code, out, err = dsms("load", str(file), "--stream", "S")
    assert (code, out) == (1, "")
    assert err.splitlines()[:4] == [
        "not in the stream, left out: more",
        "line 3: k: 'x' is not INT",
        "line 5: 1 values for 3 columns",
        "line 8: v: 'bad' is not FLOAT",
    ]
    assert "3 rows accepted by s, 3 lines rejected" in err
    assert server.engine.calls == []
    file.write_text("k,v\n")
    assert dsms("load", str(file), "--stream", "s", "--end")[0] == 0
    assert server.engine.calls == [("end", "s")]
    _, out, _ = dsms("shell", "--format", "csv", "-c", "SELECT * FROM s")
    assert out == "k,v\n1,0.5\n2,\n4,1000.0\n"


def test_load_writes_rejects_and_leaves_the_stream_open(dsms, server, tmp_path):
    file, rejects = tmp_path / "a.csv.gz", tmp_path / "rejects.csv"
    file.write_bytes(gzip.compress(CSV.encode()))
    code, _, err = dsms(
        "load", str(file), "--stream", "s", "--rejects", str(rejects), "--no-end", "--quiet"
    )
    assert (code, err) == (1, "")
    assert rejects.read_text().splitlines() == [
        "line,reason,text",
        "3,k: 'x' is not INT,\"x,1\"",
        "5,1 values for 3 columns,3",
        "8,v: 'bad' is not FLOAT,\"5,bad\"",
    ]
    assert server.engine.calls == []


def test_csv_tells_null_from_empty_text_both_ways(dsms, tmp_path):
    lines = ["t,n", ",1", '"",2', '" x",3', '"a,""b""",4', "plain,5"]
    sql = "; ".join(
        ["CREATE STREAM texts (t STRING, n INT)", "CREATE STREAM back (t STRING, n INT)"]
    )
    assert dsms("shell", "-c", sql)[0] == 0
    file = tmp_path / "a.csv"
    file.write_text("\n".join(lines) + "\n")
    assert dsms("load", str(file), "--stream", "texts", "--quiet")[0] == 0
    _, out, _ = dsms("shell", "--format", "csv", "-c", "SELECT * FROM texts")
    assert out.splitlines() == lines
    file.write_text(out)
    assert dsms("load", str(file), "--stream", "back", "--quiet")[0] == 0
    assert dsms("shell", "--format", "csv", "-c", "SELECT * FROM back")[1] == out


def test_load_reads_whole_numbers_as_statements_do(dsms, tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("k,v\n+5,+.5\n0x1F,1\n1_0,1\n 7 ,1_0\n8,1e2\n")
    _, _, err = dsms("load", str(file), "--stream", "s")
    assert err.splitlines()[:3] == [
        "line 3: k: '0x1F' is not INT",
        "line 4: k: '1_0' is not INT",
        "line 5: v: '1_0' is not FLOAT",
    ]
    assert dsms("shell", "--format", "csv", "-c", "SELECT * FROM s")[1] == "k,v\n5,0.5\n8,100.0\n"


def test_load_json_lines(dsms, tmp_path):
    file = tmp_path / "a.jsonl"
    lines = [{"k": 1, "v": 2}, {"v": 0.5, "k": None, "x": 1}, {"K": 7}, {"k": 1.5}, [1], {"k": "x"}]
    file.write_text("\n".join(map(json.dumps, lines)) + "\nnope\n\n" + json.dumps({"k": 9, "v": 9}))
    code, _, err = dsms("load", str(file), "--stream", "s")
    assert code == 1
    assert err.splitlines()[:4] == [
        "line 4: k: 1.5 is not INT",
        "line 5: not an object but a list",
        'line 6: k: "x" is not INT',
        "line 7: not JSON: Expecting value: line 1 column 1 (char 0)",
    ]
    _, out, _ = dsms("shell", "--format", "csv", "-c", "SELECT * FROM s")
    assert out == "k,v\n1,2.0\n,0.5\n7,\n9,9.0\n"


def test_load_parquet_in_batches(dsms, tmp_path, server):
    file = tmp_path / "a.parquet"
    rows = {"v": [float(i) for i in range(1000)], "key": range(1000), "x": ["a"] * 1000}
    pa.parquet.write_table(pa.table(rows), file)
    code, _, err = dsms("load", str(file), "--stream", "s", "--map", "k=key", "--batch", "300")
    assert code == 0
    assert "1,000 rows accepted by s in" in err
    assert sum(b.num_rows for b in server.engine.rows["s"]) == 1000
    pa.parquet.write_table(pa.table({"k": ["a"]}), file)
    code, _, err = dsms("load", str(file), "--stream", "s")
    assert code == 2
    assert "expected INT, got str 'a' in row 0" in err


def test_load_says_what_is_wrong_with_the_file(dsms, tmp_path):
    empty, binary, other = tmp_path / "empty.csv", tmp_path / "b.csv", tmp_path / "o.csv"
    empty.write_text("")
    binary.write_bytes(b"\xfd\xfe\xfd\n")
    other.write_text("a,b\n1,2\n")
    cases = [
        ([str(empty)], "is empty"),
        ([str(binary)], "is not UTF-8 text"),
        ([str(other)], "no column of the file (a, b) is one of the stream's (k, v)"),
        ([str(other), "--map", "k=z"], "the file has no column z"),
        ([str(other), "--map", "z=a"], "the stream has no column z"),
        ([str(tmp_path / "none.csv")], "No such file or directory"),
        ([str(tmp_path / "none.xls")], "cannot tell what"),
    ]
    for argv, says in cases:
        code, _, err = dsms("load", *argv, "--stream", "s")
        assert code == 2
        assert says in err
    code, _, err = dsms("load", str(other), "--stream", "ss")
    assert (code, "did you mean `s`?" in err) == (2, True)
    assert dsms("load", str(other), "--stream", "s", "--batch", "0")[0] == 2


def test_replay_at_speed(dsms, server, tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("t,k\n" + "".join(f"2013-01-01 00:00:{i:02d},{i}\n" for i in range(60)))
    with server.peer() as peer:
        peer.ask("execute", sql="CREATE STREAM e (t TIMESTAMP, k INT)")
    code, _, err = dsms("replay", str(file), "--stream", "e", "--speed", "1000x")
    assert code == 0
    assert "60 rows accepted by e" in err
    assert len(server.engine.rows["e"]) > 1
    code, _, err = dsms(
        "replay", str(file), "--stream", "e", "--speed", "max", "--time-column", "T", "--no-end"
    )
    assert code == 0
    assert sum(b.num_rows for b in server.engine.rows["e"]) == 120
    assert [b.column("k")[0].as_py() for b in server.engine.rows["e"]][-1] == 0
    code, _, err = dsms("replay", str(file), "--stream", "s")
    assert (code, "stamped on arrival" in err) == (2, True)
    assert dsms("replay", str(file), "--stream", "e", "--speed", "fast")[0] == 2


def test_doctor(dsms):
    code, out, _ = dsms("doctor")
    assert code == 0
    assert "a dsms server answers at" in out
    code, out, _ = dsms("doctor", "--port", "1")
    assert "FAIL" in out or "the port is free" in out


def test_ports_that_cannot_be_are_wrong_usage(dsms):
    for port in ("99999", "0", "x"):
        code, _, err = dsms("shell", "--port", port, "-c", "SELECT 1")
        assert code == 2
        assert f"'{port}' is no port from 1 to 65535" in err


def test_serve_refuses_options_that_make_no_sense(dsms, tmp_path):
    file = tmp_path / "dsms.toml"
    for text, says in (
        ("prot = 1", "did you mean `port`?"),
        ("port = 'x'", "port must be a whole number"),
        ("port = 70000", "0..65535"),
        ("port =", "cannot read the configuration"),
        ("tls-cert = 'x'", "TLS needs both"),
        ("max-frame = 0", "at least 1"),
        ("max-frame = '1 X'", "max_frame is a number, or a text such as '64M'"),
        ("statement-timeout = 'x'", "statement_timeout is a number, or a text such as '30 s'"),
        ("max-queries = '1K'", "max_queries must be a whole number"),
    ):
        file.write_text(text)
        code, _, err = dsms("serve", "--config", str(file))
        assert code == 2
        assert says in err
    assert dsms("serve", "--max-frame", "x")[0] == 2
    code, _, err = dsms("serve", "--no-warmup", "--data", str(file))
    assert code == 2
    assert f"UsageError DS543: cannot make the data directory {file}: File exists" in err


def test_sizes_and_times_are_written_alike_in_files_and_on_the_command_line(dsms, tmp_path):
    file = tmp_path / "dsms.toml"
    options = {"state_bytes": "1G", "memory": "64 MB", "max_frame": "2MiB", "reply_bytes": "10"}
    times = {"statement_timeout": "1 min", "ping_seconds": "500 ms", "max_clock_step": "2 s"}
    file.write_text("".join(f"{key} = '{text}'\n" for key, text in (options | times).items()))
    made = config.build(config.from_file(str(file)))
    assert [made.state_bytes, made.memory, made.max_frame] == [1 << 30, 64 << 20, 2 << 20]
    assert [made.reply_bytes, made.statement_timeout, made.ping_seconds] == [10, 60.0, 0.5]
    for text in (*options.values(), "1t", "3 kb"):
        assert serve_command._size(text) == size_of(text)
    assert dsms("serve", "--max-frame", "1X")[0] == 2


def test_a_data_directory_that_cannot_be_made_is_told_before_anything_that_takes_long(tmp_path):
    file, steps = tmp_path / "file", []
    file.touch()
    with pytest.raises(UsageError, match="cannot make the data directory"):
        run(config.build({"data": str(file)}), print, lambda *step: steps.append(step))
    assert steps == []


def test_shell_runs_every_c_up_to_one_that_fails(dsms):
    code, out, err = dsms(
        "shell", "--format", "csv", "-c", "SELECT 1", "-c", "NONSENSE", "-c", "SELECT 3"
    )
    assert (code, out.split()) == (1, ["1", "1"]) and "DS100" in err


def test_streams_whose_loss_is_accepted_reach_the_engine(tmp_path):
    built = config.build({"accept_loss": ["s"]}, {"accept_loss": None, "data": str(tmp_path)})
    engine = make_engine(built)
    assert engine.saver.recovered.notes == ["there is no stream s whose loss could be accepted"]
    engine.close()
    with pytest.raises(UsageError, match="accept_loss must be a list of names, not 's'"):
        config.build({"accept_loss": "s"})
