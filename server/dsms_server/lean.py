"""What the process of a server does without: it listens sooner, and is smaller.

Arrow looks for pandas when it first meets a list, and loads it if it is installed, which takes
longer than Arrow itself; a server hands Arrow no frame of pandas.  The linear algebra below NumPy
starts a thread for each core; nobody here multiplies matrices.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def load_arrow() -> None:
    """Load NumPy and Arrow without what a server does not need.  To be called before anything else
    loads them; afterwards it changes nothing."""
    os.environ.setdefault(BLAS_THREADS, "1")
    with _without("pandas"):
        import pyarrow as pa

        pa.array([0])  # now Arrow has looked


@contextmanager
def _without(package: str) -> Iterator[None]:
    """As if the package were not installed; one that is loaded stays."""
    finder = _Missing(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Missing:
    """A finder of modules (`sys.meta_path`) that denies one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == self.name:
            raise ModuleNotFoundError(f"a server does without {name}", name=name)
