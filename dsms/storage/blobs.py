"""Big changes of tables, each in a file of its own, written before the small record that names it.

    FOLDER/changes/LSN-NUMBER.rows    magic 8 bytes | of each piece: bytes u64, and these
                                      a piece: columns as an Arrow stream; first versions that end,
                                      then rows that come

The record (in the catalog, in one transaction with its place among the rows) holds the digest of
the file, which covers its name too.  A file that no record names is of a change that never was.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa
import xxhash

from dsms.errors import DsmsError, UsageError
from dsms.state.columns import all_joined
from dsms.storage.files import Files
from dsms.storage.packed_changes import packed_rows, unpacked_rows
from dsms.tables.changes import Change

MAGIC = b"dsmsCH01"
CHANGES, ROWS, PART = "changes", ".rows", ".part"
KIND = "staged"  # of the records that name such files
PIECE = 1 << 15  # rows that are written in one go
_SIZE = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Blob:
    """A file that is written, and on the disk: its name, bytes and digest, and how many pieces of
    it are versions that end."""

    name: str
    bytes: int
    digest: str
    ending: int


@dataclass(slots=True)
class Blobs:
    """Those of a folder.  `fresh`: names of those that no record may name yet."""

    files: Files
    folder: str
    fresh: set[str] = field(default_factory=set)

    def reserve(self, lsn: int) -> str:
        """A name for the next file, when the last record has that number."""
        k = 0
        while (name := f"{lsn + 1:020d}-{k}{ROWS}") in self.fresh or self._there(name):
            k += 1
        self.fresh.add(name)
        return name

    def write(self, name: str, deleted: np.ndarray, inserted: Sequence[pa.Array]) -> Blob:
        """Write a change of these versions and rows, a piece at a time, and bring it to the disk;
        in any thread.  Raises DS55x, with nothing written."""
        check = xxhash.xxh3_128(name.encode())
        size = 0

        def seen() -> Iterator[bytes]:
            nonlocal size
            for buffer in _pieces(deleted, inserted):
                check.update(buffer)
                size += len(buffer)
                yield buffer

        if not self.files.exists(self.folder):
            self.files.make_folder(self.folder)
            self.files.sync_folder(os.path.dirname(self.folder))
        self.files.write_atomic(f"{self.folder}/{name}", seen())
        return Blob(name, size, check.hexdigest(), -(-len(deleted) // PIECE))

    def discard(self, name: str) -> None:
        """No record names it, and none will."""
        self.fresh.discard(name)
        for found in (name, f"{name}{PART}"):
            if self._there(found):
                with suppress(DsmsError):  # the next sweep finds it
                    self.files.remove(f"{self.folder}/{found}")

    def read(self, blob: Blob) -> tuple[np.ndarray, tuple[pa.Array, ...]]:
        """Versions that end, and rows that come.  Raises DS577 where it is not what was written."""
        path = f"{self.folder}/{blob.name}"
        try:
            data = memoryview(self.files.map(path)).cast("B")
            check = xxhash.xxh3_128(blob.name.encode())
            check.update(data)
            if check.hexdigest() != blob.digest:
                raise ValueError("it is not what was written there")
            pieces = [unpacked_rows(bytes(piece)) for piece in _cut(data)]
            ending, coming = pieces[: blob.ending], pieces[blob.ending :]
            gone = np.concatenate([np.empty(0, np.int64), *(p[0].to_numpy() for p in ending)])
            return gone, all_joined(coming)
        except (DsmsError, ValueError, struct.error, LookupError, pa.ArrowException) as error:
            why = error.message if isinstance(error, DsmsError) else f"{path}: {error}"
            raise UsageError(
                "DS577",
                f"a change of a table is missing or damaged: {why}",
                hint="restore the data directory from a backup",
            ) from None

    def check(self, blobs: Iterable[Blob]) -> None:
        """Raise DS577 unless all of these can be read."""
        for blob in blobs:
            self.read(blob)

    def sweep(self, named: Collection[str]) -> None:
        """Remove the files that no record names, or needs any more."""
        if not self.files.exists(self.folder):
            return
        for name in self.files.list(self.folder):
            stem = name.removesuffix(PART)
            if stem not in named and stem not in self.fresh:
                with suppress(DsmsError):  # the next one finds it again
                    self.files.remove(f"{self.folder}/{name}")

    def _there(self, name: str) -> bool:
        return self.files.exists(f"{self.folder}/{name}")


def record_of(table: str, change: Change, blob: Blob) -> bytes:
    """What stands in the catalog of a change that is in a file."""
    made = [table, change.at, change.first_version, change.rows]
    return json.dumps([made, asdict(blob)]).encode()


def blob_of(body: bytes) -> Blob:
    """The file that such a record names."""
    return Blob(**json.loads(body)[1])


def change_of(body: bytes, blobs: Blobs) -> tuple[str, Change]:
    """The table and its change again.  Raises DS577."""
    (table, at, first_version, rows), _ = json.loads(body)
    deleted, inserted = blobs.read(blob_of(body))
    return table, Change(at, deleted, inserted, first_version, rows)


def _pieces(deleted: np.ndarray, inserted: Sequence[pa.Array]) -> Iterator[bytes]:
    yield MAGIC
    for start in range(0, len(deleted), PIECE):
        yield from _sized(packed_rows([pa.array(deleted[start : start + PIECE])]))
    rows = len(inserted[0]) if inserted else 0
    for start in range(0, max(rows, 1), PIECE):  # one at least: types, where there are no rows
        yield from _sized(packed_rows([c.slice(start, PIECE) for c in inserted]))


def _sized(piece: bytes) -> Iterator[bytes]:
    yield _SIZE.pack(len(piece))
    yield piece


def _cut(data: memoryview) -> Iterator[memoryview]:
    if bytes(data[: len(MAGIC)]) != MAGIC:
        raise ValueError("it is no change of a table")
    at = len(MAGIC)
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size
        yield data[at : at + size]
        at += size
