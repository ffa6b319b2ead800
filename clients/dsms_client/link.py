"""One TCP connection: frames out, messages in.  Knows nothing of requests or reconnecting."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import Callable
from typing import Any

from dsms.errors import UsageError
from dsms_client.protocol import HEADER, unpack

READ_BUFFER = 4 << 20
MAX_ANSWER = 1 << 30


def _reason(problem: OSError) -> str:
    known = problem.errno is not None and problem.errno > 0
    return os.strerror(problem.errno) if known else str(problem.strerror or problem)  # type: ignore[arg-type]


class Link:
    """`on_message` gets every message, `on_lost` is called once when the connection has ended."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_message: Callable[[dict[str, Any]], None],
        on_lost: Callable[[Link], None],
    ) -> None:
        self.lost = False
        self._reader = reader
        self._writer = writer
        self._on_message = on_message
        self._on_lost = on_lost
        self._task = asyncio.get_running_loop().create_task(self._read())

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
        try:
            reader, writer = await asyncio.open_connection(host, port, ssl=tls, limit=READ_BUFFER)
        except OSError as problem:
            raise UsageError(
                "DS612",
                f"no dsms server answers at {host}:{port} ({_reason(problem)})",
                hint="start one with `dsms serve`, or say where it is with --host and --port",
            ) from None
        return cls(reader, writer, on_message, on_lost)

    def write(self, frame: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(frame)

    async def drain(self) -> None:
        """Wait until the socket has room again."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        with contextlib.suppress(Exception):
            await self._writer.wait_closed()

    async def _read(self) -> None:
        try:
            while True:
                (length,) = HEADER.unpack(await self._reader.readexactly(4))
                if length > MAX_ANSWER:
                    return
                self._on_message(unpack(await self._reader.readexactly(length)))
        except (OSError, EOFError, UsageError):
            pass  # cut off, or not a dsms server: both end the connection
        finally:
            self.lost = True
            self._writer.close()
            self._on_lost(self)
