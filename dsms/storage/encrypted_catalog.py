"""A catalog under the key of its data folder: SQLite in memory, and on the disk, in an SQLite file
of the same name, each of its transactions encrypted.

    entry: id, 1, 2, 3 ...; kind; body      nonce 12 | encrypted, tag 16

Every entry is bound to its number and to the one before it, so none can be changed, swapped, taken
out or put in.  Those at the end can be taken away; what was in them is missed by whoever knows of
later numbers (`dsms.recovering.losses`).  When the entries have become many, an image of the whole
takes their place in one transaction.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dsms.storage.encryption import TAG, FolderKey, NotAuthentic

APPLICATION = 0x64736D73  # see `dsms.storage.catalog`
ENCRYPTED = 1000  # its user_version on the disk: a dsms that knows of no keys takes it for newer
CHANGES, IMAGE = range(2)  # kinds of entries
PIECE = 1 << 24  # bytes of an image in one entry
LEAST = 1 << 20  # bytes of entries that an image may replace
ROLLBACK = slice(18, 20)  # of an image: how transactions are written
FIRST = bytes(TAG)  # stands for what was before the first entry
READS = ("SELECT", "BEGIN", "COMMIT", "ROLLBACK")
NOT_OURS = "an entry is not what was written there with this key"

_LAYOUT = f"""
CREATE TABLE entry (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, body BLOB NOT NULL);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {ENCRYPTED}
"""


class EncryptedDatabase:
    """What `CatalogStore` uses of an `sqlite3.Connection`.  All that is written must be in a
    transaction.  Raises what SQLite raises; DatabaseError where entries are not those that were
    written."""

    def __init__(self, path: Path, key: FolderKey) -> None:
        self._secret = key.secret("catalog")
        self._memory = _connect(":memory:")
        self._memory.execute("PRAGMA foreign_keys = ON")
        self._memory.execute("PRAGMA temp_store = MEMORY")  # what it sorts is no file either
        self._disk = _connect(path)
        self._pending: list[tuple[str, tuple]] = []
        self._last, self._tag = 0, FIRST
        self._image = self._entries = 0  # bytes
        try:
            self._prepare()
            self._read()
        except BaseException:
            self.close()
            raise

    @property
    def in_transaction(self) -> bool:
        return self._memory.in_transaction

    def execute(self, sql: str, parameters: tuple = ()) -> sqlite3.Cursor:
        """One statement."""
        if sql == "COMMIT":
            self._commit()
        done = self._memory.execute(sql, parameters)
        if sql.startswith(("BEGIN", "ROLLBACK")):
            self._pending.clear()
        elif sql == "COMMIT":
            self._compact()
        elif self._memory.in_transaction and not sql.lstrip().startswith(READS):
            self._pending.append((sql, parameters))
        return done

    def backup(self, target: sqlite3.Connection) -> None:
        """Copy all of it."""
        self._memory.backup(target)

    def take(self, source: sqlite3.Connection) -> None:
        """Take the place of what is there: all that `source` holds."""
        source.backup(self._memory)
        self._write_image()

    def close(self) -> None:
        self._disk.close()
        self._memory.close()

    # -- on the disk -------------------------------------------------------------------------------

    def _prepare(self) -> None:
        disk = self._disk
        disk.execute("PRAGMA locking_mode = EXCLUSIVE")
        new = not disk.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not new:
            _check(disk)
        disk.execute("PRAGMA journal_mode = WAL")
        disk.execute("PRAGMA synchronous = FULL")
        disk.execute("BEGIN IMMEDIATE")  # takes the lock, which stays
        for statement in _LAYOUT.split(";") if new else ():
            disk.execute(statement)
        disk.execute("COMMIT")

    def _read(self) -> None:
        pieces: list[bytes] = []
        for number, kind, body in self._disk.execute("SELECT * FROM entry ORDER BY id"):
            first = not self._last and (kind == IMAGE or number == 1)
            if not first and number != self._last + 1:
                raise sqlite3.DatabaseError("entries are missing")
            found = self._opened(number, kind, body)
            if kind == IMAGE:
                pieces.append(found)
                self._image += len(body)
                continue
            self._load(pieces)
            self._entries += len(body)
            for sql, parameters in _unpacked(found):
                self._memory.execute(sql, parameters)
        self._load(pieces)

    def _load(self, pieces: list[bytes]) -> None:
        """Begin with that image."""
        if pieces:
            with contextlib.closing(_connect(":memory:")) as image:
                data = bytearray(b"".join(pieces))
                data[ROLLBACK] = b"\1\1"  # of a file with a -wal, which this one has not
                image.deserialize(data)
                image.backup(self._memory)
            pieces.clear()

    def _commit(self) -> None:
        """Write down what the transaction has changed, or take it back and raise."""
        if not self._pending:
            return
        before = self._last, self._tag
        try:
            with _transaction(self._disk):
                size = self._append(CHANGES, _packed(self._pending))
            self._entries += size
        except BaseException:
            self._last, self._tag = before
            self._memory.execute("ROLLBACK")
            raise
        finally:
            self._pending.clear()

    def _compact(self) -> None:
        if self._entries > max(LEAST, 2 * self._image):
            with contextlib.suppress(sqlite3.Error):  # it is tried again with the next change
                self._write_image()

    def _write_image(self) -> None:
        data, before = memoryview(self._memory.serialize()), (self._last, self._tag)
        try:
            with _transaction(self._disk):
                self._disk.execute("DELETE FROM entry")
                self._tag = FIRST
                size = sum(
                    self._append(IMAGE, data[at : at + PIECE]) for at in range(0, len(data), PIECE)
                )
        except BaseException:
            self._last, self._tag = before
            raise
        self._image, self._entries = size, 0

    def _append(self, kind: int, data: Any) -> int:
        """Write the next entry; its bytes."""
        number = self._last + 1
        body = self._secret.sealed(data, self._about(number, kind))
        self._disk.execute("INSERT INTO entry VALUES (?, ?, ?)", (number, kind, body))
        self._last, self._tag = number, body[-TAG:]
        return len(body)

    def _opened(self, number: int, kind: int, body: Any) -> bytes:
        try:
            found = self._secret.opened(memoryview(body), self._about(number, kind))
        except (NotAuthentic, TypeError, AttributeError, OverflowError):
            raise sqlite3.DatabaseError(NOT_OURS) from None
        self._last, self._tag = number, body[-TAG:]
        return found

    def _about(self, number: int, kind: int) -> bytes:
        return number.to_bytes(8, "little") + kind.to_bytes(1, "little") + self._tag


def _connect(path: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)


def _check(disk: sqlite3.Connection) -> None:
    """Raise DatabaseError unless it is a sound file of this kind."""
    (mark,) = disk.execute("PRAGMA application_id").fetchone()
    (version,) = disk.execute("PRAGMA user_version").fetchone()
    if (mark, version) != (APPLICATION, ENCRYPTED):
        raise sqlite3.DatabaseError("it is not that of an encrypted data folder")
    faults = [row[0] for row in disk.execute("PRAGMA quick_check")]
    if faults != ["ok"]:
        raise sqlite3.DatabaseError(faults[0])


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _packed(statements: list[tuple[str, tuple]]) -> bytes:
    """Statements and their parameters as bytes: blobs stand behind the rest."""
    blobs = [p for _, parameters in statements for p in parameters if isinstance(p, bytes)]
    head = [
        [sql, [[len(p)] if isinstance(p, bytes) else p for p in parameters]]
        for sql, parameters in statements
    ]
    text = json.dumps(head).encode()
    return b"".join((len(text).to_bytes(4, "little"), text, *blobs))


def _unpacked(body: bytes) -> Iterator[tuple[str, tuple]]:
    at = 4 + int.from_bytes(body[:4], "little")
    for sql, parameters in json.loads(body[4:at]):
        values = []
        for p in parameters:
            if isinstance(p, list):
                values.append(body[at : at + p[0]])
                at += p[0]
            else:
                values.append(p)
        yield sql, tuple(values)
