"""OVER: a running sum and the value before of each key, in process, beside Polars and DuckDB on the
same input in the same run.

One stream over 1,000 keys comes in batches; each row tells SUM(v) and LAG(v) of its key, over all
rows, over those of a window of ten seconds, and over the last ten.  A reader takes all results.
Polars and DuckDB answer the whole input in batch, from memory.  Every answer is checked against
NumPy: the sums of both columns.  Rates are rows per second; medians of three."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import dsms
from dsms.api import Chunk
from tests.benchmarks.harness import (
    Options,
    Section,
    Table,
    Took,
    clean_heap,
    median,
    same,
    shown,
    took,
)

KEYS = 1000
BATCHES = (1_000, 100_000)
SPAN = 10_000_000  # µs
LAST = 9  # rows before the current one
DECLARE = "CREATE STREAM s (ts TIMESTAMP, k INT, v INT) TIMESTAMP BY ts"
LAG = "LAG(v) OVER (PARTITION BY k)"
FORMS = {  # the frame of the sum, the window of both
    "all rows": ("", ""),
    "10 s": ("", "[RANGE 10 s]"),
    "10 rows": (f"ROWS {LAST} PRECEDING", ""),
}
SQL = {
    "all rows": "ROWS UNBOUNDED PRECEDING",
    "10 rows": f"ROWS {LAST} PRECEDING",
}
Answer = tuple[int, int]  # the sums of the sums, and of the values before


@dataclass(frozen=True, slots=True)
class Data:
    """ts (µs, rising), k and v, int64[n] each."""

    ts: np.ndarray
    k: np.ndarray
    v: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.ts)


def make(n: int) -> Data:
    """About a thousand rows a second."""
    rng = np.random.default_rng(17)
    ts = np.cumsum(rng.integers(1, 2000, n))
    return Data(ts, rng.integers(0, KEYS, n), rng.integers(0, 1000, n))


def found(data: Data, name: str) -> Answer:
    """By definition: of each row the first one of its frame, and the sum between."""
    order = np.argsort(data.k, kind="stable")
    k, ts, v = data.k[order], data.ts[order], data.v[order]
    place = np.arange(data.rows)
    start = np.searchsorted(k, k)
    since = start
    if name == "10 s":
        wide = int(ts.max()) + SPAN + 1
        since = np.searchsorted(k * wide + ts, k * wide + np.maximum(ts - SPAN, -1), side="right")
        since = np.maximum(since, start)
    low = np.maximum(start, place - LAST) if name == "10 rows" else since
    total = np.append(0, np.cumsum(v))
    sums = total[place + 1] - total[low]
    before = v[place - 1][place - 1 >= since]
    return int(sums.sum()), int(before.sum())


def section(options: Options) -> Section:
    """One table."""
    data = make(options.pick(1_000_000, 200_000, 5_000))
    rows = [_ours(name, data, batch, options) for name in FORMS for batch in BATCHES]
    rows += [
        _batch(engine, name, ask, data, options)
        for engine, build in (("DuckDB", _duckdb), ("Polars", _polars))
        for name, ask in _others(build, data).items()
    ]
    header = ("engine", "frame of the sum", "rows a batch", "rows/s", "rows/s of CPU")
    title = f"{data.rows:,} rows, {KEYS:,} keys"
    return Section("Values over rows", __doc__ or "", [Table(title, header, tuple(rows))])


def _row(engine: str, name: str, batch: str, data: Data, spent: Took) -> tuple[str, ...]:
    wall, cpu = data.rows / max(spent.wall, 1e-9), data.rows / max(spent.cpu, 1e-9)
    return engine, name, batch, shown(wall), shown(cpu)


# ---------------------------------------------------------------- dsms


def _ours(name: str, data: Data, batch: int, options: Options) -> tuple[str, ...]:
    run(name, data, batch)
    spent = median(run(name, data, batch) for _ in range(options.repeats))
    return _row("dsms", name, f"{batch:,}", data, spent)


def run(name: str, data: Data, batch: int) -> Took:
    """One run in an engine of its own, its answer checked."""
    frame, window = FORMS[name]
    engine = dsms.Engine()
    engine.execute(DECLARE)
    total = f"SUM(v) OVER (PARTITION BY k {frame})"
    engine.execute(f"CREATE QUERY q AS SELECT Istream(k, {total} AS x, {LAG} AS y) FROM s {window}")
    reader = engine.subscribe("q", limit_bytes=1 << 40)
    frames = list(_frames(data, batch))
    chunks: list[Any] = []
    with clean_heap():
        spent = took(lambda: chunks.extend(_fed(engine, reader, frames)))
    _check(name, chunks, found(data, name))
    engine.close()
    return spent


def _frames(data: Data, batch: int) -> Iterator[pa.RecordBatch]:
    ts = pa.array(data.ts).cast(pa.timestamp("us"))
    whole = pa.record_batch([ts, pa.array(data.k), pa.array(data.v)], ["ts", "k", "v"])
    return (whole.slice(start, batch) for start in range(0, data.rows, batch))


def _fed(engine: Any, reader: Any, frames: list[pa.RecordBatch]) -> Iterator[Any]:
    for rows in frames:
        engine.ingest("s", rows)
        yield from reader.take_chunks()
    engine.end("s")
    yield from reader.take_chunks()


def _check(name: str, chunks: list[Any], expected: Answer) -> None:
    tables = [c.data for c in chunks if isinstance(c, Chunk)]
    sums = [sum(int(t.column(k).drop_null().to_numpy().sum()) for t in tables) for k in (1, 2)]
    same(name, (sums[0], sums[1]), expected)


# ---------------------------------------------------------------- others


def _others(
    build: Callable[[Data], dict[str, Callable[[], Answer]]], data: Data
) -> dict[str, Callable[[], Answer]]:
    """What it answers, if it is installed."""
    try:
        return build(data)
    except ImportError:
        return {}


def _table(data: Data) -> pa.Table:
    return pa.table({"i": np.arange(data.rows), "ts": data.ts, "k": data.k, "v": data.v})


def _duckdb(data: Data) -> dict[str, Callable[[], Answer]]:
    import duckdb

    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("s", _table(data))

    def ask(frame: str) -> Callable[[], Answer]:
        over = "OVER (PARTITION BY k ORDER BY i"
        inner = f"SELECT sum(v) {over} {frame}) AS x, lag(v) {over}) AS y FROM s"
        return lambda: con.execute(f"SELECT sum(x), sum(y) FROM ({inner})").fetchone()  # type: ignore[return-value]

    return {name: ask(frame) for name, frame in SQL.items()}


def _polars(data: Data) -> dict[str, Callable[[], Answer]]:
    import polars as pl

    rows = pl.from_arrow(_table(data))
    v = pl.col("v")

    def ask() -> Answer:
        both = rows.select(x=v.cum_sum().over("k"), y=v.shift(1).over("k"))  # type: ignore[union-attr]
        return both.select(pl.col("x").sum(), pl.col("y").sum()).row(0)  # type: ignore[return-value]

    return {"all rows": ask}


def _batch(
    engine: str, name: str, run: Callable[[], Answer], data: Data, options: Options
) -> tuple[str, ...]:
    same(engine, tuple(map(int, run())), found(data, name))
    return _row(engine, name, "all", data, median(took(run) for _ in range(options.repeats)))
