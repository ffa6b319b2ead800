"""The rows of a stream that a plan which is run once needs, by sub-window, from the stream's
ring."""

from __future__ import annotations

from typing import assert_never

from dsms.errors import UsageError
from dsms.intake.values import duration_text
from dsms.oneshot.reads import Read
from dsms.running.runtime import Runtime
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog
from dsms.sql.types import ALWAYS
from dsms.sql.window import Landmark, Now, Partitioned, Rows, Time, Unbounded
from dsms.state.batch import Batch
from dsms.state.ring import SubWindow, between


def stream_of(scan: lp.StreamScan) -> str:
    """The key of the stream that a leaf reads."""
    return Catalog.key(scan.stream.name)


def stream_rows(runtime: Runtime, read: Read, at: int) -> list[Batch]:
    """The rows of a stream leaf as of `at`, oldest first.  Raises DS407 where some are not kept any
    more, DS553 or DS554 where files of them are lost."""
    since, upto = read.since(at), read.upto(at)
    rows = [between(s.rows, since, upto) for s in subwindows(runtime, read, at)]
    return [b for b in rows if len(b)]


def subwindows(runtime: Runtime, read: Read, at: int) -> list[SubWindow]:
    """The sub-windows in which those rows lie, whole, oldest first; the open one last.  Raises
    DS407."""
    assert isinstance(read.node, lp.StreamScan)
    key, at, since = stream_of(read.node), read.upto(at), read.since(at)
    ring = runtime.rings.get(key)
    if runtime.handed_on(key) == ALWAYS or max(runtime.inputs[key].newest, ALWAYS) <= since:
        return []  # nothing has come, or nothing since
    if ring is None:
        raise _gone(runtime, read)
    if read.rows is not None:
        found = last_of(list(ring.subwindows(ALWAYS, at)), read.rows, at)
        if ring.holds(since) or sum(len(between(s.rows, ALWAYS, at)) for s in found) >= read.rows:
            return found
    elif ring.holds(since):
        return list(ring.subwindows(since, at))
    raise _gone(runtime, read)


def last_of(there: list[SubWindow], rows: int, at: int) -> list[SubWindow]:
    """The youngest of them, until they hold so many rows up to `at`."""
    count, first = 0, len(there)
    while first and count < rows:
        first -= 1
        count += len(between(there[first].rows, ALWAYS, at))
    return there[first:]


def _gone(runtime: Runtime, read: Read) -> UsageError:
    assert isinstance(read.node, lp.StreamScan)
    stream, durable = read.node.stream, runtime.durable
    damage = None if durable is None else durable.journal.damaged.get(stream_of(read.node))
    if damage is not None:
        message = (
            f"stream {stream.name} has lost rows that this window reaches back to: {damage.message}"
        )
        return UsageError(damage.code, message, hint=damage.error(stream.name).hint)
    what = (
        "keeps no rows"
        if stream.retain is None
        else f"keeps the last {duration_text(stream.retain)} of its rows"
    )
    match read.spec:
        case Time(length, until) if stream.retain is not None and length + until <= stream.retain:
            message = (
                f"stream {stream.name} lacks rows that this window reaches back to: they were "
                "lost, and that accepted, or had left before the clock was set back"
            )
            return UsageError(
                "DS407",
                message,
                hint="ask for a shorter window, or wait until the loss has left it",
            )
        case Time() | Now():
            hint = "declare the stream with RETAIN d and ask for a [RANGE t] within it"
        case Rows():
            hint = "ask for fewer rows, or declare the stream with a longer RETAIN"
        case Partitioned() | Unbounded() | Landmark():
            hint = (
                "this window needs all rows that ever came: put a [RANGE t] within RETAIN on "
                "the stream"
            )
        case _:
            assert_never(read.spec)
    message = f"stream {stream.name} {what}, so this window can't be answered now"
    return UsageError(
        "DS407", message, hint=f"{hint}, or register the query: CREATE QUERY q AS ..."
    )
