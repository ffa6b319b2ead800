"""Workloads W1, W3, W4, W5 and W7 beside DuckDB, Polars and csp on the same input in the same run,
and beside bare kernels over the same arrays.

DuckDB and Polars answer the whole input in batch, from memory; csp replays it in simulated time;
dsms takes it in batches of 131,072 rows, answers every instant, and hands all changes to a reader.
W5 is a continuous DISTINCT in dsms (each change at once), an answer each 100 ms for the others;
`sliding` has it as a periodic query, and W2 and W6.  Every answer is checked against NumPy.  Rates
are rows per second; medians of three."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from tests.benchmarks import bare, competitors, ours, tcp, workloads
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

NAMES = ("W1", "W3", "W4", "W5")
SLOW = {("duckdb", "W3"): 4}  # on that share of the input: it takes seconds


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows per second, by wall clock and by CPU."""

    wall: float
    cpu: float

    @staticmethod
    def of(rows: int, spent: Took) -> Rate:
        return Rate(rows / max(spent.wall, 1e-9), rows / max(spent.cpu, 1e-9))


Rates = dict[tuple[str, str], Rate]  # (engine, workload)


def section(options: Options) -> Section:
    """The workloads in process, then over TCP."""
    data = workloads.make(options.pick(2_000_000, 300_000, 20_000))
    rates = {**_dsms(data, options), **_bare(data, options), **_competitors(data, options)}
    out = Section("Peer workloads", __doc__ or "")
    out.parts.append(_asked(rates))
    out.parts.append(_all(rates, data.rows))
    out.parts.append(over_tcp(options))
    return out


def repeat(rows: int, options: Options, run: Callable[[], object]) -> Rate:
    """The rate of a function that treats so many rows, after one run that doesn't count."""
    run()
    return Rate.of(rows, median(took(run) for _ in range(options.repeats)))


def _dsms(data: workloads.Data, options: Options) -> Rates:
    rates = {}
    for name in NAMES:
        ours.check(name, data, ours.run(name, data)[1])
        rates["dsms", name] = Rate.of(
            data.rows, median(ours.run(name, data)[0] for _ in range(options.repeats))
        )
    return rates


def _bare(data: workloads.Data, options: Options) -> Rates:
    same("bare W1", bare.filter_project(data.s)[0], workloads.filtered(data.s)[0])
    runs = {
        "W1": lambda: bare.filter_project(data.s),
        "W3": bare_max(data),
        "W4": bare_join(data),
        "W5": bare_distinct(data),
    }
    return {("bare kernel", name): repeat(data.rows, options, run) for name, run in runs.items()}


def bare_max(data: workloads.Data) -> Callable[[], object]:
    """W3 by the Numba kernel, checked."""
    ts, _, v = workloads.columns(data.s)
    out = np.empty(len(ts))
    bare.sliding_max(ts, v, workloads.SECOND, out)
    same("bare W3", bool((out == workloads.sliding_max(data.s)).all()), True)
    return lambda: bare.sliding_max(ts, v, workloads.SECOND, out)


def bare_join(data: workloads.Data) -> Callable[[], object]:
    """W4 by the Numba kernel, checked."""
    count, total = workloads.joined(data.l, data.r)
    size = 1 << max(10, int(data.rows).bit_length())
    arrays = (*workloads.columns(data.l), *workloads.columns(data.r), 2 * workloads.SECOND, size)
    out = (np.empty(count, np.int64), np.empty(count), np.empty(count))
    same("bare W4 rows", bare.symmetric_join(*arrays, *out), count)
    same("bare W4 sum", float((out[1] + out[2]).sum()), total)
    return lambda: bare.symmetric_join(*arrays, *out)


def bare_distinct(data: workloads.Data) -> Callable[[], object]:
    """W5 by the Numba kernel, checked."""
    ts, k, _ = workloads.columns(data.s)
    out = np.empty(len(ts), np.int64)

    def run() -> int:
        return bare.distinct(ts, k, workloads.SECOND, np.full(workloads.KEYS, -1, np.int64), out)

    same("bare W5", run(), workloads.distinct_changes(data.s)[0])
    return run


def _competitors(data: workloads.Data, options: Options) -> Rates:
    rates = {}
    makers = {
        "duckdb": competitors.duckdb_run,
        "polars": competitors.polars_run,
        "csp": competitors.csp_run,
    }
    for engine, make in makers.items():
        for name in NAMES:
            part = _part(data, SLOW.get((engine, name), 1))
            run = make(part)[name]
            _check(engine, name, part, run())
            rates[engine, name] = Rate.of(
                part.rows, median(took(run) for _ in range(options.repeats))
            )
    return rates


def _part(data: workloads.Data, share: int) -> workloads.Data:
    return workloads.Data(*(b.slice(0, b.num_rows // share) for b in (data.s, data.l, data.r)))


def _check(engine: str, name: str, data: workloads.Data, answer: Any) -> None:
    what = f"{engine} {name}"
    match name:
        case "W1":
            count, total = workloads.filtered(data.s)
            same(what, answer[0], count)
            same(what, answer[1], total)
        case "W3":
            same(what, float(answer[-1]), float(workloads.sliding_max(data.s).sum()))
        case "W4":
            count, total = workloads.joined(data.l, data.r)
            same(what, answer[0], count)
            same(what, answer[1], total)
        case "W5":
            ticks = workloads.distinct_ticks(data.s)
            expected = ticks[: answer[0]].sum() if engine == "csp" else ticks.sum()
            same(what, int(answer[-1]), int(expected))


ASKED = (
    ("W1", "csp", 5.0), ("W3", "csp", 5.0), ("W4", "csp", 5.0), ("W5", "csp", 1.0),
    ("W1", "duckdb", 1.0), ("W3", "duckdb", 1.0), ("W4", "duckdb", 1.0), ("W5", "duckdb", 1.0),
    ("W1", "bare kernel", 0.5), ("W3", "polars", 1.0), ("W4", "bare kernel", 0.5),
)  # a table  # fmt: skip
BARE = {"W1": "pyarrow.compute", "W4": "a bare Numba symmetric join"}


def _asked(rates: Rates) -> Table:
    rows = []
    for name, peer, factor in ASKED:
        here, there = rates["dsms", name], rates[peer, name]
        wall, cpu = here.wall / there.wall, here.cpu / there.cpu
        who = BARE.get(name, peer) if peer == "bare kernel" else peer
        rows.append(
            (name, who, f"{factor:g} ×", ratio(wall), ratio(cpu), "yes" if wall >= factor else "no")
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
        "Ratios asked for",
        header,
        tuple(rows),
        ("DuckDB and Polars use all cores, dsms and csp one.",),
    )


def _all(rates: Rates, rows: int) -> Table:
    engines = ("dsms", "bare kernel", "duckdb", "polars", "csp")
    cells = tuple(
        (e, *(f"{shown(rates[e, n].wall)} ({shown(rates[e, n].cpu)})" for n in NAMES))
        for e in engines
    )
    notes = [f"{rows:,} rows; by wall clock (by CPU time of all threads)"]
    notes += [f"{e} runs {n} on a {k}th of the rows" for (e, n), k in SLOW.items()]
    return Table("Rows per second", ("engine", *NAMES), cells, tuple(notes))


def over_tcp(options: Options) -> Table:
    """W7: one stream with one grouped query over its last second, Arrow frames and msgpack rows."""
    data = workloads.make(options.pick(2_000_000, 300_000, 20_000))
    size = options.pick(1 << 17, 1 << 16, 1 << 12)
    arrow = repeat(data.rows, options, lambda: bare.arrow_grouped(data.s))
    rows = []
    with tcp.server(options.pick(True, True, False)) as server:
        for query in ("grouped", "grouped, unbounded", "W1"):
            _arrow(server, query, _part(data, 10), size)
            spent = median(_arrow(server, query, data, size) for _ in range(options.repeats))
            rows.append(
                _row(
                    f"Arrow frames, {LABELS[query]}",
                    Rate.of(data.rows, spent),
                    "Arrow's grouped aggregation",
                    arrow,
                    "0.25 ×" if query != "W1" else "",
                )
            )
        few = _part(data, 4)
        decode = decoding(few, options)
        _rows(server, _part(few, 10))
        spent = median(_rows(server, few) for _ in range(options.repeats))
        rows.append(
            _row(
                "msgpack rows, grouped",
                Rate.of(few.rows, spent),
                "bare msgpack decoding",
                decode,
                "0.5 ×",
            )
        )
    header = ("W7: over TCP", "rows/s", "limit", "its rows/s", "asked", "ratio, wall", "ratio, CPU")
    notes = (
        "frames are made beforehand; CPU is the server's",
        "the answer at the end is checked against NumPy",
    )
    return Table("W7: ingest over TCP", header, tuple(rows), notes)


LABELS = {"grouped": "grouped over 1 s", "grouped, unbounded": "grouped over all", "W1": "filtered"}


def _row(what: str, here: Rate, limit: str, there: Rate, asked: str) -> tuple[str, ...]:
    wall, cpu = here.wall / there.wall, here.cpu / there.cpu
    return (what, shown(here.wall), limit, shown(there.wall), asked, ratio(wall), ratio(cpu))


def declare(wire: tcp.Wire, query: str) -> None:
    """Streams and the query, anew."""
    for drop in ("QUERY q", "STREAM s", "STREAM l", "STREAM r"):
        wire.socket.sendall(wire.frame("execute", sql=f"DROP {drop}"))
        wire.read()
    wire.ask("execute", sql=f"{ours.DECLARE}; CREATE QUERY q AS {ours.QUERIES[query]}")


def _arrow(server: tcp.Server, query: str, data: workloads.Data, size: int) -> Took:
    with server.wire() as wire:
        declare(wire, query)
        spent = tcp.ingest(
            server, wire, tcp.arrow_frames(wire, "s", list(bare.pieces(data.s, size)))
        )
        if query != "W1":
            check_groups(wire, query, data)
        return spent


def _rows(server: tcp.Server, data: workloads.Data) -> Took:
    with server.wire() as wire:
        declare(wire, "grouped")
        spent = tcp.ingest(
            server, wire, tcp.row_frames(wire, "s", list(bare.pieces(data.s, tcp.SMALL)))
        )
        check_groups(wire, "grouped", data)
        return spent


def check_groups(wire: tcp.Wire, query: str, data: workloads.Data) -> None:
    """The answer that a subscriber is shown is that of the rows sent."""
    wire.ask("heartbeat", stream="s", ts=int(data.s.column(0)[-1].as_py()))
    wire.ask("subscribe", query="q")
    push = wire.push()
    table = pa.ipc.open_stream(push["data"]).read_all() if isinstance(push["data"], bytes) else None
    columns = (
        [c.to_numpy() for c in table.columns]
        if table
        else [np.array(c) for c in zip(*push["data"], strict=True)]
    )
    count, total = workloads.grouped(data.s, None if "unbounded" in query else workloads.SECOND)
    same(f"TCP {query}: groups", len(columns[0]), int((count > 0).sum()))
    key = columns[0].astype(np.int64)
    same(f"TCP {query}: counts", bool((columns[2] == count[key]).all()), True)
    same(f"TCP {query}: sums", bool((np.abs(columns[1] - total[key]) < 1e-6).all()), True)


def decoding(data: workloads.Data, options: Options) -> Rate:
    """What msgpack takes to decode the same rows in the same frames, and nothing else."""
    columns = [c.to_pylist() for c in data.s.columns]
    rows = list(zip(*columns, strict=True))
    frames = [msgpack.packb(rows[k : k + tcp.SMALL]) for k in range(0, len(rows), tcp.SMALL)]
    with clean_heap():
        return repeat(data.rows, options, lambda: [len(msgpack.unpackb(f)) for f in frames])
