"""``CREATE ... LIKE FILE``: in a server below its folders alone, in the shell beside it of any."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest

from dsms.api import Cancel
from dsms.engine import Engine
from dsms.errors import DsmsError, UsageError
from dsms.file_folders import LOOK, Files
from dsms.file_texts import is_like_file, like_file
from dsms.settings import Settings
from dsms_client.files.like import declared
from dsms_client.shell.runner import Runner
from dsms_client.sync import connect
from tests import forked

CSV = "k,at,v\n1,2020-01-01 00:00:00,0.5\n2,2020-01-01 00:00:10,1\n"
STREAM = "CREATE STREAM s (\n    k INT,\n    at TIMESTAMP,\n    v FLOAT) TIMESTAMP BY at"


@pytest.fixture(autouse=True)
def forked_looks(monkeypatch):
    """Processes that look at files begin where their imports are done."""
    monkeypatch.setattr("dsms.file_folders.subprocess.Popen", forked.Popen)


@pytest.fixture
def folder(tmp_path):
    """What may be read; beside it lies what may not."""
    (tmp_path / "secret.csv").write_text(CSV)
    inside = tmp_path / "open"
    (inside / "sub").mkdir(parents=True)
    (inside / "a.csv").write_text(CSV)
    (inside / "sub" / "-").write_text(CSV)
    (inside / "b.txt").write_text("x;y\n1;2018-03-24\n")
    (inside / "out.csv").symlink_to(tmp_path / "secret.csv")
    (inside / "in.csv").symlink_to(inside / "a.csv")
    (inside / "up").symlink_to(tmp_path)
    (inside / "round").symlink_to(inside / "round")
    (inside / "json.py").write_text("raise SystemExit('a module of the folder was run')")
    return inside


def test_what_a_statement_says():
    text = """-- a comment
        create Table if not exists "A b" LIKE file 'it''s.csv' (PRIMARY KEY (k, "l m"), null = 'NA',
            Delimiter = ';') NON RETROACTIVE"""
    like = like_file(text)
    assert (like.kind, like.name, like.path, like.if_not_exists) == (
        "TABLE", '"A b"', "it's.csv", True,
    )  # fields  # fmt: skip
    assert (like.key, like.clauses) == (("k", '"l m"'), "NON RETROACTIVE")
    assert like.options == (("null", "NA"), ("delimiter", ";"))
    timed = like_file(
        "CREATE STREAM s LIKE FILE 'x' (time_unit = ms, timestamp by \"a b\") SLACK 1 S"
    )
    assert (timed.time, timed.clauses) == ("a b", "SLACK 1 S")
    assert like_file("CREATE STREAM s LIKE FILE 'x' TIMESTAMP BY t").time == "t"
    for wrong in (
        "s LIKE FILE x",
        "s LIKE FILE 'x' (",
        "s LIKE FILE 'x' ()",
        "s LIKE FILE 'x' (a)",
    ):
        with pytest.raises(UsageError, match="DS101"):
            like_file(f"CREATE STREAM {wrong}")
    assert not is_like_file("CREATE STREAM s (a STRING DEFAULT 'like file')")


@pytest.mark.parametrize(
    "path", ["../secret.csv", "out.csv", "up/secret.csv", "sub/../../secret.csv",
             "{}/../secret.csv", "round", "none.csv", "", ".", "a\0.csv", "/etc/passwd", "-"],
)  # paths  # fmt: skip
def test_no_path_leads_out(folder, path):
    with pytest.raises(UsageError, match="DS422"):
        Files([str(folder)]).find(path.format(folder))


def test_paths_that_stay_inside(folder, tmp_path):
    files = Files([str(tmp_path / "up"), str(folder)])
    for path in ("a.csv", "in.csv", "sub/../a.csv", str(folder / "a.csv"), "up/open/a.csv"):
        assert files.find(path) == (folder, "a.csv")
    assert Files([str(folder / "sub")]).find("-") == (folder / "sub", "./-")


@pytest.fixture
def engine(folder):
    return Engine(settings=Settings(files=Files([str(folder)])))


def test_an_engine_runs_the_plain_statement_and_tells_it(engine):
    done, rows, table = engine.execute(
        "CREATE STREAM s LIKE FILE 'in.csv'; SHOW CREATE STREAM s;"
        "CREATE TABLE t LIKE FILE 'b.txt' (PRIMARY KEY (x))"
    )
    assert done.message == f"stream s created\n{STREAM};"
    assert any("time: at" in note for note in done.warnings)
    assert "TIMESTAMP BY at" in rows.data.column(2)[0].as_py()
    assert table.message == (
        "table t created\nCREATE TABLE t (\n    x INT,\n    y DATE,\n    PRIMARY KEY (x));"
    )
    assert table.warnings[-1] == (
        "rows of the file are loaded by COPY t FROM 'b.txt' WITH (delimiter = ';')"
    )


def test_what_is_wrong_is_told_and_changes_nothing(engine, folder):
    (folder / "bad.parquet").write_bytes(b"PAR1" + os.urandom(200) + b"PAR1")
    found = []
    for like in ("'bad.parquet'", "'sub'", "'a.csv' (TIMESTAMP BY nothing)", "'a.csv' (x = 1)",
                 "'a.csv' (null = 'NA') NONSENSE"):  # statements  # fmt: skip
        with pytest.raises(DsmsError) as raised:
            engine.execute(f"CREATE STREAM s LIKE FILE {like}")
        found.append(raised.value.code)
        assert str(folder) not in raised.value.message
    assert found == ["DS530", "DS530", "DS533", "DS214", "DS101"]
    assert not engine.streams()
    with pytest.raises(UsageError, match="DS422"):
        Engine().execute("CREATE STREAM s LIKE FILE 'a.csv'")


def test_a_process_that_dies_or_is_not_wanted_any_more(folder):
    like = "CREATE STREAM s LIKE FILE 'a.csv'"
    dies = (sys.executable, "-c", "import os; os.abort()")
    with pytest.raises(UsageError, match="DS423"):
        Files([str(folder)], dies)(like, "a.csv", None)
    cancel = Cancel()
    cancel.set()
    hangs = (sys.executable, "-c", "import signal; signal.pause()")
    with pytest.raises(DsmsError, match="DS610"):
        Files([str(folder)], hangs)(like, "a.csv", cancel)


def test_the_process_answers_without_modules_of_the_folder(folder):
    asked = json.dumps({"text": "CREATE STREAM s LIKE FILE 'zzz'", "path": "a.csv"})
    done = subprocess.run(LOOK, input=asked, cwd=folder, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["statement"] == STREAM


def test_who_may_not_create_learns_nothing_of_files(engine):
    engine.execute("CREATE USER bob PASSWORD 'x1234567890'")
    for path in ("a.csv", "none.csv"):
        with pytest.raises(UsageError, match="DS670"):
            for _ in engine.slices(f"CREATE STREAM s LIKE FILE '{path}'", None, user="bob"):
                pass


def test_the_shell_looks_at_files_that_are_beside_it(serve, folder, monkeypatch):
    server = serve(Engine(settings=Settings(files=Files([str(folder / "sub")]))))
    out, err = io.StringIO(), io.StringIO()
    runner = Runner(lambda line: connect(port=server.port, data="rows"), "table", out, err)
    monkeypatch.chdir(folder)
    with runner.client:
        assert runner.script("CREATE STREAM s LIKE FILE 'a.csv' RETAIN 1 DAY;")
        assert not runner.script("CREATE STREAM u LIKE FILE 'none.csv';")
    assert out.getvalue() == f"stream s created\n{STREAM}\n    RETAIN 1 DAY;\n"
    assert "NOTE: time: at, which holds times" in err.getvalue() and "DS422" in err.getvalue()


def test_the_statement_is_what_load_create_says(folder):
    made = declared(like_file(f"CREATE STREAM s LIKE FILE '{folder / 'a.csv'}'"))
    assert made.statement == STREAM


WRONG = (  # what is typed, the code, and where the error points to
    ("'a.csv' (TIMESTAMP BY at)\n  SLACK 1 S RETANE 1 DAY", "DS101", "RETANE"),
    ("'a.csv' SLACK 1 S INDEX BY (zz)", "DS201", "zz"),
    ("'a.csv' (TIMESTAMP BY nope)", "DS533", "nope"),
    ("'a.csv' TIMESTAMP BY nope", "DS533", "nope"),
    ("'a.csv' (null = 'x', delimeter = ';')", "DS214", "delimeter"),
    ("'a.csv' (null = 'x',  delimiter = ';;')", "DS215", "delimiter"),
    ("'a.csv' (null = 'x', delimiter ';')", "DS101", "delimiter"),
    ("'a.csv' (map = 'x=nope')", "DS532", "'a.csv'"),
    ("'none.csv' SLACK 1 S", "DS422", "'none.csv'"),
    ("'a.csv' (PRIMARY KEY (v))", "DS101", "v)"),
)


@pytest.mark.parametrize(("like", "code", "where"), WRONG)
def test_errors_point_to_what_was_typed(engine, like, code, where):
    text = f"SHOW STREAMS; /* more */\n   CREATE STREAM -- a comment\n    s LIKE FILE {like}"
    _points(lambda: engine.execute(text), text, code, where)


def test_errors_of_keys_and_names_point_to_them(engine):
    engine.execute("CREATE STREAM s (a INT)")
    for text, code, where in (
        ("CREATE STREAM  s LIKE FILE 'a.csv'", "DS213", "s LIKE"),
        ("CREATE STREAM select LIKE FILE 'a.csv'", "DS101", "select"),
        ("CREATE TABLE t LIKE FILE 'a.csv' (null = 'x', PRIMARY KEY (k,  nope))", "DS201", "nope"),
        ("CREATE TABLE t LIKE FILE 'a.csv' (PRIMARY KEY (k)) SLACK 1 S", "DS101", "SLACK"),
    ):
        _points(lambda text=text: engine.execute(text), text, code, where)


def _points(run, text, code, where):
    with pytest.raises(DsmsError) as raised:
        run()
    problem = raised.value
    assert problem.code == code
    assert text.splitlines()[problem.line - 1][problem.column - 1 :].startswith(where)


@pytest.mark.parametrize(("like", "code", "where"), [w for w in WRONG if w[1] != "DS422"])
def test_the_shell_points_there_too(serve, folder, monkeypatch, like, code, where):
    server, err = serve(Engine()), io.StringIO()
    monkeypatch.chdir(folder)
    runner = Runner(lambda line: connect(port=server.port, data="rows"), "table", err, err)
    with runner.client:
        assert not runner.script(f"\n  CREATE STREAM s LIKE FILE {like};")
    first, line, caret, *_ = err.getvalue().splitlines()
    assert code in first and line[caret.index("^") :].startswith(where)


def test_hints_name_options_of_statements(engine, folder):
    (folder / "n.csv").write_text("n,v\n5,x\n")
    (folder / "latin.csv").write_bytes("k,v\n1,München\n".encode("latin-1"))
    for like, hint in (
        ("'n.csv' (TIMESTAMP BY n)", "time_format = 'format', time_unit = s"),
        ("'latin.csv'", "encoding = 'latin-1', cp1252"),
    ):
        with pytest.raises(UsageError) as raised:
            engine.execute(f"CREATE STREAM s LIKE FILE {like}")
        assert hint in raised.value.hint and "--" not in str(raised.value)


def test_an_engine_of_ones_own_is_given_folders(folder):
    for files in (folder, str(folder), [folder]):
        (done,) = Engine(files=files).execute("CREATE STREAM s LIKE FILE 'a.csv'")
        assert done.message == f"stream s created\n{STREAM};"
    with pytest.raises(UsageError, match="DS422"):
        Engine(files=folder).execute("CREATE STREAM s LIKE FILE '../secret.csv'")
    with pytest.raises(UsageError, match="DS426"):
        Engine(files=[folder / "none"])
