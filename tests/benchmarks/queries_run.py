"""Runs of `queries`: eight groups, one of the schedulers, a virtual clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from dsms.schedulers.edf import QueryScheduler
from dsms.schedulers.groups import Groups
from dsms.schedulers.hybrid import CostModel
from dsms.schedulers.tasks import Task
from tests.benchmarks.harness import Options, same
from tests.benchmarks.queries_work import KEYS, Basic, Query, Running, Traffic, queries_of

AS_PRINTED = CostModel(adaptive=False)
SCHEDULERS = {
    "No-S": ("none", "", AS_PRINTED),
    "AS": ("aggressive", "", AS_PRINTED),
    "CS": ("conservative", "", AS_PRINTED),
    "HS": ("hybrid", "", AS_PRINTED),
    "H-LS": ("hybrid", "late", AS_PRINTED),
    "H-LP": ("hybrid", "late-pending", AS_PRINTED),
    "HS+": ("hybrid", "", CostModel()),
    "H-LP+": ("hybrid", "late-pending", CostModel()),
}
LOAD = 1.0  # of the fewest queries without sharing at the low rate


@dataclass(frozen=True, slots=True)
class Sizes:
    """tuples, values: a second and per attribute at the low rate;  counts: of queries;  updates:
    length of a run; check: one in so many executions is checked."""

    tuples: int
    values: int
    counts: tuple[int, ...]
    updates: int
    check: int

    @classmethod
    def of(cls, options: Options) -> Sizes:
        return options.pick(
            cls(1500, 1000, (40, 80, 160, 240), 200, 50),
            cls(300, 200, (40, 160), 150, 50),
            cls(40, 30, (16,), 30, 1),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """throughput: re-executions a second;  asked: without early ones;  latency: average over
    queries of their average lateness;  worst: of one query;  joint: queries per execution;  cost:
    CPU seconds of an execution;  blocks: tasks that are scheduled;  share: of CPU time spent on
    post-processing."""

    throughput: float
    asked: float
    latency: float
    worst: float
    joint: float
    cost: float
    blocks: float
    share: float


@dataclass(frozen=True, slots=True)
class Workload:
    """A rate's synopses, and what their parts cost: seconds to combine two intervals and to answer,
    by group."""

    groups: dict[str, Basic]
    running: Running
    combine: dict[str, float]
    post: dict[str, float]

    def tasks(self, group: str, queries: Iterable[Query]) -> list[Task]:
        return [
            Task(
                q.name,
                q.slide,
                q.window,
                weight=self.combine[group] * 1e6,
                post=self.post[group] * 1e6,
            )
            for q in queries
        ]


def workload(sizes: Sizes, factor: int, in_place: bool) -> Workload:
    """Synopses of a rate: `factor` times the tuples and the distinct values of the low one."""
    traffic = Traffic.random(sizes.tuples * factor, sizes.values * factor, seed=85)
    groups = {key: Basic(traffic.counters(key), in_place) for key in KEYS}
    probe = {key: queries_of(key, 6, seed=1) for key in KEYS}
    combine, post = {}, {}
    for key, synopsis in groups.items():
        spent = [(synopsis.execute(probe[key]), synopsis.spent) for _ in range(3)]
        scan, answers = (min(s[i] for _, s in spent) for i in (0, 1))
        combine[key], post[key] = (
            scan / max(q.window for q in probe[key]),
            answers / len(probe[key]),
        )
    return Workload(groups, Running(traffic.counters("source")), combine, post)


def calibrate(load: Workload, count: int) -> float:
    """Length of a second: CPU time that `count` queries without sharing need between two updates,
    over `LOAD`."""
    asked = 0.0
    for key in KEYS:
        scheduler = _scheduler(load, key, queries_of(key, count // len(KEYS)), "No-S")
        queries = {q.name: q for q in queries_of(key, count // len(KEYS))}
        for period, names in scheduler.blocks():
            window = max(queries[n].window for n in names)
            asked += (load.combine[key] * window + load.post[key] * len(names)) / period
    return asked / LOAD


def _scheduler(load: Workload, key: str, queries: list[Query], name: str) -> QueryScheduler:
    scheduler = QueryScheduler(*SCHEDULERS[name])
    for task in load.tasks(key, queries):
        scheduler.add(task)
    return scheduler


def run(
    load: Workload, count: int, name: str, second: float, sizes: Sizes, repeats: int
) -> Outcome:
    """One scheduler over so many queries: medians."""
    outcomes = []
    for _ in range(repeats):
        machine = Machine(load, count, name, second, sizes.check)
        machine.run(sizes.updates)
        outcomes.append(machine.outcome(sizes.updates))
    return Outcome(
        *(statistics.median(getattr(o, f.name) for o in outcomes) for f in fields(Outcome))
    )


class Machine:
    """A virtual clock, eight groups, and one queue for all (§8.5.1)."""

    def __init__(self, load: Workload, count: int, name: str, second: float, check: int) -> None:
        self.load, self.second, self.check = load, second, check
        self.queries = {key: queries_of(key, count // len(KEYS)) for key in KEYS}
        self.by_name = {q.name: q for some in self.queries.values() for q in some}
        self.groups = Groups("deadlines")
        for key in KEYS:
            self.groups.add(key, _scheduler(load, key, self.queries[key], name))
        self.now, self.updates = 0.0, 0
        self.executions = self.executed = self.asked = 0
        self.ran_at = dict.fromkeys(self.by_name, 0)
        self.scanning = self.answering = 0.0
        self.random = np.random.default_rng(count)

    def run(self, updates: int) -> None:
        """Until so many updates have come."""
        while self.updates < updates:
            key = self.groups.next_group(only_due=False)
            if key is None:
                self.now = max(self.now, (self.updates + 1) * self.second)
            else:
                self._execute(key)
            while self.updates < min(updates, int(self.now / self.second + 1e-9)):
                self._update()

    def _execute(self, key: str) -> None:
        scheduler, synopsis = self.groups[key], self.load.groups[key]
        names = scheduler.next(only_due=False)
        asked = [self.by_name[n] for n in names]
        answers = synopsis.execute(asked, self.updates)
        scan, post = synopsis.spent
        self.now += scan + post
        self.scanning += scan
        self.answering += post
        self.groups.charge(key, scan + post)
        scheduler.done(names)
        self.executions += 1
        self.executed += len(names)
        for query in asked:
            self.asked += self.updates - self.ran_at[query.name] >= query.slide
            self.ran_at[query.name] = self.updates
        if self.executions % self.check == 0:
            query = asked[self.executions % len(asked)]
            same(f"{query}", answers[query.name], synopsis.recomputed(query, self.updates))

    def _update(self) -> None:
        """All synopses take in an interval; one-time queries come once a second on average."""
        self.updates += 1
        for key in KEYS:
            self.groups[key].updated()
        for _ in range(self.random.poisson(1)):
            running, window = self.load.running, int(self.random.integers(20, 101))
            source = int(self.random.integers(running.cells))
            self.now += _spent(partial(running.look_up, source, window, self.updates))
            if self.updates % self.check == 0:
                same(
                    "one-time query",
                    running.look_up(source, window, self.updates),
                    running.recomputed(source, window, self.updates),
                )

    def outcome(self, updates: int) -> Outcome:
        late = []
        for key, queries in self.queries.items():
            for query in queries:
                fared = self.groups[key].lateness(query.name)
                late.append(fared.average if fared.executions else float(max(0, -fared.deadline)))
        blocks = sum(len(self.groups[key].blocks()) for key in KEYS)
        busy = self.scanning + self.answering
        runs = max(1, self.executions)
        return Outcome(
            self.executed / updates,
            self.asked / updates,
            statistics.mean(late),
            max(late),
            self.executed / runs,
            busy / runs,
            blocks,
            self.answering / busy,
        )


def _spent(call: Callable[[], object]) -> float:
    began = time.thread_time()
    call()
    return time.thread_time() - began
