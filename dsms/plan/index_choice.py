"""Which bit-address index serves the probes of a window best (Works, Rundensteiner and Agu 2012,
§5.1, §6).

A configuration gives each join attribute some of the index's bits.  A probe that gives only some of
the attributes must visit all buckets that the bits of the others lead to.  What depends on the
configuration, per unit of time, is C_D:

    λ_d N_A C_h  +  λ_r Σ F_ap (N_ap C_h  +  P (n / 2^B_ap C_c  +  visits C_b))

of λ_d rows that come and λ_r probes, a share F_ap of them with the access pattern ap, over P
partitions of n rows.  Against the paper's equation (1), F_ap stands in the second term too, and
visits cost: buckets of bits that are not given, unless they lie side by side, and never more than
there are rows.  An attribute of v values tells apart v buckets, however many bits it has.

EPrune drops an attribute whose greatest benefit does not pay for its hashing; in equation (2) λ_d
stands once, outside the sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

MOST_BITS = 16
MOST_INDEXED = 5  # attributes, the most often given ones
ROWS_PER_BUCKET = 4


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """bits  of each attribute, by its number
    high  the attributes that have some, from the highest bits of a bucket's number to the
          lowest"""

    bits: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.bits)

    def shifts(self) -> tuple[int, ...]:
        """How far to the left the bits of each attribute stand."""
        found, left = [0] * len(self.bits), self.total
        for a in self.high:
            left -= self.bits[a]
            found[a] = left
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Prices:
    """Of hashing an attribute, comparing a row, and visiting a bucket (measured: about 2, 4 and 3
    ns)."""

    hashing: float = 1.0
    comparing: float = 2.0
    visiting: float = 1.5


@dataclass(frozen=True, slots=True)
class Workload:
    """arrivals  λ_d;  probes: λ_r, per the same unit of time
    rows       of a partition;  partitions: so many
    patterns   F_ap by access pattern: a bit for each attribute that is given
    values     different values of each attribute"""

    arrivals: float
    probes: float
    rows: float
    partitions: float
    patterns: Mapping[int, float]
    values: tuple[float, ...]


def bits_for(rows: float) -> int:
    """Bits of an index of so many rows: a few rows for each bucket."""
    return min(MOST_BITS, max(1, round(float(np.log2(max(2.0, rows / ROWS_PER_BUCKET))))))


def best_config(work: Workload, most: int, prices: Prices = Prices()) -> IndexConfig:
    """The configuration of at most `most` bits with the least C_D; of equals the one with the
    fewest bits."""
    kept = pruned(work, most, prices)
    if not kept or not work.patterns:
        return _spread(len(work.values), most)
    choices = _choices(len(kept), most)
    costs = _costs(work, kept, choices, prices)
    chosen = choices[int(np.argmin(costs))]
    return _config(len(work.values), kept, chosen)


def cost(work: Workload, config: IndexConfig, prices: Prices = Prices()) -> float:
    """C_D of one configuration."""
    high = [*config.high, *(a for a in range(len(config.bits)) if a not in config.high)]
    return float(_costs(work, high, np.array([[config.bits[a] for a in high]]), prices)[0])


def pruned(work: Workload, most: int, prices: Prices = Prices()) -> list[int]:
    """The attributes that may pay (EPrune), the most often given first."""
    given = [sum(f for ap, f in work.patterns.items() if ap >> a & 1) for a in _all(work)]
    stored = work.rows * work.partitions

    def pays(a: int) -> bool:
        saved = work.probes * stored * given[a] * (1 - 2.0**-most) * prices.comparing
        return saved > (work.probes * given[a] + work.arrivals) * prices.hashing

    kept = sorted((a for a in _all(work) if pays(a)), key=lambda a: (-given[a], a))
    return kept[:MOST_INDEXED]


def _all(work: Workload) -> range:
    return range(len(work.values))


def _spread(attributes: int, most: int) -> IndexConfig:
    """The same share for each attribute: where nothing is known."""
    few = min(attributes, most)
    bits = [most // few + (a < most % few) for a in range(few)] + [0] * (attributes - few)
    return _config(attributes, list(range(attributes)), bits)


def _config(attributes: int, kept: Sequence[int], chosen: Sequence[int]) -> IndexConfig:
    bits = [0] * attributes
    for a, b in zip(kept, chosen, strict=True):
        bits[a] = int(b)
    return IndexConfig(tuple(bits), tuple(a for a in kept if bits[a]))


@lru_cache(maxsize=64)
def _choices(attributes: int, most: int) -> np.ndarray:
    """All ways to give at most so many bits to attributes, int64[ways, attributes]; fewest bits
    first."""
    ways = np.zeros((1, 0), np.int64)
    for _ in range(attributes):
        left = most - ways.sum(axis=1)
        bits = np.concatenate([np.arange(n + 1) for n in left])
        ways = np.column_stack([np.repeat(ways, left + 1, axis=0), bits])
    return ways[np.argsort(ways.sum(axis=1), kind="stable")]


def _costs(work: Workload, high: Sequence[int], choices: np.ndarray, prices: Prices) -> np.ndarray:
    """C_D of all choices of bits for the attributes `high`, which stand in that order."""
    indexed = choices > 0
    useful = np.minimum(choices, [np.log2(max(1.0, work.values[a])) for a in high])
    total = work.arrivals * indexed.sum(axis=1) * prices.hashing
    for ap, share in work.patterns.items():
        given = np.array([ap >> a & 1 for a in high], np.bool_)
        hashed = (indexed & given).sum(axis=1)
        met = work.rows / 2.0 ** (useful * given).sum(axis=1)
        visits = np.minimum(2.0 ** _apart(choices, given), work.rows)
        searched = met * prices.comparing + visits * prices.visiting
        each = hashed * prices.hashing + work.partitions * searched
        total = total + work.probes * share * each
    return total


def _apart(choices: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Bits that are not given above some that are: what lies below them all is one range."""
    wild = np.zeros(len(choices), np.int64)
    seen = np.zeros(len(choices), np.bool_)
    for k in range(len(given) - 1, -1, -1):
        if given[k]:
            seen |= choices[:, k] > 0
        else:
            wild += np.where(seen, choices[:, k], 0)
    return wild
