"""What the query scheduler sees: periodic queries as tasks, and sub-groups of them that always run
together.

Periods are counted in updates: at an update all synopses of the group take in one more interval
(Golab 2006, §8.4.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dsms.errors import InternalError, UsageError
from dsms.sql.suggest import hint

Technique = Literal["none", "aggressive", "conservative", "hybrid"]
Sharing = Literal["", "late", "late-pending"]

TECHNIQUES: tuple[Technique, ...] = ("none", "aggressive", "conservative", "hybrid")
SHARINGS: tuple[Sharing, ...] = ("", "late", "late-pending")


@dataclass(frozen=True, slots=True)
class Task:
    """One registered periodic query.

    name      unique in its group
    period    n: updates between two executions at most, >= 1
    length    intervals in its window, >= 1
    priority  larger first where deadlines are equal
    weight    cost of combining two intervals (for instance the number of groups)
    post      cost of what follows the scan at each execution (sorting for TOPK...), in the same
              unit
    same      queries of the same `same` differ in nothing but their period (rule CS8); None: like
              no other
    """

    name: str
    period: int
    length: int
    priority: int = 0
    weight: float = 1.0
    post: float = 0.0
    same: str | None = None

    def __post_init__(self) -> None:
        if self.period < 1 or self.length < 1 or self.weight < 0 or self.post < 0:
            raise InternalError("DS930", f"{self} is no task; please report this")


@dataclass(frozen=True, slots=True)
class Lateness:
    """How a task fares.  Lateness of an execution: updates between it and the one before, beyond
    the period that the query asked for; early ones count as 0.

    last, average  lateness of the last execution, and of all (0 if there was none)
    executions     so far
    deadline       d(T): updates left until it should have run again; negative: it is late by so
                   many
    period         updates between executions now, after merging and sharing; at most what the query
                   asked for
    """

    last: int
    average: float
    executions: int
    deadline: int
    period: int


@dataclass(frozen=True, slots=True)
class SubGroup:
    """Tasks of one period, executed together always.

    access   cost of the scan that answers all of them
    post     sum of what follows the scan
    members  names, highest priority first, then in order of registration
    """

    period: int
    access: float
    post: float = 0.0
    members: tuple[str, ...] = ()


Block = tuple[SubGroup, ...]  # merged sub-groups, shortest period first: it is the period of all


def check_technique(technique: str, sharing: str) -> tuple[Technique, Sharing]:
    """Both, if there are such; raises UsageError DS420."""
    techniques = {str(t): t for t in TECHNIQUES}
    sharings = {str(s): s for s in SHARINGS}
    if technique not in techniques:
        message = (
            f"unknown technique `{technique}` of the query scheduler; there are "
            f"{', '.join(TECHNIQUES)}"
        )
        raise UsageError("DS420", message, hint=hint(technique, list(techniques)))
    if sharing not in sharings:
        message = (
            f"unknown sharing `{sharing}` of the query scheduler; there are late, "
            "late-pending and none (empty)"
        )
        raise UsageError("DS420", message, hint=hint(sharing, [s for s in SHARINGS if s]))
    return techniques[technique], sharings[sharing]


def shared_periods(tasks: Iterable[Task]) -> dict[str, int]:
    """The period of each task under rule CS8: of queries that differ only in their period all take
    the shortest, since the others can have the answers of that one.  When it is removed, they go
    back."""
    tasks = list(tasks)
    shortest: dict[str, int] = {}
    for task in tasks:
        if task.same is not None:
            shortest[task.same] = min(task.period, shortest.get(task.same, task.period))
    return {t.name: t.period if t.same is None else shortest[t.same] for t in tasks}
