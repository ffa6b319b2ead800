"""The thread that writes the audit log.  Who has something to be written never waits for the disk.

What waits is bounded; what finds no room is lost, counted, and said so in the log itself as soon as
it can be written again.  A write that fails is tried again, with the same lines, until it succeeds
or the server stops.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from dsms_server.audit.events import Event, instant, line

log = logging.getLogger("dsms.server")
MOST_EVENTS, MOST_BYTES = 10_000, 32 << 20  # that wait
BATCH = 1000  # events written at once
GATHER_SECONDS = 0.005  # for which a batch gathers where nobody waits: a thread that wakes costs
AGAIN_SECONDS = 1.0  # until a write that has failed is tried again
PATIENCE = 5.0  # seconds that one event may take to get to the disk


class Lines(Protocol):
    """Where lines go (`dsms_server.audit.file.AuditFile`)."""

    def open(self) -> None: ...

    def write(self, lines: list[bytes]) -> int: ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class Entry:
    """An event that waits: its number, and who waits for it to be on the disk."""

    event: Event
    number: int
    kept: Future[bool] | None = None
    since: float = 0.0


class AuditWriter:
    """`put` and the figures are for any thread.

    sync     bring each batch to the disk before it counts as written (`required`)
    elapsed  seconds on a clock that never goes back
    now      µs since the epoch"""

    def __init__(
        self,
        file: Lines,
        run: str,
        sync: bool,
        elapsed: Callable[[], float],
        now: Callable[[], int],
        most: tuple[int, int] = (MOST_EVENTS, MOST_BYTES),
        again: float = AGAIN_SECONDS,
    ) -> None:
        self._file, self._run, self._sync = file, run, sync
        self._elapsed, self._now, self._most, self._again = elapsed, now, most, again
        self._wake = threading.Condition()
        self._waiting: deque[Entry] = deque()
        self._batch: list[Entry] = []  # at which the thread is
        self._bytes = 0
        self._number = 0
        self._untold = 0  # lost, and the log does not say so yet
        self._since = 0  # when that began
        self._reopen = self._stopping = False
        self._unsynced = False  # something is written that is not on the disk, as far as is known
        self._thread = threading.Thread(target=self._work, name="dsms-audit", daemon=True)
        self.lines = self.lost = 0
        self.failing = ""  # why the last write failed

    def start(self) -> None:
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Events that are not written."""
        return len(self._waiting) + len(self._batch)

    @property
    def full(self) -> bool:
        """Whether the next event is lost."""
        events, size = self._most
        return self.waiting >= events or self._bytes >= size

    @property
    def complaint(self) -> str:
        """Why events are not written; empty if they are."""
        return self.failing or ("more waits to be written than may" if self.full else "")

    def put(self, event: Event, wait: bool = False) -> Future[bool] | None:
        """Have it written; with `wait` what is returned tells whether it is on the disk."""
        kept: Future[bool] | None = Future() if wait else None
        with self._wake:
            self._number += 1
            if self.full or (self._stopping and not self._thread.is_alive()):
                self._lose(event)
                if kept is not None:
                    kept.set_result(False)
                return kept
            self._waiting.append(Entry(event, self._number, kept, self._elapsed()))
            self._bytes += event.size
            if len(self._waiting) == 1 or wait:
                self._wake.notify()
        return kept

    def _lose(self, event: Event) -> None:
        if not self._untold:
            self._since = event.at
        self._untold += 1
        self.lost += 1

    def reopen(self) -> None:
        """Somebody has moved the file: begin a new one."""
        with self._wake:
            self._reopen = True
            self._wake.notify()

    def sweep(self) -> None:
        """Nobody waits for a disk that hangs.  Called every so often."""
        now = self._elapsed()
        with self._wake:
            late = [
                entry
                for entry in (*self._batch, *self._waiting)
                if entry.kept is not None and now - entry.since >= PATIENCE
            ]
        for entry in late:
            _tell(entry, False)

    def stop(self, seconds: float) -> None:
        """Write what waits, for so long at most."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join(seconds)
        left = self.waiting
        if left or self._untold:
            log.error(
                "the audit log misses %d events that could not be written, and %d that were lost",
                left,
                self._untold,
            )
        for entry in (*self._batch, *self._waiting):
            _tell(entry, False)

    # -- in the thread -----------------------------------------------------------------------------

    def _work(self) -> None:
        while self._next():
            try:
                self._write()
            except Exception as problem:  # an OSError, or what nobody has thought of
                self._failed(problem)
                with self._wake:
                    if self._stopping:
                        return
                    self._wake.wait_for(lambda: self._stopping, self._again)
        self._file.close()

    def _next(self) -> bool:
        """Wait for work; False when the end has come."""
        with self._wake:
            while not (self._waiting or self._batch or self._untold or self._wanted):
                if self._stopping:
                    return False
                self._wake.wait()
            if not (self._sync or self._stopping or self._batch):
                self._wake.wait(GATHER_SECONDS)
            while self._waiting and len(self._batch) < BATCH:
                self._batch.append(self._waiting.popleft())
            if self._untold and not self._waiting:
                self._batch.append(self._told())
            return True

    @property
    def _wanted(self) -> bool:
        return self._reopen or self._unsynced

    def _told(self) -> Entry:
        """The line that says how many are missing."""
        self._number += 1
        said = {"count": self._untold, "since": instant(self._since)}
        self._untold = 0
        return Entry(Event("lost", self._now(), said=said), self._number)

    def _write(self) -> None:
        if self._reopen:
            self._file.open()
            self._reopen = False
        done = self._take(
            self._file.write([line(entry.event, self._run, entry.number) for entry in self._batch])
        )
        self._unsynced = self._sync
        try:
            if self._sync:
                self._file.sync()
                self._unsynced = False
        finally:
            for entry in done:
                _tell(entry, not self._unsynced)
        if self.failing:
            log.warning("the audit log is written again")
            self.failing = ""

    def _take(self, count: int) -> list[Entry]:
        """So many of the batch are written."""
        with self._wake:
            done, self._batch = self._batch[:count], self._batch[count:]
            self._bytes -= sum(entry.event.size for entry in done)
        self.lines += count
        return done

    def _failed(self, problem: Exception) -> None:
        why = str(getattr(problem, "strerror", None) or getattr(problem, "message", problem))
        if not self.failing:
            log.error("the audit log can't be written: %s", why)
        self.failing = why
        for entry in self._batch:
            _tell(entry, False)


def _tell(entry: Entry, kept: bool) -> None:
    """Whoever waits goes on."""
    if entry.kept is not None and not entry.kept.done():
        entry.kept.set_result(kept)
