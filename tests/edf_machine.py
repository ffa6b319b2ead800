"""Tasks of the query scheduler executed in simulated time."""

from __future__ import annotations

import random
from itertools import pairwise

from dsms.schedulers.edf import QueryScheduler
from dsms.schedulers.tasks import SHARINGS, TECHNIQUES, Task

SCHEDULERS = [
    (t, s) for t in TECHNIQUES for s in (SHARINGS if t in ("conservative", "hybrid") else ("",))
]


LP = ("hybrid", "late-pending")


class Machine:
    """Executes tasks in simulated time: an update each `step`, a joint execution costs what `cost`
    says.

    trace: (update count, names) of each execution;  gaps: updates between executions of each
    task."""

    def __init__(
        self, scheduler: QueryScheduler, cost, step: float = 1.0, only_due: bool = True
    ) -> None:
        self.scheduler, self.cost, self.step, self.only_due = scheduler, cost, step, only_due
        self.now, self.count = 0.0, 0
        self.trace: list[tuple[int, tuple[str, ...]]] = []
        self.ran: dict[str, list[int]] = {}

    def run(self, updates: int) -> Machine:
        until = self.count + updates
        while self.count < until:
            names = self.scheduler.next(self.only_due)
            if names:
                self.now += self.cost(names)
                self._updates()
                self.scheduler.done(names)
                self.trace.append((self.count, names))
                for name in names:
                    self.ran.setdefault(name, []).append(self.count)
            else:
                self.now = max(self.now, (self.count + 1) * self.step)
                self._updates()
        return self

    def _updates(self) -> None:
        fresh = int(self.now / self.step) - self.count
        if fresh > 0:
            self.scheduler.updated(fresh)
            self.count += fresh

    def gaps(self, name: str, since: int = 0) -> list[int]:
        times = [t for t in self.ran.get(name, []) if t >= since]
        return [b - a for a, b in pairwise(times)]


def random_tasks(seed: int, count: int) -> list[Task]:
    rng = random.Random(seed)
    found = []
    for i in range(count):
        length = rng.randint(20, 100)
        found.append(
            Task(
                f"q{i}",
                rng.randint(1, length // 2),
                length,
                rng.choice((0, 0, 1)),
                post=rng.choice((0, 5)),
            )
        )
    return found


def made(
    tasks: list[Task], technique: str = "hybrid", sharing: str = "late-pending"
) -> QueryScheduler:
    scheduler = QueryScheduler(technique, sharing)
    for task in tasks:
        scheduler.add(task)
    return scheduler


def scan(tasks: list[Task], unit: float):
    """Cost of a joint execution: the longest window, and each task's post-processing."""
    by_name = {t.name: t for t in tasks}
    return lambda names: (
        unit
        * (
            max(by_name[n].length - 1 for n in names)
            + sum(1 + by_name[n].post for n in names) * 0.2
        )
    )
