"""Many filters over one stream: rows meet only the queries that want them (Golab 2006, §2.4.4).

`SELECT * FROM s [NOW] WHERE k = i`, or a range of ten values, over frames of 10,000 rows.  Hot: all
rows go to ten of the queries, however many there are, so the matches are as many in all.  Spread:
they go to all alike, so what it costs to report results at all is paid by each query in each frame.
Silent: no row is wanted.  CPU time; the engines take turns, frame by frame, and the median frame
counts; each result is counted.  Each ratio is of one run.

Bars: 10,000 equalities at >= 1/2 of the rate of ten, hot; 1000 ranges at >= 20 times the rate
without the index, hot.
"""

from __future__ import annotations

import resource
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import dsms
from dsms.settings import Settings
from tests.benchmarks.harness import Options, Section, Table, ratio, same, shown, took

HOT = 10
HEADER = ("queries", "rows go to", "index", "rows/s", "results", "against the first")
LINES = ("queries", "register all, CPU s", "drop all, CPU s", "bytes a query")


@dataclass(slots=True)
class Case:
    """An engine with filters; `span` values of k belong to each."""

    queries: int
    span: int
    values: int  # k is below this
    on: bool
    engine: dsms.Engine
    registered: float

    @classmethod
    def of(cls, queries: int, span: int, values: int, on: bool = True) -> Case:
        engine = dsms.Engine(settings=Settings(queries=queries, predicate_index=on))
        engine.execute("CREATE STREAM s (k INT, v FLOAT, t TIMESTAMP) TIMESTAMP BY t")

        def register() -> None:
            for i in range(queries):
                low, high = i * span, i * span + span - 1
                where = f"k = {low}" if span == 1 else f"k BETWEEN {low} AND {high}"
                engine.execute(f"CREATE QUERY q{i} AS SELECT * FROM s [NOW] WHERE {where}")

        return cls(queries, span, values, on, engine, took(register).cpu)

    @property
    def where(self) -> str:
        if self.values < 0:
            return "none"
        return f"{min(self.queries, self.values // self.span)} of them"

    def frame(self, number: int, rows: int) -> dict[str, np.ndarray]:
        """Rows 1 ms apart; the same for all cases of the same values."""
        rng = np.random.default_rng(number)
        k = rng.integers(0, self.values, rows) if self.values > 0 else np.full(rows, -1)
        at = (number * rows + np.arange(rows)) * 1000
        return {"k": k, "v": rng.random(rows), "t": at}

    def results(self) -> int:
        return sum(self.engine.next_seq(f"q{i}") for i in range(self.queries))

    def drop(self) -> float:
        def run() -> None:
            for i in range(self.queries):
                self.engine.execute(f"DROP QUERY q{i}")

        return took(run).cpu


def section(options: Options) -> Section:
    """Rates, and what it costs to have them."""
    many, some = options.pick(10_000, 2000, 40), options.pick(1000, 1000, 40)
    frames, rows = options.pick(15, 7, 2), options.pick(10_000, 10_000, 500)
    equal = [Case.of(HOT, 1, HOT), Case.of(some, 1, HOT)]
    before = _peak()
    equal.append(Case.of(many, 1, HOT))
    each = (_peak() - before) / many
    equal += [Case.of(some, 1, some), Case.of(some, 1, -1), Case.of(some, 1, HOT, on=False)]
    span = 10
    ranges = [
        Case.of(some, span, HOT * span, on=False),
        Case.of(some, span, HOT * span),
        Case.of(some, span, some * span),
        Case.of(some, span, -1),
    ]
    tables = [
        Table("Equality", HEADER, _rates(equal, frames, rows)),
        Table("Ranges", HEADER, _rates(ranges, frames, rows)),
    ]
    costs = tuple(
        (str(c.queries), f"{c.registered:.2f}", f"{c.drop():.2f}", shown(each))
        for c in equal
        if c.queries == many
    )
    return Section("Many filters", __doc__ or "", [*tables, Table("Declarations", LINES, costs)])


def _rates(cases: Sequence[Case], frames: int, rows: int) -> tuple[tuple[str, ...], ...]:
    """A line for each case, in rows a CPU second of the median frame."""
    seconds: list[list[float]] = [[] for _ in cases]
    wanted = [0 for _ in cases]
    for number in range(frames + 1):
        for at, case in enumerate(cases):
            frame = case.frame(number, rows)
            wanted[at] += int(((frame["k"] >= 0) & (frame["k"] < case.queries * case.span)).sum())
            cost = took(lambda c=case, f=frame: c.engine.ingest("s", f))  # type: ignore[misc]
            if number:  # the first one meets cold code
                seconds[at].append(cost.cpu)
    rates = [rows / statistics.median(s) for s in seconds]
    for case, count in zip(cases, wanted, strict=True):
        case.engine.heartbeat("s", (frames + 2) * rows * 1000)
        same(f"{case.queries} filters, index {case.on}", case.results(), 2 * count)
    return tuple(
        (
            str(case.queries),
            case.where,
            "yes" if case.on else "no",
            shown(rate),
            str(case.results()),
            ratio(rate / rates[0]),
        )
        for case, rate in zip(cases, rates, strict=True)
    )


def _peak() -> int:
    """Bytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
