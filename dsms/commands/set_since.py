"""ALTER STREAM s SET SINCE TO instant: earlier rows of the stream have been, and are not here.

A stream that gets the rows that another one kept, after a move, is as if it had had the others,
too, and had let go of them: as if a row had come in the microsecond before the instant.  So
whatever rests on rows of those times says that it lacks some.  Of a stream with KEY it says that
what it held before is not known; what it holds comes as rows of whatever instants.
"""

from __future__ import annotations

from dsms.api import Done
from dsms.commands.set_clock import instant_of, stream_key
from dsms.commands.store import Store
from dsms.errors import UsageError
from dsms.intake.fed import FedInput
from dsms.intake.stream import StreamInput
from dsms.intake.values import instant_text
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.catalog import Catalog
from dsms.sql.printer import to_sql
from dsms.sql.suggest import listed
from dsms.sql.types import ALWAYS, MIN_INSTANT


def set_since(
    runtime: Runtime, store: Store, statement: ast.SetSince, now: int | None, catalog: Catalog
) -> Done:
    """From the instant on all rows of the stream will be here.  `now`: the engine's time.

    Raises DS401 no such stream, DS333 where it can't be said, DS509 NOW before the time is
    known."""
    key = stream_key(runtime, statement.name, catalog)
    entry, since = runtime.inputs[key], instant_of(statement.since, now)
    name = entry.definition.name
    if not runtime.replaying:
        _check(runtime, key, since, now, catalog)
    said = ast.SetSince(statement.name, ast.Instant(since), pos=statement.pos)
    store(lambda s: None, "statement", to_sql(said).encode())
    if entry.definition.key:
        entry.unknown = max(since - 1, ALWAYS)
    elif since > MIN_INSTANT:
        _begin(runtime, key, entry, since - 1)
    known = f"what stream {name} holds is" if entry.definition.key else f"rows of stream {name} are"
    return Done(f"{known} known since {instant_text(since)}")


def _check(runtime: Runtime, key: str, since: int, now: int | None, catalog: Catalog) -> None:
    """Raise DS333 where it would be no news, or not true."""
    entry = runtime.inputs[key]
    name = entry.definition.name
    if entry.ended:
        raise _refused(f"stream {name} has ended")
    if entry.newest > ALWAYS or entry.waiting or entry.completed >= since:
        raise _refused(f"stream {name} has rows already, or its clock has come to that instant")
    if not entry.event_time:
        stamped = f"rows of stream {name} are stamped on arrival, and"
        if now is None:
            raise _refused(f"{stamped} no time is known yet", "call advance(now) first")
        if since > now:
            raise _refused(f"{stamped} that time has yet to be")
    own = Catalog.key(entry.definition.own or "")
    readers = [q for k, q in runtime.queries.items() if key in q.reads and k != own]
    if readers:
        known = [q.name for q in readers if catalog.find(q.name)] or ["queries of others"]
        raise _refused(f"stream {name} is read already: {listed(known)}")


def _refused(
    message: str,
    hint: str = "say it of a new stream, before its rows and before the queries that read it",
) -> UsageError:
    return UsageError("DS333", message, hint=hint)


def _begin(runtime: Runtime, key: str, entry: StreamInput, gone: int) -> None:
    """As if a row of the instant `gone` had come, and left."""
    entry.newest = runtime.first_rows[key] = gone
    entry.promised = max(entry.promised, gone)
    if isinstance(entry, FedInput):
        for feed in entry.feeds.values():
            feed.floor = max(feed.floor, gone)
    elif not entry.event_time:
        entry.advance(gone + 1)
    if (ring := runtime.rings.get(key)) is not None:
        ring.reach = ring.newest = gone
    runtime.recents.begin_anew(key, entry)
    runtime.clocks.active(key)
    runtime.pump_all()
