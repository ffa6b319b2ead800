"""How long until the next try: twice as long after each fault, shorter by chance by up to a half,
so that many that failed together do not come together."""

from __future__ import annotations

from collections.abc import Callable

FIRST, LONGEST = 0.5, 60.0  # seconds


class Backoff:
    """`chance` gives numbers in [0, 1)."""

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance
        self.failed = 0  # times in a row

    def next(self) -> float:
        """Seconds until the next try."""
        whole = min(LONGEST, FIRST * 2 ** min(self.failed, 16))
        self.failed += 1
        return whole * (1 - self._chance() / 2)

    def reset(self) -> None:
        """It has brought something about."""
        self.failed = 0
