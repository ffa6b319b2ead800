"""Files into streams: how fast they are read, and how fast a server takes them.

The same rows stand in a CSV file, in one of which a tenth is no row, in Parquet, in JSON lines, and
in JSON lines with objects within objects.  DuckDB reads the same files in the same run, with one
thread, into a table of the same types.  Of the rows that are read the count and two sums are held
against those that were written, of queries the rows that they have counted.

Rates are millions of rows per CPU second: of reading, that of the process; of a server, that of its
process alone, while `dsms load` reads in another one.

with 6    six queries run over the stream: three aggregates at boundaries, a selection, a join with
          a table, a TOPK

End to end are millions of rows per second of the clock on the wall, from the start of `dsms load`
(its imports, the connection) until the server has taken the last row; of DuckDB the reading alone,
in a process that runs.  Such rates are those of a machine that has nothing else to do: the load
average says whether it had.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from dsms.engine import Engine
from dsms_client.files.open import read
from dsms_client.files.source import FileSource
from dsms_client.sync import connect
from tests.benchmarks.harness import Options, Section, Table, same
from tests.server.harness import Running

COLUMNS = (
    ("k", "INT"),
    ("name", "STRING"),
    ("v", "FLOAT"),
    ("m", "INT"),
    ("t", "TIMESTAMP"),
)
STREAM = "CREATE STREAM s (k INT, name STRING, v FLOAT, m INT, t TIMESTAMP) TIMESTAMP BY t"
NESTED = {"k": "id.k", "name": "id.name", "m": "data.m", "t": "data.at.t"}
QUERIES = """
CREATE TABLE places (k INT PRIMARY KEY, place STRING) NON RETROACTIVE;
INSERT INTO places VALUES (1, 'a'), (2, 'b'), (3, 'c'), (400, 'd');
CREATE QUERY counted AS SELECT COUNT(*) AS n FROM s [RANGE 10 s SLIDE 10 s];
CREATE QUERY by_key AS SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 10 s SLIDE 10 s] GROUP BY k;
CREATE QUERY highest AS SELECT name, MAX(v) AS v FROM s [RANGE 60 s SLIDE 10 s] GROUP BY name;
CREATE QUERY high AS SELECT Istream(k, v) FROM s [NOW] WHERE v > 180;
CREATE QUERY placed AS SELECT Istream(place, v) FROM s [NOW], places WHERE s.k = places.k AND v > 150;
CREATE QUERY often AS SELECT TOPK(name, 5) AS names FROM s [RANGE 60 s SLIDE 10 s];
"""  # noqa: E501
PATIENCE = 60.0  # seconds for the next answer of a query
FILES = {
    "CSV": "a.csv",
    "CSV, a tenth is no row": "r.csv",
    "Parquet": "a.parquet",
    "JSON lines": "a.jsonl",
    "JSON lines, nested": "n.jsonl",
}


def section(options: Options) -> Section:
    """Rates of reading and of loading."""
    rows = options.pick(1_000_000, 300_000, 2_000)
    with tempfile.TemporaryDirectory() as folder:
        data = _write(Path(folder), rows)
        paths = {what: Path(folder, name) for what, name in FILES.items()}
        reading = [_reading(what, path, data, options) for what, path in paths.items()]
        loaded = [(what, _loading(paths[what], data, options)) for what in ("CSV", "Parquet")]
        walls = [_wall(paths[what], data, options) for what, _ in loaded]
    load = os.getloadavg()[0]
    cpu = tuple((what, *(f"{one.cpu:.2f}" for one in found)) for what, found in loaded)
    wall = tuple(
        (what, *(f"{one.wall:.2f}" for one in found), f"{theirs:.2f}", f"{load:.1f}")
        for (what, found), theirs in zip(loaded, walls, strict=True)
    )
    return Section(
        "Files",
        __doc__ or "",
        [
            Table("Reading", ("file", "M rows/s", "DuckDB", "dsms : DuckDB"), tuple(reading)),
            Table("A server that takes them", ("file", "no query", "with 6"), cpu),
            Table("End to end", ("file", "no query", "with 6", "DuckDB", "load average"), wall),
        ],
    )


def _write(folder: Path, rows: int) -> pa.Table:
    """The files; a third of the rows as JSON."""
    rng = np.random.default_rng(7)
    names = np.array([f"name{i}" for i in range(1000)])
    data = pa.table(
        {
            "k": rng.integers(0, 500, rows),
            "name": names[rng.integers(0, 1000, rows)],
            "v": np.round(rng.normal(100, 20, rows), 3),
            "m": rng.integers(0, 10**6, rows),
            "t": (1_500_000_000_000_000 + np.arange(rows) * 1000).astype("datetime64[us]"),
        }
    )
    pa.csv.write_csv(data, folder / "a.csv")
    pa.parquet.write_table(data, folder / "a.parquet")
    head, *lines = (folder / "a.csv").read_text().splitlines(keepends=True)
    wrong = (line if i % 10 else f"x{line}" for i, line in enumerate(lines))
    (folder / "r.csv").write_text(head + "".join(wrong))
    objects = [{**row, "t": row["t"].isoformat()} for row in data.slice(0, rows // 3).to_pylist()]
    for name, shape in (("a.jsonl", dict), ("n.jsonl", _nested)):
        (folder / name).write_text("".join(f"{json.dumps(shape(one))}\n" for one in objects))
    return data


def _nested(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": {"k": row["k"], "name": row["name"]},
        "v": row["v"],
        "data": {"m": row["m"], "at": {"t": row["t"]}},
    }


def _figures(data: pa.Table) -> tuple[int, int, float]:
    """By which rows are known."""
    return data.num_rows, pc.sum(data["m"]).as_py(), pc.sum(data["v"]).as_py()


def _expected(name: str, data: pa.Table) -> tuple[int, int, float]:
    if name.endswith(".jsonl"):
        data = data.slice(0, data.num_rows // 3)
    if name == "r.csv":
        data = data.filter(pa.array(np.arange(data.num_rows) % 10 > 0))
    return _figures(data)


def _reading(what: str, path: Path, data: pa.Table, options: Options) -> tuple[str, ...]:
    expected = _expected(path.name, data)
    lines = data.num_rows if path.suffix != ".jsonl" else data.num_rows // 3
    ours = min(_ours(path, expected, lines) for _ in range(options.repeats))
    theirs = min(_theirs(path, expected) for _ in range(options.repeats))
    rates = lines / ours / 1e6, lines / theirs / 1e6
    return what, f"{rates[0]:.2f}", f"{rates[1]:.2f}", f"{rates[0] / rates[1]:.2f}"


def _ours(path: Path, expected: tuple[int, int, float], lines: int) -> float:
    """CPU seconds."""
    renamed = dict(NESTED) if path.name == "n.jsonl" else {}
    began, batches, rejected = time.process_time(), [], 0
    for piece in read(FileSource(str(path)), COLUMNS, renamed)[1]:
        batches.append(piece.batch)
        rejected += len(piece.rejects)
    seconds = time.process_time() - began
    found = _figures(pa.Table.from_batches(batches))
    for what, got, wanted in zip(("rows", "m", "v"), found, expected, strict=True):
        same(f"{path.name}: {what}", got, wanted)
    same(f"{path.name}: rejects", rejected, lines - expected[0])
    return seconds


def _theirs(
    path: Path,
    expected: tuple[int, int, float],
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Seconds."""
    types = "{k: 'BIGINT', name: 'VARCHAR', v: 'DOUBLE', m: 'BIGINT', t: 'TIMESTAMP'}"
    inner = "{id: 'STRUCT(k BIGINT, name VARCHAR)', v: 'DOUBLE', " + (
        "data: 'STRUCT(m BIGINT, \"at\" STRUCT(t TIMESTAMP))'}"
    )
    source = {
        "a.csv": f"* FROM read_csv(?, columns = {types})",
        "r.csv": f"* FROM read_csv(?, columns = {types}, store_rejects = true)",
        "a.parquet": "* FROM read_parquet(?)",
        "a.jsonl": f"* FROM read_json(?, format = 'newline_delimited', columns = {types})",
        "n.jsonl": 'id.k, id.name, v, data.m, data."at".t '
        f"FROM read_json(?, format = 'newline_delimited', columns = {inner})",
    }[path.name]
    with duckdb.connect(config={"threads": 1}) as db:
        began = clock()
        db.execute(f"CREATE TABLE x AS SELECT {source}", [str(path)])
        seconds = clock() - began
        found = db.execute("SELECT COUNT(*), SUM(m)::BIGINT, SUM(v) FROM x").fetchone()
    assert found is not None
    for got, wanted in zip(found, expected, strict=True):
        same(f"DuckDB, {path.name}", got, wanted)
    return seconds


@dataclass(frozen=True, slots=True)
class Rate:
    """Millions of rows per CPU second of the server, and per second."""

    cpu: float
    wall: float


def _loading(path: Path, data: pa.Table, options: Options) -> list[Rate]:
    """Without a query, and with six; the best of several loads each."""
    found = []
    for queries in ("", QUERIES):
        rates = [_rate(path, data, queries) for _ in range(options.repeats)]
        found.append(Rate(max(r.cpu for r in rates), max(r.wall for r in rates)))
    return found


def _rate(path: Path, data: pa.Table, queries: str) -> Rate:
    with _server(queries) as server:
        began, on_wall = time.process_time(), time.perf_counter()
        command = [sys.executable, "-m", "dsms_client", "load", str(path), "--stream", "s"]
        subprocess.run([*command, "--port", str(server.port), "--quiet", "--end"], check=True)
        seconds, waited = time.process_time() - began, time.perf_counter() - on_wall
        with connect(port=server.port) as client:
            _check(client, data, bool(queries))
    return Rate(data.num_rows / seconds / 1e6, data.num_rows / waited / 1e6)


def _wall(path: Path, data: pa.Table, options: Options) -> float:
    """Millions of rows per second that DuckDB reads."""
    expected, clock = _expected(path.name, data), time.perf_counter
    seconds = min(_theirs(path, expected, clock) for _ in range(options.repeats))
    return data.num_rows / seconds / 1e6


@contextmanager
def _server(queries: str) -> Iterator[Running]:
    engine = Engine()
    engine.execute(STREAM + ";" + queries)
    server = Running(engine)
    try:
        yield server
    finally:
        server.stop()


def _check(client: Any, data: pa.Table, queries: bool) -> None:
    """All rows were taken, and counted once."""
    status = client.query("SHOW STREAMS")
    same("accepted rows", status.rows[0][status.columns.index("accepted")], data.num_rows)
    counted = 0
    if queries:
        results = client.subscribe("counted", 0)
        while counted < data.num_rows and (push := results.next(timeout=PATIENCE)) is not None:
            counted += sum(n for (n,) in push.rows)
        same("counted rows", counted, data.num_rows)
