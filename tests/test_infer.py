"""Streams for files: what is inferred of names, types, times and lateness."""

from __future__ import annotations

import json
import re

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.sql.parser import parse
from dsms_client.files.infer import RESERVED, infer, quoted
from dsms_client.files.open import read
from dsms_client.files.options import Options
from dsms_client.files.said import flags
from dsms_client.files.source import FileSource
from tests.effort import examples
from tests.pages.text import ROOT
from tests.test_file_forms import APACHE, ZEEK


@pytest.fixture
def inferred(tmp_path):
    """What is inferred of these bytes, as a file of that name."""

    def run(name, data, renamed=None, time=None, **options):
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return infer(FileSource(str(path), Options(**options)), renamed, time)

    return run


def shown(found):
    """The columns, as statements write them."""
    return ", ".join(f"{quoted(name)} {sql}" for name, sql in found.columns)


TABLES = [
    ("a,b,c,d\n1,1.5,x,true\n-2,,y,F\n", "a INT, b FLOAT, c STRING, d BOOL", None),
    ("zip,n\n007,9223372036854775808\n", "zip STRING, n FLOAT", None),
    ("order,Group,x y,2nd\n1,2,3,4\n", '"order" INT, "Group" INT, x_y INT, _2nd INT', None),
    ("a;b\n1;2,5\n", "a INT, b STRING", None),
    ("k,t\n1,2018/03/24\n", "k INT, t TIMESTAMP", "t"),
    ("k,day\n1,3/4/2018\n", "k INT, day STRING", None),
    ("k,day\n1,13/4/2018\n", "k INT, day TIMESTAMP", "day"),
    ("updated_at,ts\n2018-03-24,1521911720.5\n", "updated_at DATE, ts TIMESTAMP", "ts"),
    ("time,n\n17,1\n", "time INT, n INT", None),
    ("time,n\n,1\n2018-03-24,1\n", "time DATE, n INT", None),
    ("when,n\n1521911720000,1\n", "when INT, n INT".replace("when", '"when"'), None),
    ("date,time,n\n2018-03-24,17:15,1\n", "t TIMESTAMP, n INT", "t"),
    ("n,v\n1,NA\n2,3\n", "n INT, v INT", None),
    ("n,v\n1,NA\n2,x\n", "n INT, v STRING", None),
    ("1,2018-03-24,x\n2,2018-03-25,y\n", "c1 INT, c2 TIMESTAMP, c3 STRING", "c2"),
    ("_id,__v\n1,x\n", "_id INT, __v STRING", None),
    (",a,b\n0,x,2\n1,y,3\n", "column0 INT, a STRING, b INT", None),
    ("a;b;\n1;x;\n2;y;\n", "a INT, b STRING", None),  # a delimiter behind the last value
    ("date,time,n\n2018-03-24,17:15,1\n,,2\n", "t TIMESTAMP, n INT", None),
]


@pytest.mark.parametrize(("text", "columns", "time"), TABLES)
def test_columns_of_csv(inferred, text, columns, time) -> None:
    found = inferred("a.csv", text)
    assert (shown(found), found.time) == (columns, time)
    Engine().execute(found.statement("s"))


def test_what_is_inferred_takes_every_row_of_the_sample(inferred, tmp_path) -> None:
    for text, *_ in TABLES:
        found = inferred("a.csv", text)
        source = FileSource(str(tmp_path / "a.csv"), found.options)
        _, pieces = read(source, found.columns, found.renamed)
        rejects = [reject for piece in pieces for reject in piece.rejects]
        assert rejects == [], (text, rejects)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["1", "x", "1.5", "T", "NA", "", "2018-03-24", "07", "-"]),
                 min_size=2, max_size=2),
        min_size=1, max_size=6,
    )
)  # a table  # fmt: skip
def test_no_row_of_a_sample_is_rejected(tmp_path_factory, rows) -> None:
    path = tmp_path_factory.mktemp("sample") / "a.csv"
    path.write_text("".join(",".join(row) + "\n" for row in [["a", "b"], *rows]))
    found = infer(FileSource(str(path)))
    _, pieces = read(FileSource(str(path), found.options), found.columns, found.renamed)
    assert [reject for piece in pieces for reject in piece.rejects] == []


def test_columns_of_other_forms(inferred) -> None:
    rows = [
        {"t": "2018-03-24T17:15:20Z", "u": {"id": 7}, "l": [1], "n": "5"},
        {"t": None, "x": 1.5},
    ]
    for name, text in (("a.json", json.dumps(rows)), ("b.jsonl", "\n".join(map(json.dumps, rows)))):
        found = inferred(name, text)
        assert shown(found) == "t TIMESTAMP, u_id INT, n STRING, x FLOAT"
        assert "left out: l, which holds lists" in found.notes
    line = "1521911720.000001\tC1\t10.0.0.1\t-\tT\n1521911700.000001\tC1\t10.0.0.1\t-\tT\n"
    found = inferred("conn.log", ZEEK + line)
    assert shown(found) == (
        "ts TIMESTAMP, uid STRING, id_orig_h STRING, orig_bytes INT, local BOOL"
    )
    assert (found.time, found.slack) == ("ts", "30 SECONDS")
    found = inferred("access.log", APACHE.splitlines()[0] + "\n")
    assert found.time == "time" and "status INT" in shown(found)
    sink = pa.BufferOutputStream()
    table = pa.table(
        {
            "at": pa.array([1], pa.timestamp("ms")),
            "d": pa.array(["1.5"]).cast(pa.decimal128(8, 2)),
            "l": [[1]],
            "ts": pa.array([1521911720]),
            "w": pa.array([["a"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        }
    )
    pyarrow.parquet.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    found = inferred("a.parquet", data)
    assert shown(found) == (
        "at TIMESTAMP, d DECIMAL(8, 2), l LIST(INT), ts TIMESTAMP, w LIST(STRING)"
    )
    assert (found.time, found.options.unit) == ("ts", "s")
    assert inferred("a.parquet", data, time="at").time == "at"
    odd = {"v": pa.array(["x"], pa.string_view()), "z": pa.array([[{"a": 1}]])}
    table = pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **odd})
    for make in (pa.ipc.new_file, pa.ipc.new_stream):
        sink = pa.BufferOutputStream()
        with make(sink, table.schema) as made:
            made.write_table(table)
        other = inferred("a.arrow", sink.getvalue().to_pybytes())
        assert shown(other) == f"{shown(found)}, v STRING"
        assert (other.time, other.options.unit) == ("ts", "s")


def test_what_no_row_could_be_is_left_out_or_refused(inferred) -> None:
    rows = '{"a": 1, "b": 1, "c": true, "t": "x"}\n{"a": "x", "b": 2.5, "c": 1, "t": "y"}\n'
    found = inferred("a.jsonl", rows)
    assert shown(found) == "b FLOAT, t STRING"
    assert "left out: a, which holds values of several kinds" in found.notes
    with pytest.raises(UsageError, match=r"DS532.*2 columns called A: A, a"):
        inferred("a.csv", "A,a\n1,2\n")
    assert shown(inferred("a.csv", "A,a\n1,2\n", {"x": "A"})) == "x INT, a INT"


def test_a_time_made_of_a_day_and_a_time_with_gaps_may_be_had(inferred) -> None:
    text = "date,time,n\n2018-03-24,17:15,1\n,,2\n"
    assert inferred("a.csv", text).time is None
    found = inferred("a.csv", text, time="t")
    assert (found.time, found.renamed) == ("t", {"t": "date+time"})
    with pytest.raises(UsageError, match="DS533"):
        inferred("a.csv", text, time="u")


def test_what_the_user_says_holds(inferred) -> None:
    text = "a b;when\n1,5;2018-03-24\n"
    found = inferred("a.csv", text, {"x": "a b"}, "when", decimal=",", delimiter=";")
    assert (shown(found), found.time) == (
        "x FLOAT, when TIMESTAMP".replace("when", '"when"'),
        "when",
    )
    statement = found.statement("my stream", "RETAIN 1 DAY")
    assert statement.endswith("RETAIN 1 DAY") and '"my stream"' in statement
    assert "--decimal ," in flags(found.options)
    for time, says in (("z", "no column z"), ("a b", "no times")):
        with pytest.raises(UsageError, match=says):
            inferred("a.csv", text, None, time, delimiter=";")
    for name, data in (("a.csv", "a,b\n"), ("a.jsonl", ""), ("a.csv", "")):
        with pytest.raises(UsageError, match=r"no rows|is empty"):
            inferred(name, data)


def test_files_are_guessed_beside_a_query_of_the_users_own(inferred) -> None:
    duckdb.execute("FROM range(5000)")
    assert inferred("a.csv", "v;w\n1;2\n").columns == inferred("b.csv", "v;w\n1;2\n").columns
    assert len(duckdb.fetchall()) == 5000


def test_names_are_quoted_where_they_must_be() -> None:
    grammar = (ROOT / "grammar" / "cql.lark").read_text()
    words = re.search(r"^NAME: /\(\?!\(\?:([A-Z|]+)\)", grammar, re.MULTILINE)
    assert words is not None and {w.lower() for w in words[1].split("|")} == RESERVED
    for name in ("a", "é", "a b", 'a"b', "1a", "select", "range"):
        parse(f"CREATE STREAM s ({quoted(name)} INT)")


def test_texts_hold_what_ends_lines_of_text(inferred) -> None:
    """U+2028, U+0085, form feeds: JSON has them in its texts, and no row ends there."""
    data = "".join(json.dumps({"s": f"a{end}b"}, ensure_ascii=False) + "\n" for end in "\u2028\x85")
    assert shown(inferred("x.json", data)) == shown(inferred("y.json", '{"s": "ab"}\n'))
    assert shown(inferred("x.csv", "a;b\nx\u2028y,1;2\n")) == shown(
        inferred("y.csv", "a;b\nx,1;2\n")
    )


def test_columns_that_have_no_type_are_not_called_no_rows(inferred) -> None:
    with pytest.raises(UsageError, match=r"DS530.*no column that has one type: not a, which holds"):
        inferred("x.json", '{"a": 1.5}\n{"a": "x"}\n')
    assert shown(inferred("y.json", '{"a": 1.5}\n{"a": "NaN"}\n')) == "a FLOAT"
