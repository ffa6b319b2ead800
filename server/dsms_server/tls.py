"""The port of a server that speaks TLS; peers that don't get an answer that says so.

A connection's first byte is looked at before it is taken from the socket: with 22 a TLS handshake
begins; a peer that begins otherwise gets a session that answers nothing but that, in the peer's own
protocol."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any

from dsms.errors import UsageError
from dsms_server.accepting import Listener
from dsms_server.config import Config
from dsms_server.descriptors import NONE_LEFT
from dsms_server.parties import Host
from dsms_server.strangers import Strangers, address_of

log = logging.getLogger("dsms.server")
HANDSHAKE = b"\x16"
GOODBYE = 1.0  # seconds that a peer has to end the encryption, once we have


def context_of(config: Config) -> ssl.SSLContext:
    """From the certificate and key of the configuration.  Raises DS640."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.tls_cert or "", config.tls_key)
    except (OSError, ssl.SSLError) as problem:
        raise UsageError(
            "DS640", f"cannot use the certificate {config.tls_cert}: {problem}"
        ) from None
    if config.tls_client_ca is not None:
        try:
            context.load_verify_locations(config.tls_client_ca)
        except (OSError, ssl.SSLError) as problem:
            raise UsageError("DS640", f"cannot use {config.tls_client_ca}: {problem}") from None
        context.verify_mode = ssl.CERT_OPTIONAL  # who has none shows a token or a password
    return context


class Door:
    """Listens on `sockets`; `make(stranger)` gives the protocol object of a connection.

    A peer has `handshake_seconds` for its first byte and the handshake, whatever trickles in, and
    there are at most `max_strangers` of them: a handshake costs a lot of memory."""

    def __init__(
        self,
        make: Callable[[bool], asyncio.BaseProtocol],
        server: Host,
        context: ssl.SSLContext,
        sockets: list[socket.socket],
    ) -> None:
        self._make = make
        self._server = server
        self._patience = server.config.handshake_seconds
        self._crowd: Strangers[socket.socket] = Strangers(server.config.max_strangers)
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._waiting: set[socket.socket] = set()  # for the first byte
        self._deadlines: dict[socket.socket, asyncio.TimerHandle] = {}
        self._coming: dict[socket.socket, asyncio.Task[None]] = {}
        self._listener = Listener(
            server.loop, sockets, self._take, server.metrics.accept_failures.inc
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._listener.port

    def close(self) -> None:
        """Accept nothing more; a peer that has not been let in by now stays out."""
        self._listener.close()
        for peer in list(self._waiting):
            self._drop(peer)
        for task in self._coming.values():
            task.cancel()

    def _take(self, peer: socket.socket, address: Any) -> None:
        if not self._server.room.left_by(peer.fileno()):
            self._server.metrics.let_go.labels("descriptors").inc()
            log.warning(NONE_LEFT)
            peer.close()
            return
        self._waiting.add(peer)
        self._deadlines[peer] = self._server.later(self._patience, self._too_late, peer)
        self._loop.add_reader(peer, self._look, peer)
        self._make_room(self._crowd.enter(peer, address_of(address)))

    def _make_room(self, peer: socket.socket | None) -> None:
        """Close the connection that has to leave."""
        if peer is None:
            return
        self._server.metrics.let_go.labels("crowded").inc()
        self._turn_away(peer)

    def _turn_away(self, peer: socket.socket) -> None:
        if peer in self._waiting:
            self._drop(peer)
        else:
            self._coming[peer].cancel()

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
        self._waiting.discard(peer)
        task = self._coming[peer] = self._loop.create_task(self._let_in(peer, first == HANDSHAKE))
        task.add_done_callback(lambda task: self._is_in(peer))

    def _is_in(self, peer: socket.socket) -> None:
        """Its session counts it from here on, or it is gone."""
        del self._coming[peer]
        self._deadlines.pop(peer).cancel()
        self._crowd.leave(peer)

    def _too_late(self, peer: socket.socket) -> None:
        self._server.metrics.let_go.labels("quiet").inc()
        self._turn_away(peer)

    def _drop(self, peer: socket.socket) -> None:
        self._crowd.leave(peer)
        self._waiting.discard(peer)
        self._deadlines.pop(peer).cancel()
        self._loop.remove_reader(peer)
        peer.close()

    async def _let_in(self, peer: socket.socket, secure: bool) -> None:
        how: dict[str, Any] = {}
        if secure:
            how = {
                "ssl": self._context,
                "ssl_handshake_timeout": self._patience,
                "ssl_shutdown_timeout": GOODBYE,
            }
        with contextlib.suppress(OSError):  # a handshake that fails, or a peer that is gone
            await self._loop.connect_accepted_socket(lambda: self._make(not secure), peer, **how)
