"""DROP of streams, tables and queries, and of what reads or feeds them with it (CASCADE)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dsms.api import Done
from dsms.commands.archives import leave
from dsms.commands.connectors import drop_attached, refuse_attached
from dsms.commands.define import forget_query
from dsms.commands.feeding import forget_stream
from dsms.commands.late import fed_note, feeding, late_dropping
from dsms.commands.store import Store
from dsms.commands.succeeding import check_alone
from dsms.errors import UsageError
from dsms.running.runtime import Runtime
from dsms.running.writers import Writers
from dsms.sql import ast
from dsms.sql.catalog import Catalog, QueryDef, StreamDef, TableDef
from dsms.sql.printer import to_sql
from dsms.sql.suggest import hint, listed
from dsms.storage.catalog import Kind

Object = StreamDef | TableDef | QueryDef
Allowed = Callable[[ast.Drop], object]


def drop(
    runtime: Runtime,
    store: Store,
    statement: ast.Drop,
    sql: str,
    catalog: Catalog,
    writers: Writers,
    allowed: Allowed,
) -> Done:
    """DROP, in whatever state the object is.  Raises DS405 while something reads or feeds it,
    unless that goes with it.

    allowed  raises DS670 where one that goes with it may not be dropped"""
    name, kind = statement.name.text, statement.kind.value.lower()
    found = catalog.find(name, statement.name.quoted)
    if found is None or kind_of(found) != kind:
        if statement.if_exists and found is None:
            return Done(f"there is no {kind} {name}")
        raise unknown(catalog, statement.name, found, kind)
    key = found.home
    gone = list[str]()
    if statement.cascade:
        users = list(_all_users(runtime, key))
        for one in users:
            allowed(_dropping(one))
            if catalog.find(one.name) is None:
                _refuse_used(runtime, key, kind, found.name, catalog)
        places = [place for one in (*users, found) for place in _places(one)]
        gone += drop_attached(runtime, store, places, writers)
        for one in users:
            text = to_sql(_dropping(one))
            _drop(runtime, store, one, text, catalog, writers)
            gone.append(f"{kind_of(one)} {one.name}")
    _refuse_owned(runtime, found)
    text = to_sql(replace(statement, cascade=False))
    stays, notes = _drop(runtime, store, found, text, catalog, writers)
    also = f", and with it {', '.join(gone)}" if gone else ""
    return Done(f"{kind} {found.name} dropped{stays}{also}", notes)


def _drop(
    runtime: Runtime, store: Store, found: Object, sql: str, catalog: Catalog, writers: Writers
) -> tuple[str, tuple[str, ...]]:
    """One object that nothing else reads; what is to be said of its archive, and of late rows that
    went there."""
    key, kind = found.home, kind_of(found)
    if isinstance(found, QueryDef):
        check_alone(runtime, runtime.queries[key])
    _refuse_used(runtime, key, kind, found.name, catalog)
    for one in _places(found):
        refuse_attached(runtime, one, f"{kind} {found.name}")
    fed = feeding(runtime, key, others=True) if kind == "stream" else []
    fed = [late_dropping(stream) for stream in fed]
    stays = leave(runtime, key, kind)
    store(lambda s: s.drop(kind, key, fed), "statement", sql.encode())
    for stream in fed:
        runtime.redeclare(stream)
    if isinstance(found, QueryDef):
        forget_query(runtime, key, f"query {found.name} was dropped")
    else:
        if isinstance(found, StreamDef) and found.own is not None:
            own = Catalog.key(found.own)
            forget_query(runtime, own, f"stream {found.name} was dropped")
            runtime.rights = runtime.rights.without(own)
        _remove(runtime, key, kind)
        writers.forget(key)
    runtime.rights = runtime.rights.without(key)
    runtime.comments.pop(key, None)
    return stays, fed_note(fed, catalog)


def _places(found: Object) -> list[str]:
    """Its key, and that of the query which goes with a stream."""
    own = found.own if isinstance(found, StreamDef) else None
    return [found.home] if own is None else [found.home, Catalog.key(own)]


def _dropping(found: Object) -> ast.Drop:
    kind = ast.ObjectKind(kind_of(found).upper())
    return ast.Drop(kind, ast.Ident(found.name, quoted=True))


def _all_users(runtime: Runtime, key: str) -> Iterator[Object]:
    """All that goes before an object can go, each behind what uses it."""
    seen: set[str] = set()

    def above(key: str) -> Iterator[Object]:
        for user in _users(runtime, key):
            name = user.home
            if name not in seen:
                seen.add(name)
                yield from above(name)
                yield user

    yield from above(key)


def _users(runtime: Runtime, key: str) -> list[Object]:
    """What reads an object or feeds it: queries, and streams in the place of queries of theirs."""
    streams = runtime.catalog.streams
    made_of = streams[key].own if key in streams else None
    keys = {key} if made_of is None else {key, Catalog.key(made_of)}
    found: list[Object] = []
    for query in runtime.queries.values():
        into = Catalog.key(query.definition.feeds or "")
        own = runtime.catalog.whose(query.definition)
        if own is not None and own.key and own.home == key:
            continue  # it goes with the stream
        over = map(Catalog.key, query.definition.over)
        if not keys.isdisjoint(over) or key in query.tables or key in query.streams.values():
            found.append(query.definition if own is None else own)
        elif into == key and own is None:
            found.append(query.definition)
    return found


def _refuse_owned(runtime: Runtime, found: Object) -> None:
    """The query of a stream goes with that stream alone."""
    stream = runtime.catalog.whose(found) if isinstance(found, QueryDef) else None
    if stream is None:
        return
    what = f"stream {stream.name} consists of what query {found.name} tells"
    if stream.key:
        what = f"query {found.name} keeps what stream {stream.name} holds"
    hint = f"DROP STREAM {stream.name}: its query goes with it"
    raise UsageError("DS405", what, hint=hint)


def _remove(runtime: Runtime, key: str, kind: str) -> None:
    if kind == "stream":
        forget_stream(runtime, key)
    else:
        del runtime.catalog.tables[key], runtime.tables[key]


def kind_of(found: Object) -> Kind:
    """stream, table or query"""
    match found:
        case StreamDef():
            return "stream"
        case TableDef():
            return "table"
        case QueryDef():
            return "query"


def unknown(catalog: Catalog, name: ast.Ident, found: object, kind: str) -> UsageError:
    """DS401: there is no object of that name and kind, or one of another kind (`found`)."""
    known = {"stream": catalog.streams, "table": catalog.tables, "query": catalog.queries}[kind]
    message = f"there is no {kind} {name.text}"
    if found is not None:
        message = f"{name.text} is a {kind_of(found)}, not a {kind}"  # type: ignore[arg-type]
    names = [d.name for d in known.values()]  # type: ignore[attr-defined]
    return UsageError("DS401", message, name.pos.line, name.pos.column, hint(name.text, names))


def _refuse_used(runtime: Runtime, key: str, kind: str, name: str, catalog: Catalog) -> None:
    users = _users(runtime, key)
    if users:
        known = sorted(u.name for u in users if catalog.find(u.name) is not None)
        feeds = all(
            isinstance(u, QueryDef) and u.feeds and Catalog.key(u.feeds) == key for u in users
        )
        verb = "fed" if feeds else "read"
        message = f"{kind} {name} is {verb} by {listed(known) if known else 'queries of others'}"
        which = "that query" if len(users) == 1 else "those queries"
        if any(isinstance(u, StreamDef) for u in users):
            which = "what reads it"
        raise UsageError("DS405", message, hint=f"drop {which} first, or DROP ... CASCADE")
    if kind == "stream" and (into := [s.name for s in feeding(runtime, key, others=False)]):
        into = [i for i in into if catalog.find(i) is not None] or ["other streams"]
        raise UsageError(
            "DS405",
            f"late rows of {', '.join(into)} go into stream {name}",
            hint="drop that one first",
        )
