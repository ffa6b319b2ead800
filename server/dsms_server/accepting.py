"""Ports that stay open: connections are accepted as they come, and where the process has no room
for another socket they wait until it has.

(An event loop's own listener is not used for that: uvloop's closes itself for good when `accept`
fails once.)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dsms_server.parties import Host

log = logging.getLogger("dsms.server")
BACKLOG = 512  # connections that the system keeps until they are accepted
AT_ONCE = 64  # connections accepted before others get their turn
# seconds until the next try to accept, where the process has no room for another socket
PAUSE = 0.1
Take = Callable[[socket.socket, Any], None]


@dataclass(frozen=True, slots=True)
class Bound:
    """Sockets that listen already, of the server's port, its HTTP port and that for PostgreSQL's
    clients; none: they are still to be opened."""

    port: list[socket.socket] = field(default_factory=list)
    http: list[socket.socket] = field(default_factory=list)
    postgres: list[socket.socket] = field(default_factory=list)

    def close(self) -> None:
        """Nobody listens any more."""
        for listener in self.port + self.http + self.postgres:
            listener.close()


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on all addresses of `host`.  Raises OSError."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys(
            (family, address) for family, _, _, _, address in found
        ):
            listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
            listener.setblocking(False)
            sockets.append(listener)
    except OSError:
        Bound(sockets).close()
        raise
    return sockets


class Listener:
    """Gives each connection that comes to one of `sockets`, with its address, to `take`; `failed`
    counts those that could not be accepted."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sockets: list[socket.socket],
        take: Take,
        failed: Callable[[], object] = lambda: None,
    ) -> None:
        self._loop, self._sockets, self._take, self._failed = loop, sockets, take, failed
        self._over = False
        for listener in sockets:
            loop.add_reader(listener, self._accept, listener)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._sockets[0].getsockname()[1]
        return port

    def leave(self) -> None:
        """Accept nothing more: who comes from now on waits for another one that listens on these
        sockets."""
        self._over = True
        for listener in self._sockets:
            self._loop.remove_reader(listener)

    def close(self) -> None:
        """Accept nothing more, and let nobody wait."""
        self.leave()
        Bound(self._sockets).close()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                peer, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:
                self._pause(listener, problem)
                return
            peer.setblocking(False)
            self._take(peer, address)

    def _pause(self, listener: socket.socket, problem: OSError) -> None:
        log.warning(
            "connections have to wait, none can be accepted: %s", problem.strerror or problem
        )
        self._failed()
        self._loop.remove_reader(listener)
        self._loop.call_later(PAUSE, self._again, listener)

    def _again(self, listener: socket.socket) -> None:
        if not self._over:
            self._loop.add_reader(listener, self._accept, listener)


class Plain:
    """A port without TLS: `make` gives the protocol object of a connection."""

    def __init__(
        self, server: Host, make: Callable[[], asyncio.BaseProtocol], sockets: list[socket.socket]
    ) -> None:
        self._loop, self._make = server.loop, make
        self._coming: set[asyncio.Task[None]] = set()
        self._door = asyncio.Lock()
        self.listener = Listener(
            server.loop, sockets, self._take, server.metrics.accept_failures.inc
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.listener.port

    def close(self) -> None:
        """Accept nothing more; who has not been let in by now stays out."""
        self.listener.close()
        for task in self._coming:
            task.cancel()

    def _take(self, peer: socket.socket, address: Any) -> None:
        task = self._loop.create_task(self._let_in(peer))
        self._coming.add(task)
        task.add_done_callback(self._coming.discard)

    async def _let_in(self, peer: socket.socket) -> None:
        """One after the other: who counts them has seen the last one when the next one comes."""
        async with self._door:
            with contextlib.suppress(OSError):  # a peer that is gone
                await self._loop.connect_accepted_socket(self._make, peer)
