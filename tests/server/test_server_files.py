"""`dsms load` of files that are odd, damaged or something else: a clear end, and an account of
every line."""

from __future__ import annotations

import gzip
import os
import threading
from random import Random

import pyarrow as pa
import pyarrow.parquet
import pytest

from dsms_client.files import csvfile, jsonfile
from dsms_client.files.open import read
from dsms_client.files.options import Options
from dsms_client.files.source import FileSource

HEAD = b"k,v\n"


@pytest.fixture
def load(dsms, tmp_path):
    """Load these bytes as a file of this name; gives (exit code, lines of stderr)."""

    def run(data, name="a.csv", *options):
        path = tmp_path / name
        path.write_bytes(data)
        code, out, err = dsms("load", str(path), "--stream", "s", *options)
        assert out == ""
        return code, err.splitlines()

    return run


@pytest.fixture
def rows(dsms):
    """What the stream s has now, as CSV."""
    return lambda: dsms("shell", "--format", "csv", "-c", "SELECT * FROM s")[1]


def told(err):
    """The summary, without its time."""
    return err[-1].rpartition(" in ")[0]


def test_rows_without_a_value_are_rows_and_empty_lines_are_not(load, rows):
    code, err = load(HEAD + b"1,0.5\n,\n\n\r\nNULL,\\N\n2,\n\n")
    assert (code, told(err)) == (0, "4 rows accepted by s, 3 empty lines left out")
    assert rows() == "k,v\n1,0.5\n,\n,\n2,\n"


def test_an_empty_line_of_one_column_is_a_row(load, rows):
    assert told(load(b"k\n1\n\n2\n\n")[1]) == "4 rows accepted by s"
    assert rows() == "k,v\n1,\n,\n2,\n,\n"


def test_lines_are_numbered_past_empty_ones_and_broken_values(load):
    code, err = load(HEAD + b'\n"1","0.5"\n\nx,1\n3,"a\n\nb"\n1\n,\n4,y\n\n')
    assert (code, err[:4]) == (
        1,
        [
            "line 5: k: 'x' is not INT",
            "line 6: v: 'a\\n\\nb' is not FLOAT",
            "line 9: 1 values for 2 columns",
            "line 11: v: 'y' is not FLOAT",
        ],
    )
    assert told(err) == "2 rows accepted by s, 4 lines rejected, 3 empty lines left out"


def test_empty_lines_are_found_in_any_block(load, monkeypatch):
    monkeypatch.setattr(csvfile, "BLOCK", 64)
    code, err = load(HEAD + b"1,1\n\n,\n" * 50 + b"x,\n", "a.csv", "--batch", "3")
    assert (code, err[0]) == (1, "line 152: k: 'x' is not INT")
    assert told(err) == "100 rows accepted by s, 1 lines rejected, 50 empty lines left out"


def test_rows_of_another_length_are_told_whatever_is_read_ahead(load, rows, monkeypatch):
    """Arrow has met them before it gives the rows before them; and can't give those that are no
    text."""
    monkeypatch.setattr(csvfile, "BLOCK", 64)
    body = b"1,1\n" * 50 + b"1,2,3\n" + b"2,\xff,3\n" + b"2,2\n" * 50 + b"3\n\xff,4,\n"
    code, err = load(HEAD + body)
    assert (code, err[:4]) == (
        1,
        [
            "line 52: 3 values for 2 columns",
            "line 53: 3 values for 2 columns",
            "line 104: 1 values for 2 columns",
            "line 105: 3 values for 2 columns",
        ],
    )
    assert told(err) == "100 rows accepted by s, 4 lines rejected"
    assert rows().endswith("\n2,2.0\n")


def test_rows_behind_one_that_is_no_text_have_their_own_bytes(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("k,v\né,1\nü,2,3\n".encode() + b"\xff,2,3\n" + "€,4\nÃ©,5\n".encode())
    _, pieces = read(
        FileSource(str(path)), (("k", "STRING"), ("v", "INT")), {}, Options(nulls=("é",))
    )
    found = list(pieces)
    batches = [row for piece in found for row in piece.batch.to_pylist()]
    assert batches == [{"k": None, "v": 1}, {"k": "€", "v": 4}, {"k": "Ã©", "v": 5}]
    assert [r.text for piece in found for r in piece.rejects] == ["ü,2,3", "\ufffd,2,3"]


@pytest.mark.parametrize("block", [8, 1 << 20])
def test_a_carriage_return_alone_ends_a_line_wherever_a_block_does(tmp_path, monkeypatch, block):
    monkeypatch.setattr(jsonfile, "BLOCK", block)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"k": 1}\r{"k": 2}\n{"k":\r3}\n{"k": 4}\r\n{"k": "x"}\n')
    found = list(read(FileSource(str(path)), (("k", "INT"),), {})[1])
    assert [row["k"] for piece in found for row in piece.batch.to_pylist()] == [1, 2, 4]
    assert [line for piece in found for line in piece.lines.tolist()] == [1, 2, 5]
    assert [reject.line for piece in found for reject in piece.rejects] == [3, 4, 6]


def test_decimals_of_too_many_digits_are_rejected_beside_any_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"d": "1000000"}\n')
    _, pieces = read(FileSource(str(path)), (("d", "DECIMAL(8,2)"),), {})
    (piece,) = pieces
    assert [reject.line for reject in piece.rejects] == [1] and not piece.batch.num_rows


def test_tokens_for_null_are_those_given_and_hold_without_quotes(load, rows):
    code, err = load(b'k,v\nNA,"1"\n"NA",2\n,3\nNULL,4\n', "a.csv", "--null", "NA")
    assert code == 1
    assert err[:3] == [
        "line 3: k: 'NA' is not INT",
        "line 4: k: '' is not INT",
        "line 5: k: 'NULL' is not INT",
    ]
    assert rows() == "k,v\n,1.0\n"


@pytest.mark.parametrize("data", [b"k,v", b"k,v\n", b"\xef\xbb\xbfk,v\r\n", b'"k","v"\n'])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_file_of_only_a_header_has_no_rows(load, data, name):
    code, err = load(gzip.compress(data) if name.endswith("gz") else data, name)
    assert (code, told(err)) == (0, "0 rows accepted by s")


def test_an_empty_file_of_json_lines_has_no_rows(load):
    for data in (b"", b"\n\n"):
        code, err = load(data, "a.jsonl")
        assert (code, told(err)) == (0, "0 rows accepted by s")


def test_a_byte_order_mark_is_no_part_of_a_name(load, rows):
    assert load(b"\xef\xbb\xbf" + HEAD + b"1,2\n")[0] == 0
    assert rows() == "k,v\n1,2.0\n"


def test_a_header_of_several_lines_moves_the_others(load):
    code, err = load(b'k,"v",",\n\n"\n1,2,3\nx,2,3\n')
    assert code == 1 and "line 5: k: 'x' is not INT" in err


@pytest.mark.parametrize("header", [b"k,v,K", b"k,k,v", b" k,K,v"])
def test_a_column_that_could_be_two_is_told(load, header):
    code, err = load(header + b"\n1,2,3\n")
    assert (
        code == 2 and "the file has 2 columns called k" in err[0] and "a name of its own" in err[1]
    )


def test_columns_that_nobody_wants_may_have_one_name(load, rows):
    assert load(b"x,k,x,v,\n1,2,3,4,\n")[0] == 0
    assert rows() == "k,v\n2,4.0\n"


OTHERS = [
    ("a.csv", b"", "is empty"),
    ("a.csv", b"\nk,v\n", "begins with an empty line"),
    ("a.csv", b'"k,v\n1,2\n', "cannot read the header"),
    ("a.csv", "k,v\n1,2\n".encode("utf-16"), "UTF-16"),
    ("a.csv", "k,v\n1,2\n".encode("utf-16-le"), "not UTF-8"),
    ("a.csv", "k,v\n1,2\n".encode("utf-32-be"), "not UTF-8"),
    ("a.csv", b"k,\xe4\n1,2\n", "not UTF-8"),
    ("a.csv", gzip.compress(HEAD), "compressed with gzip"),
    ("a.csv", b"PAR1....PAR1", "a Parquet file"),
    ("a.csv", b"ARROW1..ARROW1", "an Arrow file"),
    ("a.csv", b"\xff\xff\xff\xff\1\0\0\0", "an Arrow stream"),
    ("a.arrow", HEAD + b"1,2\n", "does not begin as Arrow does"),
    ("a.csv", b"PK\x03\x04....", "a spreadsheet"),
    ("a.csv", b"\x28\xb5\x2f\xfd....", "zstd"),
    ("a.csv.gz", HEAD + b"1,2\n", "not compressed with gzip"),
    ("a.csv.gz", gzip.compress(HEAD + b"1,2\n" * 99)[:25], "cannot read"),
    ("a.csv.gz", gzip.compress(HEAD + bytes(range(128, 227)) + b"\n")[:-20], "cannot read"),
    ("a.parquet", b"", "cannot read"),
    ("a.parquet", HEAD + b"1,2\n", "cannot read"),
    ("a.parquet.gz", gzip.compress(HEAD), "cannot read"),
    ("a.jsonl", HEAD + b"1,2\n", "is not one JSON object"),
    ("a.jsonl", "{}\n".encode("utf-16"), "UTF-16"),
    ("a.csv", b'{"k": 1}\n', "no column of the file"),
]


@pytest.mark.parametrize(
    ("name", "data", "says"), OTHERS, ids=[f"{i}-{says}" for i, (*_, says) in enumerate(OTHERS)]
)
def test_a_file_that_is_something_else_is_told(load, name, data, says):
    code, err = load(data, name)
    assert code == 2
    assert says in "\n".join(err)
    assert not any("Traceback" in line for line in err)


def test_what_is_not_text_is_rejected_with_its_line(load, rows):
    code, err = load(b"k,v\n1,2\n\xff,3\n4,5\n")
    assert (code, err[0]) == (1, "line 3: k: not UTF-8 text: b'\\xff'")
    assert rows() == "k,v\n1,2.0\n4,5.0\n"


def test_a_file_cut_short_says_how_much_was_taken(load, server, monkeypatch):
    monkeypatch.setattr(csvfile, "BLOCK", 1 << 16)
    data = gzip.compress(
        HEAD + b"".join(b"%d,%d.5\n" % (i, i * 7919 % 10007) for i in range(50_000))
    )
    code, err = load(data[: len(data) // 2], "a.csv.gz")
    assert code == 2
    accepted = int(
        err[0].partition(" rows were accepted before this; s is not ended")[0].replace(",", "")
    )
    assert 0 < accepted < 50_000 and "it is cut short" in err[2]
    assert err[1] == "--from-line".join((err[1].partition("--from-line")[0], f" {accepted + 2}"))
    assert sum(batch.num_rows for batch in server.engine.rows["s"]) == accepted
    assert server.engine.calls == []


def test_a_quote_that_is_never_closed_is_told(load, monkeypatch):
    monkeypatch.setattr(csvfile, "BLOCK", 1 << 10)
    code, err = load(HEAD + b'1,"2\n' + b"3,4\n" * 1000)
    assert code == 2
    assert "has a row of more than 1024 bytes" in "\n".join(err) and "never closed" in "\n".join(
        err
    )


def test_folders_pipes_and_files_that_may_not_be_read_are_told(dsms, tmp_path, monkeypatch):
    (tmp_path / "d.csv").mkdir()
    os.mkfifo(tmp_path / "p.csv")
    (tmp_path / "f.csv").write_bytes(HEAD)
    for name, says in (("d.csv", "it is a folder"), ("p.csv", "it is no file on disk")):
        code, _, err = dsms("load", str(tmp_path / name), "--stream", "s")
        assert code == 2 and says in err

    def refused(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refused)
    code, _, err = dsms("load", str(tmp_path / "f.csv"), "--stream", "s")
    assert code == 2 and "Permission denied" in err


def test_delimiters_are_one_ascii_character(dsms, load, rows):
    assert load(b"k;v\n1;2\n", "a.csv", "--delimiter", ";")[0] == 0
    assert rows() == "k,v\n1,2.0\n"
    for wrong in (";;", "\xa6", '"', "\n"):
        assert dsms("load", "a.csv", "--stream", "s", "--delimiter", wrong)[0] == 2


def parquet(table):
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def test_parquet_with_nested_or_double_columns(load, rows):
    nested = pa.array([{"a": 1, "k": 2}, None], pa.struct([("a", pa.int64()), ("k", pa.int64())]))
    listed = pa.array([[1], []], pa.list_(pa.int64()))
    whole, half = pa.array([1, None]), pa.array([0.5, 1.5])
    assert (
        load(
            parquet(pa.table([whole, half, nested, listed], names=["k", "v", "x", "y"])),
            "a.parquet",
        )[0]
        == 0
    )
    assert rows() == "k,v\n1,0.5\n,1.5\n"
    for column in (nested, listed):
        code, err = load(parquet(pa.table([column, half], names=["k", "v"])), "a.parquet")
        assert code == 2 and any(line.startswith("UsageError DS") for line in err)
    code, err = load(parquet(pa.table([whole, half, whole], names=["k", "v", "k"])), "a.parquet")
    assert code == 2 and "the file has 2 columns called k" in err[0]
    assert load(parquet(pa.table([whole[:0], half[:0]], names=["k", "v"])), "a.parquet")[0] == 0


def test_parquet_that_is_damaged_within_is_told(load):
    data = bytearray(
        parquet(pa.table({"k": list(range(5000)), "v": [float(i) for i in range(5000)]}))
    )
    data[40:400] = Random(1).randbytes(360)
    code, err = load(bytes(data), "a.parquet")
    assert code == 2 and "cannot read" in "\n".join(err)


def test_replay_needs_its_column_in_the_file(dsms, server, tmp_path):
    with server.peer() as peer:
        peer.ask("execute", sql="CREATE STREAM e (t TIMESTAMP, k INT)")
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"k": [1]}), path)
    code, _, err = dsms("replay", str(path), "--stream", "e", "--speed", "max")
    assert code == 2 and "the file has no column for t" in err


def test_a_load_that_ends_early_leaves_no_thread_at_work(load):
    """Arrow read ahead in a thread of its own, which met the end of the interpreter."""
    before = threading.active_count()
    assert load(HEAD + b"1,2\n" * 10 + b'3,"4\n')[0] in (0, 1)
    assert load(HEAD)[0] == 0
    assert threading.active_count() <= before + 1
