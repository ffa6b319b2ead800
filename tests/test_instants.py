"""One text, one instant: in a literal, in CAST, in rows and columns that come in, in files."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms import instants
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.sql.expr import Call, Col
from dsms.sql.types import STRING, TIMESTAMP
from tests.oracle.casts import cast as oracle_cast
from tests.oracle.functions import Failed
from tests.scalars import cast_all

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

TABLE = {
    "2020-01-01": "2020-01-01",
    "20200101": "2020-01-01",
    "2020-1-1": "2020-01-01",
    "2020-1-1 9:05": "2020-01-01 09:05",
    "2020-01-01T12": "2020-01-01 12:00",
    "2020-01-01 12:30": "2020-01-01 12:30",
    "2020-01-01T12:30:15": "2020-01-01 12:30:15",
    "2020-01-01t12:30:15z": "2020-01-01 12:30:15",
    "2020-01-01 12:30:15 Z": "2020-01-01 12:30:15",
    "2020-01-01 12:30:15 UTC": "2020-01-01 12:30:15",
    "2020-01-01 12:30:15 gmt": "2020-01-01 12:30:15",
    "2020-01-01   12:30:15": "2020-01-01 12:30:15",
    "  2020-01-01 12:30:15\t": "2020-01-01 12:30:15",
    "2020-01-01 12:30:15.5": "2020-01-01 12:30:15.500000",
    "2020-01-01 12:30:15,123": "2020-01-01 12:30:15.123000",
    "2020-01-01 12:30:15.123456": "2020-01-01 12:30:15.123456",
    "2020-01-01 12:30:15.123456789": "2020-01-01 12:30:15.123456",
    "2020-01-01T12:30:15.123456789Z": "2020-01-01 12:30:15.123456",
    "2020-01-01T12:30:15.999999999+02:00": "2020-01-01 10:30:15.999999",
    "1969-12-31 23:59:59.9999999": "1969-12-31 23:59:59.999999",
    "2020-01-01 12:30:15.12345678901234567890123": "2020-01-01 12:30:15.123456",
    "2020-01-01 12:30:15+02": "2020-01-01 10:30:15",
    "2020-01-01 12:30:15-0530": "2020-01-01 18:00:15",
    "2020-01-01 12:30:15 +05:30": "2020-01-01 07:00:15",
    "2020-01-01 12:30 +23:59": "2019-12-31 12:31",
    "2020-01-01Z": "2020-01-01",
    "2020-01-01+02:00": "2019-12-31 22:00",
    "20200101T123015": "2020-01-01 12:30:15",
    "20200101T123015.25Z": "2020-01-01 12:30:15.250000",
    "20200101 1230+0200": "2020-01-01 10:30",
    "20200101T12:30": "2020-01-01 12:30",
    "0001-01-01": "0001-01-01",
    "9999-12-31 23:59:59.999999999": "9999-12-31 23:59:59.999999",
    "2024-02-29": "2024-02-29",
}
NONE = [
    "", " ", "x", "now", "infinity", "2020", "2020-01", "202001", "2020-001", "2020-W01-1",
    "2020/01/01", "01-02-2020",
    "1577836800", "1577836800000", "2020010112", "-1", "1.5", "2020-02-30", "2023-02-29",
    "2020-13-01", "2020-00-01",
    "2020-01-32",
    "2020-01-01 24:00", "2020-01-01 25:00", "2020-01-01 10:60", "2016-12-31 23:59:60",
    "20161231T235960", "0000-01-01",
    "0001-01-01 00:00+01", "9999-12-31 23:59-01", "12020-01-01", "20-01-01",
    "2020-01-01 12:30:15 +24:00",
    "2020-01-01 12:30 +02:60", "2020-01-01-05", "2020-01-01 +5", "2020-01-01T", "2020-01-01 12:3",
    "2020-01-01 12:30:",
    "2020-01-01 12:30:15.", "2020-01-01T123015", "2020-01-01 12:30 PM", "2020-01-01 12:30 CET",
    "2020-01-01 12:30 Europe/Berlin",
    "２０２０-01-01", "2020-01-01\n12:30", "2020-01-01 T12:30", "99999999", "20200230", "٢٠٢٠٠١٠١",
]  # a long list  # fmt: skip


def micros(text: str) -> int:
    return (dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) - EPOCH) // dt.timedelta(
        microseconds=1
    )


WANTED = {text: micros(value) for text, value in TABLE.items()} | dict.fromkeys(NONE)


def test_the_reader():
    got = instants.instants(pa.array([*WANTED, None]))
    assert dict(zip([*WANTED, None], got.to_pylist(), strict=True)) == WANTED | {None: None}


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_other_arrays_of_text(kind: pa.DataType):
    texts = pa.array(["2020-01-01", None, "no"]).cast(kind)
    assert instants.instants(texts).to_pylist() == [micros("2020-01-01"), None, None]


@pytest.mark.parametrize("text", WANTED)
def test_the_reader_by_itself(text: str):
    """Alone a text may go another way than among others."""
    assert instants.instant(text) == WANTED[text]
    if WANTED[text] is None:
        assert instants.why_not(text)


def test_cast():
    values, errors = cast_all(STRING, TIMESTAMP, list(WANTED))
    assert values == list(WANTED.values())
    assert errors == len(NONE)


def answer(engine: Engine, text: str) -> list[int | None]:
    """The instants of a one-time answer with one column; None for a statement that fails as it
    should."""
    try:
        return engine.execute(text)[-1].data.column(0).cast(pa.int64()).to_pylist()
    except DsmsError as err:
        assert err.code in ("DS106", "DS703"), err
        return [None]


@pytest.mark.parametrize("text", WANTED)
def test_literals(text: str):
    quoted = text.replace("'", "''")
    for form in ("TIMESTAMP '{}'", "CAST('{}' AS TIMESTAMP)", "'{}'::TIMESTAMP"):
        assert answer(Engine(), f"SELECT {form.format(quoted)} AS t") == [WANTED[text]], form


def test_one_time_over_rows():
    """DuckDB answers these."""
    engine = Engine()
    engine.execute("CREATE STREAM s (i INT, x STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    engine.execute("CREATE TABLE good (i INT, x STRING)")
    rows = [[i, text, 0] for i, text in enumerate(TABLE)]
    engine.ingest("s", rows)
    engine.heartbeat("s", 1)
    assert answer(engine, "SELECT CAST(x AS TIMESTAMP) FROM s [RANGE 1 h] ORDER BY i") == [
        WANTED[t] for t in TABLE
    ]
    for text in NONE:
        quoted = text.replace("'", "''")
        engine.execute(f"DELETE FROM good; INSERT INTO good VALUES (1, '{quoted}')")
        assert answer(engine, "SELECT CAST(x AS TIMESTAMP) FROM good") == [None], text


@pytest.mark.parametrize("text", WANTED)
def test_oracle(text: str):
    try:
        got = oracle_cast(Call("cast", (Col(0, STRING),), TIMESTAMP), text)
    except Failed:
        got = None
    assert got == WANTED[text]


@given(
    st.integers(instants.MIN_INSTANT, instants.MAX_INSTANT),
    st.integers(-1439, 1439),
    st.sampled_from("T "),
)
def test_what_python_writes_is_read(at: int, minutes: int, between: str):
    zone = dt.timezone(dt.timedelta(minutes=minutes))
    try:
        text = (EPOCH + dt.timedelta(microseconds=at)).astimezone(zone).isoformat(between)
    except OverflowError:  # the local year is none
        return
    assert instants.instant(text) == at


@given(st.lists(st.sampled_from([*WANTED]), max_size=12))
def test_neighbours_change_nothing(texts: list[str]):
    assert instants.instants(pa.array(texts, pa.string())).to_pylist() == [WANTED[t] for t in texts]
