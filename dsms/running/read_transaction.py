"""A read transaction over raw sub-windows: what a plan that is run once takes, one sub-window at a
time.

Stateless work is done to each sub-window as it is read (`dsms.oneshot.cut`).  At the commit the
open sub-window is read up to the instant of the answer, and what lies outside the windows as of
that instant is left out; so the leaves hold exactly the rows that one read of everything at that
instant would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dsms.errors import DsmsError
from dsms.oneshot.cut import Cut
from dsms.oneshot.parts import of_batch
from dsms.oneshot.reads import Read
from dsms.oneshot.run import too_much
from dsms.oneshot.steps import Map
from dsms.operators.expressions import ErrorCounter
from dsms.running.key_picks import DRIVING, KeyPick, settled
from dsms.running.picks import Pick
from dsms.running.tallies import Tallies
from dsms.state.batch import Batch, narrow
from dsms.state.ring import SubWindow, batch_bytes, between

Leaves = dict[int, list[Batch]]


@dataclass(frozen=True, slots=True)
class Access:
    """How a plan gets at what it reads.

    instant     as of which it would answer now
    subwindows  of a stream leaf, those with rows that it needs as of an instant, oldest first
                (DS407: not kept)
    others      the rows of a leaf that is no stream
    check       raises where something that it reads has been dropped
    waiting     accepted rows that wait behind the clock of the streams, as of that instant; None:
                it reads none
    since       the instant from which on all rows of streams are held that it needs as of that
                instant, None if none is missing; raises where it may not lack any (DS407)
    """

    instant: Callable[[], int]
    subwindows: Callable[[Read, int], list[SubWindow]]
    others: Callable[[Read, int], list[Batch]]
    check: Callable[[], None]
    waiting: Callable[[int], int | None] = lambda at: None
    since: Callable[[int], int | None] = lambda at: None


@dataclass(slots=True)
class ReadSnapshot:
    """What was there when the first sub-window was read; a sub-window whose rows have been taken in
    parts is dropped (None)."""

    at: int
    subwindows: dict[int, dict[int, SubWindow | None]]
    others: Leaves
    since: int | None


@dataclass(slots=True)
class ReadTransaction:
    """needed    what the plan reads, by leaf; streams: the keys of the streams whose rings it reads
    limit     bytes that it may copy (DS633)
    snapshot  answer as of the first read; else as of the commit
    given     what the rest of the plan runs over, as of `at`, once it has committed
    """

    cut: Cut
    needed: Mapping[int, Read]
    streams: Mapping[int, str]
    access: Access
    limit: int
    priority: int = 0
    errors: ErrorCounter = field(default_factory=lambda: ErrorCounter("stop"))
    id: int = 0
    rings: tuple[str, ...] = ()  # of which it reads sub-windows
    snapshot: ReadSnapshot | None = None
    given: Leaves | None = None
    at: int = 0
    waiting: int | None = None
    since: int | None = None
    failure: Exception | None = None
    reads: int = 0
    aborts: int = 0
    copied: int = 0
    picked: int = 0  # bytes of copies that an index has found
    picks: Mapping[int, Pick] = field(default_factory=dict)  # leaves that are read by an index
    # leaves that may be read by keys of others, and those that are, behind those that drive them
    keyed: Mapping[int, Sequence[KeyPick]] = field(default_factory=dict)
    driven: dict[int, KeyPick] = field(default_factory=dict)
    tallies: Tallies = field(default_factory=dict)  # leaves given by values and counts
    maps: dict[int, Map] = field(init=False)
    parts: dict[int, dict[int, Batch]] = field(init=False)

    def __post_init__(self) -> None:
        self.maps = {leaf: Map(ops) for leaf, ops in self.cut.ops.items() if ops}
        self.forget()

    @property
    def done(self) -> bool:
        """Whether it has committed or failed."""
        return self.given is not None or self.failure is not None

    def forget(self) -> None:
        """Start again: nothing has been read."""
        self.parts = {leaf: {} for leaf in self.streams}
        self.snapshot, self.copied, self.picked = None, 0, 0

    def fail(self, error: Exception) -> None:
        """It can't go on."""
        self.forget()
        self.failure = error

    def settle(self) -> None:
        """Find out which leaves are read by keys of others, as things are now."""
        if self.keyed:
            self.driven = {leaf: by for leaf, (by, _) in settled(self.keyed, self._now).items()}

    def by_index(self) -> dict[int, tuple[Pick, int | None]]:
        """By what leaves would be read now, and the leaf that drives."""
        driven = settled(self.keyed, self._now)
        picked: dict[int, tuple[Pick, int | None]] = {k: (p, None) for k, p in self.picks.items()}
        return picked | {leaf: (pick, by.by.leaf) for leaf, (by, pick) in driven.items()}

    def at_once(self, leaf: int) -> bool:
        """Whether it is read at the commit: counts tell what is asked of it, or an index finds few
        rows."""
        if leaf in self.driven or leaf in self.tallies:
            return True
        return leaf in self.picks and self.picks[leaf].few()

    def _now(self, leaf: int, pick: Pick | None) -> list[Batch] | None:
        """The rows of a leaf as of now, if they are few, and none of them fails."""
        at, read = self.access.instant(), self.needed[leaf]
        try:
            if leaf not in self.streams:
                return self.access.others(read, at)
            subs = {s.number: s for s in self.access.subwindows(read, at)}
            if pick is None and self.at_once(leaf):
                pick = self.picks[leaf]
            if pick is None and sum(len(s.rows) for s in subs.values()) > DRIVING:
                return None
            return list(self._rows(leaf, read, subs, at, pick))
        except DsmsError:  # which the commit will say
            return None

    def hold(self) -> None:
        """From now on answer as of this instant."""
        at = self.access.instant()
        held = {
            k: {s.number: s for s in self.access.subwindows(self.needed[k], at)}
            for k in self.streams
        }
        others, since = self._others(at), self.access.since(at)
        self.snapshot = ReadSnapshot(at, dict(held), others, since)  # type: ignore[arg-type]

    def take(self, stream: str, number: int, found: SubWindow | None) -> bool:
        """Read that sub-window of the stream; False if there are no rows in it.  Raises DS633."""
        any_rows = False
        for leaf, key in self.streams.items():
            sub = found if self.snapshot is None else self.snapshot.subwindows[leaf].get(number)
            if key != stream or sub is None or leaf in self.driven or leaf in self.tallies:
                continue
            if self._outside(leaf, sub):
                continue
            any_rows = True
            rows = self._reduced(leaf, self._picked(leaf, sub))
            if rows is not None:
                self.parts[leaf][number] = rows
                if self.snapshot is not None:
                    self.snapshot.subwindows[leaf][number] = None
        self.reads += any_rows
        return any_rows

    def _outside(self, leaf: int, sub: SubWindow) -> bool:
        """It has left this leaf's window, which may be shorter than others of the stream."""
        at = self.access.instant() if self.snapshot is None else self.snapshot.at
        return bool(sub.rows.ts[-1] <= self.needed[leaf].since(at))

    def _picked(self, leaf: int, sub: SubWindow) -> Batch:
        """The rows that matter; all of them, where a copy of those would take too much."""
        if leaf not in self.picks or 2 * self.picked > self.limit:
            return self._narrow(leaf, sub.rows)
        rows = self.picks[leaf].rows(sub)
        if rows is None:
            return self._narrow(leaf, sub.rows.slice(0, 0))
        if rows is not sub.rows:
            self.picked += batch_bytes(rows)
        return self._narrow(leaf, rows)

    def _narrow(self, leaf: int, rows: Batch) -> Batch:
        """Without columns that the stream has got since."""
        return narrow(rows, len(self.needed[leaf].node.schema))

    def _reduced(self, leaf: int, rows: Batch) -> Batch | None:
        """The rows after the stateless work.  None where one fails: whether it counts is not known
        before the end."""
        if leaf not in self.maps:
            return rows
        try:
            out = self._mapped(leaf, rows, ErrorCounter.once(self.limit))
        except DsmsError:
            return None
        self.copied += batch_bytes(out)
        if self.copied > self.limit:
            raise too_much(self.limit)
        return out

    def _mapped(self, leaf: int, rows: Batch, errors: ErrorCounter) -> Batch:
        part = self.maps[leaf](of_batch(rows), errors)
        assert part.ts is not None
        return Batch(part.ts, None, None, part.ids, part.cols)

    def commit(self) -> None:
        """Read what is left: the open sub-window, and what else the windows hold as of now.  Raises
        DsmsError."""
        self.access.check()
        held = self.snapshot
        self.at = self.access.instant() if held is None else held.at
        self.waiting = self.access.waiting(self.at)
        self.since = self.access.since(self.at) if held is None else held.since
        given = self._others(self.at) if held is None else held.others
        for leaf in (*(k for k in self.streams if k not in self.driven), *self.driven):
            read = self.needed[leaf]
            subs = (
                held.subwindows[leaf]
                if held is not None
                else {s.number: s for s in self.access.subwindows(read, self.at)}
            )
            if leaf in self.tallies:
                there = [s for s in subs.values() if s is not None]
                given[leaf] = [self.tallies[leaf].rows(read, there, self.at)]
                continue
            pick = self._pick(leaf, given)
            given[leaf] = [b for b in self._rows(leaf, read, subs, self.at, pick) if len(b)]
        self.forget()
        self.given = given

    def _pick(self, leaf: int, given: Leaves) -> Pick | None:
        """By which a leaf of which nothing has been read is read at the commit."""
        if leaf in self.driven:
            return self.driven[leaf].pick(given[self.driven[leaf].by.leaf])
        return None if self.parts[leaf] else self.picks.get(leaf)

    def _rows(
        self,
        leaf: int,
        read: Read,
        subs: Mapping[int, SubWindow | None],
        at: int,
        pick: Pick | None,
    ) -> Iterable[Batch]:
        if pick is None:
            return (self._whole(leaf, read, number, sub, at) for number, sub in subs.items())
        there = [s for s in subs.values() if s is not None]
        found = [self._narrow(leaf, b) for b in pick.together(there, read.since(at), at)]
        return [self._mapped(leaf, b, self.errors) for b in found] if leaf in self.maps else found

    def _whole(self, leaf: int, read: Read, number: int, sub: SubWindow | None, at: int) -> Batch:
        since, done = read.since(at), self.parts[leaf].get(number)
        if done is not None:
            return between(done, since, at)
        assert sub is not None
        rows = between(self._picked(leaf, sub), since, at)
        return self._mapped(leaf, rows, self.errors) if leaf in self.maps else rows

    def _others(self, at: int) -> Leaves:
        return {
            leaf: self.access.others(read, at)
            for leaf, read in self.needed.items()
            if leaf not in self.streams
        }
