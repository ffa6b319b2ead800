"""What a job of the engine's thread does before and after its work, so that others go in between,
and how much it takes at a time."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

from dsms.api import Cancel
from dsms_server import clock
from dsms_server.face import EngineFace
from dsms_server.worker import Steps

SLICE_SECONDS = 0.01  # what one slice of an ingest should take
READ_SECONDS = 0.003  # what one slice of a SELECT's reads should take
TURN_SECONDS = 0.01  # of a slice after which queries leave what they are to do to the next one
MIN_SLICE, MAX_SLICE = 1024, 1 << 15  # rows

T = TypeVar("T")


def caught_up(engine: EngineFace, cancel: Cancel | None = None) -> Steps:
    """Until queries are where they should be: the request that moved them is answered then, and
    others go in between."""
    while engine.catch_up():
        yield None
        if cancel is not None:
            cancel.check()


def whole(engine: EngineFace, cancel: Cancel | None = None) -> Steps:
    """Until the state has been copied for a checkpoint, if it is: what changes it waits."""
    while engine.copy_on():
        yield None
        if cancel is not None:
            cancel.check()


def some_at_once(pieces: Generator[Any, Any, T]) -> Generator[None, None, T]:
    """Pieces that wait for nobody, so many in a slice that it is short; their result."""
    until = clock.elapsed() + READ_SECONDS
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: T = end.value
            return result
        if clock.elapsed() >= until:
            yield None
            until = clock.elapsed() + READ_SECONDS


def nothing(result: Any, error: BaseException | None) -> None:
    """For jobs whose end is not waited for."""


class Pace:
    """How many rows of each stream a slice should have, from how long earlier ones took: few at
    first, and at most twice as many as the one before, since what takes long may only begin where
    there are many."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}

    def of(self, stream: str) -> int:
        return self._rows.get(stream, MIN_SLICE)

    def took(self, stream: str, rows: int, seconds: float) -> None:
        """So many rows took so long."""
        if 2 * rows >= MIN_SLICE:
            ideal, now = int(rows * SLICE_SECONDS / max(seconds, 1e-6)), self.of(stream)
            most = 2 * now if 2 * rows >= now else now
            self._rows[stream] = max(MIN_SLICE, min(MAX_SLICE, most, ideal))
