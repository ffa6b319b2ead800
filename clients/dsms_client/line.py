"""Messages about the connection: that it was lost, and that it is there again, once somebody waits
for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dsms.errors import DsmsError

LOST = "{}; trying again, Ctrl-C gives up"
BACK = "connected again"
WAS_LOST = "{}, and is there again"


class Line:
    """`changed` is called by the client, in its thread; the message is printed while the user waits
    for an answer."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._waiting = 0
        self._lost: DsmsError | None = None  # an outage of which not all is reported
        self._announced = False  # that it began
        self._over = False

    def changed(self, problem: DsmsError | None) -> None:
        """The connection was lost, or (None) is there again."""
        with self._lock:
            if problem is None:
                self._over = True
            elif self._lost is None or self._over:
                self._lost, self._announced, self._over = problem, False, False
            if self._waiting:
                self._say()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While the user waits for an answer, messages are printed at once; those of before, at the
        beginning."""
        with self._lock:
            self._waiting += 1
            self._say()
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1

    def _say(self) -> None:
        if self._lost is None:
            return
        if not self._announced:
            self._tell((WAS_LOST if self._over else LOST).format(self._lost.message))
        elif self._over:
            self._tell(BACK)
        self._announced = True
        if self._over:
            self._lost = None
