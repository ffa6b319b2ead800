"""While the engine comes back from its data folder: the ports are open, and say so.

Requests are answered with DS647 (clients go on trying), ``/readyz`` with 503 and how far the
recovery is, ``/healthz`` with 200, since the server must not be restarted now.  All this runs in a
thread of its own, and ends before the server listens.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from dsms.errors import DsmsError, UsageError
from dsms_client.frames import FrameBuffer
from dsms_client.protocol import pack, unpack
from dsms_server.config import Config
from dsms_server.tls import context_of

HELLO = 64 << 10  # bytes of a request that is answered
SECONDS = 10.0  # in which it must come
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class WaitingRoom:
    """Listens from `open` to `close`.  `records`: of the journal, applied so far."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.records = 0
        self.ports: list[int] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="dsms-recovering", daemon=True
        )
        self._servers: list[asyncio.Server] = []
        self._guests: set[asyncio.StreamWriter] = set()

    def see(self, records: int) -> None:
        """So many records have been applied."""
        self.records = records

    def open(self) -> None:
        """Listen; a port that is taken, or that will be any free one, stays closed until the server
        says what is wrong with it."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()

    def close(self) -> None:
        """Leave the ports to the server."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self) -> None:
        config = self.config
        await self._listen(
            config.port, self._refuse, context_of(config) if config.tls_cert is not None else None
        )
        if config.http_port is not None:
            await self._listen(config.http_port, self._page, None)

    async def _listen(self, port: int, handler: Handler, tls: Any) -> None:
        if not port:
            return
        try:
            server = await asyncio.start_server(
                self._guest(handler), self.config.host, port, ssl=tls, limit=HELLO
            )
        except OSError:
            return
        self._servers.append(server)
        self.ports.append(port)

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for writer in list(self._guests):
            writer.transport.abort()
        while self._guests:
            await asyncio.sleep(0)

    def _guest(
        self, handler: Handler
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._guests.add(writer)
            try:
                await asyncio.wait_for(handler(reader, writer), SECONDS)
                writer.close()
            except (
                OSError,
                TimeoutError,
                DsmsError,
                asyncio.IncompleteReadError,
                asyncio.LimitOverrunError,
            ):
                writer.transport.abort()
            finally:
                self._guests.discard(writer)

        return handle

    async def _refuse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the first request."""
        buffer, bodies = FrameBuffer(HELLO), list[Any]()
        while not bodies and (data := await reader.read(HELLO)):
            while data:
                space = buffer.space()
                taken = min(len(space), len(data))
                space[:taken] = data[:taken]
                buffer.filled(taken)
                bodies += map(bytes, buffer.frames())
                data = data[taken:]
        if not bodies:
            return
        problem = UsageError(
            "DS647", f"the server is coming back: {self.text}", hint="try again in a moment"
        )
        writer.write(pack({"id": unpack(bodies[0]).get("id"), "error": problem.fields()}))
        await writer.drain()

    async def _page(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n")
        status = "200 OK" if head.startswith(b"GET /healthz ") else "503 Service Unavailable"
        body = f"recovering: {self.text}\n".encode()
        lines = [
            f"HTTP/1.1 {status}",
            "Content-Type: text/plain",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()

    @property
    def text(self) -> str:
        """How far it is."""
        return f"{self.records} records of the journal applied"
