"""What a join of windows `WITH (over = shed)` tells, from the definitions: instant by instant,
over all rows, with a count for each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
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
    """matches: whether rows of equal keys, one of each side, make a result."""

    most: int
    matches: Callable[..., bool]
    sides: int = 2
    held: list[Row] = field(default_factory=list)
    counts: list[Counter[Any]] = field(init=False)
    let_go: int = 0
    results: list[tuple[int, int, tuple[Any, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.counts = [Counter() for _ in range(self.sides)]

    def instant(self, now: int, rows: Sequence[Row]) -> None:
        """Rows of one instant come, by side and in the order in which they came."""
        self.held = [row for row in self.held if row.exp > now]
        for row in rows:
            for parts in self._combined(row) if row.key is not None else ():
                if self.matches(*parts):
                    values = tuple(value for part in parts for value in part.values)
                    self.results.append((now, min(part.exp for part in parts), values))
            self.held.append(row)
            if row.key is not None:
                self.counts[row.side][row.key] += ARRIVAL
        if sum(row.size for row in self.held) > self.most:
            self._shed(now)

    def _combined(self, row: Row) -> Iterator[tuple[Row, ...]]:
        same = [other for other in self.held if other.key == row.key]
        of = [[o for o in same if o.side == side] for side in range(self.sides)]
        of[row.side] = [row]
        return product(*of)

    def _shed(self, now: int) -> None:
        """Rows of least worth go, of these the oldest, until nine tenths are left."""
        places = {id(row): k for k, row in enumerate(self.held)}

        def worth(row: Row) -> tuple[float, int, int, int]:
            found = 0.0 if row.key is None else float(row.exp) - float(now)
            for side, of in enumerate(self.counts):
                if side != row.side and row.key is not None:
                    found *= float(of[row.key] + UNSEEN)
            return found, row.ts, row.side, places[id(row)]

        going = sorted(self.held, key=worth)
        counted = len(going)
        while sum(row.size for row in going) > self.most * 9 // 10:
            going.pop(0)
            self.let_go += 1
        self.held = [row for row in self.held if row in going]
        total = sum(sum(of.values()) for of in self.counts)
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
    rows: Sequence[Row], most: int, matches: Callable[..., bool] = lambda *_: True, sides: int = 2
) -> Model:
    """All of the rows have come."""
    model = Model(most, matches, sides)
    for now in sorted({row.ts for row in rows}):
        model.instant(now, sorted((r for r in rows if r.ts == now), key=lambda r: r.side))
    return model
