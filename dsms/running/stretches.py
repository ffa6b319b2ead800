"""A long function, a stretch at a time: it runs in a thread of its own, but only while its caller
waits for it, so it never runs beside the caller's thread.

That is for work whose depth is in the hands of others (a pickler that calls back for each object)
and which therefore can't be a generator.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
Rest = Callable[[], None]


class Stretches(Generic[T]):
    """`work` calls `rest` wherever it may be left; where `over` says so the caller goes on."""

    def __init__(self, work: Callable[[Rest], T], over: Callable[[], bool]) -> None:
        self._work, self._over = work, over
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._found: T | None = None
        self._failure: BaseException | None = None
        self._to_the_end = False
        self.done = False
        self.count = 0
        self._thread = threading.Thread(target=self._run, name="dsms-stretch", daemon=True)
        self._thread.start()

    def step(self) -> bool:
        """One stretch; whether that was the last one."""
        if not self.done:
            self.count += 1
            self._go.release()
            self._back.acquire()
        return self.done

    def result(self) -> T:
        """All that is left, and what came of it.  Raises what ended it."""
        self._to_the_end = True
        self.step()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._found  # type: ignore[return-value]

    def _run(self) -> None:
        self._go.acquire()
        try:
            self._found = self._work(self._rest)
        except BaseException as failure:
            self._failure = failure
        self.done = True
        self._back.release()

    def _rest(self) -> None:
        if not self._to_the_end and self._over():
            self._back.release()
            self._go.acquire()
