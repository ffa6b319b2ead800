"""The rows of a stream that a plan which is run once needs: from the stream's ring, by sub-window,
or from the newest rows that are kept of streams in general; and since when they are all there."""

from __future__ import annotations

from typing import assert_never

from dsms.errors import UsageError
from dsms.intake.values import duration_text, instant_text
from dsms.oneshot.reads import Read
from dsms.plan.windows import until
from dsms.running.recents import gone_upto
from dsms.running.runtime import Runtime
from dsms.sql import logical as lp
from dsms.sql.catalog import StreamDef
from dsms.sql.types import ALWAYS
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
)
from dsms.state.batch import Batch, narrow
from dsms.state.recent import Recent
from dsms.state.ring import Ring, SubWindow, between


def stream_of(scan: lp.StreamScan) -> str:
    """The key of the stream that a leaf reads."""
    return scan.stream.home


def in_ring(runtime: Runtime, read: Read, at: int) -> bool:
    """Whether a stream leaf is read from the stream's ring, if from anything."""
    return not isinstance(_held(runtime, read, at), Recent)


def stream_rows(runtime: Runtime, read: Read, at: int, floor: int = ALWAYS) -> list[Batch]:
    """The rows of a stream leaf as of `at` that are held, oldest first, and of instants after
    `floor`.  Raises DS407 where none are kept, DS553 or DS554 where files of them are lost."""
    since, upto = max(read.since(at), floor), read.upto(at)
    held = _held(runtime, read, at)
    if isinstance(held, Recent) and not _nothing(runtime, read, at):
        if _damaged(runtime, read):
            raise gone(runtime, read)
        return [narrow(b, len(read.node.schema)) for b in held.rows(since, upto)]
    rows = [between(s.rows, since, upto) for s in subwindows(runtime, read, at)]
    return [narrow(b, len(read.node.schema)) for b in rows if len(b)]


def subwindows(runtime: Runtime, read: Read, at: int) -> list[SubWindow]:
    """The sub-windows of the ring in which those rows lie, whole, oldest first; the open one last.
    Raises DS407."""
    if _nothing(runtime, read, at):
        return []
    ring, at, since = runtime.rings.get(_key(read)), read.upto(at), read.since(at)
    if ring is None or (_damaged(runtime, read) and not ring.holds(since)):
        raise gone(runtime, read)
    if read.rows is not None:
        return last_of(list(ring.subwindows(ALWAYS, at)), read.rows, at)
    return list(ring.subwindows(since, at))


def complete_from(
    runtime: Runtime, read: Read, at: int, floor: int = ALWAYS, appended: bool = False
) -> int | None:
    """The instant from which on all rows of the stream are there that a leaf needs as of `at`; None
    if no row is missing.  `floor`: rows up to there can't be used.  `appended`: it needs what a
    stream with KEY held at all times."""
    if _nothing(runtime, read, at):
        return None
    held, key = _held(runtime, read, at), _key(read)
    if (unknown := _unknown(runtime, read, at, appended)) is not None:
        return unknown
    reach = gone_upto(runtime.inputs[key]) if held is None else held.reach
    if isinstance(held, Recent) and held.rows(ALWAYS, floor):
        reach = max(reach, floor)
    if reach <= read.since(at) or reach < runtime.first_rows[key]:
        return None
    if read.rows is not None and held is not None and held.count >= read.rows:
        found = sum(len(b) for b in held.rows(reach, read.upto(at)))
        if found >= read.rows:
            return None
    return min(reach, read.upto(at)) + 1  # later rows than are needed say nothing


def kept(runtime: Runtime, key: str) -> tuple[int, int | None]:
    """How many rows of a stream one-time queries can read, and the instant from which on these are
    all; None: all that ever came."""
    found = [h for h in (runtime.rings.get(key), runtime.recents.streams.get(key)) if h is not None]
    held = min(found, key=lambda h: h.reach, default=None)
    entry, first = runtime.inputs[key], runtime.first_rows.get(key)
    reach = gone_upto(entry) if held is None else held.reach
    rows = 0 if held is None else held.count
    since = ALWAYS if first is None or reach < first else reach
    since = max(since, entry.unknown)
    return rows, since + 1 if since > ALWAYS else None


def _unknown(runtime: Runtime, read: Read, at: int, appended: bool) -> int | None:
    """The instant from which on all is known that a stream with KEY held, as the leaf needs it;
    None: that is."""
    unknown, ago = runtime.inputs[_key(read)].unknown, read.ago + until(read.spec)
    if unknown <= ALWAYS or not (appended or (ago and at - ago < unknown)):
        return None
    return min(unknown, at - ago) + 1


def floors(runtime: Runtime, plan: lp.Node) -> dict[int, int]:
    """By stream leaf below a non-retroactive join the instant up to which its table may not know
    any more how it was."""
    found: dict[int, int] = {}
    for node in lp.nodes_of(plan):
        if isinstance(node, lp.JoinNRR):
            forgotten = runtime.tables[node.table.table.home].forgotten
            for leaf in lp.leaves_of(node.child) if forgotten > ALWAYS else ():
                found[leaf.leaf] = max(forgotten - 1, found.get(leaf.leaf, ALWAYS))
    return found


def last_of(there: list[SubWindow], rows: int, at: int) -> list[SubWindow]:
    """The youngest of them, until they hold so many rows up to `at`."""
    count, first = 0, len(there)
    while first and count < rows:
        first -= 1
        count += len(between(there[first].rows, ALWAYS, at))
    return there[first:]


def _key(read: Read) -> str:
    assert isinstance(read.node, lp.StreamScan)
    return stream_of(read.node)


def _nothing(runtime: Runtime, read: Read, at: int) -> bool:
    """No row has come, or none since the window began."""
    key = _key(read)
    newest = max(runtime.inputs[key].newest, ALWAYS)
    return runtime.handed_on(key) == ALWAYS or newest <= read.since(at)


def _held(runtime: Runtime, read: Read, at: int) -> Ring | Recent | None:
    """What holds the rows: the ring, unless it lacks some, and the newest rows reach back
    further."""
    key = _key(read)
    ring, recent = runtime.rings.get(key), runtime.recents.streams.get(key)
    if ring is None or recent is None:
        return recent if ring is None else ring
    return ring if ring.reach <= max(recent.reach, read.since(at)) else recent


def _damaged(runtime: Runtime, read: Read) -> bool:
    """Whether files of rows of the stream are lost, and that not accepted."""
    durable = runtime.durable
    return durable is not None and _key(read) in durable.journal.damaged


def gone(runtime: Runtime, read: Read, since: int | None = None) -> UsageError:
    """What to say where a stream lacks rows that a window reaches back to; `since`: it has all from
    that instant on."""
    assert isinstance(read.node, lp.StreamScan)
    stream, durable = read.node.stream, runtime.durable
    damage = None if durable is None else durable.journal.damaged.get(stream_of(read.node))
    if damage is not None:
        message = (
            f"stream {stream.name} has lost rows that this window reaches back to: {damage.message}"
        )
        return UsageError(damage.code, message, hint=damage.error(stream.name).hint)
    match read.spec:
        case Time(length, until) if stream.retain is not None and length + until <= stream.retain:
            message = (
                f"stream {stream.name} lacks rows that this window reaches back to: they were "
                "lost, and that accepted, had left before the clock was set back, or did not come "
                "along (SET SINCE)"
            )
            return UsageError(
                "DS407",
                message,
                hint="ask for a shorter window, or wait until the loss has left it",
            )
        case Time() | Now() | Partitioned(age=int()):
            hint = "declare the stream with RETAIN d and ask for a [RANGE t] within it"
        case Rows():
            hint = "ask for fewer rows, or declare the stream with a longer RETAIN"
        case (
            Partitioned()
            | Unbounded()
            | Landmark()
            | Latest()
            | Lasting()
            | Throttled()
            | First()
            | Session()
            | When()
        ):
            hint = (
                "this window needs all rows that ever came: put a [RANGE t] within RETAIN on "
                "the stream"
            )
        case _:
            assert_never(read.spec)
    what = _keeps(stream, since if kept(runtime, _key(read))[0] else None)
    message = f"stream {stream.name} {what}, so this window can't be answered now"
    return UsageError(
        "DS407", message, hint=f"{hint}, or register the query: CREATE QUERY q AS ..."
    )


def _keeps(stream: StreamDef, since: int | None) -> str:
    if stream.retain is not None:
        return f"keeps the last {duration_text(stream.retain)} of its rows"
    if since is None:
        return "keeps no rows"
    return f"keeps its newest rows, which are complete from {instant_text(since)} on"
