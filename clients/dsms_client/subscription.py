"""A subscription on the client's side: an async iterator that survives reconnects and its own
slowness."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from dsms.errors import DsmsError, UsageError
from dsms_client.link import Link
from dsms_client.protocol import MAX_LOSSES, error_from_map, given_up
from dsms_client.results import Data, Push

if TYPE_CHECKING:
    from dsms_client.changes import Changes
    from dsms_client.view import View

PRESENT_BYTES = 1 << 20  # that wait for a conflating reader before they are summed up
BUFFER_BYTES = 64 << 20  # of pushes that wait for the reader; past it the server keeps the rest


class Requests(Protocol):
    """The client that asks for it (`aio.AsyncClient`)."""

    host: str
    port: int
    _subs: dict[str, Reading[Any]]
    _link: Link | None
    _mending: asyncio.Task[None] | None
    _patience: float
    _knows_changes: bool

    def _send(
        self,
        op: str,
        fields: dict[str, Any],
        *,
        on_reply: Callable[[dict[str, Any]], None] | None = None,
    ) -> tuple[int, asyncio.Future[dict[str, Any]], int]: ...

    async def _request(self, op: str, **fields: Any) -> dict[str, Any]: ...

    def _give_up(self, ident: int) -> None: ...


class Told(Protocol):
    """What the server says in one push."""

    @property
    def kind(self) -> str: ...
    @property
    def next_seq(self) -> int: ...
    @property
    def message(self) -> str | None: ...
    @property
    def code(self) -> str | None: ...


P = TypeVar("P", bound=Told)


class Reading(ABC, Generic[P]):
    """``async for push in subscription``; `next_seq` is where a later one would go on.

    When more waits here than the buffer holds, the subscription lets go, and takes up the rows it
    missed from the server's log once the reader has caught up.  If the log no longer has them, the
    iteration raises.
    """

    def __init__(self, client: Requests, query: str, start: int | None, resume: bool) -> None:
        self.query = query
        self.columns: tuple[str, ...] = ()
        self.types: tuple[str, ...] = ()
        self.approximate: float | None = None  # groups may miss a threshold by that share of it
        self.next_seq = start
        self.buffer_bytes = BUFFER_BYTES
        self._client = client
        self._resume = resume
        self._waiting: deque[tuple[P, int]] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()
        self._error: DsmsError | None = None
        self._over = False
        self._closing = False
        self._losses = 0  # of the connection while the server was asked
        self._let_go = False  # caught up later, from the log
        # goes on where a reader stops waiting for it
        self._attaching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> P:
        """The next push; an `end` without an error is the last one.  Raises the error that ended
        the subscription."""
        while not self._waiting:
            if self._error is not None:
                raise self._error
            if self._over:
                raise StopAsyncIteration
            if self._let_go and self._attaching is None:
                self._attaching = asyncio.get_running_loop().create_task(self._attach())
            if self._attaching is not None:
                await asyncio.shield(self._attaching)
                self._attaching = None
                continue
            self._arrived.clear()
            await self._arrived.wait()
        push, size = self._waiting.popleft()
        self._bytes -= size
        if push.kind == "end":
            self._over = True
        return push

    async def close(self) -> None:
        """Give the subscription up."""
        if self._attaching is not None:
            await self._stop_attaching(self._attaching)
        attached = self._client._subs.get(self.query) is self
        if attached and not self._over and self._error is None:
            del self._client._subs[self.query]
            if self._client._link is not None:
                await self._client._request("unsubscribe", query=self.query)
        self._over = True
        self._arrived.set()

    # -- called by the client ----------------------------------------------------------------------

    async def _attach(self) -> None:
        self._let_go = False
        while True:
            ident, reply, _ = self._ask()
            try:
                await reply
                return
            except asyncio.CancelledError:
                self._client._give_up(ident)
                raise
            except UsageError as problem:
                if self._begins_anew(problem):
                    continue
                if problem.code != "DS611" or self._client._mending is None or self._closing:
                    raise
                if self._lost_again():
                    raise self._given_up() from None

    async def _stop_attaching(self, attaching: asyncio.Task[None]) -> None:
        self._closing = True
        if self._client._link is None:
            attaching.cancel()  # no request was sent
        await asyncio.wait([attaching])

    def _attach_again(self) -> None:
        """After a reconnect: go on where the pushes stopped."""
        if self._resume and not self._let_go:
            self._ask()[1].add_done_callback(self._reattached)
        elif not self._resume:
            self._broken(UsageError("DS611", "the connection was lost"))

    def _reattached(self, future: asyncio.Future[Any]) -> None:
        problem = None if future.cancelled() else future.exception()
        if not isinstance(problem, DsmsError):
            return
        if self._begins_anew(problem):
            self._attach_again()
        elif problem.code != "DS611":  # that one is followed by another reconnect
            self._broken(problem)
        elif self._lost_again():
            self._client._subs.pop(self.query, None)
            self._broken(self._given_up())

    def _begins_anew(self, problem: DsmsError) -> bool:
        """Whether it is asked for again from its beginning after such an answer."""
        return False

    def _lost_again(self) -> bool:
        """Whether the connection was lost too often while nothing but this was asked."""
        self._losses += 1
        return self._losses >= MAX_LOSSES

    def _given_up(self) -> UsageError:
        return given_up(
            f"{self._client.host}:{self._client.port}",
            f"the subscription to {self.query}",
            MAX_LOSSES,
        )

    def _ask(self) -> tuple[int, asyncio.Future[dict[str, Any]], int]:
        fields: dict[str, Any] = {"query": self.query, **self._options()}
        if self.next_seq is not None:
            fields["from"] = self.next_seq
        return self._client._send("subscribe", fields, on_reply=self._attached)

    def _attached(self, reply: dict[str, Any]) -> None:
        if "error" not in reply:
            self._losses = 0
            self.query = reply["query"]
            self.columns, self.types = tuple(reply["columns"]), tuple(reply["types"])
            self.approximate = reply.get("approximate")
            if self.next_seq is None:
                # not said where a snapshot comes first: that has it
                self.next_seq = reply.get("seq")
            self._client._subs[self.query] = self

    def _receive(self, message: dict[str, Any]) -> None:
        if self._let_go or self._over:
            return
        push = self._push(message)
        if push.kind == "end" and push.code is not None:
            self._ended(push)
            return
        self.next_seq = push.next_seq
        if push.kind == "end":
            self._client._subs.pop(self.query, None)
        size = _size(message["data"])
        self._bytes += size
        self._waiting.append((push, size))
        self._arrived.set()
        if self._bytes > self.buffer_bytes and push.kind != "end":
            self._overflow()

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """Fields of `subscribe` for this form."""

    @abstractmethod
    def _push(self, message: dict[str, Any]) -> P:
        """A push in this form."""

    def _ended(self, push: P) -> None:
        """The server ended it with a reason: a slow reader catches up later, the rest is an
        error."""
        self._client._subs.pop(self.query, None)
        if push.code == "DS641" and self._resume and self._client._patience > 0:
            self._client._subs[self.query] = self  # the server stops; it may come back
        elif push.code == "DS620" and self._resume and self.next_seq is not None:
            self._let_go = True
            self._arrived.set()
        else:
            self._broken(
                error_from_map(
                    {"code": push.code, "message": push.message or "the subscription has ended"}
                )
            )

    def _overflow(self) -> None:
        """More waits than the buffer holds."""
        self._leave()

    def _leave(self) -> None:
        if self._resume:
            self._let_go = True
            self._client._subs.pop(self.query, None)
            self._client._send("unsubscribe", {"query": self.query})
        else:
            self._client._subs.pop(self.query, None)
            self._client._send("unsubscribe", {"query": self.query})
            self._broken(UsageError("DS620", "the reader is too slow, its buffer is full"))

    def _broken(self, problem: DsmsError) -> None:
        self._error = problem
        self._arrived.set()


class AsyncSubscription(Reading[Push]):
    """``async for push in subscription``: rows of one kind at a time."""

    def _options(self) -> dict[str, Any]:
        return {}

    def _push(self, message: dict[str, Any]) -> Push:
        data, raw = None, message["data"]
        if raw is not None:
            is_arrow = isinstance(raw, bytes)
            data = Data(
                self.columns, self.types, None if is_arrow else raw, raw if is_arrow else None
            )
        return Push(
            self.query,
            message["seq"],
            message["kind"],
            message["at"],
            data,
            message.get("message"),
            message.get("code"),
            message.get("more", False),
            self.approximate,
            message.get("share"),
        )


class AsyncChanges(Reading["Changes"]):
    """``async for changes in subscription``: rows of all kinds in columns, until the query ends."""

    _view: View | None = None
    _began = False  # something has come
    _present_bytes = 0  # what was left when what waits was last summed up

    def __init__(
        self,
        client: Requests,
        query: str,
        start: int | None,
        resume: bool,
        conflate: bool = False,
    ) -> None:
        super().__init__(client, query, start, resume)
        self._conflate = conflate
        if conflate:
            self.buffer_bytes = PRESENT_BYTES

    def _options(self) -> dict[str, Any]:
        if self._conflate:
            return {"conflate": True}
        return {"changes": True} if self._client._knows_changes else {}

    def _overflow(self) -> None:
        if not self._conflate:
            super()._overflow()
        elif self._bytes > 2 * self._present_bytes:
            self._sum_up()
            self._present_bytes = self._bytes

    def _sum_up(self) -> None:
        from dsms_client.present import present

        left = present([changes for changes, _ in self._waiting])
        self._waiting = deque((changes, changes.data.nbytes) for changes in left)
        self._bytes = sum(size for _, size in self._waiting)

    def _begins_anew(self, problem: DsmsError) -> bool:
        """The log may no longer have what it would take: the answer as it is now does as well."""
        anew = self._conflate and self._began and problem.code == "DS409"
        if anew:
            self.next_seq = None
        return anew

    def _push(self, message: dict[str, Any]) -> Changes:
        from dsms_client.changes import changes_of

        self._began = True
        return changes_of(message, self.query, self.columns, self.types, self.approximate)

    async def __anext__(self) -> Changes:
        """The next changes.  Raises the error that ended the subscription."""
        if self._conflate and len(self._waiting) > 1:
            self._sum_up()
            self._present_bytes = 0
        changes = await super().__anext__()
        if changes.kind == "end":
            raise StopAsyncIteration
        if self._view is not None:
            self._view.add(changes)
        return changes

    def view(self) -> View:
        """The current answer: empty now, kept up with all that is read from now on.  Ask for it
        before the first changes are read, of a subscription that begins with the answer (without
        `start`) or with row 0."""
        if self._view is None:
            from dsms_client.view import View

            self._view = View(self.columns, self.types)
        return self._view


def _size(raw: Any) -> int:
    """About how many bytes a push's data takes."""
    if raw is None:
        return 100
    return len(raw) if isinstance(raw, bytes) else 100 * len(raw)
