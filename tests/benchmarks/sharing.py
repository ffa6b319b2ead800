"""Many continuous queries that have a part of their plans in common (Golab 2006, §2.4.4).

Readers: `SELECT ... FROM a [RANGE 10 s], b [RANGE 10 s] WHERE a.k = b.k`, and on top of it a
condition on columns of both sides and other columns for each reader: those of one side are looked
up, those of both are not.  Groups: `SELECT k, COUNT(*), SUM(v) FROM a [RANGE 10 s] GROUP BY k`, and
a condition on the count for each reader.  On: the join, or the groups, run once; off: once a
reader.  CPU time; the engines take turns, frame by frame, and the median frame counts; results of
both are the same, query by query.  State as SHOW QUERIES adds up to.  Each ratio is of one run.

Bars, 100 readers: <= 1/10 of the state; conditions on both sides, and groups, at >= 20 times the
rate.  (Alone, conditions on one side are pushed below the join, which then has little to do; what
is left with sharing is mostly what it costs each reader to report its results.)
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import dsms
from dsms.settings import Settings
from tests.benchmarks.harness import Options, Section, Table, ratio, same, shown, took

DDL = (
    "CREATE STREAM a (k INT, v INT, n FLOAT, t TIMESTAMP) TIMESTAMP BY t; "
    "CREATE STREAM b (k INT, w INT, m FLOAT, t TIMESTAMP) TIMESTAMP BY t"
)
JOIN = "SELECT a.k, a.v, b.w, n + m AS x FROM a [RANGE 10 s], b [RANGE 10 s] WHERE a.k = b.k"
GROUPS = "SELECT k, COUNT(*) AS c, SUM(v) AS s FROM a [RANGE 10 s] GROUP BY k"
HEADER = ("readers", "shared", "rows/s", "results", "state", "rate", "state of")
Query = Callable[[int], str]


def looked_up(i: int) -> str:
    return f"{JOIN} AND v = {i}"


def both_sides(i: int) -> str:
    return f"SELECT k, v + {i} AS y FROM ({JOIN}) AS q WHERE v + w = {i + 50}"


def grouped(i: int) -> str:
    return f"SELECT * FROM ({GROUPS}) AS q WHERE c = {i}"


@dataclass(slots=True)
class Case:
    """An engine with readers."""

    readers: int
    on: bool
    engine: dsms.Engine
    seconds: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, readers: int, query: Query, on: bool = True) -> Case:
        engine = dsms.Engine(settings=Settings(shared_parts=on))
        engine.execute(DDL)
        for i in range(readers):
            engine.execute(f"CREATE QUERY q{i} AS {query(i)}")
        return cls(readers, on, engine)

    def take(self, number: int, rows: int) -> None:
        """A frame of each stream: rows 1 ms apart, the same for all cases."""
        rng = np.random.default_rng(number)
        at = (number * rows + np.arange(rows)) * 1000
        a = {"k": rng.integers(0, 20_000, rows), "v": rng.integers(0, 100, rows)}
        b = {"k": rng.integers(0, 20_000, rows), "w": rng.integers(0, 100, rows)}
        a |= {"n": rng.random(rows), "t": at}
        b |= {"m": rng.random(rows), "t": at}

        def run() -> None:
            self.engine.ingest("a", a)
            self.engine.ingest("b", b)

        self.seconds.append(took(run).cpu)

    def results(self, readers: int) -> list[int]:
        return [self.engine.next_seq(f"q{i}") for i in range(readers)]

    def state(self) -> int:
        (rows,) = self.engine.execute("SHOW QUERIES FULL")
        return sum(rows.data.column("state_bytes").to_pylist())  # type: ignore[union-attr]


def section(options: Options) -> Section:
    """Rates and state."""
    many, frames, rows = (
        options.pick(100, 100, 8),
        options.pick(15, 5, 3),
        options.pick(10_000, 10_000, 200),
    )
    kinds = {
        "Readers of a join, conditions that are looked up": looked_up,
        "Readers of a join, conditions on both sides": both_sides,
        "Readers of groups": grouped,
    }
    return Section(
        "Equal parts of many queries",
        __doc__ or "",
        [Table(name, HEADER, _lines(many, q, frames, rows)) for name, q in kinds.items()],
    )


def _lines(many: int, query: Query, frames: int, rows: int) -> tuple[tuple[str, ...], ...]:
    cases = [Case.of(many, query, on=False), Case.of(many, query), Case.of(1, query)]
    for number in range(frames + 1):
        for case in cases:
            case.take(number, rows)
    alone, shared, one = cases
    same("results of each reader", shared.results(many), alone.results(many))
    same("results of the first reader", one.results(1), alone.results(1))
    rates = [2 * rows / statistics.median(c.seconds[1:]) for c in cases]  # the first: cold code
    states = [c.state() for c in cases]
    return tuple(
        (
            str(case.readers),
            "yes" if case.on else "no",
            shown(rate),
            str(sum(case.results(case.readers))),
            shown(state),
            ratio(rate / rates[0]),
            ratio(state / states[0]),
        )
        for case, rate, state in zip(cases, rates, states, strict=True)
    )
