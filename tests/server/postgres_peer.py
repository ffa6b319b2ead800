"""A client of PostgreSQL's protocol by hand: messages as a test wants them, and all that comes
back."""

from __future__ import annotations

import socket
import ssl
import struct
from typing import Any

from tests.waiting import WAIT

SSL_REQUEST = struct.pack(">II", 8, 80877103)
GSS_REQUEST = struct.pack(">II", 8, 80877104)
ENDS = b"Z"


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack(">I", 4 + len(body)) + body


def startup(version: int = 3 << 16, **options: str) -> bytes:
    """The first message of a connection."""
    pairs = b"".join(f"{k}\0{v}\0".encode() for k, v in options.items())
    body = struct.pack(">I", version) + pairs + b"\0"
    return struct.pack(">I", 4 + len(body)) + body


def parse(name: str, sql: str, *oids: int) -> bytes:
    head = f"{name}\0{sql}\0".encode() + struct.pack(">H", len(oids))
    return message(b"P", head + b"".join(struct.pack(">I", oid) for oid in oids))


def bind(
    portal: str = "", name: str = "", values: tuple[bytes | None, ...] = (), forms=(), formats=()
) -> bytes:
    body = f"{portal}\0{name}\0".encode() + struct.pack(f">H{len(forms)}H", len(forms), *forms)
    body += struct.pack(">H", len(values))
    for value in values:
        body += struct.pack(">i", -1 if value is None else len(value)) + (value or b"")
    return message(b"B", body + struct.pack(f">H{len(formats)}H", len(formats), *formats))


def describe(kind: str, name: str = "") -> bytes:
    return message(b"D", f"{kind}{name}\0".encode())


def execute(portal: str = "", most: int = 0) -> bytes:
    return message(b"E", f"{portal}\0".encode() + struct.pack(">i", most))


def close(kind: str, name: str = "") -> bytes:
    return message(b"C", f"{kind}{name}\0".encode())


SYNC, FLUSH, TERMINATE = message(b"S"), message(b"H"), message(b"X")


def query(sql: str) -> bytes:
    return message(b"Q", sql.encode() + b"\0")


def fields(body: bytes) -> dict[str, str]:
    """Of an ErrorResponse or NoticeResponse."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def row(body: bytes) -> tuple[bytes | None, ...]:
    """The values of a DataRow."""
    (count,), at, found = struct.unpack(">H", body[:2]), 2, []
    for _ in range(count):
        (length,) = struct.unpack(">i", body[at : at + 4])
        at += 4
        found.append(None if length < 0 else body[at : at + length])
        at += max(0, length)
    assert at == len(body)
    return tuple(found)


class Wire:
    """A connection.  `user` None: it says nothing by itself."""

    def __init__(self, port: int, user: str | None = "me", **options: str) -> None:
        self.socket: Any = socket.create_connection(("127.0.0.1", port), WAIT)
        self._bytes = b""
        self.key: tuple[int, int] = (0, 0)
        self.told: dict[str, str] = {}
        self.notices: list[str] = []
        if user is not None:
            self.raw(startup(user=user, **options))

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def secure(self) -> None:
        """Go on under TLS."""
        self.raw(SSL_REQUEST)
        assert self._take(1) == b"S"
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.socket = context.wrap_socket(self.socket)

    def read(self) -> tuple[bytes, bytes]:
        """(letter, body) of the next message."""
        kind = self._take(1)
        (length,) = struct.unpack(">I", self._take(4))
        return kind, self._take(length - 4)

    def until(self, *ends: bytes) -> list[tuple[bytes, bytes]]:
        """Messages up to one of these letters, without what tells of settings."""
        found = []
        while True:
            kind, body = self.read()
            if kind == b"S":
                name, value, _ = body.split(b"\0")
                self.told[name.decode()] = value.decode()
            elif kind == b"N":
                self.notices.append(fields(body)["M"])
            elif kind == b"K":
                self.key = struct.unpack(">II", body)
            else:
                found.append((kind, body))
            if kind in ends:
                return found

    def ready(self) -> list[tuple[bytes, bytes]]:
        return self.until(b"Z")

    def begin(self) -> Wire:
        """Wait until it is in."""
        assert self.ready()[-1] == (b"Z", b"I")
        return self

    def ask(self, *messages: bytes) -> list[tuple[bytes, bytes]]:
        """Send, and read until the server is ready."""
        self.raw(b"".join(messages))
        return self.ready()

    def rows(self, sql: str) -> list[tuple[bytes | None, ...]]:
        """Of a simple query."""
        found = self.ask(query(sql))
        errors = [fields(body) for kind, body in found if kind == b"E"]
        assert not errors, errors
        return [row(body) for kind, body in found if kind == b"D"]

    def error(self, *messages: bytes) -> dict[str, str]:
        """What is wrong with what was sent."""
        found = [fields(body) for kind, body in self.ask(*messages) if kind == b"E"]
        assert len(found) == 1, found
        return found[0]

    def fatal(self) -> dict[str, str]:
        """What the server says before it closes."""
        found = self.until(b"E")[-1]
        assert self.rest() == b""
        return fields(found[1])

    def rest(self) -> bytes:
        """All bytes until the server closes."""
        data, self._bytes = self._bytes, b""
        try:
            while piece := self.socket.recv(65536):
                data += piece
        except ConnectionResetError:
            pass
        return data

    def _take(self, count: int) -> bytes:
        while len(self._bytes) < count:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise EOFError("the server closed the connection")
            self._bytes += piece
        out, self._bytes = self._bytes[:count], self._bytes[count:]
        return out
