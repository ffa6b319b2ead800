"""One TCP connection: frames out, messages in.  Knows nothing of requests or reconnecting."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from dsms.errors import UsageError
from dsms_client.frames import FrameBuffer
from dsms_client.protocol import unpack

MAX_ANSWER = (1 << 32) - 1  # what a frame can have; the server has a limit of its own
FIRST_ANSWER = 64 << 10  # what the answer to hello can have: text taken for a length is more
# bytes written at a time: what the socket does not take at once is copied, so it should be little
PIECE = 256 << 10
HIGH = 1 << 20  # bytes that may wait before `drain` waits


class Closed(UsageError):
    """The peer went without a word, as a server does that ends, or whose machine is short of
    something."""


def _reason(problem: OSError) -> str:
    known = problem.errno is not None and problem.errno > 0
    return os.strerror(problem.errno) if known else str(problem.strerror or problem)  # type: ignore[arg-type]


class Link(asyncio.BufferedProtocol):
    """`on_message` gets every message, `on_lost` is called once when the connection has ended."""

    def __init__(
        self, on_message: Callable[[dict[str, Any]], None], on_lost: Callable[[Link], None]
    ) -> None:
        self.lost = False
        self.foreign = False  # the peer speaks another protocol
        self._transport: Any = None
        self._on_message = on_message
        self._on_lost = on_lost
        self._buffer = FrameBuffer(FIRST_ANSWER)
        self._out: deque[memoryview] = deque()
        self._waiting = 0
        self._paused = False
        self._room = asyncio.Event()
        self._room.set()
        self._ended = asyncio.Event()

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        on_message: Callable[[dict[str, Any]], None],
        on_lost: Callable[[Link], None],
    ) -> Link:
        """Connect.  Raises DS612 if nobody answers."""
        loop = asyncio.get_running_loop()
        try:
            _, link = await loop.create_connection(
                lambda: cls(on_message, on_lost), host, port, ssl=tls
            )
        except ssl.SSLCertVerificationError as problem:
            raise UsageError(
                "DS612",
                f"the certificate of {host}:{port} is not trusted: {problem.verify_message}",
                hint="trust it with --tls-ca, or an SSLContext of your own",
            ) from None
        except ssl.SSLError as problem:
            hint = "connect without TLS, or start the server with --tls-cert and --tls-key"
            why = f"{host}:{port} answers, but not in TLS ({problem.reason})"
            raise UsageError("DS607", why, hint=hint) from None
        except OSError as problem:
            raise UsageError(
                "DS612",
                f"no dsms server answers at {host}:{port} ({_reason(problem)})",
                hint="start one with `dsms serve`, or say where it is with --host and --port; "
                "a first start compiles for a minute or two, and --wait 180 waits for it",
            ) from None
        return link

    def write(self, frame: Sequence[bytes | memoryview]) -> None:
        """Send the parts of a frame."""
        if self.lost:
            return
        for part in frame:
            self._out.append(memoryview(part))
            self._waiting += len(part)
        self._pump()

    async def drain(self) -> None:
        """Wait until not much waits to be written."""
        await self._room.wait()

    async def close(self) -> None:
        """Close, without a last word."""
        self._transport.close()
        self._out.clear()
        await self._ended.wait()

    def _pump(self) -> None:
        while self._out and not self._paused and not self.lost:
            part = self._out[0]
            self._transport.write(part[:PIECE])
            self._waiting -= min(PIECE, len(part))
            if len(part) > PIECE:
                self._out[0] = part[PIECE:]
            else:
                self._out.popleft()
        if self._waiting > HIGH:
            self._room.clear()
        else:
            self._room.set()

    # -- asyncio callbacks -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.set_write_buffer_limits(high=PIECE)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer.space()

    def buffer_updated(self, nbytes: int) -> None:
        self._buffer.filled(nbytes)
        try:
            for body in self._buffer.frames():
                self._on_message(unpack(body, longest=len(body)))
                self._buffer.limit = MAX_ANSWER
        except UsageError:
            self.foreign = True
            self._transport.abort()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._pump()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._out.clear()
        self._room.set()
        self._ended.set()
        self._on_lost(self)


def no_hello(host: str, port: int, foreign: bool) -> UsageError:
    """DS607: the peer went without a word, or said something that is none of ours."""
    hint = "is it a dsms server, and with or without TLS as you asked?"
    if foreign:
        return UsageError("DS607", f"{host}:{port} does not speak the dsms protocol", hint=hint)
    return Closed(
        "DS607", f"{host}:{port} closed the connection instead of saying hello", hint=hint
    )
