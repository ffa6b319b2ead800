"""Kernels compiled once, by all processes of the tests together, where there are none yet.

Else those processes, which run neighbouring tests, meet the same kernels at the same moment, and
each compiles all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dsms import warmup
from dsms.operators import join_kernels


def cold() -> bool:
    """No kernel has been compiled and kept."""
    return not any(Path(join_kernels.chain.stats.cache_path).glob("*.nbi"))


def together(place: Path, number: int) -> None:
    """Compile kernels as the process with that number, beside others that have the same `place`:
    the first goes through them from the front, the second from the end, until they meet."""
    steps: list[Callable[[], None]] = [partial(warmup._run, query) for _, query in warmup.queries()]
    steps += warmup.BESIDE
    order = range(len(steps))
    for at in reversed(order) if number % 2 else order:
        if _mine(place / str(at)):
            steps[at]()


def _mine(claim: Path) -> bool:
    try:
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
