"""A server in a thread of this process, and a raw-socket peer that speaks frames by hand."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgpack
import uvloop

from dsms_client.protocol import HEADER, pack
from dsms_server.accepting import Bound
from dsms_server.config import Config
from dsms_server.guesses import Guesses
from dsms_server.server import Server
from tests.waiting import WAIT


class Running:
    """A started server; `on_loop` runs a function in its event loop."""

    def __init__(
        self, engine: Any, take_ports: Callable[[], Bound] = Bound, **options: Any
    ) -> None:
        self.engine = engine
        self.config = Config(**{"port": 0, "hello_seconds": WAIT, **options})
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.server = Server(engine, self.config, take_ports=take_ports)
        self.await_(self.server.start())
        self.port = self.server.port

    def await_(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(WAIT)

    def on_loop(self, function: Any) -> Any:
        async def run() -> Any:
            return function()

        return self.await_(run())

    def stop(self) -> None:
        self.await_(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT)
        self._loop.close()

    def peer(self, **options: Any) -> Peer:
        return Peer(self.port, **options)

    def hours(self) -> Hours:
        """From now on what the server waits for comes when the test says so."""
        hours = Hours(self)
        self.on_loop(lambda: hours.begin(self.server))
        return hours


class Hours:
    """The clock of a server, and its timers."""

    def __init__(self, running: Running) -> None:
        self.now = 0.0
        self._running = running
        self._timers: list[SimpleNamespace] = []

    def begin(self, server: Server) -> None:
        server.later = self._later
        server.guesses = Guesses(server.config.guess_seconds, lambda: self.now)

    def _later(self, seconds: float, then: Any, *args: Any) -> SimpleNamespace:
        timer = SimpleNamespace(due=self.now + seconds, then=lambda: then(*args))
        timer.cancel = lambda: self._timers.remove(timer) if timer in self._timers else None
        self._timers.append(timer)
        return timer

    @property
    def waiting(self) -> list[float]:
        """When what is waited for is due."""
        return self._running.on_loop(lambda: sorted(timer.due - self.now for timer in self._timers))

    def go_on(self, seconds: float) -> None:
        """So much time passes."""

        def go() -> None:
            until = self.now + seconds
            while due := [timer for timer in self._timers if timer.due <= until]:
                timer = min(due, key=lambda timer: timer.due)
                self._timers.remove(timer)
                self.now = max(self.now, timer.due)
                timer.then()
            self.now = until

        self._running.on_loop(go)


class Peer:
    """A TCP connection on which bytes, frames and requests are sent as a test wants them."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(WAIT)
        self.socket.connect(("127.0.0.1", port))
        self._bytes = b""
        self._ids = 0
        self.pushes: list[dict] = []
        self.replies: dict[Any, dict] = {}

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send(self, op: str, **fields: Any) -> int:
        """Send a request, return its id."""
        self._ids += 1
        self.raw(pack({"op": op, "id": self._ids, **fields}))
        return self._ids

    def ask(self, op: str, **fields: Any) -> dict:
        """Send a request and wait for its reply; pushes that come before are kept in `pushes`."""
        return self.reply(self.send(op, **fields))

    def reply(self, ident: Any) -> dict:
        while ident not in self.replies:
            self._keep(self.read())
        return self.replies.pop(ident)

    def push(self) -> dict:
        while not self.pushes:
            self._keep(self.read())
        return self.pushes.pop(0)

    def _keep(self, message: dict) -> None:
        if "push" in message:
            self.pushes.append(message)
        else:
            self.replies[message["id"]] = message

    def read(self) -> dict:
        """The next frame, whatever it is."""
        (length,) = HEADER.unpack(self._take(4))
        return msgpack.unpackb(self._take(length))

    def rest(self) -> bytes:
        """All bytes until the server closes."""
        data, self._bytes = self._bytes, b""
        while piece := self.socket.recv(65536):
            data += piece
        return data

    def _take(self, count: int) -> bytes:
        while len(self._bytes) < count:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise EOFError("the server closed the connection")
            self._bytes += piece
        out, self._bytes = self._bytes[:count], self._bytes[count:]
        return out


def ended(connection: socket.socket) -> bool:
    """The other side has closed it."""
    with connection:
        try:
            return connection.recv(1) == b""
        except ConnectionResetError:
            return True


class Proxy:
    """Stands between client and server and can cut the line, or hold or lose what the server
    answers."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.lose_answers = False
        self.passing = threading.Event()  # cleared, answers wait
        self.passing.set()
        self.answered = threading.Event()  # something came back since it was last cleared
        self.accepted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            far = socket.create_connection(("127.0.0.1", self._target))
            self._pairs.append((near, far))
            threading.Thread(target=self._pipe, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pipe, args=(far, near, True), daemon=True).start()

    def _pipe(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        try:
            while piece := source.recv(65536):
                if answers:
                    self.answered.set()
                    self.passing.wait()
                if not (answers and self.lose_answers):
                    sink.sendall(piece)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                end.close()

    def cut(self) -> None:
        """Reset every connection."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self.passing.set()
        self.cut()
