"""The port of a server that speaks TLS, where peers that don't are told so.

A connection's first byte is looked at before it is taken from the socket: with 22 a TLS handshake
begins; a peer that begins otherwise gets a session that answers nothing but that, in the peer's own
protocol."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any

from dsms.errors import UsageError
from dsms_server.config import Config
from dsms_server.parties import Host
from dsms_server.strangers import Strangers, address_of

HANDSHAKE = b"\x16"
AT_ONCE = 64  # connections accepted before others get their turn
GOODBYE = 1.0  # seconds that a peer has to end the encryption, once we have
PAUSE = 0.1  # seconds until the next try to accept, where the process has no room for another socket


def context_of(config: Config) -> ssl.SSLContext:
    """From the certificate and key of the configuration.  Raises DS640."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.tls_cert or "", config.tls_key)
    except (OSError, ssl.SSLError) as problem:
        raise UsageError("DS640", f"cannot use the certificate {config.tls_cert}: {problem}") from None
    return context


class Door:
    """Listens on `host` and `port`; `make(stranger)` gives the protocol object of a connection.

    A peer has `handshake_seconds` for its first byte and as many for the handshake, and there are at most
    `max_strangers` of them: a handshake costs a lot of memory."""

    def __init__(
        self, make: Callable[[bool], asyncio.BaseProtocol], server: Host, context: ssl.SSLContext, backlog: int
    ) -> None:
        self.sockets: list[socket.socket] = []
        self._make = make
        self._server = server
        self._patience = server.config.handshake_seconds
        self._crowd: Strangers[socket.socket] = Strangers(server.config.max_strangers)
        self._context = context
        self._backlog = backlog
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[socket.socket, asyncio.TimerHandle] = {}  # for the first byte
        self._coming: dict[socket.socket, asyncio.Task[None]] = {}

    async def open(self, host: str, port: int) -> None:
        """Raises OSError."""
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
                listener = socket.create_server(address[:2], family=family, backlog=self._backlog)
                listener.setblocking(False)
                self.sockets.append(listener)
        except OSError:
            self.close()
            raise
        for listener in self.sockets:
            self._loop.add_reader(listener, self._accept, listener)

    def close(self) -> None:
        """Accept nothing more; who has not been let in by now stays out."""
        for listener in self.sockets:
            self._loop.remove_reader(listener)
            listener.close()
        for peer in list(self._waiting):
            self._drop(peer)
        for task in self._coming.values():
            task.cancel()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                peer, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._loop.remove_reader(listener)
                self._loop.call_later(PAUSE, self._again, listener)
                return
            if not self._server.room.left_by(peer.fileno()):
                self._server.metrics.let_go.labels("descriptors").inc()
                peer.close()
                continue
            peer.setblocking(False)
            self._waiting[peer] = self._server.later(self._patience, self._too_late, peer)
            self._loop.add_reader(peer, self._look, peer)
            self._make_room(self._crowd.enter(peer, address_of(address)))

    def _make_room(self, peer: socket.socket | None) -> None:
        """Let go who has to leave."""
        if peer is None:
            return
        self._server.metrics.let_go.labels("crowded").inc()
        if peer in self._waiting:
            self._drop(peer)
        else:
            self._coming[peer].cancel()

    def _again(self, listener: socket.socket) -> None:
        if listener.fileno() >= 0:
            self._loop.add_reader(listener, self._accept, listener)

    def _look(self, peer: socket.socket) -> None:
        try:
            first = peer.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            first = b""
        if not first:
            self._drop(peer)
            return
        self._loop.remove_reader(peer)
        self._waiting.pop(peer).cancel()
        task = self._coming[peer] = self._loop.create_task(self._let_in(peer, first == HANDSHAKE))
        task.add_done_callback(lambda task: self._is_in(peer))

    def _is_in(self, peer: socket.socket) -> None:
        """Its session counts it from here on, or it is gone."""
        del self._coming[peer]
        self._crowd.leave(peer)

    def _too_late(self, peer: socket.socket) -> None:
        self._server.metrics.let_go.labels("quiet").inc()
        self._drop(peer)

    def _drop(self, peer: socket.socket) -> None:
        self._crowd.leave(peer)
        self._waiting.pop(peer).cancel()
        self._loop.remove_reader(peer)
        peer.close()

    async def _let_in(self, peer: socket.socket, secure: bool) -> None:
        how: dict[str, Any] = {}
        if secure:
            how = {"ssl": self._context, "ssl_handshake_timeout": self._patience, "ssl_shutdown_timeout": GOODBYE}
        with contextlib.suppress(OSError):  # a handshake that fails, or a peer that is gone
            await self._loop.connect_accepted_socket(lambda: self._make(not secure), peer, **how)
