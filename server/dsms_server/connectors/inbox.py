"""What libraries hand over in threads of their own, on its way to the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")
MOST = 1 << 16  # items that may wait
AT_ONCE = 1 << 13  # items that are taken at once


class Inbox(Generic[T]):
    """`put` in any thread, which waits where too much does; `take` in the event loop that made
    it."""

    def __init__(self, most: int = MOST) -> None:
        self._loop = asyncio.get_running_loop()
        self._came = asyncio.Event()
        self._items: deque[T] = deque()
        self._most = most
        self._room = threading.Condition()
        self._problem: Exception | None = None
        self._asked = False  # the loop is told once for what comes until it looks
        self._closed = False

    def put(self, item: T) -> None:
        """Hand over; dropped once it is closed."""
        with self._room:
            while len(self._items) >= self._most and not self._closed:
                self._room.wait()
            if self._closed:
                return
            self._items.append(item)
            asked, self._asked = self._asked, True
        if not asked:
            self._loop.call_soon_threadsafe(self._came.set)

    def fail(self, problem: Exception) -> None:
        """Nothing follows what is there."""
        with self._room:
            self._problem = self._problem or problem
        self._loop.call_soon_threadsafe(self._came.set)

    def close(self) -> None:
        """Whoever waits to put something goes on."""
        with self._room:
            self._closed = True
            self._items.clear()
            self._room.notify_all()

    async def take(self, most: int = AT_ONCE) -> list[T]:
        """What is there, as soon as something is.  Raises what `fail` was told."""
        while True:
            with self._room:
                taken = [self._items.popleft() for _ in range(min(most, len(self._items)))]
                self._asked = bool(self._items)
                if taken:
                    self._room.notify_all()
                    return taken
                problem = self._problem
            if problem is not None:
                raise problem
            await self._came.wait()
            self._came.clear()
