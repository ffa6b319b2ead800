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

What is decided depends on how rows came, and is written down where it was done: a restart does the
same there, and decides nothing itself.  Answers don't depend on it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from dsms.commands.store import Store
from dsms.commands.succeeding import stand
from dsms.errors import DsmsError
from dsms.plan.options import PlanOptions
from dsms.plan.parts import node_at
from dsms.plan.rejoin import Joins, Shape, Unfit, inputs, number, places
from dsms.running import watching
from dsms.running.chosen import Chosen
from dsms.running.exchanging import Exchange
from dsms.running.faults import too_much_state
from dsms.running.measuring import Figures
from dsms.running.pipeline import Path
from dsms.running.prepare import builder_for
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered, is_hidden
from dsms.running.runtime import Runtime
from dsms.running.watching import Watch
from dsms.sql.types import ALWAYS

RECORD = "replanned"  # in the journal: the joins of a query have another shape from here on


def options_of(runtime: Runtime, query: RunningQuery) -> PlanOptions:
    """By which it is planned."""
    found = PlanOptions.of(query.definition.options)
    return found if runtime.settings.optimize else replace(found, optimize=False)


def why_never(runtime: Runtime, query: Registered) -> str | None:
    """Why its plan is never changed; None: it may be."""
    if not isinstance(query, RunningQuery):
        return "it is no continuous query"
    if dict(query.definition.options).get("replan") == "never":
        return "WITH (replan = never)"
    if not options_of(runtime, query).optimize:
        return "it runs as it is written"
    if next(places(query.phys), None) is None:
        return "it joins no three inputs"
    return None


@dataclass(slots=True)
class Replanner:
    """Looks at all queries.  Nothing here is stored.

    watched  by query (`id`, since names change), with what is watched of it
    known    what was registered when that was last found out
    made     how many plans it has changed
    """

    store: Store
    watched: dict[int, tuple[Registered, list[Watch]]] = field(default_factory=dict)
    known: tuple[object, ...] = ()
    made: int = 0

    def look(self, runtime: Runtime) -> None:
        """Between two inputs: change the plans for which it is time."""
        if runtime.replaying or runtime.settings.safe_mode:
            return
        known = (id(runtime.dispatch), runtime.dispatch.count, len(runtime.queries))
        if known != self.known:
            self.known = known
            self._find(runtime)
        for query, watches in list(self.watched.values()):
            for watch in watches:
                if watch.is_due and _ready(runtime, query) and self._looked(runtime, watch):
                    break

    def _find(self, runtime: Runtime) -> None:
        """Which queries there are."""
        before = self.watched
        self.watched = {}
        for query in runtime.queries.values():
            if query.beginning or is_hidden(query.home):
                self.known = ()  # look again
                continue
            _, watches = before.get(id(query), (query, None))
            if watches is None:
                watches = _watches(query)
            for watch in watches:
                if not watch.there:
                    watch.begun()
            if watches:
                self.watched[id(query)] = query, watches

    def _looked(self, runtime: Runtime, watch: Watch) -> bool:
        """Look, and change the plan if it is time for that; whether it was changed."""
        query = watch.query
        asked = dict(query.definition.options).get("replan_after")
        patience = watch.patience(None if asked is None else int(asked))
        found = watch.look(options_of(runtime, query), patience)
        if query.chosen.blind:  # now it is not any more
            query.chosen = replace(query.chosen, blind=False)
            watch.rest()
        if found is None:
            return False
        better, measured = found
        cost, best = shown(better.cost), shown(better.best)
        why = f"its joins cost {cost} row operations a second, these {best}"
        try:
            self.change(runtime, query, watch.path, better.shape, measured, why)
        except (Unfit, DsmsError) as problem:
            watch.give_up(str(problem))
            return False
        return True

    def change(
        self,
        runtime: Runtime,
        query: RunningQuery,
        path: Path,
        shape: Shape,
        measured: dict[int, Figures],
        why: str,
    ) -> None:
        """Give the joins at that place of its plan another shape.

        Raises Unfit where they can't have it, DS630 where its state would be too large, and what
        writing it down raises: then nothing has changed."""
        key = query.home
        stand(runtime, key)
        exchange = prepared(runtime, query, path, shape, measured)
        plain = {str(k): f.plain() for k, f in measured.items()}
        body = json.dumps([key, list(path), shape, plain, why]).encode()
        self.store(lambda s: None, RECORD, body)
        exchanged(runtime, query, exchange, why)
        self.made += 1
        if id(query) in self.watched:
            self.watched[id(query)] = query, _watches(query)


def _watches(query: Registered) -> list[Watch]:
    return list(watching.watches(query)) if isinstance(query, RunningQuery) else []


def _ready(runtime: Runtime, query: Registered) -> bool:
    """Whether it runs, and nothing of it is under way."""
    if not isinstance(query, RunningQuery) or query.failure is not None or query.flow is not None:
        return False
    return query.clock > ALWAYS and why_never(runtime, query) is None


def prepared(
    runtime: Runtime, query: RunningQuery, path: Path, shape: Shape, measured: dict[int, Figures]
) -> Exchange:
    """Other joins, filled, beside those at work."""
    old = node_at(query.phys, path)
    inside = {number(phys.node): phys for _, phys in inputs(old)}
    if inside.keys() != measured.keys():
        raise Unfit("it has other inputs")
    estimates = {k: measured[k].estimate(phys) for k, phys in inside.items()}
    new = Joins(old, estimates, options_of(runtime, query)).built(shape)
    made = Exchange(query, path, new, builder_for(runtime, query))
    made.fill()
    if made.nbytes > query.state_limit:
        raise too_much_state(query.name, made.nbytes, query.state_limit)
    return made


def exchanged(runtime: Runtime, query: RunningQuery, exchange: Exchange, why: str) -> None:
    """The new joins are at work."""
    exchange.take_place()
    query.chosen = Chosen(query.clock, why, query.chosen.changes + 1)
    runtime.parts.replanned(query.home)


def again(runtime: Runtime, body: bytes) -> None:
    """The record of a change comes back."""
    key, path, shape, plain, why = json.loads(body)
    stand(runtime, key)
    query = runtime.queries[key]
    assert isinstance(query, RunningQuery)
    measured = {int(k): Figures.of(f) for k, f in plain.items()}
    exchange = prepared(runtime, query, tuple(path), shape, measured)
    exchanged(runtime, query, exchange, why)


def shown(cost: float) -> str:
    """A cost, in three digits."""
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.3g}"
