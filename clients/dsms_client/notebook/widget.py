"""The widget: traits that hold a frame, kept up from an engine or a client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

import anywidget
import traitlets

from dsms.errors import DsmsError, UsageError
from dsms_client.aio import AsyncClient
from dsms_client.notebook.frames import Frames, of_engine
from dsms_client.subscription import AsyncChanges
from dsms_client.sync import Client

HERE = Path(__file__).parent


class Told(Protocol):
    """An engine in this process (`dsms.Engine`)."""

    def on(self, query: str, start: int | None = None, conflate: bool = False) -> Any: ...

    def off(self, function: Callable[[Any], object]) -> None: ...


class Live(anywidget.AnyWidget):
    """A query as it changes: a table of its answer, or of its newest rows, and lines of its
    numbers.

    source   an engine, or a client of either kind
    rows     that the table shows at most
    seconds  that lie between two updates at least; what happens between them is summed up

    `close` ends it.  `frame` is what is shown, `problem` why nothing more comes.
    """

    _esm = HERE / "live.js"
    query = traitlets.Unicode().tag(sync=True)
    frame = traitlets.Dict().tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self, source: Told | Client | AsyncClient, query: str, rows: int = 20, seconds: float = 0.2
    ) -> None:
        super().__init__(query=query)
        self._most, self._seconds = rows, seconds
        self._frames: Frames | None = None
        self._stop: Callable[[], object] = lambda: None
        self._last = float("-inf")
        self._due = False
        if isinstance(source, AsyncClient):
            task = asyncio.get_running_loop().create_task(self._read(self._subscribed(source)))
            self._stop = task.cancel
        elif isinstance(source, Client):
            reader = source.work(self._subscribed)
            reading = source.start(lambda _: self._read(reader))
            self._stop = reading.cancel
        else:
            self._listen(source)

    def close(self) -> None:
        """Read nothing more, and let go of the picture."""
        self._stop()
        super().close()

    # -- an engine in this process -----------------------------------------------------------------

    def _listen(self, engine: Told) -> None:
        def told(changes: Any) -> None:
            if self._frames is None:
                self._begin([c.name for c in changes.columns], [c.type for c in changes.columns])
            for one in of_engine(self.query, changes):
                self._frames.add(one)  # type: ignore[union-attr]
            self._show_soon()

        self._keeps = True
        try:
            engine.on(self.query, conflate=True)(told)
        except UsageError as problem:
            if problem.code != "DS646":
                raise
            self._keeps = False
            engine.on(self.query)(told)
        self._stop = lambda: engine.off(told)

    def _show_soon(self) -> None:
        """Now, or when `seconds` have passed since the last time, where a loop runs that can wait
        for them."""
        wait = self._last + self._seconds - time.monotonic()
        loop = _loop()
        if wait <= 0 or loop is None:
            self._show()
        elif not self._due:
            self._due = True
            loop.call_later(wait, self._show)

    # -- a server ----------------------------------------------------------------------------------

    async def _read(self, reader: AsyncChanges | Coroutine[Any, Any, AsyncChanges]) -> None:
        try:
            async with reader if isinstance(reader, AsyncChanges) else await reader as given:
                self._begin(given.columns, given.types)
                async for changes in given:
                    self._frames.add(changes)  # type: ignore[union-attr]
                    self._show()
                    await asyncio.sleep(self._seconds)
            self.problem = "the query has ended"
        except DsmsError as problem:
            self.problem = str(problem)

    async def _subscribed(self, client: AsyncClient) -> AsyncChanges:
        self._keeps = True
        try:
            return await client.changes(self.query, conflate=True)
        except UsageError as problem:
            if problem.code != "DS646":
                raise
            self._keeps = False
            return await client.changes(self.query)

    # -- what is shown -----------------------------------------------------------------------------

    def _begin(self, columns: Any, types: Any) -> None:
        self._frames = Frames(columns, types, self._most, self._keeps)

    def _show(self) -> None:
        assert self._frames is not None
        self._due, self._last = False, time.monotonic()
        self.problem = self._frames.message or self.problem
        self.frame = self._frames.frame()


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
