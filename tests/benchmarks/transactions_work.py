"""What the transactions of §7.5 compute: IP packet headers in sub-windows, and queries that scan
them with NumPy.

Golab 2006, §7.5.1: sources and destinations have one of a thousand random values, sizes are 1 to
100, a sub-window's rate differs from the steady one by a factor of up to ten.  Five similar
periodic queries over different window lengths share a scan; it builds a hash table of each
sub-window it reads and adds them up for each of the five in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ADDRESSES = 1000
BASE = 10 << 24  # 10.0.0.0
PERCENTILES = (25, 50, 75, 90, 95, 99)
K = 10

Array = np.ndarray
Answer = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SubWindow:
    """source, destination: uint32 addresses; size: int64 bytes."""

    source: Array
    destination: Array
    size: Array

    def column(self, name: str) -> Array:
        """The addresses by that name."""
        return self.source if name == "source" else self.destination


def sub_windows(
    count: int, rows: int, rng: np.random.Generator, values: np.random.Generator
) -> list[SubWindow]:
    """So many, of `rows` packets on average; how many in each comes from `rng`, what is in them
    from `values`."""
    rates = np.clip(np.exp(rng.normal(-0.18, 0.6, count)), 0.1, 10)
    out = []
    for n in np.maximum(1, (rates * rows).astype(int)):
        source, destination = (
            values.integers(BASE, BASE + ADDRESSES, n).astype(np.uint32) for _ in range(2)
        )
        out.append(SubWindow(source, destination, values.integers(1, 101, n)))
    return out


class Group:
    """Five periodic queries: `top` (the K addresses with most packets) or `percentile` (of the
    bytes of addresses)."""

    priority = 0

    def __init__(self, rng: np.random.Generator, longest: int) -> None:
        self.kind = "top" if rng.random() < 0.5 else "percentile"
        self.column = "source" if rng.random() < 0.5 else "destination"
        self.lengths = tuple(int(n) for n in rng.integers(1, longest + 1, 5))
        self.percentiles = tuple(rng.choice(PERCENTILES, 5))

    @property
    def length(self) -> int:
        """Sub-windows that the shared scan reads."""
        return max(self.lengths)

    def read(self, part: SubWindow) -> Array:
        """A sub-window's hash table, as packets or bytes by address."""
        keys, place = np.unique(part.column(self.column), return_inverse=True)
        values = np.bincount(place, None if self.kind == "top" else part.size, len(keys))
        out = np.zeros(ADDRESSES)
        out[keys - BASE] = values
        return out

    def answer(self, parts: dict[int, Array], newest: int) -> Answer:
        """Of all five, from the tables of the sub-windows up to `newest`."""
        out: list[float] = []
        for n, percentile in zip(self.lengths, self.percentiles, strict=True):
            total = np.add.reduce([parts[k] for k in range(newest - n + 1, newest + 1)])
            out += self._of(total, percentile)
        return tuple(out)

    def expected(self, window: Sequence[SubWindow]) -> Answer:
        """The same from the packets themselves; `window` ends with the newest."""
        out: list[float] = []
        for n, percentile in zip(self.lengths, self.percentiles, strict=True):
            keys = np.concatenate([part.column(self.column) for part in window[-n:]]) - BASE
            sizes = np.concatenate([part.size for part in window[-n:]])
            weights = None if self.kind == "top" else sizes
            out += self._of(np.bincount(keys, weights, ADDRESSES).astype(float), percentile)
        return tuple(out)

    def _of(self, total: Array, percentile: int) -> list[float]:
        if self.kind == "top":
            return [float(x) for x in np.sort(np.partition(total, ADDRESSES - K)[-K:])]
        return [float(np.percentile(total[total > 0], percentile))]


class OneTime:
    """The bytes of some addresses, over a window of any length; goes before periodic queries."""

    priority = 1

    def __init__(self, rng: np.random.Generator, longest: int) -> None:
        self.column = "source" if rng.random() < 0.5 else "destination"
        self.length = int(rng.integers(1, longest + 1))
        self.chosen = rng.random(ADDRESSES) < 0.1

    def read(self, part: SubWindow) -> float:
        """Its bytes in one sub-window."""
        return float(part.size[self.chosen[part.column(self.column) - BASE]].sum())

    def answer(self, parts: dict[int, float], newest: int) -> Answer:
        """The sum."""
        return (sum(parts.values()),)

    def expected(self, window: Sequence[SubWindow]) -> Answer:
        """The same, from the packets themselves."""
        keys = np.concatenate([part.column(self.column) for part in window[-self.length :]]) - BASE
        sizes = np.concatenate([part.size for part in window[-self.length :]])
        return (float(np.bincount(keys, sizes, ADDRESSES)[self.chosen].sum()),)
