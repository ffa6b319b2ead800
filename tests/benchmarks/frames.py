"""Many small frames: one row or a hundred each, on one connection or fifty.

A server in a thread of this process, a client in another process that sends msgpack frames made
beforehand.  Frames that wait together are applied as one step; the same frames go to the same
server with that turned off in alternation, and what is compared is its CPU time per frame.

CPU µs    of the server (all its threads) per frame, the median of some runs
alone     the same where each frame is a step of its own
p50, p99  of the time until its reply from when a frame was due, where frames are due at half the
          rate that was reached
late      p99 of how late the client sent them: that much of p99 may not be the server's
one       the time a frame takes that comes by itself, median, and where groups are turned off
"""

from __future__ import annotations

import gc
import json
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from itertools import product
from statistics import median

import numpy as np

from dsms.engine import Engine
from dsms_client.protocol import HEADER, VERSION, pack
from tests.benchmarks.harness import Options, Section, Table, clean_heap
from tests.server.harness import Running

STREAM = "CREATE STREAM s (k STRING, v INT, f FLOAT, t TIMESTAMP) TIMESTAMP BY t"
GROUP_BY = (
    "CREATE QUERY q AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 1 s] GROUP BY k"
)
HEADER_ROW = (
    "frames",
    "connections",
    "data folder",
    "query",
    "frames/s",
    "rows/s",
    "CPU µs",
    "alone : together, CPU",
    "p50, ms",
    "p99, ms",
    "late, ms",
    "one, ms",
    "one alone, ms",
)
UNDER_WAY = 4096  # frames on their way, of all connections


def section(options: Options) -> Section:
    """Rates, CPU and latencies of small frames."""
    gc.set_threshold(200_000, 20, 20)  # as a server does in a process of its own
    sys.setswitchinterval(0.0005)
    count, repeats = options.pick((40_000, 3), (4_000, 1), (200, 1))
    cases = list(product((None, GROUP_BY), (False, True), (1, 100), (1, 50)))
    rows = [
        _case(size, connections, stored, query, count if size == 1 else count // 8, repeats)
        for query, stored, size, connections in options.pick(cases, cases, cases[::7])
    ]
    return Section(
        "Small frames", __doc__ or "", [Table("Frames of msgpack", HEADER_ROW, tuple(rows))]
    )


def _case(
    size: int, connections: int, stored: bool, query: str | None, count: int, repeats: int
) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(folder if stored else None)
        engine.execute(STREAM)
        if query is not None:
            engine.execute(query)
        server = Running(engine)
        most = server.server.core.worker.most
        try:
            client = _Client(server.port, size, connections)
            client.run(count // 4)  # what is loaded or compiled on the way
            with clean_heap():  # as a server does when its code is loaded
                figures, ones = _figures(server, client, count, repeats)
                rate = median(rate for _, rate in figures[most])
                paced = client.run(min(count, int(rate)), rate=rate / 2)
            client.close()
        finally:
            server.stop()
    used, alone = (median(cpu for cpu, _ in figures[groups]) * 1e6 for groups in (most, 1))
    return (
        "1 row" if size == 1 else f"{size} rows",
        str(connections),
        "yes" if stored else "no",
        "GROUP BY" if query else "none",
        f"{rate:,.0f}",
        f"{rate * size:,.0f}",
        f"{used:.1f}",
        f"{alone / used:.2f}",
        *(f"{paced[x] * 1e3:.2f}" for x in ("p50", "p99", "late")),
        *(f"{x * 1e3:.2f}" for x in (ones[most], ones[1])),
    )


def _figures(
    server: Running, client: _Client, count: int, repeats: int
) -> tuple[dict[int, list[tuple[float, float]]], dict[int, float]]:
    """By how many frames may go together: CPU seconds per frame and frames per second of each run,
    and the seconds that a frame takes by itself."""
    worker = server.server.core.worker
    most = worker.most
    figures: dict[int, list[tuple[float, float]]] = {most: [], 1: []}
    ones: dict[int, float] = {}
    for _, groups in product(range(repeats), (most, 1)):
        worker.most = groups
        part = count if groups > 1 else max(count // 8, 1)
        cpu = time.process_time()
        seconds = client.run(part)["seconds"]
        figures[groups].append(((time.process_time() - cpu) / part, part / seconds))
    for groups in (most, 1):
        worker.most = groups
        ones[groups] = client.run(min(count, 300), alone=True)["p50"]
    worker.most = most
    return figures, ones


class _Client:
    """The other process; each `run` goes on where the last one ended."""

    def __init__(self, port: int, size: int, connections: int) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.frames"]
        self._process = subprocess.Popen(
            [*command, str(port), str(size), str(connections)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, count: int, alone: bool = False, rate: float = 0) -> dict[str, float]:
        """Send so many frames: as fast as they are taken, one after the other, or so many in a
        second; how long it took, and replies did."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([count, alone, rate]), file=self._process.stdin, flush=True)
        found: dict[str, float] = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class _Connection:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(pack({"op": "hello", "id": 0, "version": VERSION}))
        self.out = memoryview(b"")
        self._got = bytearray()
        self.sent: deque[float] = deque()
        self.read(1)

    def read(self, least: int = 0) -> int:
        """Replies that have come."""
        found = 0
        while True:
            at = 0
            while len(self._got) - at >= 4:
                (length,) = HEADER.unpack_from(self._got, at)
                if len(self._got) - at - 4 < length:
                    break
                at += 4 + length
                found += 1
            del self._got[:at]
            if found and found >= least:
                return found
            try:
                piece = self.socket.recv(1 << 18)
            except BlockingIOError:
                return found
            if not piece:
                raise EOFError("the server closed the connection")
            self._got += piece


def _frames(first: int, count: int, size: int) -> list[bytes]:
    rng = np.random.default_rng(first)
    keys = [f"key{i}" for i in rng.integers(0, 100, count * size)]
    values, floats = rng.integers(0, 1000, count * size).tolist(), rng.random(count * size).tolist()
    out = []
    for k in range(count):
        rows = [
            [keys[j], values[j], floats[j], (first + k) * size * 100 + (j - k * size) * 100]
            for j in range(k * size, (k + 1) * size)
        ]
        out.append(pack({"op": "ingest", "id": first + k, "stream": "s", "rows": rows}))
    return out


def _serve_runs(port: int, size: int, connections: int) -> None:
    conns = [_Connection(port) for _ in range(connections)]
    first = 1
    for line in sys.stdin:
        count, alone, rate = json.loads(line)
        frames = _frames(first, count, size)
        first += count
        took, waits, late = _send(conns, frames, 1 if alone else UNDER_WAY, rate)
        p50, p99 = np.percentile(waits, [50, 99])
        told = {"seconds": took, "p50": p50, "p99": p99, "late": np.percentile(late, 99)}
        print(json.dumps(told), flush=True)


def _send(
    conns: list[_Connection], frames: list[bytes], most: int, rate: float
) -> tuple[float, list[float], list[float]]:
    """Send frames, `most` under way, `rate` a second (0: whatever is taken), spread over the
    connections.

    Seconds in all; of each reply those since its frame was due (or sent, where it may be sent at
    any time); of each frame how long after that it was sent."""
    waits: list[float] = []
    late: list[float] = []
    began = time.perf_counter()
    sent = 0
    chunk = max(1, min(64, most // len(conns)))
    with selectors.DefaultSelector() as selector:
        for conn in conns:
            conn.socket.setblocking(False)
            selector.register(conn.socket, selectors.EVENT_READ, conn)
        turn = 0
        while len(waits) < len(frames):
            now = time.perf_counter()
            due = len(frames) if not rate else min(len(frames), int((now - began) * rate) + 1)
            while sent < due and sent - len(waits) < most:
                conn = conns[turn % len(conns)]
                turn += 1
                part = frames[sent : min(sent + chunk, due, len(waits) + most)]
                conn.socket.setblocking(True)
                conn.socket.sendall(b"".join(part))
                conn.socket.setblocking(False)
                now = time.perf_counter()
                numbers = range(sent, sent + len(part))
                dues = [began + k / rate for k in numbers] if rate else [now] * len(part)
                conn.sent.extend(dues)
                late += [now - at for at in dues]
                sent += len(part)
            for key, _ in selector.select(0.0005 if sent < len(frames) and rate else None):
                found = key.data.read()
                now = time.perf_counter()
                waits += [now - key.data.sent.popleft() for _ in range(found)]
    return time.perf_counter() - began, waits, late


if __name__ == "__main__":
    _serve_runs(*(int(text) for text in sys.argv[1:4]))
