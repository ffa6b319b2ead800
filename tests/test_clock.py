"""Clocks of several streams: idle sources, query clocks, wake-ups, all in simulated time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.intake.clock import Clocks
from dsms.intake.stream import StreamInput
from dsms.sql.catalog import StreamDef
from dsms.sql.types import ALWAYS, FOREVER, INT, TIMESTAMP, Field
from tests.effort import examples

EVENTS = (Field("t", TIMESTAMP),)
SECOND = 1_000_000


def event(name: str, idle: int | None = None, slack: int = 0) -> StreamInput:
    return StreamInput(StreamDef(name, EVENTS, timestamp=0, idle_timeout=idle, slack=slack))


def clocks(*streams: StreamInput, **queries: str) -> Clocks:
    out = Clocks()
    for s in streams:
        out.add(s.definition.name, s)
    for query, names in queries.items():
        out.reads(query, names)
    return out


def send(all_: Clocks, stream: StreamInput, *ts: int) -> Any:
    done = stream.accept([pa.array(ts, pa.int64())])
    if done.accepted:
        all_.active(stream.definition.name)
    return done


def test_a_query_waits_for_its_slowest_input() -> None:
    a, b = event("a"), event("b", slack=5)
    c = clocks(a, b)
    assert c.query_clock("ab") == ALWAYS and c.slowest("ab") == "a" and c.newest("ab") == ALWAYS
    send(c, a, 10)
    send(c, b, 10)
    assert (c.completed("a"), c.completed("b"), c.query_clock("ab"), c.slowest("ab")) == (
        9,
        4,
        4,
        "b",
    )
    assert c.newest("ab") == 10
    b.end()
    assert c.query_clock("ab") == 9
    a.end()
    assert c.query_clock("ab") == FOREVER - 1 and c.slowest("ab") is None


def test_an_idle_stream_moves_on_with_the_others_and_its_late_rows_are_late() -> None:
    a, b = event("a", idle=3), event("b")
    c = clocks(a, b, q="ab")
    c.advance(100)
    send(c, a, 10)
    send(c, b, 50)
    c.advance(102)
    assert c.query_clock("ab") == 9 and not c.status("a").idle
    c.advance(103)
    assert c.status("a").idle and c.query_clock("ab") == 49
    send(c, b, 60)
    assert c.completed("a") == 59  # and goes on following
    assert send(c, a, 59).late == 1 and c.status("a").idle
    assert send(c, a, 60).accepted == 1 and not c.status("a").idle
    send(c, b, 90)
    assert c.query_clock("ab") == 59  # awake again, it holds time back again


def test_an_idle_stream_gives_up_its_own_newest_instant_and_slack() -> None:
    a = event("a", idle=3, slack=5)
    c = clocks(a, q="a")
    c.advance(0)
    send(c, a, 10, 8)
    assert a.release().rows() is None
    c.advance(3)
    rows = a.release().rows()
    assert rows is not None and rows.ts.tolist() == [8, 10] and c.query_clock("a") == 10


def test_if_all_are_idle_the_furthest_leads() -> None:
    a, b = event("a", idle=3), event("b", idle=3)
    c = clocks(a, b, q="ab")
    c.advance(0)
    send(c, a, 10)
    send(c, b, 50)
    c.advance(3)
    assert c.query_clock("ab") == 50


def test_only_queries_tie_streams_together() -> None:
    """An idle stream is moved as far as no query waits for it: by its partners, not by
    strangers."""
    a, b, far, slow = event("a", idle=3), event("b"), event("f"), event("s")
    c = clocks(a, b, far, slow, q="ab", r="as")
    c.advance(0)
    for stream, ts in ((a, 10), (b, 50), (far, 10**15), (slow, 20)):
        send(c, stream, ts)
    c.advance(3)
    assert c.completed("a") == 49 and c.query_clock("ab") == 49 and c.query_clock("as") == 19
    c.forget("q")
    send(c, b, 70)
    assert c.completed("a") == 49
    c.reads("q", "ab")
    assert c.completed("a") == 69


def test_an_ended_partner_moves_nobody_to_the_end_of_time() -> None:
    a, b = event("a", idle=3), event("b")
    c = clocks(a, b, q="ab")
    c.advance(0)
    send(c, a, 10)
    send(c, b, 50)
    b.end()
    c.advance(3)
    assert c.completed("a") == 50
    assert send(c, a, 51).accepted == 1


def test_a_clock_set_back_is_harmless() -> None:
    a, s = event("a", idle=10), StreamInput(StreamDef("s", (Field("n", INT),)))
    c = clocks(a, s)
    c.advance(1000)
    send(c, a, 5)
    s.accept([pa.array([1])], now=1000)
    c.advance(400)  # set back
    assert c.completed("s") == 999 and not c.status("a").idle
    c.advance(409)
    assert not c.status("a").idle
    c.advance(410)
    assert c.status("a").idle  # ten µs of silence have passed all the same
    s.accept([pa.array([2])], now=410)
    assert s.newest == 1000


def test_silence_before_the_first_time_does_not_count() -> None:
    a = event("a", idle=10)
    c = clocks(a)
    send(c, a, 5)
    c.advance(10**15)
    assert not c.status("a").idle
    c.advance(10**15 + 10)
    assert c.status("a").idle


def test_a_stamped_stream_completes_what_waits_when_its_instant_is_over() -> None:
    s = StreamInput(StreamDef("s", (Field("n", INT),)))
    c = clocks(s)
    c.advance(7)
    s.accept([pa.array([1])], now=7)
    assert len(s.release().complete) == 0
    c.advance(8)
    assert len(s.release().complete) == 1
    c.remove("s")
    assert c.query_clock([]) == FOREVER - 1


@pytest.mark.parametrize(
    ("prepare", "held_by"),
    [
        (lambda c, a: None, "its first row, or a heartbeat, or 3 s of silence"),
        (
            lambda c, a: send(c, a, 10 * SECOND),
            "a row after 1970-01-01T00:00:10Z, or a heartbeat, or 3 s of silence",
        ),
        (lambda c, a: c.advance(4 * SECOND), "nothing: it is idle and follows the others"),
        (lambda c, a: a.end(), "nothing: it has ended"),
    ],
)
def test_show_streams_says_what_holds_time_back(prepare: Any, held_by: str) -> None:
    a = event("a", idle=3 * SECOND, slack=2 * SECOND)
    c = clocks(a)
    c.advance(0)
    prepare(c, a)
    status = c.status("a")
    assert status.held_by == held_by and status.clock == "event time by t, slack 2 s"


def test_status_counts() -> None:
    a = event("a")
    c = clocks(a)
    send(c, a, 10, 5, 2**62)
    status = c.status("a")
    assert (status.accepted, status.late, sum(status.refused.values())) == (1, 1, 1)
    assert (status.completed, status.newest, status.waiting, status.idle, status.ended) == (
        9,
        10,
        1,
        False,
        False,
    )


events = st.lists(st.tuples(st.sampled_from("abct"), st.integers(0, 40)), max_size=30)


@given(events)
@settings(max_examples=examples(300), deadline=None)
def test_no_clock_ever_goes_back_and_no_idle_stream_holds_a_query(
    script: list[tuple[str, int]],
) -> None:
    streams = {n: event(n, idle=i) for n, i in (("a", 5), ("b", 9), ("c", None))}
    queries = {"q": "ab", "r": "bc", "s": "abc", "u": "a"}
    c = clocks(*streams.values(), **queries)
    now, before = 0, dict.fromkeys(queries, ALWAYS)
    c.advance(now)
    for who, value in script:
        if who == "t":
            now += value - 10
            c.advance(now)
        else:
            send(c, streams[who], value)
        for query, names in queries.items():
            clock = c.query_clock(names)
            assert clock >= before[query]
            before[query] = clock
            awake = [n for n in names if not c.status(n).idle]
            if awake:
                assert clock == c.query_clock(awake)
            else:
                assert clock >= max(streams[n].newest for n in names)
