"""What road.cql is to answer, computed report by report without dsms."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from examples.linear_road.traffic import EXIT, SECOND

MINUTE = 60 * SECOND
Place = tuple[int, int, int, int, int]  # expressway, direction, lane, segment, position
Segment = tuple[int, int, int]  # expressway, direction, number


class Road:
    """The state of all cars and segments; `tolls` and `accidents` are what was told so far."""

    def __init__(self) -> None:
        self.tolls: list[tuple[Any, ...]] = []
        self.accidents: list[tuple[Any, ...]] = []
        self.last: dict[int, deque[Place]] = defaultdict(lambda: deque(maxlen=4))
        self.entered: dict[int, Segment | None] = {}
        self.stopped: dict[Place, set[int]] = defaultdict(set)
        # of the minute that runs: speeds of each car in each segment
        self.speeds: dict[Segment, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self.minute = 0
        self.means: deque[dict[Segment, tuple[float, int]]] = deque(maxlen=5)

    def instant(self, t: int, reports: pa.RecordBatch) -> None:
        """All reports of one instant."""
        while t >= (self.minute + 1) * MINUTE:
            self._close_minute()
        before = {p: len(c) for p, c in self.stopped.items() if len(c) >= 2}
        entering = []
        for one in reports.to_pylist():
            self._report(one)
            segment = one["xway"], one["dir"], one["seg"]
            here = None if one["lane"] == EXIT else segment
            if here is not None and self.entered.get(one["car"]) != here:
                entering.append((one["car"], here))
            self.entered[one["car"]] = here
            self.speeds[segment][one["car"]].append(one["speed"])
        now = {p: len(c) for p, c in self.stopped.items() if len(c) >= 2}
        self.accidents += [(t, *p, n) for p, n in now.items() if before.get(p) != n]
        blocked = set(_upstream(now))
        for car, segment in entering:
            self.tolls.append((t, car, *segment, *self._toll(segment, segment in blocked)))

    @property
    def balances(self) -> list[tuple[int, int, int]]:
        """What each car has paid, for how many segments."""
        paid: dict[int, list[int]] = defaultdict(list)
        for _, car, *_, toll in self.tolls:
            paid[car].append(toll)
        return [(car, sum(tolls), len(tolls)) for car, tolls in paid.items()]

    def _report(self, one: dict[str, Any]) -> None:
        car, last = one["car"], self.last[one["car"]]
        if last:
            self.stopped[last[-1]].discard(car)
        last.append((one["xway"], one["dir"], one["lane"], one["seg"], one["pos"]))
        if len(last) == 4 and len(set(last)) == 1:
            self.stopped[last[-1]].add(car)

    def _close_minute(self) -> None:
        found = {}
        for segment, cars in self.speeds.items():
            means = [sum(s) / len(s) for s in cars.values()]
            found[segment] = sum(means) / len(means), len(means)
        self.means.append(found)
        self.speeds.clear()
        self.minute += 1

    def _toll(self, segment: Segment, accident: bool) -> tuple[float | None, int | None, bool, int]:
        means = [m[segment][0] for m in self.means if segment in m]
        speed = sum(means) / len(means) if means else None
        cars = self.means[-1].get(segment, (0, None))[1] if self.means else None
        dear = speed is not None and speed < 40 and cars is not None and cars > 50 and not accident
        return speed, cars, accident, 2 * ((cars or 0) - 50) ** 2 if dear else 0


def _upstream(accidents: Iterable[Place]) -> Iterable[Segment]:
    for xway, way, _, seg, _ in accidents:
        for n in range(5):
            yield xway, way, seg - n if way == 0 else seg + n
