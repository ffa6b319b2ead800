"""Connections that come and go: with a hello, with a port check, reset, in the midst of a frame.
What the server holds for them goes with them.

    python -m tests.faults connects --count 100000 [--seed S] [--seconds T]
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from dsms_client.protocol import pack
from tests.faults.soak import held
from tests.server.process import Process
from tests.waiting import WAIT, wait_until

WARM = 5000  # connects before anything is counted
MOST = 20.0  # MB that the others may add
KINDS = ("hello", "hello", "check", "reset", "half a frame", "HTTP")
ADDRESSES = 200  # of this machine: each has so many ports


def come_and_go(
    port: int, count: int, random: Random, over: Callable[[], bool] = lambda: False
) -> Counter[str]:
    """So many connections, one after the other; how many of each kind."""
    done: Counter[str] = Counter()
    hello = pack({"op": "hello", "id": 1, "version": 1})
    for number in range(count):
        kind = random.choice(KINDS)
        address = (f"127.0.1.{1 + number % ADDRESSES}", 0)
        with (
            socket.create_connection(("127.0.0.1", port), WAIT, address) as peer,
            contextlib.suppress(ConnectionError),
        ):
            _say(peer, kind, hello)
        done[kind] += 1
        if number % 100 == 0 and over():
            break
    return done


def _say(peer: socket.socket, kind: str, hello: bytes) -> None:
    match kind:
        case "hello":
            peer.sendall(hello)
            peer.recv(4096)
        case "reset":
            on, seconds = 1, 0
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", on, seconds))
        case "half a frame":
            peer.sendall(hello[: len(hello) // 2])
        case "HTTP":
            peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
            peer.recv(4096)


def main(clock: Callable[[], float] = time.monotonic) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="stop then, whatever is left of --count")
    args = parser.parse_args()
    until = None if args.seconds is None else clock() + args.seconds
    with tempfile.TemporaryDirectory() as folder:
        server = Process(str(Path(folder) / "data"))
        try:
            random = Random(args.seed)
            alone = held(server.pid, [])["descriptors"]
            come_and_go(server.port, WARM, random)
            before = held(server.pid, [])
            done = come_and_go(
                server.port, args.count, random,
                lambda: until is not None and clock() > until
            )  # arguments  # fmt: skip
            wait_until(lambda: held(server.pid, [])["descriptors"] <= alone, "the last ones' end")
            after = held(server.pid, [])
        finally:
            server.kill()
    grown = after["rss"] - before["rss"]
    print(f"{done.total()} connections {dict(done)}")
    threads = f"{before['threads']:.0f} and {after['threads']:.0f} threads"
    print(f"{before['rss']:.1f} MB before, {grown:+.1f} MB; {threads}")
    return int(grown > MOST)


if __name__ == "__main__":
    sys.exit(main())
