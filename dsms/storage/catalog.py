"""The catalog on disk: what was declared, and the rows of tables, in one SQLite file.

Every method that writes is one transaction, durable when it returns; `transaction()` makes several
one.  A crash leaves the state before or after.  The file belongs to one process at a time (SQLite's
exclusive lock, which ends with the process, so that a crash leaves no lock behind).

Definitions are kept as SQL text in the order they were made; loading parses them again.  A table is
a snapshot (if one was taken) and the changes since; values travel as Arrow IPC, so that every type
comes back exactly.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from dsms.errors import InternalError, UsageError
from dsms.sql.catalog import FunctionDef, Option, QueryDef, StreamDef, TableDef
from dsms.storage.encrypted_catalog import ENCRYPTED, EncryptedDatabase
from dsms.storage.encryption import FolderKey
from dsms.storage.folder_key import encrypted_error
from dsms.storage.packed_changes import change_of, ints, packed_rows, snapshot_of
from dsms.tables.changes import Change, TableSnapshot

VERSION = 6  # of this layout: raise it with every change, and convert older files on opening
APPLICATION = 0x64736D73  # "dsms": marks the file as ours

Kind = Literal["stream", "table", "query", "function", "connector"]
Setting = str | int | float | bool | None | list | dict

_LAYOUT = """
CREATE TABLE object (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
                     name TEXT NOT NULL, sql TEXT NOT NULL, options TEXT NOT NULL);
CREATE TABLE change (id INTEGER PRIMARY KEY AUTOINCREMENT, object INTEGER NOT NULL REFERENCES object ON DELETE CASCADE,
                     at INTEGER NOT NULL, deleted BLOB NOT NULL, inserted BLOB NOT NULL,
                     first_version INTEGER NOT NULL, rows INTEGER NOT NULL);
CREATE INDEX change_of ON change (object, id);
CREATE TABLE snapshot (object INTEGER PRIMARY KEY REFERENCES object ON DELETE CASCADE, rows BLOB NOT NULL,
                       dead_keys BLOB NOT NULL, next_version INTEGER NOT NULL, last_change INTEGER NOT NULL,
                       forgotten INTEGER NOT NULL);
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""  # noqa: E501
# since layout 2
_JOURNAL = "CREATE TABLE journal (lsn INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL)"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A declaration: its kind, its name as spelled, the statement that made it, and the options
    that it set."""

    kind: Kind
    name: str
    sql: str
    options: dict[str, Option]


class CatalogStore:
    """An open catalog file.  One thread at a time."""

    def __init__(self, path: str | Path, key: FolderKey | None = None) -> None:
        """Open the file, or make it; `key` of its data folder, if that is encrypted.  Raises
        UsageError DS540 (newer layout), DS541 (damaged or not a catalog), DS542 (in use), DS543
        (can't be opened or made), DS547 (encrypted, and there is no key)."""
        self.path = Path(path)
        self._depth = 0
        with self._explained():
            self._make()
            self._db = self._connected(key)
        try:
            with self._explained():
                self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _make(self) -> None:
        """The file, if there is none: one that SQLite makes is anybody's to read.  What goes wrong
        SQLite will say."""
        with contextlib.suppress(OSError):
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))

    def _connected(self, key: FolderKey | None) -> sqlite3.Connection | EncryptedDatabase:
        if key is not None:
            return EncryptedDatabase(self.path, key)
        return sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)

    def copy_to(self, other: CatalogStore) -> None:
        """Put all that is here in place of what is there."""
        with other._explained(), self._explained(), contextlib.closing(_memory()) as image:
            self._db.backup(image)
            if isinstance(other._db, EncryptedDatabase):
                other._db.take(image)
            else:
                image.backup(other._db)

    def close(self) -> None:
        """Give the file back.  May be called twice."""
        self._db.close()

    def __enter__(self) -> CatalogStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes inside happen together, or, if an exception leaves the block, not at all."""
        with self._explained():
            if self._depth == 0:
                self._db.execute("BEGIN IMMEDIATE")
        self._depth += 1
        try:
            yield
        except BaseException:
            self._depth -= 1
            # some errors of SQLite have rolled back already
            if self._depth == 0 and self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._depth -= 1
        if self._depth == 0:
            with self._explained():
                self._db.execute("COMMIT")

    # -- declarations ------------------------------------------------------------------------------

    def objects(self) -> list[StoredObject]:
        """All declarations in the order they were made."""
        with self._explained():
            found = self._db.execute(
                "SELECT kind, name, sql, options FROM object ORDER BY id"
            ).fetchall()
            return [
                StoredObject(kind, name, sql, json.loads(options))
                for kind, name, sql, options in found
            ]

    def add_stream(self, definition: StreamDef) -> None:
        """Keep a stream's declaration.  The engine has checked that the name is free."""
        self._add("stream", definition.home, definition.name, definition.sql, definition.options)

    def add_table(self, definition: TableDef) -> None:
        """Keep a table's declaration; it has no rows yet."""
        self._add("table", definition.home, definition.name, definition.sql, ())

    def add_query(self, definition: QueryDef) -> None:
        """Keep a persistent query's declaration."""
        self._add("query", definition.home, definition.name, definition.sql, definition.options)

    def add_function(self, definition: FunctionDef) -> None:
        """Keep the declaration of a function or aggregate of one's own."""
        self._add("function", definition.home, definition.name, definition.sql, ())

    def add(self, kind: Kind, key: str, name: str, sql: str) -> None:
        """Keep the declaration of an object that has no options of its own."""
        self._add(kind, key, name, sql, ())

    def drop(self, kind: Kind, key: str, changed: Sequence[StreamDef] = ()) -> None:
        """Forget a declaration, and the rows if it is a table.  Nothing happens if there is
        none.  `changed`: streams that are declared otherwise without it."""
        with self._explained(), self.transaction():
            self._db.execute("DELETE FROM object WHERE key = ? AND kind = ?", (key, kind))
            for stream in changed:
                self.redeclare(stream)

    def redeclare(self, stream: StreamDef) -> None:
        """A stream is declared otherwise."""
        change, key = "UPDATE object SET sql = ? WHERE key = ?", stream.home
        with self._explained(), self.transaction():
            self._db.execute(change, (stream.sql, key))

    # -- rows of tables ----------------------------------------------------------------------------

    def add_change(self, table: str, change: Change, inserted: bytes | None = None) -> None:
        """Keep a change of a table; to be called before it is applied.  `inserted`: its new rows,
        if they are packed already."""
        values = (
            change.at,
            ints(change.deleted),
            packed_rows(change.inserted) if inserted is None else inserted,
            change.first_version,
            change.rows,
        )
        statement = (
            "INSERT INTO change (object, at, deleted, inserted, first_version, rows) "
            "VALUES (?, ?, ?, ?, ?, ?)"
        )
        with self._explained(), self.transaction():
            self._db.execute(statement, (self._id(table), *values))

    def compact(self, table: str, snapshot: TableSnapshot) -> None:
        """Keep a whole table in place of all its changes so far."""
        lives = [pa.array(v, pa.int64()) for v in (snapshot.version, snapshot.born, snapshot.ended)]
        blobs = (packed_rows([*lives, *snapshot.columns]), packed_rows(snapshot.dead_keys))
        numbers = (snapshot.next_version, snapshot.last_change, snapshot.forgotten)
        with self._explained(), self.transaction():
            place = self._id(table)
            self._db.execute("DELETE FROM change WHERE object = ?", (place,))
            statement = "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?, ?)"
            self._db.execute(statement, (place, *blobs, *numbers))

    def table(self, table: str) -> tuple[TableSnapshot | None, list[Change]]:
        """What `VersionedTable.restored` needs: the snapshot, if there is one, and the changes
        since."""
        with self._explained():
            place = self._id(table)
            row = self._db.execute("SELECT * FROM snapshot WHERE object = ?", (place,)).fetchone()
            query = (
                "SELECT at, deleted, inserted, first_version, rows FROM change WHERE object = "
                "? ORDER BY id"
            )
            found = self._db.execute(query, (place,)).fetchall()
            return None if row is None else snapshot_of(row), [change_of(*r) for r in found]

    # -- the journal's part ------------------------------------------------------------------------
    # What declarations and changes of tables were made since the last checkpoints, numbered among
    # the rows of streams.

    def note(self, lsn: int, kind: str, body: bytes) -> None:
        """Keep a record of the journal; in one transaction with what it is about."""
        with self._explained(), self.transaction():
            self._db.execute("INSERT INTO journal VALUES (?, ?, ?)", (lsn, kind, body))

    def noted(self, after: int) -> list[tuple[int, str, bytes]]:
        """The records numbered above `after`, in order."""
        with self._explained():
            return self._db.execute(
                "SELECT * FROM journal WHERE lsn > ? ORDER BY lsn", (after,)
            ).fetchall()

    def bodies(self, kind: str) -> list[bytes]:
        """What the records of that kind hold, in order."""
        with self._explained():
            query = "SELECT body FROM journal WHERE kind = ? ORDER BY lsn"
            return [body for (body,) in self._db.execute(query, (kind,)).fetchall()]

    def trim(self, upto: int) -> None:
        """Forget the records numbered up to there, if no checkpoint needs them."""
        with self._explained(), self.transaction():
            self._db.execute("DELETE FROM journal WHERE lsn <= ?", (upto,))

    # -- settings ----------------------------------------------------------------------------------

    def setting(self, name: str, default: Setting = None) -> Setting:
        """A value kept under a name; `default` if there is none."""
        with self._explained():
            row = self._db.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
            return default if row is None else json.loads(row[0])

    def set(self, name: str, value: Setting) -> None:
        """Keep a value (anything JSON can say) under a name."""
        with self._explained(), self.transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, json.dumps(value))
            )

    # -- inside ------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        db = self._db
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA foreign_keys = ON")
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            self._check_ours()
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        with self.transaction():  # takes the lock, which stays
            if not db.execute("PRAGMA application_id").fetchone()[0]:
                for statement in _LAYOUT.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION}")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version < 2:
                db.execute(_JOURNAL)
            if version < VERSION:
                db.execute(f"PRAGMA user_version = {VERSION}")

    def _check_ours(self) -> None:
        (mark,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if mark != APPLICATION:
            raise UsageError(
                "DS541",
                f"{self.path} is an SQLite file but not a dsms catalog",
                hint="name another file",
            )
        if version == ENCRYPTED:
            raise encrypted_error(self.path.parent)
        if version > VERSION:
            message = (
                f"the catalog {self.path} was written by a newer dsms (layout {version}, "
                f"this one knows {VERSION})"
            )
            raise UsageError(
                "DS540", message, hint="run the newer dsms, or start with another data directory"
            )
        faults = [row[0] for row in self._db.execute("PRAGMA quick_check")]
        if faults != ["ok"]:
            raise sqlite3.DatabaseError(faults[0])

    def _add(
        self, kind: Kind, key: str, name: str, sql: str, options: Sequence[tuple[str, Option]]
    ) -> None:
        values = (key, kind, name, sql, json.dumps(dict(options)))
        with self._explained(), self.transaction():
            self._db.execute(
                "INSERT INTO object (key, kind, name, sql, options) VALUES (?, ?, ?, ?, ?)", values
            )

    def _id(self, name: str) -> int:
        row = self._db.execute("SELECT id FROM object WHERE key = ?", (name.casefold(),)).fetchone()
        if row is None:
            raise UsageError("DS541", f"the catalog {self.path} knows no table {name}")
        return int(row[0])

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's and Arrow's complaints in words that name the file and the way out."""
        try:
            yield
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError) as err:
            what = f"wrong use of the catalog {self.path}: {err}; please report this"
            raise InternalError("DS920", what) from err
        except sqlite3.OperationalError as err:
            if "locked" in str(err):
                hint = "stop the other dsms, or give this one its own data directory"
                what = f"the catalog {self.path} is in use by another process"
                raise UsageError("DS542", what, hint=hint) from None
            if getattr(err, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                hint = "make room, then run the statement again: nothing of it was kept"
                what = f"{self.path}: the disk is full ({err})"
                raise UsageError("DS550", what, hint=hint) from None
            hint = "check that the directory exists, has room, and may be written"
            what = f"the catalog {self.path} can't be used: {err}"
            raise UsageError("DS543", what, hint=hint) from None
        except (
            sqlite3.DatabaseError,
            pa.ArrowException,
            ValueError,
            TypeError,  # SQLite keeps values of any type in any column
            OSError,
            RecursionError,
        ) as err:
            hint = "restore it from a backup, or move it away to start with an empty catalog"
            what = f"the catalog {self.path} is damaged: {err}"
            raise UsageError("DS541", what, hint=hint) from None


def _memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)
