"""The start of a continuous query: it is filled with the rows that the rings still hold of its
windows.

Rows up to its clock go through its operators, all at once, and nothing of it is reported but the
answer that comes of it; rows that streams ahead of the clock have handed on already wait for their
turn.  So it answers as if each stream had begun with the rows that its windows still hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsms.intake.values import instant_text
from dsms.operators.window_rows import RowsWindowOp
from dsms.plan.parts import node_at
from dsms.python_functions.cutting import uncut
from dsms.running.current import keeper, past_rows
from dsms.running.inheriting import Inherited
from dsms.running.part import all_stages
from dsms.running.past import Past, complete_after, pasts, rows_missing, too_young
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER

GONE = "its windows reach back to rows that are gone: answers are partial"
ASIDE = (
    "its windows reach back to rows that are gone, or kept for SELECT alone: answers are partial"
)


def begin(runtime: Runtime, query: RunningQuery) -> tuple[str, ...]:
    """Start a query that reads streams, and let it answer up to its clock; what the user should
    know of that."""
    note, filling = beginning(runtime, query)
    for _ in filling:
        pass
    return note


def beginning(
    runtime: Runtime, query: RunningQuery, has: Inherited | None = None, tells: bool = True
) -> tuple[tuple[str, ...], Iterator[None]]:
    """`begin` piece by piece: what the user should know, and the pieces.

    has    what it has of another one;  tells: its first answer

    It has all rows of its past when this returns; what streams hand on between the pieces waits in
    it for their end."""
    move = uncut()(lambda read: runtime.run_unit(read, None))
    read = runtime.answers.attach(query.home, query, move)
    clock = runtime.clock_of(query.reads)
    has = has or Inherited()
    needed = [p for p in pasts(query.output) if p.leaf in query.pipeline.sources]
    first = {leaf: runtime.inputs[key].next_complete for leaf, key in query.streams.items()}
    first |= _from_answers(query)
    for past in needed:
        rows = past_rows(runtime, past, clock)
        for batch in rows:
            first[past.leaf] = min(first[past.leaf], int(batch.number[0]))
            query.pipeline.sources[past.leaf].push(batch)
        if (own := keeper(runtime, past)) is not None:
            first[past.leaf] = own.clock  # as `_from_answers`
    query.starts = first | has.first
    note = _take_note(runtime, query, needed, clock, read, has)
    query.beginning = True
    return note, _filling(runtime, query, clock, tells)


def _from_answers(query: RunningQuery) -> dict[int, int]:
    """Since when it gets rows of the answers of others, by leaf of their plans: two that begin at
    one instant begin with the same rows."""
    found = {}
    for feed in query.feeds:
        for leaf in lp.leaves_of(node_at(query.phys, feed.path).node):
            found[leaf.leaf] = feed.part.clock
    return {leaf: at for leaf, at in found.items() if leaf in query.streams}


def _filling(runtime: Runtime, query: RunningQuery, clock: int, tells: bool) -> Iterator[None]:
    pause = runtime.settings.pause
    for _ in query.begin(clock, tells):
        if pause is not None and pause():
            query.pipeline.hurry(True)
        yield
    if query.early:
        _hand_on_early(runtime, query)
    yield from query.going(runtime.due(query))
    query.beginning = False
    query.advance(runtime.due(query))  # what has come meanwhile


def _take_note(
    runtime: Runtime,
    query: RunningQuery,
    needed: list[Past],
    clock: int,
    read: Sequence[RunningQuery],
    has: Inherited,
) -> tuple[str, ...]:
    look_back(runtime, query, needed, clock)
    for other in read:  # of which the answer is known as it stands
        whole = max(other.partial_until, other.clock if other.clock > clock else ALWAYS)
        query.partial_until = max(query.partial_until, whole)
        query.full_at += other.full_at
    query.partial_until = max(query.partial_until, has.partial_until)
    query.full_at += has.full_at
    shown = partial(runtime, query)
    return () if shown is None else (f"{missing(runtime, query)} {shown}",)


def missing(runtime: Runtime, query: Registered) -> str:
    """Why answers are partial: only RETAIN and rings are what queries begin with, since these are
    the same after a restart."""
    rings, recents = runtime.rings, runtime.recents.streams
    held = [(r, rings.get(s)) for s in query.reads if (r := recents.get(s)) is not None]
    aside = any(r.count and (ring is None or r.reach < ring.reach) for r, ring in held)
    return ASIDE if aside else GONE


def is_kept(runtime: Runtime, node: lp.Node, clock: int) -> bool:
    """Whether a query of that plan, which begins at the clock, would miss nothing."""
    needed = list(pasts(node))
    fronts = {p.stream: runtime.handed_on(p.stream) for p in needed}
    timed = [p for p in needed if p.rows is None]
    if complete_after(timed, runtime.rings, fronts, clock, _unknown(runtime, needed)) > clock:
        return False
    return not rows_missing(needed, runtime.rings, fronts, clock)


def look_back(runtime: Runtime, query: Registered, needed: Sequence[Past], clock: int) -> None:
    """Note what is gone of the rows that the query's windows reach back to."""
    fronts = {s: runtime.handed_on(s) for s in query.reads}
    timed = [p for p in needed if p.rows is None]
    unknown = _unknown(runtime, needed)
    query.partial_until = complete_after(timed, runtime.rings, fronts, clock, unknown)
    for own in (own for past in needed if (own := keeper(runtime, past)) is not None):
        ahead = own.clock if own.clock > clock else ALWAYS
        query.partial_until = max(query.partial_until, ahead)
    missing = rows_missing(needed, runtime.rings, fronts, clock)
    query.full_at = tuple(
        (s, min(FOREVER, runtime.inputs[s].next_complete + n)) for s, n in missing.items()
    )


def _unknown(runtime: Runtime, needed: Sequence[Past]) -> dict[str, int]:
    return {p.stream: runtime.inputs[p.stream].unknown for p in needed}


def partial(runtime: Runtime, query: Registered) -> str | None:
    """Until when, from now on, the query's answers miss rows that were gone when it was registered;
    None: they don't."""
    if query.partial_until >= FOREVER:
        return "for ever"
    whole = whole_at(runtime, query)
    until = None if whole is None else instant_text(whole)
    found = [until, until_full(runtime, query)]
    return "until " + " and until ".join(filter(None, found)) if any(found) else None


def whole_at(runtime: Runtime, query: Registered) -> int | None:
    """The instant from which windows in time miss nothing, if there is one and it is to come."""
    clock = runtime.clock_of(query.reads) if query.reads else ALWAYS
    return query.partial_until if max(ALWAYS, clock) < query.partial_until < FOREVER else None


def until_full(runtime: Runtime, query: Registered) -> str | None:
    """How many rows windows of the last rows miss, if any."""
    counted = [(s, at) for s, at in query.full_at if at < FOREVER]
    clock = runtime.clock_of(query.reads) if query.reads else ALWAYS
    if len(counted) < len(query.full_at) and _short(runtime, query, clock):
        return "more rows are old enough"  # how many have come is not for everybody
    missing = max((at - runtime.inputs[s].next_complete for s, at in counted), default=0)
    if missing <= 0:
        return None
    return f"{missing} more {'row comes' if missing == 1 else 'rows come'}"


def _short(runtime: Runtime, query: Registered, clock: int) -> bool:
    """Whether a window of the last rows is not full: as its operator has them or, where windows are
    scanned, the rings."""
    running = query if isinstance(query, RunningQuery) else _inner(query)
    if running is None:
        return too_young(list(pasts(query.output)), runtime.rings, clock)
    stages = all_stages(running.pipeline)
    windows = [s.operator for s in stages if isinstance(s.operator, RowsWindowOp)]
    return any(w.live() < w.length for w in windows)


def _inner(query: Registered) -> RunningQuery | None:
    """What runs a periodic query or a look-up, if operators do."""
    return getattr(getattr(query, "evaluator", None), "inner", None)


def _hand_on_early(runtime: Runtime, query: RunningQuery) -> None:
    """Rows of the newest instant, which others take when it is complete."""
    for stream in query.reads:
        for source in query.sources_of(stream):
            for batch in runtime.inputs[stream].early:
                source.push(batch)
