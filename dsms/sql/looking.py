"""Whether work on a big statement should go on: asked again and again by what walks it.

Binding, rewriting and rendering are functions of the statement and the catalog and are called from
everywhere, so who should be asked is known per thread and not handed through all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Here(threading.local):
    look: Callable[[], None] | None = None


_here = _Here()


def look() -> None:
    """Raise what `looking` was given to raise, if this thread's work is not wanted any more."""
    if _here.look is not None:
        _here.look()


@contextmanager
def looking(ask: Callable[[], None] | None) -> Iterator[None]:
    """Meanwhile, in this thread, `look` asks `ask`."""
    before, _here.look = _here.look, ask
    try:
        yield
    finally:
        _here.look = before
