"""Which way a row takes through the STeMs of an adaptive join: the order of least expected cost,
from what probes have met so far (Works, Rundensteiner and Agu 2012, §3, leave the router open).

Counts   for each (STeM, access pattern): probes, rows that matched, rows looked at and buckets
         visited, of late (they are halved as they grow).
Unknown  patterns are as selective as their attributes, each by itself.
Change   what a pattern matches otherwise all at once is forgotten, and routes are looked for anew.
Order    by dynamic programming over sets of inputs, anew after some thousand rows; only inputs that
         have an attribute in common with those before come into question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dsms.operators.stems import Stem
from dsms.plan.adaptive_order import cheapest

HALVED = 8192.0  # probes of a pattern after which its counts are halved
FEW = 16  # probes that do not tell much
SURPRISE = 5.0  # standard deviations by which they match otherwise than before
SOON, AGAIN = 64, 4096  # rows of an origin after which its route is looked for again: more and more
FRESH = 4 * SOON  # rows up to which a route is new
PROBE, LOOK, VISIT, FOUND = 20.0, 4.0, 3.0, 10.0  # nanoseconds, about


def surprising(held: np.ndarray, probes: int, matches: int) -> bool:
    """Whether as many matches come of these probes as could not come if things were as they have
    been: what is known of them is forgotten then, and routes are looked for at once."""
    if held[0] < FEW or probes < FEW:
        return False
    expected = held[1] / held[0] * probes
    least = 0.5 * max(expected, matches)  # matches come in groups: so it must be much, too
    return bool(abs(matches - expected) > max(SURPRISE * math.sqrt(expected + 1.0), least))


@dataclass(slots=True)
class Router:
    """counts  (STeM, pattern) -> float64[4]: probes, matches, rows looked at, visits
    routes  by origin;  age: rows since it was found;  wait: those after which it is looked for"""

    inputs: int
    counts: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)
    routes: list[tuple[int, ...]] = field(default_factory=list)
    age: list[int] = field(default_factory=list)
    wait: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.routes = [()] * self.inputs
        self.age, self.wait = [0] * self.inputs, [0] * self.inputs

    def saw(
        self, stem: int, pattern: int, probes: int, matches: int, seen: np.ndarray, first: bool
    ) -> None:
        """What some probes met.  first: of rows that have met nothing else yet; what others met
        before differs from route to route, so they are no surprise"""
        held = self.counts.get((stem, pattern))
        if held is None:
            held = self.counts[stem, pattern] = np.zeros(4)
        elif first and surprising(held, probes, matches):
            held[:] = 0.0
            self.wait = [0] * self.inputs
        if held[0] > HALVED:
            held *= 0.5
        held += (probes, matches, seen[0], seen[1])

    @property
    def curious(self) -> bool:
        """Whether routes have become new of late, so that others are worth asking for."""
        return min(self.wait) <= FRESH

    def route(self, origin: int, rows: int, stems: Sequence[Stem]) -> tuple[int, ...]:
        """For so many rows of that input: the others, in order."""
        if self.age[origin] >= self.wait[origin]:
            self.age[origin], self.wait[origin] = 0, min(AGAIN, max(SOON, 2 * self.wait[origin]))
            self.routes[origin] = self.best(origin, stems)
        self.age[origin] += rows
        return self.routes[origin]

    def best(self, origin: int, stems: Sequence[Stem]) -> tuple[int, ...]:
        """The cheapest order as things are."""
        known: dict[tuple[int, int], tuple[float, float]] = {}

        def expects(j: int, pattern: int) -> tuple[float, float]:
            if (j, pattern) not in known:
                known[j, pattern] = self.expected(j, pattern, stems[j])
            return known[j, pattern]

        return cheapest(origin, [stem.classes for stem in stems], expects, FOUND)[1]

    def expected(self, stem: int, pattern: int, rows: Stem) -> tuple[float, float]:
        """(rows that match, cost) of a probe."""
        held = self.counts.get((stem, pattern))
        if held is not None and held[0] >= FEW:
            probes, matches, looked, visits = held
            return matches / probes, PROBE + (LOOK * looked + VISIT * visits) / probes
        live = max(1.0, float(rows.rows.store.live))
        share = 1.0
        for a, values in enumerate(rows.values):
            if pattern >> a & 1:
                alone = self.counts.get((stem, 1 << a))
                told = alone is not None and alone[0] >= FEW
                share *= min(1.0, alone[1] / alone[0] / live) if told else 1.0 / values  # type: ignore[index]
        return live * share, PROBE + LOOK * live * rows.index.share(pattern)
