"""When a change of a table happens, and which queries do not see it.

A table follows the clock of the streams that its queries read: a change without AT happens at the
newest event time accepted on them so far (on any stream, where no query reads it), behind every
answer that was given over the table.  The first rows that it ever gets hold from the beginning.  A
query whose streams have all ended does not count.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsms.intake.values import instant_text
from dsms.running.part import Part
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.runtime import ENDED, Runtime
from dsms.sql.suggest import listed
from dsms.sql.types import ALWAYS, MIN_INSTANT

FAR = 86_400_000_000  # µs that a change may lie ahead of a stream before that is worth a word


def instant_of_change(runtime: Runtime, key: str, at: int | None) -> int:
    """When a change of the table happens.  `at`: what the statement says.  Raises DS523 for an AT
    that can't be."""
    readers = [q for q in _readers(runtime, key) if not _ended(runtime, q)]
    streams = {s for q in readers or _readers(runtime, key) for s in q.reads}
    return runtime.tables[key].instant(
        at,
        runtime.clocks.newest(streams or runtime.inputs),
        max(_given(runtime, key, readers), default=None),
    )


def _given(runtime: Runtime, key: str, readers: list[Registered]) -> Iterator[int]:
    """How far answers over the table were given.  A query that sleeps below a part is told the
    time late: the part has come that far for it."""
    shared = [p for p in runtime.dispatch.parts.values() if key in p.tables]
    yield from (p.begun for p in shared if not _ended(runtime, p))
    yield from (q.begun for q in readers if q.begun > ALWAYS or isinstance(q, RunningQuery))


def unseen(runtime: Runtime, key: str, at: int, said: bool) -> tuple[str, ...]:
    """What a user should know of a change at `at`: of queries that do not see it, or see it late.

    said  the statement has an AT, so only what can never be is worth a word"""
    return tuple(_unseen(runtime, key, at, said))


def _unseen(runtime: Runtime, key: str, at: int, said: bool) -> Iterator[str]:
    readers = [q for q in _readers(runtime, key) if q.reads and q.failure is None]
    over = [q for q in readers if _ended(runtime, q)]
    if over:
        names, whose = listed(sorted(q.name for q in over)), "its" if len(over) == 1 else "their"
        yield (
            f"{'query' if len(over) == 1 else 'queries'} {names} will not see this: {whose} "
            "streams have ended"
        )
    if said:
        return
    for query in readers:
        if query not in over and (ahead := _ahead(runtime, query, at)):
            yield f"query {query.name} will not see this before then: {ahead}"


def unseen_tables(runtime: Runtime, query: Registered) -> tuple[str, ...]:
    """What a user should know of a query just registered: tables that changed later than its
    streams have got to."""
    notes = []
    for key in dict.fromkeys(query.tables if query.reads else ()):
        table = runtime.tables[key]
        if ahead := _ahead(runtime, query, table.last_change):
            what = (
                f"table {table.definition.name} last changed at {instant_text(table.last_change)}"
            )
            notes.append(f"{what}, and earlier rows do not see that: {ahead}")
    return tuple(notes)


def _readers(runtime: Runtime, key: str) -> list[Registered]:
    return [q for q in runtime.queries.values() if key in q.tables]


def _ended(runtime: Runtime, query: Registered | Part) -> bool:
    """Nothing can come any more."""
    return bool(query.reads) and runtime.clocks.query_clock(query.reads) >= ENDED


def _ahead(runtime: Runtime, query: Registered, at: int) -> str | None:
    """How far its streams have got, if `at` lies far ahead of that; None if it does not."""
    fronts = {s: runtime.clocks.front(s) for s in query.reads if not runtime.inputs[s].ended}
    slowest = min(fronts, key=lambda s: fronts[s], default=None)
    if slowest is None:
        return None
    if at < MIN_INSTANT or at - fronts[slowest] <= FAR:
        return None
    name = runtime.inputs[slowest].definition.name
    if fronts[slowest] == ALWAYS:
        return f"stream {name} has had no rows yet"
    return f"stream {name} has come to {instant_text(fronts[slowest])}"
