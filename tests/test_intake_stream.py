"""A stream's way in: lateness, slack, heartbeats and clocks, against row-by-row references written
here."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.errors import UsageError
from dsms.intake import reorder
from dsms.intake.convert import Converted, to_batch
from dsms.intake.stream import StreamInput
from dsms.sql.catalog import StreamDef
from dsms.sql.types import (
    ALWAYS,
    FOREVER,
    INT,
    TIMESTAMP,
    Field,
    Schema,
)
from tests.effort import examples

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


@given(st.data(), st.integers(0, 15), st.sampled_from([1, 3, reorder.LONG]))
@settings(max_examples=examples(300), deadline=None)
def test_disorder_within_slack_equals_sorted_input(data: Any, slack: int, long: int) -> None:
    """Rows, arrival numbers and what a frame-by-frame reader gets in the end, for any disorder and
    any cuts, and whatever frames are long."""
    with mock.patch.object(reorder, "LONG", long):
        _sorted_back(data, slack)


def _sorted_back(data: Any, slack: int) -> None:
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


def test_long_frames_that_come_in_order_wait_without_a_copy() -> None:
    long = reorder.LONG
    stream = StreamInput(StreamDef("s", EVENTS, timestamp=0, slack=2 * long))
    frames = [pa.array(range(k * long, (k + 1) * long)) for k in range(3)]
    for ts in frames:
        stream.accept([ts, ts])
    (first,) = stream.release().fresh
    assert first.ts.tolist() == frames[0].to_pylist()
    assert first.ts.ctypes.data == frames[0].buffers()[1].address


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
