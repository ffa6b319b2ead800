"""Conversion of what users hand in."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.errors import UsageError
from dsms.intake.convert import to_batch
from dsms.sql.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    INTERVAL,
    MAX_INSTANT,
    MIN_INSTANT,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    decimal,
)
from tests.effort import examples

TRADES: Schema = (Field("sym", STRING), Field("Px", FLOAT), Field("t", TIMESTAMP, nullable=False))


def one(type_: Type, nullable: bool = True) -> Schema:
    return (Field("a", type_, nullable=nullable),)


def taken(data: Any, schema: Schema) -> list[list[Any]]:
    out = to_batch(data, schema)
    assert [c.type for c in out.columns] == [f.type.arrow for f in schema]
    assert all(len(c) == len(out) for c in out.columns)
    return [c.to_pylist() for c in out.columns]


# -- types -----------------------------------------------------------------------------------------

UTC2 = dt.timezone(dt.timedelta(hours=2))


EPOCH2 = dt.datetime(1970, 1, 1, 2, tzinfo=UTC2)  # the epoch itself


@pytest.mark.parametrize(
    ("type_", "column", "expected"),
    [
        (INT, pa.array([1, None], pa.int32()), [1, None]),
        (INT, pa.array([255], pa.uint8()), [255]),
        (INT, pa.array([7], pa.uint64()), [7]),
        (INT, pa.array([Decimal(7)], pa.decimal128(38, 0)), [7]),
        (INT, pa.nulls(2), [None, None]),
        (INT, np.array([1, 2], ">i8"), [1, 2]),
        (INT, np.ma.array([1, 2], mask=[False, True]), [1, None]),
        (INT, np.array([1, None], object), [1, None]),
        (INT, range(2), [0, 1]),
        (FLOAT, pa.array([1.5], pa.float32()), [1.5]),
        (FLOAT, pa.array([3], pa.int64()), [3.0]),
        (FLOAT, [1, 2.5], [1.0, 2.5]),
        (BOOL, [True, None], [True, None]),
        (STRING, pa.array(["x", None], pa.large_string()), ["x", None]),
        (STRING, pa.array(["x", "y", "x"]).dictionary_encode(), ["x", "y", "x"]),
        (STRING, np.array(["a", "bc"]), ["a", "bc"]),
        (STRING, pl.Series(["u", "v"], dtype=pl.Categorical), ["u", "v"]),
        (BYTES, pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        (BYTES, [b"\x00", None], [b"\x00", None]),
        (decimal(5, 2), pa.array([Decimal("1.5")], pa.decimal128(10, 1)), [Decimal("1.50")]),
        (decimal(5, 2), pa.array([12], pa.int16()), [Decimal("12.00")]),
        (decimal(38, 30), pa.array([12]), [Decimal("12." + "0" * 30)]),
        (decimal(5, 2), ["1.20", None], [Decimal("1.20"), None]),
        (
            decimal(5, 2),
            [" +1. ", "-.5", "1E2", "12e-1"],
            [Decimal(v) for v in ("1", "-0.5", "100", "1.2")],
        ),
        (
            decimal(5, 2),
            [Decimal("1.2"), "3", 4],
            [Decimal("1.20"), Decimal("3.00"), Decimal("4.00")],
        ),
        (TIMESTAMP, pa.array([-1, 1, None], pa.timestamp("ns")), [-1, 0, None]),
        (TIMESTAMP, pa.array([-1], pa.timestamp("s", "Asia/Tokyo")), [-1_000_000]),
        (TIMESTAMP, pa.array([5], pa.timestamp("us", "UTC")), [5]),
        (TIMESTAMP, pa.array([1], pa.date32()), [86_400_000_000]),
        (TIMESTAMP, pa.array([86_400_000], pa.date64()), [86_400_000_000]),
        (TIMESTAMP, np.array(["1970-01-01T00:00:01", "NaT"], "datetime64[ms]"), [1_000_000, None]),
        (TIMESTAMP, [dt.datetime(1970, 1, 1, 0, 0, 1), EPOCH2, None], [1_000_000, 0, None]),
        (
            TIMESTAMP,
            [7, dt.datetime(1970, 1, 1, 0, 0, 1), "1970-01-01T00:00:02Z"],
            [7, 1_000_000, 2_000_000],
        ),
        (TIMESTAMP, ["1970-01-01 00:00:00.5", None], [500_000, None]),
        (TIMESTAMP, ["1970-01-01T02:00:00+02:00"], [0]),
        (TIMESTAMP, [np.datetime64(-1, "ns"), "1970-01-01"], [-1, 0]),
        (INTERVAL, pa.array([-1500], pa.duration("ns")), [-2]),
        (INTERVAL, [dt.timedelta(seconds=1), 5], [1_000_000, 5]),
        (INTERVAL, [dt.timedelta(seconds=1)], [1_000_000]),
    ],
)
def test_lossless_conversions(type_: Type, column: Any, expected: list[Any]) -> None:
    assert taken({"a": column}, one(type_)) == [expected]


@pytest.mark.parametrize(
    ("type_", "column", "part"),
    [
        (INT, pa.array([1.5]), "expected INT, got float 1.5 in row 0"),
        (INT, np.array([1.0, np.nan]), "expected INT, got float nan in row 1"),
        (INT, [2.0**53 + 2], "expected INT, got float 9007199254740994.0"),
        (INT, pa.array([True]), "expected INT, got bool"),
        (
            INT,
            pa.array([2**64 - 1], pa.uint64()),
            "got int 18446744073709551615 in row 0: needs more than 64 bits",
        ),
        (INT, [1, True], "expected INT, got bool True in row 1"),
        (INT, ["1"], "expected INT, got str '1' in row 0"),
        (INT, [2**63], "needs more than 64 bits"),
        (FLOAT, [1.5, 2**53 + 1], "not exact as a FLOAT"),
        (
            FLOAT,
            pa.array([2**53 + 1]),
            "got int 9007199254740993 in row 0: is not exact as a FLOAT",
        ),
        (BOOL, [1], "expected BOOL, got int 1"),
        (STRING, [1.5], "expected STRING, got float 1.5"),
        (STRING, ["a", b"b"], "expected STRING, got bytes b'b' in row 1"),
        (STRING, ["\ud800"], "in row 0"),
        (BYTES, ["a", b"b"], "expected BYTES, got str 'a' in row 0"),
        (decimal(5, 2), [1.5], "expected DECIMAL(5,2), got float 1.5"),
        (decimal(5, 2), ["1.234"], "got str '1.234'"),
        (decimal(5, 2), ["1234.5"], "has more than 5 digits"),
        (decimal(5, 2), ["NaN"], "got str 'NaN'"),
        (decimal(9, 2), ["1", "1_000"], "got str '1_000' in row 1"),
        (decimal(9, 2), [" 1_0"], "got str ' 1_0'"),
        (decimal(9, 2), ["\uff11"], "got str '\uff11'"),
        (decimal(9, 2), ["1e99999"], "got str '1e99999'"),
        (
            TIMESTAMP,
            pa.array(["1970-01-01", "1380000000"]),
            "got str '1380000000' in row 1: a number says no unit",
        ),
        (TIMESTAMP, ["yesterday"], "got str 'yesterday' in row 0"),
        (INTERVAL, [1.5], "expected INTERVAL, got float"),
    ],
)
def test_a_wrong_column_is_an_error_that_names_it(type_: Type, column: Any, part: str) -> None:
    with pytest.raises(UsageError) as err:
        to_batch({"a": column}, one(type_), "stream s")
    assert (
        err.value.code == "DS503"
        and "column 'a' of stream s" in err.value.message
        and part in err.value.message
    )


def test_exact_arrow_batches_are_not_copied() -> None:
    batch = pa.record_batch({"sym": ["x"], "Px": [1.0], "t": pa.array([1], pa.int64())})
    out = to_batch(batch, TRADES)
    assert all(
        a.buffers()[-1].address == b.buffers()[-1].address
        for a, b in zip(out.columns, batch.columns, strict=True)
    )
    assert out.kept is None and out.sent == 1


def test_pandas_nan_is_null_elsewhere_it_is_nan() -> None:
    frame = pd.DataFrame(
        {"T": pd.to_datetime(["1970-01-01", "1970-01-02"]), "px": [1.5, None], "sym": ["a", None]}
    )
    assert taken(frame, TRADES) == [["a", None], [1.5, None], [0, 86_400_000_000]]
    assert taken(pd.DataFrame({"a": [1.0, np.nan]}), one(INT)) == [[1, None]]
    with pytest.raises(UsageError, match=r"got float 1\.5 in row 0\n.*Int64"):
        to_batch(pd.DataFrame({"a": [1.5]}), one(INT))
    mixed = pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)})
    with pytest.raises(UsageError, match="expected INT, got str 'x' in row 1"):
        to_batch(mixed, one(INT))
    for column in (
        [float("nan")],
        np.array([np.nan]),
        pa.array([float("nan")]),
        pl.Series([float("nan")]),
    ):
        (values,) = taken({"a": column}, one(FLOAT))
        assert values[0] != values[0]


def test_polars_tables_and_chunks() -> None:
    frame = pl.DataFrame(
        {
            "sym": ["a", "b"],
            "px": [1, 2],
            "t": [dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 1)],
        }
    )
    expected = [["a", "b"], [1.0, 2.0], [0, 3_600_000_000]]
    assert taken(frame, TRADES) == expected
    table = frame.to_arrow()
    assert taken(pa.concat_tables([table.slice(0, 1), table.slice(1)]), TRADES) == expected
    assert taken(table.slice(0, 0), TRADES) == [[], [], []]


# -- shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code", "part"),
    [
        (
            {"sym": ["a"], "price": [1.0], "t": [1]},
            "DS501",
            "has no column 'price'; it has sym, Px, t",
        ),
        ({"symm": ["a"], "t": [1]}, "DS501", "did you mean sym?"),
        ({"sym": ["a"]}, "DS502", "needs a value for NOT NULL column t; columns given: sym"),
        ({"sym": ["a", "b"], "t": [1]}, "DS504", "different lengths: sym 2, t 1"),
        ({"sym": "a", "t": 1}, "DS505", "column 'sym' is a str"),
        ({"PX": [1.0], "px": [1.0], "t": [1]}, "DS506", "column 'Px' of the stream is given twice"),
        (42, "DS505", "can't be read from an int"),
    ],
)
def test_wrong_shapes(data: Any, code: str, part: str) -> None:
    with pytest.raises(UsageError) as err:
        to_batch(data, TRADES)
    assert err.value.code == code and part in str(err.value)


def test_missing_columns_are_null() -> None:
    assert taken({"t": [1, 2]}, TRADES) == [[None, None], [None, None], [1, 2]]


def test_names_that_differ_in_case_only() -> None:
    schema = (Field("a", INT), Field("A", INT))
    assert taken({"A": [1], "a": [2]}, schema) == [[2], [1]]
    assert taken({"a": [2]}, schema) == [[2], [None]]


def test_rows_refuse_only_what_is_wrong() -> None:
    rows = [
        ["a", 1.0, 5],
        ["b", "x", 6],
        ["c", 2, None],
        ["d", 1.0],
        7,
        ["e", None, "1970-01-01T00:00:00Z"],
    ]
    out = to_batch(rows, TRADES)
    assert [c.to_pylist() for c in out.columns] == [["a", "e"], [1.0, None], [5, 0]]
    assert out.kept is not None and out.kept.tolist() == [0, 5] and out.sent == 6
    assert [(r.reason, r.count, r.first) for r in out.refusals] == [
        ("not a row of this stream", 2, 3),
        ("wrong value", 1, 1),
        ("NULL in a NOT NULL column", 1, 2),
    ]
    assert "2 values for 3 columns (sym, Px, t)" in str(out.refusals[0])
    assert "column Px: expected FLOAT, got str 'x'" in str(out.refusals[1])


def test_all_rows_wrong_and_no_rows() -> None:
    out = to_batch([[1], "x"], TRADES)
    assert (
        len(out) == 0 and [len(c) for c in out.columns] == [0, 0, 0] and out.refusals[0].count == 2
    )
    assert len(to_batch([], TRADES)) == 0


def test_rows_as_dicts() -> None:
    assert taken([{"T": 1, "sym": "a"}, {"T": 2, "px": 3}], TRADES) == [
        ["a", None],
        [None, 3.0],
        [1, 2],
    ]
    with pytest.raises(UsageError, match="no column 'p'"):
        to_batch([{"p": 1}], TRADES)


def test_instants_outside_the_years_are_refused() -> None:
    column = pa.array([0, 2**62, -(2**62), None], pa.timestamp("s"))
    out = to_batch({"a": column}, one(TIMESTAMP))
    assert out.columns[0].to_pylist() == [0, None]
    assert out.refusals[0].count == 2 and "0001-9999" in str(out.refusals[0])
    edges = [MIN_INSTANT - 1, MIN_INSTANT, MAX_INSTANT, MAX_INSTANT + 1]
    assert taken({"a": edges}, one(TIMESTAMP)) == [[MIN_INSTANT, MAX_INSTANT]]


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.decimals(
        allow_nan=False, allow_infinity=False, places=2, min_value=-(10**5), max_value=10**5
    ),
    st.datetimes(),
    st.timedeltas(),
)


types = st.sampled_from([BOOL, INT, FLOAT, STRING, BYTES, TIMESTAMP, INTERVAL, decimal(6, 2)])


@given(types, st.lists(values, max_size=6))
@settings(max_examples=examples(400), deadline=None)
def test_a_value_is_taken_alone_if_and_only_if_it_is_taken_in_company(
    type_: Type, column: list[Any]
) -> None:
    """Inference over a whole list must not take, or refuse, what the value alone would not."""
    together = to_batch([[v] for v in column], one(type_))
    alone = [to_batch([[v]], one(type_)) for v in column]
    expected = [a.columns[0][0] for a in alone if len(a)]
    assert str(together.columns[0].to_pylist()) == str([v.as_py() for v in expected])
    assert sum(r.count for r in together.refusals) == len(column) - len(expected)
