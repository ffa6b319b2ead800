"""File descriptors: as many as the system allows, some of them kept for files."""

from __future__ import annotations

import contextlib
import resource

RESERVED = 64  # for checkpoints and segments, however many connect
NONE_LEFT = (
    "no file descriptors are left for more connections: raise the limit of this process "
    "(`ulimit -n`)"
)


def raise_limit() -> None:
    """Raise the soft limit of descriptors to the hard one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Room:
    """How many descriptors connections may have: all but those that are reserved, and as many as
    the engine may have `logs` open."""

    def __init__(self, logs: int = 0) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.below = (
            1 << 62 if soft == resource.RLIM_INFINITY else soft - min(RESERVED, soft // 4) - logs
        )

    def left_by(self, descriptor: int) -> bool:
        """Whether there are some left for files after this new one: the system gives the lowest
        that is free."""
        return descriptor < self.below
