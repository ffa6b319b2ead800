"""Engines in which few rows are many: what they do to tables is made ready in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from dsms.commands import change, staged
from dsms.engine import Engine
from dsms.settings import Settings
from dsms.storage import blobs
from dsms.tables import conflicts, keys, matching, staging

ROWS = 60
INSERT = "INSERT INTO d SELECT v AS k, name FROM s [RANGE 1 h]"
TABLES = {
    "keys": "CREATE TABLE d (k INT PRIMARY KEY, name STRING)",
    "no keys": "CREATE TABLE d (k INT, name STRING)",
    "dead keys": "CREATE TABLE d (k INT PRIMARY KEY, name STRING) NON RETROACTIVE",
}
CHANGES = {
    "insert": "INSERT INTO d SELECT v + 1000 AS k, name FROM s [RANGE 1 h]",
    "update": "UPDATE d SET name = name || 'x' WHERE k % 2 = 0",
    "delete": "DELETE FROM d WHERE k >= 10",
    "all": "DELETE FROM d",
}
CONFLICTS = {
    "swap": "UPDATE d SET k = 59 - k",
    "conflict": "INSERT INTO d SELECT 2 * (v / 2) + 30 AS k, name FROM s [RANGE 1 h] WHERE v % 2 "
    "= 0 ON CONFLICT (k) DO UPDATE SET name = d.name || EXCLUDED.name WHERE EXCLUDED.k % 3 > 0",
    "nothing": "INSERT INTO d SELECT v / 2 + 45 AS k, name FROM s [RANGE 1 h] "
    "ON CONFLICT (k) DO NOTHING",
    "values": "INSERT INTO d VALUES " + ", ".join(f"({i}, 'v{i}')" for i in range(100, 200)),
}
BOUNDS = ((staged, "MANY", 7), (matching, "MATCHED", 9), (change, "MATCHED", 9),
          (keys, "CODED", 7), (keys, "SEEN", 5), (conflicts, "MET", 6), (staging, "STAGED", 4),
          (blobs, "PIECE", 8))  # a long list  # fmt: skip


@contextmanager
def few() -> Iterator[pytest.MonkeyPatch]:
    """Few rows are many."""
    with pytest.MonkeyPatch.context() as patch:
        for room, name, value in BOUNDS:
            patch.setattr(room, name, value)
        yield patch


def opened(
    folder: str | None = None,
    table: str = "keys",
    settings: Settings | None = None,
    disk: Any = None,
) -> Engine:
    """An engine with rows in a stream, a table, and queries that read both."""
    db = Engine(folder, settings, disk)
    if db.runtime.tables:
        return db
    db.execute(
        "CREATE STREAM s (v INT, name STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h SUBWINDOW "
        f"10 ms; {TABLES[table]}"
    )
    db.execute("CREATE QUERY j AS SELECT v, d.name FROM s [RANGE 1 h], d WHERE v = d.k")
    if table == "no keys":
        db.execute("CREATE QUERY c AS SELECT k, COUNT(*) AS n FROM d GROUP BY k")
    at = np.arange(ROWS)
    db.ingest("s", {"v": at, "name": [f"name {i}" for i in at], "t": at * 1000})
    db.heartbeat("s", 1000 * ROWS)
    return db


def rows(db: Engine, sql: str = "SELECT k, name FROM d") -> list[tuple]:
    """What is there, in an order of its own."""
    (found,) = db.execute(sql)
    return sorted(tuple(row.values()) for row in found.data.to_pylist())


def everything(db: Engine) -> tuple:
    """All versions of the table, and the answers of the queries over it."""
    table = db.runtime.tables["d"]
    found = table.versions()
    lives = zip(found.ts.tolist(), found.exp.tolist(), found.ids[0].tolist(), strict=True)
    values = zip(*(c.to_pylist() for c in found.cols), strict=True)
    answers = [rows(db, f"SELECT * FROM {name}") for name in db.runtime.queries]
    return sorted(zip(lives, values, strict=True)), answers, table.next_version, len(table)


def played(slices: Any, between: Callable[[int], None] = lambda n: None) -> int:
    """All slices of a statement; how many there were."""
    for n in range(100_000):
        try:
            next(slices)
        except StopIteration:
            return n
        between(n)
    raise AssertionError("no end")
