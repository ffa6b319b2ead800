"""Ways to schedule periodic queries that share synopses (Golab 2006, §8.5): how many re-executions they get done in a
second, and how late these are.

Eight groups of top-k and quantile queries over bandwidth by address, protocol, port and pairs of them; windows of 20 to
100 intervals, slides of 1 to half a window; a one-time query a second on average.  Work is real: an execution merges
the counters of a basic interval synopsis from the youngest interval to the oldest, answers shorter windows on the way,
and picks and sorts; answers are checked.  Time is virtual: each execution is charged the CPU time that it took.  A
*second* is the time between two updates of the synopses; it is chosen at the start, on this machine, so that 40 queries
without sharing ask for all the CPU there is at the low rate.  Both rates have the same second.  All groups wait in
one queue, and the scheduler never idles while an answer could be newer, as in Algorithms 9 to 11.

Throughput is re-executions a second, early ones too; *asked for* are those whose SLIDE had passed.  Latency is in
updates beyond the SLIDE, early executions count as 0.  HS, H-LS and H-LP choose their merging once, as in the thesis;
HS+ and H-LP+ (the default) follow the backlog.  Medians of three runs."""

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
from tests.benchmarks.harness import Options, Plot, Section, Table, clean_heap, ratio, same, shown
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
THESIS = ("No-S", "AS", "CS", "HS", "H-LS", "H-LP")
RATES = ("low", "high")
LOAD = 1.0  # of the fewest queries without sharing at the low rate
MEASURES = {  # of an outcome, in the words of the tables
    "throughput": "re-executions a second",
    "asked": "re-executions a second whose SLIDE had passed",
    "latency": "average lateness in updates",
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """tuples, values: a second and per attribute at the low rate;  counts: of queries;  updates: length of a run;
    check: one in so many executions is checked."""

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
    """throughput: re-executions a second;  asked: without early ones;  latency: average over queries of their average
    lateness;  worst: of one query;  joint: queries per execution;  cost: CPU seconds of an execution;  blocks: tasks
    that are scheduled;  share: of CPU time spent on post-processing."""

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
    """A rate's synopses, and what their parts cost: seconds to combine two intervals and to answer, by group."""

    groups: dict[str, Basic]
    running: Running
    combine: dict[str, float]
    post: dict[str, float]

    def tasks(self, group: str, queries: Iterable[Query]) -> list[Task]:
        return [
            Task(q.name, q.slide, q.window, weight=self.combine[group] * 1e6, post=self.post[group] * 1e6)
            for q in queries
        ]


def section(options: Options) -> Section:
    """All schedulers, all sizes, both rates."""
    sizes = Sizes.of(options)
    with clean_heap():
        loads = {rate: workload(sizes, 1 + (rate == "high"), in_place=False) for rate in RATES}
        second = calibrate(loads["low"], sizes.counts[0])
        found = {
            (rate, count, name): run(loads[rate], count, name, second, sizes, options.repeats)
            for rate in RATES
            for count in sizes.counts
            for name in SCHEDULERS
        }
        other = in_place(sizes)
    parts: list[Table | Plot] = []
    for rate in RATES:
        parts += _rate(rate, loads[rate], found, sizes, second)
    parts += [_claims(found, sizes), other]
    return Section("Multi-query scheduling", __doc__ or "", parts)


def workload(sizes: Sizes, factor: int, in_place: bool) -> Workload:
    """Synopses of a rate: `factor` times the tuples and the distinct values of the low one."""
    traffic = Traffic.random(sizes.tuples * factor, sizes.values * factor, seed=85)
    groups = {key: Basic(traffic.counters(key), in_place) for key in KEYS}
    probe = {key: queries_of(key, 6, seed=1) for key in KEYS}
    combine, post = {}, {}
    for key, synopsis in groups.items():
        spent = [(synopsis.execute(probe[key]), synopsis.spent) for _ in range(3)]
        scan, answers = (min(s[i] for _, s in spent) for i in (0, 1))
        combine[key], post[key] = scan / max(q.window for q in probe[key]), answers / len(probe[key])
    return Workload(groups, Running(traffic.counters("source")), combine, post)


def calibrate(load: Workload, count: int) -> float:
    """Length of a second: CPU time that `count` queries without sharing need between two updates, over `LOAD`."""
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


def run(load: Workload, count: int, name: str, second: float, sizes: Sizes, repeats: int) -> Outcome:
    """One scheduler over so many queries: medians."""
    outcomes = []
    for _ in range(repeats):
        machine = Machine(load, count, name, second, sizes.check)
        machine.run(sizes.updates)
        outcomes.append(machine.outcome(sizes.updates))
    return Outcome(*(statistics.median(getattr(o, f.name) for o in outcomes) for f in fields(Outcome)))


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
                same("one-time query", running.look_up(source, window, self.updates),
                     running.recomputed(source, window, self.updates))  # fmt: skip

    def outcome(self, updates: int) -> Outcome:
        late = []
        for key, queries in self.queries.items():
            for query in queries:
                fared = self.groups[key].lateness(query.name)
                late.append(fared.average if fared.executions else float(max(0, -fared.deadline)))
        blocks = sum(len(self.groups[key].blocks()) for key in KEYS)
        busy = self.scanning + self.answering
        runs = max(1, self.executions)
        return Outcome(self.executed / updates, self.asked / updates, statistics.mean(late), max(late),
                       self.executed / runs, busy / runs, blocks, self.answering / busy)  # fmt: skip


def _spent(call: Callable[[], object]) -> float:
    began = time.thread_time()
    call()
    return time.thread_time() - began


# ------------------------------------------------------------------ tables

NOTES = (
    "a ratio of throughputs is that of queries per execution over that of CPU time per execution: merging halves the "
    "number of scheduled tasks, as in the thesis, but what is merged scans as far as its longest window, answers each "
    "query apart, and CS's sub-groups meet now and then, too",
    "AS answers everything at every execution, which costs least per re-execution whatever scan and post-processing "
    "cost, so in overload hardly anything can re-execute more; the thesis's AS falls behind at the high rate, it does "
    "not say by what.  How much of that somebody asked for is the measure beside it",
    "best: within a twentieth of the best",
)
Found = dict[tuple[str, int, str], Outcome]


def _rate(rate: str, load: Workload, found: Found, sizes: Sizes, second: float) -> list[Table | Plot]:
    tuples = sizes.tuples * (1 + (rate == "high"))
    counters = max(s.cells for s in load.groups.values())
    about = (f"a second is {second * 1e3:.2f} ms of CPU time; {sizes.updates} updates; "
             f"{counters:,} counters in the largest group",)  # fmt: skip
    out: list[Table | Plot] = []
    for what, unit in MEASURES.items():
        values = {s: [getattr(found[rate, n, s], what) for n in sizes.counts] for s in SCHEDULERS}
        rows = tuple((str(n), *(shown(values[s][i]) for s in SCHEDULERS)) for i, n in enumerate(sizes.counts))
        title = f"At the {rate} rate, {tuples:,} tuples a second: {unit}"
        out.append(Table(title, ("queries", *SCHEDULERS), rows, about if what == "throughput" else ()))
        x = [float(n) for n in sizes.counts]
        lines = {s: (x, y) for s, y in values.items()}
        out.append(Plot(f"queries-{what}-{rate}.png", title, "queries", unit, lines, (False, False)))
    return [*out, _inside(rate, found, sizes)]


def _inside(rate: str, found: Found, sizes: Sizes) -> Table:
    def cell(f: Outcome) -> str:
        return f"{f.blocks:.0f} / {f.joint:.1f} / {100 * f.share:.0f} %"

    rows = tuple((str(n), *(cell(found[rate, n, s]) for s in SCHEDULERS)) for n in sizes.counts)
    title = f"At the {rate} rate: scheduled tasks / queries per execution / post-processing's share of CPU time"
    return Table(title, ("queries", *SCHEDULERS), rows)


def _claims(found: Found, sizes: Sizes) -> Table:
    """What Golab 2006, §8.5.2-8.5.4 found, and what came out here."""
    rows: list[tuple[str, ...]] = []
    for claim, rate, over, what, least in (
        ("HS at least doubles CS's throughput", "low", ("HS", "CS"), "throughput", 2.0),
        ("H-LP+, the default, at least doubles CS's throughput", "low", ("H-LP+", "CS"), "throughput", 2.0),
        ("CS is ten times as late as HS", "low", ("CS", "HS"), "latency", 10.0),
        ("H-LP more than doubles HS's throughput", "high", ("H-LP", "HS"), "throughput", 2.0),
    ):
        for n in sizes.counts:
            a, b = (found[rate, n, s] for s in over)
            gain = getattr(a, what) / getattr(b, what) if getattr(b, what) else float("inf")
            said = f"{ratio(gain)}, from {shown(getattr(b, what))}"
            if what == "throughput":
                said += f"; queries per execution {ratio(a.joint / b.joint)}, CPU time of one {ratio(a.cost / b.cost)}"
            rows.append((claim, rate, str(n), said, _verdict(gain >= least)))
    for who, others in (("H-LP", THESIS), ("H-LP+", tuple(SCHEDULERS))):
        for what, unit in MEASURES.items():
            rows += [_best(found, n, who, others, what, unit) for n in sizes.counts]
    return Table("Claims of the thesis", ("claim", "rate", "queries", "here", "holds"), tuple(rows), NOTES)


def _best(found: Found, count: int, who: str, others: tuple[str, ...], what: str, unit: str) -> tuple[str, ...]:
    """A scheduler within a twentieth of the best is as good as that: so much do runs differ on a busy machine."""
    values = {s: getattr(found["high", count, s], what) for s in others}
    if what == "latency":
        winner = min(values, key=values.__getitem__)
        holds = values[who] <= 1.05 * values[winner]
    else:
        winner = max(values, key=values.__getitem__)
        holds = values[who] >= 0.95 * values[winner]
    said = f"{who} {shown(values[who])}, best {winner} {shown(values[winner])}"
    return (f"{who} is best: {unit}", "high", str(count), said, _verdict(holds))


def _verdict(holds: bool) -> str:
    return "yes" if holds else "no"


def in_place(sizes: Sizes) -> Table:
    """The same where merging is cheap, so that there is less to share."""
    load, count = workload(sizes, 1, in_place=True), sizes.counts[-1]
    second = calibrate(load, sizes.counts[0])
    found = {s: run(load, count, s, second, sizes, 1) for s in SCHEDULERS}
    rows = tuple(
        (s, shown(f.throughput), shown(f.asked), shown(f.latency), f"{f.joint:.1f}", f"{100 * f.share:.0f} %")
        for s, f in found.items()
    )
    gain = found["HS"].throughput / found["CS"].throughput
    note = (
        "an interval's counters are added into an array in place, so that merging costs what the interval holds, not "
        f"what the window holds; a second is {second * 1e3:.2f} ms; throughput HS : CS {ratio(gain)}"
    )
    header = ("scheduler", "throughput", "asked for", "latency", "queries per execution", "post-processing")
    return Table(f"Cheap merging, less to share: {count} queries, low rate", header, rows, (note,))
