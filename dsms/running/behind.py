"""Rows that are accepted and not yet in any answer, since they lie behind the clock; and what that clock waits for."""

from __future__ import annotations

from collections.abc import Iterable

from dsms.running.query import RunningQuery
from dsms.running.world import World


def rows_behind(world: World, streams: Iterable[str], at: int) -> int:
    """Accepted rows of these streams with instants later than `at`.

    Some wait in their stream until it is complete up to them; others are complete, and wait for a slower stream: these
    are counted where a ring or a query holds them."""
    return sum(world.inputs[key].waiting + _complete_after(world, key, at) for key in streams)


def _complete_after(world: World, stream: str, at: int) -> int:
    if world.inputs[stream].completed <= at:
        return 0
    if stream in world.rings:
        return sum(len(rows) for rows in world.rings[stream].rows(at))
    continuous = [q for q in world.queries.values() if isinstance(q, RunningQuery) and stream in q.reads]
    return max((s.waiting for q in continuous for s in q.sources_of(stream)), default=0)


def waits_for(world: World, streams: Iterable[str]) -> str | None:
    """What must come for the clock of a query to move on: of its slowest stream; None if it reads no stream."""
    names = list(streams)
    if not names:
        return None
    slowest = world.clocks.slowest(names)
    if slowest is None:
        return "nothing: all its streams have ended"
    status = world.clocks.status(slowest)
    return f"{status.name}: {status.held_by}"
