"""CREATE QUERY ... ON LOOKUP, and LOOKUP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dsms.api import Cancel, Rows, shown_instant
from dsms.commands.approximate import check_approximate
from dsms.commands.lookup_index import indexed, probed, readable
from dsms.commands.periodic import announce
from dsms.commands.periodic_alone import recall
from dsms.commands.periodic_shared import settle
from dsms.errors import UsageError
from dsms.operators.answers import Answer
from dsms.operators.expressions import ErrorCounter
from dsms.periodic.counted import fits, over_numbers
from dsms.periodic.lookup import LookupQuery, Waiting, lookup_span
from dsms.plan.paths import choose, lookup_paths, unfollowed
from dsms.plan.physical import Phys
from dsms.plan.planner import notes
from dsms.plan.windows import newest
from dsms.reads.partial import partial_from
from dsms.running.approximation import approximate
from dsms.running.behind import rows_behind
from dsms.running.paused import PausedQuery
from dsms.running.prepare import assembled
from dsms.running.results import ResultLog
from dsms.running.runtime import ENDED, Runtime
from dsms.running.shed import share_of
from dsms.sharing.member import Above, Member
from dsms.sharing.request import Request, request
from dsms.sharing.threshold import apart, seeking
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder.lookup_values import bind_values, shown
from dsms.sql.binder.lookups import bind_lookup
from dsms.sql.catalog import Catalog, QueryDef
from dsms.sql.expr import Lit
from dsms.sql.open_values import parts, with_values
from dsms.sql.types import ALWAYS
from dsms.sql.window import NO_SLIDE, Slide


def lookup_query(runtime: Runtime, definition: QueryDef, bound: lp.Output) -> LookupQuery:
    """The query, ready to be asked."""
    sort = bound.child if isinstance(bound.child, lp.Sort) else None
    answer = sort.child if sort else bound.child
    ready, above = parts(answer) if definition.parameters else (answer, ())
    core = lp.Output(ready, "rstream", True, False, None, ready.schema)
    query = _ready(runtime, definition, bound, core, sort)
    query.above = above
    if definition.parameters:
        if dict(definition.options).get("on_error") == "stop":
            query.errors.mode = "stop"  # where only what is done with the values can fail, too
        query.notes = (*query.notes, _asked_with(definition))
    return query


def _asked_with(definition: QueryDef) -> str:
    return f"its answer depends on values: LOOKUP {definition.name}{shown(definition.parameters)}"


def _ready(
    runtime: Runtime,
    definition: QueryDef,
    bound: lp.Output,
    core: lp.Output,
    sort: lp.Sort | None,
) -> LookupQuery:
    """The query; `core`: what of its plan is kept ready."""
    phys = runtime.plan(replace(bound, kind="rstream", explicit=True), definition.options)
    wanted, counted = _wanted(runtime, definition, core)
    path = choose(
        lookup_paths(
            wanted is not None, _indexed(runtime, definition, phys, core), unfollowed(phys.node)
        ),
        str(dict(definition.options).get("path", "auto")),
    )
    check_approximate(
        dict(definition.options), path.kind, wanted, any_value=bool(definition.parameters)
    )
    if wanted is not None and path.kind == "SS":
        return _from_synopses(runtime, definition, phys, core, sort, wanted, counted)
    if path.kind == "WS":
        return probed(runtime, definition, phys, core, sort)
    inner = assembled(runtime, definition, runtime.plan(core, definition.options), ResultLog(0))
    query = LookupQuery(
        definition,
        phys,
        ResultLog(0),
        inner.errors,
        inner.streams,
        inner.tables,
        inner.state_limit,
        evaluator=Waiting(inner),
        sort=sort,
    )
    query.notes = notes(phys)
    recall(runtime, query, core, False)
    return query


def _indexed(runtime: Runtime, definition: QueryDef, phys: Phys, core: lp.Output) -> bool | None:
    """Whether its rows are found by indices when it is asked; None: it can't be read then."""
    plan = phys.node
    if definition.parameters:  # a row may fail in nothing that is kept ready
        plan = runtime.plan(core, definition.options).node
    if not readable(plan):
        return None
    return runtime.settings.window_index and indexed(plan) is not None


def _wanted(runtime: Runtime, definition: QueryDef, core: lp.Output) -> tuple[Request | None, bool]:
    """What it asks of synopses."""
    if dict(definition.options).get("on_error") == "stop":
        return None, False
    counted = any(
        isinstance(n, lp.Window) and newest(n.spec) is not None for n in lp.nodes_of(core)
    ) and fits(core)
    root = runtime.plan(over_numbers(core) if counted else core, definition.options).node
    assert isinstance(root, lp.Output)
    found = request(root.child, NO_SLIDE)
    if found is None:
        return None, False
    declared = runtime.inputs[found.stream].definition.subwindow
    span = 1 if counted else (declared or lookup_span(found.length, found.until))
    return replace(found, slide=Slide(span, by_rows=counted)), counted


def _from_synopses(
    runtime: Runtime,
    definition: QueryDef,
    phys: Phys,
    core: lp.Output,
    sort: lp.Sort | None,
    wanted: Request,
    counted: bool,
) -> LookupQuery:
    limit = int(dict(definition.options).get("max_state", runtime.settings.state_bytes))
    errors, stream = ErrorCounter.of_query(limit), wanted.stream
    entry = runtime.inputs[stream]
    options = dict(definition.options)
    member = runtime.shared.join(
        wanted, errors, counted, entry.definition.subwindow, not apart(options)
    )
    member.seeking = seeking(options)
    member.seeking.any_value = bool(definition.parameters)
    query = LookupQuery(
        definition,
        phys,
        ResultLog(0),
        errors,
        {0: stream},
        (),
        limit,
        evaluator=member,
        sort=sort,
    )
    query.elastic = True
    query.notes = notes(phys)
    settle(runtime, member, query, core, counted)
    if definition.parameters:
        member.same = 0  # its request does not say which groups are in its answer
    return query


def start_lookup(runtime: Runtime, definition: QueryDef, bound: lp.Output) -> tuple[str, ...]:
    """Register it; what the user should know."""
    key = definition.home
    query = lookup_query(runtime, definition, bound)
    runtime.dispatch.register(key, query)
    runtime.answers.known(key, runtime.catalog)
    runtime.clocks.reads(key, query.reads)
    return announce(runtime, query)


def lookup(
    runtime: Runtime, statement: ast.Lookup, catalog: Catalog, cancel: Cancel | None
) -> Rows:
    """LOOKUP q: the answer as of the latest complete sub-window, or of now."""
    definition = bind_lookup(statement, catalog)
    query = runtime.queries[definition.home]
    if isinstance(query, PausedQuery):
        query.check()
        raise UsageError(
            "DS430", f"query {query.name} is paused", hint=f"RESUME QUERY {query.name}"
        )
    assert isinstance(query, LookupQuery)
    clock = runtime.clock_of(query.reads)
    group = query.evaluator.group if isinstance(query.evaluator, Member) else None
    if group is not None and runtime.clocks.query_clock(query.reads) >= ENDED:
        clock = max(clock, group.over(clock))
    query.check()
    finish = _finish(query, bind_values(statement, definition, catalog))
    boundary = clock + 1 if group is None else group.latest(clock)
    rows, at = query.ask(clock, boundary, cancel, finish)
    types = tuple(str(f.type) for f in query.output.schema)
    late = catalog.sees_late(query.reads)
    behind = None if late else rows_behind(runtime, query.reads, clock)
    approximately, kept = approximate(runtime.queries, [query.home]), share_of(runtime, query)
    as_of = None if clock == ALWAYS else shown_instant(at)
    since = partial_from(runtime, query, at)
    lacks = since, approximately, kept
    return Rows(query.batch(rows), types, as_of, behind, *lacks)


def _finish(query: LookupQuery, values: tuple[Lit, ...]) -> Callable[[Answer], Answer] | None:
    """What is done with what was kept ready, where that depends on values of LOOKUP: a member of a
    group does it itself, so that an index may find its groups."""
    if not query.above:
        return None
    member, steps = query.evaluator, with_values(query.above, values)
    if isinstance(member, Member):
        member.ask_above(steps)
        return None
    above = Above(steps, 0, query.errors)

    def finish(rows: Answer) -> Answer:
        cols, _, n = above.run(list(rows.cols), rows.n)
        return Answer(n, tuple(cols)).in_order()

    return finish
