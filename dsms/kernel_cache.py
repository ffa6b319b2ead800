"""Which kernels have been compiled and kept, and how they are loaded.

When all have been compiled, a mark is left where Numba keeps them (`dsms.kernel_folder`).  It bears
what sources they were made of, and names every kernel with the types that it was made for: so a
start loads them one by one, in a fraction of a second and without running anything.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from dsms.operators import join_kernels

# a kernel's module, its name, and Numba's types of its arguments
Made = tuple[str, str, tuple[Any, ...]]
SOURCES = Path(__file__).parent


def kept() -> list[Made] | None:
    """The kernels that the cache has, those that most queries use first; None: some must be
    compiled."""
    mark = _mark()
    try:
        return None if mark is None else pickle.loads(mark.read_bytes())
    except Exception:  # not there, or not whole, or of another Numba: they are compiled again
        return None


def keep(made: Iterable[Made]) -> None:
    """Leave the mark that all kernels are in the cache, in the place of older ones."""
    mark = _mark()
    if mark is None:
        return
    with contextlib.suppress(OSError):  # a disk that is full: nothing is lost but time
        for old in mark.parent.glob("warm-*"):
            old.unlink(missing_ok=True)
        new = mark.with_name(f"{mark.name}.{os.getpid()}")
        new.write_bytes(pickle.dumps(list(made)))
        new.replace(mark)


def load(made: Iterable[Made], stop: Callable[[], bool] = lambda: False) -> None:
    """Load kernels out of the cache until `stop` says so.  Any thread may do this, beside others
    that run kernels."""
    for module, name, types in made:
        if stop():
            return
        kernel = getattr(import_module(module), name, None)
        if kernel is not None and hasattr(kernel, "compile"):
            kernel.compile(types)


def made() -> Iterator[Made]:
    """What this process has compiled or loaded so far."""
    for kernel in _kernels():
        where = kernel.py_func.__module__, kernel.py_func.__name__
        yield from ((*where, signature.args) for signature in kernel.nopython_signatures)


def _kernels() -> list[Any]:
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in list(sys.modules.items()) if name.startswith("dsms.")]
    found = [k for module in modules for k in vars(module).values() if isinstance(k, Dispatcher)]
    return list({id(kernel): kernel for kernel in found}.values())


def _mark() -> Path | None:
    """The file that says that all kernels of this very source are in the cache; None: there is no
    cache."""
    from llvmlite import binding
    from numba import __version__, config

    if config.DISABLE_JIT:
        return None
    ingredients = [__version__, sys.version, config.CPU_NAME or binding.get_host_cpu_name()]
    for path in sorted(SOURCES.rglob("*.py")):
        stat = path.stat()
        ingredients.append(f"{path.relative_to(SOURCES)} {stat.st_size} {stat.st_mtime_ns}")
    place = Path(join_kernels.chain.stats.cache_path)
    return place / f"warm-{hashlib.sha256(repr(ingredients).encode()).hexdigest()[:16]}"
