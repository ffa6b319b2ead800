"""Files of a data folder under its key, on top of whatever files there are.

A log is a row of frames, one for each piece that was appended (and so one for each record), written
at once:

    magic u32 | length u32 | nonce 12 bytes | encrypted, with a tag of 16 bytes     (little endian)

The key is that of the log's path, and the tag also covers the place in the file: a frame that was
moved, or is left of a log that this one was written over, is none.  Where no good frame stands, a
reader gets zeros and then what follows, so damage looks as it does in a log that is not encrypted:
a record is missing, and those behind it are there.

All other files are written whole (`dsms.storage.encryption`) and decrypted into memory.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dsms.errors import UsageError
from dsms.storage.encryption import (
    NONCE,
    TAG,
    FolderKey,
    NotAuthentic,
    Secret,
    decrypted,
    encrypted,
)
from dsms.storage.files import Appender, Files

LOG = ".log"
MAGIC = b"dsF1"
HEAD = struct.Struct(f"<4sI{NONCE}s")
PLACE = struct.Struct("<Q")
MOST = 1 << 26  # bytes of a frame; longer pieces are cut
GAP = b"\0" * 8  # no record begins like that
FOREIGN = b"\xff" * 8  # ... and no log
HINT = "restore it from a backup"


@dataclass(slots=True)
class EncryptedAppender:
    """A log that is written.  Places are those in the file."""

    file: Appender
    secret: Secret

    @property
    def size(self) -> int:
        return self.file.size

    @size.setter
    def size(self, size: int) -> None:
        self.file.size = size

    def write(self, buffers: Sequence[Any]) -> None:
        data = b"".join(memoryview(b).cast("B") for b in buffers)
        view, out, at = memoryview(data), list[bytes](), self.file.size
        for start in range(0, len(view), MOST):
            out += self._frame(view[start : start + MOST], at)
            at += sum(map(len, out[-2:]))
        self.file.write(out)

    def _frame(self, data: memoryview, at: int) -> tuple[bytes, bytes]:
        nonce = os.urandom(NONCE)
        body = self.secret.encrypt(nonce, data, PLACE.pack(at))
        return HEAD.pack(MAGIC, len(body), nonce), body

    def truncate(self, size: int) -> None:
        self.file.truncate(size)

    def sync(self) -> None:
        self.file.sync()

    def close(self) -> None:
        self.file.close()


@dataclass(frozen=True, slots=True)
class EncryptedFiles:
    """See `dsms.storage.files.Files`.

    files   where encrypted bytes go
    folder  the data folder: names are those below it, so it may be moved
    """

    files: Files
    folder: str
    key: FolderKey

    def append(self, path: str) -> EncryptedAppender:
        return EncryptedAppender(self.files.append(path), self._secret(path))

    def recycle(self, old: str, path: str) -> EncryptedAppender:
        return EncryptedAppender(self.files.recycle(old, path), self._secret(path))

    def read(self, path: str) -> bytes:
        return self.map(path).to_pybytes()

    def map(self, path: str) -> pa.Buffer:
        """The contents, decrypted.  Raises DS545 (DS554 of rows) if a file that was written whole
        is not what was written there; of a log the bad parts are zeros."""
        data = self.files.map(path)
        if path.endswith(LOG):
            return pa.py_buffer(b"".join(_pieces(memoryview(data).cast("B"), self._secret(path))))
        try:
            return decrypted(self.key, self._name(path), data)
        except NotAuthentic:
            code = "DS554" if path.endswith(".arrow") else "DS545"
            what = f"{path} is damaged: it is not what was written there with this key"
            raise UsageError(code, what, hint=HINT) from None

    def write_atomic(self, path: str, buffers: Iterable[Any], sync: bool = True) -> None:
        self.files.write_atomic(path, encrypted(self.key, self._name(path), buffers), sync)

    def remove(self, path: str) -> None:
        self.files.remove(path)

    def rename(self, old: str, new: str) -> None:
        """For files whose contents mean nothing any more: they can't be read under another name."""
        self.files.rename(old, new)

    def list(self, folder: str) -> list[str]:
        return self.files.list(folder)

    def exists(self, path: str) -> bool:
        return self.files.exists(path)

    def size(self, path: str) -> int:
        return self.files.size(path)

    def make_folder(self, folder: str) -> None:
        self.files.make_folder(folder)

    def remove_folder(self, folder: str) -> None:
        self.files.remove_folder(folder)

    def sync(self, path: str) -> None:
        self.files.sync(path)

    def sync_contents(self, path: str) -> None:
        self.files.sync_contents(path)

    def sync_folder(self, folder: str) -> None:
        self.files.sync_folder(folder)

    def _name(self, path: str) -> str:
        return os.path.relpath(path, self.folder)

    def _secret(self, path: str) -> Secret:
        return self.key.secret(f"log {self._name(path)}")


def _pieces(data: memoryview, secret: Secret) -> Iterator[bytes]:
    """What the good frames of a log hold, and zeros where there is none."""
    at = 0
    if not MAGIC.startswith(bytes(data[: len(MAGIC)]).rstrip(b"\0")):
        yield FOREIGN
        at = _next(data, 0, secret)
    while at < len(data):
        piece = _piece(data, at, secret)
        if piece is None:
            yield GAP
            at = _next(data, at, secret)
        else:
            yield piece
            at += HEAD.size + len(piece) + TAG


def _piece(data: memoryview, at: int, secret: Secret) -> bytes | None:
    """What the frame at that place holds, if there is a good one."""
    if at + HEAD.size + TAG > len(data):
        return None
    magic, length, nonce = HEAD.unpack_from(data, at)
    start = at + HEAD.size
    if magic != MAGIC or not TAG <= length <= min(MOST + TAG, len(data) - start):
        return None
    try:
        return secret.decrypt(nonce, data[start : start + length], PLACE.pack(at))
    except NotAuthentic:
        return None


def _next(data: memoryview, at: int, secret: Secret) -> int:
    """The place of the next good frame; the end of the file if there is none."""
    rest, place = bytes(data[at:]), 0
    while (place := rest.find(MAGIC, place + 1)) >= 0:
        if _piece(data, at + place, secret) is not None:
            return at + place
    return len(data)
