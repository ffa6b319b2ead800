"""STRFTIME and STRPTIME: what each code writes and reads, and against the oracle."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.sql.expr import Col
from dsms.sql.functions import call
from dsms.sql.functions.formats import FIELDS, read_problem
from dsms.sql.types import MAX_INSTANT, MIN_INSTANT, STRING, TIMESTAMP
from tests.effort import examples
from tests.oracle.scalar import evaluate
from tests.scalars import every_way, lit

S = 1_000_000
FAIL = object()


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * S


LEAP = at("2020-02-29 15:04:05") + 6007
WRITTEN = [
    ("%Y-%m-%d %H:%M:%S.%f", LEAP, "2020-02-29 15:04:05.006007"),
    ("%F|%T|%R|%%", LEAP, "2020-02-29|15:04:05|15:04|%"),
    ("%y %j %I %p", LEAP, "20 060 03 PM"),
    ("%b %B %a %A", LEAP, "Feb February Sat Saturday"),
    ("%u %w %G %V %z", LEAP, "6 6 2020 09 +0000"),
    ("%I%p", at("2020-01-01"), "12AM"),
    ("%I%p", at("2020-01-01 12:00"), "12PM"),
    ("%G-%V", at("2021-01-03"), "2020-53"),
    ("%Y %f", -1, "1969 999999"),
    ("%Y-%j", MIN_INSTANT, "0001-001"),
    ("%FT%T", MAX_INSTANT, "9999-12-31T23:59:59"),
    ("é😀'", 0, "é😀'"),
    ("", 0, ""),
]


@pytest.mark.parametrize(("pattern", "instant", "want"), WRITTEN)
def test_written(pattern: str, instant: int, want: str) -> None:
    expr = call("strftime", [Col(0, TIMESTAMP), lit(pattern)])
    assert every_way(expr, [TIMESTAMP], [(instant,), (None,)]) == ([want, None], 0)


READ = [
    ("%Y-%m-%d", "2020-02-29", at("2020-02-29")),
    ("%Y-%m-%d", "2021-02-29", FAIL),
    ("%Y-%m-%d", "2020-2-9", at("2020-02-09")),
    ("%Y-%m-%d", "20-02-09", FAIL),
    ("%Y-%m-%d", " 2020-02-09", FAIL),
    ("%Y-%m-%d", "2020-02-09\n", FAIL),
    ("%Y%m%d", "20200209", at("2020-02-09")),
    ("%Y%m%d", "202029", at("2020-02-09")),
    ("%d/%b/%Y:%T %z", "29/fEB/2020:23:30:00 +0530", at("2020-02-29 18:00")),
    ("%d %B %Y", "1 AUGUST 1999", at("1999-08-01")),
    ("%d %B %Y", "1 Auguſt 1999", FAIL),
    ("%d.%m.%y", "31.12.68", at("2068-12-31")),
    ("%d.%m.%y", "31.12.69", at("1969-12-31")),
    ("%Y-%j", "2020-366", at("2020-12-31")),
    ("%Y-%j", "2021-366", FAIL),
    ("%Y-%j", "2021-0", FAIL),
    ("%Y", "2021", at("2021-01-01")),
    ("%Y", "0000", FAIL),
    ("%b %Y", "Mar 2021", at("2021-03-01")),
    ("%a %d.%m.%Y", "Mon 29.02.2020", at("2020-02-29")),
    ("%F %I:%M %p", "2020-01-01 12:05 am", at("2020-01-01 00:05")),
    ("%F %I:%M %p", "2020-01-01 12:05 PM", at("2020-01-01 12:05")),
    ("%F %I:%M %p", "2020-01-01 13:05 PM", FAIL),
    ("%F %H:%M", "2020-01-01 24:00", FAIL),
    ("%F %T", "2020-01-01 23:59:60", FAIL),
    ("%F %T.%f", "2020-01-01 00:00:01.5", at("2020-01-01 00:00:01") + S // 2),
    ("%F %T.%f", "2020-01-01 00:00:01.1234567", FAIL),
    ("%F%z", "2020-01-01-01:30", at("2020-01-01 01:30")),
    ("%F%z", "2020-01-01Z", at("2020-01-01")),
    ("%F%z", "2020-01-01+24", FAIL),
    ("%F%z", "0001-01-01+00:01", FAIL),
    ("%F%z", "9999-12-31-23:59", at("9999-12-31 23:59")),
    ("%F%%(.*)", "2020-01-01%(.*)", at("2020-01-01")),
    ("%F%%(.*)", "2020-01-01%(x)", FAIL),
    ("é%Y", "é2020", at("2020-01-01")),
]


@pytest.mark.parametrize(("pattern", "text", "want"), READ)
def test_read(pattern: str, text: str, want: object) -> None:
    expr = call("strptime", [Col(0, STRING), lit(pattern)])
    found, errors = every_way(expr, [STRING], [(text,), (None,), (text,)])
    value = None if want is FAIL else want
    assert found == [value, None, value]
    assert errors == (2 if want is FAIL else 0)
    assert evaluate(expr, (text,)) == value


CODES = st.lists(
    st.sampled_from([*(f"%{c}" for c in "YymdjHIpMSfbBaAuwGVFTR"), "%%", "-", " ", ":", "é"]),
    max_size=8,
).map("".join)
INSTANTS = st.one_of(st.integers(MIN_INSTANT, MAX_INSTANT), st.integers(-(10**9), 4 * 10**15))


@settings(max_examples=examples(150), deadline=None)
@given(CODES, st.lists(st.one_of(st.none(), INSTANTS), max_size=8))
def test_written_as_defined(pattern: str, instants: list[int | None]) -> None:
    expr = call("strftime", [Col(0, TIMESTAMP), lit(pattern)])
    rows = [(t,) for t in instants]
    found, errors = every_way(expr, [TIMESTAMP], rows)
    assert errors == 0
    assert found == [evaluate(expr, row) for row in rows]


READABLE = st.lists(
    st.sampled_from([*(f"%{c}" for c in [*FIELDS, "F", "T"]), "%%", "-", " ", ":", "1"]), max_size=9
).map("".join)


@settings(max_examples=examples(200), deadline=None)
@given(READABLE, st.lists(INSTANTS, min_size=1, max_size=5), st.data())
def test_read_as_defined(pattern: str, instants: list[int], data: st.DataObject) -> None:
    if read_problem(pattern) is not None:
        return
    write = call("strftime", [Col(0, TIMESTAMP), lit(pattern)])
    texts = [str(evaluate(write, (t,))) for t in instants]
    for k, text in enumerate(texts):  # some of them a little off
        if text and data.draw(st.booleans()):
            place = data.draw(st.integers(0, len(text) - 1))
            put = data.draw(st.sampled_from(["", "0", "9", "x", "PM", "-", "٣"]))
            texts[k] = text[:place] + put + text[place + 1 :]
    expr = call("strptime", [Col(0, STRING), lit(pattern)])
    rows = [(t,) for t in texts]
    assert every_way(expr, [STRING], rows)[0] == [evaluate(expr, row) for row in rows]


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(INSTANTS, max_size=8))
def test_what_is_written_is_read(instants: list[int]) -> None:
    for pattern in ("%Y-%m-%d %T.%f", "%Y%j%H%M%S%f", "%d %B %Y %I:%M:%S.%f %p %z"):
        text = call("strftime", [Col(0, TIMESTAMP), lit(pattern)])
        back = call("strptime", [text, lit(pattern)])
        assert every_way(back, [TIMESTAMP], [(t,) for t in instants]) == (instants, 0)


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("STRFTIME(t, '%Q')", "the code %Q; there are %Y"),
        ("STRFTIME(t, 'a%')", "ends in a single %"),
        ("STRFTIME(t, x)", "must be a constant text"),
        ("STRPTIME(x, '%u %Y')", "the code %u"),
        ("STRPTIME(x, '%H:%M')", "has no year"),
        ("STRPTIME(x, '%Y %m %b')", "says the month twice"),
        ("STRPTIME(x, '%Y %I')", "need AM or PM"),
        ("STRPTIME(x, '%Y %j %m')", "day of the year"),
        ("STRPTIME(x, '%Y %d')", "a day without a month"),
        (f"STRPTIME(x, '%Y{'x' * 1000}')", "at most 1000 characters"),
    ],
)
def test_what_is_refused_when_it_is_bound(sql: str, part: str) -> None:
    made = Engine()
    made.execute("CREATE TABLE r (x STRING, t TIMESTAMP)")
    with pytest.raises(DsmsError, match="DS207") as caught:
        made.execute(f"SELECT {sql} FROM r")
    assert part in caught.value.message


def test_persistent_queries_count_what_is_not_read() -> None:
    made = Engine()
    made.execute(
        "CREATE STREAM s (x STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
        "CREATE QUERY q AS SELECT STRPTIME(x, '%d.%m.%Y') AS d, STRFTIME(t, '%T') AS w FROM s"
    )
    made.ingest("s", [["29.02.2020", S], ["30.02.2020", 2 * S], [None, 3 * S]])
    made.heartbeat("s", 9 * S)
    rows = [row for p in made.subscribe("q", 0).take() if p.data for row in p.data.to_pylist()]
    assert [tuple(row.values()) for row in rows] == [
        (at("2020-02-29"), "00:00:01"),
        (None, "00:00:02"),
        (None, "00:00:03"),
    ]
    (found,) = made.execute("SHOW QUERIES")
    assert found.data.to_pylist()[0]["errors"] == 1  # type: ignore[union-attr]
    with pytest.raises(DsmsError, match=r"DS703: '30.02.2020' is no instant as '%d.%m.%Y'"):
        made.execute("SELECT STRPTIME(x, '%d.%m.%Y') FROM s [RANGE 1 h]")
