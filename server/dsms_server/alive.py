"""Dead peers are noticed: a machine that was switched off sends no farewell.

The system asks whether the other machine is there; a peer that has promised to say something every so often, as our
clients do, is expected to keep to it, since a machine may be there and its program not.
"""

from __future__ import annotations

import socket
from typing import Any

from dsms_server.parties import Peer

# seconds of silence until the system asks whether the peer is there, between two questions, and questions unanswered
MISSED = 3  # times that a peer may break its promise
EVERY = (1.0, 3600.0)  # seconds, the shortest and longest promise
OPTIONS = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


def watch(connection: Any) -> None:
    """Have the system look whether the peer is still there."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in OPTIONS.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Pulse:
    """`session` has promised to send something every so many seconds; the latest promise counts."""

    def __init__(self, session: Peer, every: float) -> None:
        self._session = session
        self._seconds = MISSED * min(max(EVERY[0], every), EVERY[1])  # in this order NaN is the least
        self._begin()

    def stop(self) -> None:
        self._timer.cancel()

    def _begin(self) -> None:
        self._came = self._session.threshold.came
        self._timer = self._session.server.later(self._seconds, self._out_of_time)

    def _out_of_time(self) -> None:
        # what has come by now is read first: a loop that was held up fires timers before it looks at sockets
        self._timer = self._session.server.later(0, self._look)

    def _look(self) -> None:
        if self._session.threshold.came > self._came or self._session.read_paused:
            self._begin()
            return
        self._session.server.metrics.let_go.labels("dead").inc()
        self._session.transport.abort()
