"""Registering a query with SLIDE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsms.commands.explain import plan_query
from dsms.plan.identity import by_value, width
from dsms.plan.planner import notes
from dsms.running.counted import Numbers, fits, is_counted, over_numbers
from dsms.running.history import pasts, rows_of, whole_from
from dsms.running.incremental import Collected, Incremental, inner_output, lazily, monotonic
from dsms.running.periodic import PeriodicQuery
from dsms.running.results import ResultLog
from dsms.sql import logical as lp
from dsms.sql.catalog import QueryDef
from dsms.sql.types import ALWAYS, FOREVER

if TYPE_CHECKING:
    from dsms.engine import Engine


def periodic_query(engine: Engine, definition: QueryDef, bound: lp.Output) -> PeriodicQuery:
    """The query, planned and assembled, with what the rings still hold of its past; not yet among the others."""
    world, options = engine.world, dict(definition.options)
    phys = plan_query(engine, bound, definition.options)
    output = phys.node
    assert isinstance(output, lp.Output)
    counted = is_counted(bound)
    core = inner_output(lp.Output(bound.child, output.kind, True, bound.restore, bound.slide, bound.schema),
                        monotonic(phys))  # fmt: skip
    if counted and fits(core):
        over = over_numbers(core)
        assert isinstance(over, lp.Output)
        core = over
    inner_phys = plan_query(engine, core, definition.options)
    beat = bound.slide if lazily(inner_phys, output) else None
    inner = world.assembled(definition, inner_phys, Collected(0), beat, bound.restore)
    evaluator = Incremental(inner, bound.restore)
    settings = world.settings
    log = ResultLog(int(options.get("result_log", settings.result_log_rows)), settings.result_log_bytes)
    sort = bound.child if isinstance(bound.child, lp.Sort) else None
    ids = 0 if by_value(bound.child) else width(core.child)
    query = PeriodicQuery(definition, phys, log, inner.errors, inner.streams, inner.tables, inner.state_limit,
                          evaluator=evaluator, sort=sort, width=ids)  # fmt: skip
    query.notes = notes(phys)
    _recall(engine, query, core, counted)
    return query


def _recall(engine: Engine, query: PeriodicQuery, core: lp.Output, counted: bool) -> None:
    """What the rings hold of its past goes in; what they don't is told."""
    world = engine.world
    clock = world.clock_of(query.reads) if query.reads else ALWAYS
    past = list(pasts(core.child))
    fronts = {s: world.handed_on(s) for s in query.reads}
    if counted:
        (stream,) = query.reads
        entry = world.inputs[stream]
        query.numbers = query.evaluator.numbers = Numbers(entry.next_arrival - entry.waiting)
        query.registered = query.numbers.first
    else:
        query.registered = clock
    for p in past:
        rows = rows_of(p, world.rings.get(p.stream), clock)
        for source in query.evaluator.leaf_sources(p.leaf):
            for batch in rows:
                source.push(batch)
    query.evaluator.seed(query.registered - 1 if counted else query.registered)
    query.clock = query.registered
    query.partial_until = whole_from(past, world.rings, fronts, clock)


def announce(query: PeriodicQuery) -> tuple[str, ...]:
    """What a user should know of a query just registered."""
    if query.partial_until <= ALWAYS:
        return query.notes
    from dsms.intake.values import instant_text

    until = "for ever" if query.partial_until >= FOREVER else f"until {instant_text(query.partial_until)}"
    return (*query.notes, f"its windows reach back to rows that are gone: answers are partial {until}")
