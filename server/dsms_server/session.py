"""One connection: bytes in, frames out, and the brakes on both.

Reading stops while this session's unprocessed bytes are over their bound, or while its own replies
pile up unread, so a fast writer is slowed and nothing is dropped.  Result pushes are taken from the
engine only when the ones before them have gone to the socket, so a slow reader fills its
subscription's bounded buffer and nothing else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Any

from dsms.api import Chunk, Push
from dsms.errors import DsmsError, UsageError
from dsms_client.frames import SCRATCH, Foreign, FrameBuffer, Oversized
from dsms_client.protocol import pack
from dsms_server import alive, clock, foreign
from dsms_server.account import Account
from dsms_server.changes import change_frames
from dsms_server.decode import SMALL, decoded
from dsms_server.feeds import SubscriptionFeed
from dsms_server.identities import Identity
from dsms_server.marked import ROOM, with_share
from dsms_server.parties import Host
from dsms_server.pushes import push_frames, rows_of
from dsms_server.replies import Replies
from dsms_server.requests import Requests
from dsms_server.threshold import HELLO_BYTES, Threshold
from dsms_server.worker import expected

WRITE_HIGH = 256 << 10  # bytes in the transport at which pushes wait
READ = 32 << 10  # bytes that are read at once, but of a large frame: hundreds of small ones
LINGER_SECONDS = 1.0  # how long a refused peer may go on talking before the connection is cut
TURN_SECONDS = 0.002  # how long pushes are written before other sessions get their turn


class Session(asyncio.BufferedProtocol):
    """The protocol object of one connection.  A `stranger` speaks plainly where TLS is asked
    for."""

    def __init__(self, server: Host, stranger: bool = False) -> None:
        self.server = server
        self.stranger = stranger
        self.transport: Any = None
        self.replies: Replies
        self.account: Account
        # from `connection_made` on, which a handshake that fails never sees
        self.requests: Requests
        self.unprocessed = 0
        self._frames = 0  # of the bytes under way, to be counted
        self.closed = False
        self.form = "rows"
        self.identity = Identity()
        self.changes = False
        self.threshold = Threshold(server)
        self._pulse: alive.Pulse | None = None
        self._buffer = self._first_buffer()
        self._intake: deque[bytes | memoryview] = deque()
        self._decoding = False
        self._outbox: deque[tuple[SubscriptionFeed, Iterator[bytes], bool]] = deque()
        self._pumping: asyncio.Handle | None = None
        self.write_paused = False
        self.read_paused = False
        self.half_closed = False
        self._grace: alive.Grace | None = None
        self._discarding = False
        self._said_all = False

    # -- asyncio callbacks -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.account = self.server.account_of(self)
        self.requests = Requests(self)
        self.replies = Replies(self)
        self.transport.set_write_buffer_limits(high=WRITE_HIGH)
        alive.watch(self.transport.get_extra_info("socket"))
        self.threshold.come(self)
        problem = self.server.admit(self)
        if problem is not None:
            self.refuse(None, problem)
            self.linger()

    def get_buffer(self, sizehint: int) -> memoryview:
        space = self._buffer.space()
        return space if len(space) > SCRATCH else space[:READ]

    def buffer_updated(self, nbytes: int) -> None:
        if self._discarding:
            return
        self.server.metrics.bytes_in.inc(nbytes)
        self._buffer.filled(nbytes)
        self.threshold.count(nbytes)
        try:
            for body in self._buffer.frames():
                self._accept(body)
                if self.threshold.waiting:
                    break
        except Foreign as problem:
            self._answer_foreigner(problem)
        except Oversized as problem:
            self.refuse(None, problem)
            self.linger()
        except Exception as problem:
            self.dismiss(expected(problem, "a session's bytes"))
        self.server.metrics.frames_in.inc(self._frames)
        self._frames = 0
        self.regulate()

    def eof_received(self) -> bool:
        """The peer has said all; what it asked is still answered.  Its subscriptions get what is
        due and are over: a peer that is gone looks no different, and would hold its session while
        its queries have nothing to say."""
        self.half_closed = True
        if self._said_all:
            self.transport.close()
        if self.unprocessed:
            self._grace = alive.Grace(self, promised=self._pulse is not None)
        self.close_if_done()
        # TLS has no half-closed connections
        return self.transport.get_extra_info("sslcontext") is None

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.threshold.lost()
        self.promised(None)
        if self._grace is not None:
            self._grace.stop()
            self._grace = None
        self._outbox.clear()
        self._buffer.clear()
        self.replies.over()
        self.requests.lost()
        self.server.gone(self)
        # it knows its session, as the session knows it: without this the pair would wait for the
        # garbage collector
        self.transport = None
        self._dissolve()

    def _dissolve(self) -> None:
        """The connection is gone; once nothing of it is under way, no object of it may hold another
        in a circle."""
        if self.closed and not self.unprocessed:
            for part in (self.requests, self.replies, self.threshold):
                vars(part).pop("session", None)

    def pause_writing(self) -> None:
        self.write_paused = True
        self.regulate()

    def resume_writing(self) -> None:
        self.write_paused = False
        self.replies.regulate()
        self.regulate()
        self._take_in()
        self._pump()

    @property
    def user(self) -> str | None:
        """Whose session it is; None: whoever may do all, or has not shown who he is."""
        return self.identity.user

    # -- in ----------------------------------------------------------------------------------------

    def _first_buffer(self) -> FrameBuffer:
        if self.threshold.guarded:
            return FrameBuffer(HELLO_BYTES, HELLO_BYTES + 4)
        return FrameBuffer(self.server.config.max_frame)

    def trusted(self) -> bool:
        """The peer has shown its token (or none is asked): full-size frames from now on, if there
        is a place."""
        if not self.threshold.prove():
            return False
        self._buffer.limit, self._buffer.size = self.server.config.max_frame, SCRATCH
        return True

    def promised(self, every: float | None) -> None:
        """The peer will send something every so many seconds (None: it promises nothing any
        more)."""
        if self._pulse is not None:
            self._pulse.stop()
        self._pulse = None if every is None else alive.Pulse(self, every)

    def _accept(self, body: bytes | memoryview) -> None:
        if self.stranger:
            raise Foreign.of("dsms")
        self._frames += 1
        self.hold(len(body))
        self._intake.append(body)
        if not self._decoding:
            self._take_in()

    def _take_in(self) -> None:
        """Decode what has come, in order: small frames here, big ones in another thread."""
        while self._intake and not (self._discarding or self._decoding or self.replies.waiting):
            body = self._intake.popleft()
            if self.threshold.guarded and not self.threshold.proven:
                self._judge(self.threshold.hello(body), len(body))
                continue
            if len(body) > SMALL:
                self._decoding = True
                self.server.loop.create_task(self._take_in_big(body))
                return
            self._judge(decoded(body, self._shape_of()), len(body))

    def _judge(self, message: dict[str, Any] | DsmsError, size: int) -> None:
        readable = not isinstance(message, DsmsError) or message.code != "DS600"
        if readable and not self.threshold.guarded and not self.threshold.prove():
            self.release(size)
        elif isinstance(message, DsmsError):
            self.refuse(getattr(message, "request_id", None), message)
            self.threshold.refused()
            self.release(size)
        else:
            self.requests.handle(message, size)

    async def _take_in_big(self, body: bytes | memoryview) -> None:
        message = await self.server.loop.run_in_executor(
            self.server.pool, decoded, body, self._shape_of()
        )
        self._judge(message, len(body))
        self._decoding = False
        self._take_in()
        self.close_if_done()

    def _shape_of(self) -> Any:
        # a statement on its way in this session may create or change the stream: then the engine
        # thread converts
        if self.requests.statements_wait:
            return lambda stream: None
        return self.server.core.names.shape_of

    def _answer_foreigner(self, problem: Foreign) -> None:
        # whether the connection may be encrypted: no, and the peer goes on in plain
        if problem.asks:
            self.write(b"N")
            self._buffer.skip(8)
            self.buffer_updated(0)
            return
        self.server.metrics.errors.labels(problem.code).inc()
        server = self.server
        self.write(foreign.answer(problem, server.http_port, self.stranger, server.postgres_port))
        self.linger()

    # -- brakes ------------------------------------------------------------------------------------

    def hold(self, size: int) -> None:
        self.unprocessed += size
        self.server.unprocessed += size

    def release(self, size: int) -> None:
        """A request of this many bytes has been dealt with."""
        self.unprocessed -= size
        self.server.unprocessed -= size
        if not (self._unusual or self.server.held):
            return  # thousands of times a second: nobody waits, and less work stops nobody
        self.regulate()
        self.server.relax()
        self.close_if_done()
        self._dissolve()

    @property
    def _unusual(self) -> bool:
        """Whether the end of a request may make a difference to the connection."""
        return self.read_paused or self.half_closed or self.closed or self._discarding

    def regulate(self) -> None:
        """Stop or resume reading, as the amount of unfinished work says."""
        if self.closed or self.transport.is_closing():
            return
        stop = self._must_wait()
        if stop and not self.read_paused:
            self.transport.pause_reading()
            self.server.metrics.paused.inc()
        elif not stop and self.read_paused:
            self.transport.resume_reading()
        self.read_paused = stop
        self.server.held.discard(self)
        if stop:
            self.server.held.add(self)

    def _must_wait(self) -> bool:
        config = self.server.config
        if self._discarding:
            return False
        bound = config.unprocessed_bytes // (2 if self.read_paused else 1)
        return (
            self.write_paused
            or self.threshold.waiting
            or self.server.quotas.waits(self.user)
            or self.replies.waiting
            or self.server.stopping
            or self.unprocessed > bound
            or self.requests.waiting_ingests >= config.max_requests
            or (
                self.unprocessed > 0
                and self.server.unprocessed
                > self.server.memory.bound(config.total_unprocessed_bytes)
            )
        )

    # -- out ---------------------------------------------------------------------------------------

    def write(self, frame: bytes) -> None:
        if not (self.closed or self._said_all or self.transport.is_closing()):
            self.server.metrics.bytes_out.inc(len(frame))
            self.transport.write(frame)
            if self.write_paused:
                self.replies.regulate()

    def expect(self, size: int) -> None:
        """An answer of about so many bytes is being written down (less, if negative)."""
        self.replies.expect(size)
        self._take_in()

    def reply(self, ident: Any, **fields: Any) -> None:
        self.write(pack({"id": ident, "ok": True, **fields}))

    def refuse(self, ident: Any, problem: DsmsError) -> None:
        """Answer a request with an error."""
        self.server.metrics.errors.labels(problem.code).inc()
        self.threshold.told(problem)
        self.write(_refusal(ident, problem))

    def deliver(self, feed: SubscriptionFeed, items: list[Push | Chunk]) -> None:
        """Results for one subscription; `grant` asks for more once they are in the socket."""
        if self.closed or self.requests.feeds.get(feed.query) is not feed:
            return
        ended = any(isinstance(item, Push) and item.kind == "end" for item in items)
        if ended:
            del self.requests.feeds[feed.query]
        limit = self.server.config.max_frame - (0 if feed.share is None else ROOM)
        frames: Iterator[bytes]
        if feed.changes:
            frames = change_frames(items, feed.query, feed.types, self.form, limit)
        else:
            frames = chain.from_iterable(
                push_frames(item, feed.query, feed.types, self.form, limit) for item in items
            )
        self.server.metrics.pushes.inc(len(items))
        self.account.rows_out += sum(map(rows_of, items))
        self._outbox.append((feed, self._guarded(feed, with_share(frames, feed.share)), ended))
        if self._pumping is None:
            self._pump()

    def forget(self, feed: SubscriptionFeed) -> None:
        """Drop what waits for a subscription that has been given up."""
        self._outbox = deque(entry for entry in self._outbox if entry[0] is not feed)

    def _pump(self) -> None:
        self._pumping = None
        until = clock.elapsed() + TURN_SECONDS
        while self._outbox and not self.write_paused and not self.closed and not self._discarding:
            feed, frames, ended = self._outbox[0]
            frame = next(frames, None)
            if frame is not None:
                if frame:
                    self.write(frame)
            else:
                self._outbox.popleft()
                if not ended:
                    self.server.core.delivery.grant(feed)
            if clock.elapsed() > until:
                self._pumping = self.server.loop.call_soon(self._pump)
                return
        self.close_if_done()

    def _guarded(self, feed: SubscriptionFeed, frames: Iterator[bytes]) -> Iterator[bytes]:
        """The frames; a fault of ours in making one ends the subscription with words."""
        try:
            yield from frames
        except Exception as problem:
            reported = expected(problem, f"results of {feed.query}")
            self.server.metrics.errors.labels(reported.code).inc()
            self.requests.give_up(feed)
            yield _end(feed, reported)

    @property
    def written(self) -> tuple[int, int]:
        """Changes when results go to the reader: up to which numbers they were given, how many
        bytes still wait."""
        return sum(
            feed.next_seq for feed in self.requests.feeds.values()
        ), self.transport.get_write_buffer_size()

    @property
    def unread(self) -> int:
        """Bytes of replies that the peer has not read, as last counted."""
        return self.replies.unread

    @property
    def waiting_bytes(self) -> int:
        """Of requests that are not answered, and of what the peer has not read.  Any thread may
        ask."""
        transport = self.transport
        unread = 0 if transport is None else transport.get_write_buffer_size()
        subs = [feed.sub for feed in list(self.requests.feeds.values())]
        return self.unprocessed + unread + sum(sub.pending_bytes for sub in subs if sub is not None)

    @property
    def quiet(self) -> bool:
        """Nothing it asked is unanswered, nothing waits to be written."""
        busy = self.unprocessed or self._outbox or self._intake or self._decoding
        return not busy and all(
            self.server.core.delivery.settled(feed) for feed in self.requests.feeds.values()
        )

    # -- the end -----------------------------------------------------------------------------------

    def close_if_done(self) -> None:
        if self._discarding:
            self._last_word()
        elif self.half_closed and self.quiet and not self.closed:
            self.transport.close()

    def linger(self) -> None:
        """Listen no more, answer what was asked before, and let the peer read it: an immediate
        close would wipe the answers out on their way."""
        self._discarding = True
        for body in self._intake:
            self.hold(-len(body))
        self._intake.clear()
        self.regulate()
        self._last_word()

    def _last_word(self) -> None:
        if (
            self._said_all
            or self.unprocessed
            or self._decoding
            or self.closed
            or self.transport.is_closing()
        ):
            return
        self._said_all = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.server.loop.call_later(LINGER_SECONDS, self.transport.close)

    def dismiss(self, problem: DsmsError) -> None:
        """End the session from this side, with the reason as a last frame."""
        if not self.closed:
            self.account.ended = problem.code
            self.refuse(None, problem)
            self.transport.close()

    def take_back(self, feed: SubscriptionFeed, problem: DsmsError, seq: int | None = None) -> None:
        """End a subscription from this side, with the reason; `seq`: of the first row that is not
        given any more."""
        if self.closed or self.requests.feeds.get(feed.query) is not feed:
            return
        feed.next_seq = feed.next_seq if seq is None else seq
        self.forget(feed)
        self.requests.give_up(feed)
        self.write(_end(feed, problem))

    def farewell(self, problem: UsageError) -> None:
        """The server stops: each subscription gets its `end`, then the connection is closed."""
        for feed in list(self.requests.feeds.values()):
            self.forget(feed)
            self.write(_end(feed, problem))
        self.requests.feeds.clear()
        self.account.ended = problem.code
        if not self.closed:
            self.transport.close()


def _end(feed: SubscriptionFeed, problem: DsmsError) -> bytes:
    """The last push of a subscription."""
    return pack(
        {
            "push": feed.query,
            "seq": feed.next_seq,
            "kind": "end",
            "at": None,
            "data": None,
            "message": problem.message,
            "code": problem.code,
        }
    )


def _refusal(ident: Any, problem: DsmsError) -> bytes:
    """The reply that says what is wrong, whatever text is in it."""
    try:
        return pack({"id": ident, "error": problem.fields()})
    except (UnicodeError, TypeError, ValueError, OverflowError):
        return pack(
            {"id": ident, "error": {"code": problem.code, "message": ascii(problem.message)}}
        )
