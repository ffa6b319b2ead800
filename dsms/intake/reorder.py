"""The slack buffer: rows up to `slack` out of order, sorted back by (timestamp, order of arrival).

State   runs, each sorted and each a stretch of consecutive arrivals, in arrival order; neighbours
        are merged when a run is not twice as long as the next one, so there are O(log n) of them;
        but a long one that comes in order stays by itself: of these there are n / LONG
Cost    O(log n) moves per row, whatever the frames' size; none in long frames that come in order;
        taking rows out cuts a prefix off each run, without copying the rest
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dsms.state.batch import Batch, concat, in_order

LONG = 4096  # rows


class ReorderBuffer:
    """Rows wait here until their instant is settled."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[Batch] = []

    def __len__(self) -> int:
        return sum(len(r) for r in self._runs)

    def add(self, rows: Batch) -> None:
        """Rows that arrived after all that are here, in any order."""
        if len(rows):
            self._runs.append(in_order(rows))
            self._merge()

    def take(self, upto: int) -> Batch | None:
        """Remove the rows with ts <= `upto` and return them by (ts, arrival); None if there are
        none."""
        parts: list[Batch] = []
        rest: list[Batch] = []
        for run in self._runs:
            cut = int(np.searchsorted(run.ts, upto, side="right"))
            if cut:
                parts.append(run.slice(0, cut))
            if cut < len(run):
                rest.append(run.slice(cut, len(run)) if cut else run)
        self._runs = rest
        return in_order(concat(parts)) if parts else None

    def change(self, to: Callable[[Batch], Batch]) -> None:
        """All rows become others, as many, of the same instants."""
        self._runs = [to(run) for run in self._runs]

    def nbytes(self) -> int:
        """Bytes held, about."""
        return sum(r.ts.nbytes + sum(c.nbytes for c in r.cols) for r in self._runs)

    def _merge(self) -> None:
        runs = self._runs
        while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]) and not _follows(*runs[-2:]):
            last = runs.pop()
            runs[-1] = in_order(concat([runs[-1], last]))


def _follows(before: Batch, after: Batch) -> bool:
    """Whether it is not worth while to put a run behind the one before it."""
    return len(after) >= LONG and bool(before.ts[-1] <= after.ts[0])
