"""DATE, TIME and UUID in statements: literals, arithmetic, order, defaults, parameters, what is
refused, and ways out that others read."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from contextlib import closing
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dsms import Engine
from dsms.errors import DsmsError

ID = uuid.UUID("5a0e3b1c-0f2d-4c6e-9b7a-1d2e3f405162")
DECLARED = """
CREATE STREAM s (d DATE, m TIME, u UUID, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE STREAM e (d DATE, m TIME DEFAULT TIME '08:00', u UUID DEFAULT UUID '5a0e3b1c-0f2d-4c6e-9b7a-1d2e3f405162',
    t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE TABLE r (d DATE PRIMARY KEY, m TIME, u UUID)
"""  # noqa: E501


def asked(text: str, values: Any = None, engine: Engine | None = None) -> list[tuple[Any, ...]]:
    """What a SELECT answers, as people see it."""
    table = (engine or Engine()).execute(text, values)[-1].arrow()
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.execute(DECLARED)
    return made


ANSWERS = [
    ("DATE '2013-01-31' + 1", dt.date(2013, 2, 1)),
    ("1 + DATE '2013-01-31'", dt.date(2013, 2, 1)),
    ("DATE '2013-03-01' - 1", dt.date(2013, 2, 28)),
    ("DATE '2013-03-01' - DATE '2013-02-01'", 28),
    ("DATE '0001-01-01' - DATE '9999-12-31'", -3652058),
    ("DATE '2013-01-31' + INTERVAL '36' HOUR", dt.datetime(2013, 2, 1, 12)),
    ("DATE '2013-01-31' + TIME '12:30'", dt.datetime(2013, 1, 31, 12, 30)),
    ("TIME '23:00' + INTERVAL 2 h", dt.time(1)),
    ("TIME '01:00' - INTERVAL '49' HOUR", dt.time(0)),
    ("TIME '01:00' - TIME '02:00:00.5'", dt.timedelta(seconds=-3600.5)),
    ("CAST(TIMESTAMP '1969-12-31 23:59:59.999999' AS DATE)", dt.date(1969, 12, 31)),
    ("CAST(TIMESTAMP '1969-12-31 23:59:59.999999' AS TIME)", dt.time.max),
    ("CAST(TIMESTAMP '2013-01-01 00:30:00+02:00' AT TIME ZONE 'Europe/Berlin' AS DATE)",
     dt.date(2012, 12, 31)),
    ("CAST(DATE '2013-01-31' AS TIMESTAMP)", dt.datetime(2013, 1, 31)),
    ("CAST(DATE '0001-01-01' AS STRING) || ' ' || TIME '1:02:03.50'", "0001-01-01 01:02:03.5"),
    ("CAST(UUID '{5A0E3B1C0F2D4C6E9B7A1D2E3F405162}' AS STRING)", str(ID)),
    ("TRY_CAST('2013-02-30' AS DATE)", None),
    ("TRY_CAST('2013-01-31 00:00' AS DATE)", None),
    ("'20130131'::DATE", dt.date(2013, 1, 31)),
    ("EXTRACT(DOW FROM DATE '2013-01-31')", 4),
    ("EXTRACT(SECOND FROM TIME '01:02:03.9')", 3),
    ("EXTRACT(EPOCH FROM TIME '00:01:00.5')", 60.5),
    ("DATE_TRUNC('month', DATE '2013-01-31')", dt.datetime(2013, 1, 1)),
    ("DATE_DIFF('day', DATE '2013-01-31', DATE '2013-02-02')", 2),
    ("STRFTIME(DATE '2013-01-31', '%d.%m.%Y')", "31.01.2013"),
    ("CAST(STRPTIME('31/01/2013', '%d/%m/%Y') AS DATE)", dt.date(2013, 1, 31)),
    ("DATE '2013-01-31' < TIMESTAMP '2013-01-31 00:00:01'", True),
    ("DATE '2013-01-31' IN (TIMESTAMP '2013-01-31')", True),
    ("TIME '12:00' BETWEEN TIME '00:00' AND TIME '23:59'", True),
    ("UUID 'ffffffff-ffff-ffff-ffff-ffffffffffff' > UUID '00000000-0000-0000-0000-000000000000'",
     True),
    ("COALESCE(NULL, DATE '2013-01-31')", dt.date(2013, 1, 31)),
    ("GREATEST(DATE '2013-01-31', TIMESTAMP '2013-01-31 01:00:00')", dt.datetime(2013, 1, 31, 1)),
    ("[DATE '2013-01-31', NULL]", [dt.date(2013, 1, 31), None]),
    ("[TIME '12:30'][1]", dt.time(12, 30)),
    ("CAST(['2013-01-31'] AS LIST(DATE))", [dt.date(2013, 1, 31)]),
]  # a table  # fmt: skip


@pytest.mark.parametrize(("text", "answer"), ANSWERS)
def test_what_expressions_are(text: str, answer: Any) -> None:
    assert asked(f"SELECT {text}") == [(answer,)]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("DATE '2013-01-31 12:00'", "DS106", "no time of the day"),
        ("DATE '2013-02-30'", "DS106", "no such day"),
        ("TIME '24:00'", "DS106", "hours go from 0 to 23"),
        ("TIME '12:00Z'", "DS106", "without a zone"),
        ("UUID 'x'", "DS106", "32 hexadecimal digits"),
        ("DATE '2013-01-31' = '2013-01-31'", "DS208", "DATE '2013-01-31'"),
        ("UUID '5a0e3b1c0f2d4c6e9b7a1d2e3f405162' = 'x'", "DS208", "CAST(x AS UUID)"),
        ("DATE '2013-01-31' + DATE '2013-01-31'", "DS208", ""),
        ("TIME '12:00' + 1", "DS208", ""),
        ("SUM(DATE '2013-01-31')", "DS207", ""),
        ("CAST('24:00' AS TIME)", "DS703", "no TIME"),
        ("DATE '9999-12-31' + 1", "DS702", "leaves the years"),
        ("CAST(1 AS DATE)", "DS208", ""),
        ("GEN_RANDOM_UUID()", "DS206", "follows from the rows alone"),
    ],
)
def test_what_is_refused(text: str, code: str, words: str) -> None:
    with pytest.raises(DsmsError) as caught:
        Engine().execute(f"SELECT {text}")
    assert caught.value.code == code
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_defaults_and_constants_of_tables(engine: Engine) -> None:
    engine.ingest("e", [{"d": dt.date(2013, 1, 31), "t": 1}])
    engine.heartbeat("e", 10)
    rows = asked("SELECT d, m, u FROM e", engine=engine)
    assert rows == [(dt.date(2013, 1, 31), dt.time(8), str(ID))]
    engine.execute("INSERT INTO r (d) VALUES (DATE '2013-01-31'), (TIMESTAMP '2013-02-01')")
    engine.execute("INSERT INTO r VALUES (?, ?, ?)", [dt.date(2013, 2, 2), dt.time(9), ID])
    rows = asked("SELECT d, m, u FROM r ORDER BY d", engine=engine)
    assert rows == [
        (dt.date(2013, 1, 31), None, None),
        (dt.date(2013, 2, 1), None, None),
        (dt.date(2013, 2, 2), dt.time(9), str(ID)),
    ]
    with pytest.raises(DsmsError, match="DATE '2013-01-31'"):
        engine.execute("INSERT INTO r (d) VALUES ('2013-01-31')")
    found = asked(
        "SELECT COUNT(*) FROM r WHERE m = :m AND u = :u AND d >= :d",
        engine=engine,
        values={"m": dt.time(9), "u": ID, "d": dt.date(2013, 2, 1)},
    )
    assert found == [(1,)]


ROWS = [
    (dt.date(2026, 11, 30), dt.time(12, 0, 1, 500_000), str(ID)),
    (dt.date.min, dt.time.min, str(uuid.UUID(int=0))),
    (dt.date.max, dt.time.max, str(uuid.UUID(int=2**128 - 1))),
    (None, None, None),
]
TABLE = pa.table(
    {
        "d": pa.array([r[0] for r in ROWS], pa.date32()),
        "m": pa.array([r[1] for r in ROWS], pa.time64("us")),
        "u": [r[2] for r in ROWS],
        "t": pa.array([1] * 4, pa.timestamp("us")),
    }
)


def read_back(table: pa.Table, form: str) -> Any:
    """The table, having been written and read again."""
    out = io.BytesIO()
    match form:
        case "arrow":
            with pa.ipc.new_stream(out, table.schema) as writer:
                writer.write(table)
            return pa.ipc.open_stream(out.getvalue()).read_all()
        case "parquet":
            pq.write_table(table, out)
            return pq.read_table(io.BytesIO(out.getvalue()))
        case "pandas":
            return table.to_pandas()
        case "pandas arrow":
            return table.to_pandas(types_mapper=pd.ArrowDtype)
        case "polars":
            return pl.from_arrow(table)
        case "rows":
            return [list(row.values()) for row in table.to_pylist()]
        case "uuids":
            ids = [None if u is None else uuid.UUID(u).bytes for u in table["u"].to_pylist()]
            return table.set_column(2, "u", pa.array(ids, pa.uuid()))
        case _:
            return table.to_pylist()


@pytest.mark.parametrize(
    "form", ["arrow", "parquet", "pandas", "pandas arrow", "polars", "rows", "dicts", "uuids"]
)
def test_values_come_back_by_every_way(engine: Engine, form: str) -> None:
    assert engine.ingest("s", read_back(TABLE, form)).accepted == 4
    engine.heartbeat("s", 10)
    found = engine.execute("SELECT d, m, u, t FROM s")[0].arrow()
    assert found.schema.types == TABLE.schema.types
    assert [tuple(r.values())[:3] for r in found.to_pylist()] == ROWS
    again = Engine()
    again.execute(DECLARED)
    assert again.ingest("s", found).accepted == 4


def test_wrong_values_refuse_their_rows(engine: Engine) -> None:
    at = dt.datetime(1970, 1, 1)
    wrong = [dt.datetime(2020, 1, 1, 1), "2020-01-01 00:00", "x", 1, 2**62, 1.5, True, b"x"]
    report = engine.ingest("s", [[v, None, None, at] for v in wrong])
    assert (report.accepted, report.refused) == (0, len(wrong))
    wrong = [dt.datetime(2020, 1, 1), "24:00", "12", -1, 86_400_000_000, dt.timedelta(1), 1.5]
    report = engine.ingest("s", [[None, v, None, at] for v in wrong])
    assert (report.accepted, report.refused) == (0, len(wrong))
    report = engine.ingest("s", [[None, None, v, at] for v in ("x", 5, b"x", "5a0e", 1.5)])
    assert (report.accepted, report.refused) == (0, 5)


def test_dates_are_no_event_time(engine: Engine) -> None:
    with pytest.raises(DsmsError, match="DS223"):
        engine.execute("CREATE STREAM z (d DATE) TIMESTAMP BY d")
    engine.execute("CREATE STREAM z (d DATE) TIMESTAMP BY (CAST(d AS TIMESTAMP)) AS t")


def test_a_folder_keeps_them(tmp_path: Any) -> None:
    with closing(Engine(str(tmp_path))) as first:
        first.execute(DECLARED)
        first.execute("CREATE QUERY q AS SELECT d, MAX(m) AS m, COUNT(u) AS n FROM s GROUP BY d")
        first.ingest("s", TABLE)
        first.heartbeat("s", 10)
    with closing(Engine(str(tmp_path))) as again:
        rows = asked("SELECT d, m, n FROM q ORDER BY d", engine=again)
        assert rows[0] == (dt.date.min, dt.time.min, 1)
        assert rows[-1] == (None, None, 0)
        (created,) = again.execute("SHOW CREATE STREAM s")
        assert "d DATE" in str(created.arrow().to_pylist())
