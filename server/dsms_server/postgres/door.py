"""The port itself: who comes is asked for the first eight bytes, which may ask for TLS.

These are read from the socket and nothing behind them, so bytes that were sent before the TLS
handshake can't be taken for what comes under it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any

from dsms_server.parties import Host
from dsms_server.postgres.codec import GSS_REQUEST, SSL_REQUEST
from dsms_server.tls import Door

FIRST = 8  # bytes of a request for encryption; no first message is shorter
ASKED = 4  # times that a peer may ask for encryption


class PostgresDoor(Door):
    """Listens on `sockets`; `make(first, secure)` gives the protocol object of a connection that
    has sent these bytes, under TLS or not.  `context` None: there is no TLS."""

    def __init__(
        self,
        make: Callable[[bytes, bool], asyncio.BaseProtocol],
        server: Host,
        context: ssl.SSLContext | None,
        sockets: list[socket.socket],
    ) -> None:
        # the listener of the base calls nothing before the loop's next turn
        self._begin, self._tls = make, context
        self._heard: dict[socket.socket, bytearray] = {}
        self._times: dict[socket.socket, int] = {}
        super().__init__(
            lambda stranger: make(b"", True), server, context or _no_context(), sockets
        )

    def _look(self, peer: socket.socket) -> None:
        heard = self._heard.setdefault(peer, bytearray())
        try:
            came = peer.recv(FIRST - len(heard))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            came = b""
        if not came:
            self._drop(peer)
            return
        heard += came
        if len(heard) == FIRST:
            self._answer(peer, bytes(heard))

    def _answer(self, peer: socket.socket, first: bytes) -> None:
        length, code = struct.unpack(">II", first)
        self._heard[peer].clear()
        asks = length == FIRST and code in (SSL_REQUEST, GSS_REQUEST)
        if not asks:
            self._admit(peer, self._take_plain(peer, first))
            return
        self._times[peer] = self._times.get(peer, 0) + 1
        secure = code == SSL_REQUEST and self._tls is not None
        try:
            peer.send(b"S" if secure else b"N")
        except OSError:
            self._drop(peer)
            return
        if secure:
            self._admit(peer, self._let_in(peer, True))
        elif self._times[peer] >= ASKED:
            self._drop(peer)

    def _admit(self, peer: socket.socket, coming: Any) -> None:
        self._loop.remove_reader(peer)
        self._waiting.discard(peer)
        self._forget(peer)
        task = self._coming[peer] = self._loop.create_task(coming)
        task.add_done_callback(lambda task: self._is_in(peer))

    async def _take_plain(self, peer: socket.socket, first: bytes) -> None:
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(lambda: self._begin(first, False), peer)

    def _drop(self, peer: socket.socket) -> None:
        self._forget(peer)
        super()._drop(peer)

    def _forget(self, peer: socket.socket) -> None:
        self._heard.pop(peer, None)
        self._times.pop(peer, None)


def _no_context() -> ssl.SSLContext:
    """One that nobody uses: without a certificate no handshake begins."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
