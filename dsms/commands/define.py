"""CREATE and DROP of streams, tables and queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from dsms.api import Cancel, Done
from dsms.archiving.archiving import Archiving
from dsms.archiving.opening import archive_of, connect_query, connect_stream
from dsms.commands.archives import Heartbeat, created
from dsms.commands.archives import go_on as go_on_behind
from dsms.commands.existing import there_already
from dsms.commands.feeding import catch_up, check_running, fed_anew, feed, forget_stream, starve
from dsms.commands.lookup import start_lookup
from dsms.commands.periodic import announce, forget, periodic_query, schedule
from dsms.commands.quotas import check_queries
from dsms.commands.rights import check_role
from dsms.commands.store import Store
from dsms.errors import DsmsError, UsageError
from dsms.operators.pieces import go_on
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.plan.planner import notes
from dsms.python_functions.cutting import CUT
from dsms.running.beginning import begin, beginning
from dsms.running.faults import CANCELLED
from dsms.running.prepare import prepare
from dsms.running.query import RunningQuery
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import (
    bind_create_query,
    bind_create_stream,
    bind_create_table,
    bind_derived_stream,
    check_late_places,
    taken_by,
)
from dsms.sql.catalog import Catalog, QueryDef, StreamDef
from dsms.sql.codes import error
from dsms.sql.keyed import SUFFIX
from dsms.sql.parser import parse_one
from dsms.sql.print_expressions import name as to_name
from dsms.sql.types import ALWAYS
from dsms.tables.versioned import VersionedTable

LONGEST = 200  # bytes of the name of a folder


def create_stream(
    runtime: Runtime,
    store: Store,
    statement: ast.CreateStream,
    sql: str,
    catalog: Catalog,
    heartbeat: Heartbeat,
) -> Done:
    """Declare a stream.  `catalog`, here and below: what who asks for it sees."""
    if statement.query is not None:
        return derive_stream(runtime, store, statement, sql, catalog)
    definition = runtime.catalog.placed(bind_create_stream(statement, catalog, sql))
    key = definition.home
    if key in runtime.catalog.streams:
        return there_already(runtime, definition, statement, catalog)
    check_name(definition.name)
    check_free(runtime, statement.name)
    if definition.late_into is not None:
        _check_not_fed(runtime, definition.late_into)
    if not runtime.replaying:
        check_late_places(statement.late, definition, catalog)
    if statement.confidential is not None and not runtime.replaying:
        check_role(runtime.rights, statement.confidential.role, catalog.user)
    archiving = archive_for(runtime, definition, catalog)
    if definition.key:
        own = check_current(runtime, statement, catalog)
        definition = replace(definition, current=runtime.catalog.key_of(own.text))
    store(lambda s: s.add_stream(definition), "statement", sql.encode())
    runtime.declare(definition)
    runtime.rights = runtime.rights.owned(key, catalog.user)
    if definition.key:
        keep_current(runtime, definition, own, catalog.user)
    if archiving is not None:
        connect_stream(runtime, archiving)
        go_on_behind(runtime, archiving, heartbeat)
    return Done(f"stream {definition.name} created{created(archiving)}")


def check_current(runtime: Runtime, statement: ast.CreateStream, catalog: Catalog) -> ast.Ident:
    """The name of the query that keeps what a stream with KEY holds.  Raises why there can't be
    one."""
    name = ast.Ident(statement.name.text + SUFFIX, quoted=True, pos=statement.name.pos)
    check_number(runtime, catalog.user)
    check_name(name.text)
    check_free(runtime, name)
    taken_by(replace(statement, if_not_exists=False), name, QueryDef, catalog)
    return name


def keep_current(runtime: Runtime, stream: StreamDef, name: ast.Ident, user: str | None) -> None:
    """Register that query."""
    of = ast.Ident(stream.name, quoted=True)
    sql = f"CREATE QUERY {to_name(name)} AS SELECT * FROM {to_name(of)} [RANGE UNBOUNDED]"
    asked = parse_one(sql)
    assert isinstance(asked, ast.CreateQuery)
    definition, bound = bind_create_query(asked, runtime.catalog, sql)
    assert bound is not None
    definition = runtime.catalog.placed(definition)
    start_query(runtime, definition, bound)
    runtime.rights = runtime.rights.owned(definition.home, user)


def derive_stream(
    runtime: Runtime, store: Store, statement: ast.CreateStream, sql: str, catalog: Catalog
) -> Done:
    """Declare a stream that consists of what its query tells, and register that query."""
    definition, feeder, bound = bind_derived_stream(statement, catalog, sql)
    if feeder is None or bound is None:
        return there_already(runtime, definition, statement, catalog)
    feeder, definition = runtime.catalog.placed(feeder), runtime.catalog.placed(definition)
    feeder = replace(feeder, feeds=definition.address)
    definition = replace(definition, derived=feeder.address)
    key = definition.home
    check_number(runtime, catalog.user)
    check_running(runtime, feeder)
    check_name(feeder.name)
    check_free(runtime, statement.name)
    if statement.confidential is not None and not runtime.replaying:
        check_role(runtime.rights, statement.confidential.role, catalog.user)
    archiving = archive_for(runtime, definition, catalog)
    if archiving is not None and archiving.seam > ALWAYS and not runtime.replaying:
        what = f"the archive of an earlier {definition.name} is there, and rows of a query"
        raise UsageError("DS575", f"{what} can't go on with it", hint="choose another name")
    catch_up(runtime)
    runtime.declare(definition)
    try:
        warnings = start_query(runtime, feeder, bound)
    except BaseException:
        forget_stream(runtime, key)
        raise
    own = feeder.home
    try:
        store(lambda s: s.add_stream(definition), "statement", sql.encode())
    except DsmsError:
        forget_query(runtime, own, "it could not be stored")
        forget_stream(runtime, key)
        raise
    runtime.rights = runtime.rights.owned(key, catalog.user).owned(own, catalog.user)
    if archiving is not None:
        connect_stream(runtime, archiving)
    return Done(
        f"stream {definition.name} created{created(archiving)}, fed by query {feeder.name}",
        warnings,
    )


def _check_not_fed(runtime: Runtime, name: str) -> None:
    """Late rows can't go where queries put theirs."""
    entry = runtime.inputs[Catalog.key(name)]
    if entry.fed_by:
        message = f"late rows can't go into {name}: queries feed it"
        raise UsageError("DS225", message, hint="declare a stream for them")


def check_number(runtime: Runtime, user: str | None, gone: int = 0) -> None:
    """Raise why there may be no further query: DS634, DS680.  `gone`: others will be (negative)."""
    if len(runtime.queries) + gone >= runtime.settings.queries and not runtime.replaying:
        message = f"{len(runtime.queries)} queries are registered, which is the limit"
        raise UsageError(
            "DS634",
            message,
            hint="drop a query, or raise the limit of the server (--max-queries)",
        )
    check_queries(runtime, user)


def create_table(
    runtime: Runtime, store: Store, statement: ast.CreateTable, sql: str, catalog: Catalog
) -> Done:
    """Declare a table."""
    definition = runtime.catalog.placed(bind_create_table(statement, catalog, sql))
    key = definition.home
    if key in runtime.catalog.tables:
        return there_already(runtime, definition, statement, catalog)
    check_free(runtime, statement.name)
    store(lambda s: s.add_table(definition), "statement", sql.encode())
    runtime.catalog.tables[key] = definition
    runtime.tables[key] = VersionedTable(definition)
    runtime.rights = runtime.rights.owned(key, catalog.user)
    return Done(f"table {definition.name} created")


def archive_for(
    runtime: Runtime, definition: StreamDef | QueryDef, catalog: Catalog
) -> Archiving | None:
    """Its archive.  One that was there before holds rows of others: DS670 for who may not see
    all."""
    archiving = archive_of(runtime, definition)
    if (
        archiving is not None
        and archiving.seam > ALWAYS
        and not (catalog.sees_all or runtime.replaying)
    ):
        message = (
            f"the archive of an earlier {definition.name} is there, and it takes an "
            "administrator to go on with it"
        )
        raise UsageError("DS670", message, hint="choose another name")
    return archiving


def check_name(name: str) -> None:
    """A stream's or query's name can be that of a folder.  Raises DS415."""
    size = len(quote(Catalog.key(name), safe=""))
    if size > LONGEST:
        raise UsageError(
            "DS415",
            f"the name {name[:40]}... is too long: folders called so have {size} bytes, and may "
            f"have {LONGEST}",
        )


def check_free(runtime: Runtime, name: ast.Ident) -> None:
    """Raise DS213 where a query of that name is on the way to its first answer."""
    if runtime.catalog.key_of(name.text) in runtime.beginnings:
        what = f"a query {name.text} is being registered"
        raise error("DS213", what, name, "choose another name, or wait")


def start_query(
    runtime: Runtime,
    definition: QueryDef,
    bound: lp.Output,
    cancel: Cancel | None = None,
    archiving: Archiving | None = None,
    running: RunningQuery | None = None,
    later: bool = False,
    pieces: bool = False,
) -> tuple[str, ...]:
    """Plan, assemble and start; the planner's warnings.  Raises DS610 and forgets the query if it
    is cancelled.  `running`: a continuous one that was planned and assembled; `later`: the synopses
    that a periodic one shares are filled by who asks; `pieces`: a continuous one, that reads
    streams alone, comes to its first answer in pieces (`Runtime.beginnings`)."""
    if definition.on_lookup:
        return start_lookup(runtime, definition, bound)
    if bound.slide is not None:
        return start_periodic(runtime, definition, bound, archiving, later)
    if running is None:
        running = prepare(runtime, definition, runtime.plan(bound, definition.options, True))
    running.notes = notes(running.phys)
    key = definition.home
    feed(runtime, key, running)
    runtime.dispatch.register(key, running)
    runtime.answers.known(key, runtime.catalog)
    runtime.recents.registered(running)
    fed_anew(runtime, running)
    connect_query(runtime, archiving, running)
    streams = sorted(set(running.streams.values()))
    runtime.clocks.reads(key, streams)
    if cancel is not None:
        running.pipeline.look = cancel.check
    past: tuple[str, ...] = ()
    if streams and pieces and not running.early:
        past, filling = beginning(runtime, running)
        runtime.beginnings[key] = _arriving(runtime, key, filling)
        return (*running.notes, *past)
    if streams:
        past = begin(runtime, running)
    else:
        running.start()
        running.advance(
            max((runtime.tables[t].last_change for t in running.tables), default=running.clock)
        )
    running.pipeline.look = go_on
    if running.failure is not None and running.failure.code in (CANCELLED, CUT):
        del runtime.catalog.queries[key], runtime.catalog.plans[key]
        gone = runtime.dispatch.unregister(key)
        runtime.parts.left(key, gone)
        runtime.recents.unregistered(gone)
        runtime.archivings.pop(key, None)
        runtime.clocks.forget(key)
        starve(runtime, key, running)
        running.check()
    runtime.parts.joined(key)
    if running.feed is not None:
        runtime.follow()
    return (*running.notes, *past)


def _arriving(runtime: Runtime, key: str, filling: Iterator[None]) -> Iterator[None]:
    yield from filling
    del runtime.beginnings[key]
    runtime.parts.joined(key)


def start_periodic(
    runtime: Runtime,
    definition: QueryDef,
    bound: lp.Output,
    archiving: Archiving | None,
    later: bool = False,
    answers: bool = True,
) -> tuple[str, ...]:
    """Register a query with SLIDE; what the user should know.  `answers`: a boundary that is due at
    once is told."""
    key = definition.home
    query = periodic_query(runtime, definition, bound)
    feed(runtime, key, query)
    runtime.dispatch.register(key, query)
    runtime.answers.known(key, runtime.catalog)
    fed_anew(runtime, query)
    connect_query(runtime, archiving, query)
    runtime.clocks.reads(key, query.reads)
    schedule(runtime, query)
    runtime.came_late(query)
    if answers:
        query.advance(runtime.due(query))
    if answers and query.evaluator.together and not later:
        for group in list(runtime.shared.of(query.reads[0])):
            group.advance(runtime.due_of(group))
    if query.feed is not None:
        runtime.follow()
    return announce(runtime, query)


def forget_query(runtime: Runtime, key: str, why: str) -> None:
    """The query is gone; its readers hear why."""
    runtime.archivings.pop(key, None)
    runtime.queries[key].close(why)
    detach(runtime, key)


def detach(runtime: Runtime, key: str) -> None:
    """The query is not among the others any more, nor is what it alone used."""
    gone = runtime.dispatch.unregister(key)
    del runtime.catalog.queries[key], runtime.catalog.plans[key]
    runtime.recents.unregistered(gone)
    runtime.parts.left(key, gone)
    starve(runtime, key, gone)
    if isinstance(gone, EvaluatedQuery):
        forget(runtime, gone)
    runtime.clocks.forget(key)
