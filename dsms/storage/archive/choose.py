"""Which layout suits an archive: G x E and the strategy, from its size and how it is used (Golab 2006, §4.3.2, §4.4.6).

An update touches G + E - 1 of n = G * E sub-indices, which is least for G = E, so n is a square.  A larger n means less
to rewrite, but every sub-index that is opened costs something, in updates and in each query.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsms.storage.archive.layout import Layout, Strategy

LARGEST = 8  # G = E at most
OPEN_BYTES = 4 << 20  # opening a file costs about as much as reading or writing that many bytes
APPEND_GAIN = 0.05  # what `no rebuild` saves of an update of a large archive (§4.4.5: five to nine percent)
PROBE_LOSS = 0.03  # ... and costs each probe


@dataclass(frozen=True, slots=True)
class Load:
    """bytes   of the archive
    probes  queries for some keys or a stretch of time, per update
    scans   of everything, per update
    """

    bytes: int
    probes: float = 1.0
    scans: float = 0.0


def cost(side: int, load: Load) -> float:
    """Bytes, or their worth, that go by from one update to the next in a side x side index."""
    n = side * side
    touched = 2 * side - 1
    update = touched * (OPEN_BYTES + 2 * load.bytes / n)
    probe = n * OPEN_BYTES + load.bytes / 100
    scan = n * OPEN_BYTES + load.bytes
    return update + load.probes * probe + load.scans * scan


def choose(load: Load, every: int, span: int | None, origin: int = 0) -> Layout:
    """The cheapest layout for such a load."""
    side = min(range(1 if load.bytes < OPEN_BYTES else 2, LARGEST + 1), key=lambda s: cost(s, load))
    if span is None:
        return Layout(side * side, 1, every, None, origin, strategy="no rebuild")
    steps = max(1, span // every)
    side = max(1, min(side, steps))
    return Layout(side, side, every, span, origin, strategy=_strategy(side, load))


def _strategy(side: int, load: Load) -> Strategy:
    """`no rebuild` where what updates save outweighs what queries lose."""
    update = (2 * side - 1) / (side * side) * load.bytes
    read = load.probes * load.bytes / 100 + load.scans * load.bytes
    return "no rebuild" if APPEND_GAIN * update > PROBE_LOSS * read and load.bytes > 1 << 30 else "rebuild"
