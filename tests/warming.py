"""Kernels compiled once, by all processes of the tests together, where not all are kept yet.

Else those processes, which run neighbouring tests, meet the same kernels at the same moment, and
each compiles all; and so does the first server.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path

from dsms import kernel_cache, warmup

MET = "met-"  # by which process


def cold() -> bool:
    """Some kernel has not been compiled and kept."""
    return kernel_cache.kept() is None


def together(place: Path, number: int, count: int) -> None:
    """Compile kernels as the process with that number, beside others that have the same `place`,
    `count` with it: the first goes through them from the front, the second from the end, until
    they meet; the last to be ready leaves the mark that all are kept."""
    steps: list[Callable[[], None]] = [partial(warmup._run, query) for _, query in warmup.queries()]
    steps += warmup.BESIDE
    order = range(len(steps))
    met: dict[kernel_cache.Made, int] = {}  # and in which step
    for at in reversed(order) if number % 2 else order:
        if _mine(place / str(at)):
            steps[at]()
            for kernel in kernel_cache.made():
                met.setdefault(kernel, at)
    _tell(place, number, met)
    told = sorted(place.glob(f"{MET}*"))
    if len(told) == count:
        kernel_cache.keep(_in_order(told))


def left(met: Iterable[kernel_cache.Made]) -> list[str]:
    """The kernels of this process that are not among those met.  One that only other kernels call
    is compiled into them."""
    met = list(met)
    for module in {module for module, _, _ in met}:
        import_module(module)
    kernels = {f"{k.py_func.__module__}.{k.__name__}": k for k in kernel_cache._kernels()}
    names = {f"{module}.{name}" for module, name, _ in met}
    assert len(names) > 40, names
    called = {name for kernel in kernels.values() for name in kernel.py_func.__code__.co_names}
    return [n for n in sorted(set(kernels) - names) if kernels[n].__name__ not in called]


def _mine(claim: Path) -> bool:
    try:
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _tell(place: Path, number: int, met: dict[kernel_cache.Made, int]) -> None:
    """Whole, or not at all."""
    new = place / f"new-{number}"
    new.write_bytes(pickle.dumps(met))
    new.replace(place / f"{MET}{number}")


def _in_order(told: list[Path]) -> list[kernel_cache.Made]:
    """What all have met, what most queries use first."""
    first: dict[kernel_cache.Made, int] = {}
    for path in told:
        for kernel, at in pickle.loads(path.read_bytes()).items():
            first[kernel] = min(at, first.get(kernel, at))
    return sorted(first, key=lambda kernel: first[kernel])
