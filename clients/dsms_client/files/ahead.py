"""What a slow iterator gives, made by a thread of its own while what came before is sent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, Generic, TypeVar

ROOM = 2  # items that are made ahead
_END = object()
T = TypeVar("T")


class Ahead(Generic[T]):
    """``async for item in ahead``.  Left early, it waits for the thread, unless that may wait for
    input that never comes (`live`): such a thread ends with the process."""

    def __init__(self, items: Iterator[T], live: bool = False) -> None:
        self._items, self._live = items, live
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._free = threading.Semaphore(ROOM)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="dsms-file")

    async def __aenter__(self) -> Ahead[T]:
        self._thread.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._stopped.set()
        self._free.release()
        while self._thread.is_alive() and not self._live:
            await asyncio.sleep(0.001)

    async def __aiter__(self) -> AsyncIterator[T]:
        while True:
            item, problem = await self._queue.get()
            if problem is not None:
                raise problem
            if item is _END:
                return
            self._free.release()
            yield item

    def _work(self) -> None:
        try:
            for item in self._items:
                self._free.acquire()
                if self._stopped.is_set():
                    break
                self._put(item, None)
            self._put(_END, None)
        except BaseException as problem:
            self._put(_END, problem)
        finally:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()

    def _put(self, item: Any, problem: BaseException | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._queue.put_nowait, (item, problem))
