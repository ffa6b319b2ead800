"""`dsms load --rejects FILE` keeps each row that was not taken, with its line; positions over
TCP."""

from __future__ import annotations

import csv
import gzip
import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from dsms.engine import Engine
from dsms_client.sync import connect
from dsms_server import answers

DECLARED = "CREATE STREAM s (k STRING NOT NULL, v INT, t TIMESTAMP) TIMESTAMP BY t MAX FUTURE 1 h"
ROWS = [
    ("a", 1, "2026-01-01 00:00:10"),
    ("b", 2, "2026-01-01 00:00:05"),  # late
    (None, 3, "2026-01-01 00:00:11"),
    ("c", 4, "2026-01-02 00:00:00"),  # too far
    ("d", 5, None),
    ("e", 6, "2026-01-01 00:00:20"),
    ("f", 7, "2026-01-01 00:00:19"),  # late
    (None, 8, "2026-01-01 00:00:21"),
    ("g", 9, "2026-01-01 00:00:22"),
]
REFUSED = [
    (2, "late"),
    (3, "refused by the server: NULL in a NOT NULL column"),
    (4, "refused by the server: beyond MAX FUTURE"),
    (5, "refused by the server: NULL timestamp"),
    (7, "late"),
    (8, "refused by the server: NULL in a NOT NULL column"),
]


@pytest.fixture
def running(serve):
    engine = Engine()
    engine.execute(DECLARED)
    return serve(engine)


def write(path, kind: str) -> int:
    """The number of the first row's line, less one."""
    if kind.startswith("csv"):
        lines = ["k,v,t", *(",".join("" if x is None else str(x) for x in row) for row in ROWS)]
        text = "".join(line + "\n" for line in lines)
        path.write_bytes(gzip.compress(text.encode()) if kind.endswith("gz") else text.encode())
        return 1
    if kind == "jsonl":
        rows = (json.dumps(dict(zip("kvt", row, strict=True))) + "\n" for row in ROWS)
        path.write_text("".join(rows))
        return 0
    columns = dict(zip("kvt", map(list, zip(*ROWS, strict=True)), strict=True))
    if kind.startswith("arrow"):
        table = pa.table(columns)
        with (pa.ipc.new_stream if kind == "arrows" else pa.ipc.new_file)(
            path, table.schema
        ) as sink:
            sink.write_table(table, 3)
        return 0
    pyarrow.parquet.write_table(pa.table(columns), path)
    return 0


@pytest.mark.parametrize("batch", ["2", "50000"])
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet", "arrow", "arrows"])
def test_each_row_that_was_not_taken_stands_in_the_file(running, dsms, tmp_path, kind, batch):
    path, rejects = tmp_path / f"rows.{kind}", tmp_path / "rejects.csv"
    first = write(path, kind)
    words = ["load", str(path), "--stream", "s", "--port", str(running.port), "--no-end"]
    code, _, err = dsms(*words, "--rejects", str(rejects), "--batch", batch)
    assert code == 1, err
    with open(rejects, newline="", encoding="utf-8") as file:
        found = [(int(row["line"]) - first, row["reason"]) for row in csv.DictReader(file)]
    assert sorted(found) == REFUSED
    assert "2 late, 4 refused" in err


def test_positions_come_back_when_they_are_asked_for(running):
    with connect(port=running.port) as db:
        rows = [("a", i, (i + 1) * 1_000_000) for i in range(5000)]
        for at in (17, 3000, 4999):
            rows[at] = (None, 0, rows[at][2])
        for at in (40, 2048, 4000):
            rows[at] = ("late", 0, 1)
        report = db.ingest("s", rows, positions=True)
        assert report.positions == {
            "NULL in a NOT NULL column": (17, 3000, 4999),
            "late": (40, 2048, 4000),
        }
        assert db.ingest("s", rows[:3]).positions == {}
        assert db.ingest("s", [("b", 1, 5_001_000_000)], positions=True).positions == {}


def test_a_reply_tells_so_many_and_no_more(running, monkeypatch):
    monkeypatch.setattr(answers, "POSITIONS", 3)
    with running.peer() as peer:
        rows = [[None, 1, 1]] * 5
        reply = peer.ask("ingest", stream="s", rows=rows, positions=True)
        assert reply["positions"] == {"NULL in a NOT NULL column": [0, 1, 2]}
        assert reply["refused"] == 5
        assert "positions" not in peer.ask("ingest", stream="s", rows=rows)
