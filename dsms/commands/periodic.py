"""Registering a query with SLIDE: which access path it takes, and what it can have of the past."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dsms.commands.explain import plan_query
from dsms.errors import QueryError
from dsms.operators.expressions import ErrorCounter
from dsms.plan.identity import by_value, width
from dsms.plan.physical import Phys
from dsms.plan.planner import notes
from dsms.running.counted import Numbers, fits, is_counted, over_numbers
from dsms.running.history import pasts, rows_of, whole_from
from dsms.running.incremental import Collected, Incremental, inner_output, lazily, monotonic
from dsms.running.periodic import Evaluator, PeriodicQuery
from dsms.running.results import ResultLog
from dsms.running.sharing.join_request import JoinRequest, join_request
from dsms.running.sharing.member import Member
from dsms.running.sharing.request import Request, request
from dsms.schedulers.tasks import Task
from dsms.sql import logical as lp
from dsms.sql.catalog import Option, QueryDef
from dsms.sql.types import ALWAYS, FOREVER

if TYPE_CHECKING:
    from dsms.engine import Engine


@dataclass(frozen=True, slots=True)
class Plan:
    """phys   what EXPLAIN shows;  core, inner: the continuous query whose answers are reported, and its plan
    wanted    what it asks of synopses, if they can answer it;  path: IS, WS, SS or ISS
    """

    phys: Phys
    core: lp.Output
    inner: Phys
    counted: bool
    wanted: Request | JoinRequest | None
    path: str


def periodic_plan(engine: Engine, bound: lp.Output, options: dict[str, Option]) -> Plan:
    """How a bound query with SLIDE is evaluated."""
    phys = plan_query(engine, bound, options.items())
    output = phys.node
    assert isinstance(output, lp.Output) and bound.slide is not None
    core = inner_output(lp.Output(bound.child, output.kind, True, bound.restore, bound.slide, bound.schema),
                        monotonic(phys))  # fmt: skip
    counted = is_counted(bound)
    if counted:
        if not fits(core):
            raise QueryError("DS396", "a SLIDE in rows needs windows that all count the rows of one stream", hint=None)
        over = over_numbers(core)
        assert isinstance(over, lp.Output)
        core = over
    inner = plan_query(engine, core, options.items())
    wanted: Request | JoinRequest | None = None
    root = inner.node
    assert isinstance(root, lp.Output)
    may_share = not bound.restore and options.get("on_error") != "stop" and bound.slide.zone is None
    if may_share:
        wanted = request(root.child, bound.slide) if bound.slide.slide_calendar is None else None
    asked = str(options.get("path", "auto"))
    import importlib.util

    if importlib.util.find_spec("dsms.synopses.choose") is None:
        wanted = None
    if wanted is None and not counted and may_share:
        wanted = join_request(root.child, bound.slide)
    path = "IS" if wanted is None or asked in ("is", "ws") else "SS"
    return Plan(phys, core, inner, counted, wanted, path)


def periodic_query(engine: Engine, definition: QueryDef, bound: lp.Output) -> PeriodicQuery:
    """The query, planned and assembled, with what the rings still hold of its past; not yet among the others."""
    plan = periodic_plan(engine, bound, dict(definition.options))
    return _shared(engine, definition, bound, plan) if plan.path == "SS" else _alone(engine, definition, bound, plan)


def _query(engine: Engine, definition: QueryDef, bound: lp.Output, plan: Plan, evaluator: Evaluator,
           errors: ErrorCounter, streams: dict[int, str], tables: tuple[str, ...]) -> PeriodicQuery:  # fmt: skip
    settings, options = engine.world.settings, dict(definition.options)
    log = ResultLog(int(options.get("result_log", settings.result_log_rows)), settings.result_log_bytes)
    sort = bound.child if isinstance(bound.child, lp.Sort) else None
    ids = 0 if by_value(bound.child) else width(plan.core.child)
    limit = int(options.get("max_state", settings.state_bytes))
    query = PeriodicQuery(definition, plan.phys, log, errors, streams, tables, limit,
                          evaluator=evaluator, sort=sort, width=ids)  # fmt: skip
    query.notes = notes(plan.phys)
    return query


# ---------------------------------------------------------------- from shared synopses


def _shared(engine: Engine, definition: QueryDef, bound: lp.Output, plan: Plan) -> PeriodicQuery:
    world, errors = engine.world, ErrorCounter()
    wanted = plan.wanted
    if isinstance(wanted, JoinRequest):
        return _joined(engine, definition, bound, plan, wanted)
    assert wanted is not None
    stream, entry = wanted.stream, world.inputs[wanted.stream]
    member = world.shared.join(wanted, errors, plan.counted, entry.definition.subwindow)
    query = _query(engine, definition, bound, plan, member, errors, {0: stream}, ())
    first = entry.next_arrival - entry.waiting
    query.registered = first if plan.counted else world.clock_of((stream,))
    query.clock = query.registered
    query.partial_until = world.shared.settle(member, query, world.rings.get(stream), world.handed_on(stream), first)
    query.numbers = member.numbers
    if stream in world.first_rows:
        query.begin(world.first_rows[stream])
    return query


def _joined(engine: Engine, definition: QueryDef, bound: lp.Output, plan: Plan, wanted: JoinRequest) -> PeriodicQuery:
    world, errors = engine.world, ErrorCounter()
    member = world.shared.joins.join(wanted, errors, world, str(dict(definition.options).get("synopsis", "auto")))
    streams = {p.leaf: p.stream for p in pasts(plan.core.child)}
    query = _query(engine, definition, bound, plan, member, errors, streams, ())
    query.registered = query.clock = world.clock_of(query.reads)
    query.partial_until = world.shared.joins.settle(member, query, world)
    return query


def schedule(engine: Engine, query: PeriodicQuery) -> None:
    """An elastic query waits its turn, if there is somebody to call `Engine.work`."""
    world, options = engine.world, dict(query.definition.options)
    stamped = any(world.inputs[s].definition.timestamp is None for s in query.reads)
    wanted = options.get("boundaries", "elastic" if stamped else "every")
    if not world.settings.deferred or wanted != "elastic":
        return
    query.elastic, priority = True, int(options.get("priority", 0))
    if isinstance(query.evaluator, Member):
        member = query.evaluator
        member.group.backlog = world.backlog
        span, beat = member.group.feed.span, query.beat.slide or 1
        task = Task(query.name, max(1, beat // span), max(1, member.request.length // span), priority)
        world.backlog.add(member.group.name, member.group, task)
    else:
        world.backlog.add(query.name, query, Task(query.name, 1, 1, priority))


def forget(engine: Engine, query: PeriodicQuery) -> None:
    """The query is dropped: what it alone used goes with it."""
    unit = query.evaluator.group.name if isinstance(query.evaluator, Member) else query.name
    engine.world.backlog.remove(unit, query.name)
    if isinstance(query.evaluator, Member):
        engine.world.shared.leave(query.evaluator)


# ---------------------------------------------------------------- by itself


def _alone(engine: Engine, definition: QueryDef, bound: lp.Output, plan: Plan) -> PeriodicQuery:
    world = engine.world
    output = plan.phys.node
    assert isinstance(output, lp.Output)
    beat = bound.slide if lazily(plan.inner, output) else None
    inner = world.assembled(definition, plan.inner, Collected(0), beat, bound.restore)
    evaluator = Incremental(inner, bound.restore)
    query = _query(engine, definition, bound, plan, evaluator, inner.errors, inner.streams, inner.tables)
    recall(engine, query, plan.core, plan.counted)
    return query


def recall(engine: Engine, query: PeriodicQuery, core: lp.Output, counted: bool) -> None:
    """What the rings hold of its past goes in; what they don't is told."""
    world = engine.world
    clock = world.clock_of(query.reads) if query.reads else ALWAYS
    past = list(pasts(core.child))
    fronts = {s: world.handed_on(s) for s in query.reads}
    query.registered = clock
    if counted:
        (stream,) = query.reads
        entry = world.inputs[stream]
        query.numbers = Numbers(entry.next_arrival - entry.waiting)
        query.evaluator.numbers = query.numbers
        query.registered = query.numbers.first
    for p in past:
        rows = rows_of(p, world.rings.get(p.stream), clock)
        for source in query.evaluator.leaf_sources(p.leaf):
            for batch in rows:
                source.push(batch)
    query.evaluator.seed(ALWAYS if counted else query.registered)
    query.clock = query.registered
    query.partial_until = whole_from(past, world.rings, fronts, clock)


def announce(query: PeriodicQuery) -> tuple[str, ...]:
    """What a user should know of a query just registered."""
    if query.partial_until <= ALWAYS or query.numbers is not None:
        return query.notes
    from dsms.intake.values import instant_text

    until = "for ever" if query.partial_until >= FOREVER else f"until {instant_text(query.partial_until)}"
    return (*query.notes, f"its windows reach back to rows that are gone: answers are partial {until}")
