"""Aggregates over the steps of a MATCH that take many rows, of matches and of attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dsms.operators.match_attempts import Attempts
from dsms.operators.match_conditions import Earlier
from dsms.operators.match_rows import Step
from dsms.operators.pieces import Look


@dataclass(frozen=True, slots=True)
class Aggregates:
    """over: the step of each, and its place among those of the step"""

    over: tuple[tuple[int, int], ...]

    def of_matches(
        self, steps: Sequence[Step], attempts: Attempts, done: np.ndarray, look: Look
    ) -> list[pa.Array]:
        """All of them, of attempts that are complete."""
        found = {
            k: self._columns(steps, attempts, k, range(len(step.many.calls)), done, None, look)
            for k, step in enumerate(steps)
            if step.many is not None and step.many.calls
        }
        return [found[k][place] for k, place in self.over]

    def earlier(
        self,
        steps: Sequence[Step],
        attempts: Attempts,
        who: np.ndarray,
        asks: int,
        ts: np.ndarray,
        look: Look,
    ) -> Earlier:
        """What a condition of step `asks` reads, beside its own rows, of pairs: the attempt `who`,
        and a row with the timestamp `ts`."""

        def found(step: int, column: int) -> pa.Array:
            if step < len(steps):
                return steps[step].column(attempts.refs.view[who, step], column)
            k, place = self.over[column]
            before = ts if k + 1 == asks else None
            return self._columns(steps, attempts, k, (place,), who, before, look)[0]

        return found

    def _columns(
        self,
        steps: Sequence[Step],
        attempts: Attempts,
        k: int,
        places: Sequence[int],
        who: np.ndarray,
        before: np.ndarray | None,
        look: Look,
    ) -> list[pa.Array]:
        """Some of those over step k, of rows older than `before`; None: than the next step's."""
        refs, many = attempts.refs.view, steps[k].many
        assert many is not None
        if before is None:
            before = steps[k + 1].times(refs[who, k + 1])

        def earlier(match: np.ndarray) -> Earlier:
            some = who[match]
            first = steps[k].times(refs[some, k])  # up to that go rows of a step before
            return self.earlier(steps, attempts, some, k, first, look)

        first = steps[k].slots(refs[who, k])
        return many.aggregates([many.calls[p] for p in places], first, before, earlier, look)
