"""Replies that a session has not read: past a bound its next statements wait, and in the end it is
let go.

Counted are the bytes in its transport, and those of answers that are being written down in another
thread.
"""

from __future__ import annotations

import asyncio
import logging

from dsms.errors import UsageError
from dsms_server.parties import Peer
from dsms_server.worker import Lane

log = logging.getLogger("dsms.server")


class Replies:
    """The brake of one session.  `unread` is part of the server's total."""

    def __init__(self, session: Peer) -> None:
        self.session = session
        self.unread = 0
        self.lane: Lane | None = None  # the one that is held
        self._encoding = 0
        self._timer: asyncio.TimerHandle | None = None
        self._before = 0

    @property
    def waiting(self) -> bool:
        """Whether the session's next requests wait until it has read."""
        return self.lane is not None

    def expect(self, size: int) -> None:
        """An answer of about so many bytes is being written down (less, if negative)."""
        self._encoding += size
        self.regulate()

    def regulate(self) -> None:
        """Bytes have come or gone: hold the session's lane, or let it go on."""
        session, config = self.session, self.session.server.config
        if session.closed:
            return
        size = session.transport.get_write_buffer_size() + self._encoding
        session.server.unread += size - self.unread
        self.unread = size
        own = config.reply_bytes // (2 if self.waiting else 1)
        total = session.server.memory.bound(config.total_reply_bytes)
        if size > own or (session.write_paused and session.server.unread > total):
            self._hold()
        else:
            self._free()

    def over(self) -> None:
        """The session is gone."""
        self.session.server.unread -= self.unread
        self.unread = self._encoding = 0
        self._free()

    def _hold(self) -> None:
        if self.lane is not None:
            return
        self.lane, self._before = self.session.requests.lane, self.unread
        self.session.server.core.worker.hold(self.lane)
        self._wait()

    def _free(self) -> None:
        if self.lane is None:
            return
        self.session.server.core.worker.free(self.lane)
        self.lane = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._timer = self.session.server.loop.call_later(
            self.session.server.config.reply_seconds, self.look
        )

    def look(self) -> None:
        """Some time after the lane was held: a session that has read nothing since is closed."""
        self._timer = None
        self.regulate()
        if self.lane is None:
            return
        if self.unread < self._before or self._encoding:
            self._before = self.unread
            self._wait()
            return
        session, seconds = self.session, self.session.server.config.reply_seconds
        problem = UsageError(
            "DS620", f"{self.unread} bytes of replies have waited unread for {seconds:g} s"
        )
        session.server.metrics.errors.labels(problem.code).inc()
        log.warning("a session is let go: %s", problem)
        session.account.ended = problem.code
        session.transport.abort()
