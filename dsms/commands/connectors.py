"""CREATE, DROP, PAUSE and RESUME of sources and sinks, and SHOW SOURCES and SHOW SINKS.

The engine keeps what is declared of them; the server that it runs in (`dsms.sessions.Connectors`)
runs them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dsms.api import Done, Rows
from dsms.commands.rows import as_rows
from dsms.commands.store import Store
from dsms.errors import UsageError
from dsms.running.runtime import Runtime
from dsms.running.writers import Writers
from dsms.sessions import ConnectorLine
from dsms.sql import ast
from dsms.sql.catalog import Catalog, ConnectorDef, QueryDef, StreamDef, connector_home
from dsms.sql.literals import duration_text
from dsms.sql.printer import to_sql
from dsms.sql.suggest import hint
from dsms.sql.types import INT, STRING, TIMESTAMP
from dsms.storage.connectors import add_connector, drop_connector

Statement = ast.CreateConnector | ast.DropConnector | ast.PauseConnector | ast.ResumeConnector
PAUSED = "paused"  # the option of all: it is made without beginning


def change(
    runtime: Runtime,
    store: Store,
    statement: Statement,
    sql: str,
    catalog: Catalog,
    writers: Writers,
) -> Done:
    """Do one of these statements.  Raises DS401, DS446 to DS451, DS667."""
    match statement:
        case ast.CreateConnector():
            done = _create(runtime, store, statement, catalog, writers)
        case ast.DropConnector(kind, name, if_exists):
            found = runtime.catalog.connectors.get(connector_home(kind.lower(), name.text))
            if found is None and if_exists:
                return Done(f"there is no {kind.lower()} {name.text}")
            found = known(runtime.catalog, kind, name)
            drop(runtime, store, found, sql, writers)
            done = Done(f"{kind.lower()} {found.name} dropped")
        case ast.PauseConnector(kind, name):
            done = _pause(runtime, store, known(runtime.catalog, kind, name), sql, True)
        case ast.ResumeConnector(kind, name):
            done = _pause(runtime, store, known(runtime.catalog, kind, name), sql, False)
    _tell(runtime)
    return done


def _tell(runtime: Runtime) -> None:
    if runtime.settings.connectors is not None and not runtime.replaying:
        runtime.settings.connectors.changed()


def _put(runtime: Runtime, made: ConnectorDef) -> None:
    """Whoever holds the declarations as they were, goes on having those."""
    runtime.catalog.connectors = {**runtime.catalog.connectors, made.home: made}


# ---------------------------------------------------------------- CREATE


def _create(
    runtime: Runtime,
    store: Store,
    statement: ast.CreateConnector,
    catalog: Catalog,
    writers: Writers,
) -> Done:
    kind, name = statement.kind.lower(), statement.name
    old = runtime.catalog.connectors.get(connector_home(kind, name.text))
    if old is not None and statement.if_not_exists:
        return Done(f"{kind} {old.name} is there already")
    if old is not None and not statement.or_replace:
        way = f"choose another name, DROP {kind.upper()} {old.name} first, or CREATE OR REPLACE"
        message = f"there is a {kind} {old.name} already"
        raise UsageError("DS450", message, name.pos.line, name.pos.column, way)
    told = _object(catalog, statement)
    options = dict(map(_option, statement.options))
    paused = options.pop(PAUSED, False)
    if not isinstance(paused, bool):
        raise UsageError("DS448", "paused is TRUE or FALSE", name.pos.line, name.pos.column)
    connector = statement.connector.text.casefold()
    _check(runtime, statement, connector, options)
    made = ConnectorDef(
        kind,
        name.text,
        connector,
        told.address,
        tuple(options.items()),
        runtime.catalog.connected,
        paused,
    )
    if old is not None and (old.connector, old.object) == (made.connector, made.object):
        made = replace(made, number=old.number)  # it goes on where it stands
    elif old is not None:
        writers.forget_client(old.writer)
    text = to_sql(replace(statement, if_not_exists=False, or_replace=old is not None))
    whole = to_sql(declaration(made, runtime.catalog))
    store(lambda s: add_connector(s, made, whole, old), "statement", text.encode())
    runtime.catalog.connected += made.number == runtime.catalog.connected
    _put(runtime, made)
    return Done(f"{kind} {made.name} {'created' if old is None else 'replaced'}")


def _check(
    runtime: Runtime, statement: ast.CreateConnector, connector: str, options: dict[str, Any]
) -> None:
    if runtime.replaying:
        return
    kind, pos = statement.kind.lower(), statement.connector.pos
    if runtime.settings.connectors is None:
        message = f"a {kind} is made where a server runs: an engine in a program runs none"
        way = "feed the engine with `ingest`, read it with `subscribe`; or run dsms serve"
        raise UsageError("DS446", message, hint=way)
    runtime.settings.connectors.check(kind, connector, options, (pos.line, pos.column))


def _object(catalog: Catalog, statement: ast.CreateConnector) -> StreamDef | QueryDef:
    """The stream that a source feeds, the query that a sink tells of.  Raises DS401, DS451."""
    name, source = statement.object, statement.kind is ast.ConnectorKind.SOURCE
    found = catalog.find(name.text, name.quoted)
    what = "stream" if source else "query"
    if found is None:
        kinds: Any = catalog.streams if source else catalog.queries
        near = hint(name.text, [d.name for d in kinds.values()])
        message = f"there is no {what} {name.text}"
        raise UsageError("DS401", message, name.pos.line, name.pos.column, near)
    if not isinstance(found, StreamDef if source else QueryDef):
        message = f"{found.name} is no {what}: a {statement.kind.lower()} is of one"
        way = f"CREATE QUERY q AS SELECT * FROM {found.name} ..., and a sink of q"
        way = "make a stream, and a query that puts its rows elsewhere" if source else way
        raise UsageError("DS451", message, name.pos.line, name.pos.column, way)
    if isinstance(found, QueryDef) and found.on_lookup:
        message = f"query {found.name} answers when it is asked: there is nothing to tell"
        raise UsageError("DS451", message, name.pos.line, name.pos.column)
    return found


def _option(said: ast.Option | ast.SecretOption) -> tuple[str, Any]:
    name = said.name.text.casefold()
    if isinstance(said, ast.SecretOption):
        return name, (said.place, said.key)
    value = said.value
    return name, duration_text(value) if isinstance(value, ast.Duration) else value


# ---------------------------------------------------------------- DROP, PAUSE, RESUME


def known(catalog: Catalog, kind: str, name: ast.Ident) -> ConnectorDef:
    """The source or sink of that name.  Raises DS401."""
    found = catalog.connectors.get(connector_home(kind.lower(), name.text))
    if found is None:
        names = [c.name for c in of_kind(catalog, kind)]
        message = f"there is no {kind.lower()} {name.text}"
        near = hint(name.text, names, f"{kind.lower()}s") or f"SHOW {kind.upper()}S lists all"
        raise UsageError("DS401", message, name.pos.line, name.pos.column, near)
    return found


def drop(runtime: Runtime, store: Store, found: ConnectorDef, sql: str, writers: Writers) -> None:
    """Forget a source or sink, and where it stood."""
    store(lambda s: drop_connector(s, found), "statement", sql.encode())
    there = runtime.catalog.connectors
    runtime.catalog.connectors = {k: c for k, c in there.items() if k != found.home}
    writers.forget_client(found.writer)


def drop_attached(
    runtime: Runtime, store: Store, keys: Iterable[str], writers: Writers
) -> list[str]:
    """Forget the sources and sinks of streams and queries that go; what they are called."""
    gone = []
    for found in [c for key in keys for c in runtime.catalog.attached(key)]:
        kind = ast.ConnectorKind(found.kind.upper())
        text = to_sql(ast.DropConnector(kind, ast.Ident(found.name, quoted=True)))
        drop(runtime, store, found, text, writers)
        gone.append(f"{found.kind} {found.name}")
    _tell(runtime)
    return gone


def refuse_attached(runtime: Runtime, key: str, what: str) -> None:
    """Raise DS405 where a source feeds the stream, or a sink tells of the query."""
    there = [f"{c.kind} {c.name}" for c in runtime.catalog.attached(key)]
    if there:
        verb = "fed" if what.startswith("stream") else "read"
        message = f"{what} is {verb} by {', '.join(sorted(there))}"
        which = "that" if len(there) == 1 else "these"
        raise UsageError("DS405", message, hint=f"drop {which} first, or DROP ... CASCADE")


def _pause(runtime: Runtime, store: Store, found: ConnectorDef, sql: str, paused: bool) -> Done:
    """RESUME of one that is not paused tries at once, if it waits or has failed."""
    what = f"{found.kind} {found.name}"
    if paused and found.paused:
        return Done(f"{what} is paused already")
    if not paused and not found.paused:
        if runtime.settings.connectors is not None and not runtime.replaying:
            runtime.settings.connectors.retry(found.home)
        return Done(f"{what} is tried again, unless it runs")
    made = replace(found, paused=paused)
    whole = to_sql(declaration(made, runtime.catalog))
    store(lambda s: add_connector(s, made, whole, found), "statement", sql.encode())
    _put(runtime, made)
    return Done(f"{what} {'paused' if paused else 'resumed'}")


# ---------------------------------------------------------------- what is declared, and how it does


def of_kind(catalog: Catalog, kind: str) -> list[ConnectorDef]:
    """All sources, or all sinks, by name."""
    found = (c for c in catalog.connectors.values() if c.kind == kind.lower())
    return sorted(found, key=lambda c: c.home)


def declaration(found: ConnectorDef, catalog: Catalog) -> ast.CreateConnector:
    """The statement that makes it again where nothing has its name."""
    said = dict(found.options) | ({PAUSED: True} if found.paused else {})
    return ast.CreateConnector(
        ast.ConnectorKind(found.kind.upper()),
        _name(found.name),
        _name(catalog.called(found.object)),
        _name(found.connector),
        tuple(_said(name, value) for name, value in said.items()),
    )


def _name(text: str) -> ast.Ident:
    """Quoted where it is not what a plain name is found by."""
    return ast.Ident(text, quoted=not text.isidentifier())


def _said(name: str, value: Any) -> ast.Option | ast.SecretOption:
    if isinstance(value, tuple):
        return ast.SecretOption(_name(name), *value)
    return ast.Option(_name(name), value)


def show_connectors(runtime: Runtime, kind: str) -> Rows:
    """SHOW SOURCES, SHOW SINKS: a line for each."""
    found, server = of_kind(runtime.catalog, kind), runtime.settings.connectors
    lines = [_line(c) if server is None else server.line(c.home) for c in found]
    called = runtime.catalog.called
    return as_rows(
        [
            (kind.lower(), STRING, [c.name for c in found]),
            ("kind", STRING, [c.connector for c in found]),
            ("stream" if kind == "SOURCE" else "query", STRING, [called(c.object) for c in found]),
            ("state", STRING, [line.state for line in lines]),
            ("rows", INT, [line.rows for line in lines]),
            ("rejected", INT, [line.rejected for line in lines]),
            ("lag", INT, [line.lag for line in lines]),
            ("last_error", STRING, [line.error for line in lines]),
            ("restarts", INT, [line.restarts for line in lines]),
            ("position", STRING, [line.position for line in lines]),
            ("since", TIMESTAMP, [line.since for line in lines]),
        ]
    )


def _line(found: ConnectorDef) -> ConnectorLine:
    """Of one that nothing runs."""
    return ConnectorLine("paused" if found.paused else "waiting")
