"""Which share of all updates are multiples of at least one of some periods: how often something is
executed.

Sets of updates are bit sets (Python integers) over a horizon: bit t - 1 stands for update t.  Where
the least common multiple of the periods fits, it is the horizon, and shares are exact.  Else the
horizon is bounded, and a union of r periods is off by little more than r in `BITS` (of no weight in
a choice between schedules, and any is a correct one).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, lcm

BITS = 1 << 14  # horizon if the least common multiple is longer
MOST = 1 << 20  # ... and if periods are long: sixteen times the longest, up to so much


class Multiples:
    """Bit sets of multiples of some periods (int >= 1)."""

    def __init__(self, periods: Iterable[int]) -> None:
        distinct = sorted(set(periods))
        self._unit = gcd(*distinct)
        scaled = [p // self._unit for p in distinct]
        everything = _bounded_lcm(scaled)
        self.exact = everything is not None
        self.horizon = everything or min(MOST, max(BITS, 16 * scaled[-1]))
        self._bits = {p: self._of(p // self._unit) for p in distinct}

    def __getitem__(self, period: int) -> int:
        return self._bits[period]

    def share(self, bits: int) -> float:
        """Share of updates that are in the set, 0 to 1."""
        return bits.bit_count() / (self.horizon * self._unit)

    def union(self, periods: Iterable[int]) -> float:
        """Share of updates that are a multiple of any of the periods."""
        bits = 0
        for period in periods:
            bits |= self._bits[period]
        return self.share(bits)

    def _of(self, period: int) -> int:
        bits, width = 1 << (period - 1), period
        while width < self.horizon:  # doubling
            bits |= bits << width
            width *= 2
        return bits & ((1 << self.horizon) - 1)


def _bounded_lcm(periods: list[int]) -> int | None:
    common = 1
    for period in periods:
        common = lcm(common, period)
        if common > MOST // 4:
            return None
    return common
