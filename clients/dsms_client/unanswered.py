"""The requests of a client that have no answer yet, and how they go again over a new connection.

Rows, heartbeats and ends may be repeated.  One of them may be what ended the server, so after a
loss those that were under way go one by one.  One that was alone on its way is given up when the
server has died twice meanwhile, or when the connection to a server that lives was lost five times.
That a network fails that often at the same moment is made unlikely: what was lost so goes only
over a connection that has held for a while, longer each time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsms.errors import DsmsError
from dsms_client.link import Link
from dsms_client.protocol import MAX_DEATHS, MAX_LOSSES, given_up

# for which a connection must hold before what was lost once is risked again; doubled each time
CALM_SECONDS = 0.1
UNFIT = ("DS600", "DS601")  # a server's last words where a frame is the reason


@dataclass(slots=True, eq=False)
class Pending:
    """A request without an answer; `again`: it may be repeated; `what`: it is, in words; `losses`:
    of the connection while it alone was sent, `deaths`: of the server among them; `suspect`: the
    last connection was lost so."""

    frame: tuple[bytes | memoryview, ...]
    future: asyncio.Future[dict[str, Any]]
    again: bool
    what: str
    on_reply: Callable[[dict[str, Any]], None] | None = None
    sent: bool = False
    losses: int = 0
    deaths: int = 0
    suspect: bool = False


class Unanswered:
    """`server` names it in messages."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._link: Link | None = None
        self._run: str | None = None  # of the server that the last connection led to
        self._calm = False  # the link has held long enough
        self._pending: dict[int, Pending] = {}
        self._suspects: deque[int] = deque()  # under way when a connection was lost, oldest first

    def add(self, ident: int, pending: Pending) -> None:
        """A new request, sent at once unless older ones go one by one."""
        self._pending[ident] = pending
        if not self._suspects:
            self._put(pending)

    def pop(self, ident: int) -> Pending | None:
        """The request has its answer, or its caller has stopped waiting."""
        pending = self._pending.pop(ident, None)
        if self._suspects:
            self._go_on()
        return pending

    def repeatable(self) -> list[asyncio.Future[dict[str, Any]]]:
        """What rows, heartbeats and ends wait for."""
        return [p.future for p in self._pending.values() if p.again]

    def connected(self, link: Link, run: str | None) -> None:
        """Send what waits, in its order; `run` tells one life of a server from the next (None:
        unknown)."""
        died = run is None or run != self._run
        self._link, self._calm, self._run = link, False, run
        for ident, pending in list(self._pending.items()):
            pending.sent = False
            pending.deaths += died and pending.suspect
            if pending.deaths >= MAX_DEATHS:
                self._fail(ident, given_up(self._server, pending.what, pending.losses))
        self._go_on()

    def lost(self, problem: DsmsError, farewell: DsmsError | None) -> None:
        """The connection is gone: what can't be repeated fails with `problem`; `farewell`: what the
        server said of it, which may be that it could not take a frame."""
        unfit = farewell is not None and farewell.code in UNFIT
        innocent = farewell is not None and not unfit
        self._link = None
        under_way = {ident: p for ident, p in self._pending.items() if p.sent}
        rest = [ident for ident in self._suspects if ident not in under_way]
        self._suspects = deque([*(ident for ident, p in under_way.items() if p.again), *rest])
        for ident, pending in under_way.items():
            pending.sent = False
            pending.suspect = len(under_way) == 1 and not innocent
            pending.losses += pending.suspect
            if not pending.again:
                self._fail(ident, problem)
            elif farewell is not None and unfit and pending.losses >= MAX_DEATHS:
                self._fail(ident, farewell)
            elif pending.losses >= MAX_LOSSES:
                self._fail(ident, given_up(self._server, pending.what, pending.losses))

    def fail_all(self, problem: DsmsError) -> None:
        for ident in list(self._pending):
            self._fail(ident, problem)
        self._suspects.clear()

    def _fail(self, ident: int, problem: DsmsError) -> None:
        set_error(self._pending.pop(ident).future, problem)

    def _go_on(self) -> None:
        """Send the first suspect alone; everything, if there is none."""
        while self._suspects and self._suspects[0] not in self._pending:
            self._suspects.popleft()
        if not self._suspects:
            for pending in self._pending.values():
                self._put(pending)
            return
        pending = self._pending[self._suspects[0]]
        if self._calm or not pending.losses:
            self._put(pending)
        else:
            calm = CALM_SECONDS * 2 ** (pending.losses - 1)
            asyncio.get_running_loop().call_later(calm, self._held, self._link)

    def _held(self, link: Link | None) -> None:
        if link is not None and link is self._link:
            self._calm = True
            self._go_on()

    def _put(self, pending: Pending) -> None:
        if self._link is not None and not pending.sent:
            self._link.write(pending.frame)
            pending.sent = True


def set_error(future: asyncio.Future[Any], problem: BaseException) -> None:
    """Its caller may have stopped waiting; asyncio need not complain."""
    if not future.done():
        future.set_exception(problem)
        future.exception()
