"""The start of a continuous query: it is filled with the rows that the rings still hold of its
windows.

Rows up to its clock go through its operators, all at once, and nothing of it is reported but the
answer that comes of it; rows that streams ahead of the clock have handed on already wait for their
turn.  So it answers as if each stream had begun with the rows that its windows still hold.
"""

from __future__ import annotations

from dsms.intake.values import instant_text
from dsms.running.past import Past, complete_after, pasts, rows_missing, rows_of
from dsms.running.query import RunningQuery
from dsms.running.runtime import Runtime
from dsms.sql.types import ALWAYS, FOREVER

GONE = "its windows reach back to rows that are gone: answers are partial"


def begin(runtime: Runtime, query: RunningQuery) -> tuple[str, ...]:
    """Start a query that reads streams, and let it answer up to its clock; what the user should
    know of that."""
    clock = runtime.clock_of(query.reads)
    needed = list(pasts(query.output, lasting=True))
    for past in needed:
        for batch in rows_of(past, runtime.rings.get(past.stream), clock):
            query.pipeline.sources[past.leaf].push(batch)
    note = _take_note(runtime, query, needed, clock)
    query.begin(clock)
    if query.early:
        _hand_on_early(runtime, query)
    query.advance(runtime.due(query))
    return note


def _take_note(
    runtime: Runtime, query: RunningQuery, needed: list[Past], clock: int
) -> tuple[str, ...]:
    fronts = {s: runtime.handed_on(s) for s in query.reads}
    timed, counted = (
        [p for p in needed if p.rows is None],
        [p for p in needed if p.rows is not None],
    )
    query.partial_until = complete_after(timed, runtime.rings, fronts, clock)
    missing = rows_missing(counted, runtime.rings, fronts, clock)
    if query.partial_until > ALWAYS or not missing:
        return partial_note(query.partial_until)
    return (f"{GONE} until {missing} more {'row comes' if missing == 1 else 'rows come'}",)


def _hand_on_early(runtime: Runtime, query: RunningQuery) -> None:
    """Rows of the newest instant, which others take when it is complete."""
    for stream in query.reads:
        for source in query.sources_of(stream):
            for batch in runtime.inputs[stream].early:
                source.push(batch)


def partial_note(until: int) -> tuple[str, ...]:
    """What a user should know of a query whose answers miss rows up to that instant."""
    if until <= ALWAYS:
        return ()
    shown = "for ever" if until >= FOREVER else f"until {instant_text(until)}"
    return (f"{GONE} {shown}",)
