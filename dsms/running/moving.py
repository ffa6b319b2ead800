"""How what is stepped moves on: piece by piece, for as long as a turn has room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from dsms.api import Cancel
from dsms.running.pipeline import Pipeline
from dsms.running.turns import FEW, MANY, Pause, Turn


class Moves(Protocol):
    """A query, or a part that several share."""

    clock: int
    pipeline: Pipeline

    def going(self, upto: int) -> Iterator[None]: ...


def advance(unit: Moves, upto: int, cancel: Cancel | None) -> None:
    """Let it go to `upto`.

    `cancel` raises between two pieces of work; the next call goes on where this one stopped."""
    steps = 0
    for _ in unit.going(upto):
        steps += 1
        if cancel is not None and unit.clock < upto:
            _between(unit.pipeline, cancel)
    if steps >= MANY and isinstance(cancel, Turn):
        unit.pipeline.hurry(False)


def _between(pipeline: Pipeline, cancel: Cancel) -> None:
    """Steps are as long as a turn may have some of them."""
    if not isinstance(cancel, Turn):
        cancel.between()
        return
    pipeline.pace()
    try:
        cancel.between()
    except Pause:
        if not FEW < cancel.steps < MANY:
            pipeline.hurry(cancel.steps <= FEW)
        raise
