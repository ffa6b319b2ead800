"""The watchdog: whether the engine's thread turns, and what holds it if not.

It only looks: at when the slice under way began, and at the stack of the thread.  Time is an
argument.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

log = logging.getLogger("dsms.server")
STUCK_SECONDS = 5.0
ROOMS = (
    "operators",
    "oneshot",
    "reads",
    "sql",
    "storage",
    "recovering",
    "periodic",
    "sharing",
    "running",
    "commands",
    "intake",
    "tables",
)


class Turning(Protocol):
    """The engine's thread (`worker.Worker`): slices so far, the job under way, and when its slice
    began."""

    slices: int
    running: Any
    began: float

    @property
    def ident(self) -> int | None:
        """Of the thread."""
        ...

    def doing(self, job: Any) -> str:
        """What it is, in words."""
        ...


@dataclass(slots=True)
class Watchdog:
    """`held`: seconds for which the slice under way has held the thread, if those are too many;
    else 0."""

    worker: Turning
    limit: float = STUCK_SECONDS
    held: float = 0.0
    what: str = ""
    logged: int = -1  # the slice of which the log knows

    def look(self, now: float) -> bool:
        """Whether the engine turns, at the time `now` (of the clock that the worker reads)."""
        worker = self.worker
        number, job = worker.slices, worker.running
        held = now - worker.began
        if job is None or held < self.limit or number != worker.slices:
            self.held = 0.0
            return True
        self.held, self.what = held, f"{worker.doing(job)}, in {step(worker.ident)}"
        if self.logged != number:
            self.logged = number
            log.error("the engine has not turned for %.0f s: it is at %s", held, self.what)
        return False

    @property
    def complaint(self) -> str:
        """What is the matter; empty if nothing is."""
        return (
            f"the engine has not turned for {self.held:.0f} s: it is at {self.what}"
            if self.held
            else ""
        )


def step(thread: int | None) -> str:
    """The place in the engine's code at which a thread is: function, file and line."""
    frame = sys._current_frames().get(thread) if thread is not None else None
    while frame is not None and not _ours(frame):
        frame = frame.f_back
    if frame is None:
        return "a place unknown"
    return f"{frame.f_code.co_qualname} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})"


def _ours(frame: FrameType) -> bool:
    parts = Path(frame.f_code.co_filename).parts
    return len(parts) > 2 and "dsms" in parts[-4:-1] and any(room in parts[-3:-1] for room in ROOMS)


@dataclass(slots=True)
class SliceLimit:
    """Slices that took longer than they may (`--max-slice-ms`): counted, and named in the log.

    `seconds`  None: none is too long"""

    seconds: float | None
    over: dict[str, int] = field(default_factory=dict)  # by kind of job

    def see(self, kind: str, what: str, seconds: float) -> bool:
        """A slice has ended; whether it was too long."""
        if self.seconds is None or seconds <= self.seconds:
            return False
        self.over[kind] = self.over.get(kind, 0) + 1
        log.warning("a slice of %s took %.1f ms: %s", kind, seconds * 1000, what)
        return True
