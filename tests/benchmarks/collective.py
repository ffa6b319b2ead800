"""Collective indices: HAVING COUNT(*) > v over many groups or with many thresholds (Arasu and Widom
2004, §4; Figure 12).

Each engine gets the same rows: keys drawn so that few groups are large, over a window of thirty
sub-windows.  `every group` is the plain path, vectorised, by a synopsis scan (SS) or by the last
answer and what came and went (ISS); `index` is the collective index, `auto` what the engine does by
itself.  What is timed is a boundary: closing a sub-window, the answers of all queries, and handing
them over; taking in rows costs all the same and is shown beside it.  Where few of the groups occur
in a sub-window, a window's sums are kept between boundaries and changed by what came and went
(`dsms.sharing.window_sums`) where an index is asked.  All answers are compared.

Figure 12 is played on the structures alone: sub-windows of some rows and as many look-ups of random
windows and thresholds, exact.  The paper's day of TAQ trades is not at hand; 5,000 keys with
Zipf-like frequencies stand for its symbols.  Its naive approach asked each symbol by itself (1,000
inputs a second); the one here asks all in one go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

import numpy as np
import pyarrow as pa

from dsms import Engine
from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.registry import algebra
from dsms.sharing.columns import ROWS
from dsms.synopses.collective import CollectiveIndex
from dsms.synopses.running import Running
from tests.benchmarks.harness import Options, Section, Table, same, took

S = 1_000_000
SPAN, WIDTH = 10 * S, 30  # of a sub-window, and sub-windows of a window
WAYS = {
    "every group, SS": "synopsis = none, path = ss",
    "every group, ISS": "synopsis = none, path = iss",
    "index": "synopsis = collective",
    "auto": "synopsis = auto",
}


@dataclass(frozen=True, slots=True)
class Work:
    """keys, rows of a sub-window, thresholds (one query each)."""

    keys: int
    rows: int
    thresholds: tuple[int, ...]
    boundaries: int = 3

    def sub_window(self, number: int) -> pa.RecordBatch:
        """Rows of which a tenth of the keys has most."""
        rng = np.random.default_rng(number)
        places = (self.keys * rng.random(self.rows) ** 3).astype(np.int64)
        keys = np.random.default_rng(7).permutation(self.keys)[places]
        if number == 0:
            keys = np.concatenate([keys, np.arange(self.keys)])
        ts = np.sort(rng.integers(number * SPAN, (number + 1) * SPAN, len(keys)))
        return pa.record_batch([pa.array(keys), pa.array(ts, pa.timestamp("us"))], ["k", "t"])


@dataclass(slots=True)
class Measured:
    """CPU seconds of a boundary, and of taking in the rows before it; rows of all answers."""

    boundary: float
    intake: float
    answered: int
    told: list[list[tuple[int, int]]] = field(default_factory=list)


def measured(work: Work, options: str) -> Measured:
    """An engine that has known all keys for a window, and is then asked."""
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 400 s")
    for number in range(WIDTH + 1):
        engine.ingest("s", work.sub_window(number))
    for i, v in enumerate(work.thresholds):
        engine.execute(
            f"CREATE QUERY q{i} AS SELECT k, COUNT(*) AS n FROM s [RANGE {WIDTH * 10} s SLIDE 10 s]"
            f" GROUP BY k HAVING COUNT(*) > {v} WITH ({options}, max_state = 100000000000)"
        )
    readers = [engine.subscribe(f"q{i}", limit_bytes=1 << 40) for i in range(len(work.thresholds))]
    boundaries, intakes, told = list[float](), list[float](), list[list[tuple[int, int]]]()
    for number in range(WIDTH + 1, WIDTH + 2 + work.boundaries):
        rows = work.sub_window(number)
        intakes.append(took(lambda rows=rows: _in(engine, rows)).cpu)  # type: ignore[misc]
        end = (number + 1) * SPAN - 1
        boundaries.append(took(lambda end=end: engine.heartbeat("s", end)).cpu)  # type: ignore[misc]
        told.append([_sum(reader.take()) for reader in readers])
    answered = sum(n for n, _ in told[-1])
    return Measured(median(boundaries[1:]), median(intakes[1:]), answered, told)


def _in(engine: Engine, rows: pa.RecordBatch) -> None:
    engine.ingest("s", rows)
    for group in engine.runtime.shared.all():
        group.settled()
        group.feed.flush()


def _sum(pushes: list) -> tuple[int, int]:
    """Rows, and a sum over all of their values and places."""
    tables = [p.data for p in pushes if p.data is not None]
    n = sum(t.num_rows for t in tables)
    sums = [
        int((np.asarray(t.column(c)) * (np.arange(t.num_rows) % 1009 + 1)).sum() % (1 << 61))
        for t in tables
        for c in (0, 1)
    ]
    return n, sum(sums)


def section(options: Options) -> Section:
    """Many groups, many thresholds, where it begins to pay, Figure 12."""
    million = options.pick(1_000_000, 200_000, 300)
    many = options.pick(1_000, 60, 3)
    over = options.pick(100_000, 50_000, 200)
    one = Work(million, million // 10, (11,))
    thresholds = Work(over, over // 5, tuple(range(20, 20 + many)), options.pick(2, 2, 1))
    parts = [
        _compared("One threshold, many groups", one, list(WAYS)),
        _compared("Many thresholds", thresholds, ["every group, SS", "index", "auto"]),
        _crossing(options),
        _figure_12(options),
    ]
    return Section("Collective indices (Arasu and Widom 2004, §4)", __doc__ or "", list(parts))


def _compared(title: str, work: Work, ways: list[str]) -> Table:
    found = {way: measured(work, WAYS[way]) for way in ways}
    for way in ways[1:]:
        same(f"{title}, {way}", found[way].told, found[ways[0]].told)
    best = min(m.boundary for way, m in found.items() if way.startswith("every"))
    share = found[ways[0]].answered / work.keys / len(work.thresholds)
    rows = tuple(
        (way, f"{1e3 * m.boundary:,.1f}", f"{best / m.boundary:,.1f}", f"{1e3 * m.intake:,.1f}")
        for way, m in found.items()
    )
    about = (
        f"{work.keys:,} groups, {len(work.thresholds):,} thresholds, {work.rows:,} rows a "
        f"sub-window, {share:.3f} of the groups in an answer.  Bar: 10 times."
    )
    header = ("way", "ms a boundary", "times as fast as the best without", "ms to take in its rows")
    return Table(title, header, rows, (about,))


def _crossing(options: Options) -> Table:
    """Where `auto` begins to ask the index, and what that costs below."""
    rows = []
    for keys in options.pick((100, 1_000, 4_000, 16_000, 64_000), (100, 1_000, 16_000), (50,)):
        for queries in options.pick((1, 20), (1, 20), (2,)):
            work = Work(keys, keys, tuple(range(60, 60 + queries)), options.pick(9, 5, 1))
            found = {way: measured(work, WAYS[way]) for way in ("every group, SS", "index", "auto")}
            plain, index, auto = found.values()
            same(f"{keys} keys, {queries} queries", auto.told, plain.told)
            same(f"{keys} keys, {queries} queries, index", index.told, plain.told)
            costs = [1e3 * m.boundary for m in (plain, index, auto)]
            rows.append((f"{keys:,}", f"{queries}", *(f"{c:.2f}" for c in costs)))
    header = ("groups", "queries", "every group, ms a boundary", "index", "auto")
    return Table("Where it begins to pay", header, tuple(rows))


def _figure_12(options: Options) -> Table:
    """Inputs (rows and look-ups, as many of each) a CPU second by p."""
    keys, batch = options.pick(5_000, 5_000, 50), 100
    steps, reach = options.pick(300, 100, 5), 180
    rows = [
        (name, f"{rate:,.0f}", f"{candidates:.3f}", f"{true:.3f}")
        for name, rate, candidates, true in _rates(keys, batch, steps, reach)
    ]
    notes = ("The paper: 1,000 inputs a second naively, about 25,000 at the best p.",)
    header = ("way", "inputs a second", "candidates, share of groups", "right ones")
    return Table("Figure 12", header, tuple(rows), notes)


def _rates(
    keys: int, batch: int, steps: int, reach: int
) -> Iterator[tuple[str, float, float, float]]:
    rng, how = np.random.default_rng(12), algebra(ROWS)
    came = [_trades(rng, keys, batch) for _ in range(reach + steps)]
    asked = [[_asked(rng, keys, batch, reach) for _ in range(batch)] for _ in range(steps)]
    answers: list[int] | None = None
    for p in (0, 1, 2, 4, 8, 16):  # 0: without an index
        held, index = Running(how, keys), CollectiveIndex(max(p, 1), 0, 9 * max(p, 1))
        for number in range(reach):
            _update(held, index if p else None, came[number], number, reach)
        found, candidates = list[int](), list[int]()

        def play(held=held, index=index, p=p, found=found, candidates=candidates) -> None:
            for step, questions in enumerate(asked):
                number = reach + step
                _update(held, index if p else None, came[number], number, reach)
                for width, v in questions:
                    n, looked = _look_up(held, index if p else None, number + 1, width, v)
                    found.append(n)
                    candidates.append(looked)

        cpu = took(play).cpu
        answers = answers or found
        same(f"p = {p}", found, answers)
        name = f"index, p = {p}" if p else "every group"
        shares = np.mean(candidates) / keys, np.mean(found) / keys
        yield name, 2 * batch * steps / max(cpu, 1e-9), *map(float, shares)


def _trades(rng: np.random.Generator, keys: int, batch: int) -> np.ndarray:
    return (keys * rng.random(batch) ** 3).astype(np.int64)


def _asked(rng: np.random.Generator, keys: int, batch: int, reach: int) -> tuple[int, int]:
    """A window of 15 to 180 sub-windows, and a threshold that .03 to .05 of the groups pass."""
    width, share = int(rng.integers(reach // 12, reach)), rng.uniform(0.03, 0.05)
    density = batch * width / keys / 3 * share ** (-2 / 3)  # rows of a group at that rank
    return width, max(0, int(density))


def _update(
    held: Running, index: CollectiveIndex | None, codes: np.ndarray, number: int, reach: int
) -> None:
    n = np.arange(len(codes))
    held.append(held.algebra.lift(CellRows(codes, n, n), held.groups), 1)
    held.trim(number - reach)
    if index is not None:
        group, amount = np.unique(codes, return_counts=True)
        index.grow(held.groups)
        index.update(number, number - reach, group, amount)


def _look_up(
    held: Running, index: CollectiveIndex | None, end: int, width: int, v: int
) -> tuple[int, int]:
    """Groups above v, and how many were looked at."""
    low, high = np.array([end - width]), np.array([end])
    if index is None:
        counts = held.algebra.lower(held.probe(low, high))
        return int(np.count_nonzero(np.asarray(counts) > v)), held.groups
    code = index.above(end - width, v)
    code = code[code < held.groups]
    counts = held.algebra.lower(held.probe_some(low, high, code))
    return int(np.count_nonzero(np.asarray(counts) > v)), len(code)
