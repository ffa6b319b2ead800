"""Registering a query with SLIDE by its access path, giving it its turns, and forgetting it."""

from __future__ import annotations

from dsms.commands.periodic_alone import alone
from dsms.commands.periodic_plan import periodic_plan
from dsms.commands.periodic_registration import Registration
from dsms.commands.periodic_scan import scanned
from dsms.commands.periodic_shared import shared
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.periodic.query import PeriodicQuery
from dsms.plan.boundaries import next_boundary
from dsms.running.beginning import missing, partial
from dsms.running.runtime import Runtime
from dsms.schedulers.tasks import Task
from dsms.sharing.member import Member
from dsms.sql import logical as lp
from dsms.sql.catalog import QueryDef
from dsms.sql.types import ALWAYS, FOREVER


def periodic_query(runtime: Runtime, definition: QueryDef, bound: lp.Output) -> PeriodicQuery:
    """The query, planned and assembled, with what the rings still hold of its past; not yet among
    the others."""
    plan = periodic_plan(runtime, bound, dict(definition.options))
    query = _evaluated(Registration(runtime, definition, bound, plan))
    query.why = plan.path.why
    _hear(runtime, query)
    return query


def _hear(runtime: Runtime, query: PeriodicQuery) -> None:
    """What is there already and later than the query's clock ends a silence, as what comes does."""
    for stream, ring in ((s, r) for s in query.reads if (r := runtime.rings.get(s)) is not None):
        for rows in ring.rows(query.clock):
            query.heard(stream, rows.ts)
    for table in dict.fromkeys(query.tables):
        query.heard(f"table {table}", runtime.tables[table].changed(query.clock))


def _evaluated(new: Registration) -> PeriodicQuery:
    match new.plan.path.kind:
        case "SS" | "ISS":
            return shared(new)
        case "WS":
            return scanned(new)
    return alone(new)


def schedule(runtime: Runtime, query: PeriodicQuery) -> None:
    """An elastic query waits for its turn, if `Engine.work` is called."""
    options = dict(query.definition.options)
    stamped = any(runtime.inputs[s].definition.stamped for s in query.reads)
    wanted = options.get("boundaries", "elastic" if stamped else "every")
    if not runtime.settings.deferred or wanted != "elastic" or query.feed is not None:
        return
    query.elastic, priority = True, int(options.get("priority", 0))
    if isinstance(query.evaluator, Member):
        member = query.evaluator
        member.group.backlog = runtime.backlog
        span = member.group.feed.span
        task = Task(
            query.name,
            max(1, query.slide.every // span),
            max(1, member.request.length // span),
            priority,
            same=str(member.same) if member.same else None,
        )
        runtime.backlog.add(member.group.name, member.group, task)
    else:
        runtime.backlog.add(query.name, query, Task(query.name, 1, 1, priority))


def unschedule(runtime: Runtime, query: EvaluatedQuery) -> None:
    """It waits for no turn any more."""
    unit = query.evaluator.group.name if isinstance(query.evaluator, Member) else query.name
    runtime.backlog.remove(unit, query.name)


def forget(runtime: Runtime, query: EvaluatedQuery) -> None:
    """The query is dropped: what it alone used goes with it."""
    unschedule(runtime, query)
    if isinstance(query.evaluator, Member):
        runtime.shared.leave(query.evaluator)
    for leaf, stream in query.streams.items():
        runtime.release(stream, f"query {query.name} ({leaf})")


def announce(runtime: Runtime, query: EvaluatedQuery) -> tuple[str, ...]:
    """What a user should know of a query just registered."""
    slide = query.output.slide
    if slide is not None and query.partial_until < FOREVER:
        first = next_boundary(slide, query.registered)
        if query.numbers is None and query.partial_until < first:
            query.partial_until = ALWAYS  # its first answer is whole
        if query.numbers is not None:
            query.full_at = tuple((s, at) for s, at in query.full_at if at > first)
    shown = partial(runtime, query)
    return query.notes if shown is None else (*query.notes, f"{missing(runtime, query)} {shown}")
