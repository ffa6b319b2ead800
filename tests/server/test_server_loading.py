"""`dsms load` over a server: streams it makes, several files, limits, and what it says when it is
stopped."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys

import pytest

from dsms.engine import Engine
from dsms_client.files import csvfile
from tests import forked
from tests.waiting import WAIT, wait_until


def test_a_stream_is_made_for_a_file(dsms, serve, tmp_path, monkeypatch):
    monkeypatch.setenv("DSMS_PORT", str(serve(Engine()).port))
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"ts,v\n1521911720.5,1\n1521911719.5,NA\n"))
    code, out, _ = dsms("load", str(path), "--create", "made", "--dry-run")
    assert code == 0
    assert out.splitlines() == [
        "CREATE STREAM made (",
        "    ts TIMESTAMP,",
        "    v INT) TIMESTAMP BY ts SLACK 2 SECONDS;",
        "-- means NULL: NA, beside an empty cell (--null says otherwise)",
        "-- time: ts, numbers in s since 1970",
        "-- slack: rows of the sample are up to 1 s late",
        r"-- loaded with --time-unit s --null '' --null NULL --null '\N' --null NA",
        "-- 1521911720.5 | 1",
        "-- 1521911719.5 | ",
    ]
    code, _, err = dsms("load", str(path), "--create", "made", "--clauses", "SLACK 1 HOUR")
    assert code == 0 and "SLACK 1 HOUR;" in err and "2 rows accepted by made" in err
    code, _, err = dsms("load", str(path), "--create", "made", "--quiet")
    assert code == 2 and "made" in err
    code, _, err = dsms("load", str(path), "--stream", "made", "--dry-run")
    assert code == 2 and "--create" in err
    code, _, err = dsms("load", str(path))
    assert code == 2 and "which stream" in err


def test_several_files_and_their_rejects(dsms, server, tmp_path):
    for name, text in (("a", "k,v\n1,1\nx,1\n"), ("b", "v,k\n2,2\ny,2\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    rejects = tmp_path / "rejects.csv"
    code, _, err = dsms("load", str(tmp_path / "?.csv"), "--stream", "s")
    assert code == 1
    assert err.splitlines()[:2] == [
        f"{tmp_path}/a.csv line 3: k: 'x' is not INT",
        f"{tmp_path}/b.csv line 3: v: 'y' is not FLOAT",
    ]
    code, *_ = dsms(
        "load", str(tmp_path / "?.csv"), "--stream", "s", "--rejects", str(rejects), "--quiet"
    )
    assert [line.partition(",")[0] for line in rejects.read_text().splitlines()] == [
        "line",
        f"{tmp_path}/a.csv:3",
        f"{tmp_path}/b.csv:3",
    ]
    code, _, err = dsms("load", str(tmp_path / "?.xyz"), "--stream", "s")
    assert code == 2 and "no file is called like" in err
    code, _, err = dsms("load", "a.csv", "--stream", "s", "--stream", "t")
    assert code == 2 and "1 files for 2 streams" in err


def test_a_load_stops_after_so_many_rejects(dsms, server, tmp_path, monkeypatch):
    monkeypatch.setattr(csvfile, "BLOCK", 64)
    path = tmp_path / "a.csv"
    path.write_text("k,v\n" + "1,1\n" * 10 + "x,1\n" * 100 + "2,2\n")
    code, _, err = dsms("load", str(path), "--stream", "s", "--max-rejects", "3", "--end")
    assert code == 1 and "stopped: more than 3 lines were rejected" in err
    assert "10 rows accepted" in err and server.engine.calls == []
    code, _, err = dsms("load", str(path), "--stream", "s", "--from-line", "111")
    assert code == 1 and "1 rows accepted" in err


@pytest.mark.parametrize("between", [",", ",\n", ",\n\n"], ids=["one line", "a line each", "two"])
def test_an_array_goes_on_where_its_load_ended(dsms, server, tmp_path, between):
    """Objects that shared a line had one number: what came after the first ones was left out."""
    path = tmp_path / "a.json"
    objects = [f'{{"k": {k}, "v": {k}}}' for k in range(1, 5)]
    path.write_text("[" + between.join(objects[:2]))
    code, _, err = dsms("load", str(path), "--stream", "s")
    assert code == 2 and "2 rows were accepted before this" in err
    (first,) = [line.split()[-1] for line in err.splitlines() if "--from-line" in line]
    path.write_text("[" + between.join(objects) + "]")
    code, _, err = dsms("load", str(path), "--stream", "s", "--from-line", first)
    assert code == 0 and "2 rows accepted" in err
    taken = [k for batch in server.engine.rows["s"] for k in batch.column("k").to_pylist()]
    assert taken == [1, 2, 3, 4]


def test_standard_input_is_loaded(dsms, server):
    code, _, err = dsms("load", "-", "--stream", "s", stdin="k\tv\n1\t2\n")
    assert code == 0 and "1 rows accepted" in err
    code, _, err = dsms("load", "-", "--stream", "s", "--follow")
    assert code == 2 and "read to its end anyway" in err
    code, _, err = dsms("load", "a.csv.gz", "--stream", "s", "--follow")
    assert code == 2 and "only files of text grow" in err


def test_an_interrupted_load_says_what_was_taken(server, tmp_path):
    """Ctrl-C while it waits for more."""
    path = tmp_path / "a.csv"
    path.write_text("k,v\n1,1\n2,2\n")
    words = [sys.executable, "-m", "dsms_client", "load", str(path), "--stream", "s", "--follow"]
    with forked.Popen(
        [*words, "--port", str(server.port)], stderr=subprocess.PIPE, text=True, env=os.environ
    ) as load:
        try:
            wait_until(lambda: sum(b.num_rows for b in server.engine.rows["s"]) == 2)
            load.send_signal(signal.SIGINT)
            _, err = load.communicate(timeout=WAIT)
        finally:
            load.kill()
    assert load.returncode == 130
    assert err.splitlines() == [
        "2 rows were accepted before this; s is not ended",
        f"to go on with {path}: --from-line 4",
        "interrupted",
    ]


def test_files_are_replayed_on_one_clock(dsms, server, tmp_path):
    with server.peer() as peer:
        for name in ("e", "f"):
            peer.ask("execute", sql=f"CREATE STREAM {name} (t TIMESTAMP, k INT)")
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("t,k\n2020-01-01,1\n2020-01-02,2\n")
    both = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    pace = ("--speed", "max", "--time-column", "t")
    code, _, err = dsms("replay", *both, "--stream", "e", "--stream", "f", *pace)
    assert code == 0 and "2 rows accepted by e" in err and "2 rows accepted by f" in err
