"""Whether memory stays flat: an hour of event time through windows of one minute, with a thousand
keys and with keys that never come again.

State is what the query keeps, by its own count; RSS is the whole process, which also holds what
other benchmarks left, so only its growth means something.  Both are read once a minute of event
time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import dsms
from tests.benchmarks.harness import Options, Plot, Section, Table, shown

MINUTE = 60_000_000
HOUR = 60
QUERIES = {
    "filter": "SELECT k, v FROM s WHERE v > 0.5",
    "GROUP BY k": "SELECT k, SUM(v) AS total, COUNT(*) AS n, MAX(v) AS top FROM s [RANGE 1 "
    "MINUTE] GROUP BY k",
    "DISTINCT k": "SELECT DISTINCT k FROM s [RANGE 1 MINUTE]",
    "join on k": "SELECT s.k, s.v, r.v AS w FROM s [RANGE 1 MINUTE], r [RANGE 1 MINUTE] WHERE s.k "
    "= r.k",
    "GROUP BY name": "SELECT name, COUNT(DISTINCT k) AS n FROM s [RANGE 1 MINUTE] GROUP BY name",
    "NOT EXISTS": (
        "SELECT * FROM s [RANGE 1 MINUTE] WHERE NOT EXISTS (SELECT * FROM r [RANGE 1 MINUTE] "
        "WHERE r.k = s.k)"
    ),
}
KEYS = ("a thousand keys", "ever-new keys")


@dataclass(frozen=True, slots=True)
class Sample:
    """At the end of a minute: bytes of state, bytes of the process."""

    minute: int
    state: int
    rss: int


def section(options: Options) -> Section:
    """All queries with both kinds of keys."""
    rate, minutes = options.pick((500, HOUR), (50, HOUR), (10, 12))
    rows, lines = [], {}
    for name in QUERIES:
        for keys in KEYS:
            samples = list(run(name, keys == KEYS[1], rate, minutes))
            rows.append(_row(name, keys, samples, rate))
            x = [float(s.minute) for s in samples]
            lines[f"{name}, {keys}"] = (x, [s.state / 1e6 for s in samples])
    header = (
        "query",
        "keys",
        "rows",
        "state at 10 min",
        "most later",
        "at the end",
        "end : 10 min",
        "RSS growth since",
    )
    table = Table(
        f"{minutes} minutes of event time at {rate} rows/s a stream",
        header,
        tuple(rows),
        ("bytes",),
    )
    plot = Plot(
        "memory.png",
        "State over event time",
        "minutes of event time",
        "MB of state",
        lines,
        (False, False),
    )
    return Section("Memory over time", __doc__ or "", [table, plot])


def _row(name: str, keys: str, samples: list[Sample], rate: int) -> tuple[str, ...]:
    settled = [s for s in samples if s.minute >= min(10, samples[-1].minute - 1)]
    first, last = settled[0], settled[-1]
    most = max(s.state for s in settled)
    growth = last.rss - first.rss
    return (name, keys, f"{last.minute * 60 * rate:,}", shown(first.state), shown(most),
            shown(last.state),
            f"{last.state / max(1, first.state):.2f}",
            f"{growth / 1e6:+.1f} MB")  # a row of a report  # fmt: skip


def run(name: str, fresh: bool, rate: int, minutes: int) -> Iterator[Sample]:
    """Feed the query minute by minute; its reader takes and forgets."""
    engine = dsms.Engine()
    for stream in "sr":
        engine.execute(
            f"CREATE STREAM {stream} (ts TIMESTAMP, k INT, v FLOAT, name STRING) TIMESTAMP BY ts"
        )
    engine.execute(f"CREATE QUERY q AS {QUERIES[name]}")
    reader = engine.subscribe("q", limit_bytes=1 << 40)
    rng = np.random.default_rng(60)
    streams = "sr" if " r " in QUERIES[name] else "s"
    for minute in range(1, minutes + 1):
        for stream in streams:
            engine.ingest(stream, _minute(minute - 1, rate, fresh, rng))
        reader.take_chunks()
        yield Sample(minute, engine.runtime.queries["q"].nbytes(), _rss())
    engine.close()


def _minute(minute: int, rate: int, fresh: bool, rng: np.random.Generator) -> pa.RecordBatch:
    n = 60 * rate
    ts = minute * MINUTE + np.arange(n) * (MINUTE // n)
    k = minute * n + rng.permutation(n) if fresh else rng.integers(0, 1000, n)
    columns = {"ts": ts, "k": k, "v": rng.random(n), "name": np.char.add("key ", k.astype(str))}
    return pa.RecordBatch.from_pydict({name: pa.array(c) for name, c in columns.items()})


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
