"""ISS, incremental synopsis scan (Golab 2006, §7.2.1): the last answer, plus sub-windows that came,
minus those gone.

For subtractable aggregates whose synopsis would otherwise be read from end to end: frequency
counters over long windows that slide in short steps.  What is kept is a state per query and
aggregate.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dsms.aggregates.parts.cells import State
from dsms.sharing.column import AggregateColumn
from dsms.sql.expr import AggCall
from dsms.synopses.cells import Synopsis


@dataclass(slots=True)
class Kept:
    """The union of sub-windows low <= k < high of one column."""

    low: int
    high: int
    state: State

    def to(self, column: AggregateColumn, low: int, high: int) -> State:
        """The union of low <= k < high, which this becomes."""
        algebra, groups = column.algebra, column.synopsis.groups
        if not self.low <= low <= self.high <= high:
            self.state = column.probe(np.array([low]), np.array([high]))
        else:
            both = column.probe(np.array([self.high, self.low]), np.array([high, low]))
            more = groups - algebra.size(self.state)
            state = algebra.concat([self.state, algebra.empty(more)]) if more else self.state
            state = algebra.combine(state, algebra.take(both, np.arange(groups)))
            self.state = algebra.subtract(state, algebra.take(both, np.arange(groups, 2 * groups)))
        self.low, self.high = low, high
        return self.state


@dataclass(slots=True)
class Answers:
    """What one query keeps, by aggregate."""

    kept: dict[AggCall, Kept] = field(default_factory=dict)

    def states(
        self, agg: AggCall, column: AggregateColumn, low: np.ndarray, high: np.ndarray
    ) -> Generator[None, None, State]:
        """Like `AggregateColumn.probe`, for spans of ascending boundaries, one after the other."""
        kept = self.kept.get(agg)
        if kept is None:
            kept = self.kept[agg] = Kept(0, -1, None)
        found: list[State] = []
        for a, b in zip(low.tolist(), high.tolist(), strict=True):
            if found:
                yield
            found.append(kept.to(column, a, b))
        return column.algebra.concat(found)

    def nbytes(self, columns: dict[AggCall, AggregateColumn]) -> int:
        return sum(columns[a].algebra.nbytes(k.state) for a, k in self.kept.items() if a in columns)


def combined(synopses: Sequence[Synopsis], width: int, step: int) -> tuple[float, float]:
    """Cells that an answer over `width` sub-windows combines: read from end to end, and from the
    one `step` before."""
    return sum(s.cost(width) for s in synopses), sum(
        2 * s.cost(min(step, width)) + 2 for s in synopses
    )
