"""All types by all ways in: the same input has the same outcome, values or a code, whichever way it
comes."""

from __future__ import annotations

import datetime as dt
import io
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
from dsms.intake.convert import to_batch
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
from dsms_server import decode
from tests.effort import examples
from tests.ways import (
    BERLIN,
    DAY,
    REFUSED,
    SECOND,
    TYPES,
    VALUES,
    both,
    columns,
    one,
    over_wire,
    taken,
)

CASES = [(v, t, expected.get(t, REFUSED)) for v, expected in VALUES for t in TYPES]


@pytest.mark.parametrize("form", ["rows", "dicts", "columns", "objects", "beside"])
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_kind_of_value(type_: Type, form: str) -> None:
    for value, _, expected in (case for case in CASES if case[1] is type_):
        data: Any = {"rows": [[value]], "dicts": [{"A": value}], "columns": {"a": [value]}}.get(
            form
        )
        if form == "objects":
            objects = np.empty(1, object)
            objects[0] = value
            data = pd.DataFrame({"a": pd.Series(objects, dtype=object)})
            if isinstance(value, (float, Decimal)) and value != value:
                expected = None  # pandas means a missing value by it
        # a value beside one of another kind, so that no Arrow column holds both
        if form == "beside":
            data = [[value], [(1, 2)]]
        got = both(data, one(type_))
        refused = got == "DS503" or any(first == 0 for _, _, first in got[1])
        assert refused == (expected is REFUSED), (value, got)
        if not refused:
            assert got[0][0][0] == str(pa.scalar(expected, type_.arrow).as_py()), (value, got)


def values_of_any_kind() -> st.SearchStrategy:
    plain = (
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3)
    )
    more = (
        st.binary(max_size=3)
        | st.datetimes()
        | st.dates()
        | st.timedeltas()
        | st.decimals(places=2)
    )
    return plain | more | st.integers(0, len(VALUES) - 1).map(lambda i: VALUES[i][0])


@given(st.sampled_from(TYPES), st.lists(values_of_any_kind(), max_size=5), st.booleans())
@settings(max_examples=examples(150), deadline=None)
def test_lists_of_mixed_values(type_: Type, values: list[Any], as_rows: bool) -> None:
    both([[v] for v in values] if as_rows else {"a": values}, one(type_))


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


COUNTS = (1500, -1500, 10**12, -(10**12), 2**63 - 1)  # of any unit; the last one is far away


def times_of(unit: str, length: bool, count: int) -> Iterator[Any]:
    """A column with this one time, in all forms that have times."""
    array = pa.array([count]).cast(pa.duration(unit) if length else pa.timestamp(unit, "UTC"))
    known = np.array([count], f"{'m8' if length else 'M8'}[{unit}]")
    yield from (array, array.dictionary_encode(), pa.chunked_array([array, array]))
    yield from (known, np.array([known[0], None], object), pd.Series(known))
    yield from ([None, array[0]], [known[0]], [pd.Series(known).iloc[0]])
    if unit != "s":
        yield pl.Series([count]).cast(pl.Duration(unit) if length else pl.Datetime(unit))


@pytest.mark.parametrize("length", [False, True], ids=["instants", "lengths"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_any_unit_in_any_form(unit: str, length: bool) -> None:
    for count in COUNTS:
        for column in times_of(unit, length, count):
            for type_ in (TIMESTAMP, INTERVAL, INT, STRING):
                both({"a": column}, one(type_))
                if isinstance(column, list):
                    both([[value] for value in column], one(type_))


def text_of(offsets: list[int], text: bytes) -> pa.Array:
    """Texts by their buffers, which need not be sound."""
    return pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(text)
    )


@pytest.mark.parametrize(
    ("type_", "data", "expected"),
    [
        (INT, pd.DataFrame({"a": [1.0, None, 3.0]}), ["1", "None", "3"]),
        (INT, pd.DataFrame({"a": [1.5, None]}), "DS503"),
        (INT, pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}), ["0", "1"]),
        (INT, pd.DataFrame([[1, 2]], columns=["a", "A"]), "DS506"),
        (
            TIMESTAMP,
            pd.DataFrame({"a": pd.period_range("1970-02", periods=1, freq="M")}),
            [str(31 * DAY)],
        ),
        (
            TIMESTAMP,
            pa.table({"a": pa.array(pd.Series(pd.period_range("1970-02", periods=1, freq="M")))}),
            "DS503",
        ),
        (STRING, pl.DataFrame({"a": ["x", None]}), ["x", "None"]),
        (BYTES, pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}), "DS503"),
        (decimal(38, 0), pl.DataFrame({"a": pl.Series([2**70], dtype=pl.Int128)}), [str(2**70)]),
        (decimal(20, 0), {"a": pa.array([2**64 - 1], pa.uint64())}, [str(2**64 - 1)]),
        (INTERVAL, {"a": pa.array([2**62], pa.duration("s"))}, "DS503"),
        (INTERVAL, {"a": np.array([3], "m8[D]")}, [str(3 * DAY)]),
        (TIMESTAMP, {"a": np.array([3], "M8[25s]")}, [str(75 * SECOND)]),
        (BOOL, {"a": pa.array([1, 0], pa.bool8())}, ["True", "False"]),
        (INT, pa.table({"a": pa.array([1, 2, 3])}).slice(1), ["2", "3"]),
        (BYTES, {"a": np.array([b"b\0c"])}, [repr(b"b\0c")]),
        (STRING, {"a": np.array(["b\0c"])}, ["b\0c"]),
        (STRING, {"a": [np.str_("b\0c"), None]}, ["b\0c", "None"]),
        (decimal(9, 2), pd.DataFrame({"a": pd.Series([Decimal("sNaN")], dtype=object)}), "DS503"),
        (
            decimal(9, 2),
            pd.DataFrame({"a": pd.Series([Decimal("NaN"), None], dtype=object)}),
            ["None", "None"],
        ),
        (STRING, {"a": text_of([0, 1], b"\xff")}, "DS503"),
        (STRING, pa.table({"a": text_of([0, 1000, 2], b"ab")}), "DS503"),
        (STRING, {"a": pa.DictionaryArray.from_arrays([0, 7], ["x", "y"], safe=False)}, "DS503"),
        (TIMESTAMP, pa.table({"a": pa.array([DAY // 1000 + 1], pa.date64())}), "DS503"),
        (TIMESTAMP, pa.table({"a": pa.array([DAY // 1000], pa.date64())}), [str(DAY)]),
    ],
)
def test_what_columns_become(type_: Type, data: Any, expected: Any) -> None:
    assert taken(data, type_) == expected


# -- rows ------------------------------------------------------------------------------------------

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
        assert (
            values == [["1"] * len(data), [str(SECOND)] * len(data)]
            and not refusals
            and kept is None
        )
    assert both([None, "ab", 5, {1: 2}.keys(), [1]], PAIR)[1] == [
        ("not a row of this stream", 5, 0)
    ]
    assert both([Pair(1, at), None], PAIR)[2] == [0]


def test_keys_in_any_case_row_by_row() -> None:
    rows: list[Any] = [
        {"k": 1, "t": 1},
        {"K": 2, "T": 2},
        {"k": 3, "K": 4},
        {"T": 5},
        {"k": 6, "t": 6, "T": 6},
    ]
    values, refusals, _ = both(rows, PAIR)
    assert values == [["1", "2", "None"], ["1", "2", "5"]]
    assert refusals == [("not a row of this stream", 2, 2)]
    assert (
        both([{"k": 1}, {"q": 1}], PAIR)
        == both([{1: 1}], PAIR)
        == both({"k": [1], "q": [1]}, PAIR)
        == "DS501"
    )
    quoted = (Field("a", INT), Field("A", INT))
    assert both([{"A": 1, "a": 2}], quoted)[0] == [["2"], ["1"]]


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        pa.table({}),
        pa.table({"q": pa.array([], pa.int64())}),
        pd.DataFrame(),
        5,
        "ab",
        b"ab",
        {"k": "ab"},
        {"k": 5},
        {"k": [1], "t": [1, 2]},
        object(),
        iter([[1, 1]]),
    ],
)
def test_what_holds_no_rows(data: Any) -> None:
    both(data, PAIR)
    both(data, (Field("k", INT, nullable=False),))


def test_many_rows_with_instants_are_read_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[i, dt.datetime(1970, 1, 1) + dt.timedelta(seconds=i)] for i in range(2000)]
    monkeypatch.setattr(decode, "to_batch", lambda *args: pytest.fail("rows were read one by one"))
    assert over_wire(rows, PAIR).columns[1].to_pylist() == [i * SECOND for i in range(2000)]


# -- instants as arguments -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        5 * SECOND,
        dt.datetime(1970, 1, 1, 0, 0, 5),
        np.datetime64(5, "s"),
        pd.Timestamp(5, unit="s"),
        np.int64(5 * SECOND),
        "1970-01-01T00:00:05Z",
        dt.datetime(1970, 1, 1, 2, 0, 5, tzinfo=BERLIN),
    ],
)
def test_instants_as_arguments(given: Any) -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t; CREATE STREAM r (k INT)")
    engine.heartbeat("s", given)
    engine.advance(given)
    assert engine.now == 5 * SECOND and engine.runtime.inputs["s"].promised == 5 * SECOND


@pytest.mark.parametrize(
    "given",
    [1379288667_631000_000, 2**62, -(2**60), 1.5, None, "soon", np.datetime64("NaT"), True, [1]],
)
def test_what_is_no_instant(given: Any) -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t")
    for call in (lambda: engine.heartbeat("s", given), lambda: engine.advance(given)):
        with pytest.raises(DsmsError) as caught:
            call()
        assert caught.value.code == "DS508"
        assert ("nanoseconds" in str(caught.value)) == (
            isinstance(given, int) and given is not True
        )
    assert engine.now is None


def test_the_formats_of_a_table_hold_the_same() -> None:
    """A frame of all types, as pandas, polars, Arrow, Parquet read back, NumPy columns and rows."""
    schema = (Field("b", BOOL), Field("i", INT), Field("f", FLOAT), Field("d", decimal(20, 2)),
              Field("s", STRING),
              Field("y", BYTES), Field("t", TIMESTAMP),
              Field("n", INTERVAL))  # a table  # fmt: skip  # a table
    rows = [
        [True, 1, 1.5, Decimal("1.25"), "x", b"y", dt.datetime(1970, 1, 2), dt.timedelta(1)],
        [None] * 8,
    ]
    names = [f.name for f in schema]
    table = pa.table([pa.array([row[i] for row in rows]) for i in range(8)], names=names)
    buffer = io.BytesIO()
    pa.parquet.write_table(table, buffer)
    frames = [
        table,
        pl.from_arrow(table),
        table.to_pandas(),
        table.to_pandas(types_mapper=pd.ArrowDtype),
        pa.parquet.read_table(buffer),
        {n: table[n] for n in names},
        {n: [row[i] for row in rows] for i, n in enumerate(names)},
        [dict(zip(names, row, strict=True)) for row in rows],
    ]
    expected = both(rows, schema)
    assert not expected[1]
    for frame in frames:
        assert both(frame, schema) == expected, type(frame)


EDGES = sorted(
    {sign * (2**power + more) for power in (53, 60, 62, 63, 64) for more in (-2048, -1024, -1, 0, 1,
     2, 1024, 2048) for sign in (1, -1)}
)  # fmt: skip  # a table


@pytest.mark.parametrize("type_", [FLOAT, INT, decimal(38, 0), TIMESTAMP, INTERVAL], ids=str)
def test_whole_numbers_at_the_edges_are_taken_alike_from_everywhere(type_: Type) -> None:
    """A float is what holds them exactly."""
    for value in EDGES:
        signed, unsigned = -(2**63) <= value < 2**63, 0 <= value < 2**64
        ways: dict[str, Any] = {"rows": [[value]], "dicts": [{"a": value}]}
        ways["columns"] = {"a": [value]}
        for fits, kind in ((signed, "int64"), (unsigned, "uint64")):
            if not fits:
                continue
            array = np.array([value], kind)
            ways |= {
                f"{kind} numpy": {"a": array},
                f"{kind} numbers": [[array[0]]],
                f"{kind} arrow": pa.table({"a": pa.array([value], getattr(pa, kind)())}),
                f"{kind} pandas": pd.DataFrame({"a": array}),
                f"{kind} polars": pl.DataFrame({"a": array}),
            }
        found = {way: both(data, one(type_)) for way, data in ways.items()}
        values = {w: None if isinstance(f, str) or f[1] else f[0][0] for w, f in found.items()}
        assert len(set(map(str, values.values()))) == 1, (value, values)
        if type_ == FLOAT:
            assert (values["rows"] is not None) == (int(float(value)) == value), (
                value,
                found["rows"],
            )


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_a_column_without_a_value_fits_every_type(type_: Type) -> None:
    """As pandas has an empty column of a file (NaN), or one of NaT, and Arrow one of any type."""
    columns = (
        pd.Series([float("nan")] * 2),
        pd.Series([pd.NaT] * 2),
        pd.Series([pd.NaT] * 2, dtype="timedelta64[ns]"),
    )
    for column in columns:
        assert taken(pd.DataFrame({"a": column}), type_) == ["None", "None"]
    assert taken(pa.table({"a": pa.nulls(2, pa.int32())}), type_) == ["None", "None"]


@pytest.mark.parametrize(
    "value",
    [
        [np.timedelta64(1500, "ms")],
        np.array([1, 2]),
        [np.datetime64("2020-01-01")],
        [dt.datetime(2020, 1, 1)],
        [pd.NaT, "a"],
        [[np.int8(1)]],
        np.timedelta64(10**10, "D"),
    ],
    ids=str,
)
def test_a_value_that_is_refused_is_shown_alike(value: Any) -> None:
    """In process as from a client, also what stands in a list or is too long for its type."""
    for type_ in (INT, INTERVAL):
        schema, data = one(type_), [[value]]
        (here,) = to_batch(data, schema, "stream s").refusals
        (there,) = over_wire(data, schema).refusals
        assert here.detail == there.detail
