"""CREATE QUERY ... ON LOOKUP, and LOOKUP."""

from __future__ import annotations

from dataclasses import replace

from dsms.api import Cancel, Rows, shown_instant
from dsms.commands.lookup_index import indexed, probed, readable
from dsms.commands.periodic import announce
from dsms.commands.periodic_alone import recall
from dsms.commands.periodic_shared import settle
from dsms.errors import UsageError
from dsms.operators.expressions import ErrorCounter
from dsms.periodic.counted import fits, over_numbers
from dsms.periodic.lookup import LookupQuery, Waiting, lookup_span
from dsms.plan.paths import choose, lookup_paths
from dsms.plan.physical import Phys
from dsms.plan.planner import notes
from dsms.plan.windows import newest
from dsms.running.behind import rows_behind
from dsms.running.paused import PausedQuery
from dsms.running.prepare import assembled
from dsms.running.results import ResultLog
from dsms.running.runtime import ENDED, Runtime
from dsms.sharing.member import Member
from dsms.sharing.request import Request, request
from dsms.sharing.threshold import APART, seeking
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder.lookups import bind_lookup
from dsms.sql.catalog import Catalog, QueryDef
from dsms.sql.types import ALWAYS
from dsms.sql.window import NO_SLIDE, Slide


def lookup_query(runtime: Runtime, definition: QueryDef, bound: lp.Output) -> LookupQuery:
    """The query, ready to be asked."""
    sort = bound.child if isinstance(bound.child, lp.Sort) else None
    core = lp.Output(
        sort.child if sort else bound.child,
        "rstream",
        True,
        False,
        None,
        (sort.child if sort else bound.child).schema,
    )
    phys = runtime.plan(replace(bound, kind="rstream", explicit=True), definition.options)
    wanted, counted = _wanted(runtime, definition, core)
    path = choose(
        lookup_paths(wanted is not None, _indexed(runtime, phys)),
        str(dict(definition.options).get("path", "auto")),
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


def _indexed(runtime: Runtime, phys: Phys) -> bool | None:
    """Whether its rows are found by indices when it is asked; None: it can't be read then."""
    if not readable(phys.node):
        return None
    return runtime.settings.window_index and indexed(phys.node) is not None


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
    synopsis = dict(definition.options).get("synopsis")
    member = runtime.shared.join(
        wanted, errors, counted, entry.definition.subwindow, synopsis not in APART
    )
    member.seeking = seeking(synopsis)
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
    rows, at = query.ask(clock, clock + 1 if group is None else group.latest(clock), cancel)
    types = tuple(str(f.type) for f in query.output.schema)
    late = catalog.sees_late(query.reads)
    behind = None if late else rows_behind(runtime, query.reads, clock)
    return Rows(query.batch(rows), types, None if clock == ALWAYS else shown_instant(at), behind)
