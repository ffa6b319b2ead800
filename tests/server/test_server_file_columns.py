"""Columns of files that are hard to name or to believe: without a name, with gaps where the time
should be, `_op` of a stream with KEY; texts that are no UTF-8.  The same by `dsms load --create`,
and by LIKE FILE and COPY."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet
import pytest

from dsms.engine import Engine
from dsms_client.files.said import in_sql, with_option
from dsms_client.shell.runner import Runner
from dsms_client.sync import connect


@pytest.fixture
def loaded(serve, dsms, tmp_path, monkeypatch, capsys):
    """A file is made a stream and loaded both ways; the rows, and all that was said."""
    monkeypatch.chdir(tmp_path)

    def run(name, data, clauses="", asked="SELECT * FROM s", time=None, **options):
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        found = []
        for way in ("load", "sql"):
            server, out = serve(Engine()), io.StringIO()
            monkeypatch.setenv("DSMS_PORT", str(server.port))
            runner = Runner(lambda _, s=server: connect(port=s.port, data="rows"), "csv", out, out)
            with runner.client:
                if way == "load":
                    said = [w for n, v in options.items() for w in (f"--{n.replace('_', '-')}", v)]
                    said += ["--timestamp", time] if time else []
                    said += ["--clauses", clauses] if clauses else []
                    _, text, err = dsms("load", name, "--create", "s", *said)
                    out.write(text + err)
                else:
                    said = [f"{n} = '{v}'" for n, v in options.items()]
                    stamp = [f"TIMESTAMP BY {time}"] if time else []
                    both = f"({', '.join([*stamp, *said])})" if stamp or said else ""
                    runner.form = "table"
                    runner.script(f"CREATE STREAM s LIKE FILE '{name}' {both} {clauses};")
                    given = [w.partition(" WITH (")[2] for w in out.getvalue().splitlines()]
                    given = next((w for w in given if w), ", ".join(said) + ")" if said else "")
                    runner.script(f"COPY s FROM '{name}' {'WITH (' + given if given else ''};")
                    out.write(capsys.readouterr().err)
                rows = runner.client.query(asked).rows if server.engine.streams() else None
                found.append((rows, out.getvalue()))
        assert found[0][0] == found[1][0]
        return found[0][0], found[0][1], found[1][1]

    return run


def test_columns_without_a_name_are_called_by_their_place(loaded):
    rows, *_ = loaded("a.csv", ",a,\n1,x,2\n3,y,4\n", asked="SELECT column0, a, column2 FROM s")
    assert rows == [(1, "x", 2), (3, "y", 4)]
    rows, by_load, by_sql = loaded(
        "a.csv", "column0,,b\n1,x,2\n", asked="SELECT column0, k, b FROM s", map="k=column1"
    )
    assert rows == [(1, "x", 2)]
    assert "--map k=column1" in by_load and "map = 'k=column1'" in by_sql
    rows, *_ = loaded("a.csv", "column1,,b\nu,x,v\n", asked="SELECT column1_, b FROM s")
    assert rows == [("x", "v")]
    rows, by_load, _ = loaded("a.csv", ",a\n1,x\n", map="k=column7")
    assert rows is None and "no column column7" in by_load and "column0, a" in by_load


def test_keys_without_a_name_of_json_and_parquet(loaded):
    rows, *_ = loaded("a.jsonl", '{"": 1, "a": 2}\n', asked="SELECT k, a FROM s", map="k=")
    assert rows == [(1, 2)]
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table({"": [1], "a": [2]}), sink)
    data = sink.getvalue().to_pybytes()
    assert loaded("a.parquet", data, asked="SELECT k, a FROM s", map="k=")[0] == [(1, 2)]
    assert loaded("a.parquet", data, asked='SELECT "column", a FROM s')[0] == [(1, 2)]


def test_a_column_that_is_made_of_several(loaded):
    text = "d,n,c\n2020-01-01,5,10:00:00\n2020-01-01,6,10:00:01\n"
    rows, by_load, by_sql = loaded("a.csv", text, asked="SELECT at, n FROM s", map="at=d+c")
    assert rows == [(1577872800000000, 5)]  # the last instant may still get rows
    assert "TIMESTAMP BY at" in by_load and "TIMESTAMP BY at" in by_sql


GAPS = "k,at,v\n1,2020-01-01 00:00:00,0.5\n2,,1\n3,2020-01-01 00:00:10,\n"


def test_a_time_with_gaps_is_told_and_may_be_had(loaded):
    rows, by_load, by_sql = loaded("a.csv", GAPS, asked="SELECT COUNT(*) FROM s")
    assert rows == [(3,)]
    for said, how in ((by_load, "--timestamp at takes"), (by_sql, "TIMESTAMP BY at takes")):
        assert "no time: at would be, but it is missing in 1 of 3 rows of the sample" in said
        assert how in said and "TIMESTAMP BY at\n" not in said
    asked = "SELECT k FROM s [RANGE UNBOUNDED]"
    rows, by_load, by_sql = loaded("a.csv", GAPS, "RETAIN 1 DAY", asked, time="at")
    assert rows == [(1,)]  # 3 is of the instant that is not complete
    for said in (by_load, by_sql):
        assert "at: it is missing in 1 of 3 rows of the sample; such rows are refused" in said
        assert "2 rows accepted by s, 1 refused" in said


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("a.jsonl", '{"k": 1, "ts": null}\n{"k": 2, "ts": 1577872800}\n', {}),
        ("a.csv", "k,ts\n1,\n2,1577872800\n", {"time_unit": "s"}),
        ("a.csv", "k,ts\n1,\n2,13/4/2018 10:00\n", {}),
        ("a.csv", "k,ts\n1,NA\n2,2018-04-13\n", {}),
    ],
)
def test_gaps_of_times_in_any_form(loaded, name, text, options):
    rows, *said = loaded(name, text, "RETAIN 1 DAY", "SHOW STREAMS", time="ts", **options)
    assert len(rows) == 1
    assert all("1 rows accepted by s, 1 refused" in one for one in said)


@pytest.mark.parametrize("name", ["_op", "_OP"])
def test_op_of_a_stream_with_key_is_what_it_is(loaded, name):
    text = f"{name},id,t,v\nc,1,2020-01-01,a\nc,2,2020-01-01,b\nd,1,2020-01-02,\nu,3,2020-01-03,c\n"
    asked = "SELECT id, v FROM s"
    rows, by_load, by_sql = loaded("a.csv", text, "KEY (id)", asked)
    assert rows == [(2, "b")] and "_op:" in by_load and "_op:" in by_sql
    renamed = text.replace(name, "what")
    assert loaded("a.csv", renamed, "KEY (id)", asked, map="_op=what")[0] == rows
    rows, *_ = loaded("a.csv", text, asked="SELECT _op, id FROM s [RANGE UNBOUNDED]")
    assert rows[:2] == [("c", 1), ("c", 2)]  # without KEY it is a column as others are


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "k,v\n1,München\n"),
        ("a.jsonl", '{"k": 1, "v": "München"}\n'),
        ("a.json", '[{"k": 1,\n "v": "München"}]\n'),
        ("a.tsv", "k\tv\n1\tMünchen\n"),
    ],
)
def test_what_is_no_utf_8_says_so_and_how_it_is_read(loaded, name, text):
    rows, by_load, by_sql = loaded(name, text.encode("latin-1"))
    assert rows is None and "not UTF-8 text" in by_load and "--encoding latin-1" in by_load
    assert "not UTF-8 text" in by_sql and "encoding = 'latin-1'" in by_sql
    data = text.encode("latin-1")
    rows, *_ = loaded(name, data, asked="SELECT k, v FROM s", encoding="latin-1")
    assert rows == [(1, "München")]


def test_lines_of_json_that_are_no_utf_8_are_rejected_and_no_others(loaded):
    good, bad = '{"k": 1, "v": "a"}\n', '{"k": 2, "v": "ü"}\n'
    rows, by_load, by_sql = loaded(
        "a.jsonl", good.encode() + bad.encode("latin-1") + bad.encode(), asked="SELECT k, v FROM s"
    )
    assert rows == [(1, "a"), (2, "ü")]
    for said in (by_load, by_sql):
        assert "line 2: not UTF-8 text" in said and "1 lines rejected" in said


def test_errors_of_a_stream_that_is_made_speak_of_what_was_typed(
    dsms, serve, tmp_path, monkeypatch
):
    monkeypatch.setenv("DSMS_PORT", str(serve(Engine()).port))
    path = tmp_path / "a.csv"
    path.write_text("k,v\n1,2\n")
    code, _, err = dsms("load", str(path), "--create", "s", "--clauses", " SLACK 1 S RETANE 1 DAY")
    assert code == 2 and "DS101 at line 1, column 11: in --clauses: RETANE" in err
    assert dsms("load", str(path), "--create", "s", "--quiet")[0] == 0
    code, _, err = dsms("load", str(path), "--create", "s")
    assert code == 2 and "DS213: in --create: the name s is taken" in err


def test_all_options_of_load_have_a_name_in_statements():
    for text, other in (
        ("give --time-unit s, ms, us or ns: what", "give time_unit = s, ms, us or ns: what"),
        ("a file needs --no-header, or --names", "a file needs header = false, or names"),
        (
            "--format tsv --names ts,uid,... --null -",
            "format = tsv names = 'ts,uid,...' null = '-'",
        ),
        (": give --decimal ,", ": give decimal = ','"),
        ("v: '--null x' is none", "v: '--null x' is none"),
        ("(--max-rejects N allows more)", "(max_rejects = N allows more)"),
        ("give --time-format '%d.%m' or '%m'", "give time_format = '%d.%m' or '%m'"),
    ):
        assert in_sql(text) == other
    from dsms_client.files.options import Options

    options = Options()
    said = [
        ("null", "a"), ("null", "b"), ("map", "a=b, c=d+e"), ("comment", "#"),
        ("pattern", "(?P<a>x)"), ("names", "p, q"), ("header", "TRUE"),
    ]  # a table  # fmt: skip
    for name, value in said:
        options = with_option(options, name, value, "COPY")
    assert (options.nulls, options.renamed) == (("a", "b"), (("a", "b"), ("c", "d+e")))
    assert (options.kind, options.skip, options.names) == ("lines", "#", None)
