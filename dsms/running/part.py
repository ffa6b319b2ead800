"""A part of a plan that is the same in several queries: it runs once, and what it makes goes to
all.

The operators of the part are those that one query alone would have.  Each query has, in their
place, a queue of what has come out (`PartFeed`), from which it goes on by itself: with operators,
sink, log, readers and failures of its own.  A part is never behind those that it feeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np

from dsms.api import Cancel
from dsms.errors import DsmsError
from dsms.operators.expressions import ErrorCounter
from dsms.operators.pieces import Piece
from dsms.plan.physical import Phys
from dsms.python_functions.cutting import uncut
from dsms.running.faults import explained
from dsms.running.moving import advance
from dsms.running.pipeline import Path, Pipeline
from dsms.running.sources import StreamSource
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch, empty_batch

Lows = tuple[int, ...]


class Hands(Protocol):
    """Gives rows to those of a part's queries that sleep until there are some for them."""

    def hand(self, rows: Batch, lows: Lows) -> None: ...


@dataclass(slots=True)
class PartFeed(StreamSource):
    """What has come out of a part, in the place of its operators in another pipeline.

    path    that place
    errors  where rows that fail in the part count for the owner of that pipeline
    least   (id column, number): rows with a part whose arrival number is less are not for it, as
            these arrivals came before it was registered
    sleeps  `Part.sleepers` gives it its rows
    """

    part: Part = field(kw_only=True)
    path: Path = field(kw_only=True)
    errors: ErrorCounter = field(kw_only=True)
    width: int = field(kw_only=True)
    least: tuple[tuple[int, int], ...] = ()
    sleeps: bool = False

    def __post_init__(self) -> None:
        self.nothing = empty_batch(self.schema, self.width)

    def catch_up(self, waiting: Sequence[Batch]) -> None:
        """Rows that the part has made, and another feed still has before it."""
        for rows in waiting:
            self.give(rows, tuple(int(column.min()) for column in rows.ids))

    def give(self, rows: Batch, lows: Lows) -> None:
        """The next rows of the part; `lows`: not more than the least of each id column."""
        for column, least in self.least:
            if len(rows) and lows[column] < least:
                rows = rows.take(np.flatnonzero(rows.ids[column] >= least))
        self.push(rows)


@dataclass(slots=True)
class Part:
    """A running part; it goes when nothing is fed by it any more.

    phys           the part of the plan of the query that it was made of
    errors         rows that have failed in it
    streams        keys of the streams it reads, by leaf number of `phys`
    starts         the arrival number of the first row that it was given, by leaf number
    since          the instant from which on it has seen tables change
    partial_until  see `Registered`
    counted        some window of last rows was not full when it began
    feeds          of the pipelines that it feeds
    sleepers       made anew after a restart
    promised       by stream, the number of the first promise that it does not go by (`promised`)
    """

    name: str
    phys: Phys
    pipeline: Pipeline
    errors: ErrorCounter
    streams: dict[int, str]
    tables: tuple[str, ...]
    starts: Mapping[int, int]
    since: int
    partial_until: int = ALWAYS
    counted: bool = False
    clock: int = ALWAYS
    begun: int = ALWAYS
    flow: Iterator[Piece] | None = None
    failure: DsmsError | None = None
    feeds: list[PartFeed] = field(default_factory=list)
    sleepers: Hands | None = None
    promised: dict[str, int] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        names = [f.name for f in fields(self) if f.name != "sleepers"]
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.sleepers, self.promised = None, {}
        for name, value in state.items():
            setattr(self, name, value)

    @property
    def reads(self) -> tuple[str, ...]:
        """Keys of its streams, each once."""
        return tuple(sorted(set(self.streams.values())))

    @property
    def number(self) -> int:
        """How many had been made before."""
        return int(self.name.rpartition(" ")[2])

    @property
    def depth(self) -> int:
        """How many parts stand on each other, at most, below this one."""
        return max((1 + feed.part.depth for feed in feeds_of(self.pipeline)), default=0)

    def sources_of(self, stream: str) -> Iterator[StreamSource]:
        """Its leaves that read a stream themselves."""
        for leaf, key in self.streams.items():
            if key == stream and leaf in self.pipeline.sources:
                yield self.pipeline.sources[leaf]

    def push(self, stream: str, rows: Sequence[Batch]) -> None:
        """Rows that a stream hands on."""
        for source in self.sources_of(stream) if self.failure is None else ():
            for batch in rows:
                source.push(batch)

    def advance(self, upto: int, cancel: Cancel | None = None) -> None:
        """All that comes out of it up to `upto`.  An error stops it, and is kept for those that it
        feeds."""
        advance(self, upto, cancel)

    def going(self, upto: int) -> Iterator[None]:
        """`advance`, piece by piece."""
        for feed in feeds_of(self.pipeline):
            yield from feed.part.going(upto)
        upto = reached(self.pipeline, upto)
        while self.failure is None and (self.flow is not None or upto > self.clock):
            if self.flow is None:
                self.begun = self.pipeline.next_cut(upto)
                self.flow = self.pipeline.pieces(self.begun)
            self._go_on()
            yield
        if self.failure is None and (broken := failure_below(self.pipeline, self.clock)):
            self.failure = broken

    @uncut()
    def _go_on(self) -> None:
        assert self.flow is not None
        try:
            piece = next(self.flow, None)
            if piece is None:
                self.flow = None
                return
            rows, upto = piece
            if len(rows):
                self._hand_on(rows)
            self.clock = upto
        except Exception as fault:
            self.fail(fault)

    def _hand_on(self, rows: Batch) -> None:
        lows: Lows = ()
        if any(feed.least for feed in self.feeds):
            lows = tuple(int(column.min()) for column in rows.ids)
        if self.sleepers is not None:
            self.sleepers.hand(rows, lows)
        for feed in self.feeds:
            if not feed.sleeps:
                feed.give(rows, lows)

    def fail(self, fault: Exception) -> None:
        """It stops, and so will all that it feeds."""
        self.flow = None
        error = explained(self.name, fault, f"on the way to instant {self.begun}")
        error.__traceback__ = error.__context__ = None
        self.failure = error

    def next_due(self) -> int:
        """The earliest instant at which something would happen in it (not later than that)."""
        return self.pipeline.next_due()

    def nbytes(self) -> int:
        """Bytes of its own state."""
        return self.pipeline.nbytes()

    def share(self) -> int:
        """What of its state, and of that below it, counts for each pipeline that it feeds."""
        whole = self.nbytes() + sum(f.part.share() for f in feeds_of(self.pipeline))
        return whole // max(1, len(self.feeds))

    def whole(self) -> int:
        """Bytes of all state that it stands on."""
        return self.nbytes() + sum(f.part.whole() for f in feeds_of(self.pipeline))


def feeds_of(pipeline: Pipeline) -> list[PartFeed]:
    """Where a pipeline takes up what parts make."""
    return [s for s in pipeline.sources.values() if isinstance(s, PartFeed)]


def let_go(feed: PartFeed) -> None:
    """Nothing is read from there any more."""
    feed.part.feeds = [f for f in feed.part.feeds if f is not feed]
    count_for_all(feed.part)


def count_for_all(part: Part) -> None:
    """Rows that fail in a part count for all that it feeds."""
    part.errors.to = [feed.errors for feed in part.feeds]


def parts_below(pipeline: Pipeline) -> Iterator[Part]:
    """The parts that a pipeline stands on, also those below others."""
    for feed in feeds_of(pipeline):
        yield feed.part
        yield from parts_below(feed.part.pipeline)


def reached(pipeline: Pipeline, upto: int) -> int:
    """How far towards `upto` the parts below a pipeline have come."""
    return min([upto, *(feed.part.clock for feed in feeds_of(pipeline))])


def failure_below(pipeline: Pipeline, clock: int) -> DsmsError | None:
    """Why a pipeline that stands at `clock` can't go on: a part that feeds it has stopped there."""
    for feed in feeds_of(pipeline):
        if feed.part.failure is not None and feed.part.clock <= clock:
            return feed.part.failure
    return None


def all_stages(pipeline: Pipeline) -> Iterator[Any]:
    """The stages of a pipeline and of the parts below it."""
    yield from pipeline.stages
    for feed in feeds_of(pipeline):
        yield from all_stages(feed.part.pipeline)


def placed(pipeline: Pipeline, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The operators of a pipeline and of the parts below it, each with its place in the plan."""
    for stage in pipeline.stages:
        yield (*at, *stage.path), stage.operator
    for feed in feeds_of(pipeline):
        yield from placed(feed.part.pipeline, (*at, *feed.path))


def live(pipeline: Pipeline) -> dict[Path, dict[str, Any]]:
    """Live counts per stage, also of parts that others use, too."""
    counts = pipeline.live()
    for feed in feeds_of(pipeline):
        for path, found in live(feed.part.pipeline).items():
            counts[*feed.path, *path] = found
    return counts
