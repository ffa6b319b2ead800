"""Bytes under a key: encrypted, and authenticated together with the place that they belong to.

AES-256-GCM (NIST SP 800-38D) as the library `cryptography` has it, keys derived by HKDF-SHA256 (RFC
5869).  A folder has a random id, and its own key made of the state key and that id; each purpose (a
file of some name, the records of a log, the catalog) has a key made of the folder's.  So nothing
that is moved to another place or folder can be read there.

Nonces must never come twice under one key:

- A whole file has a random salt of 256 bits and a key of its own made with it, under which its
  chunks are counted.  The last chunk is marked, so a file that is cut between chunks is noticed.
- Records of logs and the catalog have random nonces of 96 bits under the key of that log: whatever
  a log that is cut back, written over, or made again after a crash held before, no counter has to
  be remembered.  (2^32 records under one key may be: SP 800-38D, 8.3; a log is replaced long
  before.)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dsms.errors import UsageError

CHUNK = 1 << 20  # bytes of a file that are encrypted at once
MAGIC = b"dsE1"  # a file
SALT, NONCE, TAG, KEY = 32, 12, 16, 32
HEAD = len(MAGIC) + SALT
INSTALL = "pip install '.[encryption]' in a clone of dsms, elsewhere pip install cryptography"


class NotAuthentic(Exception):
    """It is not what was written there with this key."""


@dataclass(frozen=True, slots=True)
class Secret:
    """One key and its cipher."""

    cipher: Any
    wrong: type[Exception]

    def encrypt(self, nonce: bytes, data: Any, about: bytes) -> bytes:
        """The data, and behind it the tag that also covers what it is `about`."""
        return self.cipher.encrypt(nonce, data, about)

    def decrypt(self, nonce: bytes, data: Any, about: bytes) -> bytes:
        """The data again.  Raises NotAuthentic."""
        try:
            return self.cipher.decrypt(nonce, data, about)
        except self.wrong:
            raise NotAuthentic from None

    def sealed(self, data: Any, about: bytes = b"") -> bytes:
        """`encrypt` with a random nonce, which stands before it."""
        nonce = os.urandom(NONCE)
        return nonce + self.encrypt(nonce, data, about)

    def opened(self, data: Any, about: bytes = b"") -> bytes:
        """What was `sealed`.  Raises NotAuthentic."""
        if len(data) < NONCE + TAG:
            raise NotAuthentic
        return self.decrypt(bytes(data[:NONCE]), data[NONCE:], about)


@dataclass(frozen=True, slots=True)
class FolderKey:
    """The key of one data folder."""

    root: bytes = field(repr=False)

    @staticmethod
    def of(state_key: bytes, folder: bytes) -> FolderKey:
        """Of the folder with that id.  Raises DS556 where the library is missing."""
        return FolderKey(_derived(state_key, folder, b"dsms folder"))

    def check(self) -> bytes:
        """By this a folder knows its key; nothing of the key can be told from it."""
        return _derived(self.root, b"", b"check")

    def secret(self, purpose: str, salt: bytes = b"") -> Secret:
        """The key of a purpose."""
        aead, wrong = _library()
        return Secret(aead(_derived(self.root, salt, purpose.encode())), wrong)


def _derived(key: bytes, salt: bytes, purpose: bytes) -> bytes:
    _library()
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), KEY, salt, purpose).derive(key)


def _library() -> tuple[Any, type[Exception]]:
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        what = "a state key needs the package `cryptography`, which is not installed"
        raise UsageError("DS556", what, hint=INSTALL) from None
    return AESGCM, InvalidTag


# -- whole files -----------------------------------------------------------------------------------


def encrypted(key: FolderKey, name: str, buffers: Iterable[Any]) -> Iterator[bytes]:
    """A file of that name which holds the buffers: its bytes, piece by piece."""
    salt = os.urandom(SALT)
    secret = key.secret(f"file {name}", salt)
    yield MAGIC + salt
    waiting: list[bytes | memoryview] = []
    number = 0
    for number, chunk in enumerate(_chunks(buffers)):
        yield from (secret.encrypt(_counted(number - 1, False), c, b"") for c in waiting)
        waiting = [chunk]
    yield secret.encrypt(_counted(number, True), waiting[0], b"")


def decrypted(key: FolderKey, name: str, data: Any) -> pa.Buffer:
    """What the file of that name holds.  Raises NotAuthentic."""
    data = memoryview(data).cast("B")
    full, rest = divmod(len(data) - HEAD, CHUNK + TAG)
    if len(data) < HEAD or data[: len(MAGIC)] != MAGIC or rest < TAG:
        raise NotAuthentic
    secret = key.secret(f"file {name}", bytes(data[len(MAGIC) : HEAD]))
    out = pa.allocate_buffer(full * CHUNK + rest - TAG)
    room = memoryview(out).cast("B")
    for number in range(full + 1):
        at = HEAD + number * (CHUNK + TAG)
        nonce = _counted(number, number == full)
        part = secret.decrypt(nonce, data[at : at + CHUNK + TAG], b"")
        room[number * CHUNK : number * CHUNK + len(part)] = part
    return out


def _counted(number: int, last: bool) -> bytes:
    return (2 * number + last).to_bytes(NONCE, "little")


def _chunks(buffers: Iterable[Any]) -> Iterator[bytes | memoryview]:
    """The buffers cut anew: each chunk is full but the last one, which may be empty."""
    parts: list[memoryview] = []
    room = CHUNK
    for buffer in buffers:
        view = memoryview(buffer).cast("B")
        while len(view):
            parts.append(view[:room])
            room -= len(parts[-1])
            view = view[len(parts[-1]) :]
            if not room:
                yield _joined(parts)
                parts, room = [], CHUNK
    yield _joined(parts)


def _joined(parts: list[memoryview]) -> bytes | memoryview:
    return parts[0] if len(parts) == 1 else b"".join(parts)
