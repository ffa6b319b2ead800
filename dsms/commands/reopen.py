"""ALTER STREAM s REOPEN: takes back that a stream has ended.

Nothing that was answered is answered anew.  The stream goes on behind every instant that a query
over it has been answered for, as after a heartbeat: its own last row, the clocks of the other
streams of those queries, the boundaries that SLIDE went on to.  So do the streams that ended
since this one did, which queries feed.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsms.api import Done
from dsms.commands.feeding import catch_up
from dsms.commands.store import Store
from dsms.errors import UsageError
from dsms.intake.fed import FedInput
from dsms.intake.stream import StreamInput
from dsms.intake.values import instant_text
from dsms.periodic.query import PeriodicQuery
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.running.table_source import TableSource
from dsms.sql import ast
from dsms.sql.catalog import Catalog
from dsms.sql.printer import to_sql
from dsms.sql.suggest import hint
from dsms.sql.types import ALWAYS, FOREVER


def reopen(runtime: Runtime, store: Store, statement: ast.Reopen, catalog: Catalog) -> Done:
    """Take rows again; nothing happens where the stream is open.

    Raises DS401 no such stream, DS442 one that can't be reopened."""
    name = statement.name
    found = catalog.find(name.text, name.quoted)
    key = "" if found is None else found.home
    if key not in runtime.inputs:
        known = [s.name for s in catalog.streams.values()]
        message = f"there is no stream {name.text}"
        raise UsageError("DS401", message, name.pos.line, name.pos.column, hint(name.text, known))
    entry = runtime.inputs[key]
    if not entry.ended:
        return Done(f"stream {entry.definition.name} is open")
    runtime.begin_all()
    runtime.pump_all()
    catch_up(runtime)
    runtime.dispatch.all_told()
    streams = list(_ended_with(runtime, key))
    if not runtime.replaying:
        _check(runtime, streams, catalog)
    behind = {stream: _answered(runtime, stream) for stream in streams}
    store(lambda s: None, "statement", to_sql(statement).encode())
    for stream, upto in behind.items():
        for query in _readers(runtime, [stream]):
            _go_on(runtime, query, stream, upto)
        _open(runtime.inputs[stream], upto)
    runtime.clocks.active(key)
    runtime.dispatch.told_all.clear()
    runtime.pump_all()
    also = [runtime.inputs[s].definition.name for s in streams[1:]]
    also = [s for s in also if catalog.find(s) is not None]
    return Done(_told(entry, behind[key]) + (f"; so are {', '.join(also)}" if also else ""))


def _told(entry: StreamInput, upto: int) -> str:
    since = f" behind {instant_text(upto)}" if upto > ALWAYS else ""
    return f"stream {entry.definition.name} is open again{since}"


def _ended_with(runtime: Runtime, key: str) -> Iterator[str]:
    """The stream, and those that queries over it feed, as far as these have ended."""
    yield key
    ended = {key}
    for fed in runtime.feeding.order:
        if runtime.inputs[fed].ended and not runtime.feeding.reads[fed].isdisjoint(ended):
            ended.add(fed)
            yield fed


def _readers(runtime: Runtime, streams: list[str]) -> list[Registered]:
    return [q for q in runtime.queries.values() if not set(q.reads).isdisjoint(streams)]


def _answered(runtime: Runtime, stream: str) -> int:
    """The instant up to which answers over the stream rest on that nothing follows."""
    entry = runtime.inputs[stream]
    readers = _readers(runtime, [stream])
    answered = [runtime.clock_of(q.reads) if q.early else runtime.due(q) for q in readers]
    gone = [table.forgotten for table in runtime.tables.values()]
    return max([entry.newest, entry.promised, *answered, *gone])


def _go_on(runtime: Runtime, query: Registered, stream: str, upto: int) -> None:
    """A query over a stream that is open again behind `upto`: one with SLIDE has boundaries to
    come; one that tells rows before their instants are over has told none behind that."""
    if isinstance(query, PeriodicQuery):
        query.until = FOREVER
    if isinstance(query, RunningQuery) and query.early:
        query.clock = query.begun = query.pipeline.upto = upto
        looked = runtime.dispatch.looked.get((stream, True))
        if looked is not None:
            looked.upto = upto


def _open(entry: StreamInput, upto: int) -> None:
    entry.ended = False
    entry.promised = max(entry.promised, upto)
    if isinstance(entry, FedInput):
        for feed in entry.feeds.values():
            feed.ended, feed.floor = False, max(feed.floor, upto)
    elif not entry.event_time and upto > ALWAYS:
        entry.advance(upto + 1)


def _check(runtime: Runtime, streams: list[str], catalog: Catalog) -> None:
    """Raise DS442 where that would change what was answered."""
    first = runtime.inputs[streams[0]]
    if isinstance(first, FedInput):
        message = f"stream {first.definition.name} ends where the streams end that its queries read"
        raise UsageError("DS442", message, hint="reopen those")
    for query in _readers(runtime, streams):
        if query.failure is None and (table := _unseen(query)) is not None:
            known = catalog.find(query.name) is not None
            who = f"query {query.name}" if known else "a query of others"
            raise UsageError(
                "DS442",
                f"table {table} has changed since {who} ended, at an instant that it has answered",
                hint="drop the query, reopen the stream, and register it again",
            )


def _unseen(query: Registered) -> str | None:
    """A table that changed, at an instant that the query has passed, without its seeing that."""
    if not isinstance(query, RunningQuery):
        return None
    pipelines = [query.pipeline, *(feed.part.pipeline for feed in query.feeds)]
    for stage in (stage for p in pipelines for stage in p.stages):
        source = stage.operator
        if not isinstance(source, TableSource) or source.cursor is None:
            continue
        if source.table.next_change(source.cursor) <= query.clock:
            return source.table.definition.name
    return None
