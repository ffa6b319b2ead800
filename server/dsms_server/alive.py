"""Dead peers are noticed: a machine that was switched off sends no farewell.

The system asks whether the other machine is there; a peer that has promised to say something every
so often, as our clients do, is expected to keep to it, since a machine may be there and its program
not.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
from typing import Any

from dsms_server.parties import Peer

# seconds of silence until the system asks whether the peer is there, between two questions, and
# questions unanswered
MISSED = 3  # times that a peer may break its promise
EVERY = (1.0, 3600.0)  # seconds, the shortest and longest promise
LOOK_SECONDS = 0.5  # between two looks at a peer that has closed its side
ROOM = 32 << 10  # bytes unread, from which on a peer may not be able to say more
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
        # in this order NaN is the least
        self._seconds = MISSED * min(max(EVERY[0], every), EVERY[1])
        self._begin()

    def stop(self) -> None:
        self._timer.cancel()

    def _begin(self) -> None:
        self._came = self._session.threshold.came
        self._unread = unread(self._session.transport.get_extra_info("socket"))
        self._timer = self._session.server.later(self._seconds, self._out_of_time)

    def _out_of_time(self) -> None:
        # what has come by now is read first: a loop that was held up fires timers before it looks
        # at sockets
        self._timer = self._session.server.later(0, self._look)

    def _look(self) -> None:
        if self._session.threshold.came > self._came or self._unheard():
            self._begin()
            return
        self._session.server.metrics.let_go.labels("dead").inc()
        self._session.transport.abort()

    def _unheard(self) -> bool:
        """Whether the peer may have said something that is not read: since it is to wait for its
        requests, or since it reads nothing itself, which a slow one and a dead one have in
        common."""
        session = self._session
        if not session.read_paused or not session.write_paused:
            return session.read_paused
        waits = unread(session.transport.get_extra_info("socket"))
        return waits > self._unread or waits >= ROOM


def unread(connection: Any) -> int:
    """Bytes that have come and are not read."""
    (count,) = struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))
    return int(count)


class Grace:
    """`session`'s peer has closed its side while statements of it run.

    A peer that had promised to say more is gone.  Another may be a script that waits for its
    answers: it has `half_closed_seconds`, unless the system knows that nobody holds the other end
    any more."""

    def __init__(self, session: Peer, promised: bool) -> None:
        self._session = session
        self._left = 0.0 if promised else session.server.config.half_closed_seconds
        self._timer: Any = None
        self._look()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        session = self._session
        if session.closed or not session.unprocessed:
            return
        over = self._left <= 0 or orphaned(session.transport.get_extra_info("socket"))
        if over and session.requests.has_statements:
            session.server.metrics.let_go.labels("half-closed").inc()
            session.requests.abandon()
        pause = LOOK_SECONDS if over else min(LOOK_SECONDS, self._left)
        self._left -= pause
        self._timer = session.server.later(pause, self._look)


def orphaned(connection: Any) -> bool:
    """Whether the peer is of this machine and has closed its socket, not its side of it alone.
    Linux keeps such a socket for a minute, without an owner; of other machines nobody can know
    before something is written to them."""
    try:
        here, there = connection.getsockname(), connection.getpeername()
        if connection.family != socket.AF_INET or not there[0].startswith("127."):
            return False
        wanted = [_written(there), _written(here)]
        with open("/proc/net/tcp", encoding="ascii") as table:
            found = next(
                (fields for fields in map(str.split, table) if fields[1:3] == wanted), None
            )
    except OSError:
        return False
    return found is None or found[9] == "0"


def _written(address: tuple[str, int]) -> str:
    """As /proc/net/tcp has it."""
    (number,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{number:08X}:{address[1]:04X}"
