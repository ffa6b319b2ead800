"""Load shedding at the entry of a stream: which share of the rows that come is kept, and which.

Golab 2006, section 2.4.3.  A row is kept by the hash of its number among those that came, so what
is kept is a random sample that depends on no value.  It bears as its weight the reciprocal of the
share: how many of the rows that came it stands for.  Sums over weights are then unbiased (Horvitz
and Thompson 1952).  Rows are thinned before they are written down: what comes back after a crash is
what was kept.

The share follows how long rows have waited until they are taken.  Of `passed` µs between two looks,
in which that age has grown by `grown`, the entry took rows at 1 - grown / passed of the rate at
which they came.  The next share makes that rate 1 + (age - delay / 2) / delay of it: ages come to
rest at half of the delay.  A look changes the share by little, but upwards the more the longer the
last one is ago: where few rows come there are few looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from dsms.intake.convert import Converted, Refusal
from dsms.sql.catalog import StreamDef
from dsms.sql.types import ALWAYS

DELAY = 2_000_000  # µs: how long rows may wait, if the stream does not say
LEAST = 2.0**-10  # of all rows are kept in any case
LOOKS = 8  # at the age, while rows may wait for the delay
DOWN, UP = 0.25, 2.0  # by so much a look may change the share
MOST = 64  # delays without a look that count
ENTRIES = 64  # of the history of shares
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


class Waited(NamedTuple):
    """How long rows have waited until they are taken.

    age  µs that they have waited;  at: µs, as they are taken, of a clock that does not go back"""

    age: int
    at: int


class Shed(NamedTuple):
    """What a stream has shed once a frame was thinned, as it is written down with the rows of the
    frame that are kept.

    offered, shed, share  as in `Shedder`
    missed                rows of the frame, if none of them is kept, and `newest`: their instant"""

    offered: int
    shed: int
    share: float
    newest: int = 0
    missed: int = 0


@dataclass(slots=True)
class Shedder:
    """What one stream sheds.

    share    of the rows that come, kept now
    offered  rows that came since it began to shed;  shed: of them, dropped
    seen     at which instant the age was looked at last, by the clock of `Waited`;  age: and found
    history  of the rows that were taken, [newest instant of theirs, rows, their weight], in order
    """

    share: float = 1.0
    offered: int = 0
    shed: int = 0
    seen: int | None = None
    age: int = 0
    history: list[list[float]] = field(default_factory=list)

    def look(self, waited: Waited, delay: int) -> None:
        """Follow the age of the rows that are about to be taken."""
        if self.seen is None:
            self.seen, self.age = waited.at, waited.age
        passed = waited.at - self.seen
        if passed * LOOKS < delay or passed <= 0:
            return
        slower = 1 - (waited.age - self.age) / passed
        wanted = 1 + (waited.age - delay / 2) / delay
        factor = min(UP, max(DOWN, slower / wanted))
        if factor > 1:  # once for each delay that has passed; `MOST` of them lead to all
            factor **= min(MOST, max(1.0, passed / delay))
        self.share = min(1.0, max(LEAST, self.share * factor))
        self.seen, self.age = waited.at, waited.age

    def begin_anew(self) -> None:
        """All rows are kept until others wait too long; what was shed stays known."""
        self.share, self.seen, self.age = 1.0, None, 0

    def thin(self, rows: Converted, at: int) -> Converted:
        """The rows that are kept, with their weight as column `at`."""
        count, share = len(rows), self.share
        first, self.offered = self.offered, self.offered + count
        if share >= 1.0:
            return _with_weight(rows, at, 1.0)
        where = np.flatnonzero(drawn(first, count, share))
        self.shed += count - len(where)
        kept = where if rows.kept is None else rows.kept[where]
        index = pa.array(where)
        columns = tuple(c.take(index) for c in rows.columns)
        thinned = Converted(columns, rows.sent, kept, rows.refusals)
        return _with_weight(thinned, at, 1.0 / share)

    def note(self, newest: int, weights: pa.Array) -> None:
        """Rows of these weights were taken; the newest instant of the stream is known to be
        `newest`."""
        rows, weight = len(weights), float(np.asarray(weights).sum())
        last = self.history[-1] if self.history else None
        if last is not None and not last[1] and weight > rows:  # they stand for those, too
            newest = max(newest, int(self.history.pop()[0]))
            last = self.history[-1] if self.history else None
        whole = last is not None and last[1] == last[2] and rows == weight
        if last is not None and (last[0] == newest or whole):
            self.history[-1] = [newest, last[1] + rows, last[2] + weight]
            return
        self._add(newest, rows, weight)

    def miss(self, newest: int, count: int) -> None:
        """So many rows came, and none was taken: later ones stand for them, if any come."""
        if self.history and not self.history[-1][1]:
            last, _, missed = self.history.pop()
            newest, count = max(newest, int(last)), count + int(missed)
        self._add(newest, 0, count)

    def _add(self, newest: int, rows: int, weight: float) -> None:
        self.history.append([newest, rows, weight])
        if len(self.history) > ENTRIES:
            old, new = self.history[: ENTRIES // 2], self.history[ENTRIES // 2 :]
            pairs = zip(old[::2], old[1::2], strict=True)
            self.history = [[b[0], a[1] + b[1], a[2] + b[2]] for a, b in pairs] + new

    def kept(self, since: int = ALWAYS) -> float | None:
        """Which share of the rows of instants behind `since`, about, was kept; None: all were."""
        found = [entry for entry in self.history if entry[0] > since]
        rows, weight = sum(e[1] for e in found), sum(e[2] for e in found)
        return None if rows >= weight else rows / weight


def drawn(first: int, count: int, share: float) -> np.ndarray:
    """bool[count]: whether the rows of numbers `first` and so on are among the share (< 1).  The
    hash is that of SplitMix64."""
    number = np.arange(first, first + count, dtype=np.uint64)
    mixed = (number + np.uint64(1)) * np.uint64(GOLDEN)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(FIRST)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(SECOND)
    mixed ^= mixed >> np.uint64(31)
    return mixed < np.uint64(int(share * 2**64))


class Entry(Protocol):
    """One stream's way in (`dsms.intake.stream`)."""

    definition: StreamDef
    shedder: Shedder | None
    newest: int

    @property
    def completed(self) -> int: ...

    def timestamps(
        self, column: pa.Array, kept: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None, tuple[Refusal, ...]]: ...


def thinned(entry: Entry, rows: Converted, waited: Waited | None) -> Converted:
    """Rows from outside as the stream takes them: if it may shed, those that it keeps, with their
    weights.  `waited`: how long they have; None: nobody knows, and the share stays."""
    stream = entry.definition
    if stream.weight is None:
        return rows
    if not sheds(stream):
        return _with_weight(rows, stream.weight, 1.0)
    if entry.shedder is None:
        entry.shedder = Shedder()
    if waited is not None:
        entry.shedder.look(waited, delay_of(stream))
    return entry.shedder.thin(rows, stream.weight)


def noted(entry: Entry, columns: Sequence[pa.Array]) -> None:
    """Rows were taken, or have come late: what they stand for is remembered."""
    if entry.definition.weight is None or not len(columns[0]):
        return
    if entry.shedder is None:
        entry.shedder = Shedder()
    entry.shedder.note(entry.newest, columns[entry.definition.weight])


def shed_of(entry: Entry, columns: Sequence[pa.Array], left: int) -> Shed | None:
    """What is to be remembered of a frame with these columns, of which `left` rows are kept; None:
    the stream does not shed."""
    shedder = entry.shedder
    if shedder is None or not sheds(entry.definition):
        return None
    newest, count = (0, 0) if left or not len(columns[0]) else _missed(entry, columns)
    return Shed(shedder.offered, shedder.shed, shedder.share, newest, count)


def remember(entry: Entry, shed: Shed) -> None:
    """A frame was taken."""
    if entry.shedder is None:  # it comes back from the journal
        entry.shedder = Shedder()
    shedder = entry.shedder
    shedder.offered, shedder.shed, shedder.share = shed.offered, shed.shed, shed.share
    if shed.missed:
        shedder.miss(shed.newest, shed.missed)


def _missed(entry: Entry, columns: Sequence[pa.Array]) -> tuple[int, int]:
    """The newest instant of rows that were all shed, and how many they are."""
    newest, at = max(entry.newest, entry.completed + 1), entry.definition.timestamp
    if at is not None:
        ts, usable, _ = entry.timestamps(columns[at], None)
        newest = max(newest, int((ts if usable is None else ts[usable]).max(initial=newest)))
    return newest, len(columns[0])


def sheds(stream: StreamDef) -> bool:
    """Whether it may shed, as it is declared."""
    return dict(stream.options).get("shed") == "random"


def delay_of(stream: StreamDef) -> int:
    """µs for which its rows may wait."""
    return int(dict(stream.options).get("shed_delay", DELAY))


def _with_weight(rows: Converted, at: int, weight: float) -> Converted:
    column = pa.array(np.full(len(rows), weight))
    columns = (*rows.columns[:at], column, *rows.columns[at:])
    return Converted(columns, rows.sent, rows.kept, rows.refusals)
