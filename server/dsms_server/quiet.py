"""Log lines that repeat themselves are counted instead of written: a fault in a loop must not fill
a disk."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dsms_server import clock

OFTEN = 5  # equal lines that are written ...
SECONDS = 60.0  # ... in so long a time; the rest is a count
REMEMBERED = 1000  # different lines


@dataclass(slots=True)
class _Seen:
    since: float
    count: int = 0
    record: logging.LogRecord | None = None  # the newest one left out


class Sparing(logging.Filter):
    """A filter for a handler: of equal lines (logger, level, text, kind of exception) it passes
    `often` in `seconds`.

    How many were left out is said when that time is over and anything else is logged, or by
    `flush`."""

    def __init__(
        self,
        often: int = OFTEN,
        seconds: float = SECONDS,
        now: Callable[[], float] = clock.elapsed,
        logger: Callable[[str], logging.Logger] = logging.getLogger,
    ) -> None:
        super().__init__()
        self._often, self._seconds, self._now, self._logger = often, seconds, now, logger
        self._seen: dict[tuple[str, int, str, str], _Seen] = {}
        self._lock = threading.RLock()
        self._busy = False

    def filter(self, record: logging.LogRecord) -> bool:
        with self._lock:
            return self._busy or self._passes(record)

    def _passes(self, record: logging.LogRecord) -> bool:
        self.flush(self._now() - self._seconds)
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        key = (record.name, record.levelno, record.getMessage(), kind)
        seen = self._seen.setdefault(key, _Seen(self._now()))
        seen.count += 1
        if seen.count <= self._often:
            return True
        seen.record = record
        return False

    def flush(self, before: float = float("inf")) -> None:
        """Say what was left out of lines that were first seen until `before`, and forget them."""
        with self._lock:
            over = [key for key, seen in self._seen.items() if seen.since <= before]
            over += list(self._seen)[: max(0, len(self._seen) - len(over) - REMEMBERED)]
            for key in dict.fromkeys(over):
                seen = self._seen.pop(key)
                if seen.record is not None:
                    self._tell(seen.record, seen.count - self._often)

    def _tell(self, record: logging.LogRecord, count: int) -> None:
        times = "once" if count == 1 else f"{count} times"
        self._busy = True
        try:
            self._logger(record.name).log(
                record.levelno, "%s (%s more)", record.getMessage(), times
            )
        finally:
            self._busy = False


@contextmanager
def sparing() -> Iterator[None]:
    """On every handler of the root logger; at the end what was left out is said."""
    found, handlers = Sparing(), list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(found)
    try:
        yield
    finally:
        found.flush()
        for handler in handlers:
            handler.removeFilter(found)
