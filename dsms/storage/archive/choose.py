"""Which layout suits an archive: G x E and the strategy, from its size and how it is used (Golab
2006, §4.3.2, §4.4.6).

An update touches G + E - 1 of n = G * E sub-indices, which is least for G = E, so n is a square.  A
larger n means less to rewrite, and more files to open in every query.  `no rebuild` writes less,
and leaves files that queries must open and expired rows that they must pass over.  What the thesis
recommends:

                 few queries between updates    many
    small data   no rebuild 4x4                 rebuild 2x2
    large data   no rebuild 3x3                 no rebuild 2x2

A partition has at least two steps of Δ (appendix A), so short lifetimes make fewer of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dsms.storage.archive.layout import Layout, Strategy

# bytes from which data are large: between the half and the five gigabytes of the thesis
LARGE = 4 << 30
MANY = 10  # queries between two updates that are many
_TABLE: dict[tuple[bool, bool], tuple[int, Strategy]] = {
    (False, False): (4, "no rebuild"),
    (False, True): (2, "rebuild"),
    (True, False): (3, "no rebuild"),
    (True, True): (2, "no rebuild"),
}


@dataclass(frozen=True, slots=True)
class Load:
    """bytes   of the archive
    probes  queries for some keys or a stretch of time, per update
    scans   of everything, per update
    """

    bytes: int
    probes: float = 1.0
    scans: float = 0.0


def choose(load: Load, every: int, span: int | None, origin: int = 0) -> Layout:
    """The layout for such a load; rows live for up to `span` µs (None: for good), updates come
    every `every` µs."""
    side, strategy = _TABLE[load.bytes >= LARGE, load.probes + load.scans >= MANY]
    if span is None:
        return Layout(side, 1, every, None, origin, strategy="no rebuild")
    side = max(1, min(side, span // every // 2))
    return Layout(side, side, every, span, origin, strategy=strategy)


def square(n: int, every: int, span: int, strategy: Strategy = "rebuild") -> Layout:
    """The doubly partitioned index with n sub-indices, which is a square."""
    return Layout(math.isqrt(n), math.isqrt(n), every, span, strategy=strategy)


def wave(
    n: int, every: int, span: int, by: str = "insertion", strategy: Strategy = "rebuild"
) -> Layout:
    """A wave index, to compare with: partitioned chronologically by insertion or by expiration
    alone.

    With `rebuild` it is REINDEX, with `no rebuild` and eager deletion DEL (Golab 2006, §4.4.1)."""
    g, e = (n, 1) if by == "insertion" else (1, n)
    return Layout(g, e, every, span, order="chronological", strategy=strategy, eager=True)
