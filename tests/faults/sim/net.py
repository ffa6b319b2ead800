"""Connections between clients and a server: bytes take a while, in pieces; connections are reset
between any two bytes, fall silent, or are slow."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.faults.sim.loop import SimLoop

KERNEL = 64 << 10  # bytes that a side takes in without reading them
GIVES_UP = 60.0  # seconds after which the system takes a silent connection for broken
RESET = ConnectionResetError(104, "Connection reset by peer")


@dataclass(slots=True)
class Trouble:
    """What becomes of one connection: of the bytes `way` ("in": to the server; "out"), behind the
    `after`-th.  kind: reset, silent (they vanish, and so do those of the other way), or slow."""

    kind: str
    way: str
    after: int


class Network:
    """`accept` gives the protocol object of a connection, and the context it lives in; None:
    nobody listens.  `troubles`: of the next connections, one each."""

    def __init__(self, loop: SimLoop, random: Random) -> None:
        self.loop, self.random = loop, random
        self.accept: Callable[[], tuple[Any, Context]] | None = None
        self.troubles: deque[Trouble] = deque()
        self.ends: set[End] = set()  # the server's
        self.slow_for = 0  # causes that all is slow
        self.met = 0  # troubles that have come
        loop.connect = self.connect

    async def connect(self, factory: Callable[[], Any]) -> tuple[End, Any]:
        await asyncio.sleep(self.delay())
        if self.accept is None:
            raise ConnectionRefusedError(111, "Connection refused")
        made, context = self.accept()
        trouble = self.troubles.popleft() if self.troubles else None
        near = End(self, "in", factory(), copy_context(), trouble)
        far = End(self, "out", made, context, trouble)
        near.peer, far.peer = far, near
        self.ends.add(far)
        near.protocol.connection_made(near)
        self.loop.call_soon(far.protocol.connection_made, far, context=context)
        return near, near.protocol

    def delay(self) -> float:
        return (0.2 if self.slow_for else 0.001) * self.random.uniform(0.5, 4.0)

    def server_died(self) -> None:
        """Its connections are reset by the system."""
        ends, self.ends = self.ends, set()
        for end in sorted(ends, key=lambda end: end.number):
            end.over = True
            end.peer.break_later(RESET)


@dataclass(slots=True)
class Line:
    """Stands for a socket."""

    end: End
    family: int = socket.AF_INET6

    def setsockopt(self, *options: Any) -> None: ...

    def fileno(self) -> int:
        return 9

    def getsockname(self) -> tuple[str, int]:
        return ("sim", 1)

    getpeername = getsockname


@dataclass(eq=False)
class End(asyncio.Transport):
    """One side of a connection; `way` its bytes go."""

    net: Network
    way: str
    protocol: Any
    context: Context
    trouble: Trouble | None
    peer: End = field(init=False)
    over: bool = False  # nothing more is sent or received
    closing: bool = False
    sent: int = 0
    waiting: int = 0  # bytes that the other side has not taken
    inbox: deque[bytes] = field(default_factory=deque)
    high: int = 64 << 10
    reading: bool = True
    held: bool = False  # the protocol is asked to pause
    ended: bool = False  # the other side says no more
    _arrives: float = 0.0

    def __post_init__(self) -> None:
        self._extra: dict[str, Any] = {}
        self._under_way: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.number = self.net.random.getrandbits(40)
        self.line = Line(self)

    # -- asyncio's transport -----------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"socket": self.line, "peername": ("sim", 1)}.get(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = high or self.high

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return self.closing or self.over

    def can_write_eof(self) -> bool:
        return True

    def write(self, data: Any) -> None:
        data = bytes(data)
        if self.is_closing() or not data:
            return
        trouble = self.trouble
        if trouble is not None and self._meets(trouble, len(data)):
            data = data[: max(0, trouble.after - self.sent)]
        self.sent += len(data)
        self.waiting += len(data)
        while data:
            size = self.net.random.choice((1, 7, 100, 1 << 20, 1 << 20, 1 << 20))
            piece, data = data[:size], data[size:]
            self._later(self.peer.arrived, piece)
        if self.waiting > self.high and not self.held:
            self.held = True
            self.protocol.pause_writing()

    def write_eof(self) -> None:
        self._later(self.peer.said_all)

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True
        self._soon(self._read)

    def close(self) -> None:
        if not self.is_closing():
            self.closing = True
            self._later(self.peer.said_all)
            self._soon(self._lost, None)

    def abort(self) -> None:
        if not self.over:
            self.peer.break_later(RESET)
            self._soon(self._lost, None)

    # -- the line ----------------------------------------------------------------------------------

    def _meets(self, trouble: Trouble, size: int) -> bool:
        """Whether what is written now runs into it."""
        if trouble.way != self.way or self.sent + size <= trouble.after:
            return False
        if trouble.kind == "slow":
            return False
        self.trouble = self.peer.trouble = None
        self.net.met += 1
        if trouble.kind == "reset":
            for end in (self, self.peer):
                end.break_later(RESET, behind=end is self.peer)
        else:
            self.silent = self.peer.silent = True
            for end in (self, self.peer):
                end.break_later(TimeoutError(110, "Connection timed out"), GIVES_UP)
        return trouble.kind == "reset"

    silent = False

    def _later(self, do: Callable[..., None], *args: Any) -> None:
        """What this side sends comes to the other one, in order."""
        if self.silent:
            return
        delay = self.net.delay()
        if self.trouble is not None and self.trouble.kind == "slow":
            delay += self.net.random.uniform(0.1, 2.0)
            self.net.met += self.sent > self.trouble.after
        self._arrives = max(self._arrives, self.net.loop.time() + delay)
        self._under_way.append((do, args))
        self.net.loop.call_at(self._arrives, self._arrive, context=self.peer.context)

    def _arrive(self) -> None:
        """The next one, whatever timer it was: timers of the same time have no order."""
        do, args = self._under_way.popleft()
        do(*args)

    def break_later(self, why: OSError, after: float = 0.0, behind: bool = False) -> None:
        """This side learns that the connection is broken."""
        at = self.net.loop.time() + after + self.net.delay()
        if behind:
            at = max(at, self.peer._arrives)
        self.net.loop.call_at(at, self._lost, why, context=self.context)

    def _soon(self, do: Callable[..., None], *args: Any) -> None:
        self.net.loop.call_soon(do, *args, context=self.context)

    def _lost(self, why: OSError | None) -> None:
        if not self.over:
            self.over = self.closing = True
            self.net.ends.discard(self)
            self.inbox.clear()
            self.protocol.connection_lost(why)

    def arrived(self, piece: bytes) -> None:
        if self.over or self.silent:
            return
        self.inbox.append(piece)
        self._read()

    def said_all(self) -> None:
        self.ended = True
        self._read()

    def _read(self) -> None:
        while self.inbox and self.reading and not self.over:
            piece = self.inbox.popleft()
            self.peer.taken(len(piece))
            while piece and not self.over:
                room = self.protocol.get_buffer(len(piece))
                size = min(len(room), len(piece))
                room[:size] = piece[:size]
                piece = piece[size:]
                self.protocol.buffer_updated(size)
        if self.ended and not self.inbox and not self.over:
            self.ended = False
            if not self.protocol.eof_received():
                self.close()

    def taken(self, size: int) -> None:
        """The other side has taken so many bytes."""
        self.waiting -= size
        if self.held and self.waiting <= self.high // 4 and not self.is_closing():
            self.held = False
            self._soon(self._go_on)

    def _go_on(self) -> None:
        if not self.held and not self.over:
            self.protocol.resume_writing()
