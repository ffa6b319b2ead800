"""What a statement does to a table, and the log of it that retroactive joins follow.

A change deletes row versions and inserts new ones at one instant; an update does both.  Versions
are numbered from 0 in the order they came, so a version is also the identity of a row.  Changes of
one instant are one set: a version that was inserted and deleted at the same instant never was.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from dsms.sql.types import ALWAYS, FOREVER


@dataclass(frozen=True, slots=True)
class Change:
    """One statement's effect, checked and ready to be applied or stored.

    at        instant (µs); before MIN_INSTANT: before every row
    deleted   int64 versions that end at `at`
    inserted  physical columns of the new versions, which are numbered from `first_version`
    rows      rows that the statement speaks of: inserted, updated or deleted
    """

    at: int
    deleted: np.ndarray
    inserted: tuple[pa.Array, ...]
    first_version: int
    rows: int

    @property
    def new(self) -> np.ndarray:
        """The versions inserted."""
        count = len(self.inserted[0]) if self.inserted else 0
        return np.arange(self.first_version, self.first_version + count, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Matched:
    """Rows that match: where they stand, and their columns before and after."""

    slots: np.ndarray
    old: tuple[pa.Array, ...]
    new: tuple[pa.Array, ...]


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """A whole table: all versions kept, ascending, each with its life [born, ended) (int64 µs;
    FOREVER: current)."""

    columns: tuple[pa.Array, ...]
    version: np.ndarray
    born: np.ndarray
    ended: np.ndarray
    # key columns of keys that may not come again (non-retroactive tables)
    dead_keys: tuple[pa.Array, ...]
    next_version: int
    last_change: int
    forgotten: int


@dataclass(frozen=True, slots=True)
class Entry:
    """The log's note of a change: its instant and the versions that begin and end there."""

    at: int
    deleted: np.ndarray
    inserted: np.ndarray


@dataclass(slots=True)
class Log:
    """Changes in time order.  A cursor is the absolute number of the next entry to read; it stays
    valid."""

    entries: list[Entry] = field(default_factory=list)
    dropped: int = 0
    forgotten: int = ALWAYS  # entries up to this instant are gone

    @property
    def end(self) -> int:
        return self.dropped + len(self.entries)

    def add(self, entry: Entry) -> None:
        """The newest change; its instant is not before the last one's."""
        self.entries.append(entry)

    def after(self, upto: int) -> int:
        """The cursor of a reader that knows everything up to the instant `upto`."""
        return self.dropped + bisect_right(self.entries, upto, key=lambda e: e.at)

    def read(self, cursor: int, upto: int) -> list[Entry]:
        """Entries from `cursor` on with instants <= `upto`."""
        start = max(cursor - self.dropped, 0)
        return self.entries[start : max(start, self.after(upto) - self.dropped)]

    def next_at(self, cursor: int) -> int:
        """The instant of the entry at `cursor`; FOREVER if there is none yet."""
        at = max(cursor - self.dropped, 0)
        return self.entries[at].at if at < len(self.entries) else FOREVER

    def set_back(self, to: int) -> None:
        """Entries later than `to` are entries of `to`, before which they are unknown; cursors stay
        valid."""
        self.entries = [e if e.at <= to else replace(e, at=to) for e in self.entries]
        self.forgotten = min(self.forgotten, to - 1)

    def rebuild(self, snap: TableSnapshot) -> None:
        """The entries of the changes that a table's versions tell of."""
        for at in np.unique(np.concatenate((snap.born, snap.ended))).tolist():
            if snap.forgotten < at < FOREVER:
                self.add(Entry(at, snap.version[snap.ended == at], snap.version[snap.born == at]))

    def leave_out(self, versions: np.ndarray) -> None:
        """These versions, which began and ended at one instant, were never there."""
        self.entries = [
            replace(
                e,
                deleted=e.deleted[~np.isin(e.deleted, versions)],
                inserted=e.inserted[~np.isin(e.inserted, versions)],
            )
            for e in self.entries
        ]

    def forget(self, upto: int) -> list[Entry]:
        """Drop the entries up to the instant `upto` and return them."""
        self.forgotten = max(self.forgotten, min(upto, FOREVER - 1))
        count = self.after(upto) - self.dropped
        gone, self.entries = self.entries[:count], self.entries[count:]
        self.dropped += count
        return gone
