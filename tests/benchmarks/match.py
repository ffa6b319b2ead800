"""MATCH: prices that fall and rise again, in process, each answer checked against NumPy.

One stream over 1,000 keys; each row begins an attempt, whose second step is a lower price and whose
third a higher one than the first; a reader takes all matches.  Rates are rows of the stream per
second, each of which goes through three steps; medians of three."""

from __future__ import annotations

from collections.abc import Iterator
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
SPAN = 10_000_000  # µs
STEP = 100  # µs between rows: some 100 rows of a key within a window
BAR = 1e6  # rows/s that are asked for
DECLARE = "CREATE STREAM prices (ts TIMESTAMP, k {key}, px INT, kind INT) TIMESTAMP BY ts"
STEPS = "MATCH (a prices, b prices, c prices) [RANGE 10 s] PER k"
FORMS = {
    "steps of one kind each": (
        "INT",
        f"{STEPS} WHERE a.kind = 0 AND b.kind = 1 AND c.kind = 2",
    ),
    "compared with earlier rows": ("INT", f"{STEPS} WHERE b.px < a.px AND c.px > a.px"),
    "the same, STRING key": ("STRING", f"{STEPS} WHERE b.px < a.px AND c.px > a.px"),
    "a sum of two rows": ("INT", f"{STEPS} WHERE b.px < a.px AND c.px + b.px > a.px"),
}
Answer = tuple[int, int]  # matches, and the sum of the prices of their last rows


@dataclass(frozen=True, slots=True)
class Data:
    """ts (µs, rising), k, px and kind, int64[n] each."""

    ts: np.ndarray
    k: np.ndarray
    px: np.ndarray
    kind: np.ndarray


def make(n: int) -> Data:
    """Prices of 1,000 keys, each row of one of three kinds."""
    rng = np.random.default_rng(17)
    k, kind = rng.integers(0, KEYS, n), rng.integers(0, 3, n)
    return Data(np.arange(n) * STEP, k, rng.integers(0, 1000, n), kind)


def found(data: Data, name: str) -> Answer:
    """By definition: of each key all later rows, one further away at each turn."""
    order = np.lexsort((data.ts, data.k))
    ts, k, px, kind = (a[order] for a in (data.ts, data.k, data.px, data.kind))
    n, first = len(ts), np.arange(len(ts))

    def meets(step: int, a: np.ndarray, b: np.ndarray, row: np.ndarray) -> np.ndarray:
        if name.startswith("steps"):
            return kind[row] == step
        if step == 1:
            return px[row] < px[a]
        return px[row] + (px[b] if name.startswith("a sum") else 0) > px[a]

    if name.startswith("steps"):
        first = first[kind == 0]
    last = first
    at = first
    for step in (1, 2):
        taken = np.full(len(first), -1)
        open_, at = np.arange(len(first)), last + 1
        while len(open_):
            row = np.minimum(at[open_], n - 1)
            a = first[open_]
            inside = (at[open_] < n) & (k[row] == k[a]) & (ts[row] - ts[a] < SPAN)
            hit = inside & meets(step, a, last[open_], row)
            taken[open_[hit]] = row[hit]
            open_ = open_[inside & ~hit]
            at[open_] += 1
        some = taken >= 0
        first, last = first[some], taken[some]
    return len(last), int(px[last].sum())


def section(options: Options) -> Section:
    """One table."""
    data = make(options.pick(2_000_000, 300_000, 5_000))
    rows = [_ours(name, data, batch, options) for name in FORMS for batch in BATCHES]
    header = ("query", "rows a batch", "rows/s", "rows/s of CPU", "of 1 M rows/s")
    title = f"{len(data.ts):,} rows, {KEYS:,} keys, three steps within 10 s"
    return Section("Patterns", __doc__ or "", [Table(title, header, tuple(rows))])


def _ours(name: str, data: Data, batch: int, options: Options) -> tuple[str, ...]:
    expected = found(data, name)
    run(name, data, batch, expected)
    spent = median(run(name, data, batch, expected) for _ in range(options.repeats))
    wall, cpu = len(data.ts) / max(spent.wall, 1e-9), len(data.ts) / max(spent.cpu, 1e-9)
    return name, f"{batch:,}", shown(wall), shown(cpu), ratio(cpu / BAR)


def run(name: str, data: Data, batch: int, expected: Answer) -> Took:
    """One run in an engine of its own, its answer checked."""
    key, text = FORMS[name]
    engine = dsms.Engine()
    engine.execute(DECLARE.format(key=key))
    engine.execute(f"CREATE QUERY q AS SELECT Istream(a.k, a.px, c.px AS last) FROM {text}")
    reader = engine.subscribe("q", limit_bytes=1 << 40)
    frames = list(_frames(data, key, batch))
    chunks: list[Any] = []
    with clean_heap():
        spent = took(lambda: chunks.extend(_fed(engine, reader, frames)))
    last = [c.data.column(2).to_numpy() for c in chunks if isinstance(c, Chunk)]
    all_ = np.concatenate(last) if last else np.empty(0, np.int64)
    same(name, (len(all_), int(all_.sum())), expected)
    engine.close()
    return spent


def _frames(data: Data, key: str, batch: int) -> Iterator[pa.RecordBatch]:
    keys = pa.array(data.k).cast(pa.string()) if key == "STRING" else pa.array(data.k)
    columns = [pa.array(data.ts).cast(pa.timestamp("us")), keys, data.px, data.kind]
    whole = pa.record_batch(
        [pa.array(c) if isinstance(c, np.ndarray) else c for c in columns],
        ["ts", "k", "px", "kind"],
    )
    for start in range(0, len(data.ts), batch):
        yield whole.slice(start, batch)


def _fed(engine: Any, reader: Any, frames: list[pa.RecordBatch]) -> Iterator[Any]:
    for rows in frames:
        engine.ingest("prices", rows)
        yield from reader.take_chunks()
    engine.end("prices")
    yield from reader.take_chunks()
