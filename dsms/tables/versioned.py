"""A table with versions.

Each row version lives over [born, ended): it is read by stream tuples with a timestamp in that
span, both for the non-retroactive join (as of the tuple) and, through the log, for the retroactive
one (Golab 2006, §3.3.1).  A change counts from its own instant on, that instant included.

A statement is checked as a whole (`inserting`, `updating`, `deleting` change nothing and return a
`Change`), then stored by the caller, then applied: a failing one leaves nothing.  State: the
versions until every clock has passed their end (`forget`); for non-retroactive tables the deleted
keys.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms.sql.catalog import TableDef
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.batch import Batch, in_order
from dsms.state.columns import Column, column_store
from dsms.state.vec import Vec
from dsms.tables.changes import Change, Entry, Log, Matched, TableSnapshot
from dsms.tables.dates import instant_of
from dsms.tables.index import AsOfIndex
from dsms.tables.keys import KeyCodes, Keys
from dsms.tables.staging import Staged

_COMPACT_FROM = 256  # ended versions; fewer are left lying
_BRIEF_FROM = 16  # of those that lived for no time


class VersionedTable:
    """The rows of one declared table.  Not thread-safe: the engine's thread calls it."""

    _brief = 0  # versions that ended at the instant at which they were born
    staged: Staged | None = None  # what is ready of a change; never part of a state

    def __init__(self, definition: TableDef) -> None:
        self.definition = definition
        self.next_version = 0
        self.last_change = ALWAYS
        self._keys = Keys(definition) if definition.key else None
        self._columns: list[Column] = [column_store(f.type.arrow) for f in definition.schema]
        self._version, self._born, self._ended = Vec(), Vec(), Vec()
        self._log = Log()
        self._droppable = 0
        self._indices: dict[tuple[int, ...], AsOfIndex] = {}

    # -- statements --------------------------------------------------------------------------------

    def instant(self, at: int | None, newest: int, given: int | None) -> int:
        """When a change happens (`dsms.tables.dates`).  Raises DS523."""
        return instant_of(
            self.definition.name, self.next_version, self.last_change, at, newest, given
        )

    def coding(
        self, new: Sequence[pa.Array] | None, old: Sequence[pa.Array] | None = None
    ) -> Generator[None, None, KeyCodes | None]:
        """Look the keys of rows that come and go up, piece by piece; changes may come in between.
        None where there are no keys."""
        return (yield from self._keys.coding(new, old)) if self._keys else None

    def checking(
        self,
        new: Sequence[pa.Array],
        old: Sequence[pa.Array] | None = None,
        codes: KeyCodes | None = None,
    ) -> Generator[None, None, None]:
        """What `inserting`, or `updating` where there are `old` rows, checks; in pieces.  It holds
        as long as `changes_made` is what it was."""
        self.check_nulls(new)
        if self._keys:
            yield from self._keys.checking(new, old, codes)

    def inserting(
        self, columns: Sequence[pa.Array], at: int, codes: KeyCodes | None = None
    ) -> Change:
        """INSERT: physical columns of equal length in schema order, and what `coding` gave, if it
        was asked.  Raises UsageError DS520-DS522."""
        self.check_nulls(columns)
        if self._keys:
            self._keys.check_insert(columns, codes)
        return Change(at, np.empty(0, np.int64), tuple(columns), self.next_version, len(columns[0]))

    def deleting(self, found: Matched, at: int) -> Change:
        """DELETE of rows that match."""
        none = tuple(c.slice(0, 0) for c in found.old)
        deleted = self._version.view[found.slots]
        return Change(at, deleted, none, self.next_version, len(found.slots))

    def updating(self, found: Matched, at: int, codes: KeyCodes | None = None) -> Change:
        """UPDATE of rows that match.  Raises DS520-DS522."""
        self.check_nulls(found.new)
        if self._keys:
            self._keys.check_update(found.old, found.new, codes)
        deleted = self._version.view[found.slots]
        return Change(at, deleted, found.new, self.next_version, len(found.slots))

    def apply(
        self, change: Change, codes: KeyCodes | None = None, staged: Staged | None = None
    ) -> None:
        """Make a change that was just prepared (or is read back in order); `codes` as for
        `inserting`, `staged`: what is ready of it."""
        if not change.rows:
            return
        if staged is None or staged is not self.staged:
            self.unstage()
            staged, gone, new = None, self._slots(change.deleted), change.new
        else:
            gone, new = staged.gone, staged.new
            del self.staged
        if self._keys and not (staged and staged.keys and self._keys.install(staged.keys)):
            before = self._gather(gone, self.definition.key)
            self._keys.apply(before, self._key_of(change.inserted), new, codes)
        self._ended.view[gone] = change.at
        self._brief += int(np.count_nonzero(self._born.view[gone] == change.at))
        if staged is None:
            lives = np.full(len(new), change.at), np.full(len(new), FOREVER)
            self._append(change.inserted, new, *lives)
        else:
            self._show(len(new), change.at)
        self._log.add(Entry(change.at, change.deleted, new))
        self.next_version += len(new)
        self.last_change = change.at

    def unstage(self) -> None:
        """What is ready of a change is not wanted, or was overtaken."""
        if self.staged is None:
            return
        del self.staged
        for column in self._columns:
            column.cut(self._version.n)
        for index in self._indices.values():
            index.cut(self._version.n)

    def _show(self, count: int, at: int) -> None:
        """So many versions that are ready are born."""
        first = self._version.n
        self._born.data[first : first + count] = at
        for vec in (self._version, self._born, self._ended):
            vec.n = first + count

    # -- reading -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Current rows."""
        return int(np.count_nonzero(self._ended.view == FOREVER))

    def state(self, upto: int = FOREVER) -> Batch:
        """The rows as of the instant `upto` as inserts at ALWAYS, by version; FOREVER: with all
        changes made so far.

        Read on with `changes` from `cursor(upto)`."""
        slots = self._as_of(upto)
        ts = np.full(len(slots), ALWAYS, np.int64)
        return Batch(ts, None, None, (self._version.view[slots],), self._gather(slots))

    def versions(self, at: int | None = None) -> Batch:
        """The versions current at an instant (None: all that are still known), `ts`: born, `exp`:
        ended."""
        slots = np.arange(self._version.n) if at is None else self._as_of(at)
        born, ended = self._born.view[slots], self._ended.view[slots]
        return Batch(born, ended, None, (self._version.view[slots],), self._gather(slots))

    def cursor(self, upto: int = FOREVER) -> int:
        """Where a reader of `state(upto)` reads on."""
        return self._log.after(max(upto, self._log.forgotten))

    def changes(self, cursor: int, upto: int) -> tuple[Batch, int]:
        """Inserts and deletions from `cursor` on with instants <= `upto`, in batch order, and the
        next cursor."""
        entries = self._log.read(cursor, upto)
        parts = [(e.at, sign, v) for e in entries for sign, v in ((-1, e.deleted), (1, e.inserted))]
        version = np.concatenate([v for *_, v in parts]) if parts else np.empty(0, np.int64)
        counts = [len(v) for *_, v in parts]
        ts = np.repeat(np.array([at for at, *_ in parts], np.int64), counts)
        sign = np.repeat(np.array([s for _, s, _ in parts], np.int8), counts)
        slots = self._slots(version)
        real = self._worth_reporting(version, slots)
        batch = Batch(ts[real], None, sign[real], (version[real],), self._gather(slots[real]))
        return in_order(batch), max(cursor, self._log.dropped) + len(entries)

    def _worth_reporting(self, version: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Events worth reporting (mask): not those of a version whose beginning and end at one
        instant are both here."""
        brief = self._born.view[slots] == self._ended.view[slots]
        seen, count = np.unique(version[brief], return_counts=True)
        return ~(brief & np.isin(version, seen[count == 2]))

    def next_change(self, cursor: int) -> int:
        """The instant of the next change for a reader at `cursor`; FOREVER if none is known."""
        return self._log.next_at(cursor)

    def probe(
        self, cols: Sequence[pa.Array], key_columns: tuple[int, ...], ts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """For each probe row the versions whose `key_columns` equal its `cols` and that were
        current at its `ts`.

        `cols` have the physical types of the key columns; no key columns: every version current
        then.  Returns (probe row, version) pairs, int64, by row and then version.  NULLs never
        match.  Versions are valid for `gather` until `forget` has passed their end.
        """
        index = self._indices.get(key_columns)
        if index is None:
            unique = bool(self.definition.key) and set(self.definition.key) <= set(key_columns)
            index = self._indices[key_columns] = AsOfIndex(key_columns, unique)
        behind = np.arange(index.link.n, self._version.n, dtype=np.int64)
        if len(behind):
            index.extend(self._gather(behind, key_columns), len(behind))
        # also of versions that are ready, but not born
        rows, slots = index.probe(cols, ts, self._born.data, self._ended.data)
        return rows, self._version.view[slots]

    def gather(
        self, versions: np.ndarray, columns: Sequence[int] | None = None
    ) -> tuple[pa.Array, ...]:
        """The values of these versions (any order, repeats allowed): all columns, or those at the
        given positions."""
        return self._gather(self._slots(versions), columns)

    def changed(self, after: int) -> np.ndarray:
        """int64[n]: the instants later than `after` at which it changed."""
        entries = self._log.read(self._log.after(after), FOREVER)
        return np.array([e.at for e in entries], np.int64)

    # -- upkeep ------------------------------------------------------------------------------------

    def forget(self, upto: int) -> None:
        """Every clock has passed `upto`: there will be no probe at or before it, and no read of
        changes up to it."""
        self._droppable += sum(len(e.deleted) for e in self._log.forget(upto))
        if (
            self.staged is None
            and self._droppable >= _COMPACT_FROM
            and 2 * self._droppable >= self._version.n
        ):
            self._compact()

    def drop_brief(self) -> None:
        """Nobody follows its changes: versions that lived for no time, which no probe can find, are
        dropped once they are half of all."""
        few = self._brief < _BRIEF_FROM or 2 * self._brief < self._version.n
        if few or self.staged is not None:
            return
        lived = self._born.view != self._ended.view
        self._log.leave_out(self._version.view[~lived])
        self._keep(np.flatnonzero(lived))

    def set_back(self, to: int) -> None:
        """Changes later than `to` happened at `to`."""
        self.unstage()
        np.minimum(self._born.view, to, out=self._born.view)
        self._ended.view[(self._ended.view > to) & (self._ended.view < FOREVER)] = to
        self.last_change = min(self.last_change, to)
        self._log.set_back(to)
        for index in self._indices.values():
            index.clear()

    @property
    def keys(self) -> Keys | None:
        """The keys of its rows; None: it has no primary key."""
        return self._keys

    @property
    def changes_made(self) -> int:
        """How many there have been."""
        return self._log.end

    @property
    def forgotten(self) -> int:
        """The instant up to which versions that had ended are gone; ALWAYS: all that ever were are
        there."""
        return self._log.forgotten if self._version.n < self.next_version else ALWAYS

    def snapshot(self) -> TableSnapshot:
        """Everything, to be stored."""
        self.unstage()
        self._compact()
        slots = np.arange(self._version.n)
        dead = self._keys.dead() if self._keys else ()
        return TableSnapshot(
            columns=self._gather(slots),
            version=self._version.view.copy(),
            born=self._born.view.copy(),
            ended=self._ended.view.copy(),
            dead_keys=dead,
            next_version=self.next_version,
            last_change=self.last_change,
            forgotten=self._log.forgotten,
        )

    @classmethod
    def restored(
        cls, definition: TableDef, snapshot: TableSnapshot | None, changes: Sequence[Change]
    ) -> VersionedTable:
        """A table as it was stored: a snapshot (None: empty) and the changes since."""
        table = cls(definition)
        if snapshot is not None:
            table._load(snapshot)
        for change in changes:
            table.apply(change)
        return table

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        held = [self._version, self._born, self._ended, *self._columns, *self._indices.values()]
        return sum(h.nbytes for h in held) + (self._keys.nbytes if self._keys else 0)

    # -- inside ------------------------------------------------------------------------------------

    def redeclare(self, definition: TableDef) -> None:
        """It is called otherwise, or columns of it are."""
        self.definition = definition
        if self._keys:
            self._keys.definition = definition

    def _key_of(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        return [columns[i] for i in self.definition.key]

    def check_nulls(self, columns: Sequence[pa.Array]) -> None:
        for i, (field, col) in enumerate(zip(self.definition.schema, columns, strict=True)):
            if col.null_count and (not field.nullable or i in self.definition.key):
                what = "PRIMARY KEY" if i in self.definition.key else "NOT NULL"
                where = f"table {self.definition.name}: column {field.name} is {what}"
                raise UsageError("DS520", f"{where} and can't be NULL; nothing was changed")

    def _as_of(self, upto: int) -> np.ndarray:
        if upto == FOREVER:
            return np.flatnonzero(self._ended.view == FOREVER)
        known = max(upto, self._log.forgotten)
        return np.flatnonzero((self._born.view <= known) & (known < self._ended.view))

    def _slots(self, versions: np.ndarray) -> np.ndarray:
        """Where the versions stand: ascending, without gaps where nothing was dropped between."""
        there = self._version.view
        if len(there) and there[-1] - there[0] == len(there) - 1:
            return versions - there[0]
        return np.searchsorted(there, versions) if len(there) else versions

    def _gather(
        self, slots: np.ndarray, columns: Sequence[int] | None = None
    ) -> tuple[pa.Array, ...]:
        chosen = range(len(self._columns)) if columns is None else columns
        return tuple(self._columns[i].gather(slots) for i in chosen)

    def _append(
        self, cols: Sequence[pa.Array], version: np.ndarray, born: np.ndarray, ended: np.ndarray
    ) -> None:
        for store, col in zip(self._columns, cols, strict=True):
            store.append(col)
        for vec, values in ((self._version, version), (self._born, born), (self._ended, ended)):
            vec.extend(values)

    def _compact(self) -> None:
        """Drop the versions that ended at an instant that is forgotten."""
        keep = np.flatnonzero(self._ended.view > self._log.forgotten)
        self._droppable = 0
        if len(keep) < self._version.n:
            self._keep(keep)

    def _keep(self, keep: np.ndarray) -> None:
        """Drop the versions in all other slots."""
        for column in self._columns:
            column.keep(keep)
        for vec in (self._version, self._born, self._ended):
            vec.keep(keep)
        for index in self._indices.values():
            index.clear()
        self._brief = int(np.count_nonzero(self._born.view == self._ended.view))

    def _load(self, snap: TableSnapshot) -> None:
        self._append(snap.columns, snap.version, snap.born, snap.ended)
        self.next_version, self.last_change = snap.next_version, snap.last_change
        self._log.forgotten = snap.forgotten
        current = self._gather(np.flatnonzero(snap.ended == FOREVER))
        if self._keys:
            self._keys.bury(snap.dead_keys)
            self._keys.apply(
                self._key_of(tuple(c.slice(0, 0) for c in current)),
                self._key_of(current),
                snap.version[snap.ended == FOREVER],
            )
        self._log.rebuild(snap)
