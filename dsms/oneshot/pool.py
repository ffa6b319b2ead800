"""Connections for plans that run in several threads at once, each for one run at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from dsms.oneshot.run import OneShot


class OneShotPool:
    """Lends out `OneShot`s; any thread may ask.  An idle one is taken again, so there are as many
    as run at once."""

    def __init__(self) -> None:
        self._idle: deque[OneShot] = deque()

    @contextmanager
    def lent(self, memory_limit: int | None) -> Iterator[OneShot]:
        """One for the time of a run, with that memory limit."""
        try:
            adhoc = self._idle.pop()
        except IndexError:
            adhoc = OneShot(memory_limit)
        adhoc.limit(memory_limit)
        try:
            yield adhoc
        finally:
            self._idle.append(adhoc)

    def close(self) -> None:
        """Let go of the idle ones."""
        while self._idle:
            self._idle.pop().close()
