"""How tests wait for what other threads and processes do: for what they mean, never for a time.

A limit is there only so that a test that would wait for ever ends and says for what; a machine that
is loaded, or slow, or halted for a minute, must not come near it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

WAIT = 600.0  # seconds after which a test gives up
LOOK = 0.01  # ... between two looks


def wait_until(holds: Callable[[], object], what: str = "what was waited for") -> None:
    """Look again and again until it holds.  Looks are counted, so that a machine that stands still
    takes none away."""
    pause = threading.Event()
    for _ in range(int(WAIT / LOOK)):
        if holds():
            return
        pause.wait(LOOK)
    raise AssertionError(f"{what} did not come")


def reserved() -> socket.socket:
    """A port of this machine that no other program gets while the socket is open; a server may
    listen on it."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held
