"""`dsms subscribe --output FILE`, killed again and again while rows come: what the files hold, each
read up to where it was cut and followed by one that begins behind it, is every row once."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from dsms_client.sync import connect
from tests import forked
from tests.faults.sink_points import FORMS, WORDS, Row, readable
from tests.server.process import Process
from tests.waiting import wait_until

DECLARED = """
CREATE STREAM s (w STRING, n INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE QUERY q AS SELECT w, n FROM s WITH (result_log = 10000000)
"""
FRAME = 50  # rows
MOST = 10_000  # bytes that a file has when its writer is killed, at most


def killed_again_and_again(kills: int, seed: int, folder: Path) -> int:
    """How many kills there were.  Raises AssertionError with what differs."""
    random, server = Random(seed), Process(str(folder / "served"))
    try:
        with connect(port=server.port) as db:
            db.execute(DECLARED)
        got: dict[str, list[Row]] = {form: [] for form in FORMS}
        done = 0
        with flood(server.port) as sent:
            for number in range(kills):
                form = FORMS[number % len(FORMS)]
                path = folder / f"{number}.{form}"
                sink = _sink(server.port, path, len(got[form]))
                size = random.randint(1, MOST)
                wait_until(lambda p=path, n=size: p.exists() and p.stat().st_size >= n)  # type: ignore[misc]
                sink.kill()
                sink.wait()
                got[form] += readable(form, path.read_bytes())
                done += 1
        total = sent[0]
        for form, rows in got.items():
            path = folder / f"last.{form}"
            rest = _sink(server.port, path, len(rows), "--count", str(total - len(rows)))
            assert len(rows) == total or rest.wait() == 0
            rest.kill()
            rest.wait()
            rows += readable(form, path.read_bytes()) if len(rows) < total else []
            assert rows == [(n, WORDS[n % len(WORDS)], n) for n in range(total)], form
    finally:
        server.kill()
    return done


def _sink(port: int, path: Path, start: int, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dsms_client", "subscribe", "q", "--port", str(port),
               "--from", str(start), "--output", str(path), "--format",
               path.suffix[1:], *more]  # a command  # fmt: skip
    return forked.Popen(command, stderr=subprocess.DEVNULL)


@contextmanager
def flood(port: int) -> Iterator[list[int]]:
    """Rows without end meanwhile; how many there were."""
    sent, over = [0], threading.Event()

    def send() -> None:
        with connect(port=port) as db:
            while not over.is_set():
                numbers = range(sent[0], sent[0] + FRAME)
                db.ingest("s", [[WORDS[n % len(WORDS)], n, n] for n in numbers])
                sent[0] += FRAME
                over.wait(0.01)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()
