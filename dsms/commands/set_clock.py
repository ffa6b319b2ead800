"""ALTER STREAM s SET CLOCK TO instant: the way out where the clock of a stream has been moved too
far.

The clock of a query never goes back, so the queries that read the stream are registered anew, in
their order, over what is kept then; the stream itself is as if its clock had never passed the
instant.  Results that were told stay told, and are numbered on.

Punctuations are taken back with it, and where the clock stands right they alone are: queries have
let go of rows by them, so these begin anew, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dsms.api import Done
from dsms.commands.anew import bound_again
from dsms.commands.define import detach, start_query
from dsms.commands.registering import left
from dsms.commands.slices import Pieces
from dsms.commands.store import Store
from dsms.errors import UsageError
from dsms.intake.stream import StreamInput
from dsms.intake.values import instant_text
from dsms.running.first_answers import arrive, arriving
from dsms.running.measure import StreamFigures
from dsms.running.paused import PausedQuery
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog, QueryDef
from dsms.sql.printer import to_sql
from dsms.sql.suggest import hint, listed
from dsms.state.ring import Need

WHO = "ALTER STREAM"  # among those who need rows of a ring, while queries begin anew


@dataclass(frozen=True, slots=True)
class Anew:
    """A query that is registered anew: as it was, and bound again."""

    old: Registered
    definition: QueryDef
    bound: lp.Output


def set_clock(
    runtime: Runtime,
    store: Store,
    statement: ast.AlterStream,
    now: int | None,
    see: Callable[[], Catalog],
) -> Pieces[Done]:
    """Set it back; nothing happens where it has not come so far.  `now`: the engine's time; `see`:
    gives the catalog as who asks for it sees it.

    What queries begin anew with goes into them piece by piece.  Who asks for one meanwhile waits
    for it (`running.first_answers`); this statement can't be cancelled any more.
    Raises DS401 no such stream, DS417 where it can't be, DS509 NOW before the time is known."""
    stream_key(runtime, statement.name, see())
    yield from arriving(runtime)
    catalog = see()
    key = stream_key(runtime, statement.name, catalog)
    entry, queries = runtime.inputs[key], _queries(runtime, key)
    name = entry.definition.name
    if not runtime.replaying:
        _check_kind(entry, queries, catalog)
    to = instant_of(statement.clock, now)
    back = _is_ahead(entry, to)
    if not back and (entry.promises is None or not entry.promises.count):
        return Done(f"the clock of stream {name} has not passed {instant_text(to)}")
    if not runtime.replaying:
        _check(runtime, key, to, queries, catalog)
    anew = [_bound(runtime, query) for query in queries]
    said = replace(statement, clock=ast.Instant(to))
    store(lambda s: None, "statement", to_sql(said).encode())
    notes = tuple(_moved(runtime, key, to if back else None, anew, catalog))
    keys = [q.home for q in queries]
    try:
        yield from arriving(runtime, keys)
        for group in list(runtime.shared.of(key)):
            while left(runtime, group):
                yield None
    finally:
        for query in keys:
            arrive(runtime, query)
    begun = f"; registered anew: {listed(_names(queries, catalog))}" if queries else ""
    if not back:
        return Done(f"punctuations of stream {name} are taken back{begun}", notes)
    was = instant_text(entry.completed + 1)
    return Done(
        f"the clock of stream {name} is set back from {was} to {instant_text(to)}{begun}", notes
    )


def _names(queries: list[Registered], catalog: Catalog) -> list[str]:
    return [q.name for q in queries if catalog.find(q.name)] or ["queries of others"]


def stream_key(runtime: Runtime, name: ast.Ident, catalog: Catalog) -> str:
    """The key of a stream that is named.  Raises DS401."""
    found = catalog.find(name.text, name.quoted)
    key = "" if found is None else found.home
    if key not in runtime.inputs:
        known = [s.name for s in catalog.streams.values()]
        message = f"there is no stream {name.text}"
        raise UsageError("DS401", message, name.pos.line, name.pos.column, hint(name.text, known))
    return key


def instant_of(said: ast.Instant | None, now: int | None) -> int:
    """µs; None: NOW, the engine's time.  Raises DS509 where that is not known."""
    if said is not None:
        return said.micros
    if now is None:
        raise UsageError(
            "DS509",
            "NOW is the engine's time, and that is not known yet",
            hint="call advance(now) first",
        )
    return now


def _is_ahead(entry: StreamInput, to: int) -> bool:
    if entry.event_time:
        return entry.ended or max(entry.promised, entry.newest) >= to
    return entry.ended or (entry.now is not None and entry.now > to)


def _queries(runtime: Runtime, key: str) -> list[Registered]:
    """Those that read the stream; and those that read nothing but tables which these read, too."""
    runtime.dispatch.all_told()
    tables = {t for q in runtime.queries.values() if key in q.reads for t in q.tables}
    return [
        q
        for q in runtime.queries.values()
        if key in q.reads or (not q.reads and not tables.isdisjoint(q.tables))
        if not isinstance(q, PausedQuery) or q.feed is not None
    ]


def _check_kind(entry: StreamInput, queries: list[Registered], catalog: Catalog) -> None:
    """Raise DS417 where the clock can't be set to any instant."""
    name = entry.definition.name
    if entry.ended:
        raise UsageError(
            "DS417", f"stream {name} has ended: nothing follows, whatever its clock says"
        )
    if entry.definition.key:
        raise UsageError(
            "DS417",
            f"stream {name} has a KEY: what its rows have replaced is gone, and does not come back",
        )
    if entry.fed_by or any(q.feed is not None for q in queries):
        fed = [catalog.called(q.definition.feeds or "") for q in queries if q.feed is not None] or [
            name
        ]
        raise UsageError(
            "DS417",
            f"queries feed stream {fed[0]}, whose clock is theirs, and never goes back",
            hint="drop it first, and declare it anew when the clock is set",
        )


def _check(
    runtime: Runtime, key: str, to: int, queries: list[Registered], catalog: Catalog
) -> None:
    """Raise DS417 where the clock can't be set there."""
    entry = runtime.inputs[key]
    name = entry.definition.name
    if entry.event_time and entry.newest >= to:
        raise UsageError(
            "DS417",
            f"stream {name} has a row of {instant_text(entry.newest)}, and its clock can't stand "
            "before its rows",
            hint=f"the earliest possible instant is {instant_text(entry.newest + 1)}; MAX FUTURE "
            "refuses such rows",
        )
    archived = [q for q in queries if q.archived is not None]
    if archived:
        raise UsageError(
            "DS417",
            f"results of {listed(_names(archived, catalog))} are archived, in the order of their "
            "instants",
            hint="drop what is archived first (its archive stays), and register it under another "
            "name",
        )
    own = runtime.archivings.get(key)
    if own is not None and own.landed_upto() >= to:
        raise UsageError(
            "DS417",
            f"the archive of stream {name} is complete up to {instant_text(own.seam)} already",
            hint=f"set the clock no earlier, or drop {name} and create it under another name",
        )


def _bound(runtime: Runtime, query: Registered) -> Anew:
    return Anew(query, *bound_again(runtime, query))


def _moved(
    runtime: Runtime, key: str, to: int | None, anew: list[Anew], catalog: Catalog
) -> Iterator[str]:
    """Do it; what the user should know of the queries of which he may know.  None: the clock stays
    where it is."""
    held = {s for a in anew for s in a.old.reads if s in runtime.rings}
    for stream in held:  # what is there stays there until all have begun again
        ring = runtime.rings[stream]
        rows, ago = (max((x(n) for n in ring.needs.values()), default=0) for x in (_rows, _ago))
        ring.keep(WHO, Need(ring.length, rows, ring.span, ago=ago))
    for query in anew:
        detach(runtime, query.old.home)
    if to is None:
        runtime.inputs[key].promises = None
    else:
        _set_back(runtime, key, to)
        _set_tables_back(runtime, {t for a in anew for t in a.old.tables}, to)
    read = {Catalog.key(name) for a in anew for name in a.definition.over}
    for query in anew:
        own = query.old.home
        pieces = own not in read and not query.definition.over and not runtime.replaying
        for note in start_query(
            runtime, query.definition, query.bound, later=pieces, pieces=pieces
        ):
            if catalog.find(query.old.name):
                yield f"query {query.old.name}: {note}"
        if own in runtime.beginnings:
            filling = runtime.beginnings[own]
            runtime.beginnings[own] = _arriving(runtime, own, query.old, filling)
        else:
            _go_on(query.old, runtime.queries[own])
    for stream in held:
        runtime.release(stream, WHO)


def _rows(need: Need) -> int:
    return need.rows


def _ago(need: Need) -> int:
    return need.ago


def _set_back(runtime: Runtime, key: str, to: int) -> None:
    entry = runtime.inputs[key] = runtime.inputs[key].set_back(to)
    runtime.clocks.replace(key, entry)
    runtime.figures[key] = StreamFigures(entry.definition)
    if key in runtime.first_rows:
        runtime.first_rows[key] = min(runtime.first_rows[key], to - 1)
    if key in runtime.archivings:
        runtime.archivings[key].set_back()
    if key in runtime.rings:
        runtime.rings[key].set_back(to)
    if key in runtime.recents.streams:
        runtime.recents.streams[key].set_back(to)
    runtime.pump(key)


def _set_tables_back(runtime: Runtime, tables: set[str], to: int) -> None:
    """Changes dated by the clock as it was happened at `to`, but not before answers that others
    have given."""
    for table in tables:
        given = [q.begun + 1 for q in runtime.queries.values() if table in q.tables]
        runtime.tables[table].set_back(max([to, *given]))


def _arriving(
    runtime: Runtime, key: str, old: Registered, filling: Iterator[object]
) -> Iterator[object]:
    yield from filling
    _go_on(old, runtime.queries[key])


def _go_on(old: Registered, new: Registered) -> None:
    """Results are numbered on.  Readers read on, unless they put an answer together from its
    changes."""
    new.log.go_on(old.seq)
    if isinstance(new, RunningQuery):
        new.sink.seq += old.seq
    if isinstance(new, RunningQuery) and new.output.kind == "rstream":
        for reader in old.readers:
            reader.finish(
                "DS418",
                f"query {old.name} was registered anew, since the clock of a stream was set back",
            )
        return
    later = list(new.log.chunks)
    new.log.prepend(old.log)
    new.readers = old.readers
    for chunk in later:
        new.tell(chunk)
