"""Files in the forms that others write: what the readers of `dsms load` make of them."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import io
import json
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.errors import UsageError
from dsms.instants import instant
from dsms_client.files import blocks, json_array, text, times
from dsms_client.files.blocks import end_of_rows
from dsms_client.files.open import read
from dsms_client.files.options import Options
from dsms_client.files.report import Reporter
from dsms_client.files.send import LoadJob, Sender
from dsms_client.files.several import PER_FILE, Files, expand, in_turn, merged
from dsms_client.files.source import FileSource
from dsms_client.results import IngestReport
from tests.effort import examples

T = ("t", "TIMESTAMP")
ONE = instant("2018-03-24 17:15:20")


@pytest.fixture
def taken(tmp_path):
    """Rows and rejects of these bytes, as a file of that name."""

    def run(name: str, data: bytes | str, columns: Any, renamed: Any = None, **options: Any):
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        source = FileSource(str(path), Options(**options))
        _, pieces = read(source, columns, renamed or {})
        found = list(pieces)
        rows = [tuple(r.values()) for p in found for r in p.batch.to_pylist()]
        return rows, [f"{r.line}: {r.reason}" for p in found for r in p.rejects]

    return run


FORMATS = [
    ("2018/03/24 17:15:20", "%Y/%m/%d %H:%M:%S", ONE),
    ("24/Mar/2018:17:15:20 +0000", "%d/%b/%Y:%H:%M:%S %z", ONE),
    ("24/mar/2018:19:15:20 +02:00", "%d/%b/%Y:%T %z", ONE),
    ("Sat Mar 24 17:15:20.5 2018", "%a %b %d %H:%M:%S.%f %Y", ONE + 500_000),
    ("3/24/18 5:15:20 pm", "%m/%d/%y %I:%M:%S %p", ONE),
    ("12 am 2018-083", "%I %p %Y-%j", instant("2018-03-24")),
    ("March 24, 2018", "%B %d, %Y", instant("2018-03-24")),
    ("100% 2018-03-24", "100%% %F", instant("2018-03-24")),
    ("2018-02-29", "%Y-%m-%d", None),
    ("2018-13-01", "%Y-%m-%d", None),
    ("24/Foo/2018", "%d/%b/%Y", None),
    ("13 pm 2018-083", "%I %p %Y-%j", None),
    ("2018-366", "%Y-%j", None),
    ("24.03.2018 25:00", "%d.%m.%Y %H:%M", None),
    ("", "%Y", None),
]


@pytest.mark.parametrize(("text", "form", "expected"), FORMATS[:-1])
def test_times_in_formats(text: str, form: str, expected: int | None) -> None:
    assert times.by_format(pa.array([text, None, "x"]), form, None).to_pylist() == [
        expected,
        None,
        None,
    ]


@given(st.datetimes(min_value=datetime(1900, 1, 1)))
@settings(max_examples=examples(60), deadline=None)
def test_formats_read_what_python_writes(moment: Any) -> None:
    for form in ("%Y/%m/%d %H:%M:%S.%f", "%d %b %Y %I:%M:%S.%f %p", "%B %d %Y %H:%M:%S.%f"):
        (got,) = times.by_format(pa.array([moment.strftime(form)]), form, None).to_pylist()
        assert got == instant(moment.isoformat(" "))


def test_times_of_a_zone(taken) -> None:
    lines = "t\n2018-03-25 01:59:59\n2018-03-25 02:30:00\n2018-10-28 02:30:00\n2018-07-01T00:00Z\n"
    rows, rejects = taken("a.csv", lines + "2018-07-01 02:00+02:00\n", [T], zone="Europe/Berlin")
    expected = ("2018-03-25 00:59:59", "2018-10-28 00:30:00", "2018-07-01", "2018-07-01")
    assert rows == [(instant(one),) for one in expected]
    assert rejects == [
        "3: t: '2018-03-25 02:30:00' is not TIMESTAMP: the clocks of Europe/Berlin skip it"
    ]
    with pytest.raises(UsageError, match="unknown time zone"):
        times.check_zone("Europe/Belrin")


def test_other_forms_of_times_are_named(taken) -> None:
    _, rejects = taken("a.csv", "t\n2018/03/24\n4/5/2018\n", [T])
    assert rejects[0].endswith("give --time-format '%Y/%m/%d'")
    assert rejects[1].endswith("give --time-format '%m/%d/%Y' or '%d/%m/%Y'")
    for wrong in ("%Y", "%Q", "%Y-%m-%d %Y", "%H:%M"):
        with pytest.raises(UsageError, match="is no format of times"):
            times.compiled(wrong)


def test_numbers_as_others_write_them(taken) -> None:
    columns = [("f", "FLOAT"), ("i", "INT"), ("b", "BOOL")]
    text = "f;i;b\n21,5;1.234;T\n-,5;7,0;f\n1\u00a0000,25;;true\n1.5;1;F\n1;2;yes\n"
    rows, rejects = taken("a.csv", text, columns, delimiter=";", decimal=",")
    assert rows == [(21.5, 1234, True), (-0.5, 7, False), (1000.25, None, True)]
    assert [r[:4] for r in rejects] == ["5: f", "6: b"]
    assert taken("b.csv", 'f\n"2,5"\n', columns[:1])[1] == [
        "2: f: '2,5' is not FLOAT: give --decimal ,"
    ]
    times = "t\n1,5\n2\n-0,000001\n3.5\n"
    rows, _ = taken("c.csv", times, [T], delimiter=";", decimal=",", unit="s")
    assert [t for (t,) in rows] == [1_500_000, 2_000_000, -1, 3_500_000]


def test_files_without_names(taken) -> None:
    columns = [("a", "INT"), ("b", "STRING")]
    assert taken("a.csv", "1,x\n2,y\n", columns, names=()) == ([(1, "x"), (2, "y")], [])
    assert taken("a.csv", "1,x,9\n", columns, names=())[0] == [(1, "x")]
    assert taken("a.csv", "", columns, names=()) == ([], [])
    rows, _ = taken("a.txt", "# about\nx 1\n y  2 \n", columns, names=("b", "a"), skip="#")
    assert rows == [(1, "x"), (2, "y")]
    text = "2018-03-24 17:15:20 3\n2018-03-24 - 3\n"
    rows, rejects = taken(
        "m.txt", text, [T, ("n", "INT")], {"t": "date+time"}, names=("date", "time", "n")
    )
    assert rows == [(ONE, 3)]
    assert rejects[0].startswith("2: t: '2018-03-24 -' is not TIMESTAMP")


@pytest.mark.parametrize("delimiter", ["\t", ";", "|", " "])
def test_what_divides_values_of_a_text_file_is_found(taken, delimiter: str) -> None:
    text = "\n".join(delimiter.join(row) for row in (("a", "b"), ("1", "2"), ("3", "4")))
    assert taken("a.txt", text, [("a", "INT"), ("b", "INT")])[0] == [(1, 2), (3, 4)]


ZEEK = (
    "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tconn\n"
    "#fields\tts\tuid\tid.orig_h\torig_bytes\tlocal\n#types\ttime\tstring\taddr\tcount\tbool\n"
)


def test_logs_of_zeek(taken) -> None:
    text = (
        ZEEK
        + '1521911720.000001\tC"1\t10.0.0.1\t-\tT\n#close\t2018\n1521911720\tC2\t::1\t7\tF\nx\n'
    )
    columns = [("ts", "TIMESTAMP"), ("uid", "STRING"), ("id_orig_h", "STRING")]
    columns += [("orig_bytes", "INT"), ("local", "BOOL")]
    for name in ("conn.log", "conn.log.gz"):
        data = gzip.compress(text.encode()) if name.endswith("gz") else text
        rows, rejects = taken(name, data, columns)
        assert rows == [
            (ONE + 1, 'C"1', "10.0.0.1", None, True),
            (ONE, "C2", "::1", 7, False),
        ]
        assert rejects == ["11: 1 values for 5 columns"]
    with pytest.raises(UsageError, match="does not begin with `#separator`"):
        taken("a.csv", "ts\n1\n", columns, kind="zeek")


APACHE = (
    r'h1 - bob [24/Mar/2018:17:15:20 +0000] "GET /a\"b HTTP/1.1" 200 12 "-" "x y"' + "\n"
    'h2 - - [24/Mar/2018:18:15:20 +0100] "-" 408 -\n'
    "\nh3 - - [24/Mar/2018] nonsense\n"
    'h4 - - [2018] "GET / HTTP/1.0" 200 1\n'
)


def test_logs_of_web_servers(taken) -> None:
    columns = [("time", "TIMESTAMP"), ("host", "STRING"), ("user", "STRING"), ("path", "STRING")]
    columns += [("status", "INT"), ("bytes", "INT"), ("agent", "STRING")]
    rows, rejects = taken("access.log", APACHE, columns)
    assert rows == [
        (ONE, "h1", "bob", r"/a\"b", 200, 12, "x y"),
        (ONE, "h2", None, None, 408, None, None),
    ]
    assert [r[:2] for r in rejects] == ["4:", "5:"]
    assert rejects[0].endswith("not a line of such a log")


def test_lines_by_a_pattern(taken) -> None:
    pattern = r"^(?P<k>\w+)=(?<v>.*)$"
    columns = [("k", "STRING"), ("v", "INT")]
    rows, rejects = taken("a.txt", "a=1\nb=x\n\nno\n", columns, kind="lines", pattern=pattern)
    assert rows == [("a", 1)]
    assert rejects == ["2: v: 'x' is not INT", "4: the pattern does not match"]
    for wrong in ("(", None):
        with pytest.raises(UsageError, match=r"pattern|what the lines"):
            taken("a.txt", "a=1\n", columns, kind="lines", pattern=wrong)


NESTED = [{"user": {"name": "é", "id": 1}, "x.y": 2}, {"user": None}, {"user": {"name": "b"}}]


@pytest.mark.parametrize("block", [7, 1 << 20])
@pytest.mark.parametrize("form", ["lines", "array", "indented", "objects"])
def test_nested_json_and_arrays(taken, monkeypatch, form: str, block: int) -> None:
    monkeypatch.setattr("dsms_client.files.jsonfile.BLOCK", block)
    text = {
        "lines": "\n".join(json.dumps(one, ensure_ascii=False) for one in NESTED),
        "array": json.dumps(NESTED),
        "indented": json.dumps(NESTED, indent=1, ensure_ascii=False),
        "objects": "\n".join(json.dumps(one, indent=2) for one in NESTED),
    }[form]
    columns = [("name", "STRING"), ("user_id", "INT"), ("z", "INT")]
    renamed = {"name": "user.name", "z": "x.y"}
    rows, rejects = taken("a.json", text, columns, renamed)
    assert rows == [("é", 1, 2), (None, None, None), ("b", None, None)]
    assert rejects == []


LISTS = [
    ("LIST(TIMESTAMP)", '"x"', None),
    ("LIST(TIMESTAMP)", '"[\\"2020-01-01\\"]"', '["2020-01-01 00:00:00"]'),
    ("LIST(INTERVAL)", '"[1, 2]"', None),
    ("LIST(INTERVAL)", '"null"', None),
    ("LIST(BYTES)", '"[\\"FF\\"]"', '["ff"]'),
    ("LIST(DECIMAL(5,2))", '"[1.5]"', "[1.50]"),
    ("LIST(DECIMAL(5,2))", '"[1000]"', None),
    ("LIST(INT)", "[1.0, 2.00,3]", "[1, 2, 3]"),
    ("LIST(INT)", "[1.05]", None),
    ("LIST(INT)", "[1.0e0]", None),
    ("LIST(FLOAT)", "[9007199254740993]", None),
    ("LIST(FLOAT)", "[9007199254740994, 0.1]", "[9007199254740994.0, 0.1]"),
    ("LIST(FLOAT)", "[1e400]", None),
    ("LIST(FLOAT)", "[NaN, -Infinity]", '["NaN", "-Infinity"]'),
    ("LIST(STRING)", "[NaN]", None),
    ("LIST(INT)", "[NaN]", None),
]


@pytest.mark.parametrize("beside", ["", '{"l": 1}\n'], ids=["whole", "by line"])
@pytest.mark.parametrize(("sql", "written", "wanted"), LISTS)
def test_lists_in_json(taken, sql: str, written: str, wanted: str | None, beside: str) -> None:
    """A text that was no list ended the whole load; what was rounded was taken."""
    rows, rejects = taken("f.jsonl", f'{{"l": {written}}}\n{beside}', [("l", sql)])
    assert rows == ([] if wanted is None else [(wanted,)])
    assert len(rejects) == (wanted is None) + bool(beside)


def test_lists_in_csv(taken) -> None:
    lines = ["l", '"[1.0, 2]"', '"[9007199254740993]"', "[]", '""', "x"]
    for sql, wanted in (
        ("INT", ["[1, 2]", "[9007199254740993]", "[]"]),
        ("FLOAT", ["[1.0, 2.0]", "[]"]),
    ):
        rows, rejects = taken("f.csv", "\n".join(lines), [("l", f"LIST({sql})")])
        assert rows == [(one,) for one in wanted]
        assert len(rejects) == 5 - len(wanted)


def test_an_empty_array_has_no_rows(taken) -> None:
    for empty in ("[]", " [ \n]\n", ""):
        assert taken("a.json", empty, [("k", "INT")]) == ([], [])


def test_arrays_that_end_too_early_are_told(taken) -> None:
    with pytest.raises(UsageError, match="is not JSON from line 2"):
        taken("a.json", '[{"k": 1},\n{"k": ', [("k", "INT")])
    rows, rejects = taken("a.json", '[{"k": 1},\n {"k": "x"},\n7]', [("k", "INT")])
    assert rows == [(1,)]
    assert rejects == ['2: k: "x" is not INT', "3: not an object but a number"]
    assert list(json_array.elements(b'[{"a": 1}, {"b": [2]')) == ['{"a": 1}']


def test_compressed_and_recoded(taken) -> None:
    data = "k,v\né,1\n"
    columns = [("k", "STRING"), ("v", "INT")]
    zst = pa.compress(data.encode(), "zstd", asbytes=True)
    for name, packed in (
        ("a.csv.gz", gzip.compress(data.encode())),
        ("a.csv.bz2", bz2.compress(data.encode())),
        ("a.csv.zst", zst),
    ):
        assert taken(name, packed, columns) == ([("é", 1)], [])
    for encoding in ("latin-1", "utf-16", "utf-16-le", "cp1252"):
        assert taken("a.csv", data.encode(encoding), columns, encoding=encoding)[0] == [("é", 1)]
    with pytest.raises(UsageError, match=r"is not utf-8|--encoding latin-1"):
        taken("a.csv", data.encode("latin-1") + b"\xff", columns, encoding="utf-8-sig")


def test_parquet_compressed_as_a_whole(taken) -> None:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table({"d": ["2018-03-24"], "h": ["17:15:20"]}), sink)
    data = gzip.compress(sink.getvalue().to_pybytes())
    assert taken("a.parquet.gz", data, [T], {"t": "d+h"})[0] == [(ONE,)]


CELLS = st.sampled_from(["a", "", '"', '"x"', '"a\nb"', '"a""b"', '""', 'a"b', "\r\n", "é", '"a'])


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.lists(CELLS, min_size=1, max_size=3), max_size=8), st.integers(1, 40))
def test_blocks_end_where_rows_do(rows: list[list[str]], size: int) -> None:
    """A cut in any block is one of the whole text."""
    data = "".join(",".join(row) + "\n" for row in rows).encode()
    at, cuts = 0, []
    while at < len(data):
        cut = 0
        stop = at
        while not cut and stop < len(data):
            stop += size
            cut = end_of_rows(data[at:stop], ",")
        if not cut:
            break
        at += cut
        cuts.append(at)
    assert set(cuts) <= ends_of_rows(data)


def ends_of_rows(data: bytes) -> set[int]:
    """Behind each line end that is in no quotes, byte by byte: a quote at the beginning of a value
    opens it, the next one that is not doubled closes it."""
    ends, state = set(), "begin"
    for place, char in enumerate(data.decode("latin-1"), 1):
        if state in ("begin", "closed") and char == '"':
            state = "quoted"
        elif state == "quoted":
            state = "closed" if char == '"' else "quoted"
        elif char in ",\r\n":
            state = "begin"
            if char == "\n":
                ends.add(place)
        else:
            state = "plain"
    return ends


def test_wrong_values_are_told_at_the_rate_of_the_file(taken, monkeypatch) -> None:
    """Each was found by halves, with as many casts as twice the rows."""
    casts: list[str] = []
    whole = text._whole

    def counted(texts: pa.Array, sql: str) -> pa.Array:
        casts.append(sql)
        return whole(texts, sql)

    monkeypatch.setattr(text, "_whole", counted)
    lines = "t,i\n" + "soon,x\n" * 500 + "2018-03-24,1\n"
    rows, rejects = taken("a.csv", lines, [T, ("i", "INT")])
    assert (len(rows), len(rejects)) == (1, 500)
    assert len(casts) < 5


def files(paths: list[Path], columns: Any, follow: threading.Event | None = None) -> Files:
    return Files(
        tuple(map(str, paths)), tuple(columns), {}, Options(), 50, lambda *_: None, print, follow
    )


def test_several_files_in_turn_and_by_time(tmp_path) -> None:
    columns = [("t", "INT"), ("k", "STRING")]
    texts = {"b": "t,k\n1,b\n4,b\n9,b\n", "a": "t,k\n2,a\n1,a\nx,a\n4,a\n", "c": "t,k\n"}
    for name, lines in texts.items():
        (tmp_path / f"{name}.csv").write_text(lines)
    found = [Path(p) for p in expand([str(tmp_path / "*.csv")])]
    assert [p.name for p in found] == ["a.csv", "b.csv", "c.csv"]
    pieces = list(in_turn(files(found, columns)))
    assert [r["k"] for p in pieces for r in p.batch.to_pylist()] == list("aaabbb")
    assert [divmod(r.line, PER_FILE) for p in pieces for r in p.rejects] == [(0, 4)]
    pieces = list(merged(files(found, columns), lambda b: b.column("t").to_numpy()))
    rows = [tuple(r.values()) for p in pieces for r in p.batch.to_pylist()]
    assert rows == [(1, "b"), (2, "a"), (1, "a"), (4, "a"), (4, "b"), (9, "b")]
    lines = [divmod(int(line), PER_FILE) for p in pieces for line in p.lines]
    assert lines == [(1, 2), (0, 2), (0, 3), (0, 5), (1, 3), (1, 4)]
    assert len([r for p in pieces for r in p.rejects]) == 1
    with pytest.raises(UsageError, match="no file is called like"):
        expand([str(tmp_path / "*.xyz")])


def test_a_file_that_grows_and_is_rotated(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("dsms_client.files.source.POLL", 0.001)
    monkeypatch.setattr("dsms_client.files.several.POLL", 0.001)
    path, stop = tmp_path / "a.csv", threading.Event()
    pieces = in_turn(files([path], [("k", "INT")], stop))
    path.write_text("k\n1\n2")
    rows: list[int] = []

    def until(count: int) -> None:
        while len(rows) < count:
            rows.extend(next(pieces).batch.column(0).to_pylist())

    until(1)
    with path.open("a") as file:
        file.write("2\n3\n")
    until(3)
    path.rename(tmp_path / "a.csv.1")
    path.write_text("k\n4\n")
    until(4)
    stop.set()
    assert rows == [1, 22, 3, 4] and list(pieces) == []


def test_a_pipe_is_read_as_it_comes(tmp_path) -> None:
    """Standard input: its kind and compression by how it begins."""
    program = (
        "from dsms_client.files.source import FileSource\n"
        "from dsms_client.files.open import read\n"
        "from dsms_client.files.infer import infer\n"
        "source = FileSource('-')\n"
        "assert infer(source).columns[0] == ('k', 'INT')\n"  # and is still there to be read
        "_, pieces = read(source, [('k', 'INT')], {})\n"
        "print(source.kind, [r for p in pieces for r in p.batch.to_pylist()])\n"
    )
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table({"k": [3]}), sink)
    streamed = pa.BufferOutputStream()
    with pa.ipc.new_stream(streamed, pa.schema({"k": pa.int64()})) as made:
        made.write_table(pa.table({"k": [4]}))
    filed = pa.BufferOutputStream()
    with pa.ipc.new_file(filed, pa.schema({"k": pa.int64()})) as made:
        made.write_table(pa.table({"k": [5]}))
    for data, says in (
        (streamed.getvalue().to_pybytes(), "arrow [{'k': 4}]"),
        (gzip.compress(filed.getvalue().to_pybytes()), "arrow [{'k': 5}]"),
        (b"k,v\n1,2\n", "csv [{'k': 1}]"),
        (gzip.compress(b'{"k": 2}\n'), "jsonl [{'k': 2}]"),
        (sink.getvalue().to_pybytes(), "parquet [{'k': 3}]"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program], input=data, capture_output=True, check=True
        )
        assert done.stdout.decode().strip() == says


def test_blocks_are_whole_rows(monkeypatch) -> None:
    found = list(blocks.blocks(io.BytesIO(b'1,"a\nb"\n2,c\n3,d'), 8, ",", "a.csv"))
    assert found == [b'1,"a\nb"\n', b"2,c\n", b"3,d"]


class Slow:
    """A client whose server answers when it is told to."""

    def __init__(self) -> None:
        self.taken, self.answers = 0, asyncio.Event()

    async def ingest(self, stream: str, batch: Any, positions: bool, upsert: bool) -> IngestReport:
        self.taken += batch.num_rows
        await self.answers.wait()
        return IngestReport(accepted=batch.num_rows)


def test_an_interrupted_load_goes_on_behind_all_that_was_taken(capsys) -> None:
    """Though it waits for an answer when it is interrupted, and several batches are on their
    way."""
    client = Slow()

    async def run() -> None:
        with Reporter(None, False) as reporter:
            reporter.begin(["x.csv"])
            job = LoadJob(("x.csv",), "s", {})

            async def sent() -> None:
                async with Sender(client, "s", reporter, job) as sender:
                    for k in range(100):
                        rows = pa.record_batch({"k": [k] * 10})
                        await sender.send(rows, np.arange(10 * k + 2, 10 * k + 12))

            task = asyncio.create_task(sent())
            while client.taken < 40 and not task.done():
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(0)
            client.answers.set()
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(run())
    told = capsys.readouterr().err
    assert client.taken == 40
    assert "40 rows were accepted" in told and "--from-line 42" in told
