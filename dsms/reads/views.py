"""`FROM q` in a query that runs once, and all that a stream with KEY holds: the answer of query q
as of an instant that it may have passed.

What is read beside it may be slower.  A continuous query's view at an earlier instant is the view
now, less what has entered since, with what has left since: its result log has both, each at its
instant.  A periodic query's answer is that of the last boundary up to then.  Where the log does not
reach back so far, that is said, as of streams (`since`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms.forms import bags
from dsms.intake.values import instant_text
from dsms.periodic.evaluated import EvaluatedQuery
from dsms.periodic.query import PeriodicQuery
from dsms.plan.boundaries import boundaries, next_boundary
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.running.runtime import Runtime
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.types import ALWAYS, FOREVER, MIN_INSTANT


def answered(query: Registered) -> int:
    """The last instant that its answer takes in; FOREVER where it reads tables alone, whose last
    change holds on."""
    if not query.reads:
        return FOREVER
    if isinstance(query, EvaluatedQuery) and query.numbers is None and query.answered != ALWAYS:
        return query.answered - 1
    return query.shown_clock if query.shown_clock >= MIN_INSTANT else ALWAYS


def view(runtime: Runtime, query: Registered, at: int) -> pa.RecordBatch | None:
    """Its answer as of `at`, of which rows may be missing, as `view_from` says; None: it has
    none."""
    now = query.answer()
    if now is None:
        return None
    if not _at_boundaries(query):
        known = view_from(runtime, query, at) is None
        return _undone(query, now, at) if known else _there_since(query, now, at)
    if answered(query) <= at:
        return now
    boundary = _boundary(query, at)
    parts = [now.slice(0, 0)]
    if boundary is not None:
        told = (c for c in query.log.chunks if c.seq >= query.log.current)
        for chunk in told:  # since no clock was set back
            first, end = np.searchsorted(chunk.at, [boundary, boundary + 1]).tolist()
            parts.append(chunk.data.slice(first, end - first))
    return _whole(parts)


def view_from(runtime: Runtime, query: Registered, at: int) -> int | None:
    """The first instant as of which its answer is known; None: it is known as of `at`."""
    last, chunks = answered(query), query.log.chunks
    if last <= at or query.output.kind != "rstream":
        return None
    if _at_boundaries(query):
        return _boundary_from(query, at, last)
    if query.shown_clock <= at or (chunks and chunks[0].at[0] <= at):
        return None
    whole = chunks[0].seq == 0 if chunks else query.seq == 0
    if whole and (not query.reads or _of_key(runtime, query) is not None):
        return None  # it began when its stream did
    if (known := query.log.known_from) is not None:
        return None if known <= at else min(known, last, query.shown_clock)
    return int(chunks[0].at[0]) if chunks else min(last, query.shown_clock)


def shown_at(query: Registered, at: int) -> int:
    """The instant of the answer that it shows as of `at`: with SLIDE that of a boundary."""
    boundary = _boundary(query, at) if _at_boundaries(query) else None
    return at if boundary is None else boundary - 1


def gone(runtime: Runtime, query: Registered, since: int) -> UsageError:
    """DS407: it is not known any more what the query showed."""
    own = _of_key(runtime, query)
    what = f"query {query.name} shows" if own is None else f"stream {own.name} holds"
    return UsageError(
        "DS407",
        f"what {what} is known as of {instant_text(since)} and later, and what is read beside it "
        "has not come so far",
        hint="ask again when the other streams have come there, or register the query: CREATE "
        "QUERY q AS ...",
    )


def _of_key(runtime: Runtime, query: Registered) -> StreamDef | None:
    """The stream with KEY of which the query keeps what it holds; None: it is another one."""
    own = runtime.catalog.whose(query.definition)
    return own if own is not None and Catalog.key(own.current or "") == query.home else None


# ---------------------------------------------------------------- views


def _undone(query: Registered, now: pa.RecordBatch, at: int) -> pa.RecordBatch:
    """A view without what its log says of instants after `at`; rows that are put back come last."""
    parts, signs = [now], [np.ones(now.num_rows, np.int8)]
    for chunk in reversed(query.log.chunks):
        if chunk.at[-1] <= at:
            break
        first = int(np.searchsorted(chunk.at, at, side="right"))
        parts.append(chunk.data.slice(first))
        signs.append(-chunk.sign[first:])
    if len(parts) == 1:
        return now
    rows = _whole(parts)
    kept, sign = bags.net(rows.columns, np.concatenate(signs))
    return rows.take(pa.array(kept[sign > 0]))


def _there_since(query: Registered, now: pa.RecordBatch, at: int) -> pa.RecordBatch:
    """Of its view now the rows that are known to have been there at `at`."""
    if not isinstance(query, RunningQuery) or query.sink.kept is None:
        return now.slice(0, 0)
    rows = query.sink.rows()
    rows = rows.take(np.flatnonzero(rows.ts <= at))
    return pa.RecordBatch.from_arrays(list(rows.cols), schema=now.schema)


def _whole(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    columns = [pa.concat_arrays(c) for c in zip(*(p.columns for p in parts), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=parts[0].schema)


# ---------------------------------------------------------------- answers at boundaries


def _at_boundaries(query: Registered) -> bool:
    return query.output.slide is not None or isinstance(query, EvaluatedQuery)


def _boundary(query: Registered, at: int) -> int | None:
    """The one of which the answer holds at `at`; None: the log does not tell it apart."""
    slide = query.output.slide
    if slide is None or slide.by_rows:
        return None
    found = boundaries(slide, max(at, MIN_INSTANT) + 1 - 3 * slide.every, at + 1)
    return int(found[-1]) if len(found) else None


def _boundary_from(query: Registered, at: int, last: int) -> int | None:
    """`view_from`; `last`: the last instant that its answer takes in."""
    boundary, slide, log = _boundary(query, at), query.output.slide, query.log
    if boundary is None or slide is None or (not log.chunks and query.seq):
        return last
    known = log.known_from
    if known is None:
        known = query.first - 1 if isinstance(query, PeriodicQuery) else ALWAYS
    if log.lost > ALWAYS:  # others of its instant may be forgotten
        known = max(known, next_boundary(slide, log.lost) - 1)
    return None if at >= known else min(last, known)
