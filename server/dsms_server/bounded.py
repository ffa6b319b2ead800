"""System time that does not jump: what the engine is told instead of what the system clock says.

Anybody may set the system clock, and a row that was stamped in the wrong year holds its stream
there.  So the clock is held against one that nobody sets.  As long as the two part by at most
`max_step` it is followed: forwards at once, backwards by going at half the speed until it has
caught up.  A larger jump is not followed, time goes on as it passes; only where the system clock
has stood there for `patience`, it is believed.  Then, and only then, this clock goes back.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from dsms.intake.values import duration_text

LOG = logging.getLogger("dsms.server")


@dataclass(slots=True)
class BoundedClock:
    """Any thread may call it.  All times are µs.

    wall      the system clock, since the epoch
    passed    the clock that nobody sets, since whenever
    max_step  by how much `wall` may part from `passed` within `patience`
    stepped   told of each jump that is followed
    away      how far the system clock is from where it would be if nobody had set it
    steps     jumps that were followed
    """

    wall: Callable[[], int]
    passed: Callable[[], int]
    max_step: int
    patience: int
    stepped: Callable[[], None] = lambda: None
    away: int = 0
    steps: int = 0
    _base: int = field(init=False)  # `wall` - `passed`, as it is believed to be
    _based: int = field(init=False)  # when that was looked at
    _shown: int = field(init=False)
    _looked: int = field(init=False)
    _jump: tuple[int, int] | None = field(default=None, init=False)  # how far, and since when
    _lock: Lock = field(default_factory=Lock, init=False)

    def __post_init__(self) -> None:
        self._based = self._looked = self.passed()
        self._shown = self.wall()
        self._base = self._shown - self._based

    def __call__(self) -> int:
        """System time, in microseconds since the epoch."""
        with self._lock:
            passed = self.passed()
            self.away = self.wall() - passed - self._base
            if abs(self.away) <= self.max_step:
                self._follow(passed)
                now = max(
                    self._base + passed + self.away, self._shown + (passed - self._looked) // 2
                )
            elif self._stands(passed):
                self._believe(passed)
                now = self._base + passed
            else:
                now = max(self._base + passed, self._shown + (passed - self._looked) // 2)
            self._shown, self._looked = now, passed
            return now

    def _follow(self, passed: int) -> None:
        if self._jump is not None:
            LOG.warning("the system clock is back where it was")
            self._jump = None
        if passed - self._based >= self.patience:
            self._rebase(passed)

    def _rebase(self, passed: int) -> None:
        self._base, self._based, self.away = self._base + self.away, passed, 0

    def _stands(self, passed: int) -> bool:
        """Whether the jump under way has stood for long enough; a jump elsewhere is another one."""
        if self._jump is None:
            LOG.warning(
                "the system clock has jumped %s: time goes on as it passes, until the clock has "
                "stood there for %s",
                self._told(),
                duration_text(self.patience),
            )
        if self._jump is None or abs(self.away - self._jump[0]) > self.max_step:
            self._jump = self.away, passed
        return passed - self._jump[1] >= self.patience

    def _believe(self, passed: int) -> None:
        LOG.warning(
            "the system clock has stood %s for %s: it is followed",
            self._told(),
            duration_text(self.patience),
        )
        self._jump = None
        self._rebase(passed)
        self.steps += 1
        self.stepped()

    def _told(self) -> str:
        far = dt.timedelta(seconds=round(abs(self.away) / 1e6))
        return f"{far} {'ahead' if self.away > 0 else 'back'}"
