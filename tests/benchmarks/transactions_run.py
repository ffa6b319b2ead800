"""Runs transactions of §7.5 under one scheduler on a virtual clock.

Every read, answer and call of the scheduler is done for real, and the CPU time it took, times a
constant, passes on the virtual clock; window updates and one-time queries come when that clock says
so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dsms.schedulers.transaction_reads import Read
from dsms.schedulers.transactions import TransactionScheduler
from tests.benchmarks.harness import same
from tests.benchmarks.transactions_work import Group, OneTime, SubWindow, sub_windows

RING = "packets"


@dataclass(frozen=True, slots=True)
class Setting:
    """seconds   of a sub-window;  windows: how many sub-windows;  periodic: queries, in groups of
              five
    one_time  queries in a sub-window's time
    rate      packets in a second;  updates: for how many sub-windows' time it runs
    """

    seconds: float
    windows: int
    periodic: int
    one_time: int
    rate: int
    updates: int


@dataclass(slots=True)
class Load:
    """Sub-windows, the first `windows` of which are there at the start; queries; when one-time
    queries come."""

    setting: Setting
    data: list[SubWindow]
    groups: list[Group]
    one_time: list[tuple[float, OneTime]]

    @classmethod
    def of(cls, setting: Setting, seed: int, copy: int) -> Load:
        """Random, from the seed.  Copies differ in addresses and sizes of packets, in nothing
        else."""
        rng, rows = np.random.default_rng(seed), int(setting.rate * setting.seconds)
        data = sub_windows(
            setting.windows + setting.updates, rows, rng, np.random.default_rng((seed, copy))
        )
        groups = [Group(rng, setting.windows) for _ in range(setting.periodic // 5)]
        end, at, queries = setting.updates * setting.seconds, 0.0, []
        while setting.one_time:
            at += rng.exponential(setting.seconds / setting.one_time)
            if at >= end:
                break
            queries.append((at, OneTime(rng, setting.windows)))
        return cls(setting, data, groups, queries)


@dataclass(slots=True)
class Seen:
    """What came out, in virtual seconds; response times from a query's arrival on."""

    staleness: list[float] = field(default_factory=list)
    response: list[float] = field(default_factory=list)
    between: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Doing:
    """A transaction under way."""

    query: Group | OneTime
    since: float
    parts: dict[int, object] = field(default_factory=dict)


class Run:
    """One scheduler under one load.

    speed   virtual seconds in a CPU second
    checks  how many answers of each query are compared with the packets themselves
    """

    def __init__(self, kind: str, load: Load, speed: float, checks: int) -> None:
        self.kind, self.load, self.speed, self.checks = kind, load, speed, checks
        self.clock, self.end = 0.0, load.setting.updates * load.setting.seconds
        self.scheduler = TransactionScheduler(kind)
        self.scheduler.ring(RING, load.setting.windows, newest=load.setting.windows - 1)
        self.doing: dict[int, Doing] = {}
        self.done: dict[int, float] = {}
        self.checked: dict[int, int] = {}
        self.periodic, self.one_time = Seen(), Seen()
        self.commits: list[float] = []
        self.pinned, self._updates, self._arrivals = 0, 0, 0

    def steps(self) -> Iterator[None]:
        """A read after the other, until the time is over."""
        for group in self.load.groups:
            self._begin(group)
        while self.clock < self.end:
            self._arrive()
            self._step()
            yield

    def _charge(self, since: float) -> None:
        self.clock += (time.thread_time() - since) * self.speed

    def _begin(self, query: Group | OneTime, at: float | None = None) -> None:
        since = time.thread_time()
        id = self.scheduler.begin({RING: query.length}, query.priority)
        self._charge(since)
        self.doing[id] = Doing(query, self.clock if at is None else at)

    def _arrive(self) -> None:
        setting = self.load.setting
        while (
            self._updates < setting.updates and (self._updates + 1) * setting.seconds <= self.clock
        ):
            self._updates += 1
            since = time.thread_time()
            aborted = self.scheduler.write(RING)
            self._charge(since)
            for id in aborted:
                self.doing[id].parts.clear()
            self.pinned = max(self.pinned, len(self.scheduler.pinned(RING)))
        while (
            self._arrivals < len(self.load.one_time)
            and self.load.one_time[self._arrivals][0] <= self.clock
        ):
            at, query = self.load.one_time[self._arrivals]
            self._arrivals += 1
            self._begin(query, at)

    def _step(self) -> None:
        since = time.thread_time()
        read = self.scheduler.next()
        assert read is not None, "periodic queries never end"
        doing = self.doing[read.transaction]
        doing.parts[read.number] = doing.query.read(self.load.data[read.number])
        committed = self.scheduler.read(read)
        answer = doing.query.answer(doing.parts, read.newest) if committed else ()  # type: ignore[arg-type]
        self._charge(since)
        if committed:
            del self.doing[read.transaction]
            self._check(doing, read, answer)
            self._note(doing, read)

    def _check(self, doing: Doing, read: Read, answer: Sequence[float]) -> None:
        query, newest = doing.query, read.newest
        same(
            f"{self.kind}: sub-windows",
            sorted(doing.parts),
            list(range(newest - query.length + 1, newest + 1)),
        )
        if self.kind in ("lws", "ttu"):
            same(f"{self.kind}: state", newest, self.load.setting.windows - 1 + self._updates)
        if self.checked.get(id(query), 0) < self.checks:
            self.checked[id(query)] = self.checked.get(id(query), 0) + 1
            window = self.load.data[newest - query.length + 1 : newest + 1]
            same(f"{self.kind}: answer", answer, query.expected(window))

    def _note(self, doing: Doing, read: Read) -> None:
        self.commits.append(self.clock)
        reflected = (read.newest - self.load.setting.windows + 1) * self.load.setting.seconds
        seen = self.one_time if isinstance(doing.query, OneTime) else self.periodic
        seen.staleness.append(self.clock - reflected)
        seen.response.append(self.clock - doing.since)
        if isinstance(doing.query, Group):
            key = id(doing.query)
            if key in self.done:
                seen.between.append(self.clock - self.done[key])
            self.done[key] = self.clock
            self._begin(doing.query)


def compare(
    kinds: Sequence[str], setting: Setting, seed: int, speed: float, checks: int
) -> dict[str, Run]:
    """All of them under the same load, a read of each in turn, so that whatever else the machine
    does hits them alike.  Each has its own copy of the data, and the first turn equally often: no
    cache, no branch predictor knows it yet."""
    runs = {
        kind: Run(kind, Load.of(setting, seed, k), speed, checks) for k, kind in enumerate(kinds)
    }
    turns = [run.steps() for run in runs.values()]
    while turns:
        turns = [steps for steps in turns if next(steps, True) is None]
        turns = turns[1:] + turns[:1]
    return runs


def calibrate(rate: int, windows: int, seed: int = 7) -> float:
    """Virtual seconds in a CPU second, so that a group over so many sub-windows of a second takes a
    second: "nearly every transaction incurs a concurrent window movement" (§7.5.2)."""
    rng = np.random.default_rng(seed)
    data, costs = sub_windows(windows, rate, rng, rng), []
    for group in [Group(rng, windows) for _ in range(20)]:
        since = time.thread_time()
        parts = {k: group.read(data[k]) for k in range(windows - group.length, windows)}
        group.answer(parts, windows - 1)
        costs.append(time.thread_time() - since)
    return 1 / float(np.mean(costs[2:]))
