"""ORDER BY x DESC LIMIT n PER k over a window: what following each row costs, and what is kept.

Frames of rows whose values are drawn, or rise, or fall; each row is followed, and the changes are
taken.  The answer at the end is held against DuckDB's row_number() over the rows of the last
window, whose time stands beside: what it costs to rank that window once, in batch.  CPU time, the
fastest of some runs.

Bars: the ten first of 8,000 rows of one key in <= 20 ms; the three first of each of 1,000 keys over
[RANGE 1 s] of ticks of 10 us at >= 1 M rows/s.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

import dsms
from tests.benchmarks.harness import Options, Section, Table, Took, same, shown, took

HEADER = ("rows", "keys", "n", "values", "CPU, ms", "rows/s", "kept", "in the window", "DuckDB, ms")
SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """`rows` rows of `keys` keys, one each `tick` µs, in frames of `frame`; a window of `width`
    µs."""

    rows: int
    keys: int
    n: int
    values: str
    tick: int
    width: int
    frame: int = 1 << 16

    def batch(self) -> pa.RecordBatch:
        """All rows: k, x, t."""
        rng = np.random.default_rng(16)
        x = np.arange(self.rows) if self.values != "drawn" else rng.integers(0, 1 << 40, self.rows)
        x = x[::-1].copy() if self.values == "falling" else x
        t = pa.array(np.arange(self.rows) * self.tick).cast(pa.timestamp("us"))
        k = pa.array(rng.integers(0, self.keys, self.rows))
        return pa.RecordBatch.from_arrays([k, pa.array(x), t], names=["k", "x", "t"])


def section(options: Options) -> Section:
    """One table."""
    many = options.pick(3_000_000, 1_000_000, 20_000)
    cases = [Case(8_000, 1, 10, v, 1000, 3600 * SECOND) for v in ("drawn", "rising", "falling")]
    cases += [Case(many, 1000, 3, v, 10, SECOND) for v in ("drawn", "falling")]
    rows = tuple(_line(case, options.repeats) for case in cases)
    parts: list[Table] = [Table("The first rows of each key", HEADER, rows)]
    return Section("First rows of each key", __doc__ or "", [*parts])


def _line(case: Case, repeats: int) -> tuple[str, ...]:
    batch = case.batch()
    runs = [_followed(case, batch) for _ in range(repeats + 1)]  # the first one warms up
    cpu = min(took.cpu for took, _ in runs[1:])
    last = (case.rows - 1) * case.tick
    ts = batch.column(2).cast(pa.int64()).to_numpy()
    inside = batch.filter(pa.array(ts > last - case.width))
    found: list[tuple] = []
    batched = min(took(lambda: found.extend(_ranked(case, inside))).cpu for _ in range(repeats))
    answer, kept = runs[0][1]
    same("the first rows", answer, Counter(dict.fromkeys(found, 1)))
    return (
        f"{case.rows:,}",
        f"{case.keys:,}",
        str(case.n),
        case.values,
        f"{1e3 * cpu:.1f}",
        shown(case.rows / cpu),
        f"{kept:,}",
        f"{inside.num_rows:,}",
        f"{1e3 * batched:.1f}",
    )


def _followed(case: Case, batch: pa.RecordBatch) -> tuple[Took, tuple[Counter, int]]:
    engine = dsms.Engine()
    engine.execute("CREATE STREAM s (k INT, x INT, t TIMESTAMP) TIMESTAMP BY t")
    query = f"SELECT k, x FROM s [RANGE {case.width} us] ORDER BY x DESC LIMIT {case.n} PER k"
    engine.execute(f"CREATE QUERY q AS {query}")
    changes = engine.subscribe("q")

    def follow() -> None:
        for start in range(0, case.rows, case.frame):
            engine.ingest("s", batch.slice(start, case.frame))
            changes.take_changes()

    cost = took(follow)
    engine.heartbeat("s", (case.rows - 1) * case.tick)
    (shown_,) = engine.execute("SELECT k, x FROM q")
    answer = Counter(zip(*(c.to_pylist() for c in shown_.data.columns), strict=True))  # type: ignore[union-attr]
    live = engine.runtime.queries["q"].live()  # type: ignore[attr-defined]
    kept = max(int(at.get("state_rows", 0)) for path, at in live.items() if path)
    engine.close()
    return cost, (answer, kept)


def _ranked(case: Case, inside: pa.RecordBatch) -> list[tuple]:
    rows = pa.Table.from_batches([inside])  # noqa: F841  (DuckDB finds it by its name)
    text = (
        "SELECT k, x FROM (SELECT k, x, row_number() OVER (PARTITION BY k ORDER BY x DESC) AS n "
        f"FROM rows) WHERE n <= {case.n}"
    )
    with duckdb.connect() as database:
        return database.sql(text).fetchall()
