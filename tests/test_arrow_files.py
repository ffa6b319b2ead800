"""`dsms load` of Arrow IPC files and streams: whatever wrote them, however they are cut, and
whatever their sizes say."""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms.errors import DsmsError
from dsms.untrusted import messages
from dsms_client import cli
from dsms_client.files import arrowfile
from dsms_client.files.open import read
from dsms_client.files.options import Options
from dsms_client.files.source import FileSource

WORDS = ["a", "b", None, "b", "c"]
FORMS = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}
COLUMNS = [("k", "INT"), ("v", "STRING")]


def written(table: pa.Table, form: str = "file", rows: int = 2, **options: Any) -> bytes:
    out = io.BytesIO()
    with FORMS[form](out, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as sink:
        sink.write_table(table, rows)
    return out.getvalue()


Load = Callable[..., list[Any]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """The rows of these bytes; with `lines`, their numbers."""

    def run(
        data: bytes,
        columns: Any = COLUMNS,
        name: str = "a.arrow",
        rows: int = 50_000,
        lines: bool = False,
    ) -> list[Any]:
        path = tmp_path / name
        path.write_bytes(data)
        _, pieces = read(FileSource(str(path)), columns, {}, Options(), rows)
        found: list[Any] = []
        for piece in pieces:
            assert piece.batch.num_rows <= rows and not piece.rejects
            found += (
                piece.lines.tolist()
                if lines
                else [tuple(row.values()) for row in piece.batch.to_pylist()]
            )
        return found

    return run


def table() -> pa.Table:
    nested = pa.array([{"a": [1]}] * 5)
    return pa.table({"u": nested, "k": [1, 2, 3, None, 5], "v": pa.array(WORDS)})


ROWS = list(zip([1, 2, 3, None, 5], WORDS, strict=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [1, 2, 3, 50_000])
@pytest.mark.parametrize("packed", [None, "lz4", "zstd"])
def test_batches_are_cut_and_put_together(
    load: Load, form: str, rows: int, packed: str | None
) -> None:
    """Columns that nobody wants may be of any type."""
    data = written(table(), form, compression=packed)
    assert load(data, rows=rows) == ROWS
    assert load(data, rows=rows, lines=True) == [1, 2, 3, 4, 5]


ENCODED = {
    "dictionary": pa.array(WORDS).dictionary_encode(),
    "view": pa.array(WORDS, pa.string_view()),
    "large": pa.array(WORDS, pa.large_string()),
    "dictionary of views": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 1, 2]), pa.array(["a", "b", "c"], pa.string_view())
    ),
    "runs": pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 2, 3, 4, 5], pa.int32()), pa.array(WORDS)
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ENCODED)
def test_encodings_are_read_from_batches_of_any_size(load: Load, form: str, how: str) -> None:
    data = written(pa.table({"k": [1, 2, 3, None, 5], "v": ENCODED[how]}), form)
    for rows in (1, 3, 50_000):
        assert load(data, rows=rows) == ROWS


def test_dictionaries_that_grow_or_change_within_a_stream(load: Load) -> None:
    parts = [pa.array(words).dictionary_encode() for words in (["a"], ["a", "b"], ["z", "a"])]
    for deltas in (True, False):
        out, kind = io.BytesIO(), pa.schema([("v", parts[0].type)])
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
        with pa.ipc.new_stream(out, kind, options=options) as sink:
            for part in parts:
                sink.write_batch(pa.record_batch([part], schema=kind))
        assert load(out.getvalue(), [("v", "STRING")]) == [(w,) for w in "aabza"]


@pytest.mark.parametrize("how", ["lists", "dictionary of lists", "lists of a dictionary"])
def test_lists_of_several_batches(load: Load, how: str) -> None:
    lists = pa.array([["a"], None, [], ["b", None]])
    if how == "dictionary of lists":
        lists = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), lists)
    if how == "lists of a dictionary":
        mask = lists.is_null()
        lists = pa.ListArray.from_arrays(lists.offsets, lists.values.dictionary_encode(), mask=mask)
    data = written(pa.table({"l": lists}), "stream", rows=1)
    assert load(data, [("l", "LIST(STRING)")]) == [(["a"],), (None,), ([],), (["b", None],)]


def by_polars(form: str, packed: str) -> bytes:
    """No schema, and no stream, stands between the marks of such a file."""
    out = io.BytesIO()
    frame = pl.DataFrame({"k": [1, 2, 3, None, 5], "v": WORDS}).with_columns(
        c=pl.col("v").cast(pl.Categorical)
    )
    write = frame.write_ipc if form == "file" else frame.write_ipc_stream
    write(out, compression=packed)
    return out.getvalue()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packed", ["uncompressed", "lz4", "zstd"])
def test_files_of_polars(load: Load, form: str, packed: str) -> None:
    for column in ("v", "c"):
        assert load(by_polars(form, packed), [("k", "INT"), (column, "STRING")]) == ROWS


@pytest.mark.parametrize("form", FORMS)
def test_compressed_as_a_whole(load: Load, form: str) -> None:
    data = gzip.compress(written(table(), form))
    assert load(data, name="a.arrow.gz") == load(data, name="a.feather.gz") == ROWS
    with pytest.raises(DsmsError, match=r"DS530.*it is cut short: what is compressed"):
        load(data[:-20], name="a.arrow.gz")


def test_formats_of_before(load: Load) -> None:
    """No word stands before the size of metadata."""
    assert load(written(table(), "stream", use_legacy_format=True)) == ROWS


# -- damage ----------------------------------------------------------------------------------------


def test_of_a_stream_cut_short_whole_batches_are_there(load: Load, tmp_path: Path) -> None:
    data = written(table(), "stream")
    ends = []
    for end in range(len(data)):
        (tmp_path / "cut.arrow").write_bytes(data[:end])
        found: list[Any] = []
        try:
            for piece in read(FileSource(str(tmp_path / "cut.arrow")), COLUMNS, {})[1]:
                found += [tuple(row.values()) for row in piece.batch.to_pylist()]
        except DsmsError as problem:
            assert problem.code == "DS530"
            assert end < 4 or "it is cut short" in problem.message
        else:
            ends.append(len(found))
        assert found == ROWS[: len(found)]
    assert sorted(set(ends)) == [0, 2, 4, 5]  # at the end of a message nothing tells
    assert load(data) == ROWS


@given(st.data())
def test_of_a_file_cut_short_nothing_is_read(tmp_path_factory: Any, data: st.DataObject) -> None:
    made = written(table())
    path = tmp_path_factory.mktemp("cut") / "cut.arrow"
    path.write_bytes(made[: data.draw(st.integers(0, len(made) - 1))])
    with pytest.raises(DsmsError, match="DS530"):
        read(FileSource(str(path)), COLUMNS, {})


SAID = {
    "goes on": (written(table(), "stream") + b"x", "it goes on behind its end"),
    "text": (b"k,v\n1,2\n" * 9, "it does not begin as Arrow does"),
    "feather 1": (b"FEA1" * 9, "it is of Feather's first version: write it anew"),
    "empty": (b"", "it is empty"),
    "no end": (written(table())[:-3], "it is cut short, or damaged: its end is not that of"),
    "no schema": (b"\xff\xff\xff\xff" + bytes(4), "it is empty"),
    "metadata": (b"\xff" * 4 + struct.pack("<i", 1 << 30), "a message has 1073741824 bytes of"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_wrong_is_said(load: Load, name: str) -> None:
    data, said = SAID[name]
    with pytest.raises(DsmsError) as told:
        load(data)
    assert told.value.code == "DS530" and f"as Arrow: {said}" in told.value.message.replace(
        "it is damaged: a message", "a message"
    )


def test_a_message_that_is_listed_twice_is_none(load: Load) -> None:
    """A small file could become any number of rows."""
    data = written(pa.table({"k": [1, 2]}), rows=1)
    with pa.ipc.open_file(data) as file:
        assert file.num_record_batches == 2
    places = [i for i in range(0, len(data), 8) if data[i : i + 4] == b"\xff" * 4]
    first, second = (struct.pack("<q", place) for place in places[1:3])
    end = data.rindex(first)
    assert data[end : end + 48].count(second) == 1
    with pytest.raises(DsmsError, match=r"DS530.*they are in one place"):
        load(data[:end] + data[end:].replace(second, first), [("k", "INT")])


def test_sizes_are_judged_before_anything_is_made_of_them(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    zeros = pa.table({"k": np.zeros(100_000, np.int64)})
    packed = written(zeros, rows=100_000, compression="zstd")
    few = [("k", "INT")]
    monkeypatch.setattr(messages, "MOST", 800_000)
    assert len(packed) < 5000 and len(load(packed, few)) == 100_000
    monkeypatch.setattr(messages, "MOST", 799_999)
    with pytest.raises(DsmsError, match=r"DS530.*become 800000 when they are unpacked"):
        load(packed, few)
    assert len(load(written(zeros, rows=100_000), few)) == 100_000  # these have come
    monkeypatch.setattr(messages, "MAX_ROWS", 1000)
    nothing = pa.table({"k": pa.nulls(100_000)})
    with pytest.raises(DsmsError, match=r"DS530.*hold 100000 values"):
        load(written(nothing, rows=100_000), few)
    assert len(load(written(zeros, rows=100_000), few)) == 100_000


def test_a_dictionary_that_stands_for_far_too_much(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int8)), ["x" * 10_000])
    data = written(pa.table({"v": words}), rows=1000)
    few = [("v", "STRING")]
    monkeypatch.setattr("dsms.untrusted.batches.MOST", 10_000_000)
    assert len(load(data, few)) == 1000
    monkeypatch.setattr("dsms.untrusted.batches.MOST", 9_999_999)
    with pytest.raises(DsmsError, match=r"DS530.*1000 values of 'v' are 10000000 bytes in full"):
        load(data, few)


def test_columns_are_judged_as_far_as_they_are_taken(load: Load) -> None:
    with pytest.raises(DsmsError, match=r"DS503: column 'u': a struct has no field of"):
        load(written(table()), [("u", "INT")])
    wrong = written(pa.table({"abc": [1], "k": [1]})).replace(b"abc", b"\xff\xfec")
    with pytest.raises(DsmsError, match="DS530"):
        load(wrong, [("k", "INT")])


@pytest.mark.parametrize(
    "words", ["a.arrow --follow", "a.feather --follow", "a.dat --format arrow --follow"]
)
def test_only_text_is_followed(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["load", *words.split(), "--stream", "s", "--port", "1"]) == 2
    assert "only files of text grow" in capsys.readouterr().err


def test_many_tiny_batches_are_put_together_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tiny:
        asked = 0

        @property
        def num_rows(self) -> int:
            Tiny.asked += 1
            return 1

    monkeypatch.setattr(arrowfile, "together", len)
    batches: Any = (Tiny() for _ in range(1000))
    assert list(arrowfile.gathered(batches, 600)) == [600, 400]
    assert Tiny.asked <= 3 * 1000  # not all that wait, for each that comes
