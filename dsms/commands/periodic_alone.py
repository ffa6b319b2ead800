"""A query with SLIDE that is evaluated by operators of its own, and what it gets of the past."""

from __future__ import annotations

from dsms.commands.periodic_counted import come, governing
from dsms.commands.periodic_registration import Registration
from dsms.operators.timeline import Timeline
from dsms.periodic.counted import Numbers
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.periodic.incremental import Collected, Incremental, lazily, own_slides
from dsms.periodic.query import PeriodicQuery
from dsms.periodic.timed import Timed
from dsms.running.beginning import look_back
from dsms.running.current import past_rows
from dsms.running.late_reads import late_memory
from dsms.running.past import pasts
from dsms.running.prepare import assembled
from dsms.running.runtime import Runtime
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS


def alone(new: Registration) -> PeriodicQuery:
    """The query with operators of its own."""
    runtime, bound, plan = new.runtime, new.bound, new.plan
    output = plan.phys.node
    assert isinstance(output, lp.Output)
    slide = bound.slide if not plan.timed and lazily(plan.inner, output) else None
    timeline = Timeline(memory=late_memory(plan.inner.node)) if plan.timed else None
    log = Collected(0)
    inner = assembled(runtime, new.definition, plan.inner, log, slide, bound.restore, timeline)
    own = () if bound.restore or bound.slide is None else own_slides(bound, bound.slide)
    evaluator = Incremental(inner, bound.restore, slides=own)
    if timeline is not None:
        counted = inner.streams[governing(plan.inner.node, bound)]
        evaluator = Timed(inner, bound.restore, timeline=timeline, counted=counted)
    query = new.query(evaluator, inner.errors, inner.streams, inner.tables)
    recall(runtime, query, bound, plan.counted)
    return query


def recall(runtime: Runtime, query: EvaluatedQuery, core: lp.Output, counted: bool) -> None:
    """What the rings hold of its past goes in; what they lack is reported."""
    clock = runtime.clock_of(query.reads) if query.reads else ALWAYS
    past = list(pasts(core.child))
    query.registered_at(clock)
    if isinstance(query.evaluator, Timed):
        _count(runtime, query, query.evaluator, clock)
    elif counted:
        (stream,) = query.reads
        entry = runtime.inputs[stream]
        query.numbers = Numbers(entry.next_complete)
        query.evaluator.numbers = query.numbers
        query.registered = query.numbers.first
    for p in past:
        rows = past_rows(runtime, p, clock)
        for source in query.evaluator.leaf_sources(p.leaf):
            for batch in rows:
                source.push(batch)
    query.evaluator.seed(ALWAYS if counted else query.registered)
    query.clock = query.registered
    look_back(runtime, query, past, clock)


def _count(runtime: Runtime, query: EvaluatedQuery, evaluator: Timed, clock: int) -> None:
    """Rows later than the clock are counted; those up to it that the ring has kept are known."""
    rows = come(runtime, evaluator.counted, clock)
    query.numbers = Numbers(rows.next)
    evaluator.count(query.numbers, rows.next - len(rows.earlier), rows.earlier)
    query.registered = rows.next
