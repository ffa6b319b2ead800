"""The only place of the server that reads the system clock; tests put their own in its stead."""

from __future__ import annotations

import time


def now_us() -> int:
    """System time in microseconds since the epoch."""
    return time.time_ns() // 1000


def elapsed() -> float:
    """Seconds on a clock that never goes back, for measuring durations."""
    return time.perf_counter()
