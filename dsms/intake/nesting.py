"""How much a msgpack value from outside holds, computed before any of it is built: one byte may
announce a map of 64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsms.intake.columns import unlocked


@dataclass(frozen=True, slots=True)
class Extent:
    """size     bytes of the value
    values   how many there are in it, itself among them
    longest  items of the longest array or map (two for each key) that stands directly in it
    deep     values that are arrays or maps in those, or stand in such
    deepest  as many of them as stand in one item of the value
    """

    size: int
    values: int
    longest: int
    deep: int
    deepest: int


def extent(data: memoryview) -> Extent | None:
    """Of the value that `data` begins with; None if it is broken, cut off, or nested too deep."""
    from dsms.intake.nesting_kernel import walk_value

    found = walk_value(unlocked(np.frombuffer(data, np.uint8)))
    return Extent(*found) if found[0] >= 0 else None


def ready() -> None:
    """Have the kernel compiled or loaded now."""
    extent(memoryview(b"\x91\x01"))
