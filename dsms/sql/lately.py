"""What was made of the last few objects that never change, by the objects themselves: to compare
big ones would take as long as to make it anew."""

from __future__ import annotations

from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Lately(Generic[T]):
    """Up to `most`, in whatever sizes are given in.  Any thread may ask and tell."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: dict[int, tuple[object, T, int]] = {}
        self._size = 0
        self._lock = Lock()

    def of(self, what: object) -> T | None:
        """What was made of that very object, if that is known."""
        found = self._known.get(id(what))
        return found[1] if found is not None and found[0] is what else None

    def put(self, what: object, made: T, size: int) -> None:
        """That was made of it; the oldest are let go of."""
        with self._lock:
            if size > self.most or id(what) in self._known:
                return
            self._known[id(what)] = what, made, size
            self._size += size
            while self._size > self.most:
                self._size -= self._known.pop(next(iter(self._known)))[2]
