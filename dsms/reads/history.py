"""`FROM q [window]` in a query that runs once: the rows that query q has told, as its result log
holds them, each at its instant.

What q takes back (deletions of an Rstream) is not taken out: the row has been told.  The log holds
the newest rows; what it has forgotten is said, as of streams (`since`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dsms.api import Chunk
from dsms.archiving.queries import edge
from dsms.errors import UsageError
from dsms.intake.values import instant_text
from dsms.oneshot.reads import Read
from dsms.running.registered import ENDED, Registered
from dsms.running.runtime import Runtime
from dsms.sql.types import ALWAYS, MIN_INSTANT
from dsms.state.batch import Batch


def told_upto(runtime: Runtime, query: Registered) -> int:
    """The instant up to which it has told everything: of a periodic query its last boundary; once
    all its streams have ended, and of tables alone, that of its last row."""
    newest = max((int(chunk.at[-1]) for chunk in query.log.chunks), default=ALWAYS)
    if not query.reads:
        return newest
    if query.clock >= ENDED:
        return max(newest, runtime.clock_of(query.reads))
    return edge(runtime, query)


def history_rows(query: Registered, read: Read, at: int, floor: int = ALWAYS) -> list[Batch]:
    """What it has told that the window needs as of `at`, of instants after `floor`, oldest first,
    with a last column that has the instants.  Raises DS407 where nothing is kept."""
    if not query.log.chunks and query.seq:
        raise gone(query)
    after, upto = max(read.since(at), floor), read.upto(at)
    found = (_batch(chunk, after, upto) for chunk in query.log.chunks)
    return [batch for batch in found if len(batch)]


def _batch(chunk: Chunk, after: int, upto: int) -> Batch:
    later = (chunk.at > after) | (after == ALWAYS)  # what was told before any instant is the oldest
    inside = np.flatnonzero((chunk.sign >= 0) & later & (chunk.at <= upto))
    at, rows = chunk.at[inside], chunk.data.take(pa.array(inside))
    shown = pa.array(at, mask=at < MIN_INSTANT)
    return Batch(at, None, None, (chunk.seq + inside,), (*rows.columns, shown))


def history_from(query: Registered, read: Read, at: int, floor: int = ALWAYS) -> int | None:
    """The instant from which on it lacks no row that the window needs, and that may be used (rows
    up to `floor` may not); None: it lacks none."""
    chunks = query.log.chunks
    if not chunks:
        return None
    reach = floor if chunks[0].at[0] <= floor else ALWAYS
    reach = max(reach, query.log.lost)  # others of its instant may be forgotten
    if reach <= read.since(at):
        return None
    if read.rows is not None:
        later = sum(len(b) for c in chunks if len(b := _batch(c, reach, read.upto(at))))
        if later >= read.rows:
            return None
    return min(reach, read.upto(at)) + 1


def gone(query: Registered, since: int | None = None) -> UsageError:
    """DS407: the log of the query lacks rows that a window reaches back to."""
    there = "no results" if since is None else f"its results from {instant_text(since)} on"
    return UsageError(
        "DS407",
        f"query {query.name} keeps {there}, so this window can't be answered now",
        hint="ask for a shorter window, or register the query WITH (result_log = n) of more rows",
    )
