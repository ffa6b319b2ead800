"""The newest rows of a stream, as they came: batches, of which the oldest go first.

No reader has asked for them, so nothing is copied and nothing is cut.  Batches of few rows alone
are put together, so that a stream whose rows come one by one does not become a million objects.
Arrival numbers go up by one from row to row: of a batch of many rows the first is kept, and the
memory of all of them is free for the next batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch, concat, stamped_before
from dsms.state.ring import between

LARGE = 1 << 8  # rows with which a batch stays as it came
MANY = 64  # smaller ones that are put together
OBJECTS = 1 << 10  # bytes of a batch besides its arrays, about


class Kept(NamedTuple):
    """A batch that is held.

    taken  its bytes
    first  of rows without `ids` the first arrival number; None: they have them
    """

    rows: Batch
    taken: int
    first: int | None = None

    @classmethod
    def of(cls, rows: Batch) -> Kept:
        """Without arrival numbers, if there are many, or a few out of many, whose memory they would
        hold."""
        if len(rows) < LARGE and rows.number.base is None:
            return cls(rows, size(rows))
        first, last = int(rows.number[0]), int(rows.number[-1])
        if last - first != len(rows) - 1:
            return cls(rows, size(rows))
        rows = replace(rows, ids=())
        return cls(rows, size(rows), first)

    def between(self, since: int, upto: int) -> Batch:
        """The rows with ts in (since, upto], all they came with."""
        rows = between(self.rows, since, upto)
        if self.first is None:
            return rows
        first = self.first + int(np.searchsorted(self.rows.ts, since, side="right"))
        return replace(rows, ids=(np.arange(first, first + len(rows), dtype=np.int64),))

    def whole(self) -> Batch:
        """All rows."""
        return self.between(ALWAYS - 1, FOREVER)


Held = deque[Kept]  # oldest first


@dataclass(slots=True)
class Recent:
    """reach   every row with ts > reach that the stream has completed is here
    newest  up to here the stream is complete
    count, nbytes  rows and bytes held
    """

    reach: int = ALWAYS
    newest: int = ALWAYS
    count: int = 0
    nbytes: int = 0
    # oldest first: batches of many rows, what small ones were put together to, small ones
    _large: Held = field(default_factory=deque)
    _joined: Held = field(default_factory=deque)
    _small: Held = field(default_factory=deque)

    def add(self, rows: Batch, most: int = FOREVER) -> None:
        """The next rows of the stream; of a batch of more than `most` bytes a copy of the newest
        that fit."""
        if not len(rows):
            return
        self.newest = max(self.newest, int(rows.ts[-1]))
        kept = Kept.of(rows)
        if kept.taken > most:
            kept = Kept.of(self._shortened(rows, kept.taken, most))
            if not len(kept.rows):
                return
        self.count += len(rows := kept.rows)
        self.nbytes += kept.taken
        if len(rows) < LARGE:
            self._small.append(kept)
            if len(self._small) >= MANY:
                self._put_together()
            return
        if self._small or self._joined:
            self._large.extend((*self._joined, *self._small))
            self._joined.clear()
            self._small.clear()
        self._large.append(kept)

    def _shortened(self, rows: Batch, taken: int, most: int) -> Batch:
        while self.count:
            self.drop()
        kept = len(rows) * most // taken
        self.reach = max(self.reach, int(rows.ts[len(rows) - kept - 1]))
        return rows.take(np.arange(len(rows) - kept, len(rows)))

    def _put_together(self) -> None:
        self._joined.append(_one_of(self._small))
        if len(self._joined) >= MANY or sum(len(k.rows) for k in self._joined) >= LARGE:
            self._large.append(_one_of(self._joined))

    def change(self, to: Callable[[Batch], Batch]) -> None:
        """All rows become others, as many, of the same instants."""
        for held in (self._large, self._joined, self._small):
            changed = [to(kept.whole()) for kept in held]
            held.clear()
            held.extend(map(Kept.of, changed))
        self.nbytes = self._taken()

    def move(self, clock: int) -> None:
        """The stream is complete up to `clock`."""
        if ALWAYS < clock < FOREVER - 1:
            self.newest = max(self.newest, clock)

    def keep(self, length: int, rows: int) -> None:
        """Let go of what is neither of the last `length` µs nor among the newest `rows` rows, a
        whole batch at a time."""
        while self.count > rows:
            oldest = self._oldest()[0].rows
            if self.count - len(oldest) < rows or oldest.ts[-1] > self.newest - length:
                return
            self.drop()

    def drop(self) -> None:
        """Let go of the oldest batch."""
        gone, taken, _ = self._oldest().popleft()
        self.count -= len(gone)
        self.nbytes -= taken
        self.reach = max(self.reach, int(gone.ts[-1]))

    def _oldest(self) -> Held:
        return self._large or self._joined or self._small

    def set_back(self, to: int) -> None:
        """As if no row had come at `to` or later: those that did are stamped before it."""
        self.reach, self.newest = min(self.reach, to - 1), min(self.newest, to - 1)
        for held in (self._large, self._joined, self._small):
            for k, kept in enumerate(held):
                held[k] = kept._replace(rows=stamped_before(kept.rows, to))

    def _taken(self) -> int:
        return sum(k.taken for held in (self._large, self._joined, self._small) for k in held)

    # -- what is there -----------------------------------------------------------------------------

    def holds(self, since: int) -> bool:
        """Whether every completed row with ts > `since` is here."""
        return self.reach <= since

    def rows(self, since: int, upto: int = FOREVER) -> list[Batch]:
        """The rows with ts in (since, upto], and none of an instant of which some are gone, oldest
        first."""
        return list(self._between(max(since, self.reach), upto))

    def _between(self, since: int, upto: int) -> Iterator[Batch]:
        for kept in chain(self._large, self._joined, self._small):
            ts = kept.rows.ts
            if ts[-1] > since and ts[0] <= upto and len(b := kept.between(since, upto)):
                yield b

    # -- in a state, where batches have their arrival numbers --------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in HELD:
            found[name] = deque((kept.whole(), kept.taken) for kept in found[name])
        return found

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name in HELD:
            state[name] = deque(Kept.of(rows) for rows, _ in state[name])
        for name, value in state.items():
            setattr(self, name, value)
        self.nbytes = self._taken()


HELD = ("_large", "_joined", "_small")


def _one_of(held: Held) -> Kept:
    """All of them as one; there are none any more."""
    one, taken = concat([kept.whole() for kept in held]), sum(kept.taken for kept in held)
    held.clear()
    return Kept(one, taken)


def size(rows: Batch) -> int:
    """Bytes of a batch, about: `Batch.nbytes` takes longer than all else that is done to it."""
    count = len(rows)
    return OBJECTS + 8 * (1 + len(rows.ids)) * count + sum([_bytes(c, count) for c in rows.cols])


def _bytes(column: pa.Array, count: int) -> int:
    try:
        return count * column.type.bit_width // 8
    except ValueError:  # its values differ in length
        return int(column.nbytes)
