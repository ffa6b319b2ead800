"""All types by all ways in: the same input has the same outcome, equal values or an equal code, whichever way it comes.

In process rows go to intake as they are; over TCP they are frames first (`over_wire` writes and reads them as client
and server do, without a socket).  Files are read by what `dsms load` reads them with.
"""

from __future__ import annotations

import datetime as dt
import enum
import io
import json
import uuid
from collections import deque, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.intake.convert import Converted, to_batch
from dsms.sql.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    decimal,
)
from dsms_client.aio import _frame
from dsms_client.files.open import read
from dsms_client.files.source import Source
from dsms_client.outgoing import frames_of
from dsms_server import decode
from dsms_server.decode import Shape
from tests.generate.stories import examples

TYPES = (BOOL, INT, FLOAT, decimal(20, 2), STRING, BYTES, TIMESTAMP, INTERVAL)
BERLIN = dt.timezone(dt.timedelta(hours=2))
DAY, SECOND = 86_400_000_000, 1_000_000


def one(type_: Type) -> Schema:
    return (Field("a", type_),)


def over_wire(data: Any, schema: Schema) -> Converted:
    """The rows as intake has them after the client has sent and the server has read them."""
    shape = Shape("s", schema)
    pieces = []
    for field, _ in frames_of(data, "stream s"):
        body = b"".join(_frame("ingest", 1, {"stream": "s", **field}))[4:]
        pieces.append(decode.decode(body, lambda name: shape)["payload"].fitted(shape))
    return decode.join(pieces, shape)


def outcome(way: Any, data: Any, schema: Schema) -> Any:
    """What comes of it: values, refusals (why, how many, the first) and which rows stand; or a code."""
    try:
        done = way(data, schema)
    except DsmsError as problem:
        assert problem.code.startswith("DS5"), problem
        return problem.code
    values = [[str(v) for v in column.to_pylist()] for column in done.columns]
    kept = None if done.kept is None else done.kept.tolist()
    return values, [(r.reason, r.count, r.first) for r in done.refusals], kept


def both(data: Any, schema: Schema) -> Any:
    """The outcome, which is the same in process and over TCP."""
    here = outcome(lambda d, s: to_batch(d, s, "stream s"), data, schema)
    assert outcome(over_wire, data, schema) == here
    return here


# -- one value, as a row, in a list and in a column of objects --------------------------------------------------------


class Colour(str, enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


REFUSED = object()
VALUES: list[tuple[Any, dict[Type, Any]]] = [  # the types that take a value, and what it becomes there
    (None, dict.fromkeys(TYPES)),
    (pd.NA, dict.fromkeys(TYPES)),
    (pd.NaT, dict.fromkeys(TYPES)),
    (np.datetime64("NaT"), dict.fromkeys(TYPES)),
    (np.timedelta64("NaT", "s"), dict.fromkeys(TYPES)),
    (True, {BOOL: True}),
    (np.bool_(False), {BOOL: False}),
    (7, {INT: 7, FLOAT: 7.0, TYPES[3]: Decimal("7.00"), TIMESTAMP: 7, INTERVAL: 7}),
    (np.int8(-3), {INT: -3, FLOAT: -3.0, TYPES[3]: Decimal("-3.00"), TIMESTAMP: -3, INTERVAL: -3}),
    (np.uint64(2**64 - 1), {}),
    (Level.HIGH, {INT: 3, FLOAT: 3.0, TYPES[3]: Decimal("3.00"), TIMESTAMP: 3, INTERVAL: 3}),
    (2**53 + 1, {INT: 2**53 + 1, TYPES[3]: Decimal(2**53 + 1), TIMESTAMP: 2**53 + 1, INTERVAL: 2**53 + 1}),
    (2**70, {FLOAT: 2.0**70}),
    (10**17, {INT: 10**17, TYPES[3]: Decimal(10**17), TIMESTAMP: 10**17, INTERVAL: 10**17, FLOAT: 1e17}),
    (10**5000, {}),
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
    ("2020-01-01 00:00:01,5", {STRING: "2020-01-01 00:00:01,5", TIMESTAMP: 18262 * DAY + 1_500_000}),
    ("20200101", {STRING: "20200101", TIMESTAMP: 18262 * DAY, TYPES[3]: Decimal("20200101.00")}),
    ("1 h 30 min", {STRING: "1 h 30 min", INTERVAL: 5400 * SECOND}),
    ("\ud800", {}),
    (b"\x00\xff", {BYTES: b"\x00\xff"}),
    (np.bytes_(b"ab"), {BYTES: b"ab"}),
    (bytearray(b"ab"), {BYTES: b"ab"}),
    (memoryview(b"ab"), {BYTES: b"ab"}),
    (dt.datetime(1970, 1, 1, 2, tzinfo=BERLIN), {TIMESTAMP: 0}),
    (dt.datetime(1970, 1, 1, 2), {TIMESTAMP: 7200 * SECOND}),
    (dt.date(1970, 1, 2), {TIMESTAMP: DAY}),
    (dt.time(1), {}),
    (dt.timedelta(days=-1, microseconds=3), {INTERVAL: 3 - DAY}),
    (pd.Timestamp("1970-01-01 00:00:00.000000001"), {TIMESTAMP: 0}),
    (pd.Timestamp("1969-12-31 23:59:59.999999999"), {TIMESTAMP: -1}),
    (pd.Timestamp("1970-01-01 01:00", tz="Europe/Berlin"), {TIMESTAMP: 0}),
    (pd.Timedelta(1500, "ns"), {INTERVAL: 1}),
    (pd.Period("1970-02", freq="M"), {TIMESTAMP: 31 * DAY}),
    (pd.Interval(0, 1), {}),
    (np.datetime64(-1, "ns"), {TIMESTAMP: -1}),
    (np.datetime64(1, "M"), {TIMESTAMP: 31 * DAY}),
    (np.datetime64(1, "h"), {TIMESTAMP: 3600 * SECOND}),
    (np.datetime64(3, "ps"), {TIMESTAMP: 0}),
    (np.datetime64(10**6, "Y"), {TIMESTAMP: REFUSED}),
    (np.timedelta64(1_500_000_000, "ns"), {INTERVAL: 1_500_000}),
    (np.timedelta64(-1, "ns"), {INTERVAL: -1}),
    (np.timedelta64(3, "D"), {INTERVAL: 3 * DAY}),
    (np.timedelta64(2, "W"), {INTERVAL: 14 * DAY}),
    (np.timedelta64(2**62, "W"), {}),
    (np.timedelta64(5, "M"), {}),
    (np.timedelta64(5), {}),
    (uuid.UUID(int=5), {}),
    ([1], {}),
    ({"a": 1}, {}),
    ({1, 2}, {}),
    (np.array([1]), {}),
    (object(), {}),
]  # fmt: skip
CASES = [(v, t, expected.get(t, REFUSED)) for v, expected in VALUES for t in TYPES]


@pytest.mark.parametrize("form", ["rows", "dicts", "columns", "objects", "beside"])
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_kind_of_value(type_: Type, form: str) -> None:
    for value, _, expected in (case for case in CASES if case[1] is type_):
        data: Any = {"rows": [[value]], "dicts": [{"A": value}], "columns": {"a": [value]}}.get(form)
        if form == "objects":
            objects = np.empty(1, object)
            objects[0] = value
            data = pd.DataFrame({"a": pd.Series(objects, dtype=object)})
            if isinstance(value, (float, Decimal)) and value != value:
                expected = None  # pandas means a missing value by it
        if form == "beside":  # a value beside one of another kind, so that no Arrow column holds both
            data = [[value], [(1, 2)]]
        got = both(data, one(type_))
        refused = got == "DS503" or any(first == 0 for _, _, first in got[1])
        assert refused == (expected is REFUSED), (value, got)
        if not refused:
            assert got[0][0][0] == str(pa.scalar(expected, type_.arrow).as_py()), (value, got)


def values_of_any_kind() -> st.SearchStrategy:
    plain = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3)
    more = st.binary(max_size=3) | st.datetimes() | st.dates() | st.timedeltas() | st.decimals(places=2)
    return plain | more | st.integers(0, len(VALUES) - 1).map(lambda i: VALUES[i][0])


@given(st.sampled_from(TYPES), st.lists(values_of_any_kind(), max_size=5), st.booleans())
@settings(max_examples=examples(150), deadline=None)
def test_lists_of_mixed_values(type_: Type, values: list[Any], as_rows: bool) -> None:
    both([[v] for v in values] if as_rows else {"a": values}, one(type_))


# -- whole columns ----------------------------------------------------------------------------------------------------


def arrow_columns() -> list[Any]:
    texts, blobs, ints = ["a", None, "b"], [b"a", None, b"b"], [1, None, 3]
    times = [pa.array(ints, pa.timestamp(u, z)) for u in ("s", "ms", "us", "ns") for z in (None, "UTC", "Asia/Tokyo")]
    lengths = [pa.array(ints, pa.duration(u)) for u in ("s", "ms", "us", "ns")]
    numbers = [pa.array(ints, k) for k in (pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.int64(), pa.decimal128(20, 2),
                                           pa.decimal256(70, 3), pa.float32(), pa.float64())]  # fmt: skip
    strings = [pa.array(texts, k) for k in (pa.string(), pa.large_string(), pa.string_view())]
    return [
        *times, *lengths, *numbers, *strings,
        pa.array(np.array([1, 2], np.float16)),
        pa.array([2**64 - 1, 1], pa.uint64()),
        pa.array([2**62, -(2**62)], pa.duration("s")),
        pa.array([2**62, -(2**62)], pa.timestamp("s")),
        *(pa.array(blobs, k) for k in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))),
        *(pa.array(texts, k).dictionary_encode() for k in (pa.string(), pa.large_string())),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", "b"], pa.string_view())),
        pa.array([1, 2, 1]).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays([2, 3], [1, 2]),
        pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]),
        pa.array([0, 1], pa.date32()), pa.array([0, DAY // 1000], pa.date64()),
        pa.array([0, 1], pa.time32("s")), pa.array([0, 1], pa.time64("ns")),
        pa.array([True, None]), pa.nulls(2), pa.array([1, 0, None], pa.bool8()), pa.array([uuid.UUID(int=3).bytes], pa.uuid()),
        pa.array([[1], [2]]), pa.array([{"a": 1}]), pa.array([[1]], pa.list_(pa.int64(), 1)), pa.array([], pa.string_view()),
        pa.chunked_array([["a"], ["b", None]]), pa.chunked_array([], pa.string_view()),
        pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b"]).dictionary_encode()]),
        pa.array(["1.25", " +1. ", None]), pa.array(["2020-01-01T00:00:00Z", "20200101"]), pa.array(["1 h", "1:00:00"]),
    ]  # fmt: skip


def numpy_columns() -> list[Any]:
    times = [np.array([1, -1, np.iinfo(np.int64).min], f"M8[{u}]") for u in
             ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "25s")]  # fmt: skip
    lengths = [np.array([1, -1, np.iinfo(np.int64).min], f"m8[{u}]") for u in
               ("M", "W", "D", "h", "m", "s", "ms", "us", "ns", "fs", "10ms")]  # fmt: skip
    numbers = [
        np.array([1, 2], k) for k in ("i1", ">i8", "<u2", ">f4", "f2", "f8", "g", "c16", "?", "u8", ">M8[s]", ">m8[ns]")
    ]
    return [
        *times, *lengths, *numbers,
        np.array([2**40], "m8[W]"), np.array(["a", "bc"]), np.array([b"a"]), np.array(["a"], np.dtypes.StringDType()),
        np.ma.array([1, 2], mask=[True, False]), np.ma.array([1.5, 2], mask=[True, False], dtype=">f8"),
        np.array([1, None, "a"], object), np.array([(1, 2)], "i4,i4"), np.zeros((2, 2)), np.array([1.0, np.nan]),
    ]  # fmt: skip


def pandas_columns() -> list[Any]:
    s = pd.Series
    return [
        s([1, None, 3]), s([1.5, None]), s([1, 2]), s([1, None], dtype="Int64"), s([True, None], dtype="boolean"),
        s([1.5, None], dtype="Float64"), s(["a", None]), s(["a", None], dtype=object), s([1, "a", None], dtype=object),
        s(["a", None], dtype="category"), s([1, 2, 1], dtype="category"), s([1.5, None], dtype="category"),
        s(pd.arrays.SparseArray([0, 1, 0])), s(pd.arrays.SparseArray([np.nan, 1.0])), s(np.array([1, 2], ">i8")),
        s(np.array([1, np.nan], ">f8")), s(np.array([1, 2], "f2")), s(np.array([1, 2], "g")), s([1j]),
        s(pd.period_range("1970-01", periods=2, freq="M")), s(pd.PeriodIndex(["0500-01", None], freq="M")),
        s(pd.period_range("1970-01", periods=2, freq="M")).astype("category"), s(pd.interval_range(0, 2)),
        s(pd.to_datetime(["1970-01-01", None])), s(pd.to_datetime(["1970-01-01"])).dt.tz_localize("Europe/Berlin"),
        s(np.array(["1970-01-01", "NaT"], "M8[s]")), s(pd.to_timedelta([1, None], "s")),
        s([pd.Timestamp("1970-01-02"), pd.NaT], dtype=object), s([dt.date(1970, 1, 2), None], dtype=object),
        s([1.5, None], dtype=pd.ArrowDtype(pa.float64())), s([Decimal("1.5")], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        s(["a", None], dtype=pd.ArrowDtype(pa.string())), s([1], dtype=pd.ArrowDtype(pa.timestamp("ns"))),
        s([[1]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))), s([Decimal("1.5"), None]), s([b"a", None], dtype=object),
        s([], dtype=object), s([None, None]), pd.Index([1, 2]), pd.Index(["a", "b"]), pd.array([1, None]),
    ]  # fmt: skip


def polars_columns() -> list[Any]:
    s = pl.Series
    return [
        s(["a", None]), s([1, None]), s([1.5, float("nan")]), s([True]), s([b"a"]), s([Decimal("1.5")]), s([None]),
        s(["a"], dtype=pl.Categorical), s(["a"], dtype=pl.Enum(["a", "b"])), s([dt.date(1970, 1, 2)]), s([dt.time(1)]),
        s([dt.datetime(1970, 1, 2)]), s([dt.datetime(1970, 1, 2)], dtype=pl.Datetime("ns", "Asia/Tokyo")),
        s([dt.timedelta(1)]), s([1], dtype=pl.UInt8), s([2**70], dtype=pl.Int128), s([object()], dtype=pl.Object),
        s([[1]]), s([{"a": 1}]), s([], dtype=pl.String), s([1.5], dtype=pl.Float32),
    ]  # fmt: skip


def columns() -> Iterator[Any]:
    for found in (arrow_columns(), numpy_columns(), pandas_columns(), polars_columns()):
        yield from found
    yield from (range(3), (1, 2), deque([1, 2]), {1, 2}, "text", np.float64(1), iter([1]))


def kind_of(column: Any) -> str:
    return f"{type(column).__name__}-{getattr(column, 'dtype', getattr(column, 'type', ''))}"


@pytest.mark.parametrize("column", list(columns()), ids=kind_of)
def test_every_kind_of_column(column: Any) -> None:
    for type_ in TYPES:
        both({"a": column}, one(type_))
        if isinstance(column, (pa.Array, pa.ChunkedArray)):
            both(pa.table({"a": column}), one(type_))
        if isinstance(column, pd.Series):
            both(pd.DataFrame({"A": column}), one(type_))
        if isinstance(column, pl.Series):
            both(pl.DataFrame({"a": column}), one(type_))


def taken(data: Any, type_: Type) -> Any:
    """The values that a column becomes, by both ways."""
    got = both(data, one(type_))
    return got if isinstance(got, str) else got[0][0]


@pytest.mark.parametrize(
    ("type_", "data", "expected"),
    [
        (INT, pd.DataFrame({"a": [1.0, None, 3.0]}), ["1", "None", "3"]),
        (INT, pd.DataFrame({"a": [1.5, None]}), "DS503"),
        (INT, pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), ["0", "1"]),
        (INT, pd.DataFrame([[1, 2]], columns=["a", "A"]), "DS506"),
        (TIMESTAMP, pd.DataFrame({"a": pd.period_range("1970-02", periods=1, freq="M")}), [str(31 * DAY)]),
        (TIMESTAMP, pa.table({"a": pa.array(pd.Series(pd.period_range("1970-02", periods=1, freq="M")))}), "DS503"),
        (STRING, pl.DataFrame({"a": ["x", None]}), ["x", "None"]),
        (BYTES, pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}), "DS503"),
        (decimal(38, 0), pl.DataFrame({"a": pl.Series([2**70], dtype=pl.Int128)}), [str(2**70)]),
        (decimal(20, 0), {"a": pa.array([2**64 - 1], pa.uint64())}, [str(2**64 - 1)]),
        (INTERVAL, {"a": pa.array([2**62], pa.duration("s"))}, "DS503"),
        (INTERVAL, {"a": np.array([3], "m8[D]")}, [str(3 * DAY)]),
        (TIMESTAMP, {"a": np.array([3], "M8[25s]")}, [str(75 * SECOND)]),
        (BOOL, {"a": pa.array([1, 0], pa.bool8())}, ["True", "False"]),
        (INT, pa.table({"a": pa.array([1, 2, 3])}).slice(1), ["2", "3"]),
    ],
)  # fmt: skip
def test_what_columns_become(type_: Type, data: Any, expected: Any) -> None:
    assert taken(data, type_) == expected


# -- rows -------------------------------------------------------------------------------------------------------------

PAIR: Schema = (Field("k", INT), Field("t", TIMESTAMP))
Pair = namedtuple("Pair", "k t")


@dataclass
class Reading:
    t: dt.datetime
    k: int


def test_rows_of_any_class() -> None:
    at = dt.datetime(1970, 1, 1, 0, 0, 1)
    rows: list[Any] = [
        Pair(1, at),
        (1, at),
        [1, at],
        {"T": at, "K": 1},
        Reading(at, 1),
        deque([1, at]),
        np.array([1, at]),
    ]
    for data in (rows, tuple(rows), deque(rows), *([row] for row in rows)):
        values, refusals, kept = both(data, PAIR)
        assert values == [["1"] * len(data), [str(SECOND)] * len(data)] and not refusals and kept is None
    assert both([None, "ab", 5, {1: 2}.keys(), [1]], PAIR)[1] == [("not a row of this stream", 5, 0)]
    assert both([Pair(1, at), None], PAIR)[2] == [0]


def test_keys_in_any_case_row_by_row() -> None:
    rows: list[Any] = [{"k": 1, "t": 1}, {"K": 2, "T": 2}, {"k": 3, "K": 4}, {"T": 5}, {"k": 6, "t": 6, "T": 6}]
    values, refusals, _ = both(rows, PAIR)
    assert values == [["1", "2", "None"], ["1", "2", "5"]]
    assert refusals == [("not a row of this stream", 2, 2)]
    assert both([{"k": 1}, {"q": 1}], PAIR) == both([{1: 1}], PAIR) == both({"k": [1], "q": [1]}, PAIR) == "DS501"
    quoted = (Field("a", INT), Field("A", INT))
    assert both([{"A": 1, "a": 2}], quoted)[0] == [["2"], ["1"]]


@pytest.mark.parametrize("data", [{}, [], pa.table({}), pa.table({"q": pa.array([], pa.int64())}), pd.DataFrame(), 5, "ab",
                                  b"ab", {"k": "ab"}, {"k": 5}, {"k": [1], "t": [1, 2]}, object(), iter([[1, 1]])])  # fmt: skip
def test_what_holds_no_rows(data: Any) -> None:
    both(data, PAIR)
    both(data, (Field("k", INT, nullable=False),))


def test_many_rows_with_instants_are_read_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[i, dt.datetime(1970, 1, 1) + dt.timedelta(seconds=i)] for i in range(2000)]
    monkeypatch.setattr(decode, "to_batch", lambda *args: pytest.fail("rows were read one by one"))
    assert over_wire(rows, PAIR).columns[1].to_pylist() == [i * SECOND for i in range(2000)]


# -- files ------------------------------------------------------------------------------------------------------------


def load(path: str, columns: list[tuple[str, str]], unit: str | None = None) -> tuple[list[list[Any]], list[str]]:
    """Good rows as intake has them, and why the other lines are none."""
    _, pieces = read(Source(path), columns, {}, unit=unit)
    types = {str(t): t for t in TYPES}
    schema = tuple(Field(name, types[sql]) for name, sql in columns)
    rows, reasons = [], []
    for piece in pieces:
        got = over_wire(piece.batch, schema)
        rows += [list(row) for row in zip(*(c.to_pylist() for c in got.columns), strict=True)]
        reasons += [f"{reject.line}: {reject.reason}" for reject in piece.rejects]
        reasons += [str(refusal) for refusal in got.refusals]
    return rows, reasons


@pytest.fixture
def file(tmp_path: Any) -> Any:
    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


D = [("d", "DECIMAL(20,2)"), ("i", "INT")]


@pytest.mark.parametrize("neighbour", ["", '{"d": null, "i": 1.0}\n', '{"D": 0, "I": 0}\n', '{"d": "x"}\n'])
def test_json_numbers_are_exact_whatever_their_neighbours_hold(file: Any, neighbour: str) -> None:
    lines = '{"d": 12345678901234567.89, "i": 9007199254740993}\n{"D": "0.10", "I": -1}\n'
    rows, _ = load(file("a.jsonl", '{"d": 1, "i": 1}\n' + lines + neighbour), D)
    assert rows[1:3] == [[Decimal("12345678901234567.89"), 9007199254740993], [Decimal("0.10"), -1]]


def test_json_keys_in_any_case_line_by_line(file: Any) -> None:
    lines = [
        '{"D": 1, "i": 1}',
        '{"d": 2, "I": 2}',
        '{"d": 3, "D": 3}',
        '{"i": 4, "i": 4}',
        '{"\\u0044": 5}',
        '{"x": "i"}',
    ]
    rows, reasons = load(file("a.jsonl", "\n".join(lines)), D)
    assert rows == [[1, 1], [2, 2], [5, None], [None, None]]
    assert reasons == ['3: d is given twice, as "d" and "D"', '4: i is given twice, as "i" and "i"']
    rows, reasons = load(file("b.jsonl", '{"ab": 1}\n{"AB": 2}\n{"Ab": 3}\n'), [("ab", "INT"), ("AB", "INT")])
    assert rows == [[1, None], [None, 2]] and reasons == ['3: the key "Ab" could be ab or AB']


T = [("t", "TIMESTAMP"), ("v", "INT")]
COUNTS = [("s", "1379288667.631000", 1379288667_631000), ("s", "-0.0000001", -1), ("s", "1379288667", 1379288667_000000),
          ("ms", "1379288667631.25", 1379288667_631250), ("us", "1379288667631000", 1379288667_631000),
          ("us", "-1.5", -2), ("ns", "1379288667631000999", 1379288667_631000), ("ns", "-1", -1), ("s", ".5", 500_000),
          ("s", "1.379288667e9", 1379288667_000000), ("s", "00001.000000000000000000001", 1_000_000),
          ("s", "20200101", 20200101_000000)]  # fmt: skip


@pytest.mark.parametrize(("unit", "number", "expected"), COUNTS)
def test_numbers_with_a_unit_are_exact(file: Any, unit: str, number: str, expected: int) -> None:
    for text in (number, number.rjust(30)):
        assert load(file("a.csv", f"t,v\n{text},1\n1970-01-01,2\n"), T, unit)[0] == [[expected, 1], [0, 2]]
    quoted = file("a.jsonl", f'{{"t": "{number}", "v": 1}}\n{{"t": "1970-01-01", "v": 2}}\n')
    assert load(quoted, T, unit)[0] == [[expected, 1], [0, 2]]
    if number[0] != "." and not number.startswith("00"):
        for more in ("", '{"t": "1970-01-01"}\n'):
            rows, _ = load(file("b.jsonl", f'{{"t": {number}, "v": 1}}\n{more}'), T, unit)
            assert rows[0] == [expected, 1]


@pytest.mark.parametrize("unit", [None, "s"])
def test_numbers_far_away_and_texts_that_are_none(file: Any, unit: str | None) -> None:
    rows, reasons = load(file("a.csv", "t,v\n1970-01-01,1\n99999999999999999999,2\nyesterday,3\n"), T, unit)
    assert rows == [[0, 1]] and [reason[:2] for reason in reasons] == ["3:", "4:"]
    assert unit is not None or reasons[0].endswith("a number says no unit: give --time-unit s|ms|us|ns")


def test_numbers_without_a_unit_are_refused(file: Any, tmp_path: Any) -> None:
    paths = [file("a.csv", "t,v\n1379288667.631000,1\n,2\n"), file("a.jsonl", '{"t": 1379288667, "v": 1}\n'),
             file("b.jsonl", '{"T": "1379288667", "v": 1}\n')]  # fmt: skip
    for column in (pa.array([1379288667]), pa.array([1.5]), pa.array([1]).dictionary_encode()):
        paths.append(str(tmp_path / f"{len(paths)}.parquet"))
        pyarrow.parquet.write_table(pa.table({"t": column}), paths[-1])
    for path in paths:
        with pytest.raises(DsmsError) as caught:
            load(path, T)
        assert caught.value.code == "DS503" and "--time-unit" in str(caught.value), path


def test_parquet_columns(tmp_path: Any) -> None:
    path = str(tmp_path / "a.parquet")
    for column, unit, expected in (
        (pa.array([1379288667.631]), "s", [1379288667_631000]),
        (pa.array([5, None]), "ms", [5000, None]),
        (pa.array([Decimal("1.000000001")]), "s", [1_000_000]),
        (pa.array(["20200101", None]), None, [18262 * DAY, None]),
        (pa.array([-1], pa.timestamp("ns")), None, [-1]),
        (pa.array([1], pa.date32()), None, [DAY]),
    ):
        pyarrow.parquet.write_table(pa.table({"t": column}), path)
        assert load(path, T, unit)[0] == [[value, None] for value in expected]
    pyarrow.parquet.write_table(pa.table({"t": ["1970-01-01", "1", "x"], "v": [1, 2, 3]}), path)
    rows, reasons = load(path, T)
    assert rows == [[0, 1]] and len(reasons) == 2 and "--time-unit" in reasons[0]


CELLS = {  # what a file's cell holds, and what it becomes: as CSV and as JSON text, number or word
    "BOOL": [("true", True), ("false", False)],
    "INT": [("9007199254740993", 9007199254740993), ("3.0", 3), ("-0", 0)],
    "FLOAT": [("0.1", 0.1), ("1e300", 1e300), ("7", 7.0)],
    "DECIMAL(20,2)": [("12345678901234567.89", Decimal("12345678901234567.89")), ("1.500", Decimal("1.50")), ("1e2", Decimal(100))],
    "TIMESTAMP": [("2020-01-01T00:00:00.123456789Z", 18262 * DAY + 123456), ("20200101", 18262 * DAY)],
    "INTERVAL": [("1 h 30 min", 5400 * SECOND), ("26:03:04.5", 93784_500_000), ("-5", -5)],
    "STRING": [("x", "x"), ("12", "12")],
    "BYTES": [("\\x00ff", b"\x00\xff"), ("ab", b"ab")],
}  # fmt: skip
WRONG = {"BOOL": "2x", "INT": "1.5", "FLOAT": "x", "DECIMAL(20,2)": "1.234", "TIMESTAMP": "x", "INTERVAL": "1 month"}
BARE = ("BOOL", "INT", "FLOAT", "DECIMAL(20,2)")


@pytest.mark.parametrize("sql", CELLS)
def test_csv_and_json_hold_the_same(file: Any, sql: str) -> None:
    columns = [("a", sql)]
    for cell, expected in CELLS[sql]:
        bare = cell if sql in BARE or cell == "-5" else json.dumps(cell)
        for lines in ("", '{"A": null}\n'):  # read as a whole, and line by line
            assert load(file("a.jsonl", f'{{"a": {bare}}}\n{lines}'), columns)[0][0] == [expected]
        assert load(file("a.csv", f"a,b\n{cell},1\n"), columns)[0] == [[expected]]
        if sql not in ("BOOL", "INT", "FLOAT"):  # text is not taken for these by ingest, and a file has it
            (name,) = [t for t in TYPES if str(t) == sql]
            assert (
                cell == "-5"
                or sql == "BYTES"
                or taken({"a": [cell]}, name) == [str(pa.scalar(expected, name.arrow).as_py())]
            )
    if sql in WRONG:
        good = CELLS[sql][0][0]
        assert len(load(file("b.csv", f"a,b\n{good},1\n{WRONG[sql]},1\n"), columns)[1]) == 1
        bare = WRONG[sql] if sql in ("INT", "DECIMAL(20,2)") else json.dumps(WRONG[sql])
        first = good if sql in BARE else json.dumps(good)
        assert len(load(file("b.jsonl", f'{{"a": {first}}}\n{{"a": {bare}}}\n'), columns)[1]) == 1


def test_text_that_is_no_unicode_is_a_line_that_is_none(file: Any) -> None:
    rows, reasons = load(file("a.jsonl", '{"a": "x"}\n{"a": "\\ud800"}\n'), [("a", "STRING")])
    assert rows == [["x"]] and reasons == ['2: a: "\\ud800" is not STRING']


# -- instants as arguments --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [5 * SECOND, dt.datetime(1970, 1, 1, 0, 0, 5), np.datetime64(5, "s"), pd.Timestamp(5, unit="s"),
              np.int64(5 * SECOND), "1970-01-01T00:00:05Z", dt.datetime(1970, 1, 1, 2, 0, 5, tzinfo=BERLIN)]
)  # fmt: skip
def test_instants_as_arguments(given: Any) -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t; CREATE STREAM r (k INT)")
    engine.heartbeat("s", given)
    engine.advance(given)
    assert engine.now == 5 * SECOND and engine.world.inputs["s"].promised == 5 * SECOND


@pytest.mark.parametrize(
    "given", [1379288667_631000_000, 2**62, -(2**60), 1.5, None, "soon", np.datetime64("NaT"), True, [1]]
)
def test_what_is_no_instant(given: Any) -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t")
    for call in (lambda: engine.heartbeat("s", given), lambda: engine.advance(given)):
        with pytest.raises(DsmsError) as caught:
            call()
        assert caught.value.code == "DS508"
        assert ("nanoseconds" in str(caught.value)) == (isinstance(given, int) and given is not True)
    assert engine.now is None


def test_the_formats_of_a_table_hold_the_same() -> None:
    """A frame of all types, as pandas, polars, Arrow, Parquet read back, NumPy columns and rows."""
    schema = (Field("b", BOOL), Field("i", INT), Field("f", FLOAT), Field("d", decimal(20, 2)), Field("s", STRING),
              Field("y", BYTES), Field("t", TIMESTAMP), Field("n", INTERVAL))  # fmt: skip
    rows = [[True, 1, 1.5, Decimal("1.25"), "x", b"y", dt.datetime(1970, 1, 2), dt.timedelta(1)], [None] * 8]
    names = [f.name for f in schema]
    table = pa.table([pa.array([row[i] for row in rows]) for i in range(8)], names=names)
    buffer = io.BytesIO()
    pa.parquet.write_table(table, buffer)
    frames = [table, pl.from_arrow(table), table.to_pandas(), table.to_pandas(types_mapper=pd.ArrowDtype),
              pa.parquet.read_table(buffer), {n: table[n] for n in names}, {n: [row[i] for row in rows] for i, n in enumerate(names)},
              [dict(zip(names, row, strict=True)) for row in rows]]  # fmt: skip
    expected = both(rows, schema)
    assert not expected[1]
    for frame in frames:
        assert both(frame, schema) == expected, type(frame)
