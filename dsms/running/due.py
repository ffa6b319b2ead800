"""Up to which instant a continuous query may answer: that of its clock and, when its streams have
ended, the one by which it has told rows that come later than any of the streams' own.

Sessions that are told at their close end a gap after their last row, a pattern that ends with NOT
matches when its window is over, and a window UNTIL some time ago lets rows in late.  All of it has
come by an instant that the plan and the newest rows say, however the plan was rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from dsms.intake.clock import Clocks
from dsms.intake.stream import StreamInput
from dsms.operators.window_episodes import GapsWindowOp
from dsms.plan.physical import Phys
from dsms.running.dispatch import Dispatch
from dsms.running.forgetting import before_rows
from dsms.running.part import Part, placed
from dsms.running.pipeline import Path
from dsms.running.query import RunningQuery
from dsms.running.registered import ENDED, Registered
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, MAX_INSTANT
from dsms.sql.window import Landmark, Lasting, Session, Throttled, Time, Unbounded
from dsms.tables.versioned import VersionedTable


class Around(Protocol):
    """The runtime, as far as it is needed here (`dsms.running.runtime`)."""

    inputs: dict[str, StreamInput]
    queries: dict[str, Registered]
    tables: dict[str, VersionedTable]
    dispatch: Dispatch
    clocks: Clocks

    def due(self, query: Registered) -> int: ...

    def clock_of(self, streams: Sequence[str]) -> int: ...


def furthest(inputs: Iterable[StreamInput]) -> int:
    """The furthest instant that any of these streams got to."""
    return max((max(entry.newest, entry.promised) for entry in inputs), default=ALWAYS)


def ended(runtime: Around, query: Registered | Part) -> bool:
    """Whether all its streams have."""
    return bool(query.reads) and runtime.clocks.query_clock(query.reads) >= ENDED


def by_clock(runtime: Around, query: RunningQuery | Part) -> int:
    """The instant that the clocks of its streams have come to, or at which its tables changed
    before there were rows."""
    if isinstance(query, Part):
        clock = max(map(runtime.clock_of, runtime.dispatch.far(query)), default=query.clock)
    else:
        clock = runtime.clock_of(query.reads)
        if query.early and clock < ENDED:
            return max(clock, *(runtime.inputs[n].settled for n in query.reads))
    return max(clock, before_rows(query.tables, runtime.tables))


def told_by(runtime: Around, query: Registered | Part) -> int:
    """The instant by which a continuous query, whose streams have all ended, has told all rows;
    ALWAYS: none came."""
    if not isinstance(query, RunningQuery | Part):
        return ALWAYS
    stages = placed(query.pipeline)
    ends = {path: op.last_end() for path, op in stages if isinstance(op, GapsWindowOp)}
    newest = _told_by(query.phys, (), lambda key: runtime.inputs[key].newest, ends)
    return min(newest, MAX_INSTANT)


def asleep(runtime: Around, stream: str | None) -> list[Registered]:
    """Queries that sleep, and of whose streams, which have all ended, one is `stream` (None: any):
    each once, to tell what is left."""
    if stream is not None and not runtime.inputs[stream].ended:
        return []
    ended = {key for key, entry in runtime.inputs.items() if entry.ended}
    dispatch, found = runtime.dispatch, dict[int, Registered]()
    for key in dispatch.places.keys() - dispatch.told_all if ended else ():
        if ended.issuperset(runtime.queries[key].reads):
            dispatch.told_all.add(key)
            found[dispatch.numbers[key]] = runtime.queries[key]
    return [q for _, q in sorted(found.items()) if runtime.due(q) > q.clock]


def _told_by(phys: Phys, path: Path, newest: Callable[[str], int], ends: Mapping[Path, int]) -> int:
    """The same of a node at the place `path`.

    newest  the timestamp of the last row of a stream, by its key;  ends: when the last open session
            ends, by the place of its window, where no length says that"""
    if isinstance(phys.node, lp.StreamScan):
        return newest(phys.node.stream.home)
    children = enumerate(phys.children)
    below = max((_told_by(p, (*path, k), newest, ends) for k, p in children), default=ALWAYS)
    if below == ALWAYS:
        return below
    match phys.node:
        case lp.Window(spec=Session(at_close=True, gap=int(gap))):
            return below + gap
        case lp.Window(spec=Session(at_close=True)):
            return max(below, ends.get(path, ALWAYS))
        case lp.Window(spec=Time() | Unbounded() | Landmark() | Lasting() | Throttled() as spec):
            return below + spec.until
        case lp.Match(kinds=(*_, "none"), span=span):
            return below + span
        case _:
            return below
