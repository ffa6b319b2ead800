"""ASOF JOIN: trades with the quote of their moment, in process, beside Polars' join_asof and
DuckDB's ASOF JOIN on the same input in the same run.

Two streams of equal length over 1,000 keys come in turns, in batches; each trade finds the newest
quote of its key that is not younger, at most five seconds old where WITHIN says so, and a reader
takes all results.  Polars and DuckDB answer the whole input in batch, from memory.  Every answer is
checked against NumPy: how many trades find a quote, and the sum of what they find.  Rates are rows
of both streams per second; medians of three."""

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
    ratio,
    same,
    shown,
    took,
)

KEYS = 1000
BATCHES = (10_000, 100_000)
SPAN = 5_000_000  # µs
BAR = 3e6  # rows/s that are asked for
DECLARE = "; ".join(
    f"CREATE STREAM {n} (ts TIMESTAMP, k {{key}}, v INT) TIMESTAMP BY ts"
    for n in ("trades", "quotes")
)
JOIN = "FROM trades t ASOF JOIN quotes q ON t.k = q.k AND t.ts >= q.ts"
FORMS = {
    "INT key": ("INT", JOIN, None),
    "INT key, WITHIN 5 s": ("INT", f"{JOIN} WITHIN 5 s", SPAN),
    "STRING key": ("STRING", JOIN, None),
    "windows of 1 s": ("INT", JOIN.replace("trades t", "trades [RANGE 1 s] t"), None),
}
Answer = tuple[int, int]  # trades that find a quote, and the sum of these quotes


@dataclass(frozen=True, slots=True)
class Data:
    """ts (µs, rising), k and v of both streams, int64[n] each."""

    trades: tuple[np.ndarray, np.ndarray, np.ndarray]
    quotes: tuple[np.ndarray, np.ndarray, np.ndarray]

    @property
    def rows(self) -> int:
        return len(self.trades[0]) + len(self.quotes[0])


def make(n: int) -> Data:
    """Streams of n rows each, that last equally long; the rarest keys come a thousandth as often as
    the others."""
    rng = np.random.default_rng(16)

    def stream() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        k = rng.integers(0, KEYS, n)
        rare = (k % 50 == 0) & (rng.random(n) > 1e-3)
        k[rare] += 1
        return np.cumsum(rng.integers(1, 4000, n)), k, rng.integers(0, 1000, n)

    return Data(stream(), stream())


def found(data: Data, span: int | None) -> Answer:
    """By definition: of each key the last quote up to the trade."""
    (ts, k, _), (quoted, of, v) = data.trades, data.quotes
    order = np.lexsort((quoted, of))
    wide = int(max(ts[-1], quoted[-1])) + 1
    at = np.searchsorted(of[order] * wide + quoted[order], k * wide + ts, side="right") - 1
    last = order[np.maximum(at, 0)]
    fits = (at >= 0) & (of[last] == k)
    if span is not None:
        fits &= ts - quoted[last] <= span
    return int(fits.sum()), int(v[last[fits]].sum())


def section(options: Options) -> Section:
    """One table."""
    data = make(options.pick(2_000_000, 300_000, 5_000))
    batches = options.pick(BATCHES, BATCHES, (1_000,))
    rows = [_ours(name, data, batch, options) for name in FORMS for batch in batches]
    rows += [_batch(name, run, data, options) for name, run in _others(data).items()]
    header = ("engine", "query", "rows a batch", "rows/s", "rows/s of CPU", "of 3 M rows/s")
    title = f"{data.rows:,} rows, half of them trades, {KEYS:,} keys"
    return Section("As-of joins", __doc__ or "", [Table(title, header, tuple(rows))])


def _row(engine: str, name: str, batch: str, data: Data, spent: Took) -> tuple[str, ...]:
    wall, cpu = data.rows / max(spent.wall, 1e-9), data.rows / max(spent.cpu, 1e-9)
    return engine, name, batch, shown(wall), shown(cpu), ratio(cpu / BAR)


# ---------------------------------------------------------------- dsms


def _ours(name: str, data: Data, batch: int, options: Options) -> tuple[str, ...]:
    run(name, data, batch)
    return _row(
        "dsms",
        name,
        f"{batch:,}",
        data,
        median(run(name, data, batch) for _ in range(options.repeats)),
    )


def run(name: str, data: Data, batch: int) -> Took:
    """One run in an engine of its own, its answer checked."""
    key, text, span = FORMS[name]
    engine = dsms.Engine()
    engine.execute(DECLARE.format(key=key))
    engine.execute(f"CREATE QUERY q AS SELECT Istream(t.k, t.v, q.v AS quote) {text}")
    reader = engine.subscribe("q", limit_bytes=1 << 40)
    frames = list(_frames(data, key, batch))
    chunks: list[Any] = []
    with clean_heap():
        spent = took(lambda: chunks.extend(_fed(engine, reader, frames)))
    _check(name, chunks, found(data, span))
    engine.close()
    return spent


def _frames(data: Data, key: str, batch: int) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Batches of both streams in turns."""
    columns = {}
    for name, (ts, k, v) in (("quotes", data.quotes), ("trades", data.trades)):
        keys = pa.array(k).cast(pa.string()) if key == "STRING" else pa.array(k)
        whole = pa.record_batch(
            [pa.array(ts).cast(pa.timestamp("us")), keys, pa.array(v)], ["ts", "k", "v"]
        )
        columns[name] = whole
    for start in range(0, len(data.trades[0]), batch):
        for name, whole in columns.items():
            yield name, whole.slice(start, batch)


def _fed(engine: Any, reader: Any, frames: list[tuple[str, pa.RecordBatch]]) -> Iterator[Any]:
    for name, rows in frames:
        engine.ingest(name, rows)
        yield from reader.take_chunks()
    for name in ("trades", "quotes"):
        engine.end(name)
    yield from reader.take_chunks()


def _check(name: str, chunks: list[Any], expected: Answer) -> None:
    quotes = [c.data.column(2).to_numpy() for c in chunks if isinstance(c, Chunk)]
    all_ = np.concatenate(quotes) if quotes else np.empty(0, np.int64)
    same(name, (len(all_), int(all_.sum())), expected)


# ---------------------------------------------------------------- others


def _others(data: Data) -> dict[str, Callable[[], Answer]]:
    """What is installed of them."""
    made: dict[str, Callable[[], Answer]] = {}
    for name, build in (("DuckDB", _duckdb), ("Polars", _polars)):
        try:
            made[name] = build(data)
        except ImportError:
            continue
    return made


def _table(columns: tuple[np.ndarray, np.ndarray, np.ndarray]) -> pa.Table:
    return pa.table(dict(zip(("ts", "k", "v"), columns, strict=True)))


def _duckdb(data: Data) -> Callable[[], Answer]:
    import duckdb

    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("trades", _table(data.trades))
    con.register("quotes", _table(data.quotes))
    return lambda: con.execute(f"SELECT count(*), sum(q.v) {JOIN}").fetchone()  # type: ignore[return-value]


def _polars(data: Data) -> Callable[[], Answer]:
    import polars as pl

    trades, quotes = (pl.from_arrow(_table(s)).set_sorted("ts") for s in (data.trades, data.quotes))  # type: ignore[union-attr]

    def ask() -> Answer:
        joined = trades.join_asof(quotes, on="ts", by="k", suffix="_q", check_sortedness=False)
        return joined.select(n=pl.col("v_q").count(), total=pl.col("v_q").sum()).row(0)  # type: ignore[return-value]

    return ask


def _batch(name: str, run: Callable[[], Answer], data: Data, options: Options) -> tuple[str, ...]:
    same(name, tuple(run()), found(data, None))
    spent = median(took(run) for _ in range(options.repeats))
    return _row(name, "INT key", "all", data, spent)
