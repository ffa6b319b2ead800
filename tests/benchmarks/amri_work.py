"""Rows and engines for the benchmark of adaptive joins."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

import dsms
from dsms.operators.adaptive_join import AdaptiveJoinOp
from tests.benchmarks.harness import clean_heap, took
from tests.benchmarks.multijoin_work import Ran

NAMES = "abcd"
EDGES = tuple(combinations(range(4), 2))  # a clique: each stream has an attribute for each other
MS = 1000
EVERY, FAR = 20, 1 << 40
Prepare = Callable[[AdaptiveJoinOp], None]
Each = Callable[[Any, int], object]  # of the engine, before rows of that number come


@dataclass(frozen=True, slots=True)
class Job:
    """Streams a to d, all with the same window, joined under a condition.  window: µs"""

    name: str
    streams: Mapping[str, pa.Table]
    where: str
    window: int

    @property
    def rows(self) -> int:
        return sum(map(len, self.streams.values()))

    def frames(self, rows: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Frames of about so many rows of each stream: (their last instants, by stream where its
        rows are cut)."""
        times = {s: t["t"].to_numpy() for s, t in self.streams.items()}
        longest = max(times.values(), key=len)
        ends = np.append(longest[rows - 1 :: rows], max(t[-1] for t in times.values()))
        ends = np.unique(ends)
        return ends, {s: np.append(0, np.searchsorted(t, ends, "right")) for s, t in times.items()}

    def sql(self) -> str:
        windows = ", ".join(f"{s} [RANGE {self.window // MS} ms]" for s in self.streams)
        items = ", ".join(f"{s}.v AS v{s}" for s in self.streams)
        return f"SELECT Istream({items}) FROM {windows} WHERE {self.where}"


@dataclass(frozen=True, slots=True)
class Clique:
    """Four streams, each with a row a millisecond: column e.g. `k02` for what a and c have in
    common, v, t.

    values  for each phase of `phase` rows the number of values of each of EDGES
    window  rows"""

    name: str
    values: Sequence[tuple[int, ...]]
    phase: int
    rows: int
    window: int
    seed: int = 1

    def streams(self) -> dict[str, pa.Table]:
        rng = np.random.default_rng(self.seed)
        number = np.arange(self.rows)
        phase = number // self.phase % len(self.values)
        domains = np.array(self.values)[phase]  # [rows, edges]
        common = number % EVERY == 0  # the same values in all streams: a result
        made = {}
        for i, name in enumerate(NAMES):
            columns = {
                f"k{a}{b}": np.where(
                    common, FAR + number, (rng.random(self.rows) * domains[:, e]).astype(np.int64)
                )
                for e, (a, b) in enumerate(EDGES)
                if i in (a, b)
            }
            made[name] = pa.table({**columns, "v": number, "t": number * MS})
        return made

    def job(self) -> Job:
        where = " AND ".join(f"{NAMES[a]}.k{a}{b} = {NAMES[b]}.k{a}{b}" for a, b in EDGES)
        return Job(self.name, self.streams(), where, self.window * MS)


def run(
    job: Job, option: str, frame: int, known: int, prepare: Prepare = lambda op: None,
    each: Each = lambda engine, row: None,
) -> Ran:  # with what is usual  # fmt: skip
    """All rows in an engine, so many of each stream in a frame; the query is registered after
    `known` frames, so that the planner has statistics of them.  prepare: of the adaptive
    operator, if there is one; each: what is done before each frame, whose time does not count."""
    engine, cpu, state = dsms.Engine(), 0.0, 0
    for name, table in job.streams.items():
        columns = ", ".join(f"{c} INT" for c in table.column_names if c != "t")
        engine.execute(f"CREATE STREAM {name} ({columns}, t TIMESTAMP) TIMESTAMP BY t")

    ends, cuts = job.frames(frame)

    def step(number: int) -> None:
        for name, table in job.streams.items():
            part = table[cuts[name][number] : cuts[name][number + 1]]
            if len(part):
                engine.ingest(name, part)
        for name in job.streams:
            engine.heartbeat(name, int(ends[number]))

    with clean_heap():
        for number in range(len(ends)):
            if number == known:
                engine.execute(f"CREATE QUERY q AS {job.sql()} WITH ({option}, result_log = 0)")
                for stage in _pipeline(engine).stages:
                    if isinstance(stage.operator, AdaptiveJoinOp):
                        prepare(stage.operator)
            if number >= known:
                each(engine, frame * number)
            cost = took(lambda n=number: step(n))  # type: ignore[misc]
            if number >= known:
                cpu += cost.cpu
                state = max(state, _pipeline(engine).nbytes())
    plan = engine.execute("EXPLAIN ANALYZE QUERY q")[0].data["plan"].to_pylist()
    results = engine.next_seq("q")
    engine.close()
    return Ran(cpu, state, results, plan)


def _pipeline(engine: Any) -> Any:
    return engine.runtime.queries["q"].pipeline


def duck(job: Job, seen: int) -> tuple[float, int]:
    """CPU seconds and results of one join over all rows but those of the first frame of `seen`
    rows, in DuckDB."""
    import duckdb

    db = duckdb.connect(config={"threads": 1})
    for name, rows in job.streams.items():
        db.register(name, rows[job.frames(seen)[1][name][1] :])
    names = list(job.streams)
    alive = [f"{x}.t < {y}.t + {job.window}" for x in names for y in names if x != y]
    sql = f"SELECT count(*) FROM {', '.join(names)} WHERE {job.where} AND {' AND '.join(alive)}"
    out: list[int] = []
    cost = took(lambda: out.append(db.execute(sql).fetchall()[0][0]))
    return cost.cpu, out[0]


def lab() -> Iterator[Job]:
    """Four groups of motes of the Intel lab whose temperatures and humidities go round; if the data
    is there."""
    path = Path(__file__).parents[3] / "shared" / "data" / "intel_lab" / "intel_30min_train.csv.gz"
    if not path.exists():
        return
    with gzip.open(path) as file:
        read = pyarrow.csv.read_csv(file)
    sensor, slot = read["sensor"].to_numpy(), read["slot"].to_numpy()
    at = slot * 1_800_000_000 + sensor * 1_000_000
    heat = np.round(read["temperature_c"].to_numpy() * 2).astype(np.int64)
    damp = np.round(read["humidity_pct"].to_numpy()).astype(np.int64)
    edges = [*np.quantile(sensor, [0, 0.25, 0.5, 0.75]), np.inf]
    streams = {}
    for k, name in enumerate(NAMES):
        some = np.flatnonzero((sensor >= edges[k]) & (sensor < edges[k + 1]))
        some = some[np.argsort(at[some], kind="stable")]
        columns = {"heat": heat[some], "damp": damp[some], "v": sensor[some], "t": at[some]}
        streams[name] = pa.table(columns)
    where = "a.heat = b.heat AND b.damp = c.damp AND c.heat = d.heat AND d.damp = a.damp"
    yield Job("Intel lab, a cycle within 2 h", streams, where, 7_200_000_000)
