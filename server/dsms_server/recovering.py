"""While the engine comes back from its data folder: the ports are open, and say so.

Requests are answered with DS647 (clients go on trying), ``/readyz`` with 503 and how far the
recovery is, ``/healthz`` with 200, since the server must not be restarted now.  All this runs in a
thread of its own.  The server gets the sockets that listen, which are never closed; whoever comes
in between waits until it accepts.  Who is here by then is answered, reads it, and goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from dsms.errors import DsmsError, UsageError
from dsms_client.frames import FrameBuffer
from dsms_client.protocol import pack, unpack
from dsms_server.accepting import Bound, Listener, bind
from dsms_server.config import Config
from dsms_server.postgres.codec import ENCRYPTION
from dsms_server.postgres.errors import response
from dsms_server.tls import GOODBYE, context_of

HELLO = 64 << 10  # bytes of a request that is answered
SECONDS = 10.0  # in which it must come
# seconds in which an answer must be read, and in which HTTP clients may still ask after the
# hand-over
FAREWELL = 1.0
Asked = Callable[[asyncio.StreamReader], Awaitable[Any]]


class WaitingRoom:
    """Listens from `open` to `leave`.  `records`: of the journal, applied so far."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.records = 0
        self.bound = Bound()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="dsms-recovering", daemon=True)
        self._listeners: list[Listener] = []
        self._guests: set[asyncio.Task[None]] = set()
        self._leaving = self._loop.create_future()

    def see(self, records: int) -> None:
        """So many records have been applied."""
        self.records = records

    def open(self) -> None:
        """Listen; a port that is taken stays closed until the server says what is wrong with it."""
        tls = context_of(self.config) if self.config.tls_cert is not None else None
        http = [] if self.config.http_port is None else self._bind(self.config.http_port)
        named = self.config.postgres_port
        postgres = [] if named is None else self._bind(named)
        self.bound = Bound(self._bind(self.config.port), http, postgres)
        self._thread.start()
        self._in_thread(partial(self._listen, tls))

    def leave(self) -> Bound:
        """Give the sockets to the server.  Who is here is answered in this room's thread, which
        ends by itself."""
        self._in_thread(self._stop_listening)
        return self.bound

    def join(self) -> None:
        """Wait until everybody has gone."""
        self._thread.join()

    def _bind(self, port: int) -> list[socket.socket]:
        try:
            return bind(self.config.host, port)
        except OSError:
            return []

    # -- in the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        self._loop.run_until_complete(self._host())
        self._loop.close()

    async def _host(self) -> None:
        await self._leaving
        while self._guests:
            await asyncio.wait(self._guests)
        await asyncio.sleep(0)  # the last one's connection is closed

    def _in_thread(self, work: Callable[[], None]) -> None:
        async def do() -> None:
            work()

        asyncio.run_coroutine_threadsafe(do(), self._loop).result()

    def _listen(self, tls: ssl.SSLContext | None) -> None:
        for sockets, guest in (
            (self.bound.port, partial(self._client, tls)),
            (self.bound.http, self._browser),
            (self.bound.postgres, self._driver),
        ):
            self._listeners.append(Listener(self._loop, sockets, partial(self._take, guest)))

    def _stop_listening(self) -> None:
        for listener in self._listeners:
            listener.leave()
        self._leaving.set_result(None)

    def _take(
        self, guest: Callable[[socket.socket], Any], peer: socket.socket, address: Any
    ) -> None:
        task = self._loop.create_task(guest(peer))
        self._guests.add(task)
        task.add_done_callback(self._guests.discard)

    # -- guests ------------------------------------------------------------------------------------

    async def _client(self, tls: ssl.SSLContext | None, peer: socket.socket) -> None:
        """Answer the first request; whoever has not asked when the server takes over is answered,
        too."""
        with contextlib.suppress(OSError):
            reader, writer = await _streams(peer, tls)
            try:
                ident = await self._asked(_ident(reader))
                problem = UsageError(
                    "DS647", f"the server is coming back: {self.text}", hint="try again in a moment"
                )
                writer.write(pack({"id": ident, "error": problem.fields()}))
            except (DsmsError, TimeoutError):
                pass
            await _part(reader, writer)

    async def _driver(self, peer: socket.socket) -> None:
        """For clients of PostgreSQL's: the same, in the clear, as there is nothing secret in it."""
        with contextlib.suppress(OSError):
            reader, writer = await _streams(peer, None)
            with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError):
                while (head := await self._asked(reader.readexactly(8))) in ENCRYPTION:
                    writer.write(b"N")
                if head is not None:
                    why = f"the server is coming back: {self.text}"
                    writer.write(response(UsageError("DS647", why), fatal=True))
            await _part(reader, writer)

    async def _browser(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError):
            reader, writer = await _streams(peer, None)
            with contextlib.suppress(
                TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
            ):
                head = await self._asked(reader.readuntil(b"\r\n"), FAREWELL)
                writer.write(self._page(head))
            await _part(reader, writer)

    async def _asked(self, question: Any, grace: float = 0.0) -> Any:
        """What was asked; None if it has not been when the server takes over and the grace is past.
        Raises TimeoutError, and what the question does."""
        asked = asyncio.ensure_future(question)
        try:
            done, _ = await asyncio.wait(
                {asked, self._leaving}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                raise TimeoutError
            await asyncio.wait({asked}, timeout=grace)
            return asked.result() if asked.done() else None
        finally:
            asked.cancel()
            await asyncio.wait({asked})

    def _page(self, head: bytes | None) -> bytes:
        """For a request that begins so; nothing, if there is none."""
        if head is None:
            return b""
        status = "200 OK" if head.startswith(b"GET /healthz ") else "503 Service Unavailable"
        body = f"recovering: {self.text}\n".encode()
        lines = [
            f"HTTP/1.1 {status}",
            "Content-Type: text/plain",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body

    @property
    def text(self) -> str:
        """How far it is."""
        return f"{self.records} records of the journal applied"


async def _streams(
    peer: socket.socket, tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Of a connection that was accepted.  Raises OSError where there is no handshake."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=HELLO)
    protocol = asyncio.StreamReaderProtocol(reader)
    limits = (
        {} if tls is None else {"ssl_handshake_timeout": SECONDS, "ssl_shutdown_timeout": GOODBYE}
    )
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, peer, ssl=tls, **limits)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _ident(reader: asyncio.StreamReader) -> Any:
    """The id of the first request; None if there is none.  Raises UsageError if there can't be
    one."""
    buffer = FrameBuffer(HELLO)
    while data := await reader.read(HELLO):
        while data:
            space = buffer.space()
            taken = min(len(space), len(data))
            space[:taken] = data[:taken]
            buffer.filled(taken)
            for body in buffer.frames():
                return unpack(bytes(body)).get("id")
            data = data[taken:]
    return None


async def _part(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close in order: what the peer still says is read, since a close with bytes unread would wipe
    out the answer."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(FAREWELL):
            if writer.can_write_eof():
                writer.write_eof()
                while await reader.read(HELLO):
                    pass
            writer.close()
            await writer.wait_closed()
    writer.transport.abort()
