"""Instants, lengths, zones, and the text forms of all types: values worked out by hand."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal as D
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.operators.expressions.zones import zone
from dsms.sql.expr import Col
from dsms.sql.functions import call
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
    Type,
    decimal,
)
from tests.scalars import DEC, agree, cast_all, every_way, lit

FAIL = object()
SECOND, HOUR, DAY = 10**6, 36 * 10**8, 864 * 10**8
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(text: str) -> int:
    """Microseconds of an ISO instant (UTC unless it says)."""
    when = datetime.fromisoformat(text)
    return ((when if when.tzinfo else when.replace(tzinfo=UTC)) - EPOCH) // timedelta(
        microseconds=1
    )


BEFORE = at("1969-12-31 23:59:58.5")

FIELDS = [
    ("year", BEFORE, None, 1969),
    ("second", BEFORE, None, 58),
    ("millisecond", BEFORE, None, 58500),
    ("microsecond", -1, None, 59999999),
    ("epoch", BEFORE, None, -1.5),
    ("epoch_ms", -1, None, -1),
    ("epoch_us", -1, None, -1),
    ("dow", at("2024-03-10"), None, 0),
    ("isodow", at("2024-03-10"), None, 7),
    ("week", at("2021-01-03"), None, 53),
    ("isoyear", at("2021-01-03"), None, 2020),
    ("doy", at("2024-12-31"), None, 366),
    ("quarter", at("2024-10-01"), None, 4),
    ("hour", at("2024-07-01 22:30"), "Europe/Berlin", 0),
    ("day", at("2024-07-01 22:30"), "Europe/Berlin", 2),
    ("hour", at("2024-01-01 22:30"), "Europe/Berlin", 23),
    ("minute", at("2024-01-01"), "Asia/Kolkata", 30),
    ("year", MIN_INSTANT, "America/New_York", FAIL),
    ("year", MAX_INSTANT, "Europe/Berlin", FAIL),
    ("year", MAX_INSTANT, None, 9999),
    # after the last change that the zone's file spells out
    ("hour", at("2500-07-01 22:00"), "Europe/Berlin", 0),
]


@pytest.mark.parametrize(("name", "instant", "where", "want"), FIELDS)
def test_field(name: str, instant: int, where: str | None, want: object) -> None:
    args = [Col(0, TIMESTAMP), *([lit(where)] if where else [])]
    values, errors = every_way(call(name, args), [TIMESTAMP], [(instant,), (None,)])
    assert agree(values, [None if want is FAIL else want, None])
    assert errors == (want is FAIL)


TRUNCATED = [
    ("day", at("2024-03-31 18:29"), "+05:30", at("2024-03-30 18:30")),
    ("day", at("2024-03-31 18:30"), "+05:30", at("2024-03-31 18:30")),
    ("hour", at("2024-03-31 18:45"), "-0330", at("2024-03-31 18:30")),
    ("month", at("2024-04-01 10:59"), "-11", at("2024-03-01 11:00")),
    ("second", BEFORE, None, at("1969-12-31 23:59:58")),
    ("hours", BEFORE, None, at("1969-12-31 23:00")),
    ("day", BEFORE, None, -DAY),
    ("week", at("1970-01-01"), None, at("1969-12-29")),
    ("week", at("2024-03-10 23:59"), None, at("2024-03-04")),
    ("month", BEFORE, None, at("1969-12-01")),
    ("quarter", at("2024-06-30"), None, at("2024-04-01")),
    ("year", at("2024-06-30"), None, at("2024-01-01")),
    ("week", MIN_INSTANT + DAY, None, MIN_INSTANT),
    # Berlin went to summer time on 2024-03-31 at 01:00 UTC, and back on 2024-10-27 at 01:00 UTC
    ("day", at("2024-03-31 12:00"), "Europe/Berlin", at("2024-03-30 23:00")),
    ("day", at("2024-03-31 22:00"), "Europe/Berlin", at("2024-03-31 22:00")),
    ("day", at("2024-10-27 22:59"), "Europe/Berlin", at("2024-10-26 22:00")),
    ("hour", at("2024-10-27 00:30"), "Europe/Berlin", at("2024-10-27 00:00")),
    ("hour", at("2024-10-27 01:30"), "Europe/Berlin", at("2024-10-27 01:00")),
    ("month", at("2024-03-31 21:59"), "Europe/Berlin", at("2024-02-29 23:00")),
    ("month", at("2024-03-31 22:00"), "Asia/Tokyo", at("2024-03-31 15:00")),
    ("hour", at("2024-01-01 05:45"), "Asia/Kolkata", at("2024-01-01 05:30")),
    # Lord Howe moves by half an hour: hours count elapsed time from the start of its day
    ("hour", at("2024-04-06 15:45"), "Australia/Lord_Howe", at("2024-04-06 15:00")),
    # São Paulo's clocks went from 00:00 to 01:00 on 2018-11-04: that day began at 03:00 UTC
    ("day", at("2018-11-04 12:00"), "America/Sao_Paulo", at("2018-11-04 03:00")),
    ("hour", at("2018-11-04 03:30"), "America/Sao_Paulo", at("2018-11-04 03:00")),
    ("year", MIN_INSTANT, "Europe/Berlin", FAIL),
]


@pytest.mark.parametrize(("unit", "instant", "where", "want"), TRUNCATED)
def test_date_trunc(unit: str, instant: int, where: str | None, want: object) -> None:
    args = [lit(unit), Col(0, TIMESTAMP), *([lit(where)] if where else [])]
    values, errors = every_way(call("date_trunc", args), [TIMESTAMP], [(instant,), (None,)])
    assert values == [None if want is FAIL else want, None]
    assert errors == (want is FAIL)


@pytest.mark.parametrize(
    "name",
    ["Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca", "UTC"],
)
def test_zones_are_those_of_zoneinfo(name: str) -> None:
    info, known = ZoneInfo(name), zone(name)
    seconds = np.random.default_rng(7).integers(
        at("1850-01-01") // SECOND, at("9998-01-01") // SECOND, 800
    )
    near = [int(c) // SECOND + d for c in known.changes[::40] for d in (-1, 0, 1)]
    instants = np.concatenate([seconds, np.array(near, np.int64), np.arange(100) * 10**6 * 40])
    want = [
        (EPOCH + timedelta(seconds=int(s))).astimezone(info).utcoffset() // timedelta(seconds=1)
        for s in instants
    ]
    found = np.broadcast_to(known.at(instants * SECOND) // SECOND, len(instants))
    assert found.tolist() == want


def test_walls_and_instants() -> None:
    t, there = Col(0, TIMESTAMP), lit("Europe/Berlin")
    rows = [(at("2024-07-01"),), (at("2024-03-31 02:30"),), (at("2024-10-27 02:30"),), (None,)]
    assert every_way(call("at_zone", [t, there]), [TIMESTAMP], rows)[0][0] == at("2024-07-01 02:00")
    # 02:30 does not exist in March (its successor is 03:00, that is 01:00 UTC) and comes twice in
    # October
    want = [at("2024-06-30 22:00"), at("2024-03-31 01:00"), at("2024-10-27 00:30"), None]
    assert every_way(call("from_zone", [t, there]), [TIMESTAMP], rows) == (want, 0)


BINNED = [
    # length, instant, origin, start of the bin
    (15 * 60 * SECOND, at("2024-07-01 10:44:59"), None, at("2024-07-01 10:30")),
    (15 * 60 * SECOND, -1, None, -15 * 60 * SECOND),
    (7 * DAY, at("2024-07-01"), None, at("2024-06-27")),
    (7 * DAY, at("2024-07-01"), at("2024-01-01"), at("2024-07-01")),
    (7 * DAY, at("2024-06-30 23:59"), at("2030-01-07"), at("2024-06-24")),
    (1, BEFORE, BEFORE + 1, BEFORE),
    (2**63 - 1, 0, None, 0),
    (2**63 - 1, -1, None, FAIL),
    (2**63 - 1, MAX_INSTANT, MIN_INSTANT, MIN_INSTANT),
    (DAY, MIN_INSTANT, MIN_INSTANT + 1, FAIL),
    (0, 0, None, FAIL),
    (-DAY, 0, 0, FAIL),
    (DAY, MAX_INSTANT, MIN_INSTANT, at("9999-12-31")),
]


@pytest.mark.parametrize(("size", "instant", "origin", "want"), BINNED)
def test_date_bin(size: int, instant: int, origin: int | None, want: object) -> None:
    types = [INTERVAL, TIMESTAMP] + [TIMESTAMP] * (origin is not None)
    row = (size, instant, origin)[: len(types)]
    expr = call("date_bin", [Col(k, type_) for k, type_ in enumerate(types)])
    nothing = (*(row[:-1]), None)
    values, errors = every_way(expr, types, [row, nothing])
    assert values == [None if want is FAIL else want, None]
    assert errors == (want is FAIL)


@pytest.mark.parametrize(("text", "hours"), [("+05:30", 5.5), ("-0330", -3.5), ("+02", 2.0)])
def test_an_offset_is_a_zone_without_changes(text: str, hours: float) -> None:
    known = zone(text)
    assert known.at(np.array([MIN_INSTANT, 0, MAX_INSTANT])).tolist() == [int(hours * HOUR)]
    t = Col(0, TIMESTAMP)
    rows = [(at("2024-07-01"),), (MAX_INSTANT if hours > 0 else MIN_INSTANT,)]
    found = every_way(call("at_zone", [t, lit(text)]), [TIMESTAMP], rows)
    assert found == ([at("2024-07-01") + int(hours * HOUR), None], 1)
    back = every_way(call("from_zone", [t, lit(text)]), [TIMESTAMP], rows[:1])
    assert back == ([at("2024-07-01") - int(hours * HOUR)], 0)


@pytest.mark.parametrize(
    "text", ["5:30", "+5:30", "+24:00", "+05:60", "+05:30:00", "05:30", "+", ""]
)
def test_what_is_no_offset(text: str) -> None:
    with pytest.raises(QueryError, match="DS222") as caught:
        Engine().execute(f"SELECT DATE '2024-01-01' AT TIME ZONE '{text}'")
    assert "'+05:30'" in (caught.value.hint or "")


LENGTHS = [
    ("to_timestamp", (INT,), (-1,), (), -SECOND),
    ("to_timestamp", (FLOAT,), (0.0000005,), (), 0),
    ("to_timestamp", (FLOAT,), (math.nan,), (), FAIL),
    ("to_timestamp", (INT,), (10**12,), (), FAIL),
    ("to_timestamp", (INT,), (2**62,), (), FAIL),
    ("to_timestamp", (INT,), (-1,), ("ns",), -1),
    ("to_timestamp", (INT,), (5,), ("ms",), 5000),
    ("make_interval", (INT,), (-2,), ("hours",), -2 * HOUR),
    ("make_interval", (INT,), (2**60,), ("week",), FAIL),
]


@pytest.mark.parametrize(("name", "types", "args", "more", "want"), LENGTHS)
def test_numbers_to_times(name: str, types: tuple, args: tuple, more: tuple, want: object) -> None:
    expr = call(name, [Col(0, types[0]), *map(lit, more)])
    assert every_way(expr, types, [args]) == ([None if want is FAIL else want], int(want is FAIL))


def test_differences_and_lengths() -> None:
    a, b = Col(0, TIMESTAMP), Col(1, TIMESTAMP)
    rows = [
        (at("2024-01-01"), at("2024-01-02 23:59")),
        (at("2024-01-02 23:59"), at("2024-01-01")),
        (None, 0),
    ]
    assert every_way(call("date_diff", [lit("day"), a, b]), [TIMESTAMP] * 2, rows) == (
        [1, -1, None],
        0,
    )
    cut = call("date_trunc", [lit("hour"), Col(0, INTERVAL)])
    assert every_way(cut, [INTERVAL], [(HOUR + 5,), (-5,), (-(2**63),)]) == ([HOUR, -HOUR, None], 1)


TEXTS = [
    # from, to, value, result
    (STRING, TIMESTAMP, "2024-02-29", at("2024-02-29")),
    (STRING, TIMESTAMP, " 2024-02-29T10:30\n", at("2024-02-29 10:30")),
    (STRING, TIMESTAMP, "2024-02-29 10:30:01.1234567", at("2024-02-29 10:30:01.123456")),
    (STRING, TIMESTAMP, "2024-02-29 10:30:01Z", at("2024-02-29 10:30:01")),
    (STRING, TIMESTAMP, "2024-02-29 10:30:01 -0530", at("2024-02-29 16:00:01")),
    (STRING, TIMESTAMP, "2024-02-29 10:30+01", at("2024-02-29 09:30")),
    (STRING, TIMESTAMP, "1969-12-31 23:59:59.9", -100_000),
    (STRING, TIMESTAMP, "2023-02-29", FAIL),
    (STRING, TIMESTAMP, "2024-02-29 24:00", FAIL),
    (STRING, TIMESTAMP, "0000-12-31", FAIL),
    (STRING, TIMESTAMP, "0001-01-01 00:00+00:01", FAIL),
    (STRING, TIMESTAMP, "10000-01-01", FAIL),
    (STRING, TIMESTAMP, "yesterday", FAIL),
    (TIMESTAMP, STRING, at("2024-02-29 10:30:01.25"), "2024-02-29 10:30:01.25"),
    (TIMESTAMP, STRING, MIN_INSTANT, "0001-01-01 00:00:00"),
    (TIMESTAMP, STRING, -1, "1969-12-31 23:59:59.999999"),
    (STRING, INTERVAL, "1 h 30 min", 90 * 60 * SECOND),
    (STRING, INTERVAL, "-2 days 3 hours", -2 * DAY + 3 * HOUR),
    (STRING, INTERVAL, "26:03:04.5", 26 * HOUR + 184_500_000),
    (STRING, INTERVAL, "-00:01", -60 * SECOND),
    (STRING, INTERVAL, "2.5 us", 2),
    (STRING, INTERVAL, "3.7 us", 3),
    (STRING, INTERVAL, "-1.5 us", -2),
    (STRING, INTERVAL, "0.0000015 s", 1),
    (STRING, INTERVAL, "-00:00:01.0000005", -1_000_001),
    (STRING, INTERVAL, "- 1 h", -HOUR),
    (STRING, INTERVAL, ".5 s", SECOND // 2),
    (STRING, INTERVAL, "250ms", 250_000),
    (STRING, INTERVAL, "10", FAIL),
    (STRING, INTERVAL, "1 month", FAIL),
    (STRING, INTERVAL, "99999999 weeks", FAIL),
    (STRING, INTERVAL, "", FAIL),
    (INTERVAL, STRING, 26 * HOUR + 184_500_000, "26:03:04.5"),
    (INTERVAL, STRING, -SECOND, "-00:00:01"),
    (INTERVAL, STRING, -(2**63), "-2562047788:00:54.775808"),
    (STRING, INT, "+0012", 12),
    (STRING, INT, str(2**63), FAIL),
    (STRING, INT, str(-(2**63)), -(2**63)),
    (STRING, INT, "0" * 30 + "7", 7),
    (STRING, INT, "0x1F", FAIL),
    (STRING, INT, "1.0", FAIL),
    (STRING, INT, "", FAIL),
    (STRING, FLOAT, "1e400", FAIL),
    (STRING, FLOAT, "-Infinity", -math.inf),
    (STRING, FLOAT, "NaN", math.nan),
    (STRING, FLOAT, ".5", 0.5),
    (STRING, FLOAT, "1,5", FAIL),
    (STRING, DEC, "1.005", D("1.01")),
    (STRING, DEC, "-1.005", D("-1.01")),
    (STRING, DEC, "1e2", D("100.00")),
    (STRING, DEC, "99999999.995", FAIL),
    (STRING, DEC, "nan", FAIL),
    (STRING, DEC, "1e99999999999999999999", FAIL),
    (STRING, BOOL, " YES ", True),
    (STRING, BOOL, "0", False),
    (STRING, BOOL, "2", FAIL),
    (STRING, BYTES, "é", b"\xc3\xa9"),
    (BYTES, STRING, b"\xc3\xa9", "é"),
    (BYTES, STRING, b"\xc3", FAIL),
    (FLOAT, STRING, 1.0, "1.0"),
    (FLOAT, STRING, -0.0, "-0.0"),
    (FLOAT, STRING, 1e16, "1e+16"),
    (FLOAT, STRING, 1e15, "1000000000000000.0"),
    (FLOAT, STRING, 1e-5, "1e-05"),
    (FLOAT, STRING, 0.0001, "0.0001"),
    (FLOAT, STRING, -math.inf, "-inf"),
    (FLOAT, INT, 2.5, 2),
    (FLOAT, INT, -2.5, -2),
    (FLOAT, INT, 0.49999999999999994, 0),
    (FLOAT, INT, 4503599627370497.5, 4503599627370498),
    (FLOAT, INT, 3.5, 4),
    (FLOAT, INT, 2.0**63, FAIL),
    (FLOAT, INT, -(2.0**63), -(2**63)),
    (FLOAT, INT, math.nan, FAIL),
    (FLOAT, DEC, 2.675, D("2.68")),
    (FLOAT, DEC, -0.005, D("-0.01")),
    (FLOAT, DEC, 1e8, FAIL),
    (FLOAT, DEC, 99999999.99, D("99999999.99")),
    (FLOAT, DEC, math.inf, FAIL),
    (FLOAT, decimal(38, 0), 1e30, D(10**30)),
    (DEC, INT, D("2.50"), 3),
    (DEC, INT, D("-2.50"), -3),
    (decimal(38, 0), INT, D(2**63), FAIL),
    (decimal(38, 0), INT, D(-(2**63)), -(2**63)),
    (DEC, decimal(3, 1), D("1.25"), D("1.3")),
    (DEC, decimal(3, 1), D("99.95"), FAIL),
    (decimal(38, 18), FLOAT, D("0.1"), 0.1),
    (decimal(38, 10), FLOAT, D("12345678901234567890.1234567891"), 12345678901234567890.1234567891),
    (decimal(38, 12), STRING, D("1e-12"), "0.000000000001"),
    (DEC, STRING, D("0.10"), "0.10"),
    (INT, decimal(38, 30), 10**8, FAIL),
    (INT, decimal(3, 1), -99, D("-99.0")),
    (INT, FLOAT, 2**53 + 1, 2.0**53),
    (INT, BOOL, -3, True),
    (BOOL, INT, True, 1),
    (BOOL, STRING, False, "false"),
]


@pytest.mark.parametrize(("source", "to", "value", "want"), TEXTS, ids=lambda v: str(v)[:20])
def test_cast(source: Type, to: Type, value: object, want: object) -> None:
    values, errors = cast_all(source, to, [value, None, value])
    expected = None if want is FAIL else want
    assert agree(values, [expected, None, expected]), values
    assert errors == (2 if want is FAIL else 0)


LENGTHS = (
    "1 h 30 min",
    "1h30min",
    "1:30:00",
    "26:03:04.5",
    "-1:00:00",
    "1 day 2 hours",
    "5 min 1 h",
    "- 1 h",
    ".5 s",
    "1.5 us",
    "-1.5 us",
    "0.0000001 s",
    "00:00:01.0000005",
    "9223372036854775807 us",
)


@pytest.mark.parametrize("text", LENGTHS)
def test_one_text_is_one_length_wherever_it_stands(text: str) -> None:
    engine = Engine()
    engine.execute("CREATE STREAM s (d INTERVAL, t INT) TIMESTAMP BY t UNIT s RETAIN 1 h")
    engine.ingest("s", [[text, 1]])
    engine.ingest("s", {"d": pa.array([text]), "t": [1]})
    engine.end("s")
    cast = _only(engine, f"SELECT CAST('{text}' AS INTERVAL)")
    assert _only(engine, f"SELECT INTERVAL '{text}'") == cast
    assert _only(engine, "SELECT MIN(d) FROM s") == _only(engine, "SELECT MAX(d) FROM s") == cast


def _only(engine: Engine, sql: str) -> object:
    return engine.execute(sql)[-1].data.column(0)[0].as_py()


@pytest.mark.parametrize(
    ("expr", "hint"),
    [
        ("TIMESTAMP '9999-12-31' + INTERVAL '365 days'", "no other instants"),
        ("AT_ZONE(TIMESTAMP '9999-12-31 23:59:59', 'Asia/Tokyo')", "no other instants"),
        ("DATE_TRUNC('day', TIMESTAMP '0001-01-01', 'Asia/Tokyo')", "no other instants"),
        ("TO_TIMESTAMP(9223372036854775807)", "no other instants"),
        ("TO_TIMESTAMP(1e300)", "no other instants"),
        ("INTERVAL '200000 days' * 1e9", "64 bits of microseconds"),
        ("INTERVAL '40000000 days' * 3", "64 bits of microseconds"),
        ("9223372036854775807 + 1", "cast to a wider type first"),
    ],
)
def test_what_leaves_its_type_is_told_what_helps_there(expr: str, hint: str) -> None:
    with pytest.raises(QueryError, match="DS702") as caught:
        Engine().execute(f"SELECT {expr}")
    assert hint in (caught.value.hint or "")


def test_a_text_of_a_number_too_large_for_float_is_none() -> None:
    with pytest.raises(QueryError, match="DS703: '1e400' is too large for FLOAT"):
        Engine().execute("SELECT CAST('1e400' AS FLOAT)")
    [answer] = Engine().execute("SELECT CAST(' -Infinity' AS FLOAT)")
    assert answer.data.column(0).to_pylist() == [-math.inf]
