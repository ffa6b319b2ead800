"""How long slices hold the engine's thread: each one measured, summed up by kind, its offenders
named.

    with collected() as slices: ...; print(table(slices.groups))

Wall time is what others wait for; CPU time of the thread, and of one that works in its place
meanwhile (`Stretches`), is what the slice itself takes, on a machine that has other things to do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsms.running.stretches import Stretches
from dsms_server import worker
from dsms_server.watchdog import step

LIMIT = 0.02  # seconds
OFFENDERS = 40  # that are named
LOOK = 0.005  # between two looks at where a long slice is


@dataclass(slots=True)
class Group:
    """Slices of one kind: their seconds, wall and CPU, and what those were that were too long."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    long: list[tuple[float, str]] = field(default_factory=list)

    def add(self, wall: float, cpu: float, what: str) -> None:
        self.wall.append(wall)
        self.cpu.append(cpu)
        if cpu > LIMIT:
            self.long.append((cpu, what))

    def join(self, other: Group) -> None:
        self.wall += other.wall
        self.cpu += other.cpu
        self.long += other.long

    @property
    def longest(self) -> str:
        return max(self.long, default=(0.0, ""))[1]


@dataclass(slots=True)
class Slices:
    """Of all servers of this process; `phase` says what goes on, for the name of the group, and
    `place` where, for offenders."""

    phase: str = ""
    place: str = ""
    groups: dict[str, Group] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, wall: float, cpu: float, what: str) -> None:
        with self.lock:
            name = f"{self.phase}: {kind}" if self.phase else kind
            what = f"{self.place}: {what}" if self.place and what else what
            self.groups.setdefault(name, Group()).add(wall, cpu, what)


@contextmanager
def collected(
    places: bool = True, clock: Callable[[], float] = time.perf_counter
) -> Iterator[Slices]:
    """Measure the slices of all workers meanwhile.  `places`: find out, too, where in the code long
    ones are.  `clock`: seconds that pass."""
    slices, old, stretch = Slices(), worker.Worker._slice, Stretches.step
    elsewhere = threading.local()
    at: dict[worker.Worker, str] = {}
    known: set[worker.Worker] = set()

    def measured(self: worker.Worker, job: Any) -> None:
        known.add(self)
        at.pop(self, None)
        began, cpu, elsewhere.seconds = clock(), time.thread_time(), 0.0
        old(self, job)
        took, cpu = clock() - began, time.thread_time() - cpu + elsewhere.seconds
        what = f"{job.what[:30]!r} {self.query()}" if took > LIMIT else ""
        slices.add(job.kind, took, cpu, f"{at[self]}: {what}" if self in at else what)

    def stretched(self: Stretches[Any]) -> bool:
        began = _cpu(self._thread)
        over = stretch(self)
        elsewhere.seconds += max(0.0, _cpu(self._thread) - began)
        return over

    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(known, at, over, clock), daemon=True)
    worker.Worker._slice = measured  # type: ignore[method-assign]
    Stretches.step = stretched  # type: ignore[method-assign]
    if places:
        watcher.start()
    try:
        yield slices
    finally:
        over.set()
        worker.Worker._slice = old  # type: ignore[method-assign]
        Stretches.step = stretch  # type: ignore[method-assign]
        if places:
            watcher.join()


def _cpu(thread: threading.Thread) -> float:
    """Seconds of CPU that a thread has taken; 0 once it has ended."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0))
    except OSError:
        return 0.0


def _watch(
    known: set[worker.Worker],
    at: dict[worker.Worker, str],
    over: threading.Event,
    clock: Callable[[], float],
) -> None:
    while not over.wait(LOOK):
        now = clock()
        for one in list(known):
            if one.running is not None and now - one.began > LIMIT:
                here = step(one.ident)
                before = at.get(one, "")
                if not before.endswith(here):
                    at[one] = f"{before} > {here}" if before else here


def percentile(seconds: list[float], part: float) -> float:
    return float(np.quantile(seconds, part, method="higher")) if seconds else 0.0


def table(groups: Mapping[str, Group]) -> str:
    """Per group: how many slices, percentiles of their milliseconds, the longest and what it was,
    and the seconds of all; the worst group first."""
    total = Group()
    for group in groups.values():
        total.join(group)
    ordered = sorted(groups.items(), key=lambda kv: -max(kv[1].cpu))
    offenders: list[str] = []
    lines = [f"{'ms of CPU (max also wall)':44} {'count':>7} {'p50':>7} {'p99':>7} {'p99.9':>7} "
             f"{'max':>8} {'wall':>8} {'>20':>4} {'all s':>7}  offender"]  # fmt: skip  # a table
    for name, g in (*ordered, ("all", total)):
        p50, p99, p999 = (1000 * percentile(g.cpu, p) for p in (0.5, 0.99, 0.999))
        cpu, wall = (1000 * max(x, default=0.0) for x in (g.cpu, g.wall))
        over = sum(s > LIMIT for s in g.cpu)
        what = g.longest if cpu > 1000 * LIMIT else ""
        if name != "all":
            offenders += [f"{1000 * s:9.1f} {name}: {at}" for s, at in g.long]
        lines.append(
            f"{name:44} {len(g.cpu):7} {p50:7.2f} {p99:7.2f} {p999:7.2f} {cpu:8.1f} {wall:8.1f} "
            f"{over:4} {sum(g.cpu):7.2f}  {what[:120]}"
        )
    offenders = sorted(offenders, key=lambda line: -float(line[:9]))
    return "\n".join([*lines, "the longest:", *offenders[:OFFENDERS]])
