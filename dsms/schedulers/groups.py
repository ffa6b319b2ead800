"""Which group of queries may run next: the scheduler above the local ones (Golab 2006, §8.4.2).

Slices     Each group has a weight.  What its executions cost is charged to it, and the ready group
           that has had least for its weight is next; so groups that always have something to do
           share time as their weights say, and one that seldom has is served soon.  Time not used
           is not saved up: a group that has been idle goes on from where the others are.  Equal
           ones: the highest priority, then the lowest deadline, then the earliest registered.
Deadlines  One queue for all groups, as in §8.5: the lowest d(T) of any group, then priority, then
           slices as above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dsms.errors import InternalError
from dsms.schedulers.edf import QueryScheduler


@dataclass(slots=True)
class _Group:
    scheduler: QueryScheduler
    weight: float
    order: int
    had: float = 0.0  # charged / weight
    ready: bool = False  # when last looked at


class Groups:
    """Local schedulers by name."""

    def __init__(self, policy: Literal["slices", "deadlines"] = "slices") -> None:
        self.policy = policy
        self._groups: dict[str, _Group] = {}
        self._order = 0
        self._now = 0.0  # what the group served last had had

    def add(self, name: str, scheduler: QueryScheduler, weight: float = 1.0) -> None:
        """Register a group; `weight` > 0 is its share of time."""
        if name in self._groups or weight <= 0:
            raise InternalError(
                "DS930", f"group {name} of weight {weight} can't be scheduled; please report this"
            )
        self._groups[name] = _Group(scheduler, weight, self._order, self._now)
        self._order += 1

    def remove(self, name: str) -> None:
        """Forget a group."""
        del self._groups[name]

    def __getitem__(self, name: str) -> QueryScheduler:
        return self._groups[name].scheduler

    def __len__(self) -> int:
        return len(self._groups)

    def next_group(self, only_due: bool = True) -> str | None:
        """The group to run next, None if none has anything to run; ask its scheduler for `next`,
        then `charge` it."""
        best: tuple[tuple, str] | None = None
        for name, group in self._groups.items():
            found = group.scheduler.peek(only_due)
            if found is not None and not group.ready:
                group.had = max(group.had, self._now)
            group.ready = found is not None
            if found is not None:
                key = self._key(group, *found)
                best = min(best, (key, name)) if best else (key, name)
        if best is None:
            return None
        self._now = max(self._now, self._groups[best[1]].had)
        return best[1]

    def _key(self, group: _Group, deadline: int, priority: int) -> tuple:
        if self.policy == "deadlines":
            return deadline, -priority, group.had, group.order
        return group.had, -priority, deadline, group.order

    def charge(self, name: str, cost: float = 1.0) -> None:
        """The group has used so much time (any unit, the same for all)."""
        if name in self._groups:
            self._groups[name].had += cost / self._groups[name].weight
