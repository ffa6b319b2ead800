"""A server in a thread of this process, for one client that wants no server of its own."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def server(data: str | None, state_key_file: str | None = None) -> Iterator[tuple[int, str]]:
    """Start on a free local port behind a random token; gives (port, token), stops at the end."""
    # the command line is where client, server and engine meet
    from dsms_server.config import Config
    from dsms_server.serve import make_engine
    from dsms_server.server import Server

    config = Config(
        port=0,
        data=data,
        state_key_file=state_key_file,
        token=secrets.token_hex(16),
        stop_seconds=1.0,
        hello_seconds=60.0,
    )
    running = Server(make_engine(config), config)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="dsms-embedded", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(running.start(), loop).result()
        yield running.port, config.token or ""
        asyncio.run_coroutine_threadsafe(running.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
