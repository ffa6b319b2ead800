"""Valid Arrow IPC streams of every kind that a frame may be made of, to be damaged."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

INSTANT = dt.datetime(2020, 1, 2, 3, 4, 5)
WORDS = ["a", None, "ééé", "a longer text than twelve bytes", ""]
BYTES = [None if w is None else w.encode() for w in WORDS]
NUMBERS = [1, None, -3, 100, 5]


def _flat() -> Iterator[pa.Array]:
    for kind in (pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()):
        yield pa.array(NUMBERS, kind) if kind != pa.uint16() else pa.array([1, None, 3, 4, 5], kind)
    yield pa.array([1, 2, 3, 4, 5])
    yield pa.array([True, None, False, True, True])
    yield pa.nulls(5)
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield pa.array(WORDS, kind)
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield pa.array(BYTES, kind)
    yield pa.array([b"abc", None, b"abd", b"abe", b"abf"], pa.binary(3))
    for unit in ("s", "ms", "us", "ns"):
        yield pa.array(
            [INSTANT, None] * 2 + [INSTANT], pa.timestamp(unit, "UTC" if unit == "ms" else None)
        )
        yield pa.array([dt.timedelta(seconds=5), None] * 2 + [None], pa.duration(unit))
    for kind in (pa.date32(), pa.date64()):
        yield pa.array([INSTANT.date(), None] * 2 + [None], kind)


def _decimals() -> Iterator[pa.Array]:
    values = [Decimal("1.25"), None, Decimal("-3.50"), Decimal(0), Decimal(7)]
    for kind in (
        pa.decimal128(20, 2),
        pa.decimal256(20, 2),
        pa.decimal256(76, 30),
        pa.decimal128(38, 0),
    ):
        yield pa.array(values if kind.scale else [1, None, 3, 4, 5], kind)
    if hasattr(pa, "decimal64"):
        yield pa.array(values, pa.decimal64(10, 2))
        yield pa.array(values, pa.decimal32(5, 2))


def _encoded() -> Iterator[pa.Array]:
    indices = pa.array([0, 1, None, 2, 0], pa.int8())
    runs = pa.array([2, 3, 5], pa.int32())
    words = pa.array(["x", "yy", "a text of over twelve bytes"])
    for values in (
        words,
        pa.array([1, 2, 3]),
        pa.array([1.5, None, 2.0]),
        pa.array([b"x", b"y", b"z" * 20], pa.binary_view()),
        pa.array(["x", "y", None], pa.string_view()),
        pa.array([Decimal("1.5")] * 3, pa.decimal256(30, 4)),
        pa.array([INSTANT] * 3),
    ):
        yield pa.DictionaryArray.from_arrays(indices, values)
        yield pa.RunEndEncodedArray.from_arrays(runs, values)
    yield pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 5], pa.int16()), pa.array([1, None, 3]))


def _nested() -> Iterator[pa.Array]:
    yield pa.array([[1, 2], None, [], [3], [4]])
    yield pa.array([{"a": 1, "b": "x"}, None, {"a": 2, "b": None}, {"a": 3, "b": "z"}, None])
    yield pa.array([[("k", 1)], None, [], [("l", 2)], []], pa.map_(pa.string(), pa.int64()))
    yield pa.array([[[1]], None, [[2, 3], []], [], [[4]]])
    yield pa.array([[1, 2]] * 5, pa.list_(pa.int64(), 2))
    yield from _encoded_items()
    yield pa.array([dt.time(1, 2)] * 5)
    yield pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([b"0123456789abcdef"] * 5, pa.binary(16))
    )
    yield pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None, 1, 1], pa.int8()))


def _encoded_items() -> Iterator[pa.Array]:
    words = pa.array(["x", None, "x", "a text of over twelve bytes", "x"])
    for items in (words.dictionary_encode(), pc.run_end_encode(words)):
        yield pa.ListArray.from_arrays(pa.array([0, None, 2, 2, 3, 5], pa.int32()), items)
        yield pa.ListViewArray.from_arrays(
            pa.array([3, 0, 0, 1, 2], pa.int32()), pa.array([2, 0, 5, 1, 1], pa.int32()), items
        )


def stream_bytes(table: pa.Table | pa.RecordBatch, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write(table)
    return sink.getvalue().to_pybytes()


def seeds() -> list[bytes]:
    """One column each, some of them compressed, several batches, several columns."""
    arrays = [*_flat(), *_decimals(), *_encoded(), *_nested()]
    out = [stream_bytes(pa.table({"c": array})) for array in arrays]
    for codec in ("lz4", "zstd"):
        for array in (*arrays[:10], *_encoded()):
            out.append(stream_bytes(pa.table({"c": array}), compression=codec))
    out.append(stream_bytes(pa.table({"k": arrays[3], "v": arrays[5], "w": arrays[9]})))
    out.append(stream_bytes(pa.concat_tables([pa.table({"c": arrays[9]})] * 3)))
    changing = [
        pa.record_batch({"c": pa.array(words).dictionary_encode()})
        for words in (["a", "b"], ["b", "c"])
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, changing[0].schema) as writer:
        for batch in changing:
            writer.write(batch)
    return [*out, sink.getvalue().to_pybytes()]
