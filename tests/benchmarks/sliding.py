"""W2, W5 and W6: periodic queries beside DuckDB and csp on the same input in the same run.

W2  SUM and COUNT per key (1,000 of them) over 1 s, answered each 100 ms;  W5  DISTINCT keys, the
    same windows
W6  1,000 SUMs over windows of 1 to 1,000 ms, each answered every 100 ms; beside it ten of them
    (100, 200, ... ms)

DuckDB answers the whole input in batch, from memory, with the sub-windows written by hand in SQL;
csp replays it in simulated time; dsms takes batches of 131,072 rows (W6: 1,048,576); W2 and W5 hand
every answer to a reader, those of W6 are read from the queries' result logs afterwards.  Answers
are checked against NumPy at every boundary (peers' by their totals).  Rows per second, medians of
three."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

import dsms
from dsms.api import Chunk
from tests.benchmarks import workloads as w
from tests.benchmarks.bare import BATCH
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

DECLARE = "CREATE STREAM s (ts TIMESTAMP, k INT, v FLOAT) TIMESTAMP BY ts"
W2 = "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 1 SECOND SLIDE 100 MS] GROUP BY k"
W5 = "SELECT DISTINCT k FROM s [RANGE 1 SECOND SLIDE 100 MS]"
BIG = 1 << 20  # rows of a batch of W6
MANY, FEW = tuple(range(1, 1001)), tuple(range(100, 1001, 100))  # ms
SLICES = w.SECOND // w.TICK


def section(options: Options) -> Section:
    """The three workloads in one run."""
    data = w.make(options.pick(2_000_000, 300_000, 30_000))
    known = Known(data.s)
    rates = _ours(data, known, options) | _duckdb(data, known, options) | _csp(data, known, options)
    out = Section("Periodic peer workloads", __doc__ or "")
    out.parts += [_asked(rates), _all(rates, data.rows)]
    return out


class Known:
    """Answers by NumPy alone: per tick of 100 ms and key counts and sums; per ms sums."""

    def __init__(self, s: pa.RecordBatch) -> None:
        ts, k, v = w.columns(s)
        self.last = int(ts[-1])
        self.ticks = self.last // w.TICK  # boundaries that are complete
        size = (self.ticks + 1) * w.KEYS
        cell = (ts // w.TICK) * w.KEYS + k
        self.counts = np.bincount(cell, minlength=size).reshape(-1, w.KEYS)
        self.sums = np.bincount(cell, weights=v, minlength=size).reshape(-1, w.KEYS)
        self.ms = np.concatenate([[0.0], np.cumsum(np.bincount(ts // 1000, weights=v))])

    def window(self, table: np.ndarray, tick: int) -> np.ndarray:
        """Per key the total of the window that ends with that tick."""
        total: np.ndarray = table[max(0, tick - SLICES) : tick].sum(axis=0)
        return total

    def sum_ms(self, tick: int, width: int) -> float:
        """W6: the sum over `width` ms before the tick."""
        end, last = 100 * tick, len(self.ms) - 1
        return float(self.ms[min(end, last)] - self.ms[min(max(0, end - width), last)])


# ---------------------------------------------------------------- dsms


def run(
    queries: dict[str, str], s: pa.RecordBatch, batch: int = BATCH
) -> tuple[Took, dict[str, list[Chunk]]]:
    """Register, feed and read everything; only the feeding is timed."""
    engine = dsms.Engine()
    engine.execute(DECLARE)
    readers = {}
    for name, sql in queries.items():
        engine.execute(f"CREATE QUERY {name} AS {sql}")
        if len(queries) == 1:
            readers[name] = engine.subscribe(name, limit_bytes=1 << 40)
    got: dict[str, list[Any]] = {name: [] for name in queries}

    def feed() -> None:
        for start in range(0, s.num_rows, batch):
            engine.ingest("s", s.slice(start, batch))
            for name, reader in readers.items():
                if reader.waiting:
                    got[name] += reader.take_chunks()
        engine.end("s")
        for name, reader in readers.items():
            got[name] += reader.take_chunks()

    with clean_heap():
        spent = took(feed)
    for name in queries.keys() - readers.keys():
        got[name] += engine.subscribe(name, 0).take_chunks()
    for query in engine.runtime.queries.values():
        if query.failure is not None:
            raise query.failure
    return spent, {n: [c for c in items if isinstance(c, Chunk)] for n, items in got.items()}


def sums(widths: tuple[int, ...]) -> dict[str, str]:
    """The queries of W6."""
    return {f"q{j}": f"SELECT SUM(v) AS total FROM s [RANGE {j} MS SLIDE 100 MS]" for j in widths}


def _ours(data: w.Data, known: Known, options: Options) -> dict[tuple[str, str], Took]:
    cases: dict[str, tuple[dict[str, str], Callable[..., None]]] = {
        "W2": ({"q": W2}, check_grouped),
        "W5": ({"q": W5}, check_distinct),
        "W6": (sums(MANY), check_sums),
        "W6 (ten)": (sums(FEW), check_sums),
    }
    found = {}
    for name, (queries, check) in cases.items():
        batch = BIG if name.startswith("W6") else BATCH
        check(known, run(queries, data.s, batch)[1])
        found["dsms", name] = median(run(queries, data.s, batch)[0] for _ in range(options.repeats))
    found["dsms, small batches", "W6"] = median(
        run(sums(MANY), data.s)[0] for _ in range(options.repeats)
    )
    found["dsms, small batches", "W6 (ten)"] = median(
        run(sums(FEW), data.s)[0] for _ in range(options.repeats)
    )
    return found


def _table(chunks: list[Chunk]) -> tuple[np.ndarray, list[np.ndarray]]:
    table = pa.Table.from_batches([c.data for c in chunks])
    return np.concatenate([c.at for c in chunks]) // w.TICK, [c.to_numpy() for c in table.columns]


def check_grouped(known: Known, got: dict[str, list[Chunk]]) -> None:
    """Each boundary's groups, counts and sums."""
    at, (key, total, n) = _table(got["q"])
    for tick in range(1, known.ticks + 1):
        mine, counts = at == tick, known.window(known.counts, tick)
        same(f"W2 keys at {tick}", bool((key[mine] == np.flatnonzero(counts)).all()), True)
        same(f"W2 counts at {tick}", bool((n[mine] == counts[counts > 0]).all()), True)
        close = np.abs(total[mine] - known.window(known.sums, tick)[counts > 0]).max() < 1e-6
        same(f"W2 sums at {tick}", bool(close), True)


def check_distinct(known: Known, got: dict[str, list[Chunk]]) -> None:
    """Each boundary's keys."""
    at, (key,) = _table(got["q"])
    for tick in range(1, known.ticks + 1):
        there = np.flatnonzero(known.window(known.counts, tick))
        same(f"W5 keys at {tick}", bool((key[at == tick] == there).all()), True)


def check_sums(known: Known, got: dict[str, list[Chunk]]) -> None:
    """Every answer of every query; the stream has ended, so they go on until its last row has left
    the window, and there is no sum."""
    for name, chunks in got.items():
        width = int(name[1:])
        ticks = range(1, (known.last + 1000 * width) // w.TICK + 2)
        at, (total,) = _table(chunks)
        same(f"W6 {name} boundaries", at.tolist(), list(ticks))
        right = [known.sum_ms(t, width) for t in ticks]
        same(f"W6 {name} empty answers", np.flatnonzero(np.isnan(total)).tolist(), [len(ticks) - 1])
        close = np.abs(np.nan_to_num(total) - np.array(right)).max() < 1e-5
        same(f"W6 {name} sums", bool(close), True)


# ---------------------------------------------------------------- peers


def _duckdb(data: w.Data, known: Known, options: Options) -> dict[tuple[str, str], Took]:
    import duckdb

    con = duckdb.connect()
    con.register("s", pa.Table.from_batches([data.s]))
    pane = "WITH p AS (SELECT ts // 100000 AS p, k, count(*) AS c, sum(v) AS t FROM s GROUP BY ALL)"
    w2 = (
        f"{pane} SELECT count(*), sum(c), sum(t) FROM (SELECT p - o AS w, k, sum(c) AS c, sum(t) "
        "AS t FROM p, range(10) r(o) GROUP BY ALL)"
    )
    w5 = "SELECT count(*) FROM (SELECT DISTINCT ts // 100000 - o, k FROM s, range(10) r(o))"

    def w6(widths: str) -> str:
        sums_ = "SELECT ts // 1000 AS p, sum(v) AS s FROM s GROUP BY 1"
        prefix = (
            f"SELECT p + 1 AS p, sum(s) OVER (ORDER BY p) AS c FROM ({sums_}) UNION ALL SELECT 0, 0"
        )
        return (
            f"WITH c AS ({prefix}) SELECT count(*), sum(a.c - b.c) FROM c a, {widths} j(j), c b "
            "WHERE a.p % 100 = 0 AND a.p > 0 AND b.p = greatest(a.p - j, 0)"
        )

    texts = {
        "W2": w2,
        "W5": w5,
        "W6": w6("range(1, 1001)"),
        "W6 (ten)": w6("range(100, 1001, 100)"),
    }
    found = {}
    for name, text in texts.items():
        answer = con.execute(text).fetchone()
        if name == "W2":  # every row counts in ten windows
            same("DuckDB W2", int(answer[1]), SLICES * data.rows)
        found["duckdb", name] = median(
            took(lambda t=text: con.execute(t).fetchone()) for _ in range(options.repeats)
        )
    return found


def _csp(data: w.Data, known: Known, options: Options) -> dict[tuple[str, str], Took]:
    import csp
    import csp.stats as st
    from csp import ts

    epoch, found = datetime(2020, 1, 1), []

    @csp.node
    def collect(b: [ts[float]]):  # type: ignore[valid-type]
        with csp.state():
            s_n, s_sum = 0, 0.0
        with csp.stop():
            found.append((s_n, s_sum))
        if csp.ticked(b):
            for x in b.tickedvalues():
                if x == x:
                    s_n += 1
                    s_sum += x

    at, k, v = w.columns(data.s)
    stamps = np.datetime64("2020-01-01", "ns") + (at + 1).astype("timedelta64[us]").astype(
        "timedelta64[ns]"
    )
    end = epoch + timedelta(microseconds=int(at[-1]) + 1)
    ms = lambda n: timedelta(milliseconds=n)  # noqa: E731

    @csp.graph
    def grouped():
        tick = csp.timer(ms(100), True)
        b = csp.demultiplex(
            csp.curve(float, (stamps, v)), csp.curve(int, (stamps, k)), list(range(w.KEYS))
        )
        collect([st.count(b[i], ms(1000), ms(0), trigger=tick) for i in range(w.KEYS)])
        collect([st.sum(b[i], ms(1000), ms(0), trigger=tick) for i in range(w.KEYS)])

    @csp.graph
    def distinct():
        keys = csp.cast_int_to_float(csp.curve(int, (stamps, k)))
        collect([st.unique(keys, ms(1000), ms(0), trigger=csp.timer(ms(100), True))])

    def many(widths: tuple[int, ...]) -> Any:
        @csp.graph
        def windows():
            pane = st.sum(
                csp.curve(float, (stamps, v)), ms(1), ms(0), trigger=csp.timer(ms(1), True)
            )
            tick = csp.timer(ms(100), True)
            collect([st.sum(pane, ms(j), ms(0), trigger=tick) for j in widths])

        return windows

    rates = {}
    graphs = {"W2": grouped, "W5": distinct, "W6": many(MANY), "W6 (ten)": many(FEW)}
    for name, graph in graphs.items():
        run_ = lambda g=graph: csp.run(g, starttime=epoch, endtime=end)  # noqa: E731
        spent = took(run_)
        if name == "W2":
            right = sum(int(known.window(known.counts, t).sum()) for t in range(1, known.ticks + 1))
            same("csp W2", int(found[0][1]), right)
        found.clear()
        rates["csp", name] = spent
    return rates


# ---------------------------------------------------------------- tables

ASKED = (
    ("W2", "duckdb", 1.0),
    ("W2", "csp", 5.0),
    ("W5", "duckdb", 1.0),
    ("W5", "csp", 1.0),
    ("W6", "duckdb", 0.25),
)


def _asked(spent: dict[tuple[str, str], Took]) -> Table:
    rows = []
    for name, peer, factor in ASKED:
        here, there = spent["dsms", name], spent[peer, name]
        wall = there.wall / here.wall
        rows.append((name, peer, f"at least {factor:g} ×", ratio(wall), ratio(there.cpu / here.cpu),
                     "yes" if wall >= factor else "no"))  # a row of a report  # fmt: skip
    more = spent["dsms", "W6"].wall / spent["dsms", "W6 (ten)"].wall
    cpu = spent["dsms", "W6"].cpu / spent["dsms", "W6 (ten)"].cpu
    rows.append(
        (
            "W6, cost",
            "ten of them",
            "at most 3 ×",
            ratio(more),
            ratio(cpu),
            "yes" if more <= 3 else "no",
        )
    )
    header = (
        "workload",
        "against",
        "asked",
        "dsms : peer, wall",
        "dsms : peer, CPU",
        "reached (wall)",
    )
    return Table(
        "Ratios asked for, periodic queries",
        header,
        tuple(rows),
        ("DuckDB uses all cores, dsms one.",),
    )


def _all(spent: dict[tuple[str, str], Took], rows: int) -> Table:
    names = ("W2", "W5", "W6", "W6 (ten)")
    cells = tuple(
        (
            e,
            *(
                f"{shown(rows / spent[e, n].wall)} ({shown(rows / max(spent[e, n].cpu, 1e-9))})"
                for n in names
            ),
        )
        for e in ("dsms", "duckdb", "csp")
    )
    small = [spent["dsms, small batches", n] for n in ("W6", "W6 (ten)")]
    notes = (
        f"{rows:,} rows; by wall clock (by CPU time of all threads); csp runs once",
        f"in batches of {BATCH:,} rows W6 runs at {shown(rows / small[0].wall)} rows/s, ten of "
        f"them at {shown(rows / small[1].wall)}: a batch costs each query about 10 us for its "
        "rows in the result log",
    )
    return Table("Rows per second, periodic queries", ("engine", *names), cells, notes)
