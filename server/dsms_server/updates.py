"""Updates of archives, one after the other: each at most once in the queue, failed ones again after
a while."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsms.api import Cancel
from dsms.errors import DsmsError
from dsms_server.clock import elapsed

log = logging.getLogger("dsms.spark")
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0  # seconds until a failed update is tried again


@dataclass(slots=True)
class Figures:
    """What has been done for an archive so far; `error`: why the last update failed, if it did."""

    updates: int = 0
    failures: int = 0
    rows: int = 0
    seconds: float = 0.0
    error: str | None = None


@dataclass(slots=True)
class _Due:
    url: str
    at: float  # when, in `elapsed` seconds
    failed: int = 0  # times in a row


# archive, seconds, report or None: it failed
Observe = Callable[[str, float, dict[str, Any] | None], None]


class Updates:
    """`update(url, cancel)` does one; `observe` is called for each.  Any thread may call `due`,
    which never waits."""

    def __init__(
        self, update: Callable[[str, Cancel], dict[str, Any]], pause: float = FIRST_PAUSE
    ) -> None:
        self._update, self._pause = update, pause
        self.observe: Observe = lambda name, seconds, report: None
        self.figures: dict[str, Figures] = {}
        self._due: dict[str, _Due] = {}
        self._running: str | None = None
        self._change = threading.Condition()
        self._stopping = Cancel()
        self._stop = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin with what is due already."""
        self._thread = threading.Thread(target=self._run, name="dsms-updates", daemon=True)
        self._thread.start()

    def due(self, name: str, url: str) -> None:
        """The archive has something to be updated with; if it waits already, that is that."""
        with self._change:
            waiting = self._due.setdefault(name, _Due(url, 0.0))
            waiting.url = url
            self._change.notify_all()

    def stop(self) -> None:
        """The update under way is given up (the next one does its work), and no other begins."""
        with self._change:
            self._stop = True
            self._stopping.set()
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join()

    @property
    def waiting(self) -> int:
        """Archives that wait for an update, or for another try."""
        return len(self._due)

    def state(self, name: str, doing: str) -> str | None:
        """What becomes of an archive's updates, in words; `doing`: what the one that runs waits
        for."""
        with self._change:
            due, running = self._due.get(name), self._running == name
        figures = self.figures.get(name, Figures())
        if running:
            return f"at work: {doing}" if doing else "at work"
        if due is not None and figures.error is not None:
            return f"failed, again in {max(0.0, due.at - elapsed()):.0f} s: {figures.error}"
        if due is not None:
            return "waits for its turn"
        return f"done {figures.updates} times" if figures.updates else None

    def quiet(self, seconds: float) -> bool:
        """Wait until nothing is due and nothing runs; False if that takes longer."""
        with self._change:
            return self._change.wait_for(lambda: not self._due and self._running is None, seconds)

    def _run(self) -> None:
        while (found := self._next()) is not None:
            self._once(*found)
            with self._change:
                self._running = None
                self._change.notify_all()

    def _next(self) -> tuple[str, _Due] | None:
        """Wait for the one that is due first; None: it is time to stop."""
        with self._change:
            while not self._stop:
                first = min(self._due, key=lambda name: self._due[name].at, default=None)
                pause = None if first is None else self._due[first].at - elapsed()
                if first is not None and pause is not None and pause <= 0:
                    self._running = first
                    return first, self._due.pop(first)
                self._change.wait(pause)
            return None

    def _once(self, name: str, due: _Due) -> None:
        began, figures = elapsed(), self.figures.setdefault(name, Figures())
        try:
            report = self._update(due.url, self._stopping)
        except DsmsError as problem:
            if not self._stop:
                self._failed(name, due, figures, problem)
                self.observe(name, elapsed() - began, None)
            return
        figures.updates += 1
        figures.rows += int(report.get("taken", 0))
        figures.seconds += elapsed() - began
        figures.error = None
        log.info("the archive of %s was updated: %s", name, report)
        self.observe(name, elapsed() - began, report)

    def _failed(self, name: str, due: _Due, figures: Figures, problem: DsmsError) -> None:
        due.failed += 1
        pause = min(self._pause * 2 ** (due.failed - 1), LONGEST_PAUSE)
        figures.failures += 1
        figures.error = f"{problem.code} {problem.message}"
        log.warning(
            "the archive of %s was not updated, again in %.0f s: %s", name, pause, figures.error
        )
        with self._change:
            asked_again = self._due.get(name)
            self._due[name] = _Due(
                asked_again.url if asked_again else due.url, elapsed() + pause, due.failed
            )
