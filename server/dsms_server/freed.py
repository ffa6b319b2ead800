"""Memory that was let go of goes back to the system: the allocators of Arrow and of C keep what is
freed, for what may come."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa

WORTH = 64 << 20  # bytes that are worth the while


class Freed:
    """Sees when much was let go of since the last time.

    worth      bytes
    give_back  what is called then"""

    def __init__(self, worth: int = WORTH, give_back: Callable[[], None] | None = None) -> None:
        self._worth = worth
        self._give_back = give_back or to_the_system
        self._high = 0

    def look(self, held: int) -> None:
        """So many bytes are held now."""
        self._high = max(self._high, held)
        if self._high - held >= self._worth:
            self._high = held
            self._give_back()


def to_the_system() -> None:
    """What Arrow and C keep of this process's memory without using it."""
    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)
