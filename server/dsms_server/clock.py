"""The only place of the server that reads the system's clocks; tests put their own in its stead."""

from __future__ import annotations

import time

# goes on while the machine sleeps, where the system has such a clock
_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def now_us() -> int:
    """System time in microseconds since the epoch."""
    return time.time_ns() // 1000


def passed_us() -> int:
    """Microseconds on a clock that nobody can set; time that the machine slept counts where the
    system says so."""
    return (time.monotonic_ns() if _BOOT is None else time.clock_gettime_ns(_BOOT)) // 1000


def elapsed() -> float:
    """Seconds on a clock that never goes back, for measuring durations."""
    return time.perf_counter()
