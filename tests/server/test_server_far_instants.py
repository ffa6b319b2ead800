"""Instants that no column takes are refused with what was sent, whichever way they come."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dsms.engine import Engine
from dsms.forms.scalars import Instant, as_builtin
from dsms_client import connect
from tests.server.test_server_dump import ran

DAY = 86_400 * 10**6
FAR = {  # by NumPy's unit: a count, and how many microseconds that is
    "D": (2**50, 2**50 * DAY),
    "W": (-(10**10), -(10**10) * 7 * DAY),
    "3h": (2**62, 2**62 * 3 * 3600 * 10**6),
    "s": (2**62, 2**62 * 10**6),
    "ms": (-(2**62), -(2**62) * 1000),
    "us": (2**62, 2**62),
    "Y": (400 * 2**40, 146_097 * 2**40 * DAY),
    "M": (-4800 * 2**40 + 1, (-146_097 * 2**40 + 31) * DAY),
    # in 64 bits days of so many years begin anew: NumPy calls it 1970-11-10
    "1Y": (50505469855533110, (2**64 + 313) * DAY),
}
CREATE = "CREATE STREAM s (c TIMESTAMP, t INT) TIMESTAMP BY t UNIT s SLACK 1 h;"


def forms(count: int, unit: str) -> list[Any]:
    """Rows with that instant, and with one that is taken, in all forms."""
    far, near = np.datetime64(count, unit), np.datetime64("2020-01-01", unit)
    many = np.array([far, near])
    found = [
        [[far, 1], [near, 1]],
        [{"c": far, "t": 1}, {"c": near, "t": 1}],
        {"c": [far, near], "t": [1, 1]},
        {"c": many, "t": [1, 1]},
        {"c": np.ma.array([near, far, near], mask=[True, False, False])[1:], "t": [1, 1]},
        [[far, 1], ["2020-01-01", 1], [None, 1]],
    ]
    if unit in ("s", "ms", "us"):
        column = pa.array(many)
        found += [pa.table({"c": column, "t": [1, 1]}),
                  pa.table({"c": column.dictionary_encode(), "t": [1, 1]}),
                  [[column[0], 1], [column[1], 1]],
                  pd.DataFrame({"c": pd.Series(many), "t": [1, 1]})]  # forms  # fmt: skip
    return found


@pytest.mark.parametrize("unit", list(FAR))
def test_what_was_sent_is_shown(serve: Any, unit: str) -> None:
    count, micros = FAR[unit]
    engine = Engine()
    engine.execute(CREATE)
    server = serve(Engine())
    with connect(port=server.port) as db:
        db.execute(CREATE)
        for data in forms(count, unit.removeprefix("1")):
            for report in (engine.ingest("s", data), db.ingest("s", data)):
                assert report.refused == 1, data
                assert f"row 0: column c: {micros} µs since 1970" in report.reasons[0], data


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_files(serve: Any, tmp_path: Path, unit: str) -> None:
    """Parquet has no seconds: Arrow keeps them in a file of its own."""
    server, place = serve(Engine()), tmp_path / "far.parquet"
    with connect(port=server.port) as db:
        db.execute(CREATE)
    count = 2**62 if unit != "s" else 2**50
    pq.write_table(pa.table({"c": pa.array([count, 0], pa.timestamp(unit)), "t": [1, 1]}), place)
    code, _, told = ran(server, "load", str(place), "--stream", "s")
    micros = count * {"s": 10**6, "ms": 1000, "us": 1}[unit]
    assert code == 1 and f"line 1: column c: {micros} µs since 1970" in told, told


@pytest.mark.parametrize("type_", [pa.date32(), pa.date64()])
def test_dates_of_arrow(type_: pa.DataType) -> None:
    engine = Engine()
    engine.execute(CREATE)
    days = 2**30
    ticks = [days, 0] if type_ == pa.date32() else [days * 86_400_000, 0]
    column = pa.array(ticks, pa.int32() if type_ == pa.date32() else pa.int64()).view(type_)
    for data in ({"c": column, "t": [1, 1]}, [[column[0], 1], [column[1], 1]]):
        report = engine.ingest("s", data)
        assert report.reasons == (
            "1 row refused (outside the years 0001-9999): row 0: column c: "
            f"{days * DAY} µs since 1970",
        )


def test_months_are_counted_as_the_calendar_does() -> None:
    for months in range(-1969 * 12, 8030 * 12, 7):
        first = dt.datetime(1970 + months // 12, months % 12 + 1, 1)
        want = Instant((first - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1))
        assert as_builtin(np.datetime64(months, "M")) == want
