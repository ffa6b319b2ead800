"""Dead peers are noticed: a machine that was switched off sends no farewell."""

from __future__ import annotations

import socket
from typing import Any

# seconds of silence until the system asks whether the peer is there, between two questions, and questions unanswered
OPTIONS = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


def watch(connection: Any) -> None:
    """Have the system look whether the peer is still there."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in OPTIONS.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
