"""CREATE and DROP of streams, tables and queries."""

from __future__ import annotations

from urllib.parse import quote

from dsms.api import Cancel, Done
from dsms.archiving.archiving import Archiving
from dsms.archiving.opening import archive_of, connect_query, connect_stream
from dsms.commands.archives import Heartbeat, created, leave
from dsms.commands.archives import go_on as go_on_behind
from dsms.commands.late import fed_note, feeding, late_dropping
from dsms.commands.lookup import start_lookup
from dsms.commands.periodic import announce, forget, periodic_query, schedule
from dsms.commands.rights import check_role
from dsms.commands.store import Store
from dsms.errors import UsageError
from dsms.operators.pieces import go_on
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.plan.planner import notes
from dsms.running.beginning import begin
from dsms.running.prepare import prepare
from dsms.running.query import RunningQuery
from dsms.running.runtime import Runtime
from dsms.running.writers import Writers
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_create_stream, bind_create_table, check_late_places
from dsms.sql.catalog import Catalog, QueryDef, StreamDef, TableDef
from dsms.sql.codes import error
from dsms.sql.suggest import hint, listed
from dsms.sql.types import ALWAYS
from dsms.storage.catalog import Kind
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
    definition = bind_create_stream(statement, catalog, sql)
    key = Catalog.key(definition.name)
    if key in runtime.catalog.streams:
        return Done(f"stream {definition.name} is there already")
    check_name(definition.name)
    check_free(runtime, statement.name)
    if not runtime.replaying:
        check_late_places(statement.late, definition, catalog)
    if statement.confidential is not None and not runtime.replaying:
        check_role(runtime.rights, statement.confidential.role, catalog.user)
    archiving = archive_for(runtime, definition, catalog)
    store(lambda s: s.add_stream(definition), "statement", sql.encode())
    runtime.declare(definition)
    runtime.rights = runtime.rights.owned(key, catalog.user)
    if archiving is not None:
        connect_stream(runtime, archiving)
        go_on_behind(runtime, archiving, heartbeat)
    return Done(f"stream {definition.name} created{created(archiving)}")


def create_table(
    runtime: Runtime, store: Store, statement: ast.CreateTable, sql: str, catalog: Catalog
) -> Done:
    """Declare a table."""
    definition = bind_create_table(statement, catalog, sql)
    key = Catalog.key(definition.name)
    if key in runtime.catalog.tables:
        return Done(f"table {definition.name} is there already")
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
    if Catalog.key(name.text) in runtime.beginnings:
        what = f"a query {name.text} is being registered"
        raise error("DS213", what, name, "choose another name, or wait")


def start_query(
    runtime: Runtime,
    definition: QueryDef,
    bound: lp.Output,
    cancel: Cancel | None = None,
    archiving: Archiving | None = None,
    running: RunningQuery | None = None,
) -> tuple[str, ...]:
    """Plan, assemble and start; the planner's warnings.  Raises DS610 and forgets the query if it
    is cancelled.  `running`: a continuous one that was planned and assembled."""
    if definition.on_lookup:
        return start_lookup(runtime, definition, bound)
    if bound.slide is not None:
        return _start_periodic(runtime, definition, bound, archiving)
    if running is None:
        running = prepare(runtime, definition, runtime.plan(bound, definition.options, True))
    running.notes = notes(running.phys)
    key = Catalog.key(definition.name)
    runtime.catalog.queries[key] = definition
    runtime.dispatch.register(key, running)
    connect_query(runtime, archiving, running)
    streams = sorted(set(running.streams.values()))
    runtime.clocks.reads(key, streams)
    if cancel is not None:
        running.pipeline.look = cancel.check
    past: tuple[str, ...] = ()
    if streams:
        past = begin(runtime, running)
    else:
        running.start()
        running.advance(
            max((runtime.tables[t].last_change for t in running.tables), default=running.clock)
        )
    running.pipeline.look = go_on
    if running.failure is not None and running.failure.code == "DS610":
        del runtime.catalog.queries[key]
        runtime.dispatch.unregister(key)
        runtime.archivings.pop(key, None)
        runtime.clocks.forget(key)
        running.check()
    runtime.parts.joined(key)
    return (*running.notes, *past)


def _start_periodic(
    runtime: Runtime, definition: QueryDef, bound: lp.Output, archiving: Archiving | None
) -> tuple[str, ...]:
    key = Catalog.key(definition.name)
    query = periodic_query(runtime, definition, bound)
    runtime.catalog.queries[key] = definition
    runtime.dispatch.register(key, query)
    connect_query(runtime, archiving, query)
    runtime.clocks.reads(key, query.reads)
    schedule(runtime, query)
    runtime.came_late(query)
    query.advance(runtime.due(query))
    for group in list(runtime.shared.of(query.reads[0])) if query.evaluator.together else ():
        group.advance(runtime.due_of(group))
    return announce(runtime, query)


def drop(
    runtime: Runtime,
    store: Store,
    statement: ast.Drop,
    sql: str,
    catalog: Catalog,
    writers: Writers,
) -> Done:
    """DROP, in whatever state the object is.  Raises DS405 while queries read it, or late rows of
    its owner's own streams go there; streams of others drop their late rows from then on."""
    name, kind = statement.name.text, statement.kind.value.lower()
    key = Catalog.key(name)
    found = catalog.find(name, statement.name.quoted)
    if found is None or _kind(found) != kind:
        if statement.if_exists and found is None:
            return Done(f"there is no {kind} {name}")
        raise _unknown(catalog, statement, found, kind)
    if kind != "query":
        _refuse_used(runtime, key, kind, found.name, catalog)
    fed = feeding(runtime, key, others=True) if kind == "stream" else []
    fed = [late_dropping(stream) for stream in fed]
    stays = leave(runtime, key, kind)
    store(lambda s: s.drop(_kind(found), found.name, fed), "statement", sql.encode())
    for stream in fed:
        runtime.redeclare(stream)
    if kind == "query":
        forget_query(runtime, key, f"query {found.name} was dropped")
    else:
        _remove(runtime, key, kind)
        writers.forget(key)
    runtime.rights = runtime.rights.without(key)
    return Done(f"{kind} {found.name} dropped{stays}", fed_note(fed, catalog))


def forget_query(runtime: Runtime, key: str, why: str) -> None:
    """The query is gone; its readers hear why."""
    runtime.archivings.pop(key, None)
    runtime.queries[key].close(why)
    detach(runtime, key)


def detach(runtime: Runtime, key: str) -> None:
    """The query is not among the others any more, nor is what it alone used."""
    gone = runtime.dispatch.unregister(key)
    runtime.parts.left(key, gone)
    if isinstance(gone, EvaluatedQuery):
        forget(runtime, gone)
    del runtime.catalog.queries[key]
    runtime.clocks.forget(key)


def _remove(runtime: Runtime, key: str, kind: str) -> None:
    if kind == "stream":
        runtime.remove(key)
    else:
        del runtime.catalog.tables[key], runtime.tables[key]


def _kind(found: StreamDef | TableDef | QueryDef) -> Kind:
    match found:
        case StreamDef():
            return "stream"
        case TableDef():
            return "table"
        case QueryDef():
            return "query"


def _unknown(catalog: Catalog, statement: ast.Drop, found: object, kind: str) -> UsageError:
    name = statement.name
    known = {"stream": catalog.streams, "table": catalog.tables, "query": catalog.queries}[kind]
    message = f"there is no {kind} {name.text}"
    if found is not None:
        message = f"{name.text} is a {_kind(found)}, not a {kind}"  # type: ignore[arg-type]
    names = [d.name for d in known.values()]  # type: ignore[attr-defined]
    return UsageError("DS401", message, name.pos.line, name.pos.column, hint(name.text, names))


def _refuse_used(runtime: Runtime, key: str, kind: str, name: str, catalog: Catalog) -> None:
    users = [
        q.name for q in runtime.queries.values() if key in q.tables or key in q.streams.values()
    ]
    if users:
        known = sorted(u for u in users if catalog.find(u) is not None)
        message = f"{kind} {name} is read by {listed(known) if known else 'queries of others'}"
        raise UsageError(
            "DS405",
            message,
            hint=f"drop {'that query' if len(users) == 1 else 'those queries'} first",
        )
    if kind == "stream" and (into := [s.name for s in feeding(runtime, key, others=False)]):
        into = [i for i in into if catalog.find(i) is not None] or ["other streams"]
        raise UsageError(
            "DS405",
            f"late rows of {', '.join(into)} go into stream {name}",
            hint="drop that one first",
        )
