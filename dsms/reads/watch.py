"""What stops a statement on its way: its cancellation, and the memory that it may keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dsms.api import Cancel
from dsms.errors import UsageError
from dsms.operators.pieces import Look, go_on
from dsms.operators.sink import Sink
from dsms.running.pipeline import Stage
from dsms.running.query import RunningQuery


@dataclass(slots=True)
class Watch:
    """Called between stretches of work of a statement's plan.  Raises DS610 (cancelled) or DS632
    (keeps too much)."""

    stages: Sequence[Stage]
    sink: Sink
    limit: int
    cancel: Cancel | None = None

    def __call__(self) -> None:
        if self.cancel is not None:
            self.cancel.check()
        if self.kept() > self.limit:
            raise too_large(self.limit)

    def kept(self) -> int:
        """Bytes of state and answer; rows that wait at the sources belong to streams and tables."""
        return sum(s.operator.nbytes() for s in self.stages if s.inputs) + self.sink.nbytes()


@contextmanager
def watching(running: RunningQuery, limit: int, cancel: Cancel | None) -> Iterator[Look]:
    """The query's plan runs under a watch, which may end it anywhere: it can't be continued then.

    Afterwards nothing of the watch is left, so that what the query kept goes at once."""
    watch = Watch(running.pipeline.stages, running.sink, limit, cancel)
    running.pipeline.look = watch
    try:
        yield watch
    finally:
        running.pipeline.look = go_on
        watch.stages = []


def too_large(limit: int) -> UsageError:
    """DS632."""
    return UsageError(
        "DS632",
        f"the statement keeps more than {size(limit)} while it runs, which is the limit",
        hint="filter first, take narrower windows or fewer columns; the limit is the setting "
        "statement_bytes (--statement-bytes)",
    )


def size(count: int) -> str:
    """Bytes in the largest unit that divides them well: 64 MiB, 1.5 GiB, 900 bytes."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift:
            return f"{count / (1 << shift):.3g} {unit}"
    return f"{count} bytes"
