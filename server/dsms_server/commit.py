"""Group commit: one thread brings what was written to the disk, for all writers that wait at that
moment.

Each waiting writer gets a future that is done when everything written before is on the disk; while
one `fsync` runs, the next ones to wait gather.  Streams of `interval` durability are brought along
every `INTERVAL` seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from dsms_server.clock import elapsed

INTERVAL = 1.0  # seconds: what a power failure may take of streams with durability `interval`


class Committer:
    """`commit` brings rows of streams of a durability (None: of all) to the disk."""

    def __init__(self, commit: Callable[[str | None], None]) -> None:
        self._commit = commit
        self._wake = threading.Condition()
        self._waiting: list[Future[None]] = []
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="dsms-commit", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; waiting writers are served first."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()

    def wait(self) -> Future[None]:
        """Done when all that has been written by now for `sync` streams is on the disk.  Any thread
        may call it."""
        future: Future[None] = Future()
        with self._wake:
            if not self._stopping and self._thread is not None:
                self._waiting.append(future)
                self._wake.notify()
                return future
        self._commit("sync")
        future.set_result(None)
        return future

    def _run(self) -> None:
        last = elapsed()
        while True:
            with self._wake:
                if not self._waiting and not self._stopping:
                    self._wake.wait(max(0.0, last + INTERVAL - elapsed()))
                waiting, self._waiting = self._waiting, []
                stopping = self._stopping
            everything = elapsed() - last >= INTERVAL
            if waiting or everything:
                self._commit(None if everything else "sync")
            if everything:
                last = elapsed()
            for future in waiting:
                future.set_result(None)
            if stopping and not self._waiting:
                return
