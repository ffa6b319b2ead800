"""All streams' clocks together: idle sources, a query's clock, what holds it back, when to wake up.

Idle.  A source with IDLE TIMEOUT d that has been silent for d of the engine's time waives its say
in every query: its own newest row (and what its slack holds) becomes complete, and its clock moves
on with the others as far as no query that reads it is held back by it: in each such query to the
earliest of the inputs that are awake or, if none is, to the furthest that any of them got.  What it
sends later at or before that instant is late, for all queries alike.  Other streams, which share no
query with it, do not move it.

The engine's time comes in through `advance`; a step backwards is no time at all, so a clock that is
set back stops nothing: silence is measured by the steps forward, and stamps never decrease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dsms.intake.stream import StreamInput
from dsms.intake.values import duration_text, instant_text
from dsms.sql.types import ALWAYS, FOREVER


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """A line of SHOW STREAMS.  Instants are µs, None where nothing is known; `refused` counts rows
    by reason."""

    name: str
    clock: str
    completed: int | None
    newest: int | None
    held_by: str
    waiting: int
    idle: bool
    ended: bool
    accepted: int
    late: int
    refused: dict[str, int]


@dataclass(slots=True)
class _Watched:
    stream: StreamInput
    # on the scale of `Clocks._passed`; None: before the first `advance`
    active_at: int | None = None
    idle: bool = False

    @property
    def timeout(self) -> int | None:
        """How long it may be silent; None: for ever."""
        watched = self.stream.event_time and not self.stream.ended
        return self.stream.definition.idle_timeout if watched else None

    @property
    def front(self) -> int:
        """The furthest instant that it has spoken of."""
        return max(self.stream.newest, self.stream.promised)


@dataclass(slots=True)
class Clocks:
    """The clocks of all declared streams, by the names they were added under.  Not thread-safe."""

    _streams: dict[str, _Watched] = field(default_factory=dict)
    _queries: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _given: int | None = None  # the last `advance`
    _passed: int = 0  # µs of engine time: the steps forward
    # called for every move of an idle stream; False: it may not move
    moved: Callable[[str, int], bool] | None = None
    # idle streams stay where they are (recovery moves them as they moved before)
    still: bool = False

    # -- which streams take part -------------------------------------------------------------------

    def add(self, name: str, stream: StreamInput) -> None:
        """A stream; its silence counts from now on."""
        self._streams[name] = _Watched(stream, None if self._given is None else self._passed)
        if self._given is not None:
            stream.advance(self._given)

    def replace(self, name: str, stream: StreamInput) -> None:
        """Another entry of the stream, whose silence counts from now on."""
        self._streams[name] = _Watched(stream, None if self._given is None else self._passed)

    def remove(self, name: str) -> None:
        """The stream is no more; no query reads it."""
        del self._streams[name]

    def reads(self, query: str, streams: Iterable[str]) -> None:
        """`query` reads these streams: an idle one among them moves with the others."""
        self._queries[query] = tuple(dict.fromkeys(streams))
        self.follow()

    def forget(self, query: str) -> None:
        """The query is no more."""
        self._queries.pop(query, None)

    # -- what happens ------------------------------------------------------------------------------

    def active(self, name: str) -> None:
        """The stream has just accepted a row or had a heartbeat (late and refused rows do not
        count).

        Idle others follow: release them too."""
        watched = self._streams[name]
        watched.active_at = None if self._given is None else self._passed
        watched.idle = False
        self.follow()

    def advance(self, now: int) -> None:
        """The engine's system time is `now` (µs): stamped streams complete what was before, silent
        ones go idle."""
        if self._given is not None:
            self._passed += max(0, now - self._given)
        self._given = now
        for watched in self._streams.values():
            if not watched.stream.event_time:
                watched.stream.advance(now)
            if watched.active_at is None:
                watched.active_at = self._passed
            timeout = watched.timeout
            watched.idle = timeout is not None and self._passed - watched.active_at >= timeout
        self.follow()

    def follow(self) -> None:
        """Move idle streams on with the others.  Call it after `end`; the other verbs here do so
        themselves."""
        if self.still:
            return
        idle = [(n, w) for n, w in self._streams.items() if w.idle and not w.stream.ended]
        moved = True
        while moved:
            moved = False
            for name, watched in idle:
                target = max(
                    [
                        watched.front,
                        *(self._without_idle(q) for q in self._queries.values() if name in q),
                    ]
                )
                if target > watched.stream.completed and (
                    self.moved is None or self.moved(name, target)
                ):
                    watched.stream.move(target)
                    moved = True

    def _without_idle(self, inputs: tuple[str, ...]) -> int:
        """The clock of a query that idle inputs do not hold back."""
        watched = [self._streams[n] for n in inputs]
        awake = [w.stream.completed for w in watched if not w.idle and not w.stream.ended]
        return min(awake) if awake else max(w.front for w in watched)

    # -- what is asked -----------------------------------------------------------------------------

    def completed(self, name: str) -> int:
        """Up to which instant the stream is complete; ALWAYS before anything is known, FOREVER - 1
        after its end."""
        return self._streams[name].stream.completed

    def query_clock(self, streams: Iterable[str]) -> int:
        """The instant up to which all of `streams` are complete; FOREVER - 1 if there are none or
        all have ended."""
        return min((self.completed(n) for n in streams), default=FOREVER - 1)

    def slowest(self, streams: Iterable[str]) -> str | None:
        """The stream that holds a query back (the first of several); None if all have ended."""
        names = list(streams)
        clock = self.query_clock(names)
        return (
            None if clock == FOREVER - 1 else next(n for n in names if self.completed(n) == clock)
        )

    def newest(self, names: Iterable[str]) -> int:
        """The newest event time accepted on these streams, which dates table changes; ALWAYS if
        there is none."""
        streams = (self._streams[n].stream for n in names)
        return max((s.newest for s in streams if s.event_time), default=ALWAYS)

    def front(self, name: str) -> int:
        """The furthest instant that the stream, which has not ended, has got to; ALWAYS if to
        none."""
        return max(self._streams[name].front, self.completed(name))

    def status(self, name: str) -> StreamStatus:
        """What SHOW STREAMS says of a stream."""
        watched = self._streams[name]
        stream = watched.stream
        known = ALWAYS < stream.completed < FOREVER - 1
        return StreamStatus(
            name=stream.definition.name,
            clock=_clock(stream),
            completed=stream.completed if known else None,
            newest=None if stream.newest == ALWAYS else stream.newest,
            held_by=_held_by(watched),
            waiting=stream.waiting,
            idle=watched.idle,
            ended=stream.ended,
            accepted=stream.counts.accepted,
            late=stream.counts.late,
            refused=dict(stream.counts.refused),
        )


def _clock(stream: StreamInput) -> str:
    column = stream.definition.timestamp
    if stream.fed_by:
        return f"that of {', '.join(stream.fed_by)}"
    if column is None:
        return "system time"
    slack = f", slack {duration_text(stream.definition.slack)}" if stream.definition.slack else ""
    return f"event time by {stream.definition.schema[column].name}{slack}"


def _held_by(watched: _Watched) -> str:
    """What must come for the stream's clock to move on."""
    stream = watched.stream
    if stream.ended:
        return "nothing: it has ended"
    if stream.fed_by:
        return f"query {stream.fed_by[0]}"
    if not stream.event_time:
        return "the engine's clock"
    if watched.idle:
        return "nothing: it is idle and follows the others"
    silence = (
        f", or {duration_text(watched.timeout)} of silence" if watched.timeout is not None else ""
    )
    if stream.completed == ALWAYS:
        return f"its first row, or a heartbeat{silence}"
    beyond = stream.completed + 1 + stream.definition.slack
    return f"a row after {instant_text(beyond)}, or a heartbeat{silence}"
