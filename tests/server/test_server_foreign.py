"""Peers that speak another protocol, on a plain port and on one for TLS: a sentence each, in their
own."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import subprocess

import pytest

from dsms.errors import UsageError
from dsms_client.protocol import pack
from dsms_client.sync import connect

SSL_REQUEST = bytes.fromhex("00000008 04d2162f")
GSS_REQUEST = bytes.fromhex("00000008 04d21630")
STARTUP = struct.pack(">II", 17, 3 << 16) + b"user\0me\0\0"
CANCEL = struct.pack(">IIII", 16, 80877102, 1, 2)
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01"
TELL = "use `dsms shell` or a dsms client"
PLAIN = "this port speaks the dsms protocol"


@pytest.fixture(params=["plain", "tls"])
def port(request, serve):
    """A server, and what its sentences end with."""
    if request.param == "plain":
        return serve(http_port=0), ""
    cert, key = request.getfixturevalue("certificate")
    return serve(http_port=0, tls_cert=cert, tls_key=key), ", and only over TLS"


def reply(running, *pieces):
    """All that comes back; each piece is sent when the answer to the one before has come."""
    with running.peer() as peer:
        for number, piece in enumerate(pieces):
            if number:
                assert peer._take(1) == b"N"
            peer.raw(piece)
        return peer.rest()


def fields_of(answer):
    """The fields of PostgreSQL's ErrorResponse."""
    assert answer[:1] == b"E" and struct.unpack(">I", answer[1:5])[0] == len(answer) - 1
    assert answer.endswith(b"\0\0")
    return {part[:1].decode(): part[1:].decode() for part in answer[5:-2].split(b"\0")}


@pytest.mark.parametrize("asked", [(), (SSL_REQUEST,), (GSS_REQUEST, SSL_REQUEST)])
def test_postgresql(port, asked):
    running, end = port
    fields = fields_of(reply(running, *asked, STARTUP))
    assert (
        fields["S"] == "FATAL"
        and fields["M"] == f"{PLAIN}, not PostgreSQL{end}"
        and fields["H"] == TELL
    )
    assert reply(running, CANCEL)


def test_postgresql_a_byte_at_a_time(serve):
    running = serve()
    with running.peer() as peer:
        for place in range(len(STARTUP)):
            peer.raw(STARTUP[place : place + 1])
        assert fields_of(peer.rest())["C"] == "08P01"


@pytest.mark.parametrize(
    "first", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /x HTTP/1.1\r\n\r\n", b"PATCH /"]
)
def test_http(port, first):
    running, end = port
    answer = reply(running, first).decode()
    assert answer.startswith("HTTP/1.1 400 Bad Request\r\n")
    where = f"; metrics are on port {running.server.http_port}, at /metrics\n"
    assert answer.endswith(f"\r\n\r\n{PLAIN}, not HTTP{end}{where}")


@pytest.mark.parametrize(
    ("first", "answer"),
    [
        (b"*1\r\n$4\r\nPING\r\n", f"-ERR {PLAIN}, not Redis{{end}}: {TELL}\r\n"),
        (b"help\r\n", f"{PLAIN}{{end}}: {TELL}\r\n"),
        (b"SELECT 1;\n", f"{PLAIN}{{end}}: {TELL}\r\n"),
        (
            b"\x3a\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00",
            f"{PLAIN}, not another one{{end}}: {TELL}\r\n",
        ),  # MongoDB's
        (b"SSH-2.0-OpenSSH_9.6\r\n", f"{PLAIN}, not SSH{{end}}: {TELL}\r\n"),
    ],
)
def test_text(port, first, answer):
    running, end = port
    assert reply(running, first).decode() == answer.format(end=end)


def test_tls_on_a_plain_port(serve):
    running = serve()
    assert reply(running, HELLO) == b"\x15\x03\x01\x00\x02\x02\x28"
    with pytest.raises(UsageError, match=r"DS607.*not in TLS.*\nHINT: connect without TLS"):
        connect("127.0.0.1", running.port, tls=True)
    with (
        socket.create_connection(("127.0.0.1", running.port)) as plain,
        pytest.raises(ssl.SSLError, match=r"(?i)alert"),
    ):
        ssl.create_default_context().wrap_socket(plain, server_hostname="x")


def test_frames_on_a_port_for_tls(serve, certificate):
    cert, key = certificate
    running = serve(tls_cert=cert, tls_key=key, token="secret")
    with running.peer() as peer:
        peer.raw(pack({"op": "ping", "id": 1}))
        assert peer.read()["error"]["message"] == "this port speaks TLS"
        assert peer.rest() == b""
    with pytest.raises(UsageError, match=r"DS607: this port speaks TLS\nHINT: connect with TLS"):
        connect("127.0.0.1", running.port)
    trusting = ssl.create_default_context(cafile=cert)
    with connect("127.0.0.1", running.port, tls=trusting, token="secret") as db:
        db.ping()


def test_peers_of_a_port_for_tls_that_never_begin(serve, certificate):
    cert, key = certificate
    running = serve(tls_cert=cert, tls_key=key, handshake_seconds=0.05)
    with running.peer() as silent:
        assert silent.rest() == b""
    with running.peer() as begun:
        begun.raw(HELLO[:3])
        assert begun.rest() == b""
    with running.peer() as gone:
        gone.raw(HELLO)
    with connect("127.0.0.1", running.port, tls=ssl.create_default_context(cafile=cert)) as db:
        db.ping()


def test_a_peer_that_waits_for_mysqls_greeting(serve):
    running = serve(quiet_seconds=0.05)
    with running.peer() as peer:
        answer = peer.rest()
    assert answer[:5] == struct.pack("<I", len(answer) - 4) + b"\xff"
    assert answer[7:].decode().startswith(PLAIN)


def test_a_peer_that_has_spoken_may_be_silent(serve):
    running = serve(quiet_seconds=2.0)  # in which it must have spoken
    with running.peer() as peer, running.peer() as other:
        peer.ask("ping")
        assert other.rest()  # that one's time is over
        assert peer.ask("ping")["ok"]


@pytest.mark.skipif(shutil.which("psql") is None, reason="needs psql")
def test_psql_itself(port):
    running, end = port
    where = f"host=127.0.0.1 port={running.port} user=me connect_timeout=600"
    ran = subprocess.run(["psql", where, "-c", "SELECT 1"], capture_output=True, text=True)
    assert ran.returncode == 2
    assert f"FATAL:  {PLAIN}, not PostgreSQL{end}\nHINT:  {TELL}" in ran.stderr
