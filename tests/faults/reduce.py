"""A case that fails -> a smaller one that fails, too (Zeller and Hildebrandt, Simplifying and
isolating failure-inducing input, IEEE TSE 2002: pieces of half the size each time)."""

from __future__ import annotations

from collections.abc import Callable


def reduced(data: bytes, fails: Callable[[bytes], bool], probes: int = 1000) -> bytes:
    """Pieces are left out as long as it still fails; at most so many are tried."""
    size = max(1, len(data) // 2)
    while probes > 0:
        data, probes, less = _without_pieces(data, size, fails, probes)
        if size == 1 and not less:
            break
        size = max(1, size // 2)
    return data


def _without_pieces(
    data: bytes, size: int, fails: Callable[[bytes], bool], probes: int
) -> tuple[bytes, int, bool]:
    """Without those pieces of that size that don't matter; the probes left; whether there were
    any."""
    at, less = 0, False
    while at < len(data) and probes > 0:
        shorter = data[:at] + data[at + size :]
        probes -= 1
        if fails(shorter):
            data, less = shorter, True
        else:
            at += size
    return data, probes, less
