"""What a join of two windows `WITH (over = shed)` tells, from the definitions: instant by instant,
over all rows, with a count for each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsms.sql.types import FOREVER

ARRIVAL, UNSEEN = 1 << 20, 1 << 17
Line = tuple[int, str, tuple[Any, ...]]


@dataclass(eq=False, frozen=True)
class Row:
    """A row of a side, in its window from `ts` until `exp`; `key` is None where it matches
    nothing."""

    side: int
    ts: int
    exp: int
    key: Any
    values: tuple[Any, ...]
    size: int


@dataclass
class Model:
    """matches(left, right): whether two rows of equal keys make a result."""

    most: int
    matches: Callable[[Row, Row], bool]
    held: list[Row] = field(default_factory=list)
    counts: list[Counter[Any]] = field(default_factory=lambda: [Counter(), Counter()])
    let_go: int = 0
    results: list[tuple[int, int, tuple[Any, ...]]] = field(default_factory=list)

    def instant(self, now: int, rows: Sequence[Row]) -> None:
        """Rows of one instant come, by side and in the order in which they came."""
        self.held = [row for row in self.held if row.exp > now]
        for row in rows:
            for other in self.held:
                if other.side != row.side and row.key is not None and other.key == row.key:
                    left, right = sorted((row, other), key=lambda r: r.side)
                    if self.matches(left, right):
                        end = min(left.exp, right.exp)
                        self.results.append((now, end, left.values + right.values))
            self.held.append(row)
            if row.key is not None:
                self.counts[row.side][row.key] += ARRIVAL
        if sum(row.size for row in self.held) > self.most:
            self._shed(now)

    def _shed(self, now: int) -> None:
        """Rows of least worth go, of these the oldest, until nine tenths are left."""
        places = {id(row): k for k, row in enumerate(self.held)}

        def worth(row: Row) -> tuple[float, int, int, int]:
            life = float(row.exp) - float(now)
            rate = 0 if row.key is None else self.counts[1 - row.side][row.key] + UNSEEN
            return rate * life, row.ts, row.side, places[id(row)]

        going = sorted(self.held, key=worth)
        counted = len(going)
        while sum(row.size for row in going) > self.most * 9 // 10:
            going.pop(0)
            self.let_go += 1
        self.held = [row for row in self.held if row in going]
        total = sum(self.counts[0].values()) + sum(self.counts[1].values())
        while total > 4 * counted * ARRIVAL:
            total >>= 1
            for of in self.counts:
                for key in of:
                    of[key] >>= 1
        for of in self.counts:
            for key in of:
                of[key] -= of[key] >> 3

    def lines(self) -> Iterator[Line]:
        """All that is told, if time passes for ever."""
        for begin, end, values in self.results:
            yield begin, "+", values
            if end != FOREVER:
                yield end, "-", values


def told(
    rows: Sequence[Row], most: int, matches: Callable[[Row, Row], bool] = lambda *_: True
) -> Model:
    """All of the rows have come."""
    model = Model(most, matches)
    for now in sorted({row.ts for row in rows}):
        model.instant(now, sorted((r for r in rows if r.ts == now), key=lambda r: r.side))
    return model
