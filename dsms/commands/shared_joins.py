"""Joins at work, and who stands on them: they are exchanged once for all queries that share them.

Queries that have a part of their plans in common each have a plan of their own, with numbers of
their own for what they read.  What takes the place of the joins is told to each in its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dsms.operators.pieces import Look, go_on
from dsms.periodic.incremental import Incremental
from dsms.plan.options import PlanOptions
from dsms.plan.parts import keys_of, node_at
from dsms.plan.physical import Phys
from dsms.plan.rejoin import Joins, Shape, Unfit, inputs, number, places, put_in, renumbered
from dsms.running.exchanging import Exchange, Later
from dsms.running.measuring import Figures
from dsms.running.part import Part
from dsms.running.pipeline import Path
from dsms.running.prepare import builder_for
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.running.splitting import Unit, located, places_of

Measured = Mapping[int, Figures]  # by the number of the input


def running_of(query: Registered) -> RunningQuery | None:
    """What runs its joins: itself, or what a periodic query moves from boundary to boundary; None:
    nothing does, or for points between rows instead of instants."""
    if isinstance(query, RunningQuery):
        return query
    evaluator = getattr(query, "evaluator", None)
    if type(evaluator) is Incremental and evaluator.numbers is None:
        return evaluator.inner
    return None


def options_of(runtime: Runtime, query: Registered) -> PlanOptions:
    """By which it is planned."""
    found = PlanOptions.of(query.definition.options)
    return found if runtime.settings.optimize else replace(found, optimize=False)


def standing(runtime: Runtime, unit: Unit, path: Path) -> list[tuple[Unit, Path]]:
    """All queries and parts that stand on a part, each with where it has that place of the part."""
    if not isinstance(unit, Part):
        return []
    queries = [q for q in runtime.queries.values() if isinstance(q, RunningQuery) and q.shares]
    units: list[Unit] = [*runtime.dispatch.parts.values(), *queries]
    return [(u, (*at, *path)) for u in units if u is not unit for at in places_of(u, unit)]


def sharers(runtime: Runtime, query: RunningQuery, path: Path) -> Iterator[RunningQuery]:
    """Other queries that work and stand on the same joins at that place."""
    seen = {id(query)}
    for unit, _ in standing(runtime, *located(query, path)):
        if isinstance(unit, RunningQuery) and unit.failure is None and id(unit) not in seen:
            seen.add(id(unit))
            yield unit


def disagree(runtime: Runtime, query: RunningQuery, path: Path) -> str | None:
    """Why joins that several queries share are not changed for all; None: they may be."""
    own = dict(query.definition.options).get("joins", "auto")
    for other in sharers(runtime, query, path):
        options = dict(other.definition.options)
        if options.get("replan") == "never":
            return f"query {other.name} shares its joins, and has replan = never"
        if options.get("joins", "auto") != own or not options_of(runtime, other).optimize:
            return f"query {other.name} shares its joins, and says otherwise how it joins"
    return None


def place_of(query: RunningQuery, path: Path, measured: Measured) -> Path:
    """Where its plan has the joins of these inputs: at that path, if other joins above them have
    not moved them.  Raises Unfit where it has none."""
    for at in sorted(places(query.phys), key=lambda at: at != path):
        if numbers(query.phys, at).keys() == measured.keys():
            return at
    raise Unfit("it has no joins of these inputs")


def numbers(phys: Phys, path: Path) -> dict[int, Phys]:
    """The inputs of joins of a plan by their numbers, left to right."""
    return {number(found.node): found for _, found in inputs(node_at(phys, path))}


@dataclass(slots=True)
class Change:
    """Other joins, filled, beside those at work; and for each that stands on these where it has
    them, and the plan of the new ones in its numbers."""

    exchange: Exchange
    others: list[tuple[Unit, Path, Phys]]

    @property
    def units(self) -> list[Unit]:
        """All whose plans change, each once."""
        found = [self.exchange.unit, *(unit for unit, _, _ in self.others)]
        return list({id(unit): unit for unit in found}.values())

    def apply(self, runtime: Runtime) -> None:
        """The new joins are at work."""
        units = {id(unit) for unit in self.units}
        keys = [key for key, query in runtime.queries.items() if id(query) in units]
        runtime.parts.exchanged(self.exchange, keys)
        for unit, path, new in self.others:
            unit.phys = put_in(unit.phys, path, new)
        runtime.parts.joined(*keys)


def prepared(
    runtime: Runtime,
    query: RunningQuery,
    path: Path,
    shape: Shape,
    measured: Measured,
    look: Look = go_on,
) -> Change:
    """The joins at that place of a query's plan in another shape.  `look` is called between
    stretches of work; meanwhile nothing may move.

    Raises Unfit where they can't have it, Later where they can't now."""
    mine = numbers(query.phys, path)
    if mine.keys() != measured.keys():
        raise Unfit("it has other inputs")
    options, (unit, place) = options_of(runtime, query), located(query, path)

    def built(phys: Phys, at: Path) -> Phys:
        theirs = numbers(phys, at)
        if len(theirs) != len(mine):
            raise Unfit("its inputs can't be told apart")
        to = dict(zip(mine, theirs, strict=True))
        estimates = {to[k]: f.estimate(theirs[to[k]]) for k, f in measured.items()}
        return Joins(node_at(phys, at), estimates, options).built(renumbered(shape, to))

    new = built(unit.phys, place)
    others, key = [], keys_of(new)[()]
    for other, at in standing(runtime, unit, place):
        if isinstance(other, RunningQuery) and other.beginning:
            raise Later("a query that shares its joins is at its beginning")
        others.append((other, at, built(other.phys, at)))
        if keys_of(others[-1][2])[()] != key:
            raise Unfit("queries that share its joins would have other ones")
    made = Exchange(unit, place, new, builder_for(runtime, unit))
    made.fill(look)
    return Change(made, others)
