"""Since when all rows are there that the answer of a query rests on, where some of them were gone
when it was registered: `FROM q` and LOOKUP say what a SELECT over the streams would."""

from __future__ import annotations

from dsms.errors import UsageError
from dsms.intake.values import instant_text
from dsms.reads.views import shown_at
from dsms.running.beginning import until_full
from dsms.running.past import Past, held_after, pasts
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql.types import ALWAYS, FOREVER


def partial_from(runtime: Runtime, query: Registered, at: int) -> int | None:
    """The instant from which on the query's answer as of `at` lacks no row of a stream; None: it
    lacks none.

    What is gone since then counts, too, where it is not known any more what was gone before: what
    unbounded windows, and those of the last rows, lack."""
    shown = shown_at(query, at)
    if shown <= ALWAYS:
        return None  # there is no answer yet
    counts = until_full(runtime, query) is not None or _was_short(runtime, query, shown)
    if shown >= query.partial_until and not counts:
        return None
    found = [
        gone
        for past in pasts(query.output)
        if (gone := _gone(runtime, query, past, shown)) is not None and (counts or not past.rows)
    ]
    return max(found, default=shown) + 1


def _was_short(runtime: Runtime, query: Registered, shown: int) -> bool:
    """Whether the rows that made a window of the last rows full came after that instant, as far as
    they are held."""
    for stream, full in query.full_at if shown < query.clock else ():
        ring = runtime.rings.get(stream)
        later = ring.rows(max(shown, ring.reach)) if ring is not None else ()
        if any(int(b.number[0]) < full < FOREVER for b in later if len(b)):
            return True
    return False


def _gone(runtime: Runtime, query: Registered, past: Past, shown: int) -> int | None:
    """The instant up to which its windows over a stream may lack rows; None: they lack none."""
    held = _held(runtime, query, past, shown)
    if past.current:
        return held
    ring = runtime.rings.get(past.stream)
    gone = runtime.handed_on(past.stream) if ring is None else ring.reach
    if gone <= ALWAYS and held is not None:
        return held
    if past.length is not None:
        if query.partial_until < FOREVER:
            gone = min(gone, query.partial_until - past.length)
        return min(gone, shown) if shown - past.length < gone else None
    if past.rows is None and query.partial_until < FOREVER:
        return None
    return min(gone, shown)


def _held(runtime: Runtime, query: Registered, past: Past, shown: int) -> int | None:
    """The instant up to which a stream with KEY may have held what is not known."""
    at = runtime.inputs[past.stream].unknown
    if at <= ALWAYS or held_after((past,), {past.stream: at}, shown) <= shown:
        return None
    return min(at, shown)


def gone(query: Registered, since: int) -> UsageError:
    """DS407: what the answer of the query rests on is not all there."""
    return UsageError(
        "DS407",
        f"query {query.name} lacks rows that were gone when it was registered: its answer rests "
        f"on those from {instant_text(since)} on",
        hint="SHOW QUERIES FULL says until when answers are partial; declare the stream with a "
        "longer RETAIN for queries to begin with",
    )
