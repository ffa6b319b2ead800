"""Joins of many windows to be run by engines, by DuckDB, and by the bare kernel."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import dsms
from dsms.operators.multi_join import Arena
from dsms.operators.multi_join_kernels import merged, multi_join
from tests.benchmarks.harness import clean_heap, took

SECOND = 1_000_000
DATA = Path(__file__).parents[3] / "shared" / "data"
NAMES = "abcdefgh"
BEFORE = 4  # frames before the query is there: of them the planner knows rates and values
PART = 1 << 18


@dataclass(frozen=True, slots=True)
class Job:
    """Windows on one key each, joined.

    streams  by name, columns k (the key), v, t;  windows: (stream, seconds), one for each input
    where    what else is asked of results
    chain    the columns by which each window hangs on the next; else all are equal in k"""

    name: str
    streams: Mapping[str, pa.Table]
    windows: tuple[tuple[str, float], ...]
    seconds: float
    frame: float
    where: str = ""
    tags: tuple[str, ...] = ()
    chain: str = ""

    @property
    def inputs(self) -> list[str]:
        return [f"x{i}" for i in range(len(self.windows))]

    def sql(self) -> str:
        froms = ", ".join(
            f"{s} [RANGE {int(w * 1000)} ms] {x}"
            for x, (s, w) in zip(self.inputs, self.windows, strict=True)
        )
        keys = " AND ".join(f"x0.k = {x}.k" for x in self.inputs[1:])
        if self.chain:
            links = enumerate(pairwise(self.inputs))
            keys = " AND ".join(f"{x}.{self.chain[n]} = {y}.{self.chain[n]}" for n, (x, y) in links)
        items = ", ".join(f"{x}.v AS v{n}" for n, x in enumerate(self.inputs))
        return f"SELECT Istream(x0.k, {items}) FROM {froms} WHERE {keys}{self.where}"

    def frames(self) -> Iterator[tuple[int, dict[str, pa.Table]]]:
        """Rows up to the end of each frame."""
        times = {s: t["t"].to_numpy() for s, t in self.streams.items()}
        edges = np.arange(0, self.seconds + self.frame, self.frame)
        for low, high in pairwise(edges):
            cut = {s: np.searchsorted(ts, [low * SECOND, high * SECOND]) for s, ts in times.items()}
            yield int(high * SECOND), {s: self.streams[s][a:b] for s, (a, b) in cut.items()}

    def after(self) -> dict[str, pa.Table]:
        """The rows that the query sees."""
        since = BEFORE * self.frame * SECOND
        at = {s: np.searchsorted(t["t"].to_numpy(), since) for s, t in self.streams.items()}
        return {s: t[at[s] :] for s, t in self.streams.items()}


@dataclass(frozen=True, slots=True)
class Ran:
    """CPU seconds from registration to the last row; bytes of state at most; the plan."""

    cpu: float
    state: int
    results: int
    plan: list[str] = field(default_factory=list)
    late: float = 0.0  # CPU seconds of the second half of the frames
    changes: int = 0  # of the plan


def run(job: Job, option: str, before: int = BEFORE) -> Ran:
    """The job in an engine; `option` of the query, which is registered when `before` frames have
    come."""
    engine, cpu, state, plan, late = dsms.Engine(), 0.0, 0, list[str](), 0.0
    kind = "STRING" if pa.types.is_string(next(iter(job.streams.values()))["k"].type) else "INT"
    for name in job.streams:
        engine.execute(f"CREATE STREAM {name} (k {kind}, v INT, t TIMESTAMP) TIMESTAMP BY t")

    def step(end: int, rows: dict[str, pa.Table]) -> None:
        for name, frame in rows.items():
            if len(frame):
                engine.ingest(name, frame)
        for name in rows:
            engine.heartbeat(name, end - 1)

    with clean_heap():
        for number, (end, rows) in enumerate(job.frames()):
            if number == before:
                engine.execute(f"CREATE QUERY q AS {job.sql()} WITH ({option}, result_log = 0)")
                plan = engine.execute("EXPLAIN QUERY q")[0].data["plan"].to_pylist()
            cost = took(lambda e=end, r=rows: step(e, r))  # type: ignore[misc]
            if number >= before:
                cpu += cost.cpu
                late += cost.cpu if 2 * end > job.seconds * SECOND else 0.0
                state = max(state, engine.runtime.queries["q"].pipeline.nbytes())  # type: ignore[attr-defined]
    results = engine.next_seq("q")
    changes = engine.stats()["replans"]
    engine.close()
    return Ran(cpu, state, results, plan, late, changes)


def duck(job: Job) -> tuple[float, int]:
    """CPU seconds and results of one join over all rows, in DuckDB."""
    import duckdb

    db = duckdb.connect(config={"threads": 1})
    for name, rows in job.after().items():
        db.register(name, rows)
    froms = ", ".join(f"{s} {x}" for x, (s, _) in zip(job.inputs, job.windows, strict=True))
    keys = [f"x0.k = {x}.k" for x in job.inputs[1:]]
    ends = {
        x: f"{x}.t + {int(w * SECOND)}" for x, (_, w) in zip(job.inputs, job.windows, strict=True)
    }
    alive = [f"{x}.t < {end}" for x in job.inputs for y, end in ends.items() if x != y]
    what = "sum(hash(" + ", ".join(f"{x}.v" for x in job.inputs) + ") & 1)"
    sql = f"SELECT count(*), {what} FROM {froms} WHERE {' AND '.join(keys + alive)}{job.where}"
    out: list[int] = []
    cost = took(lambda: out.append(db.execute(sql).fetchall()[0][0]))
    return cost.cpu, out[0]


def kernel(job: Job) -> float:
    """CPU seconds of the kernel alone, all rows at once."""
    rows, n = job.after(), len(job.windows)
    codes: dict[object, int] = {}
    arena, first, when, slot = Arena(n), [0], [], []
    tables = [rows[s] for s, _ in job.windows]
    arena.reserve([len(t) for t in tables])
    for i, (table, (_, length)) in enumerate(zip(tables, job.windows, strict=True)):
        keys = np.array([codes.setdefault(k, len(codes)) for k in table["k"].to_pylist()], np.int64)
        ts = table["t"].to_numpy()
        arena.add(i, keys, np.ones(len(ts), np.bool_), ts + int(length * SECOND))
        when.append(ts)
        slot.append(np.arange(len(ts)))
        first.append(first[-1] + len(ts))
    times = np.concatenate(when)
    ones, slots = np.ones(len(times), np.int8), np.concatenate(slot)
    *events, _ = merged(times, ones, slots, np.array(first))
    order = np.array([[j for j in range(n) if j != i] for i in range(n)])
    at, fifo, fresh = np.zeros(2, np.int64), np.ones(n, np.bool_), np.zeros(n, np.int64)

    def go() -> None:
        chains = (arena.head, arena.rows, arena.offset, arena.old, fresh)
        while at[0] < len(times):
            multi_join(*chains, fifo, order, at, PART, *events)

    return took(go).cpu


# ---------------------------------------------------------------- jobs


def star(
    n: int, alive: int, values: int, frame: float = 2.5, window: float = 10, seconds: float = 30
) -> Job:
    """Windows of so many rows, keys uniform."""
    rng = np.random.default_rng(n)
    count = int(alive * seconds / window)
    streams = {}
    for name in NAMES[:n]:
        ts = np.sort(rng.integers(0, int(seconds * SECOND), count))
        columns = rng.integers(0, values, count), rng.integers(0, 1000, count), ts
        streams[name] = pa.table(dict(zip("kvt", columns, strict=True)))
    what = f"{n} windows of {alive} rows, {values} values"
    # results of two, three, ... n - 1 windows, which a tree keeps, over the windows' rows
    kept = sum(alive * (alive / values) ** (k - 1) for k in range(2, n)) / (n * alive)
    tags = ("intermediate",) if kept >= 10 else ()
    return Job(what, streams, tuple((s, window) for s in streams), seconds, frame, "", tags)


def swapping(seconds: float, fast: int = 2000, slow: int = 2, window: float = 5) -> Job:
    """A chain of three windows, of which now the first is fast and now the last, a third of the
    time each, with as much as a window between: what is best to be joined first changes."""
    rng = np.random.default_rng(3)
    third = seconds / 3
    streams = {}
    turns = {"a": (fast, slow, fast), "b": (fast // 10,) * 3, "c": (slow, fast, slow)}
    for name, rates in turns.items():
        ts = []
        for n, rate in enumerate(rates):
            end = (n + 1) * third - (window if rate == fast else 0)
            span = np.array([n * third, end]) * SECOND
            ts.append(np.sort(rng.integers(*span.astype(np.int64), int(rate * (end - n * third)))))
        at = np.concatenate(ts)
        columns = rng.integers(0, 100, len(at)), rng.integers(0, 100, len(at)), at
        streams[name] = pa.table(dict(zip("kvt", columns, strict=True)))
    windows = tuple((s, window) for s in streams)
    what = f"a chain of 3, {fast} and {slow} rows/s in turns"
    return Job(what, streams, windows, seconds, 1.0, chain="kv")


def real() -> Iterator[Job]:
    """Logs of one network by host, and sensors by time and by mote; what is there."""
    logs = DATA / "zeek_wrccdc"
    if logs.exists():
        yield from _zeek(logs)
    lab = DATA / "intel_lab" / "intel_30min_train.csv.gz"
    if lab.exists():
        yield from _lab(lab)


def _csv(path: Path) -> pa.Table:
    with gzip.open(path) as file:
        return pyarrow.csv.read_csv(file)


def _of(table: pa.Table, key: str, ts: np.ndarray, value: np.ndarray) -> pa.Table:
    """In order of time."""
    by = np.argsort(ts, kind="stable")
    rows = pa.table({"k": table[key], "v": value, "t": ts})
    return rows.take(pa.array(by))


def _zeek(folder: Path) -> Iterator[Job]:
    dns, ssl = (_csv(folder / f"{name}.csv.gz") for name in ("dns", "ssl"))
    least = min(float(t["ts"].to_numpy().min()) for t in (dns, ssl))

    def at(table: pa.Table) -> np.ndarray:
        return np.round((table["ts"].to_numpy() - least) * SECOND).astype(np.int64)

    made = ssl["established"].to_pylist()
    good = pa.array([e in (True, "T") for e in made])
    bad = pa.array([e not in (True, "T") for e in made])
    parts = {"dns": dns, "made": ssl.filter(good), "failed": ssl.filter(bad)}
    streams = {
        name: _of(t, "orig_host", at(t), t["orig_port"].to_numpy()) for name, t in parts.items()
    }
    seconds = max(int(t["t"].to_numpy()[-1]) for t in streams.values()) / SECOND
    for length in (1.0, 3.0):
        windows = tuple((s, length) for s in streams)
        yield Job(f"zeek: dns, ssl, failed ssl of a host within {length} s", streams, windows,
                  seconds, 10)  # a call  # fmt: skip


def _lab(path: Path) -> Iterator[Job]:
    lab = _csv(path)
    slot, sensor = lab["slot"].to_numpy(), lab["sensor"].to_numpy()
    ts = slot * 1800 * SECOND + sensor * SECOND
    heat = np.round(lab["temperature_c"].to_numpy() * 10).astype(np.int64)
    seconds = float(ts.max()) / SECOND + 1
    motes = _of(lab, "sensor", ts, heat)
    hours = tuple(("lab", h * 3600.0) for h in (2, 4, 6))
    yield Job("Intel lab: a mote's readings within 2, 4, 6 h", {"lab": motes}, hours, seconds, 7200)
    parts = {}
    for k in range(4):
        some = lab.filter(pa.array((sensor - 1) // 10 == k))
        at = some["slot"].to_numpy() * 1800 * SECOND + some["sensor"].to_numpy() * SECOND
        value = np.round(some["temperature_c"].to_numpy() * 10).astype(np.int64)
        parts[f"m{k}"] = _of(some, "slot", at, value)
    windows = tuple((s, 1800.0) for s in parts)
    yield Job("Intel lab: four groups of ten motes at one time", parts, windows, seconds, 7200)
