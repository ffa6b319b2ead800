"""Peers that speak another protocol get an answer in their own, one sentence, where that protocol
has room for one."""

from __future__ import annotations

import struct

from dsms.errors import UsageError
from dsms_client.frames import Foreign
from dsms_client.protocol import pack

SHELL = "use `dsms shell` or a dsms client"
_ALERT = bytes((0x15, 3, 1, 0, 2, 2, 40))  # TLS record: alert, fatal, handshake failure
_PROTOCOL_VIOLATION = "08P01"  # of PostgreSQL's SQLSTATEs
_MYSQL_ERROR = 1158  # ER_NET_READ_ERROR


def answer(
    problem: Foreign,
    http_port: int | None,
    tls: bool = False,
    postgres_port: int | None = None,
) -> bytes:
    """What the peer that sent such first bytes is to read; `tls`: it should have begun with a TLS
    handshake; the ports are those that are open for others."""
    sentence = problem.message
    if tls:
        sentence += ", and only over TLS"
    if problem.speaks.startswith("HTTP"):
        where = f"; metrics are on port {http_port}, at /metrics" if http_port else ""
        return _http(sentence + where)
    match problem.speaks:
        case "PostgreSQL":
            where = f"; PostgreSQL's clients are on port {postgres_port}" if postgres_port else ""
            return _postgres(sentence + where)
        case "TLS":
            return _ALERT
        case "Redis":
            return f"-ERR {sentence}: {SHELL}\r\n".encode()
        case "dsms":
            return pack({"id": None, "error": _with_tls().fields()})
        case _:
            return f"{sentence}: {SHELL}\r\n".encode()


def silence(seconds: float) -> bytes:
    """For a peer that says nothing, as one does that waits for MySQL's greeting: an error in its
    form."""
    why = f"where the client begins, and nothing came in {seconds:.0f} s"
    sentence = f"this port speaks the dsms protocol, {why}: {SHELL}"
    text = b"\xff" + struct.pack("<H", _MYSQL_ERROR) + sentence.encode()
    return struct.pack("<I", len(text)) + text  # the fourth byte counts packets, from 0


def _http(sentence: str) -> bytes:
    body = f"{sentence}\n".encode()
    head = (
        f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    )
    return head.encode() + b"Connection: close\r\n\r\n" + body


def _postgres(sentence: str) -> bytes:
    """An ErrorResponse: severity (twice), code, message, hint."""
    fields = {"S": "FATAL", "V": "FATAL", "C": _PROTOCOL_VIOLATION, "M": sentence, "H": SHELL}
    body = b"".join(f"{mark}{text}\0".encode() for mark, text in fields.items()) + b"\0"
    return b"E" + struct.pack(">I", 4 + len(body)) + body


def _with_tls() -> UsageError:
    return UsageError(
        "DS607", "this port speaks TLS", hint="connect with TLS: tls=True, or --tls of the shell"
    )
