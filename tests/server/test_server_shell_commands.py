"""Backslash commands of the shell against an engine: files, editors, variables, what is cut off."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dsms.engine import Engine
from dsms_client.cli import main
from dsms_client.shell import meta, outside, show
from dsms_client.shell.runner import Runner
from dsms_client.shell.variables import filled
from dsms_client.sync import connect
from tests.waiting import WAIT

DECLARED = """
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE TABLE d (k STRING PRIMARY KEY, n INT);
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 MIN] GROUP BY k;
INSERT INTO d VALUES ('a', 1), ('b', 20), ('it''s', NULL);
"""


@pytest.fixture
def shell(serve: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs lines in `dsms shell` over one engine; exit code, stdout and stderr."""
    engine = Engine()
    engine.execute(DECLARED)
    monkeypatch.setenv("DSMS_PORT", str(serve(engine).port))

    def run(*lines: str, form: str = "table") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
        return (main(["shell", "--format", form]), *capsys.readouterr())

    return run


def test_every_command_is_in_the_list_and_in_the_docs(shell: Any):
    out = shell("\\?")[1]
    docs = Path("docs/operations.md").read_text(encoding="utf-8")
    for command in (*meta.COMMANDS, *meta.TEXTS):
        if command not in ("\\h", "\\s"):  # other spellings
            assert f"  {command}" in out, command
            assert f"`{command}" in docs, command


def test_a_line_per_value_and_a_table_again(shell: Any):
    _, out, _ = shell("\\x", "SELECT 1 AS a;", "\\x", "SELECT 1 AS a;")
    assert out == ("format is vertical\n--- row 1 ---\na : 1\nformat is table\na\n-\n1\n(1 row)\n")


def test_what_is_shown_goes_to_a_file(shell: Any, tmp_path: Path):
    place = tmp_path / "out.txt"
    assert shell(f"\\o {place}", "SELECT 1 AS a;", "\\o", "SELECT 2 AS b;") == (
        0,
        "b\n-\n2\n(1 row)\n",
        "",
    )
    assert place.read_text() == "a\n-\n1\n(1 row)\n"
    assert shell(f"\\o {tmp_path}/none/x")[2].startswith("cannot write")


def test_a_statement_is_edited_and_run(shell: Any, tmp_path: Path, monkeypatch: Any):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i s/1/42/ $1\n")
    editor.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(editor))
    assert shell("SELECT 1 AS a;", "\\e")[1] == "a\n-\n1\n(1 row)\n a\n--\n42\n(1 row)\n".replace(
        " a\n", "a\n"
    )
    assert "nothing was changed" in shell("SELECT 2 AS a;", "\\e")[2]
    file = tmp_path / "file.sql"
    file.write_text("SELECT 1 AS b;")
    assert "42" in shell(f"\\e {file}")[1]
    monkeypatch.setenv("EDITOR", "false")
    assert shell("\\e")[0] == 1


@pytest.mark.parametrize(
    ("what", "form", "content"),
    [
        ("d", "csv", "k,n\na,1\nb,20\nit's,\n"),
        ("(SELECT n FROM d WHERE k = 'a')", "json", '{"n": 1}\n'),
    ],
)
def test_answers_are_copied_to_files(
    shell: Any, tmp_path: Path, what: str, form: str, content: str
):
    place = tmp_path / f"it's.{form}"
    text = str(place).replace("'", "''")
    code, out, _ = shell(f"\\copy {what} TO '{text}'")
    assert (code, place.read_text()) == (0, content)
    assert out.endswith(f"written to {place}\n")
    assert shell(f"\\copy {what} to {tmp_path}/plain {form}")[0] == 0
    assert (tmp_path / "plain").read_text() == content


def test_files_are_copied_into_tables(shell: Any, tmp_path: Path):
    place = tmp_path / "in.csv"
    place.write_text("k,n\nx,5\n")
    code, _, err = shell(f"\\copy d from '{place}';")
    assert (code, "1 row" in err) == (0, True), err
    assert shell("SELECT n FROM d WHERE k = 'x';", form="csv")[1] == "n\n5\n"


def test_answers_are_copied_to_parquet(shell: Any, tmp_path: Path):
    assert shell(f"\\copy (SELECT k FROM d) to '{tmp_path}/x.parquet'")[0] == 0
    assert sorted(pq.read_table(tmp_path / "x.parquet").column("k").to_pylist()) == [
        "a",
        "b",
        "it's",
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("\\copy d", "write \\copy (SELECT ...) to 'file'"),
        ("\\copy d to 'x'", "say how to write x: csv, json, parquet"),
        ("\\copy zz to 'x.csv'", "QueryError DS203"),
        ("\\copy d to '/none/x.csv'", "cannot write /none/x.csv"),
        ("\\set 1 2", "1 can't be a variable"),
        ("\\limit x", "\\limit takes a number of rows"),
        ("\\d+ zz", "UsageError DS401"),
        ("\\copyd", "unknown command \\copyd"),
    ],
)
def test_what_can_not_be_done_is_said(shell: Any, line: str, said: str):
    code, _, err = shell(line)
    assert code == 1
    assert err.startswith(said)


def test_commands_of_the_system(shell: Any, tmp_path: Path):
    assert shell(f"\\! echo a '|' b > {tmp_path}/said; exit 0")[0] == 0
    assert (tmp_path / "said").read_text() == "a | b\n"
    assert shell("\\!false")[0] == 1


def test_variables(shell: Any):
    asked = "SELECT n::INT AS n, k FROM :t WHERE k = :'k';"
    lines = ("\\set k 'it''s'", "\\set t d", asked, "\\set", "\\unset k t", "\\set")
    _, out, err = shell(*lines, form="csv")
    assert (out, err) == ("n,k\n,it's\nk = 'it''s'\nt = 'd'\n", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (":a + :'a' + :\"a\"", "x'y + 'x''y' + \"x'y\""),
        ("1::a, ':a', \":a\" -- :a\n/* :a */", "1::a, ':a', \":a\" -- :a\n/* :a */"),
        (":b :'b' :", ":b :'b' :"),
        ("'it''s :a' :a", "'it''s :a' x'y"),
    ],
)
def test_values_stand_in_place_of_variables(text: str, shown: str):
    assert filled(text, {"a": "x'y"}) == shown


def test_more_is_told_of_one_object(shell: Any):
    _, out, _ = shell("\\d+ Q")
    assert "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 min] GROUP BY k;" in out
    assert "status" in out and "running" in out
    out = shell("\\d+ D")[1]
    assert "CREATE TABLE d (k STRING, n INT, PRIMARY KEY (k));\n" in out and "rows    : 3\n" in out
    assert "accepted   : 0\n" in shell("\\d+ s")[1]
    shell("CREATE ROLE Ops; GRANT SELECT ON s TO ops;")
    out = shell("\\d+ OPS")[1]
    assert "kind     : role\n" in out and "object    : s\n" in out
    assert shell("\\d+")[1] == shell("\\d")[1]


def test_all_that_is_declared_is_listed(shell: Any):
    _, out, _ = shell("\\l")
    assert all(f"\n{name} " in out for name in ("s", "d", "q"))
    assert "\nd " not in shell("\\l s%")[1]


def test_a_shell_moves_clocks_and_ends_streams(serve: Any, monkeypatch: Any, capsys: Any):
    engine = Engine()
    engine.execute(DECLARED)
    engine.ingest("s", {"k": ["a", "b"], "v": [1, 2], "t": [0, 1_000_000]})
    port = serve(engine).port
    with connect(port=port) as reader:
        results = reader.subscribe("q", 0)
        told = ["HEARTBEAT s AT '1970-01-01 00:00:05'", "END STREAM s"]
        assert main(["shell", "--port", str(port), "-c", "; ".join(told)]) == 0
        seen = []
        while (push := results.next(timeout=WAIT)) is not None and len(seen) < 2:
            seen += [row for row in push.rows if push.kind == "insert"]
            if len(seen) == 2:
                break
    assert sorted(seen) == [("a", 1), ("b", 1)]
    assert capsys.readouterr().out == (
        "stream s has come to 1970-01-01T00:00:05Z\nstream s has ended\n"
    )


def test_where_one_is(shell: Any):
    code, out, _ = shell("\\conninfo")
    assert code == 0
    assert out.startswith("connected to 127.0.0.1:")
    assert ", not encrypted, as nobody; writer " in out


def test_rows_that_are_too_many_are_counted(shell: Any):
    _, out, _ = shell(
        "\\limit 2", "SELECT n FROM d;", "\\limit all", "SELECT COUNT(*) AS n FROM d;"
    )
    assert "(2 rows)\n… 1 more row (\\limit all shows them)\nall rows are shown\n" in out
    assert "more" not in shell("\\limit 2", "SELECT n FROM d;", form="csv")[1]
    lines = list(show.render(("a",), ("INT",), [(n,) for n in range(1236)], "vertical", 2))
    assert lines[-1] == "… 1,234 more rows (\\limit all shows them)"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_answers_go_to_the_pager_of_a_terminal(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("PAGER", f"cat > {tmp_path}/paged")
    monkeypatch.setenv("LINES", "5")
    lines = [f"line {n}" for n in range(9)]
    assert outside.paged(lines, io.StringIO()) == lines
    assert outside.paged(lines[:3], Terminal()) == lines[:3]
    assert outside.paged(lines, Terminal()) == []
    assert (tmp_path / "paged").read_text().splitlines() == lines
    monkeypatch.delenv("PAGER")
    assert outside.paged(lines, Terminal()) == lines


def test_a_prompt_shows_a_thousand_rows(serve: Any, monkeypatch: Any):
    from dsms_client.shell import prompt

    port = serve(Engine()).port
    runner = Runner(lambda line: connect(port=port), out=io.StringIO(), err=io.StringIO())

    class Session:
        def __init__(self, **options: Any) -> None:
            pass

        def prompt(self, text: str) -> str:
            raise EOFError

    monkeypatch.setattr(prompt, "PromptSession", Session)
    with runner.client:
        assert prompt.run(runner) == 0
    assert (runner.most, runner.interactive) == (prompt.SHOWN, True)
