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
from typing import Any

from dsms_server.parties import Host

log = logging.getLogger("dsms.server")
AT_ONCE = 64  # connections accepted before others get their turn
# seconds until the next try to accept, where the process has no room for another socket
PAUSE = 0.1
Take = Callable[[socket.socket, Any], None]


class Listener:
    """Listens on a host and a port, and gives each connection, with its address, to `take`."""

    def __init__(self, server: Host, take: Take, backlog: int) -> None:
        self.sockets: list[socket.socket] = []
        self._server = server
        self._take = take
        self._backlog = backlog

    async def open(self, host: str, port: int) -> None:
        """Raises OSError."""
        loop = self._server.loop
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, address in dict.fromkeys(
                (family, address) for family, _, _, _, address in found
            ):
                listener = socket.create_server(address[:2], family=family, backlog=self._backlog)
                listener.setblocking(False)
                self.sockets.append(listener)
        except OSError:
            self.close()
            raise
        for listener in self.sockets:
            loop.add_reader(listener, self._accept, listener)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        """Accept nothing more."""
        for listener in self.sockets:
            self._server.loop.remove_reader(listener)
            listener.close()

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
        self._server.metrics.accept_failures.inc()
        self._server.loop.remove_reader(listener)
        self._server.loop.call_later(PAUSE, self._again, listener)

    def _again(self, listener: socket.socket) -> None:
        if listener.fileno() >= 0:
            self._server.loop.add_reader(listener, self._accept, listener)


class Plain:
    """A port without TLS: `make` gives the protocol object of a connection."""

    def __init__(
        self, server: Host, make: Callable[[], asyncio.BaseProtocol], backlog: int
    ) -> None:
        self.listener = Listener(server, self._take, backlog)
        self._loop, self._make = server.loop, make
        self._coming: set[asyncio.Task[None]] = set()
        self._door = asyncio.Lock()

    async def open(self, host: str, port: int) -> None:
        """Raises OSError."""
        await self.listener.open(host, port)

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
