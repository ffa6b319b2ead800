"""Sessions and WHEN windows, in process, beside DuckDB's window functions on the same input in the
same run.

A stream of 100,000 keys comes in batches; a key has a row every five seconds on average, and its
session ends when none has come for ten.  A reader takes all results: a view is told each row twice,
as it comes and as it leaves; INTERNAL aggregates are a row for each episode.  DuckDB answers the
whole input in batch, from memory.  Every answer is checked against NumPy: how many episodes there
are, how many rows are in them, and the sum of these.  Rates are rows of the stream per second;
medians of three."""

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

GAP = 10_000_000  # µs
EACH = 5_000_000  # µs from one row of a key to the next, on average
BATCHES = (10_000, 100_000)
BAR = 2e6  # rows/s that are asked for
HIGH, LOW = 700, 300  # values that begin and end an episode
DECLARE = "CREATE STREAM s (ts TIMESTAMP, k {key}, v INT) TIMESTAMP BY ts"
TOLD = "SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s [{window} INTERNAL] GROUP BY k"
SESSION, WHEN = "SESSION 10 s BY k", f"WHEN v >= {HIGH} UNTIL v < {LOW} BY k"
FORMS = {
    "a view of open sessions": ("INT", f"SELECT k, v FROM s [{SESSION}]"),
    "each session as it ends": ("INT", TOLD.format(window=SESSION)),
    "STRING key": ("STRING", TOLD.format(window=SESSION)),
    "each WHEN episode as it ends": ("INT", TOLD.format(window=WHEN)),
}
BATCH = f"""SELECT count(*), sum(n)::BIGINT, sum(v)::BIGINT FROM (
    SELECT count(*) AS n, sum(v) AS v FROM (
        SELECT k, v, sum(b) OVER (PARTITION BY k ORDER BY ts) AS e FROM (
            SELECT *, (ts - lag(ts, 1, ts - {GAP}) OVER (PARTITION BY k ORDER BY ts) >= {GAP})::INT
                AS b FROM s))
    GROUP BY k, e)"""
Answer = tuple[int, int, int]  # episodes, rows in them, sum of their values


@dataclass(frozen=True, slots=True)
class Data:
    """ts (µs, rising), k and v, int64[n] each."""

    ts: np.ndarray
    k: np.ndarray
    v: np.ndarray


def make(n: int, keys: int) -> Data:
    """n rows of so many keys."""
    rng = np.random.default_rng(17)
    ts = np.cumsum(rng.integers(1, 2 * max(1, EACH // keys), n))
    return Data(ts, rng.integers(0, keys, n), rng.integers(0, 1000, n))


def sessions(data: Data) -> Answer:
    """By definition: all rows, cut where none of the key has come for so long."""
    order = np.lexsort((data.ts, data.k))
    ts, k = data.ts[order], data.k[order]
    cuts = np.append(True, (k[1:] != k[:-1]) | (ts[1:] - ts[:-1] >= GAP))
    return int(cuts.sum()), len(ts), int(data.v.sum())


def whens(data: Data) -> Answer:
    """By definition: rows behind a start of their key without a stop since, if one follows."""
    order = np.lexsort((data.ts, data.k))
    k, v = data.k[order], data.v[order]
    says = (v >= HIGH) | (v < LOW)
    last = np.maximum.accumulate(np.where(says, np.arange(len(k)), -1))
    inside = (last >= 0) & (k[last] == k) & (v[last] >= HIGH)
    begins = inside & ~np.append(False, inside[:-1] & (k[1:] == k[:-1]))
    ended = np.append(inside[:-1] & ~inside[1:] & (k[1:] == k[:-1]), False)
    number = np.cumsum(begins)
    told = np.isin(number, number[ended]) & inside
    return int(ended.sum()), int(told.sum()), int(v[told].sum())


def section(options: Options) -> Section:
    """One table."""
    n, keys = options.pick(1_000_000, 200_000, 5_000), options.pick(100_000, 20_000, 500)
    data = make(n, keys)
    rows = [_ours(name, data, batch, options) for name in FORMS for batch in BATCHES]
    rows += [_batch(name, run, data, options) for name, run in _others(data).items()]
    header = ("engine", "query", "rows a batch", "rows/s", "rows/s of CPU", "of 2 M rows/s")
    title = f"{n:,} rows, {keys:,} keys"
    return Section("Sessions", __doc__ or "", [Table(title, header, tuple(rows))])


def _row(engine: str, name: str, batch: str, data: Data, spent: Took) -> tuple[str, ...]:
    n = len(data.ts)
    wall, cpu = n / max(spent.wall, 1e-9), n / max(spent.cpu, 1e-9)
    return engine, name, batch, shown(wall), shown(cpu), ratio(cpu / BAR)


# ---------------------------------------------------------------- dsms


def _ours(name: str, data: Data, batch: int, options: Options) -> tuple[str, ...]:
    run(name, data, batch)
    spent = median(run(name, data, batch) for _ in range(options.repeats))
    return _row("dsms", name, f"{batch:,}", data, spent)


def run(name: str, data: Data, batch: int) -> Took:
    """One run in an engine of its own, its answer checked."""
    key, text = FORMS[name]
    engine = dsms.Engine()
    engine.execute(DECLARE.format(key=key))
    engine.execute(f"CREATE QUERY q AS {text}")
    reader = engine.subscribe("q", limit_bytes=1 << 40)
    frames = list(_frames(data, key, batch))
    chunks: list[Any] = []
    with clean_heap():
        spent = took(lambda: chunks.extend(_fed(engine, reader, frames)))
    _check(name, data, [c for c in chunks if isinstance(c, Chunk)])
    engine.close()
    return spent


def _frames(data: Data, key: str, batch: int) -> Iterator[pa.RecordBatch]:
    keys = pa.array(data.k).cast(pa.string()) if key == "STRING" else pa.array(data.k)
    columns = [pa.array(data.ts).cast(pa.timestamp("us")), keys, pa.array(data.v)]
    whole = pa.record_batch(columns, ["ts", "k", "v"])
    for start in range(0, len(data.ts), batch):
        yield whole.slice(start, batch)


def _fed(engine: Any, reader: Any, frames: list[pa.RecordBatch]) -> Iterator[Any]:
    for rows in frames:
        engine.ingest("s", rows)
        yield from reader.take_chunks()
    engine.heartbeat("s", int(2e15))
    yield from reader.take_chunks()


def _check(name: str, data: Data, chunks: list[Chunk]) -> None:
    if "view" in name:
        sums = [0, 0]
        for c in chunks:
            value = c.data.column(1).to_numpy()
            sums[0] += int((value * (c.sign > 0)).sum())
            sums[1] += int((value * (c.sign < 0)).sum())
        same(name, tuple(sums), (int(data.v.sum()),) * 2)
        return
    n, v = (np.concatenate([c.data.column(k).to_numpy() for c in chunks]) for k in (1, 2))
    expected = whens(data) if "WHEN" in name else sessions(data)
    same(name, (len(n), int(n.sum()), int(v.sum())), expected)


# ---------------------------------------------------------------- others


def _others(data: Data) -> dict[str, Callable[[], Answer]]:
    """What is installed of them."""
    try:
        return {"DuckDB": _duckdb(data)}
    except ImportError:
        return {}


def _duckdb(data: Data) -> Callable[[], Answer]:
    import duckdb

    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("s", pa.table({"ts": data.ts, "k": data.k, "v": data.v}))
    return lambda: con.execute(BATCH).fetchone()  # type: ignore[return-value]


def _batch(name: str, run: Callable[[], Answer], data: Data, options: Options) -> tuple[str, ...]:
    same(name, tuple(run()), sessions(data))
    spent = median(took(run) for _ in range(options.repeats))
    return _row(name, "each session as it ends", "all", data, spent)
