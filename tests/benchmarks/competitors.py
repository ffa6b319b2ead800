"""DuckDB, Polars and csp on the workloads of `workloads`; each function answers what `workloads`
can check.

DuckDB and Polars read the whole input from memory in one query (batch); csp replays it in simulated
time.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from tests.benchmarks.workloads import Data, columns

EPOCH = datetime(2020, 1, 1)


def duckdb_run(data: Data) -> dict[str, Any]:
    """Per workload a function to time."""
    import duckdb

    con = duckdb.connect()
    for name in ("s", "l", "r"):
        con.register(name, pa.Table.from_batches([getattr(data, name)]))

    def ask(sql: str) -> Any:
        return lambda: con.execute(sql).fetchone()

    frame = "ORDER BY ts RANGE BETWEEN 999999 PRECEDING AND CURRENT ROW"
    return {
        "W1": ask("SELECT count(*), sum(o) FROM (SELECT k, v * 2 AS o FROM s WHERE v > 0.9)"),
        "W3": ask(f"SELECT sum(m) FROM (SELECT max(v) OVER ({frame}) AS m FROM s)"),
        "W4": ask(
            "SELECT count(*), sum(l.v + r.v) FROM l JOIN r ON l.k = r.k AND abs(l.ts - r.ts) < "
            "2000000"
        ),
        "W5": ask(
            "SELECT count(*) FROM (SELECT DISTINCT ts // 100000 - o, k FROM s, range(10) t(o))"
        ),
    }


def polars_run(data: Data) -> dict[str, Any]:
    """Per workload a function to time."""
    import polars as pl

    s, left, right = (
        pl.from_arrow(pa.Table.from_batches([b])).lazy() for b in (data.s, data.l, data.r)
    )

    def ask(query: Any) -> Any:
        return lambda: query.collect(engine="streaming").row(0)

    v, ts = pl.col("v"), pl.col("ts")
    near = (ts - pl.col("ts_r")).abs() < 2_000_000
    shifts = pl.LazyFrame({"o": list(range(10))})
    return {
        "W1": ask(s.filter(v > 0.9).select("k", o=v * 2).select(pl.len(), pl.sum("o"))),
        "W3": ask(s.select(x=v.rolling_max_by("ts", window_size="1000000i")).select(pl.sum("x"))),
        "W4": ask(
            left.join(right, on="k", suffix="_r")
            .filter(near)
            .select(pl.len(), (v + pl.col("v_r")).sum())
        ),
        "W5": ask(
            s.join(shifts, how="cross")
            .select(ts // 100_000 - pl.col("o"), "k")
            .unique()
            .select(pl.len())
        ),
    }


def csp_run(data: Data) -> dict[str, Any]:
    """Per workload a function to time.  Rows are stamped 1 µs later, so that csp's windows end as
    ours at ticks."""
    import csp
    import csp.stats as st
    from csp import ts

    found: list[Any] = []

    @csp.node
    def collect(x: ts[float]):
        with csp.state():
            s_n, s_sum = 0, 0.0
        with csp.stop():
            found.append((s_n, s_sum))
        if csp.ticked(x):
            s_n += 1
            s_sum += x

    @csp.node
    def join(v: ts[float], k: ts[int], side: ts[int]):  # csp has no windowed equi-join
        with csp.state():
            s_rows, s_n, s_sum = ({}, {}), 0, 0.0
        with csp.stop():
            found.append((s_n, s_sum))
        if csp.ticked(v):
            now = csp.now()
            other = s_rows[1 - side].get(k)
            if other:
                old = now - timedelta(seconds=2)
                while other and other[0][0] <= old:
                    other.popleft()
                s_n += len(other)
                for _, w in other:
                    s_sum += v + w
            s_rows[side].setdefault(k, deque()).append((now, v))

    single = _curves(columns(data.s))
    both = _curves(_interleaved(data))

    @csp.graph
    def w1():
        v = csp.curve(float, single[2])
        passed = v > 0.9
        collect(csp.filter(passed, v) * 2.0)
        csp.add_graph_output(
            "k", csp.count(csp.filter(passed, csp.curve(int, single[1]))), tick_count=1
        )

    @csp.graph
    def w3():
        collect(st.max(csp.curve(float, single[2]), timedelta(seconds=1), timedelta(0)))

    @csp.graph
    def w4():
        join(csp.curve(float, both[2]), csp.curve(int, both[1]), csp.curve(int, both[3]))

    @csp.graph
    def w5():
        tick = csp.timer(timedelta(milliseconds=100), True)
        keys = csp.cast_int_to_float(csp.curve(int, single[1]))
        collect(st.unique(keys, timedelta(seconds=1), timedelta(0), trigger=tick))

    end = EPOCH + timedelta(microseconds=int(data.s.column(0)[-1].as_py()) + 11)

    def ask(graph: Any) -> Any:
        def run() -> Any:
            found.clear()
            csp.run(graph, starttime=EPOCH, endtime=end)
            return found[0]

        return run

    return {"W1": ask(w1), "W3": ask(w3), "W4": ask(w4), "W5": ask(w5)}


def _curves(arrays: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
    """csp's input: each column with the instants."""
    later = (arrays[0] + 1).astype("timedelta64[us]").astype("timedelta64[ns]")
    at = np.datetime64("2020-01-01", "ns") + later
    return (at, *((at, column) for column in arrays[1:]))


def _interleaved(data: Data) -> tuple[np.ndarray, ...]:
    """l and r as one: ts, k, v, side."""
    both = [np.concatenate(pair) for pair in zip(columns(data.l), columns(data.r), strict=True)]
    side = np.repeat([0, 1], [data.l.num_rows, data.r.num_rows])
    order = np.argsort(both[0], kind="stable")
    return (*(column[order] for column in both), side[order])
