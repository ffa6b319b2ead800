"""How often which access pattern comes: the statistics that indices are chosen by (Works,
Rundensteiner and Agu 2012, §5.3, §5.4).

An access pattern is a set of attributes, one bit each; a < b, a offers a search benefit to b, if b
has all attributes of a.  So patterns form a lattice, with the empty one on top.

SRIA   counts every pattern
CSRIA  forgets rare ones (lossy counting, Manku and Motwani 2002)
DIA    counts every pattern, in the lattice: the same table, and the same answer, as SRIA
CDIA   adds a rare pattern to one of those with one attribute less (hierarchical heavy hitters): to
       any of them at random, or to the one with the highest count

Error    of CSRIA: a pattern is short of at most ε of all probes, and none with θ or more is missing
Cost     O(1) for a run of probes with one pattern; a compression each ⌈1/ε⌉ probes, O(patterns ×
         attributes)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Method = Literal["sria", "csria", "dia", "cdia-random", "cdia-highest"]


@dataclass(slots=True)
class Sria:
    """Exact counts."""

    counts: dict[int, int] = field(default_factory=dict)
    probes: int = 0

    def add(self, pattern: int, n: int = 1) -> None:
        """So many probes with that pattern."""
        if n:
            self.counts[pattern] = self.counts.get(pattern, 0) + n
            self.probes += n

    def result(self) -> dict[int, float]:
        """The share of each pattern in all probes, by pattern."""
        return {ap: n / self.probes for ap, n in sorted(self.counts.items())}

    def kept(self) -> int:
        """Patterns that are counted."""
        return len(self.counts)

    def restart(self) -> None:
        """Forget everything."""
        self.counts, self.probes = {}, 0


@dataclass(slots=True)
class Dia(Sria):
    """Exact counts as a lattice.  It is built from the top as patterns come, and laid down in the
    table of SRIA; its edges follow from the patterns."""

    def leaves(self) -> list[int]:
        """Patterns that offer a benefit to no other one that is there."""
        known = list(self.counts)
        return [a for a in known if not any(a != b and a & b == a for b in known)]


@dataclass(slots=True)
class Csria(Sria):
    """Lossy counts.

    error      ε;  threshold: θ
    missed     for each pattern δ, the number of its probes at most that were not counted"""

    error: float = 0.05
    threshold: float = 0.1
    missed: dict[int, int] = field(default_factory=dict)

    @property
    def segment(self) -> int:
        """Number of the segment, ⌊ε λ_r⌋."""
        return math.floor(self.error * self.probes + 1e-9)

    def add(self, pattern: int, n: int = 1) -> None:
        """A run of probes counts as one step: it compresses once, if a segment ends in it."""
        if not n:
            return
        before = self.segment
        Sria.add(self, pattern, n)
        self.missed.setdefault(pattern, max(0, before - 1))
        if self.segment > before:
            self.compress()

    def compress(self) -> None:
        """At the end of a segment."""
        rare = [a for a, n in self.counts.items() if n + self.missed[a] <= self.segment]
        for a in rare:
            del self.counts[a], self.missed[a]

    def result(self) -> dict[int, float]:
        least = (self.threshold - self.error) * self.probes
        often = {a: n for a, n in sorted(self.counts.items()) if n + self.missed[a] >= least}
        return {a: n / self.probes for a, n in often.items()}

    def restart(self) -> None:
        Sria.restart(self)
        self.missed = {}


@dataclass(slots=True)
class Cdia(Csria):
    """Counts that are passed on to patterns that offer a benefit.

    highest  to the one with the highest count; else one at random (`seed`: the same sequence each
             time)"""

    highest: bool = True
    seed: int = 1

    def compress(self) -> None:
        for a in self._from_below(self.counts):
            rare = self.counts[a] + self.missed[a] < self.segment
            if a and rare and _is_leaf(a, self.counts):
                above = self._parent(a, self.counts)
                self.counts[above] = self.counts.get(above, 0) + self.counts.pop(a)
                self.missed.setdefault(above, max(0, self.segment - 1))
                del self.missed[a]

    def result(self) -> dict[int, float]:
        """Those with a share of θ or more, with what was passed on to them.  What reaches the empty
        pattern is a scan for any index."""
        counts, often = dict(self.counts), dict[int, float]()
        for a in self._from_below(counts):
            if counts[a] >= self.threshold * self.probes * (1 - 1e-9):
                often[a] = counts[a] / self.probes
            elif a:
                above = self._parent(a, counts)
                counts[above] = counts.get(above, 0) + counts[a]
        return dict(sorted(often.items()))

    def _from_below(self, counts: Mapping[int, int]) -> Iterator[int]:
        """Patterns, those with most attributes first; some may be made on the way."""
        most = max((a.bit_count() for a in counts), default=0)
        for size in range(most, -1, -1):
            yield from sorted(a for a in counts if a.bit_count() == size)

    def _parent(self, a: int, counts: Mapping[int, int]) -> int:
        above = [a & ~(1 << k) for k in range(a.bit_length()) if a >> k & 1]
        if self.highest:
            return max(above, key=lambda b: (counts.get(b, 0), -b))
        self.seed = (self.seed * 6364136223846793005 + 1442695040888963407) % (1 << 62)
        return above[(self.seed >> 33) % len(above)]


def _is_leaf(a: int, counts: Mapping[int, int]) -> bool:
    return not any(n and b != a and a & b == a for b, n in counts.items())


def assessment(method: Method, error: float, threshold: float) -> Sria:
    """An empty one."""
    match method:
        case "sria":
            return Sria()
        case "dia":
            return Dia()
        case "csria":
            return Csria(error=error, threshold=threshold)
        case "cdia-random":
            return Cdia(error=error, threshold=threshold, highest=False)
        case "cdia-highest":
            return Cdia(error=error, threshold=threshold)
