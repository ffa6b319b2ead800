"""dsms in process on the workloads: statements, feeding, and checks of what came out against
`workloads`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import dsms
from dsms.api import Chunk
from tests.benchmarks import workloads as w
from tests.benchmarks.bare import BATCH
from tests.benchmarks.harness import Took, same, took

DECLARE = "; ".join(
    f"CREATE STREAM {n} (ts TIMESTAMP, k INT, v FLOAT) TIMESTAMP BY ts" for n in "slr"
)

QUERIES = {
    "W1": "SELECT k, v * 2 AS o FROM s WHERE v > 0.9",
    "W3": "SELECT MAX(v) AS m FROM s [RANGE 1 SECOND]",
    "W4": "SELECT l.k, l.v, r.v AS w FROM l [RANGE 2 SECONDS INTERNAL], r [RANGE 2 SECONDS "
    "INTERNAL] WHERE l.k = r.k",
    "W5": "SELECT DISTINCT k FROM s [RANGE 1 SECOND]",
    "grouped": "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 1 SECOND] GROUP BY k",
    "grouped, unbounded": "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s GROUP BY k",
}


@dataclass(frozen=True, slots=True)
class Output:
    """All result rows: sign int8[n], at int64[n], a table of the columns."""

    sign: np.ndarray
    at: np.ndarray
    data: pa.Table

    def column(self, k: int) -> np.ndarray:
        return self.data.column(k).to_numpy()


def run(name: str, data: w.Data, batch: int = BATCH) -> tuple[Took, Output]:
    """One query over the input of its streams, in batches of `batch` rows; its reader takes the
    chunks."""
    engine = dsms.Engine()
    engine.execute(f"{DECLARE}; CREATE QUERY q AS {QUERIES[name]}")
    reader = engine.subscribe("q", limit_bytes=1 << 40)
    feed = _join_feed if name == "W4" else _feed
    chunks: list[Any] = []
    spent = took(lambda: chunks.extend(feed(engine, data, batch, reader)))
    if (failure := engine.runtime.queries["q"].failure) is not None:
        raise failure
    return spent, _output([c for c in chunks if isinstance(c, Chunk)])


def _feed(engine: Any, data: w.Data, batch: int, reader: Any) -> list[Any]:
    out: list[Any] = []
    for start in range(0, data.s.num_rows, batch):
        engine.ingest("s", data.s.slice(start, batch))
        out += reader.take_chunks()
    engine.end("s")
    return out + reader.take_chunks()


def _join_feed(engine: Any, data: w.Data, batch: int, reader: Any) -> list[Any]:
    out: list[Any] = []
    for start in range(0, data.l.num_rows, batch // 2):
        engine.ingest("l", data.l.slice(start, batch // 2))
        engine.ingest("r", data.r.slice(start, batch // 2))
        out += reader.take_chunks()
    engine.end("l")
    engine.end("r")
    return out + reader.take_chunks()


def _output(chunks: list[Chunk]) -> Output:
    return Output(
        np.concatenate([c.sign for c in chunks]),
        np.concatenate([c.at for c in chunks]),
        pa.Table.from_batches([c.data for c in chunks]),
    )


def check(name: str, data: w.Data, out: Output) -> None:
    """Raises WrongAnswer unless the output is right."""
    CHECKS[name](name, data, out)


def _check_filter(name: str, data: w.Data, out: Output) -> None:
    count, total = w.filtered(data.s)
    same(f"{name} rows", len(out.at), count)
    same(f"{name} sum", float(out.column(1).sum()), total)


def _check_max(name: str, data: w.Data, out: Output) -> None:
    """Each new maximum stands until the next one: laid out over the rows it must be the reference,
    row by row."""
    new = out.sign > 0
    at, value = out.at[new], out.column(0)[new]
    standing = value[np.searchsorted(at, w.columns(data.s)[0], side="right") - 1]
    same(f"{name} rows with another maximum", int((standing != w.sliding_max(data.s)).sum()), 0)


def _check_join(name: str, data: w.Data, out: Output) -> None:
    count, total = w.joined(data.l, data.r)
    same(f"{name} rows", len(out.at), count)
    same(f"{name} sum", float((out.column(1) + out.column(2)).sum()), total)


def _check_distinct(name: str, data: w.Data, out: Output) -> None:
    changes = int((out.sign > 0).sum()), int((out.sign < 0).sum())
    same(f"{name} changes", changes, w.distinct_changes(data.s))


def _check_grouped(name: str, data: w.Data, out: Output) -> None:
    """The last row of each group is the answer at the end; insertions and deletions leave one row
    of each."""
    key, new = out.column(0), out.sign > 0
    ts = w.columns(data.s)[0]
    upto = int(np.searchsorted(out.at, ts[-1], side="right"))
    last = np.full(w.KEYS, -1, np.int64)
    rows = np.flatnonzero(new[:upto])
    last[key[rows]] = rows
    count, total = w.grouped(data.s, None if "unbounded" in name else w.SECOND)
    live = np.flatnonzero(count)
    same(f"{name} counts", bool((out.column(2)[last[live]] == count[live]).all()), True)
    same(f"{name} sums", float(np.abs(out.column(1)[last[live]] - total[live]).max()) < 1e-6, True)
    kept = np.bincount(key[:upto], weights=out.sign[:upto], minlength=w.KEYS)
    same(f"{name} groups", bool((kept == (count > 0)).all()), True)


CHECKS: dict[str, Callable[[str, w.Data, Output], None]] = {
    "W1": _check_filter,
    "W3": _check_max,
    "W4": _check_join,
    "W5": _check_distinct,
    "grouped": _check_grouped,
    "grouped, unbounded": _check_grouped,
}
