"""Ways in, values and columns of all kinds: what the tests of conversions have in common.

In process rows go to intake as they are; over TCP they are frames first (`over_wire` writes and
reads them as client and server do, without a socket).
"""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from dsms.errors import DsmsError
from dsms.instants import MIN_INSTANT
from dsms.intake.convert import Converted, to_batch
from dsms.sql.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT,
    INT,
    INTERVAL,
    STRING,
    TIME,
    TIMESTAMP,
    UUID,
    Field,
    Schema,
    Type,
    decimal,
)
from dsms_client.outgoing import frame_of, frames_of
from dsms_server import decode
from dsms_server.decode import StreamShape

TYPES = (BOOL, INT, FLOAT, decimal(20, 2), STRING, BYTES, TIMESTAMP, INTERVAL, DATE, TIME, UUID)
BERLIN = dt.timezone(dt.timedelta(hours=2))
DAY, SECOND = 86_400_000_000, 1_000_000


def one(type_: Type) -> Schema:
    return (Field("a", type_),)


def over_wire(data: Any, schema: Schema) -> Converted:
    """The rows as intake has them after the client has sent and the server has read them."""
    shape = StreamShape("s", schema)
    pieces = []
    for field, _ in frames_of(data, "stream s"):
        body = b"".join(frame_of("ingest", 1, {"stream": "s", **field}))[4:]
        pieces.append(decode.decode(body, lambda name: shape)["payload"].fitted(shape))
    return decode.join(pieces, shape)


def outcome(way: Any, data: Any, schema: Schema) -> Any:
    """What comes of it: values, refusals (why, how many, the first) and which rows stand; or an
    error's words."""
    try:
        done = way(data, schema)
    except DsmsError as problem:
        assert problem.code.startswith("DS5"), problem
        return str(problem)
    values = [[str(v) for v in column.to_pylist()] for column in done.columns]
    kept = None if done.kept is None else done.kept.tolist()
    return values, [(r.reason, r.count, r.first) for r in done.refusals], kept


def both(data: Any, schema: Schema) -> Any:
    """The outcome (of an error the code), which is the same in process and over TCP; an error's
    words and hint, too."""
    here = outcome(lambda d, s: to_batch(d, s, "stream s"), data, schema)
    there = outcome(over_wire, data, schema)
    assert there == here, (here, there)
    return here.split()[1].rstrip(":") if isinstance(here, str) else here


def taken(data: Any, type_: Type) -> Any:
    """The values that a column becomes, by both ways; or a code."""
    got = both(data, one(type_))
    return got if isinstance(got, str) else got[0][0]


class Colour(str, enum.Enum):  # noqa: UP042 (its str() is not its value)
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


REFUSED = object()
ID = str(uuid.UUID(int=5))
# the types that take a value, and what it becomes there
VALUES: list[tuple[Any, dict[Type, Any]]] = [
    (None, dict.fromkeys(TYPES)),
    (pd.NA, dict.fromkeys(TYPES)),
    (pd.NaT, dict.fromkeys(TYPES)),
    (np.datetime64("NaT"), dict.fromkeys(TYPES)),
    (np.timedelta64("NaT", "s"), dict.fromkeys(TYPES)),
    (True, {BOOL: True}),
    (np.bool_(False), {BOOL: False}),
    (7, {INT: 7, FLOAT: 7.0, TYPES[3]: Decimal("7.00"), TIMESTAMP: 7, INTERVAL: 7, TIME: 7}),
    (np.int8(-3), {INT: -3, FLOAT: -3.0, TYPES[3]: Decimal("-3.00"), TIMESTAMP: -3, INTERVAL: -3}),
    (np.uint64(2**64 - 1), {}),
    (
        Level.HIGH,
        {INT: 3, FLOAT: 3.0, TYPES[3]: Decimal("3.00"), TIMESTAMP: 3, INTERVAL: 3, TIME: 3},
    ),
    (
        2**53 + 1,
        {INT: 2**53 + 1, TYPES[3]: Decimal(2**53 + 1), TIMESTAMP: 2**53 + 1, INTERVAL: 2**53 + 1},
    ),
    (2**70, {FLOAT: 2.0**70}),
    (
        10**17,
        {INT: 10**17, TYPES[3]: Decimal(10**17), TIMESTAMP: 10**17, INTERVAL: 10**17, FLOAT: 1e17},
    ),
    (10**5000, {}),
    (dt.timedelta.max, {}),
    (1.5, {FLOAT: 1.5}),
    (np.float32(0.5), {FLOAT: 0.5}),
    (np.float16(2), {FLOAT: 2.0, INT: 2}),
    (-4.0, {FLOAT: -4.0, INT: -4}),
    (1e300, {FLOAT: 1e300}),
    (float("nan"), {FLOAT: float("nan")}),
    (float("inf"), {FLOAT: float("inf")}),
    (np.longdouble("0.1"), {}),
    (np.longdouble(3), {FLOAT: 3.0, INT: 3}),
    (Decimal("12345678901234567.89"), {TYPES[3]: Decimal("12345678901234567.89")}),
    (Decimal("1.234"), {}),
    (Decimal("5.0"), {INT: 5, TYPES[3]: Decimal("5.00")}),
    (Decimal("NaN"), {}),
    (Decimal("1E+999999"), {}),
    (1j, {}),
    ("text", {STRING: "text"}),
    (np.str_("text"), {STRING: "text"}),
    (Colour.RED, {STRING: "red"}),
    ("12.50", {STRING: "12.50", TYPES[3]: Decimal("12.50")}),
    (
        "2020-01-01 00:00:01,5",
        {STRING: "2020-01-01 00:00:01,5", TIMESTAMP: 18262 * DAY + 1_500_000},
    ),
    (
        "20200101",
        {
            STRING: "20200101",
            TIMESTAMP: 18262 * DAY,
            TYPES[3]: Decimal("20200101.00"),
            DATE: 18262 * DAY,
        },
    ),
    ("2020-1-2", {STRING: "2020-1-2", TIMESTAMP: 18263 * DAY, DATE: 18263 * DAY}),
    ("2020-02-30", {STRING: "2020-02-30"}),
    ("12:30", {STRING: "12:30", INTERVAL: 45_000 * SECOND, TIME: 45_000 * SECOND}),
    (
        "23:59:59.9999999",
        {STRING: "23:59:59.9999999", INTERVAL: DAY - 1, TIME: DAY - 1},
    ),
    ("24:00", {STRING: "24:00", INTERVAL: DAY}),
    (str(uuid.UUID(int=5)).upper(), {STRING: str(uuid.UUID(int=5)).upper(), UUID: ID}),
    (f"{{{uuid.UUID(int=5).hex}}}", {STRING: f"{{{uuid.UUID(int=5).hex}}}", UUID: ID}),
    (
        DAY,
        {
            INT: DAY,
            FLOAT: float(DAY),
            TYPES[3]: Decimal(DAY),
            TIMESTAMP: DAY,
            INTERVAL: DAY,
            DATE: DAY,
        },
    ),
    ("1 h 30 min", {STRING: "1 h 30 min", INTERVAL: 5400 * SECOND}),
    ("\ud800", {}),
    (b"\x00\xff", {BYTES: b"\x00\xff"}),
    (np.bytes_(b"ab"), {BYTES: b"ab"}),
    (bytearray(b"ab"), {BYTES: b"ab"}),
    (memoryview(b"ab"), {BYTES: b"ab"}),
    (dt.datetime(1970, 1, 1, 2, tzinfo=BERLIN), {TIMESTAMP: 0, DATE: 0}),
    (dt.datetime(1970, 1, 1, 2), {TIMESTAMP: 7200 * SECOND}),
    (dt.date(1970, 1, 2), {TIMESTAMP: DAY, DATE: DAY}),
    (dt.date.min, {TIMESTAMP: MIN_INSTANT, DATE: MIN_INSTANT}),
    (dt.time(1), {TIME: 3600 * SECOND}),
    (dt.time.max, {TIME: DAY - 1}),
    (dt.time(1, tzinfo=BERLIN), {}),
    (dt.timedelta(days=-1, microseconds=3), {INTERVAL: 3 - DAY}),
    (pd.Timestamp("1970-01-01 00:00:00.000000001"), {TIMESTAMP: 0, DATE: 0}),
    (pd.Timestamp("1969-12-31 23:59:59.999999999"), {TIMESTAMP: -1}),
    (pd.Timestamp("1970-01-01 01:00", tz="Europe/Berlin"), {TIMESTAMP: 0, DATE: 0}),
    (pd.Timedelta(1500, "ns"), {INTERVAL: 1}),
    (pd.Period("1970-02", freq="M"), {TIMESTAMP: 31 * DAY, DATE: 31 * DAY}),
    (pd.Interval(0, 1), {}),
    (np.datetime64(-1, "ns"), {TIMESTAMP: -1}),
    (np.datetime64(1, "M"), {TIMESTAMP: 31 * DAY, DATE: 31 * DAY}),
    (np.datetime64(1, "h"), {TIMESTAMP: 3600 * SECOND}),
    (np.datetime64(3, "ps"), {TIMESTAMP: 0, DATE: 0}),
    (np.datetime64(10**6, "Y"), {TIMESTAMP: REFUSED}),
    (np.timedelta64(1_500_000_000, "ns"), {INTERVAL: 1_500_000}),
    (np.timedelta64(-1, "ns"), {INTERVAL: -1}),
    (np.timedelta64(3, "D"), {INTERVAL: 3 * DAY}),
    (np.timedelta64(2, "W"), {INTERVAL: 14 * DAY}),
    (np.timedelta64(2**62, "W"), {}),
    (np.timedelta64(5, "M"), {}),
    (np.timedelta64(5), {}),
    (uuid.UUID(int=5), {UUID: ID}),
    (uuid.UUID(int=2**128 - 1).bytes, {BYTES: b"\xff" * 16, UUID: str(uuid.UUID(int=2**128 - 1))}),
    (pa.scalar(dt.time(1), pa.time32("s")), {TIME: 3600 * SECOND}),
    (pa.scalar(0, pa.date32()), {TIMESTAMP: 0, DATE: 0}),
    (
        pa.scalar(7),
        {INT: 7, FLOAT: 7.0, TYPES[3]: Decimal("7.00"), TIMESTAMP: 7, INTERVAL: 7, TIME: 7},
    ),
    (pa.scalar("text"), {STRING: "text"}),
    (pa.scalar(None, pa.int64()), dict.fromkeys(TYPES)),
    (pa.scalar(-1, pa.timestamp("ns", "Asia/Tokyo")), {TIMESTAMP: -1}),
    (pa.scalar(1500, pa.duration("ns")), {INTERVAL: 1}),
    (pa.scalar(Decimal("5.0")), {INT: 5, TYPES[3]: Decimal("5.00")}),
    (pa.scalar([1]), {}),
    ((1, "a"), {}),
    ([1], {}),
    ({"a": 1}, {}),
    ({1, 2}, {}),
    (np.array([1]), {}),
    (object(), {}),
]


# -- whole columns ---------------------------------------------------------------------------------


def arrow_columns() -> list[Any]:
    texts, blobs, ints = ["a", None, "b"], [b"a", None, b"b"], [1, None, 3]
    times = [
        pa.array(ints, pa.timestamp(u, z))
        for u in ("s", "ms", "us", "ns")
        for z in (None, "UTC", "Asia/Tokyo")
    ]
    lengths = [pa.array(ints, pa.duration(u)) for u in ("s", "ms", "us", "ns")]
    numbers = [
        pa.array(ints, k)
        for k in (
            pa.int8(),
            pa.uint8(),
            pa.int32(),
            pa.uint64(),
            pa.int64(),
            pa.decimal128(20, 2),
            pa.decimal256(70, 3),
            pa.float32(),
            pa.float64(),
        )
    ]
    strings = [pa.array(texts, k) for k in (pa.string(), pa.large_string(), pa.string_view())]
    return [
        *times,
        *lengths,
        *numbers,
        *strings,
        pa.array(np.array([1, 2], np.float16)),
        pa.array([2**64 - 1, 1], pa.uint64()),
        pa.array([2**62, -(2**62)], pa.duration("s")),
        pa.array([2**62, -(2**62)], pa.timestamp("s")),
        *(
            pa.array(blobs, k)
            for k in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))
        ),
        *(pa.array(texts, k).dictionary_encode() for k in (pa.string(), pa.large_string())),
        pa.DictionaryArray.from_arrays(
            pa.array([0, 1, None]), pa.array(["a", "b"], pa.string_view())
        ),
        pa.array([1, 2, 1]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["a"]).dictionary_encode()),
        pa.RunEndEncodedArray.from_arrays([2, 3], [1, 2]),
        pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]),
        pa.array([0, 1], pa.date32()),
        pa.array([0, DAY // 1000], pa.date64()),
        pa.array([0, 1], pa.time32("s")),
        pa.array([0, 1], pa.time64("ns")),
        pa.array([True, None]),
        pa.nulls(2),
        pa.array([1, 0, None], pa.bool8()),
        pa.array([uuid.UUID(int=3).bytes], pa.uuid()),
        pa.array([[1], [2]]),
        pa.array([{"a": 1}]),
        pa.array([[1]], pa.list_(pa.int64(), 1)),
        pa.array([], pa.string_view()),
        pa.chunked_array([["a"], ["b", None]]),
        pa.chunked_array([], pa.string_view()),
        pa.chunked_array(
            [pa.array(["a"]).dictionary_encode(), pa.array(["b"]).dictionary_encode()]
        ),
        pa.array(["1.25", " +1. ", None]),
        pa.array(["2020-01-01T00:00:00Z", "20200101"]),
        pa.array(["1 h", "1:00:00"]),
    ]


def numpy_columns() -> list[Any]:
    times = [
        np.array([1, -1, np.iinfo(np.int64).min], f"M8[{u}]")
        for u in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "25s")
    ]
    lengths = [
        np.array([1, -1, np.iinfo(np.int64).min], f"m8[{u}]")
        for u in ("M", "W", "D", "h", "m", "s", "ms", "us", "ns", "fs", "10ms")
    ]
    numbers = [
        np.array([1, 2], k)
        for k in ("i1", ">i8", "<u2", ">f4", "f2", "f8", "g", "c16", "?", "u8", ">M8[s]", ">m8[ns]")
    ]
    return [
        *times, *lengths, *numbers,
        np.array([2**40], "m8[W]"), np.array(["a", "bc"]), np.array([b"a"]),
        np.array(["a"], np.dtypes.StringDType()),
        np.ma.array([1, 2], mask=[True, False]), np.ma.array([1.5, 2], mask=[True, False],
                                                             dtype=">f8"),
        np.array([1, None, "a"], object), np.array([(1, 2)], "i4,i4"), np.zeros((2, 2)),
        np.array([1.0, np.nan]),
    ]  # a long list  # fmt: skip


def pandas_columns() -> list[Any]:
    s = pd.Series
    return [
        s([1, None, 3]),
        s([1.5, None]),
        s([1, 2]),
        s([1, None], dtype="Int64"),
        s([True, None], dtype="boolean"),
        s([1.5, None], dtype="Float64"),
        s(["a", None]),
        s(["a", None], dtype=object),
        s([1, "a", None], dtype=object),
        s(["a", None], dtype="category"),
        s([1, 2, 1], dtype="category"),
        s([1.5, None], dtype="category"),
        s(pd.arrays.SparseArray([0, 1, 0])),
        s(pd.arrays.SparseArray([np.nan, 1.0])),
        s(np.array([1, 2], ">i8")),
        s(np.array([1, np.nan], ">f8")),
        s(np.array([1, 2], "f2")),
        s(np.array([1, 2], "g")),
        s([1j]),
        s(pd.period_range("1970-01", periods=2, freq="M")),
        s(pd.PeriodIndex(["0500-01", None], freq="M")),
        s(pd.period_range("1970-01", periods=2, freq="M")).astype("category"),
        s(pd.interval_range(0, 2)),
        s(pd.to_datetime(["1970-01-01", None])),
        s(pd.to_datetime(["1970-01-01"])).dt.tz_localize("Europe/Berlin"),
        s(np.array(["1970-01-01", "NaT"], "M8[s]")),
        s(pd.to_timedelta([1, None], "s")),
        s([pd.Timestamp("1970-01-02"), pd.NaT], dtype=object),
        s([dt.date(1970, 1, 2), None], dtype=object),
        s([1.5, None], dtype=pd.ArrowDtype(pa.float64())),
        s([Decimal("1.5")], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        s(["a", None], dtype=pd.ArrowDtype(pa.string())),
        s([1], dtype=pd.ArrowDtype(pa.timestamp("ns"))),
        s([[1]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
        s([Decimal("1.5"), None]),
        s([b"a", None], dtype=object),
        s([], dtype=object),
        s([None, None]),
        pd.Index([1, 2]),
        pd.Index(["a", "b"]),
        pd.array([1, None]),
    ]


def polars_columns() -> list[Any]:
    s = pl.Series
    return [
        s(["a", None]), s([1, None]), s([1.5, float("nan")]), s([True]), s([b"a"]),
        s([Decimal("1.5")]), s([None]),
        s(["a"], dtype=pl.Categorical), s(["a"], dtype=pl.Enum(["a", "b"])),
        s([dt.date(1970, 1, 2)]), s([dt.time(1)]),
        s([dt.datetime(1970, 1, 2)]), s([dt.datetime(1970, 1, 2)],
                                        dtype=pl.Datetime("ns", "Asia/Tokyo")),
        s([dt.timedelta(1)]), s([1], dtype=pl.UInt8), s([2**70], dtype=pl.Int128),
        s([object()], dtype=pl.Object),
        s([[1]]), s([{"a": 1}]), s([], dtype=pl.String), s([1.5], dtype=pl.Float32),
    ]  # a long list  # fmt: skip


def columns() -> Iterator[Any]:
    for found in (arrow_columns(), numpy_columns(), pandas_columns(), polars_columns()):
        yield from found
    yield from (range(3), (1, 2), deque([1, 2]), {1, 2}, "text", np.float64(1), iter([1]))
