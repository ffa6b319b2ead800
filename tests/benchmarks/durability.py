"""What durability costs, and how long an engine takes to come back.

Rates: one server with a data folder, three streams that differ in their `durability` alone, each
with the same query; the same Arrow frames over TCP to each in turn, several times over, medians.
Before anything is timed each stream has had as many rows as make a few checkpoints, so that logs
are written over older logs, as in any server that has run a while.

Recovery: an engine with windows of several sizes is killed half a checkpoint after its last one,
and opened again."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from dsms.engine import Engine
from dsms.settings import Settings
from tests.benchmarks import tcp
from tests.benchmarks.harness import Options, Section, Table, Took, median, same

POLICIES = ("none", "interval", "sync")
ROWS = 1 << 16  # of a frame
RECOVERY = (
    "rows in the window",
    "rows behind the checkpoint",
    "state, MB",
    "seconds",
    "without those rows, seconds",
)
QUERIES = {
    "filter": "SELECT k, v FROM {s} WHERE v > 990",
    "sums by key, sliding": "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM {s} [RANGE 10 s SLIDE 1 s] "
    "GROUP BY k",
    "distinct, each change": "SELECT DISTINCT k FROM {s} [RANGE 1 s]",
    "window kept (RETAIN 10 s)": None,
}


def section(options: Options) -> Section:
    """Rates per query and durability, recovery per window size."""
    frames, warm, repeats = options.pick((24, 90, 5), (6, 6, 1), (2, 1, 1))
    rows = []
    with (
        tempfile.TemporaryDirectory() as data,
        tcp.server(options.mode == "full", "--data", data) as server,
    ):
        for number, (name, sql) in enumerate(QUERIES.items()):
            rows.append(_rates(server, name, sql, number, frames, warm, repeats))
    header = (
        "query",
        "none, rows/s",
        "interval : none",
        "sync : none",
        "CPU, interval : none",
        "CPU, sync : none",
    )
    sizes = options.pick((100_000, 1_000_000, 4_000_000), (50_000, 200_000), (5_000,))
    recovery = [_recovery(size) for size in sizes]
    parts: list = [
        Table("Ingest rates over TCP", header, tuple(rows)),
        Table("Recovery", RECOVERY, tuple(recovery)),
    ]
    return Section("Durability", __doc__ or "", parts)


def _rates(
    server: tcp.Server,
    name: str,
    sql: str | None,
    number: int,
    frames: int,
    warm: int,
    repeats: int,
) -> tuple[str, ...]:
    took: dict[str, list[Took]] = {p: [] for p in POLICIES}
    with server.wire() as wire:
        for policy in POLICIES:
            stream = f"s{number}_{policy}"
            keep = " RETAIN 10 s" if sql is None else ""
            columns = "(k STRING, v INT, f FLOAT, t TIMESTAMP) TIMESTAMP BY t"
            wire.ask(
                "execute",
                sql=f"CREATE STREAM {stream} {columns}{keep} WITH (durability = {policy})",
            )
            if sql is not None:
                wire.ask(
                    "execute", sql=f"CREATE QUERY q{number}_{policy} AS {sql.format(s=stream)}"
                )
        first = 0
        for turn in range(-1, repeats):
            count = warm if turn < 0 else frames
            for policy in POLICIES[turn % 3 :] + POLICIES[: turn % 3]:
                made = tcp.arrow_frames(wire, f"s{number}_{policy}", _batches(first, count))
                seen = tcp.ingest(server, wire, made)
                if turn >= 0:
                    took[policy].append(seen)
            first += count
        for policy in POLICIES:
            if sql is not None:
                wire.ask("execute", sql=f"DROP QUERY q{number}_{policy}")
            wire.ask("execute", sql=f"DROP STREAM s{number}_{policy}")
    middle = {p: median(took[p]) for p in POLICIES}
    none = middle["none"]
    return (
        name,
        f"{frames * ROWS / none.wall:,.0f}",
        *(f"{none.wall / middle[p].wall:.2f}" for p in POLICIES[1:]),
        *(f"{none.cpu / middle[p].cpu:.2f}" for p in POLICIES[1:]),
    )


def _batches(first: int, count: int) -> list[pa.RecordBatch]:
    rng = np.random.default_rng(first)
    keys = pa.array([f"key{i}" for i in range(100)])
    out = []
    for i in range(first, first + count):
        out.append(
            pa.record_batch(
                {
                    "k": keys.take(pa.array(rng.integers(0, 100, ROWS))),
                    "v": rng.integers(0, 1000, ROWS),
                    "f": rng.random(ROWS),
                    "t": np.arange(i * ROWS, (i + 1) * ROWS) * 10,
                }
            )
        )
    return out


def _recovery(size: int) -> tuple[str, ...]:
    """A window of so many rows, a checkpoint, half as many rows again, a kill, and the way back."""
    with tempfile.TemporaryDirectory() as data:
        engine = Engine(data, Settings(checkpoint_bytes=0))
        engine.execute(
            f"CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN {size} ms"
        )
        engine.execute(
            f"CREATE QUERY q AS SELECT k, SUM(v) AS s FROM s [RANGE {size} ms] GROUP BY k"
        )
        rng = np.random.default_rng(1)
        for k in range(3):
            at = np.arange(k * size // 2, (k + 1) * size // 2)
            engine.ingest(
                "s",
                {
                    "k": rng.integers(0, 1000, len(at)),
                    "v": rng.integers(0, 9, len(at)),
                    "t": at * 1000,
                },
            )
            if k == 1:
                assert engine.saver is not None and engine.saver.checkpoint()
        (want,) = engine.execute(f"SELECT COUNT(*), SUM(v) FROM s [RANGE {size} ms]")
        assert engine.saver is not None
        engine.saver.catalog.close()  # what a killed process leaves to the system
        state = sum(p.stat().st_size for p in Path(data).rglob("*.state"))
        began = time.perf_counter()
        back = Engine(data, Settings(checkpoint_bytes=0))
        took = time.perf_counter() - began
        (got,) = back.execute(f"SELECT COUNT(*), SUM(v) FROM s [RANGE {size} ms]")
        same("the window after recovery", got.data.to_pylist(), want.data.to_pylist())  # type: ignore[union-attr]
        assert back.saver is not None
        replayed = back.saver.recovered.rows
        back.saver.checkpoint()
        back.saver.catalog.close()
        began = time.perf_counter()
        Engine(data).close()
        loading = time.perf_counter() - began
    return f"{size:,}", f"{replayed:,}", f"{state / 1e6:.1f}", f"{took:.2f}", f"{loading:.2f}"
