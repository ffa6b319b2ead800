"""Elastic queries: SLIDE bounds the updates between two evaluations from above (Golab 2006,
§8.4.1).

Where boundaries are elastic, queries are not evaluated as rows come but when there is time: an
update of their sub-windows brings their deadlines nearer, and `work` runs the most urgent ones,
together with those that may share, over the latest state.  So a burst of rows is taken in at once,
late queries catch up together, and overload lengthens periods instead of holding back the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from dsms.schedulers.edf import QueryScheduler
from dsms.schedulers.groups import Groups
from dsms.schedulers.tasks import Lateness, Task
from dsms.settings import Settings


class Unit(Protocol):
    """Queries that are scheduled by one local scheduler."""

    def refresh(self, names: tuple[str, ...]) -> None:
        """Evaluate those queries over the latest state, together."""
        ...


@runtime_checkable
class Sliced(Protocol):
    """A unit that is evaluated in slices, between which its windows may slide."""

    def slices(self) -> Iterator[None]: ...


@dataclass(slots=True)
class _Going:
    """An evaluation that has begun."""

    name: str
    scheduler: QueryScheduler
    queries: tuple[str, ...]
    steps: Iterator[None]


@dataclass(slots=True)
class _Known:
    unit: Unit
    scheduler: QueryScheduler
    tasks: dict[str, Task] = field(default_factory=dict)


@dataclass(slots=True)
class Backlog:
    """What waits to be evaluated."""

    settings: Settings
    groups: Groups = field(default_factory=Groups)
    units: dict[str, _Known] = field(default_factory=dict)
    technique: tuple[str, str] = ("", "")
    executions: int = 0
    going: _Going | None = None
    began: tuple[str, ...] = ()  # the queries of the evaluation that began last

    def add(self, name: str, unit: Unit, task: Task) -> None:
        """A query of the unit called `name`."""
        known = self.units.get(name)
        if known is None:
            known = _Known(unit, self._scheduler())
            self.units[name] = known
            self.groups.add(name, known.scheduler)
        known.tasks[task.name] = task
        known.scheduler.add(task)

    def remove(self, name: str, query: str) -> None:
        """The query is gone."""
        known = self.units.get(name)
        if known is None or query not in known.tasks:
            return
        if self.going is not None and self.going.name == name and query in self.going.queries:
            self._ended(self.going)
        known.scheduler.remove(query)
        del known.tasks[query]
        if not known.tasks:
            del self.units[name]
            self.groups.remove(name)

    def move(self, query: str, name: str, to: str, unit: Unit) -> None:
        """A query now belongs to another unit."""
        known = self.units.get(name)
        if known is not None and query in known.tasks:
            task = known.tasks[query]
            self.remove(name, query)
            self.add(to, unit, task)

    def updated(self, name: str, times: int) -> None:
        """The unit's sub-windows have moved on that often."""
        known = self.units.get(name)
        if known is not None and times > 0:
            self._follow_settings()
            self.units[name].scheduler.updated(times)

    def work(self, timer: Callable[[], float] | None = None) -> bool:
        """Run what is most urgent, or go on with what has begun, for a slice; False if nothing is
        due."""
        going = self.going or self._begun()
        if going is None:
            return False
        began, over = timer() if timer else 0.0, True
        try:
            over = next(going.steps, _OVER) is _OVER
        finally:
            self.groups.charge(going.name, max(timer() - began if timer else 1.0, 1e-6))
            if over:
                self._ended(going)
                self.executions += 1
        return True

    def _begun(self) -> _Going | None:
        name = self.groups.next_group()
        if name is None:
            return None
        known = self.units[name]
        names = known.scheduler.next()
        if not names:
            return None
        self.going, self.began = (
            _Going(name, known.scheduler, names, _slices(known.unit, names)),
            tuple(names),
        )
        return self.going

    def _ended(self, going: _Going) -> None:
        self.going = None
        going.steps.close()  # type: ignore[attr-defined]
        going.scheduler.done(going.queries)

    def pending(self) -> bool:
        """Whether a query is due, or being evaluated."""
        return self.going is not None or (bool(self.units) and self.groups.next_group() is not None)

    def lateness(self, query: str) -> Lateness | None:
        """How an elastic query fares; None for others."""
        return next(
            (k.scheduler.lateness(query) for k in self.units.values() if query in k.tasks), None
        )

    def _scheduler(self) -> QueryScheduler:
        self.technique = (self.settings.query_scheduler, self.settings.late_sharing)
        sharing = {"none": ""}.get(self.settings.late_sharing, self.settings.late_sharing)
        return QueryScheduler(self.settings.query_scheduler, sharing)

    def _follow_settings(self) -> None:
        """After SET query_scheduler the queries are scheduled anew."""
        if self.technique == (self.settings.query_scheduler, self.settings.late_sharing):
            return
        for name, known in list(self.units.items()):
            fresh = self._scheduler()
            for task in known.tasks.values():
                fresh.add(task)
            self.groups.remove(name)
            self.groups.add(name, fresh)
            known.scheduler = fresh

    def __iter__(self) -> Iterator[str]:
        return iter(self.units)


_OVER = object()


def _slices(unit: Unit, names: tuple[str, ...]) -> Iterator[None]:
    """The unit's evaluation; in one go unless it can be interrupted."""
    if isinstance(unit, Sliced):
        yield from unit.slices()
    else:
        unit.refresh(names)
