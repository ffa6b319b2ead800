"""Places for plans that run beside the engine's thread, and who has the next one.

Who asks is a principal (a user, or an address) in a session.  Those who wait are taken in turn:
principals one after the other, and of each its sessions one after the other; nobody has all places.
Nothing that runs can be set aside, so what has run for `LONG_SECONDS` gives its place back and goes
on below everything else of the process, in one of as many places for long ones: endless statements
leave room for short ones.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from dsms.api import Cancel

LONG_SECONDS = 1.0
# after which nobody waits any more for a stretch of a cancelled run that looks at nothing
LEAVE_SECONDS = 0.2
NICE, LONG_NICE = 5, 15  # below the engine's thread and the event loop

Asking = tuple[str, int]  # a principal, and the number of its session


@dataclass(slots=True, eq=False)
class Run:
    """A plan that waits or runs; `future` is done when the statement goes on."""

    asking: Asking
    work: Callable[[], None]
    cancel: Cancel
    future: Future[None] = field(default_factory=Future)
    began: float | None = None
    cancelled: float | None = None  # when that was seen
    thread: threading.Thread | None = None
    long: bool = False

    @property
    def waits(self) -> bool:
        """Whether it has no place yet."""
        return self.began is None and not self.future.done()


class Shares:
    """`places` for short runs, and as many for long ones.  Any thread may call; `sweep` is called
    every so often."""

    def __init__(
        self, places: int, elapsed: Callable[[], float], long_seconds: float = LONG_SECONDS
    ) -> None:
        self.places = places
        self._elapsed, self._long_seconds = elapsed, long_seconds
        self._lock = threading.Lock()
        self._running: set[Run] = set()
        self._waiting: OrderedDict[str, OrderedDict[int, deque[Run]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Runs without a place."""
        with self._lock:
            return sum(
                len(runs) for sessions in self._waiting.values() for runs in sessions.values()
            )

    @property
    def running(self) -> int:
        """Runs at work, long ones too."""
        return len(self._running)

    def submit(self, asking: Asking, work: Callable[[], None], cancel: Cancel) -> Run:
        """Have `work` called in a thread of its own, at its turn."""
        run = Run(asking, work, cancel)
        with self._lock:
            principal, session = asking
            self._waiting.setdefault(principal, OrderedDict()).setdefault(session, deque()).append(
                run
            )
        self._start()
        return run

    def join(self, seconds: float) -> None:
        """Wait until nothing runs any more, so long at most: what is under way has been
        cancelled."""
        until = self._elapsed() + seconds
        for run in list(self._running):
            if run.thread is not None:
                run.thread.join(max(0.0, until - self._elapsed()))

    def sweep(self) -> None:
        """Let go what was cancelled, and move what has become long."""
        now, over = self._elapsed(), []
        with self._lock:
            for run in [r for r in self._queued() if r.cancel.is_set]:
                self._remove(run)
                over.append(run)
            over += [run for run in self._running if _is_left(run, now)]
            self._promote(now)
        for run in over:
            _finish(run)
        self._start()

    # -- under the lock ----------------------------------------------------------------------------

    def _queued(self) -> Iterator[Run]:
        for sessions in self._waiting.values():
            for runs in sessions.values():
                yield from runs

    def _remove(self, run: Run) -> None:
        principal, session = run.asking
        sessions = self._waiting[principal]
        sessions[session].remove(run)
        if not sessions[session]:
            del sessions[session]
        if not sessions:
            del self._waiting[principal]

    def _promote(self, now: float) -> None:
        count = Counter(run.asking[0] for run in self._running if run.long)
        for run in sorted(self._running, key=lambda r: r.began or 0.0):
            assert run.began is not None
            old = not run.long and now - run.began >= self._long_seconds
            if old and count.total() < self.places and count[run.asking[0]] < self._most:
                run.long = True
                count[run.asking[0]] += 1
                _lower(run.thread, LONG_NICE)

    @property
    def _most(self) -> int:
        """Places that one principal may have."""
        return max(1, self.places - 1)

    def _next(self) -> Run | None:
        """The one whose turn it is; its principal and its session go behind the others."""
        count = Counter(run.asking[0] for run in self._running if not run.long)
        if count.total() >= self.places:
            return None
        for principal, sessions in self._waiting.items():
            if count[principal] < self._most:
                session = next(iter(sessions))
                run = sessions[session][0]
                self._remove(run)
                if principal in self._waiting:
                    self._waiting.move_to_end(principal)
                    if session in sessions:
                        sessions.move_to_end(session)
                return run
        return None

    # -- running -----------------------------------------------------------------------------------

    def _start(self) -> None:
        while True:
            with self._lock:
                run = self._next()
                if run is None:
                    return
                run.began = self._elapsed()
                run.thread = threading.Thread(
                    target=self._run, args=(run,), name="dsms-select", daemon=True
                )
                self._running.add(run)
                run.thread.start()

    def _run(self, run: Run) -> None:
        _lower(run.thread, NICE)
        try:
            run.work()
        finally:
            with self._lock:
                self._running.discard(run)
            _finish(run)
            self._start()


def _is_left(run: Run, now: float) -> bool:
    """Whether a run was cancelled a while ago and still does not end."""
    if run.cancelled is None and run.cancel.is_set:
        run.cancelled = now
    return run.cancelled is not None and now - run.cancelled >= LEAVE_SECONDS


def _finish(run: Run) -> None:
    with contextlib.suppress(Exception):  # the other one was first
        run.future.set_result(None)


def _lower(thread: threading.Thread | None, nice: int) -> None:
    """Let everything else of the process go before this thread, where the system knows threads
    apart."""
    with contextlib.suppress(OSError, AttributeError):
        if thread is not None and thread.native_id is not None:
            os.setpriority(os.PRIO_PROCESS, thread.native_id, nice)
