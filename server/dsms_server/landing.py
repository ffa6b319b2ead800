"""The writer of landing files in a server: one thread; after each file the engine looks at the
result."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class LandingWriter:
    """`written` is called in the writer's thread when a file has landed, or could not."""

    def __init__(self, written: Callable[[], None]) -> None:
        self._written = written
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="dsms-land")

    def submit(self, job: Callable[[], Any], /) -> Future[Any]:
        """As an executor does."""
        future = self._pool.submit(job)
        future.add_done_callback(lambda _: self._written())
        return future

    def close(self) -> None:
        """Nothing more will come."""
        self._pool.shutdown()
