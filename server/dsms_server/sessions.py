"""The sessions as statements see them (`dsms.sessions.Sessions`), and the time that their
statements may take.

`lines` and `cancel` are called in the engine's thread while sessions live on the event loop: what
they read are single values, and what they ask for is done on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dsms.errors import UsageError
from dsms.rights.writers import bare
from dsms.sessions import SessionLine, no_session
from dsms_server import clock
from dsms_server.account import Work, shown
from dsms_server.parties import Peer


class Sessions:
    """Those whose peers have shown who they are, by number."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, rate: Callable[[str], int] = lambda user: 0
    ) -> None:
        self._loop = loop
        self.rows_per_second = rate
        self._known: dict[int, Peer] = {}

    def enter(self, session: Peer) -> None:
        self._known[session.account.id] = session

    def leave(self, session: Peer) -> None:
        self._known.pop(session.account.id, None)

    def lines(self) -> list[SessionLine]:
        """A line each, oldest first."""
        now = clock.elapsed()
        return [_line(session, now) for session in list(self._known.values()) if not session.closed]

    def cancel(self, number: int, close: bool) -> str:
        """End what a session runs, or the session.  Raises DS660."""
        session = self._known.get(number)
        if session is None or session.closed:
            raise no_session(number)
        if close:
            self._loop.call_soon_threadsafe(_close, session)
            return f"session {number} is closed"
        work = session.account.work
        if work is None:
            return f"session {number} runs nothing"
        work.cancel.set(UsageError("DS610", "the statement was cancelled by CANCEL SESSION"))
        return f"session {number}: its statement is cancelled"

    def sweep(self) -> None:
        """Cancel what has taken too long."""
        now = clock.elapsed()
        for session in self._known.values():
            work, most = session.account.work, session.account.statement_timeout
            if work is not None and most and now - work.began >= most:
                _out_of_time(work, most)


def _out_of_time(work: Work, most: float) -> None:
    hint = "ask for less, or SET statement_timeout = 0 (or longer) in this session"
    message = f"the statement has taken longer than statement_timeout, {most:g} s"
    work.cancel.set(UsageError("DS616", message, hint=hint))


def _close(session: Peer) -> None:
    session.requests.cancel_all()
    session.dismiss(UsageError("DS662", "the session was closed by CLOSE SESSION"))


def _line(session: Peer, now: float) -> SessionLine:
    account, work = session.account, session.account.work
    return SessionLine(
        account.id,
        account.user,
        None if session.requests.client is None else bare(session.requests.client),
        account.peer,
        account.since,
        _state(session, work),
        None if work is None else shown(work.sql),
        None if work is None else now - work.began,
        account.rows_in,
        account.rows_out,
        session.waiting_bytes,
        len(session.requests.feeds),
    )


def _state(session: Peer, work: Work | None) -> str:
    if work is not None:
        run = work.run
        return "waiting" if run is not None and run.waits else "running"
    return "closing" if session.half_closed else "idle"
