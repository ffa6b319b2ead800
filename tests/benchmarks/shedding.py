"""Load shedding (Golab 2006, section 2.4.3): five times as many rows as can be taken.

A stream `WITH (shed = random, shed_delay = 1 s)` is read by queries with a SLIDE of 1 s.  The rate
that is sustained is measured first: rows by the CPU time that they take when all are kept.  Then
five times as many come, in simulated time: a frame every 20 ms, which begins to be taken when it
has come and the one before it is done, and takes the CPU time that it takes.  (The smallest size
reckons with the kept rows alone, and measures nothing.)  Held against the rows that came: by how
much answers come after their boundary, at most and beside the delay and one SLIDE, and in how many
of them the true sum lies within 1.96 of the standard errors that are told.  The first two seconds,
in which the share is found, count for both.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.engine import Engine
from dsms.intake.shedding import Waited
from tests.benchmarks import shed_joins
from tests.benchmarks.harness import Options, Section, Table, WrongAnswer

S = 1_000_000
EVERY = 20_000  # µs between frames
LOAD = 5
KEYS = 64
INSIDE = 1.96
OTHER = 5
DECLARE = """
CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t WITH (shed = random, shed_delay = 1 s);
CREATE QUERY q AS SELECT k, SUM(v) AS v FROM s [RANGE 2 s SLIDE 1 s] GROUP BY k
WITH (shed = scale);
"""
OTHERS = """CREATE QUERY q{n} AS
SELECT v, k, COUNT(*) AS n FROM s [RANGE {n} s SLIDE {n} s] WHERE v > {n}
GROUP BY v, k HAVING COUNT(*) < 0;"""


@dataclass
class Run:
    """Rows in and answers out, by simulated time in µs.

    rate  rows a second where a row takes the same time always; None: the CPU time that it takes
    others  queries beside the one that is looked at"""

    rate: float | None
    others: int
    now: float = 0.0
    oldest: float = 0.0  # age of rows as they were taken, at most
    late: float = 0.0  # of answers, behind their boundary, at most
    kept: int = 0
    came: int = 0
    sums: list[np.ndarray] = field(default_factory=list)  # of each frame, by key
    answers: list[tuple[int, dict[int, tuple[float, float]]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = Engine()
        self.engine.execute(
            DECLARE + "".join(OTHERS.format(n=n) for n in range(1, 1 + self.others))
        )
        self.reader = self.engine.subscribe("q")
        self.rng = np.random.default_rng(7)

    def frame(self, count: int) -> dict[str, Any]:
        """As many rows, of the instants since the last frame."""
        k, v = self.rng.integers(0, KEYS, count), self.rng.integers(1, 101, count)
        self.sums.append(np.bincount(k, v, KEYS))
        came = len(self.sums) * EVERY
        t = came - EVERY + np.arange(count, dtype=np.int64) * EVERY // count
        return {"k": pa.array(k), "v": pa.array(v), "t": pa.array(t)}

    def take(self, count: int) -> float:
        """A frame comes, and is taken in its turn.  CPU seconds."""
        rows, came = self.frame(count), len(self.sums) * EVERY
        self.now = max(self.now, came)
        age = self.now - came
        began = time.process_time()
        report = self.engine.ingest("s", rows, waited=Waited(int(age), int(self.now)))
        self.engine.heartbeat("s", came - 1)
        cpu = time.process_time() - began
        took = cpu if self.rate is None else report.accepted / self.rate
        self.now += took * S
        self.oldest = max(self.oldest, age)
        self.kept, self.came = self.kept + report.accepted, self.came + count
        self._answered()
        return cpu

    def _answered(self) -> None:
        for push in self.reader.take():
            if push.data is None or push.at is None or push.kind == "snapshot":
                continue
            at = push.at + 1
            self.late = max(self.late, self.now - at)
            columns = (c.to_pylist() for c in push.data.columns)
            self.answers.append((at, {k: (v, e) for k, v, e in zip(*columns, strict=True)}))

    def inside(self) -> tuple[int, int]:
        """Of the sums that were told, how many have the true one within their errors; how many."""
        good = total = 0
        for at, found in self.answers:
            frames = self.sums[max(0, at - 2 * S) // EVERY : at // EVERY]
            true = np.sum(frames, axis=0)
            for k, (v, error) in found.items():
                total += 1
                good += abs(v - true[k]) <= INSIDE * error + 1e-9 * true[k]
        return good, total


def sustained(options: Options) -> float:
    """Rows a second that are taken where all are kept, in CPU time."""
    run = Run(None, OTHER)
    count = 4000
    run.engine.execute("ALTER STREAM s SET (shed = none)")
    for _ in range(25):
        run.take(count)
    frames = options.pick(150, 40, 0)
    return float(count * frames / sum(run.take(count) for _ in range(frames)))


def section(options: Options) -> Section:
    """The table.  Raises WrongAnswer where answers are late, or further off than they say."""
    rate = 20_000.0 if options.mode == "toy" else sustained(options)
    run = Run(*options.pick((None, OTHER), (None, OTHER), (rate, 0)))
    count = max(1, int(LOAD * rate * EVERY / S))
    for _ in range(options.pick(40, 8, 8) * S // EVERY):
        run.take(count)
    good, total = run.inside()
    if options.mode == "toy" and (good < 0.9 * total or run.late > 2 * S):
        raise WrongAnswer(f"{good} of {total} within their errors, {run.late / S:.2f} s late")
    table = Table(
        f"{LOAD} times as many rows as are taken",
        ("", "found", "asked for"),
        (
            ("rows a second that are taken, all kept", f"{rate:,.0f}", ""),
            ("rows a second that came", f"{count * S / EVERY:,.0f}", ""),
            ("share of them kept", f"{run.kept / run.came:.1%}", ""),
            ("age of rows as they are taken, at most", f"{run.oldest / S:.2f} s", ""),
            ("answers after their boundary, at most", f"{run.late / S:.2f} s", "2 s"),
            ("sums within their errors", f"{good / total:.1%} of {total}", "93 %"),
        ),
    )
    about = "\n\n".join((__doc__ or "", shed_joins.__doc__ or ""))
    parts = [table, shed_joins.table(options)]
    return Section("Load shedding (Golab 2006, section 2.4.3)", about, parts)
