"""What a server keeps of streams of which nobody has asked it to keep anything: their newest rows,
as far as one budget goes.

Of each stream those of the last minutes, and so many of the newest at least; as much as the windows
of its registered continuous queries hold; of all streams together so many bytes, beyond which the
stream that holds most lets go of its oldest rows.  One-time queries read them.  A data folder has
it as of the last stop: after a crash it begins with that, or with what the journal repeats.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from dsms.intake.outcome import Released
from dsms.intake.stream import StreamInput
from dsms.running.past import pasts
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.settings import Settings
from dsms.sql.catalog import StreamDef
from dsms.sql.types import ALWAYS
from dsms.state.batch import Batch
from dsms.state.recent import Recent

LOG = logging.getLogger("dsms")
Reach = tuple[int, int]  # µs, and rows
ROOM = 16  # of the budget that part is made free when it is used up
PART = 2  # ... and so much of it may be one batch's


@dataclass(slots=True)
class Recents:
    """queries  all that are registered, by key
    streams  by key, those of which the newest rows are kept
    changed  whether rows have come since they were written down
    """

    settings: Settings = field(default_factory=Settings)
    queries: Mapping[str, Registered] = field(default_factory=dict)
    streams: dict[str, Recent] = field(default_factory=dict)
    nbytes: int = 0
    changed: bool = False
    _reaches: dict[str, Reach] = field(default_factory=dict)

    @classmethod
    def over(
        cls,
        settings: Settings,
        queries: Mapping[str, Registered],
        inputs: Mapping[str, StreamInput],
        begun: Collection[str],
    ) -> Recents:
        """Of streams that are there already, with nothing in it yet; rows of those that have
        `begun` have gone."""
        made = cls(settings, queries)
        for key, entry in inputs.items():
            made.begin(entry.definition, gone_upto(entry) if key in begun else ALWAYS)
        return made

    @property
    def on(self) -> bool:
        """Whether anything is kept so."""
        return self.settings.retain_default > 0 or self.settings.retain_default_rows > 0

    @property
    def share(self) -> int:
        """Bytes that it may take."""
        return self.settings.retain_default_bytes

    def begin(self, stream: StreamDef, front: int) -> None:
        """Keep rows of the stream from now on, unless it says itself which are kept; those up to
        `front` have gone."""
        if self.on and stream.retain is None:
            self.streams[stream.home] = Recent(front, front)

    def begin_anew(self, stream: str, entry: StreamInput) -> None:
        """Rows of the stream are lost: what there is is not all."""
        if stream in self.streams:
            self.forget(stream)
            self.begin(entry.definition, gone_upto(entry))

    def resume(self, streams: Mapping[str, Recent]) -> None:
        """Go on with what was kept when the state was written down, as far as the budget of today
        goes."""
        for key in streams.keys() & self.streams.keys():
            self.streams[key] = streams[key]
            self.streams[key].keep(*self._reach(key))
        self.nbytes = sum(recent.nbytes for recent in self.streams.values())
        self._make_room()

    def change(self, stream: str, to: Callable[[Batch], Batch]) -> None:
        """Rows of the stream become others."""
        if (recent := self.streams.get(stream)) is not None:
            before = recent.nbytes
            recent.change(to)
            self.nbytes += recent.nbytes - before
            self.changed = True

    def forget(self, stream: str) -> None:
        """The stream was dropped."""
        self._reaches.pop(stream, None)
        gone = self.streams.pop(stream, None)
        self.nbytes -= 0 if gone is None else gone.nbytes

    def registered(self, query: Registered) -> None:
        """One more query holds rows in its windows."""
        for stream in query.reads:
            self._reaches[stream] = _most([self._reach(stream), *_windows(query, stream)])

    def unregistered(self, query: Registered) -> None:
        """One holds none any more."""
        for stream in query.reads:
            self._reaches.pop(stream, None)

    def take(self, stream: str, released: Released, entry: StreamInput) -> None:
        """What a stream hands on.  A bug of ours loses what is kept of it, and nothing else."""
        try:
            self._take(stream, released)
        except Exception:
            LOG.exception("the newest rows of stream %s are kept anew; please report this", stream)
            self.begin_anew(stream, entry)
            self.nbytes = sum(recent.nbytes for recent in self.streams.values())

    def _take(self, stream: str, released: Released) -> None:
        recent = self.streams.get(stream)
        if recent is None:
            return
        before = recent.nbytes
        for rows in released.complete:
            recent.add(rows, self.share // PART)
        recent.move(released.upto)
        recent.keep(*self._reach(stream))
        self.nbytes += recent.nbytes - before
        self.changed = self.changed or bool(released.complete)
        self._make_room()

    def _reach(self, stream: str) -> Reach:
        found = self._reaches.get(stream)
        if found is None:
            own = (self.settings.retain_default, self.settings.retain_default_rows)
            held = (r for q in self.queries.values() for r in _windows(q, stream))
            found = self._reaches[stream] = _most([own, *held])
        return found

    def let_go(self, size: int) -> int:
        """Let go of so many bytes at least, of the stream that holds most first, or of all; how
        many they were."""
        before = self.nbytes
        while self.nbytes > max(0, before - size):
            most = max(self.streams.values(), key=lambda r: r.nbytes)
            held = most.nbytes
            most.drop()
            self.nbytes -= held - most.nbytes
        return before - self.nbytes

    def _make_room(self) -> None:
        if self.nbytes > self.share:
            self.let_go(self.nbytes - self.share + self.share // ROOM)


def gone_upto(entry: StreamInput) -> int:
    """Rows up to that instant have gone to the stream's readers, if any had come."""
    return min(entry.completed, max(entry.newest, ALWAYS))


def _windows(query: Registered, stream: str) -> Iterable[Reach]:
    """How far back a continuous query holds rows of the stream in its windows."""
    if isinstance(query, RunningQuery) and stream in query.reads:
        for past in pasts(query.output):
            if past.stream == stream:
                yield past.length or 0, past.rows or 0


def _most(reaches: Iterable[Reach]) -> Reach:
    """As far back as any of them."""
    found = list(reaches)
    return max(length for length, _ in found), max(rows for _, rows in found)
