"""Plans follow the data: joins at work give way to others that cost much less for what comes now.

    looked    at each query of three joined inputs or more, whenever as many rows have come as make
              up a good part of what it keeps (so looking costs a small share of working): rates,
              sizes and key values of its inputs are measured (`dsms.running.measuring`), and if
              they have changed the best joins are searched for, by the planner's own costs
    decided   if the joins at work cost more than TOO_DEAR times the best ones, and have done so for
              `replan_after` of event time, doubled with each change before; at once where the plan
              was chosen before anything was known
    done      between two instants (`dsms.running.exchanging`): nobody is told anything, results go
              on with their numbers

Joins that several queries share are looked at for the first of these, and change for all of them
(`dsms.commands.shared_joins`).  What is decided depends on how rows came, and is written down where
it was done: a restart does the same there, and decides nothing itself.  Answers don't depend on it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dsms.commands.shared_joins import (
    Change,
    disagree,
    numbers,
    options_of,
    place_of,
    prepared,
    running_of,
    sharers,
    standing,
)
from dsms.commands.store import Store
from dsms.commands.succeeding import stand
from dsms.errors import DsmsError
from dsms.operators.pieces import Look, go_on
from dsms.periodic.query import PeriodicQuery
from dsms.plan.rejoin import Shape, Unfit, places, renumbered
from dsms.running import watching
from dsms.running.chosen import Chosen
from dsms.running.exchanging import Later
from dsms.running.faults import too_much_state
from dsms.running.measuring import Figures
from dsms.running.pipeline import Path
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered, is_hidden
from dsms.running.runtime import Runtime
from dsms.running.splitting import located
from dsms.running.stretches import Stretches
from dsms.running.watching import Watch
from dsms.sql.types import ALWAYS

LOG = logging.getLogger("dsms")
RECORD = "replanned"  # in the journal: the joins of a query have another shape from here on


def why_never(runtime: Runtime, query: Registered) -> str | None:
    """Why its plan is never changed; None: it may be."""
    running = running_of(query)
    if running is None:
        return "it keeps no joins from one instant to the next"
    if query.lets_go:
        return "WITH (over = shed)"
    if dict(query.definition.options).get("replan") == "never":
        return "WITH (replan = never)"
    if not options_of(runtime, query).optimize:
        return "it runs as it is written"
    if next(places(running.phys), None) is None:
        return "it joins no three inputs"
    return None


@dataclass(frozen=True, slots=True)
class Body:
    """What is decided: the joins at `path` get that shape, by those figures."""

    path: Path
    shape: Shape
    measured: dict[int, Figures]
    why: str

    def record(self, runtime: Runtime, key: str, running: RunningQuery) -> bytes:
        """What the journal has of it."""
        plain = {str(k): f.plain() for k, f in self.measured.items()}
        others = _others(runtime, running, self.path)
        said = [key, list(self.path), self.shape, plain, self.why, others]
        return json.dumps(said).encode()


@dataclass(frozen=True, slots=True)
class Going:
    """A change that is under way: the new joins are being given what is alive, and until they have
    it no query moves."""

    query: Registered
    watch: Watch
    body: Body
    filling: Stretches[Change]


@dataclass(slots=True)
class Replanner:
    """Looks at all queries.  Nothing here is stored.

    watched  by query (`id`, since names change), with what is watched of it: the query itself, or
             where nothing is the number under which it was registered, so that it may go
    active   those of them of which something is
    known    what was registered, and how parts were shared, when that was last found out
    made     how many plans it has changed
    going    the change under way, where calls of the engine may be left midway
    """

    store: Store
    watched: dict[int, tuple[Registered | int, list[Watch]]] = field(default_factory=dict)
    active: list[tuple[Registered, list[Watch]]] = field(default_factory=list)
    known: tuple[object, ...] = ()
    made: int = 0
    going: Going | None = None

    def look(self, runtime: Runtime) -> None:
        """Between two inputs: change the plans for which it is time."""
        if runtime.replaying or runtime.settings.safe_mode or self.going is not None:
            return
        dispatch = runtime.dispatch
        known = id(dispatch), dispatch.count, dispatch.found, len(runtime.queries)
        if known != self.known:
            self.known = known
            self._find(runtime)
        for query, watches in list(self.active):
            for watch in watches:
                try:
                    ready = watch.is_due and _ready(runtime, query, watch)
                    changed = ready and self._looked(runtime, query, watch)
                except Exception as fault:  # a bug of ours: its joins stay as they are
                    LOG.exception("the joins of %s can't be measured; please report", query.name)
                    watch.give_up(repr(fault))
                    continue
                if self.going is not None:
                    return
                if changed:
                    break

    def _find(self, runtime: Runtime) -> None:
        """Which queries there are."""
        before, self.watched, self.active = self.watched, {}, []
        led = set[tuple[int, Path]]()
        for key, query in runtime.queries.items():
            if query.beginning or is_hidden(query.home):
                self.known = ()  # look again
                continue
            number = runtime.dispatch.numbers[key]
            of, watches = before.get(id(query), (None, list[Watch]()))
            if of is not query and (not isinstance(of, int) or of != number):
                watches = _watches(query)
            for watch in watches:
                watch.follow(led)
            self.watched[id(query)] = query if watches else number, watches
            if watches:
                self.active.append((query, watches))

    def _looked(self, runtime: Runtime, query: Registered, watch: Watch) -> bool:
        """Look, and change the plan if it is time for that; whether it was changed."""
        running = watch.query
        some = [running, *sharers(runtime, running, watch.path)]
        asked = [dict(one.definition.options).get("replan_after") for one in some]
        longest = max((int(a) for a in asked if a is not None), default=None)
        found = watch.look(options_of(runtime, query), longest)
        if running.chosen.blind:  # now it is not any more
            for one in some:
                one.chosen = replace(one.chosen, blind=False)
            watch.rest()
        if found is None:
            return False
        better, measured = found
        cost, best = shown(better.cost), shown(better.best)
        why = f"its joins cost {cost} row operations a second, these {best}"
        body = Body(watch.path, better.shape, measured, why)
        over = runtime.settings.pause
        if over is None or runtime.beginnings:  # which go on whatever is under way
            return self._tried(watch, lambda: self._change(runtime, query, body))
        if not self._tried(watch, lambda: stand(runtime, query.home)):
            return False
        filling = Stretches(lambda rest: _filled(runtime, query, body, rest), over)
        self.going = Going(query, watch, body, filling)
        self.go_on(runtime)
        return True

    def go_on(self, runtime: Runtime) -> bool:
        """Go on with the change under way for a stretch; False if there is none, or none any
        more."""
        if self.going is None:
            return False
        if not self.going.filling.step():
            return True
        self.whole(runtime)
        return False

    def whole(self, runtime: Runtime) -> None:
        """Queries are about to move: what is left of the change is done now."""
        if self.going is None:
            return
        going, self.going = self.going, None
        self._tried(
            going.watch,
            lambda: self._made(runtime, going.query, going.body, going.filling.result()),
        )

    def _tried(self, watch: Watch, change: Callable[[], None]) -> bool:
        """Whether the change could be made."""
        try:
            change()
        except Later:
            return False
        except (Unfit, DsmsError) as problem:
            watch.give_up(str(problem))
            return False
        return True

    def change(
        self,
        runtime: Runtime,
        query: Registered,
        path: Path,
        shape: Shape,
        measured: dict[int, Figures],
        why: str,
    ) -> None:
        """Give the joins at that place of its plan another shape, for all that share them.

        Raises Unfit where they can't have it, DS630 where its state would be too large, and what
        writing it down raises: then nothing has changed."""
        self._change(runtime, query, Body(path, shape, measured, why))

    def _change(self, runtime: Runtime, query: Registered, body: Body) -> None:
        stand(runtime, query.home)
        self._made(runtime, query, body, _filled(runtime, query, body, go_on))

    def _made(self, runtime: Runtime, query: Registered, body: Body, change: Change) -> None:
        """The new joins have what is alive: they take the place of the old ones."""
        running = running_of(query)
        assert running is not None
        _check_limits(change)
        self.store(lambda s: None, RECORD, body.record(runtime, query.home, running))
        exchanged(runtime, change, body.why)
        self.made += 1
        for one in change.units:  # places of joins below may be others now
            self.watched.pop(id(one), None)
        self.watched.pop(id(query), None)
        self.known = ()


def _filled(runtime: Runtime, query: Registered, body: Body, look: Look) -> Change:
    running = running_of(query)
    assert running is not None
    return prepared(runtime, running, body.path, body.shape, body.measured, look)


def _watches(query: Registered) -> list[Watch]:
    running = running_of(query)
    slide = query.slide if isinstance(query, PeriodicQuery) else None
    return [] if running is None else list(watching.watches(running, slide))


def _ready(runtime: Runtime, query: Registered, watch: Watch) -> bool:
    """Whether it runs, nothing of it is under way, and none that shares its joins is against it."""
    running = watch.query
    if query.failure is not None or running.failure is not None or running.flow is not None:
        return False
    if running.clock <= ALWAYS or why_never(runtime, query) is not None:
        return False
    if disagree(runtime, running, watch.path) is None:
        return True
    watch.rest()
    return False


def _check_limits(change: Change) -> None:
    for unit in change.units:
        if isinstance(unit, RunningQuery) and change.exchange.nbytes > unit.state_limit:
            raise too_much_state(unit.name, change.exchange.nbytes, unit.state_limit)


def _others(runtime: Runtime, query: RunningQuery, path: Path) -> list[tuple[object, ...]]:
    """Of the other queries that stand on these joins: key, path, and its numbers of the inputs."""
    mine, found = numbers(query.phys, path), list[tuple[object, ...]]()
    for unit, at in standing(runtime, *located(query, path)):
        if isinstance(unit, RunningQuery) and (unit is not query or at != path):
            theirs = numbers(unit.phys, at)
            found.append((unit.home, at, [*zip(mine, theirs, strict=True)]))
    return found


def exchanged(runtime: Runtime, change: Change, why: str) -> None:
    """The new joins are at work."""
    change.apply(runtime)
    for unit in change.units:
        if isinstance(unit, RunningQuery):
            unit.chosen = Chosen(unit.clock, why, unit.chosen.changes + 1)


def again(runtime: Runtime, body: bytes) -> None:
    """The record of a change comes back.

    By now other queries may share these joins than did then, or not yet: each that did has the new
    ones afterwards, if it can.  Answers are the same with the old ones."""
    key, path, shape, plain, why, *more = json.loads(body)
    measured = {int(k): Figures.of(f) for k, f in plain.items()}
    done: list[RunningQuery] = []
    _again(runtime, key, tuple(path), shape, measured, why, done)
    for other, at, pairs in more[0] if more else ():
        to = dict(pairs)
        theirs = {to[k]: f for k, f in measured.items()}
        _again(runtime, other, tuple(at), renumbered(shape, to), theirs, why, done)


def _again(
    runtime: Runtime, key: str, path: Path, shape: Shape, measured: dict[int, Figures], why: str,
    done: list[RunningQuery],
) -> None:  # one after the other  # fmt: skip
    stand(runtime, key)
    query = running_of(runtime.queries[key])
    if query is None or any(query is one for one in done):
        return
    try:
        at = place_of(query, path, measured)
        change = prepared(runtime, query, at, shape, measured)
    except Unfit:
        return
    exchanged(runtime, change, why)
    done += [unit for unit in change.units if isinstance(unit, RunningQuery)]


def shown(cost: float) -> str:
    """A cost, in three digits."""
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.3g}"
