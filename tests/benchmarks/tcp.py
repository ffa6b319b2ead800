"""A server of dsms in its own process, and a bare socket that sends frames made beforehand.

So what is timed is the server: reading frames, decoding, the engine, answering; not the work of a
client.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa

from dsms_client.columns import ipc
from dsms_client.protocol import HEADER, VERSION, pack
from tests.benchmarks.harness import Took

PATIENCE = 300.0  # seconds after which a socket is given up
SMALL = 1 << 14  # rows of a msgpack frame


@contextlib.contextmanager
def server(warm: bool = True, *more: str) -> Iterator[Server]:
    """A server on a free port, with `more` options, stopped when done.

    `warm`: its kernels are ready before the first row, as they are in any server that is started
    without options; else they are loaded, or compiled, when they are first needed."""
    command = [
        sys.executable,
        "-m",
        "dsms_client",
        "serve",
        "--port",
        "0",
        *(() if warm else ("--no-warmup",)),
        *more,
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"listens on [^ ]*:(\d+)", line):
                yield Server(process, int(found[1]))
                break
        else:
            raise RuntimeError("the server did not start: " + "".join(lines))
    finally:
        process.terminate()
        process.communicate()


class Server:
    """A running server process."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port

    def cpu(self) -> float:
        """CPU seconds it has used so far."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(t.read_text().split()[0]) for t in threads) / 1e9

    def wire(self, data: str = "arrow", **shows: str) -> Wire:
        """A connection; `data`: how results travel; `shows`: who is there."""
        return Wire(self.port, data, **shows)


class Wire:
    """A connection on which requests are answered in order."""

    def __init__(self, port: int, data: str, **shows: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._got = bytearray()
        self._ids = 0
        self.pushes: list[dict[str, Any]] = []
        self.ask("hello", version=VERSION, data=data, **shows)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def frame(self, op: str, **fields: Any) -> bytes:
        """A request's frame."""
        self._ids += 1
        return pack({"op": op, "id": self._ids, **fields})

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """A request's reply; pushes that come before it are kept."""
        self.socket.sendall(self.frame(op, **fields))
        return self.reply()

    def reply(self) -> dict[str, Any]:
        """The next reply.  Raises RuntimeError if it is an error."""
        while "push" in (message := self.read()):
            self.pushes.append(message)
        if "error" in message:
            raise RuntimeError(str(message["error"]))
        return message

    def push(self) -> dict[str, Any]:
        """The next push."""
        while not self.pushes:
            message = self.read()
            if "push" in message:
                self.pushes.append(message)
            elif "error" in message:
                raise RuntimeError(str(message["error"]))
        return self.pushes.pop(0)

    def read(self) -> dict[str, Any]:
        """The next frame, whatever it is."""
        (length,) = HEADER.unpack(self._take(4))
        return msgpack.unpackb(self._take(length), strict_map_key=False)

    def _take(self, count: int) -> bytes:
        while len(self._got) < count:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise EOFError("the server closed the connection")
            self._got += piece
        out = bytes(self._got[:count])
        del self._got[:count]
        return out


def arrow_frames(wire: Wire, stream: str, batches: Sequence[pa.RecordBatch]) -> list[bytes]:
    """Ingest requests that carry Arrow."""
    return [wire.frame("ingest", stream=stream, arrow=bytes(ipc(b))) for b in batches]


def row_frames(wire: Wire, stream: str, batches: Sequence[pa.RecordBatch]) -> list[bytes]:
    """Ingest requests that carry lists of rows."""
    lists = ([c.to_pylist() for c in b.columns] for b in batches)
    return [
        wire.frame("ingest", stream=stream, rows=list(zip(*columns, strict=True)))
        for columns in lists
    ]


def ingest(where: Server, wire: Wire, frames: Sequence[bytes], under_way: int = 8) -> Took:
    """Send all frames, a few ahead of their replies, until the last is answered: wall time, and CPU
    of the server."""
    cpu, began = where.cpu(), time.perf_counter()
    for k, frame in enumerate(frames):
        wire.socket.sendall(frame)
        if k >= under_way:
            wire.reply()
    for _ in range(min(under_way, len(frames))):
        wire.reply()
    return Took(time.perf_counter() - began, where.cpu() - cpu)
