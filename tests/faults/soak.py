"""Slow readers, floods, registrations, and connections that end anyhow, all at once and for long:
what the server holds stays flat, and a neighbour's small frames are answered in time.

    python -m tests.faults soak --minutes 10 [--seed S]
    python -m tests.faults soak --night               the same for eight hours

Each second memory (RSS), descriptors, threads and files are counted.  From the warm-up on a line is
laid through each of them; told is how steep it is, and by how much the neighbour's frames were late
(from sending a row to reading its result).  Beside it stands by how much its pauses were late, for
which no server is asked: so long the machine let it wait for a processor.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

from dsms.errors import DsmsError
from dsms_client.sync import connect
from tests.faults.cases import draw
from tests.server.harness import Peer
from tests.server.process import Process
from tests.waiting import wait_until

WARM = 0.4  # of the time
STEEP = {"rss": 1.0, "descriptors": 0.5, "threads": 0.5, "files": 1.0}  # a minute (MB, or number)
LATE = 100.0  # ms
PAUSE = 0.02  # seconds between two frames of the neighbour
FRAME = 5000  # rows of a flood's frame
OPTIONS = "subscriber-bytes = 1000000\nping_seconds = 2.0\n"
DECLARED = """
CREATE STREAM small (v INT);
CREATE QUERY told AS SELECT v FROM small WITH (result_log = 1000);
CREATE STREAM flood (k INT, v FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 10 s;
CREATE QUERY rows AS SELECT k, v, t FROM flood WITH (result_log = 20000);
CREATE QUERY sums AS SELECT k, SUM(v), COUNT(*) FROM flood [RANGE 5 s SLIDE 1 s] GROUP BY k
    WITH (result_log = 1000)
"""
QUESTIONS = (
    "SELECT k, SUM(v) AS s FROM flood [RANGE 9 s] GROUP BY k ORDER BY s",
    "SELECT COUNT(*) FROM flood [RANGE 9 s] WHERE v % 7 = 3",
    "SHOW SESSIONS",
    "SHOW MEMORY",
    "SHOW QUERIES FULL",
    "SELECT 1 / 0",
)


@dataclass(slots=True)
class Soak:
    """Everybody who troubles a server.  `rounds`: how often each does it; None: until the end."""

    port: int
    seed: int
    rounds: int | None = None
    slowly: int = 200  # pieces that a slow reader reads, at most
    done: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)
    problems: list[BaseException] = field(default_factory=list)
    _sent: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def actors(self) -> list[threading.Thread]:
        """A thread each."""
        ones = [self.flood, self.flood, self.read_slowly, self.read_slowly, self.register,
                self.register, self.come_and_go, self.ask, self.garble]  # a list  # fmt: skip
        return [
            threading.Thread(target=self._act, args=(act, Random(f"{self.seed} {n}")))
            for n, act in enumerate(ones)
        ]

    def _act(self, act: Callable[[Random], Iterator[None]], random: Random) -> None:
        try:
            for _ in act(random):
                self.done[act.__name__] += 1
                if self.rounds is not None and self.done[act.__name__] >= self.rounds:
                    return
                if self.over.is_set():
                    return
        except BaseException as problem:
            self.problems.append(problem)
            self.over.set()

    def flood(self, random: Random) -> Iterator[None]:
        """Frames of many rows, one after the other."""
        with connect(port=self.port) as db:
            while True:
                with self._lock:  # rows are in order
                    first, self._sent = self._sent, self._sent + FRAME
                    numbers = np.arange(first, first + FRAME)
                    t = pa.array(numbers * 100, pa.int64()).cast(pa.timestamp("us"))
                    columns = {"k": numbers % 50, "v": numbers / 7, "t": t}
                    db.ingest("flood", pa.table(columns))
                yield

    def read_slowly(self, random: Random) -> Iterator[None]:
        """A subscription of which little is read, until the reader breaks it off."""
        while True:
            with Peer(self.port, receive_buffer=4096) as peer:
                peer.send("hello", version=1, data=random.choice(("rows", "arrow", "auto")))
                peer.send("subscribe", query="rows", changes=random.random() < 0.5)
                peer.socket.settimeout(0.1)
                for _ in range(random.randint(1, self.slowly)):
                    with contextlib.suppress(TimeoutError):
                        if not peer.socket.recv(512) or self.over.wait(0.02):
                            break
            yield

    def register(self, random: Random) -> Iterator[None]:
        """Streams, tables and queries that come and go."""
        tag = f"x{random.randrange(1 << 40)}"
        with connect(port=self.port) as db:
            for number in range(1 << 60):
                n = f"{tag}_{number}"
                self._said(lambda n=n: db.execute(  # type: ignore[misc]
                    f"CREATE STREAM s_{n} (k INT, v INT) RETAIN 1 h; "
                    f"CREATE TABLE t_{n} (k INT PRIMARY KEY); INSERT INTO t_{n} VALUES (1), (2); "
                    f"CREATE QUERY q_{n} AS SELECT s.k, COUNT(*) FROM s_{n} [RANGE 1 s] s, t_{n} t "
                    f"WHERE s.k = t.k GROUP BY s.k; "
                    f"CREATE QUERY p_{n} AS SELECT MAX(v) FROM flood [RANGE 4 s SLIDE 2 s]"
                ))  # statements  # fmt: skip
                with db.subscribe(f"q_{n}"):
                    db.ingest(f"s_{n}", [[k % 3, k] for k in range(20)])
                self._said(lambda: db.execute("SELECT nothing FROM nowhere"))
                db.execute(
                    f"DROP QUERY p_{n}; DROP QUERY q_{n}; DROP TABLE t_{n}; DROP STREAM s_{n}"
                )
                yield

    def come_and_go(self, random: Random) -> Iterator[None]:
        """Connections that end: with a word or without, in the midst of a request, reset."""
        while True:
            peer = Peer(self.port)
            with contextlib.suppress(OSError, EOFError), peer:
                match random.randrange(5):
                    case 0:
                        peer.ask("hello", version=1)
                    case 1:
                        peer.raw(b"\0\0\4\0half a frame")
                    case 2:
                        peer.raw(b"GET / HTTP/1.1\r\n\r\n")
                    case 3:
                        peer.send("subscribe", query="sums")
                        reset(peer)
                    case 4:
                        peer.send(
                            "execute", sql="SELECT k, SUM(v) FROM flood [RANGE 9 s] GROUP BY k"
                        )
            self.over.wait(0.005)
            yield

    def garble(self, random: Random) -> Iterator[None]:
        """Conversations of the fuzzer of the protocol."""
        while True:
            peer = Peer(self.port)
            with contextlib.suppress(OSError, EOFError), peer:
                peer.raw(draw("wire", self.seed, random.randrange(1 << 40)))
                peer.socket.shutdown(socket.SHUT_WR)
                peer.rest()
            yield

    def ask(self, random: Random) -> Iterator[None]:
        """One-time queries."""
        with connect(port=self.port) as db:
            while True:
                self._said(lambda: db.query(random.choice(QUESTIONS)))
                yield

    def _said(self, ask: Callable[[], object]) -> None:
        try:
            ask()
        except DsmsError as problem:
            self.codes[problem.code] += 1
            if problem.code in ("DS611", "DS612") or problem.code.startswith("DS9"):
                raise


def reset(peer: Peer) -> None:
    """Its connection is gone without a farewell."""
    on, seconds = 1, 0
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", on, seconds))


# -- what is counted


def held(pid: int, folders: list[Path]) -> dict[str, float]:
    """What a process holds: MB, and numbers."""
    process = Path(f"/proc/{pid}")
    pages = int((process / "statm").read_text().split()[1])
    return {
        "rss": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        "descriptors": len(os.listdir(process / "fd")),
        "threads": len(os.listdir(process / "task")),
        "files": sum(len(files) for folder in folders for *_, files in os.walk(folder)),
    }


def slope(values: list[float]) -> float:
    """Of the line through values that are a second apart: by how much they grow in a minute."""
    if len(values) < 2:
        return 0.0
    line = statistics.linear_regression(range(len(values)), values)
    return line.slope * 60


class Neighbour:
    """A client of its own process that sends a row and reads its result, again and again."""

    def __init__(self, port: int) -> None:
        self.late: list[float] = []  # ms
        self.paused: list[float] = []  # ms that its pauses were longer than they should be
        command = [sys.executable, "-m", __name__, "neighbour", str(port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            late, paused = map(float, line.split())
            self.late.append(late)
            self.paused.append(paused)

    def stop(self) -> str:
        """How late its frames were, in words."""
        self._process.terminate()
        self._process.wait()
        self._thread.join()
        return self.told()

    def told(self) -> str:
        return (
            f"{len(self.late)} frames of a neighbour: late by {_late(self.late)}; "
            f"its pauses: {_late(self.paused)}"
        )


def _late(values: list[float]) -> str:
    late = np.array(values)
    p50, p99, most = (float(np.quantile(late, q)) for q in (0.5, 0.99, 1.0))
    over = int((late > LATE).sum())
    return (
        f"{p50:.1f} ms (median), {p99:.1f} ms (99 %), {most:.1f} ms (most), "
        f"{over} of them by more than {LATE:g} ms"
    )


def be_neighbour(port: int, now: Callable[[], float] = time.perf_counter) -> None:
    pause, number = threading.Event(), 0
    with connect(port=port) as db, db.subscribe("told") as results:
        while True:
            began = now()
            db.ingest("small", [[number]])
            while not any(row[0] == number for row in next(results).rows):
                pass
            ended = now()
            number += 1
            pause.wait(PAUSE)
            late, paused = ended - began, now() - ended - PAUSE
            print(f"{1000 * late:.2f} {1000 * paused:.2f}", flush=True)


# -- the whole


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[Process, list[Path]]]:
    """A server, and the folders in which it has files."""
    scratch = folder / "tmp"
    scratch.mkdir(parents=True)
    (folder / "dsms.toml").write_text(OPTIONS)
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(scratch)
    try:
        server = Process(str(folder / "data"), options=("--config", str(folder / "dsms.toml")))
    finally:
        os.environ.pop("TMPDIR")
        if before is not None:
            os.environ["TMPDIR"] = before
    try:
        with connect(port=server.port) as db:
            db.execute(DECLARED)
        yield server, [folder / "data", scratch]
    finally:
        server.kill()


def rounds(count: int, seed: int, folder: Path) -> Soak:
    """Everybody does it so often; then the server holds what it held.  Raises AssertionError."""
    with served(folder) as (server, folders):
        before = held(server.pid, folders)
        soak = Soak(server.port, seed, count, slowly=20)
        threads = soak.actors()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not soak.problems, soak.problems
        wait_until(
            lambda: held(server.pid, folders)["descriptors"] <= before["descriptors"] + ROOM,
            f"as few descriptors as before, {before['descriptors']}",
        )
        with connect(port=server.port) as db:
            left = [row[0] for row in db.query("SHOW QUERIES FULL").rows]
        assert left == ["told", "rows", "sums"], left
    return soak


ROOM = 3  # descriptors of logs and mapped files of what is kept


def for_long(
    minutes: float,
    seed: int,
    folder: Path,
    say: Callable[[str], object],
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Whether all was flat.  `clock`: seconds that pass."""
    second = threading.Event()
    with served(folder) as (server, folders):
        neighbour, soak = Neighbour(server.port), Soak(server.port, seed)
        threads = soak.actors()
        for thread in threads:
            thread.start()
        counted: list[dict[str, float]] = []
        until = clock() + minutes * 60
        while clock() < until and not soak.over.is_set():
            counted.append(held(server.pid, folders))
            if len(counted) % 30 == 1:
                now = ", ".join(f"{what} {value:.0f}" for what, value in counted[-1].items())
                say(f"{len(counted)} s: {now}; {dict(soak.done)} {dict(soak.codes)}")
            second.wait(1.0)
        soak.over.set()
        say(neighbour.stop())
        for thread in threads:
            thread.join()
        if soak.problems:
            raise soak.problems[0]
    flat = True
    for what, most in STEEP.items():
        values = [each[what] for each in counted[int(len(counted) * WARM) :]]
        grows = slope(values)
        flat &= grows <= most
        much = "" if grows <= most else f", more than {most:g}"
        span = f"{values[0]:.0f} to {values[-1]:.0f} (most {max(values):.0f})"
        say(f"{what}: {span}, {grows:+.2f} a minute{much}")
    return flat


def main() -> int:
    if sys.argv[1:2] == ["neighbour"]:
        be_neighbour(int(sys.argv[2]))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--night", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        minutes = 480.0 if args.night else args.minutes
        flat = for_long(minutes, args.seed, Path(folder), lambda text: print(text, flush=True))
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(main())
