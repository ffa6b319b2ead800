"""Conversion of what users hand in, and a stream's way in, against row-by-row references written
here."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.errors import UsageError
from dsms.intake.convert import Converted, to_batch
from dsms.intake.stream import StreamInput
from dsms.sql.catalog import StreamDef
from dsms.sql.types import (
    ALWAYS,
    BOOL,
    BYTES,
    FLOAT,
    FOREVER,
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


# -- the way in ------------------------------------------------------------------------------------

EVENTS: Schema = (Field("t", TIMESTAMP), Field("n", INT))


@dataclass
class Reference:
    """The rules of lateness, row by row."""

    slack: int
    future: int | None
    newest: int | None = None
    promised: int | None = None

    def row(self, t: int | None) -> str:
        known = [x for x in (self.newest, self.promised) if x is not None]
        if t is None:
            return "null"
        if self.future is not None and known and t > max(known) + self.future:
            return "far"
        if self.promised is not None and t <= self.promised:
            return "late"
        if self.newest is not None and t <= self.newest - self.slack - 1:
            return "late"
        self.newest = t if self.newest is None else max(self.newest, t)
        return "ok"


def feed(stream: StreamInput, ts: list[int | None], numbers: list[int]) -> Any:
    return stream.accept([pa.array(ts, pa.int64()), pa.array(numbers, pa.int64())])


steps = st.lists(
    st.one_of(
        # a frame
        st.lists(st.one_of(st.none(), st.integers(-30, 60), st.integers(0, 10)), max_size=8),
        st.integers(-30, 60),  # a heartbeat
    ),
    max_size=10,
)


@given(steps, st.integers(0, 12), st.one_of(st.none(), st.integers(0, 20)), st.randoms())
@settings(max_examples=examples(400), deadline=None)
def test_lateness_and_refusals_match_the_rules_row_by_row(
    script: Any, slack: int, future: int | None, rnd: Any
) -> None:
    stream = StreamInput(
        StreamDef("s", EVENTS, timestamp=0, slack=slack, max_future=future, late_into="other")
    )
    ref = Reference(slack, future)
    number, good, late, far, nulls, seen_late = 0, [], 0, 0, 0, []
    out: list[tuple[int, int, int]] = []
    early: list[tuple[int, int, int]] = []
    upto = ALWAYS
    for step in script:
        if isinstance(step, int):
            stream.heartbeat(step)
            ref.promised = step if ref.promised is None else max(ref.promised, step)
        else:
            numbers = list(range(number, number + len(step)))
            number += len(step)
            done = feed(stream, step, numbers)
            verdicts = [ref.row(t) for t in step]
            good += [(t, n) for t, n, v in zip(step, numbers, verdicts, strict=True) if v == "ok"]
            assert done.accepted == verdicts.count("ok") and done.late == verdicts.count("late")
            assert sum(r.count for r in done.refusals) == verdicts.count("far") + verdicts.count(
                "null"
            )
            late, far, nulls = (
                late + done.late,
                far + verdicts.count("far"),
                nulls + verdicts.count("null"),
            )
            seen_late += [] if done.late_columns is None else done.late_columns[1].to_pylist()
        if rnd.random() < 0.5:
            upto = collect(stream, out, early, upto)
    stream.end()
    collect(stream, out, early, upto)
    expected = [(t, n, i) for i, (t, n) in enumerate(sorted(good, key=lambda g: g[0]))]
    # sorted stably, numbered in that order, each row once
    assert out == expected and early == expected
    assert (stream.counts.accepted, stream.counts.late) == (len(good), late) and len(
        seen_late
    ) == late
    assert (
        stream.counts.refused["beyond MAX FUTURE"] == far
        and stream.counts.refused["NULL timestamp"] == nulls
    )


def collect(stream: StreamInput, out: list, early: list, before: int) -> int:
    got = stream.release()
    assert got.upto == stream.completed >= before
    for rows, into in ((got.rows(), out), (got.early(), early)):
        if rows is not None:
            assert rows.exp is None and rows.sign is None and len(rows.ids) == 1
            into += zip(
                rows.ts.tolist(), rows.cols[1].to_pylist(), rows.ids[0].tolist(), strict=True
            )
    rows = got.rows()
    if rows is not None:
        assert rows.ts[0] > before and rows.ts[-1] <= got.upto
    return got.upto


@given(st.data(), st.integers(0, 15))
@settings(max_examples=examples(300), deadline=None)
def test_disorder_within_slack_equals_sorted_input(data: Any, slack: int) -> None:
    """Rows, arrival numbers and what a frame-by-frame reader gets in the end, for any disorder and
    any cuts."""
    ordered = sorted(data.draw(st.lists(st.integers(0, 60), max_size=40)))
    delays = data.draw(
        st.lists(st.integers(0, slack), min_size=len(ordered), max_size=len(ordered))
    )
    shuffled = [
        i
        for _, i in sorted((t + d, i) for i, (t, d) in enumerate(zip(ordered, delays, strict=True)))
    ]
    rows = [(ordered[i], i) for i in shuffled]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=8)))
    stream = StreamInput(StreamDef("s", EVENTS, timestamp=0, slack=slack))
    out: list = []
    upto = ALWAYS
    for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        feed(stream, [t for t, _ in rows[a:b]], [n for _, n in rows[a:b]])
        upto = collect(stream, out, [], upto)
    stream.end()
    collect(stream, out, [], upto)
    assert stream.counts.late == 0
    assert out == [(t, n, i) for i, (t, n) in enumerate(sorted(rows, key=lambda r: r[0]))]


@given(
    st.lists(st.integers(0, 40), max_size=30),
    st.integers(0, 10),
    st.lists(st.integers(0, 30), max_size=5),
)
@settings(max_examples=examples(200), deadline=None)
def test_cuts_change_nothing(ts: list[int], slack: int, cuts: list[int]) -> None:
    def run(edges: list[int]) -> Any:
        stream = StreamInput(StreamDef("s", EVENTS, timestamp=0, slack=slack, max_future=25))
        out: list = []
        for a, b in pairwise(edges):
            feed(stream, list(ts[a:b]), list(range(a, b)))
            collect(stream, out, [], ALWAYS)
        return out, stream.completed, stream.counts

    edges = sorted({0, len(ts), *(c for c in cuts if c < len(ts))})
    assert run(edges) == run([0, len(ts)])


def test_zero_slack_frames_are_handed_on_without_a_copy() -> None:
    stream = StreamInput(StreamDef("s", EVENTS, timestamp=0))
    ts = pa.array([1, 2, 2, 3])
    stream.accept([ts, pa.array([1, 2, 3, 4])])
    got = stream.release()
    assert (
        got.upto == 2
        and got.complete[0].ts.tolist() == [1, 2, 2]
        and got.fresh[0].ts.tolist() == [1, 2, 2, 3]
    )
    assert got.complete[0].ts.ctypes.data == ts.buffers()[1].address
    feed(stream, [3, 4], [5, 6])
    got = stream.release()
    assert [b.ts.tolist() for b in got.complete] == [[3], [3]] and [
        b.ts.tolist() for b in got.fresh
    ] == [[3, 4]]


@pytest.mark.parametrize(
    ("unit", "value", "instant"), [("s", -1, -1_000_000), ("ms", -1, -1000), ("ns", -1, -1)]
)
def test_int_event_time_in_units_rounds_down(unit: str, value: int, instant: int) -> None:
    stream = StreamInput(StreamDef("s", (Field("t", INT),), timestamp=0, unit=unit))
    done = stream.accept([pa.array([value, 2**63 - 1 if unit != "ns" else None], pa.int64())])
    assert done.accepted == 1 and sum(r.count for r in done.refusals) == 1
    assert stream.newest == instant


def test_heartbeats_override_slack_and_make_rows_late() -> None:
    stream = StreamInput(StreamDef("s", EVENTS, timestamp=0, slack=100))
    feed(stream, [10, 5], [0, 1])
    assert stream.release().rows() is None
    stream.heartbeat(10)
    rows = stream.release().rows()
    assert rows is not None and rows.ts.tolist() == [5, 10] and rows.ids[0].tolist() == [0, 1]
    assert feed(stream, [10, 11], [2, 3]).late == 1
    stream.heartbeat(3)  # an earlier promise stands
    assert stream.completed == 10


def test_max_future_names_the_way_out() -> None:
    stream = StreamInput(StreamDef("s", EVENTS, timestamp=0, max_future=60_000_000))
    assert feed(stream, [10**15], [0]).accepted == 1  # the first row is free
    done = feed(stream, [10**15 + 1, 2 * 10**15, 10**15 + 2], [1, 2, 3])
    assert done.accepted == 2 and done.refusals[0].first == 1
    text = str(done.refusals[0])
    assert (
        "2033-05-18T03:33:20Z is more than MAX FUTURE 1 min after 2001-09-09T01:46:40.000001Z"
        in text
    )
    assert "heartbeat" in text
    stream.heartbeat(2 * 10**15 - 1)
    assert feed(stream, [2 * 10**15], [4]).accepted == 1


def test_system_time_never_decreases() -> None:
    stream = StreamInput(StreamDef("s", (Field("n", INT),)))
    with pytest.raises(UsageError, match="DS509"):
        stream.accept([pa.array([1])])
    stream.accept([pa.array([1, 2])], now=100)
    stream.accept([pa.array([3])], now=50)  # the clock was set back
    assert stream.completed == 99 and stream.release().rows() is None
    stream.advance(101)
    rows = stream.release().rows()
    assert (
        rows is not None
        and rows.ts.tolist() == [100, 100, 100]
        and rows.ids[0].tolist() == [0, 1, 2]
    )
    with pytest.raises(UsageError, match="its clock is the engine's"):
        stream.heartbeat(5)


def test_after_the_end_nothing_follows() -> None:
    stream = StreamInput(StreamDef("s", EVENTS, timestamp=0, slack=5))
    feed(stream, [3, 1], [0, 1])
    stream.end()
    stream.end()
    got = stream.release()
    rows = got.rows()
    assert (
        got.upto == FOREVER - 1
        and rows is not None
        and rows.ts.tolist() == [1, 3]
        and stream.waiting == 0
    )
    with pytest.raises(UsageError, match="was ended"):
        feed(stream, [4], [2])


def test_the_reply_adds_up_over_conversion_and_intake() -> None:
    stream = StreamInput(StreamDef("s", EVENTS, timestamp=0))
    converted: Converted = to_batch([[5, 1], ["x", 2], [None, 3], [4, 4]], EVENTS)
    report = stream.accept(converted.columns, kept=converted.kept).report(converted)
    assert (report.accepted, report.late, report.refused) == (1, 1, 2)
    assert "row 2: column t is NULL" in report.reasons[1]
    converted = to_batch([["x", 2]], EVENTS)  # nothing is left, and the reply says why
    report = stream.accept(converted.columns, kept=converted.kept).report(converted)
    assert (report.accepted, report.refused) == (0, 1) and "str 'x'" in report.reasons[0]
