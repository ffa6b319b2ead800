"""Accepted rows that are not yet in any answer because the clock has not reached them, and what
that clock waits for."""

from __future__ import annotations

from collections.abc import Iterable

from dsms.running.part import Part
from dsms.running.query import RunningQuery
from dsms.running.runtime import Runtime


def rows_behind(runtime: Runtime, streams: Iterable[str], at: int) -> int:
    """Accepted rows of these streams with instants later than `at`.

    Some wait in their stream until it is complete up to them; others are complete, and wait for a
    slower stream: these are counted where the stream's rows are kept, or a query holds them."""
    return sum(runtime.inputs[key].waiting + _complete_after(runtime, key, at) for key in streams)


def _complete_after(runtime: Runtime, stream: str, at: int) -> int:
    if runtime.inputs[stream].completed <= at:
        return 0
    if stream in runtime.rings:
        return sum(len(rows) for rows in runtime.rings[stream].rows(at))
    recent = runtime.recents.streams.get(stream)
    rows = 0 if recent is None else sum(len(b) for b in recent.rows(at))
    continuous: list[RunningQuery | Part] = [
        *(q for q in runtime.queries.values() if isinstance(q, RunningQuery) and stream in q.reads),
        *runtime.dispatch.parts_of(stream),
    ]
    return max(rows, *(s.waiting for q in continuous for s in q.sources_of(stream)), 0)


def waits_for(runtime: Runtime, streams: Iterable[str]) -> str | None:
    """What must come for the clock of a query to move on: of its slowest stream; None if it reads
    no stream."""
    names = list(streams)
    if not names:
        return None
    slowest = runtime.clocks.slowest(names)
    if slowest is None:
        return "nothing: all its streams have ended"
    status = runtime.clocks.status(slowest)
    return f"{status.name}: {status.held_by}"
