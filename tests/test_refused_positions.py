"""Which rows of a frame were not taken, and why: in whatever form they came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dsms.api import IngestReport
from dsms.engine import Engine

DECLARED = (
    """CREATE STREAM s (k STRING NOT NULL, v INT, t TIMESTAMP) TIMESTAMP BY t MAX FUTURE 1 s"""
)
FAR = 10_000_000
ROWS: list[tuple[Any, Any, Any]] = [
    ("a", 1, 1000),
    (None, 2, 1001),  # NULL in a NOT NULL column
    ("b", 3, 900),  # late
    ("c", 4, FAR),  # too far
    ("d", 5, None),  # no instant
    ("e", 6, 2000),
    ("f", 7, 1500),  # late
    ("g", 8, FAR + 1),  # too far
    (None, 9, 3000),
]
EXPECTED = {
    "late": [2, 6],
    "beyond MAX FUTURE": [3, 7],
    "NULL timestamp": [4],
    "NULL in a NOT NULL column": [1, 8],
}
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64()), ("t", pa.timestamp("us"))])


def as_arrow(rows: list[Any]) -> pa.Table:
    return pa.table([*map(list, zip(*rows, strict=True))], schema=SCHEMA)


FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "rows": lambda rows: rows,
    "dicts": lambda rows: [dict(zip("kvt", row, strict=True)) for row in rows],
    "columns": lambda rows: dict(zip("kvt", map(list, zip(*rows, strict=True)), strict=True)),
    "arrow": as_arrow,
    "pandas": lambda rows: as_arrow(rows).to_pandas(),
}


def fresh() -> Engine:
    engine = Engine()
    engine.execute(DECLARED)
    return engine


def told(report: IngestReport) -> dict[str, list[int]]:
    return {reason: rows.tolist() for reason, rows in report.positions}


@pytest.mark.parametrize("form", FORMS)
def test_all_reasons_in_every_form(form: str) -> None:
    report = fresh().ingest("s", FORMS[form](ROWS))
    assert told(report) == EXPECTED
    assert (report.accepted, report.late, report.refused) == (2, 2, 5)


def test_values_of_wrong_types_and_rows_that_are_none() -> None:
    rows = [("a", 1, 1), ("a", "x", 2), ("a", 3), ("b", 4, 3), 7, (b"\xff", 5, 4), ("c", 6, 1)]
    report = fresh().ingest("s", rows)
    assert told(report) == {"not a row of this stream": [2, 4], "wrong value": [1, 5], "late": [6]}


def test_dicts_that_say_a_column_twice_and_years_that_are_none() -> None:
    far = 400_000_000_000_000_000
    rows = [{"k": "a", "K": "b", "t": 1}, {"k": "a", "t": 2}, {"k": "b", "t": far}]
    assert told(fresh().ingest("s", rows)) == {
        "not a row of this stream": [0],
        "outside the years 0001-9999": [2],
    }


def test_nothing_is_told_where_all_were_taken() -> None:
    report = fresh().ingest("s", [("a", 1, 1), ("b", 2, 2)])
    assert report.positions == () and report == IngestReport(2)


def test_positions_of_many_rows_are_those_of_the_reasons() -> None:
    rng = np.random.default_rng(4)
    ts = rng.integers(0, 3000, 5000)
    keys = np.where(rng.random(5000) < 0.1, None, "k")
    rows = list(zip(keys.tolist(), range(5000), ts.tolist(), strict=True))
    found = told(fresh().ingest("s", as_arrow(rows)))
    newest, late, without = -1, [], []
    for i, (key, _, t) in enumerate(rows):
        if key is None:
            without.append(i)
        elif t < newest:
            late.append(i)
        else:
            newest = t
    assert found == {"NULL in a NOT NULL column": without, "late": late}
