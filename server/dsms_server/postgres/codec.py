"""Messages of PostgreSQL's protocol: bytes in -> messages, fields -> bytes out.

A message is a letter, its length (int32, itself among them) and its body; the first one of a
connection has no letter.  A length is looked at before anything is kept for it, and what is kept is
what has come.  The format is described in the PostgreSQL manual, chapter "Frontend/Backend
Protocol".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dsms.errors import UsageError

STARTUP_BYTES = 10_000  # of a message before the peer has shown who it is
VERSION = 3  # of the protocol; its minor version is what the server says, 0
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
ENCRYPTION = (  # messages that ask for it
    struct.pack(">II", 8, SSL_REQUEST),
    struct.pack(">II", 8, GSS_REQUEST),
)
KINDS = frozenset(b"QPBDECSHXpdcfF")  # that a client may send
COMPACT = 1 << 16  # bytes in front of what is not read yet, at which they are let go
_LENGTH = struct.Struct(">I")
_SHORT = struct.Struct(">H")
_LONG = struct.Struct(">i")


def broken(why: str) -> UsageError:
    """DS626: the bytes can't be followed any further."""
    return UsageError("DS626", f"this is no message of PostgreSQL's protocol: {why}")


class Inbox:
    """Bytes of a connection, and the whole messages in them.  `limit`: of a message."""

    __slots__ = ("_at", "_bytes", "limit", "started")

    def __init__(self, limit: int) -> None:
        self._bytes, self._at = bytearray(), 0
        self.limit = limit
        self.started = False  # the message without a letter has been taken

    def add(self, data: bytes | memoryview) -> None:
        self._bytes += data

    def clear(self) -> None:
        self._bytes, self._at = bytearray(), 0

    def take(self) -> tuple[int, bytes] | None:
        """(letter, body) of the next whole message; the letter is 0 for the first one.  Raises
        DS626."""
        head = self._at + (1 if self.started else 0)
        if len(self._bytes) < head + 4:
            if self.started and len(self._bytes) > self._at:
                self._check_kind(self._bytes[self._at])
            return None
        kind = self._bytes[self._at] if self.started else 0
        if self.started:
            self._check_kind(kind)
        (length,) = _LENGTH.unpack_from(self._bytes, head)
        least = 4 if self.started else 8
        if not least <= length <= self.limit:
            raise broken(f"its length is {length}, and it may be {least} to {self.limit}")
        if len(self._bytes) < head + length:
            return None
        body = bytes(memoryview(self._bytes)[head + 4 : head + length])
        self._at = head + length
        if self._at == len(self._bytes) or self._at > COMPACT:
            del self._bytes[: self._at]
            self._at = 0
        return kind, body

    @staticmethod
    def _check_kind(kind: int) -> None:
        if kind not in KINDS:
            raise broken(f"none begins with the byte {kind}")


class Body:
    """The fields of a message, read from front to back.  Raises DS626 where they end too early."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def raw(self, count: int) -> bytes:
        """So many bytes."""
        found = self._data[self._at : self._at + count]
        if count < 0 or len(found) < count:
            raise broken("it ends inside of a field")
        self._at += count
        return found

    def byte(self) -> int:
        return self.raw(1)[0]

    def short(self) -> int:
        """A count: uint16."""
        found: int = _SHORT.unpack(self.raw(2))[0]
        return found

    def shorts(self) -> list[int]:
        """uint16s behind their count."""
        return [self.short() for _ in range(self.short())]

    def long(self) -> int:
        found: int = _LONG.unpack(self.raw(4))[0]
        return found

    def unsigned(self) -> int:
        """uint32: an OID, a key."""
        found: int = _LENGTH.unpack(self.raw(4))[0]
        return found

    def text(self) -> str:
        """Up to a zero byte."""
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise broken("a text in it has no end")
        found, self._at = self._data[self._at : end], end + 1
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise broken("a text in it is not UTF-8") from None

    def value(self) -> bytes | None:
        """Bytes behind their length; None where that is -1."""
        length = self.long()
        if length < -1:
            raise broken("a value in it has a negative length")
        return None if length < 0 else self.raw(length)

    def over(self) -> None:
        """Nothing may follow."""
        if self._at != len(self._data):
            raise broken(f"{len(self._data) - self._at} bytes follow its last field")


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + _LENGTH.pack(4 + len(body)) + body


def text(value: str) -> bytes:
    """With its zero byte; no zero is inside."""
    return value.replace("\0", "").encode("utf-8", "replace") + b"\0"


def authentication(code: int) -> bytes:
    """0: the peer is in; 3: it is to send its password."""
    return message(b"R", _LENGTH.pack(code))


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", text(name) + text(value))


def key_data(number: int, secret: int) -> bytes:
    return message(b"K", struct.pack(">II", number, secret))


def ready(status: str) -> bytes:
    """I: idle, T: in a transaction, E: in one that has failed."""
    return message(b"Z", status.encode())


def complete(tag: str) -> bytes:
    return message(b"C", text(tag))


def negotiate(minor: int, unknown: Sequence[str]) -> bytes:
    """A newer minor version, or options of the protocol, were asked for: these are not known."""
    head = struct.pack(">II", minor, len(unknown))
    return message(b"v", head + b"".join(map(text, unknown)))


@dataclass(frozen=True, slots=True)
class Shown:
    """A column as RowDescription has it."""

    name: str
    oid: int
    size: int
    modifier: int = -1


def row_description(columns: Sequence[Shown], formats: Sequence[int]) -> bytes:
    """`formats`: 0 text, 1 binary, one for each column."""
    parts = [_SHORT.pack(len(columns))]
    for column, form in zip(columns, formats, strict=True):
        rest = struct.pack(">IhIhih", 0, 0, column.oid, column.size, column.modifier, form)
        parts.append(text(column.name) + rest)
    return message(b"T", b"".join(parts))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", _SHORT.pack(len(oids)) + b"".join(map(_LENGTH.pack, oids)))


def fields(kind: bytes, named: Iterable[tuple[str, str]]) -> bytes:
    """ErrorResponse (E) or NoticeResponse (N)."""
    parts = [mark.encode() + text(value) for mark, value in named]
    return message(kind, b"".join(parts) + b"\0")


PARSED, BOUND, CLOSED = message(b"1"), message(b"2"), message(b"3")
NO_DATA, SUSPENDED, EMPTY = message(b"n"), message(b"s"), message(b"I")
