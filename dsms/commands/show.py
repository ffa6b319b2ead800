"""SHOW and DESCRIBE: what is declared and how it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dsms.api import Rows, shown_instant
from dsms.commands.connectors import show_connectors
from dsms.commands.own_functions import describe_function, known, show_aggregates
from dsms.commands.quotas import show_quotas
from dsms.commands.rows import as_rows
from dsms.commands.sessions import show_sessions, timeout_text
from dsms.commands.show_archives import show_archives
from dsms.commands.show_functions import show_functions
from dsms.commands.show_memory import show_memory
from dsms.commands.show_queries import show_queries, show_windows
from dsms.commands.show_rights import show_grants, show_users
from dsms.commands.show_sharing import show_sharing
from dsms.commands.slices import Free
from dsms.errors import UsageError
from dsms.intake.clock import StreamStatus
from dsms.intake.stream import StreamInput
from dsms.intake.values import duration_text
from dsms.operators.expressions import ErrorCounter, compile_predicate
from dsms.reads.stream_rows import kept
from dsms.running.current import unmatched
from dsms.running.runtime import Runtime
from dsms.sessions import Caller
from dsms.settings import CHANGEABLE
from dsms.sql import ast
from dsms.sql.binder import bind_shown
from dsms.sql.catalog import Catalog, QueryDef, StreamDef, TableDef
from dsms.sql.expr import Expr
from dsms.sql.suggest import hint, listed
from dsms.sql.types import FLOAT, INT, STRING, TIMESTAMP
from dsms.storage.journal import ENGINE


def showing(
    runtime: Runtime,
    statement: ast.Show,
    catalog: Catalog,
    see: Callable[[], Catalog],
    caller: Caller | None = None,
) -> Free[Rows]:
    """SHOW STREAMS | TABLES | QUERIES | FUNCTIONS | AGGREGATES | WINDOWS | SHARING | ARCHIVES |
    SETTINGS | SESSIONS | MEMORY | USERS | GRANTS | QUOTAS | SOURCES | SINKS [LIKE 'pattern']
    [WHERE condition]: what is in the catalog that is given.  What there may be many of comes a few
    at a time, each line as things are then; `see` gives the catalog of that moment."""
    rows = yield from _all(runtime, statement, catalog, see, caller)
    if statement.like is not None:
        rows = _named_like(rows, statement.like)
    if statement.where is not None:
        columns = list(zip(rows.data.schema.names, rows.types, strict=True))
        met = bind_shown(statement.where, statement.what, columns, catalog)
        rows = _meeting(rows, met, runtime.settings.statement_bytes)
    return rows


def _meeting(rows: Rows, condition: Expr, room: int) -> Rows:
    """The rows that meet the condition; one that fails in it ends the statement (DS7xx)."""
    mask = compile_predicate(condition)
    found = mask(rows.data.columns, rows.data.num_rows, ErrorCounter.once(room))
    return replace(rows, data=rows.data.filter(found))


def _named_like(rows: Rows, pattern: str) -> Rows:
    """Those whose name, the first column, or one of whose aliases fits the pattern, in any case.
    A session's name is its number."""
    names = rows.data.column(0).cast(pa.string()).to_pylist()
    others = (
        rows.data.column("aliases").to_pylist()
        if "aliases" in rows.data.schema.names
        else [None] * len(names)
    )
    names_of_each = [
        [name, *(aliases.split(", ") if aliases else ())]
        for name, aliases in zip(names, others, strict=True)
    ]
    fit = [
        any(pc.match_like(pa.array(one, pa.string()), pattern, ignore_case=True).to_pylist())
        for one in names_of_each
    ]
    return replace(rows, data=rows.data.filter(pa.array(fit, pa.bool_())))


def _all(
    runtime: Runtime,
    statement: ast.Show,
    catalog: Catalog,
    see: Callable[[], Catalog],
    caller: Caller | None,
) -> Free[Rows]:
    match statement.what:
        case ast.ShowKind.STREAMS:
            return _streams(runtime, catalog)
        case ast.ShowKind.TABLES:
            return _tables(runtime, catalog)
        case ast.ShowKind.QUERIES:
            return (yield from show_queries(runtime, catalog, statement.full, see))
        case ast.ShowKind.FUNCTIONS:
            return show_functions(catalog)
        case ast.ShowKind.AGGREGATES:
            return show_aggregates(catalog)
        case ast.ShowKind.WINDOWS:
            return show_windows(runtime)
        case ast.ShowKind.SHARING:
            return (yield from show_sharing(runtime))
        case ast.ShowKind.ARCHIVES:
            return show_archives(runtime, catalog)
        case ast.ShowKind.SETTINGS:
            return _settings(runtime, caller)
        case ast.ShowKind.SESSIONS:
            return show_sessions(runtime, catalog)
        case ast.ShowKind.MEMORY:
            return (yield from show_memory(runtime))
        case ast.ShowKind.USERS:
            return show_users(runtime.rights, catalog.user)
        case ast.ShowKind.GRANTS:
            return show_grants(runtime.rights, catalog, statement.of)
        case ast.ShowKind.QUOTAS:
            return (yield from show_quotas(runtime, catalog, statement.of))
        case ast.ShowKind.SOURCES | ast.ShowKind.SINKS:
            return show_connectors(runtime, statement.what.removesuffix("S"))


def _status(runtime: Runtime, key: str, catalog: Catalog) -> StreamStatus:
    """Queries of others are not named."""
    found = runtime.clocks.status(key)
    feeders = map(Catalog.key, runtime.inputs[key].fed_by)
    if all(query in catalog.queries for query in feeders):
        return found
    return replace(found, clock="that of queries of others", held_by="queries of others")


def _streams(runtime: Runtime, catalog: Catalog) -> Rows:
    lines = [_status(runtime, key, catalog) for key in catalog.streams]
    known = [not catalog.sees_late([key]) for key in catalog.streams]
    held = [kept(runtime, key) for key in catalog.streams]

    def told(values: list[Any]) -> list[Any]:
        return [v if k else None for v, k in zip(values, known, strict=True)]

    return as_rows(
        [
            ("stream", STRING, [s.name for s in lines]),
            ("clock", STRING, [s.clock for s in lines]),
            ("complete", TIMESTAMP, [s.completed for s in lines]),
            ("newest", TIMESTAMP, told([s.newest for s in lines])),
            ("waits_for", STRING, [s.held_by for s in lines]),
            ("accepted", INT, told([s.accepted for s in lines])),
            ("late", INT, told([s.late for s in lines])),
            ("refused", INT, told([sum(s.refused.values()) for s in lines])),
            ("waiting", INT, told([s.waiting for s in lines])),
            ("kept", INT, told([rows for rows, _ in held])),
            ("since", TIMESTAMP, told([since for _, since in held])),
            ("durability", STRING, [_durability(runtime, key) for key in catalog.streams]),
            ("key", STRING, [_key(s) for s in catalog.streams.values()]),
            ("shed", STRING, [_shed(s) for s in catalog.streams.values()]),
            ("share", FLOAT, [_share(runtime.inputs[key]) for key in catalog.streams]),
            ("unmatched", INT, told([unmatched(runtime, key) for key in catalog.streams])),
            ("promised", INT, told([_promised(runtime, key) for key in catalog.streams])),
            ("comment", STRING, [runtime.comments.get(key) for key in catalog.streams]),
        ]
    )


def _promised(runtime: Runtime, key: str) -> int:
    """Combinations of values that do not come any more."""
    promises = runtime.inputs[key].promises
    return 0 if promises is None else promises.count


def _shed(stream: StreamDef) -> str | None:
    """none, random; None: its rows have no weights."""
    return None if stream.weight is None else str(dict(stream.options).get("shed", "none"))


def _share(entry: StreamInput) -> float | None:
    """Of the rows that come, which is kept now."""
    if entry.definition.weight is None:
        return None
    return 1.0 if entry.shedder is None else entry.shedder.share


def _key(stream: StreamDef) -> str | None:
    return ", ".join(stream.schema[k].name for k in stream.key) or None


def _confidential(catalog: Catalog, stream: StreamDef) -> str | None:
    """For how long rows are, and to whom; who sees them late is told after which time."""
    length = stream.confidential_for
    if length is None:
        return None
    if catalog.seen_after(stream):
        return f"seen after {duration_text(length)}"
    return f"for {duration_text(length)} to {stream.confidential_to}"


def _durability(runtime: Runtime, stream: str) -> str | None:
    """When a row counts as kept; why none can be; None without a data folder."""
    durable = runtime.durable
    if durable is None:
        return None
    trouble = durable.journal.trouble(stream)
    if trouble is None and runtime.inputs[stream].by_system_time:
        clock = durable.journal.trouble(ENGINE)
        trouble = None if clock is None else f"the system time stands still: it {clock}"
    return trouble or durable.journal.policies[stream]


def _tables(runtime: Runtime, catalog: Catalog) -> Rows:
    defs = list(catalog.tables.values())
    tables = [runtime.tables[k] for k in catalog.tables]
    return as_rows(
        [
            ("table", STRING, [d.name for d in defs]),
            ("kind", STRING, ["retroactive" if d.retroactive else "non-retroactive" for d in defs]),
            ("key", STRING, [", ".join(d.schema[i].name for i in d.key) or None for d in defs]),
            ("rows", INT, [len(t) for t in tables]),
            ("changed", TIMESTAMP, [shown_instant(t.last_change) for t in tables]),
            ("comment", STRING, [runtime.comments.get(key) for key in catalog.tables]),
        ]
    )


def _settings(runtime: Runtime, caller: Caller | None) -> Rows:
    s = runtime.settings
    shown = (
        "queries",
        "state_bytes",
        "statement_bytes",
        "step_rows",
        "result_log_rows",
        "subscriber_bytes",
        "retain_default",
        "retain_default_rows",
        "retain_default_bytes",
        "optimize",
        *CHANGEABLE,
    )
    lines = [(name, str(getattr(s, name)).lower()) for name in shown]
    if caller is not None:
        lines.append(("statement_timeout", timeout_text(caller.statement_timeout)))
    return as_rows(
        [("setting", STRING, [n for n, _ in lines]), ("value", STRING, [v for _, v in lines])]
    )


def describe(runtime: Runtime, statement: ast.Describe, catalog: Catalog) -> Rows:
    """Columns of a stream, table or query, and its declaration; what a function is made of."""
    name = statement.name
    if isinstance(statement.kind, ast.FunctionKind):
        return describe_function(known(catalog, statement.kind, name))
    found = catalog.find(name.text, name.quoted)
    own = catalog.functions.get(name.text.casefold())
    if found is None and own is not None and statement.kind is None:
        return describe_function(own)
    kinds = {StreamDef: "STREAM", TableDef: "TABLE", QueryDef: "QUERY"}
    if found is None or (statement.kind is not None and kinds[type(found)] != statement.kind.value):
        what = statement.kind.value.lower() if statement.kind else "stream, table or query"
        message = f"there is no {what} {name.text}"
        raise UsageError(
            "DS401", message, name.pos.line, name.pos.column, hint(name.text, catalog.names())
        )
    columns = catalog.columns(found)
    notes = [_note(found, i) for i, f in enumerate(found.schema) if f in columns]
    if notes and (told := _of_queries(found, catalog)):
        notes[0] = ", ".join(filter(None, (notes[0], told)))
    if notes and (said := runtime.comments.get(found.home)):
        notes[0] = "; ".join(filter(None, (notes[0], said)))
    secret = _confidential(catalog, found) if isinstance(found, StreamDef) else None
    if secret is not None and notes:  # of the rows, so it stands beside the first column
        told = secret if secret.startswith("seen") else f"rows are confidential {secret}"
        notes[0] = ", ".join(filter(None, (notes[0], told)))
    return as_rows(
        [
            ("column", STRING, [f.name for f in columns]),
            ("type", STRING, [str(f.type) for f in columns]),
            ("nullable", STRING, ["yes" if f.nullable else "no" for f in columns]),
            ("note", STRING, notes),
        ]
    )


def _of_queries(found: StreamDef | TableDef | QueryDef, catalog: Catalog) -> str:
    """Which queries' answers a query reads, and which read its own; beside the first column."""
    if not isinstance(found, QueryDef):
        return ""
    over = [q.name for a in found.over if (q := catalog.at(Catalog.key(a))) is not None]
    by = [q.name for q in catalog.queries.values() if found.address in q.over]
    told = [f"reads {queries(over)}" if over else "", f"read by {queries(by)}" if by else ""]
    return ", ".join(filter(None, told))


def queries(names: list[str]) -> str:
    """`query a`, `queries a and b`."""
    return f"{'query' if len(names) == 1 else 'queries'} {listed(names)}"


def _note(found: StreamDef | TableDef | QueryDef, i: int) -> str | None:
    notes = []
    match found:
        case StreamDef(timestamp=t, unit=unit) if t == i:
            notes.append("event time" + (f" in {unit}" if unit else ""))
        case TableDef(key=key) if i in key:
            notes.append("primary key")
    if isinstance(found, StreamDef) and i in dict(found.computed):
        notes.append("computed")
    if isinstance(found, StreamDef) and i == found.weight:
        notes.append("computed, how many rows that came it stands for")
    if isinstance(found, StreamDef) and found.key and i in (*found.key, found.operation):
        notes.append("key" if i in found.key else "what a row does: U or D")
    if found.schema[i].default is not None:
        notes.append("has a default")
    match found:
        case StreamDef(archive_cluster=name) | QueryDef(archive_cluster=name) if (
            name == found.schema[i].name
        ):
            notes.append("the archive is clustered by it")
    return ", ".join(notes) or None
