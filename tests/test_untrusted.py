"""Arrow bytes from outside: whatever is wrong with them gets DS503 or DS510, and no process dies of
it."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.intake import convert
from dsms.sql.types import arrow_schema
from dsms.untrusted import contents, stream
from dsms.untrusted.stream import read_stream
from dsms_client.files import parquetfile
from dsms_client.files.options import Options
from dsms_client.files.source import FileSource
from dsms_server.decode import Payload, StreamShape
from tests.faults import arrow
from tests.faults.arrow_seeds import seeds, stream_bytes

FEW = 1500


def code_of(data: bytes) -> str | None:
    try:
        read_stream(data)
    except DsmsError as problem:
        return problem.code
    return None


def shape(columns: str) -> StreamShape:
    engine = Engine()
    engine.execute(f"CREATE STREAM f ({columns})")
    definition = engine.runtime.catalog.streams["f"]
    return StreamShape("f", definition.schema)


def frame_code(data: bytes, columns: str) -> str | None:
    """What a frame of these bytes ends in."""
    payload, target = Payload("arrow", memoryview(data)), shape(columns)
    try:
        rows = payload.fitted(target)
    except DsmsError as problem:
        return problem.code
    assert [c.type for c in rows.columns] == arrow_schema(target.schema).types
    return None


def with_numbers(data: bytes, was: tuple[int, ...], now: tuple[int, ...]) -> bytes:
    """The bytes with a run of int32s replaced, wherever it is first."""
    old = struct.pack(f"<{len(was)}i", *was)
    assert old in data
    return data.replace(old, struct.pack(f"<{len(now)}i", *now), 1)


# -- types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.decimal128(21, 3), pa.decimal256(21, 3)])
@pytest.mark.parametrize("scale", [16777218, -39, -77, 77, 2**31 - 1, -(2**31)])
def test_a_decimal_of_an_impossible_scale(kind: pa.DataType, scale: int) -> None:
    data = stream_bytes(pa.table({"d": pa.array([1, 2], kind)}))
    assert frame_code(data, "d DECIMAL(10,2)") is None
    assert with_numbers(data, (3,), (scale,)) != data
    bad = next(b for b in _each_place(data, 3, scale) if _scale_of(b) == scale)
    for columns in ("d DECIMAL(10,2)", "d INT", "d FLOAT", "d STRING"):
        assert frame_code(bad, columns) in ("DS503", "DS510")


def _each_place(data: bytes, was: int, now: int) -> list[bytes]:
    places = [i for i in range(0, len(data) - 3, 4) if data[i : i + 4] == struct.pack("<i", was)]
    return [data[:i] + struct.pack("<i", now) + data[i + 4 :] for i in places]


def _scale_of(data: bytes) -> int | None:
    try:
        with pa.ipc.open_stream(data) as reader:
            return reader.schema.field(0).type.scale
    except (pa.ArrowException, OSError, AttributeError):
        return None


@pytest.mark.parametrize(
    "kind", [pa.decimal256(20, 16777218), pa.decimal128(20, -39), pa.decimal128(5, 39)]
)
def test_in_process_too(kind: pa.DataType) -> None:
    engine = Engine()
    engine.execute("CREATE STREAM f (d DECIMAL(10,2))")
    engine.advance(1)
    for rows in (pa.table({"d": pa.nulls(3, kind)}), {"d": pa.nulls(3, kind)}):
        with pytest.raises(DsmsError, match=r"DS503.*column 'd'.*(no decimal has|39 zeros)"):
            engine.ingest("f", rows)


@pytest.mark.parametrize(
    "columns",
    ["c STRING", "c BYTES", "c INT", "c TIMESTAMP", "c DECIMAL(10,2)", "c LIST(STRING)"],
)
def test_every_valid_stream_is_taken_or_refused(columns: str) -> None:
    for data in seeds():
        assert frame_code(data, columns) in (None, "DS501", "DS503")


def views(form: str) -> list[pa.Array]:
    out = []
    for kind in (pa.string_view(), pa.binary_view()):
        values = pa.array(["x", None, "a text of over twelve bytes"], kind)
        if form == "dictionary":
            out.append(pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 2]), values))
        else:
            out.append(pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 4], pa.int32()), values))
    return out


@pytest.mark.parametrize("form", ["dictionary", "runs"])
def test_encoded_views_are_written_out(form: str) -> None:
    for array, columns in zip(views(form), ("c STRING", "c BYTES"), strict=True):
        for piece in (array, array.slice(1, 3), array.slice(0, 0)):
            for table in (pa.table({"c": piece}), pa.concat_tables([pa.table({"c": piece})] * 2)):
                payload = Payload("arrow", memoryview(stream_bytes(table)))
                got = payload.fitted(shape(columns)).columns[0].to_pylist()
                words = ["x", None, *["a text of over twelve bytes"] * 2]
                want = words[piece.offset : piece.offset + len(piece)]
                as_bytes = columns == "c BYTES"
                assert got == [w.encode() if w and as_bytes else w for w in want] * (
                    table.num_rows // max(1, len(want))
                )


def test_names_that_are_not_utf8() -> None:
    data = stream_bytes(pa.table({"abc": [1, 2]})).replace(b"abc", b"\xff\xfec")
    assert code_of(data) == "DS510"


def test_parquet_files_are_judged_by_the_columns_that_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"k": [1, 2], "other": [[[1]], [[2]]]}), path)
    known = [("k", "INT")]
    _, pieces = parquetfile.read(FileSource(str(path)), known, {}, 10, Options())
    assert [piece.batch.num_rows for piece in pieces] == [2]
    with pytest.raises(DsmsError, match=r"DS503: column 'other': .* Arrow type list"):
        parquetfile.read(FileSource(str(path)), [*known, ("other", "INT")], {}, 10, Options())
    path.write_bytes(path.read_bytes().replace(b"other", b"oth\xffr"))
    with pytest.raises(DsmsError, match="DS530"):
        parquetfile.read(FileSource(str(path)), known, {}, 10, Options())


# -- sizes -----------------------------------------------------------------------------------------


def test_compressed_buffers_are_judged_by_what_they_declare(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zeros = pa.table({"v": np.zeros(10_000, np.int64)})
    for codec in ("lz4", "zstd"):
        data = stream_bytes(zeros, compression=codec)
        monkeypatch.setattr(stream, "LIMIT", 80_000)
        assert len(data) < 2_000 and code_of(data) is None
        monkeypatch.setattr(stream, "LIMIT", 79_999)
        assert code_of(data) == "DS510"
        monkeypatch.undo()
        huge = data.replace(struct.pack("<q", 80_000), struct.pack("<q", 1 << 45))
        assert huge != data and code_of(huge) == "DS510"


FORMS = [
    "dictionary",
    "runs",
    "view",
    "lists of a dictionary",
    "views of a dictionary",
    "lists of runs",
    "a dictionary of lists",
]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_out_is_bounded(form: str) -> None:
    word, rows = "x" * 100_000, 10_000
    codes = pa.array(np.zeros(rows, np.int8))
    if form == "lists of a dictionary":
        items = pa.DictionaryArray.from_arrays(codes, [word])
        array = pa.ListArray.from_arrays(pa.array([0, 1, rows], pa.int32()), items)
    elif form == "views of a dictionary":
        items = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), [word])
        places = pa.array(np.zeros(rows, np.int32))
        array = pa.ListViewArray.from_arrays(places, pa.array(np.full(rows, 2, np.int32)), items)
    elif form == "lists of runs":
        items = pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array([word]))
        array = pa.LargeListArray.from_arrays(pa.array([0, 1, rows]), items)
    elif form == "a dictionary of lists":
        array = pa.DictionaryArray.from_arrays(codes, pa.array([[word, None], None]))
    elif form == "dictionary":
        array = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array([word]))
    elif form == "runs":
        array = pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array([word]))
    else:
        one = pa.array([word], pa.string_view()).buffers()
        array = pa.Array.from_buffers(
            pa.string_view(), rows, [None, pa.py_buffer(one[1].to_pybytes() * rows), one[2]]
        )
    data = stream_bytes(pa.table({"c": array}))
    assert len(data) < 1 << 19 and code_of(data) == "DS510"


def _listed(form: str, count: int) -> pa.Array:
    """One list of so many items that have hardly any bytes."""
    ends = pa.array([0, count], pa.int32())
    match form:
        case "runs":
            runs = pa.RunEndEncodedArray.from_arrays(pa.array([count], pa.int32()), pa.nulls(1))
            return pa.ListArray.from_arrays(ends, runs)
        case "no width":
            empty = pa.Array.from_buffers(pa.binary(0), count, [None, pa.py_buffer(b"")])
            return pa.ListArray.from_arrays(ends, empty)
        case "view":
            return pa.ListViewArray.from_arrays(
                ends[:1], pa.array([count], pa.int32()), pa.nulls(count)
            )
        case "dictionary":
            lists = pa.ListArray.from_arrays(ends, pa.nulls(count))
            return pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), lists)
    return pa.ListArray.from_arrays(ends, pa.nulls(count))


@pytest.mark.parametrize("form", ["nulls", "runs", "no width", "view", "dictionary"])
def test_items_without_bytes_are_bounded(form: str) -> None:
    data = stream_bytes(pa.table({"c": _listed(form, 1 << 24)}))
    assert len(data) < 1000 and code_of(data) == "DS510"
    assert code_of(stream_bytes(pa.table({"c": _listed(form, 1 << 16)}))) is None


@pytest.mark.parametrize("form", ["nulls", "runs", "view", "dictionary"])
def test_a_list_of_too_many_items_is_not_looked_through(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    engine.execute("CREATE STREAM f (c LIST(INT))")
    engine.advance(1)
    monkeypatch.setattr(convert, "as_builtin", None)  # of each row, with all of its items
    with pytest.raises(DsmsError, match=r"DS503.*65537 items in row 0: 65536 are the most"):
        engine.ingest("f", pa.table({"c": _listed(form, (1 << 16) + 1)}))


def test_rows_without_bytes_are_bounded() -> None:
    data = stream_bytes(pa.table({"c": pa.nulls(contents.MAX_ROWS + 1)}))
    assert len(data) < 1000 and code_of(data) == "DS510"
    many = stream_bytes(pa.table({"c": pa.nulls(contents.MAX_ROWS)}))
    assert code_of(many) is None
    assert frame_code(many, ", ".join(f"c{i or ''} INT" for i in range(9))) == "DS510"


@pytest.mark.skipif(not hasattr(pa.ipc, "Alignment"), reason="needs a newer pyarrow")
def test_columns_stand_where_kernels_want_them() -> None:
    data = stream_bytes(pa.table({"v": np.arange(1000)}))
    for shift in range(8):
        memory = bytes(shift) + data
        column = read_stream(memoryview(memory)[shift:]).column(0).chunk(0)
        assert column.to_numpy().flags.aligned and column[999].as_py() == 999


# -- at random -------------------------------------------------------------------------------------


def test_kept_inputs() -> None:
    """Each of these has once ended the child."""
    kept = sorted(map(str, arrow.KEPT.glob("*.arrow")))
    if kept:
        subprocess.run(
            [sys.executable, "-m", "tests.faults.arrow_child", *kept], check=True, cwd=arrow.ROOT
        )


def test_a_few_damaged_frames() -> None:
    death, ends = arrow.run(0, FEW)
    assert death is None, death
    assert "taken=" in ends and "DS503=" in ends and "DS510=" in ends


def test_a_death_is_noticed_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(arrow, "KEPT", tmp_path)
    monkeypatch.setenv("DSMS_TEST_DIE_AT", "3")
    death, _ = arrow.run(0, 10)
    assert death is not None and (death.number, death.how) == (3, "SIGSEGV")
    assert death.keep().read_bytes() == arrow.damaged(seeds(), 3)


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(10))
def test_many_damaged_frames(part: int) -> None:
    death, _ = arrow.run(10**7 + part * 100_000, 100_000)
    assert death is None, (death, death.keep())
