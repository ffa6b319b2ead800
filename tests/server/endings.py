"""A server in this process, and connections that end in every way: what is left of them?

python tests/server/endings.py leftovers COUNT     objects that only the cycle collector would find,
by ending python tests/server/endings.py memory ENDING COUNT bytes that COUNT more connections have
added, collector off
"""

from __future__ import annotations

import gc
import os
import socket
import struct
import sys
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
from harness import Peer, Running

from dsms_client import columns
from dsms_client.protocol import pack
from dsms_server.config import Config
from dsms_server.serve import make_engine
from dsms_server.server import Server
from dsms_server.tls import Door
from dsms_server.worker import Urgency

TOGETHER = 100  # connections that may be ending at the same time
RESET = struct.pack("ii", 1, 0)
CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01"
SCRIPT = "CREATE STREAM s (k INT, v FLOAT); CREATE QUERY q AS SELECT * FROM s"
BAD = (
    {"rows": [["x"]]},
    {"columns": {"z": [1]}},
    {"arrow": b"none"},
    {"rows": [["x", 1.0]] * 5000},
    {"arrow": columns.ipc(pa.table({"z": list(range(20_000))})).tobytes()},
)


def reset(peer: Peer) -> None:
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    peer.socket.close()


def half_a_frame(peer: Peer) -> None:
    peer.raw(pack({"op": "ping", "id": 1})[:6])
    reset(peer)


def half_a_large_frame(peer: Peer) -> None:
    peer.raw(struct.pack(">I", 1 << 20) + bytes([0x82]) + bytes(100_000))
    reset(peer)


def vanished_subscriber(peer: Peer) -> None:
    peer.ask("subscribe", query="q")
    peer.send("ingest", stream="s", rows=[[1, 0.5]] * 10)
    peer.push()
    reset(peer)


def vanished_in_a_statement(peer: Peer) -> None:
    peer.send("execute", sql="SELECT COUNT(*) FROM s")
    peer.send("ingest", stream="s", rows=[[1, 0.5]] * 5000)
    reset(peer)


def work(peer: Peer) -> None:
    peer.ask("execute", sql="SELECT COUNT(*) FROM s; SHOW QUERIES FULL")
    peer.ask("ingest", stream="s", rows=[[1, 0.5]] * 5000)
    peer.ask("subscribe", query="q")
    peer.ask("unsubscribe", query="q")


def mistakes(peer: Peer) -> None:
    for sql in ("SELECT", "SELECT nothing FROM s", "SELECT 1; SELECT 1 / 0"):
        assert "error" in peer.ask("execute", sql=sql)
    for data in BAD:
        peer.ask("ingest", stream="s", **data)
    assert "error" in peer.ask("subscribe", query="none")
    assert "error" in peer.ask("nonsense")


def said(first: bytes) -> Callable[[Peer], None]:
    def say(peer: Peer) -> None:
        peer.raw(first)
        peer.rest()

    return say


# How a connection ends; what is said to the HTTP port begins with "http"
ENDINGS: dict[str, Callable[[Peer], object]] = {
    "port check": lambda peer: None,
    "hello": lambda peer: peer.ask("hello", version=1, client=f"c{id(peer)}"),
    "half a frame": half_a_frame,
    "half a large frame": half_a_large_frame,
    "vanished subscriber": vanished_subscriber,
    "vanished in a statement": vanished_in_a_statement,
    "work": work,
    "mistakes": mistakes,
    "oversized": said(b"\xff" * 8),
    "browser": said(b"GET / HTTP/1.1\r\n\r\n"),
    "psql": said(struct.pack(">II", 17, 3 << 16) + b"user\0me\0\0"),
    "TLS": said(CLIENT_HELLO),
    "http port check": lambda peer: None,
    "http": said(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    "tls port check": lambda peer: None,
    "tls handshake not finished": lambda peer: (peer.raw(CLIENT_HELLO), reset(peer)),
    "tls in plain": said(b"help\r\n"),
}


class Ground:
    """A server without TLS and one with it, if there is a certificate."""

    def __init__(self) -> None:
        self.plain = Running(make_engine(Config()), http_port=0)
        cert, key = os.environ.get("DSMS_TEST_CERT"), os.environ.get("DSMS_TEST_KEY")
        self.secure = Running(make_engine(Config()), tls_cert=cert, tls_key=key) if cert else None
        with self.plain.peer() as peer:
            assert peer.ask("execute", sql=SCRIPT)["ok"]

    def endings(self) -> list[str]:
        return [name for name in ENDINGS if self.secure or not name.startswith("tls")]

    def end(self, name: str, count: int) -> None:
        """`count` connections that end so, until the server has nothing of them under way."""
        running = self.secure if name.startswith("tls") else self.plain
        assert running is not None
        port = running.server.http_port if name.startswith("http") else running.port
        assert port is not None
        for number in range(count):
            with Peer(port) as peer:
                ENDINGS[name](peer)
            if number % TOGETHER == 0 or number == count - 1:
                while running.on_loop(lambda: _busy(running.server)):
                    pass
                running.await_(_settled(running))


def _busy(server: Server) -> int:
    """Connections that the server still knows of."""
    door = server._listener
    coming = len(door._waiting) + len(door._coming) if isinstance(door, Door) else 0
    return len(server.sessions) + server.unprocessed + coming


async def _settled(running: Running) -> None:
    """The engine has done all that the ends of sessions asked of it."""
    await running.server.core.worker.call(lambda: None, Urgency.BULK)


def leftovers(count: int) -> None:
    ground = Ground()
    for name in ground.endings():
        ground.end(name, 2)
        gc.collect()
        gc.freeze()  # what there is stays
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        ground.end(name, count)
        gc.collect()
        left = Counter(f"{type(o).__module__}.{type(o).__name__}" for o in gc.garbage)
        print(name, sum(left.values()), dict(left.most_common(12)), sep="\t", flush=True)
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(name: str, count: int) -> None:
    ground = Ground()
    gc.disable()
    # until the allocator has seen the most that is there at a time
    ground.end(name, min(2000, count))
    before = resident()
    ground.end(name, count)
    print(resident() - before)


if __name__ == "__main__":
    if sys.argv[1] == "leftovers":
        leftovers(int(sys.argv[2]))
    else:
        memory(sys.argv[2], int(sys.argv[3]))
    sys.stdout.flush()
    os._exit(0)
