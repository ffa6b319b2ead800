"""A server, a writer and a reader that are halted (SIGSTOP) for a while, in turn and now and then
killed: nothing is lost or told twice, and no second server gets at the folder meanwhile.

    python -m tests.faults pauses --count 12 [--seed S] [--pause 5]

While the server is halted a second one on its folder is refused (DS542); killed while it is halted
it gives the folder away.  A client that is halted for longer than it may be silent loses its
session, and goes on in another one.  At least that is waited for; --pause adds seconds to it.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from dsms_client.sync import Client, connect
from tests import forked
from tests.server.process import Process
from tests.waiting import wait_until

WHO = ("server", "writer", "reader", "server killed")
PING = 1.0  # seconds; who is silent three times as long is dead
FOR_EVER = 100_000  # seconds
ROWS = 20  # of a frame
ON = 5  # frames that must go through after each pause
DECLARED = """
CREATE STREAM s (n INT, t TIMESTAMP) TIMESTAMP BY t WITH (durability = sync);
CREATE QUERY q AS SELECT n FROM s WITH (result_log = 10000000)
"""


@dataclass(slots=True)
class Pauses:
    """`paused`: how often each was."""

    folder: Path
    seed: int
    pause: float = 0.0
    who: tuple[str, ...] = WHO
    paused: Counter[str] = field(default_factory=Counter)
    read: list[tuple[int, int]] = field(default_factory=list)  # number of the result row, its value

    def run(self, count: int) -> None:
        """So many pauses.  Raises AssertionError with what is wrong."""
        random = Random(self.seed)
        config = self.folder / "dsms.toml"
        config.write_text(f"ping_seconds = {PING}\n")
        order = [self.who[k % len(self.who)] for k in range(count)]
        random.shuffle(order)
        with ExitStack() as stack:
            server = Process(str(self.folder / "data"), options=("--config", str(config)))
            stack.callback(server.kill)
            watcher = stack.enter_context(
                connect(port=server.port, reconnect_seconds=FOR_EVER, client="watcher")
            )
            watcher.execute(DECLARED)
            writer = stack.enter_context(Child("writer", server.port))
            reader = stack.enter_context(Child("reader", server.port))
            for child in (writer, reader):
                child.goes_on()
            for who in order:
                self._halt(who, server, {"writer": writer, "reader": reader}, watcher)
                self.paused[who] += 1
                for child in (writer, reader):
                    child.goes_on()
            writer.ends()
            total = ROWS * len(writer.said)
            wait_until(lambda: len(reader.said) >= total, f"all {total} rows")
            self._judge(reader, total, watcher)

    def _halt(self, who: str, server: Process, children: dict[str, Child], watcher: Client) -> None:
        if who.startswith("server"):
            server.freeze()
            refused(server)
            self._wait()
            if who == "server":
                server.go_on()
                return
            server.kill()
            server.start()
            return
        before = sessions(watcher)[who]
        children[who].process.send_signal(signal.SIGSTOP)
        wait_until(lambda: who not in sessions(watcher), f"the end of the {who}'s session")
        self._wait()
        children[who].process.send_signal(signal.SIGCONT)
        wait_until(lambda: sessions(watcher).get(who, before) != before, f"the {who}'s next one")

    def _wait(self) -> None:
        if self.pause:
            threading.Event().wait(self.pause)

    def _judge(self, reader: Child, total: int, watcher: Client) -> None:
        self.read = [(int(seq), int(n)) for seq, n in map(str.split, reader.said)]
        assert self.read == [(n, n) for n in range(total)], "result rows are not as they should be"
        (stream,) = shown(watcher, "SHOW STREAMS")
        assert (stream["accepted"], stream["refused"], stream["late"]) == (total, 0, 0), stream


def sessions(watcher: Client) -> dict[str, int]:
    """The sessions of named clients."""
    return {row["client"]: row["session"] for row in shown(watcher, "SHOW SESSIONS")}


def shown(watcher: Client, sql: str) -> list[dict[str, Any]]:
    found = watcher.query(sql)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def refused(server: Process) -> None:
    """A second server on the same folder does not start."""
    command = [sys.executable, "-m", "dsms_client", "serve", "--no-warmup", "--port", "0"]
    second = forked.run([*command, "--data", server.data], stderr=subprocess.PIPE, text=True)
    assert second.returncode != 0 and "DS542" in second.stderr, second.stderr


class Child:
    """A client in a process of its own; what it says, a line for each frame or row."""

    def __init__(self, role: str, port: int) -> None:
        command = [sys.executable, "-m", __name__, role, str(port)]
        self.process = forked.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.said: list[str] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait()
        self._thread.join()

    def goes_on(self) -> None:
        """More comes."""
        more = len(self.said) + ON
        wait_until(lambda: len(self.said) >= more, "more of a client")

    def ends(self) -> None:
        """It is asked to end, and has."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._thread.join()
        self.process.wait()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)


def write(port: int) -> None:
    """Frames of consecutive numbers, each when the one before is acknowledged, until stdin ends."""
    over, first = threading.Event(), 0
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    with connect(port=port, reconnect_seconds=FOR_EVER, client="writer") as db:
        while not over.is_set():
            db.ingest("s", [[n, n] for n in range(first, first + ROWS)])
            first += ROWS
            print(first, flush=True)
            over.wait(0.01)
        db.heartbeat("s", first)


def read(port: int) -> None:
    """All result rows, from the first on."""
    with connect(port=port, reconnect_seconds=FOR_EVER, client="reader") as db:
        for push in db.subscribe("q", 0):
            for k, row in enumerate(push.rows):
                print(push.seq + k, row[0], flush=True)


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] in ("writer", "reader"):
        {"writer": write, "reader": read}[sys.argv[1]](int(sys.argv[2]))
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, default=5.0, help="seconds that each one takes more")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = Pauses(Path(folder), args.seed, args.pause)
        made.run(args.count)
    print(f"{made.paused.total()} pauses: {dict(made.paused)}; {len(made.read)} rows, each once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
