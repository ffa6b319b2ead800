"""One connection that speaks PostgreSQL's protocol: a session of the server whose bytes are
messages.  Brakes, limits, rights and the end are those of `dsms_server.session`; what is asked is
worked on in the order it came, by one task that lives while there is something to do."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

from dsms.api import Chunk, Push
from dsms.errors import DsmsError, UsageError
from dsms_client.frames import FrameBuffer
from dsms_server.feeds import SubscriptionFeed
from dsms_server.parties import Host
from dsms_server.postgres import codec, errors
from dsms_server.postgres.codec import STARTUP_BYTES, Inbox
from dsms_server.postgres.conversation import Conversation
from dsms_server.postgres.greeting import Greeting
from dsms_server.postgres.peer import Shared
from dsms_server.session import Session
from dsms_server.worker import expected

SCRATCH = 16 << 10  # bytes that are read at once
TURN = 32  # messages that are answered before others get their turn


class PostgresSession(Session):
    """`first`: bytes that have come already; `secure`: it is under TLS."""

    def __init__(self, server: Host, face: Shared, first: bytes, secure: bool) -> None:
        super().__init__(server)
        self.face, self.secure = face, secure
        self._first = first
        self._inbox = Inbox(STARTUP_BYTES)
        self._scratch = bytearray(SCRATCH)
        self._waits = 0  # bytes in the inbox
        self._task: asyncio.Task[None] | None = None
        self._room: list[asyncio.Future[None]] = []  # told when the peer reads again
        self.greeting = Greeting(self)
        self.conversation: Conversation | None = None  # once it is known who is there

    # -- asyncio callbacks -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        first, self._first = self._first, b""
        if not self._discarding:
            self._came(first)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._scratch)

    def buffer_updated(self, nbytes: int) -> None:
        if self._discarding:
            return
        self._came(memoryview(self._scratch)[:nbytes])
        self.regulate()

    def eof_received(self) -> bool:
        """The peer has said all: whole messages are still answered, a part of one is none."""
        keeps = super().eof_received()
        self._heard_all()
        return keeps

    def _heard_all(self) -> None:
        if self.half_closed and self._task is None:
            self._let_go()
            self.close_if_done()

    def connection_lost(self, exc: Exception | None) -> None:
        self.face.lose(self.account.id)
        if self._task is not None:
            self._task.cancel()
        self._let_go()
        self._wake()
        if self.conversation is not None:
            self.conversation.lost()
        super().connection_lost(exc)
        self._dissolve()

    def _dissolve(self) -> None:
        super()._dissolve()
        if self.closed and self._task is None:
            self.conversation = None
            vars(self.greeting).pop("session", None)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._wake()

    # -- in ----------------------------------------------------------------------------------------

    def _first_buffer(self) -> FrameBuffer:
        return FrameBuffer(0, 0)  # of which nothing is used

    def trusted(self) -> bool:
        if not self.threshold.prove():
            return False
        self._inbox.limit = self.server.config.max_frame
        return True

    def _came(self, data: bytes | memoryview) -> None:
        self.server.metrics.bytes_in.inc(len(data))
        self.threshold.count(len(data))
        self._inbox.add(data)
        self._waits += len(data)
        self.hold(len(data))
        self._begin_talk()

    def _begin_talk(self) -> None:
        """Have somebody answer what has come, if nobody does."""
        if self._task is not None or self.threshold.waiting or self.closed:
            return
        message = self._next()
        if message is not None:
            self.hold(1)
            self._task = self.server.loop.create_task(self._talk(message))
            self._task.add_done_callback(self._talked)

    def _next(self) -> tuple[int, bytes] | None:
        """The next message, if it is whole and there is somebody to hear the answer."""
        if self._discarding or self.closed or self.transport.is_closing():
            return None
        try:
            found = self._inbox.take()
        except UsageError as problem:
            self.fatal(problem)
            return None
        if found is not None:
            self._inbox.started = True
            size = len(found[1]) + 4 + (found[0] > 0)
            self._waits -= size
            self.release(size)
        return found

    async def _talk(self, message: tuple[int, bytes] | None) -> None:
        """Answer messages, one after the other; others get their turn in between."""
        try:
            for count in itertools.count(1):
                if message is None:
                    return
                self.server.metrics.frames_in.inc()
                if self.conversation is None:
                    await self.greeting.hear(*message)
                else:
                    await self.conversation.hear(*message)
                if count % TURN == 0:
                    await asyncio.sleep(0)
                await self.drained()
                message = self._next()
        except Exception as problem:
            self.fatal(expected(problem, "a PostgreSQL session"))

    def _talked(self, task: asyncio.Task[None]) -> None:
        """All that had come has been answered, or nobody wants it any more."""
        self._task = None
        if self.closed:
            self.unprocessed -= 1
            self.server.unprocessed -= 1
            self._dissolve()
        else:
            self.release(1)
            self.close_if_done()
            self._begin_talk()
            self._heard_all()

    @contextlib.contextmanager
    def at_leisure(self) -> Iterator[None]:
        """For the time of a wait that the stop of the server need not wait for."""
        self.release(1)
        try:
            yield
        finally:
            self.hold(1)

    def _let_go(self) -> None:
        """Nothing of what has come is looked at any more."""
        waits, self._waits = self._waits, 0
        self._inbox.clear()
        self.unprocessed -= waits
        self.server.unprocessed -= waits

    # -- out ---------------------------------------------------------------------------------------

    async def drained(self) -> None:
        """Wait until the peer reads on.  Who reads nothing for `reply_seconds` is let go."""
        while self.write_paused and not self.closed:
            before = self.transport.get_write_buffer_size()
            room: asyncio.Future[None] = self.server.loop.create_future()
            self._room.append(room)
            timer = self.server.later(self.server.config.reply_seconds, self._wake)
            try:
                await room
            finally:
                timer.cancel()
            stands = self.write_paused and not self.closed
            if stands and self.transport.get_write_buffer_size() >= before:
                self.account.ended = "DS620"
                self.server.metrics.errors.labels("DS620").inc()
                self.transport.abort()
                return

    def _wake(self) -> None:
        waiting, self._room = self._room, []
        for room in waiting:
            if not room.done():
                room.set_result(None)

    def refuse(self, ident: Any, problem: DsmsError) -> None:
        """An error that ends the session."""
        self.server.metrics.errors.labels(problem.code).inc()
        self.threshold.told(problem)
        self.write(errors.response(problem, fatal=True))

    def fatal(self, problem: DsmsError) -> None:
        """Say what is wrong, and hear nothing more."""
        if not (self.closed or self._discarding):
            self.account.ended = problem.code
            self.refuse(None, problem)
            self.linger()

    def linger(self) -> None:
        self._let_go()
        super().linger()

    def _last_word(self) -> None:
        super()._last_word()
        if self._said_all and self.half_closed:
            self.transport.close()  # there is nothing more to come that would wipe it out

    def begun(self, conversation: Conversation) -> None:
        """It is known who is there."""
        self.conversation = conversation
        secret = self.face.key_for(self.account.id, self)
        self.write(codec.key_data(self.account.id, secret))

    def cancel(self) -> None:
        """Another connection has shown the key: stop what is run."""
        if self.conversation is not None:
            self.conversation.cancel()

    # -- subscriptions -----------------------------------------------------------------------------

    def deliver(self, feed: SubscriptionFeed, items: list[Push | Chunk]) -> None:
        if self.closed or self.requests.feeds.get(feed.query) is not feed:
            return
        self.server.metrics.pushes.inc(len(items))
        if any(isinstance(item, Push) and item.kind == "end" for item in items):
            del self.requests.feeds[feed.query]
        if self.conversation is not None:
            self.conversation.streams.deliver(feed, items)

    def take_back(self, feed: SubscriptionFeed, problem: DsmsError, seq: int | None = None) -> None:
        if self.closed or self.requests.feeds.get(feed.query) is not feed:
            return
        self.requests.give_up(feed)
        if self.conversation is not None:
            self.conversation.streams.fail(feed, problem)

    def farewell(self, problem: UsageError) -> None:
        """The server stops."""
        self.requests.feeds.clear()
        self.account.ended = problem.code
        if not self.closed:
            self.write(errors.response(problem, fatal=True))
            self.transport.close()
