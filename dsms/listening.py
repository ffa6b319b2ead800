"""Changes of queries handed to functions (`on`) and to ``async for`` (`changes`), in the process of
the engine.

Functions are called by the thread that uses the engine, at the end of the call that brought the
changes: after it the engine is at rest, so they may use it as they like.  What their own calls
bring, they are told when all functions that wait have been called.  Order: that of registration.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from dsms.api import Changes, Subscription
from dsms.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound="Listening")
F = TypeVar("F", bound=Callable[[Changes], object])
LOG = logging.getLogger("dsms")


@dataclass
class Listener:
    """A function that is told the changes of a query.

    failures  how often it raised an exception, which ended only that call; `error`: the last one
    """

    query: str
    function: Callable[[Changes], object]
    reader: Subscription
    calls: int = 0
    failures: int = 0
    error: Exception | None = None

    def tell(self) -> None:
        """Call it with what has come since."""
        self.calls += 1
        try:
            self.function(self.reader.take_changes())
        except Exception as problem:
            self.failures, self.error = self.failures + 1, problem
            name = getattr(self.function, "__qualname__", repr(self.function))
            LOG.exception("%s, which is told the changes of %s, has failed", name, self.query)


class Listening:
    """The part of the engine that hands changes out."""

    def __init__(self) -> None:
        self.listeners: list[Listener] = []
        self._busy = False

    def subscribe(
        self,
        query: str,
        start: int | None = None,
        limit_bytes: int | None = None,
        on_ready: Callable[[], None] | None = None,
        conflate: bool = False,
    ) -> Subscription:
        """See `dsms.engine.Engine`."""
        raise NotImplementedError

    def unsubscribe(self, subscription: Subscription) -> None:
        """See `dsms.engine.Engine`."""
        raise NotImplementedError

    def on(self, query: str, start: int | None = None, conflate: bool = False) -> Callable[[F], F]:
        """Call the function with the `Changes` of a query, from now on: ``@engine.on("q")``.

        The first call has the snapshot of a view, or (`start`) the rows from that number on; the
        last one has `end`.  `conflate` as for `subscribe`.  An exception of the function is
        written to the log `dsms`, counted (`Listener.failures`), and harms nothing else.  `off`
        ends it."""

        def register(function: F) -> F:
            reader = self.subscribe(query, start, conflate=conflate)
            self.listeners.append(Listener(query, function, reader))
            self._tell()
            return function

        return register

    def off(self, function: Callable[[Changes], object]) -> None:
        """Tell the function nothing more, of any query."""
        for listener in [x for x in self.listeners if x.function is function]:
            self.listeners.remove(listener)
            self.unsubscribe(listener.reader)

    def changes(
        self, query: str, start: int | None = None, conflate: bool = False
    ) -> ChangesReader:
        """The changes of a query: ``async for changes in engine.changes("q")``, by a task of the
        thread that uses the engine; `take` has what is there without waiting."""
        return ChangesReader(self, query, start, conflate)

    def _tell(self) -> None:
        """Call whom something waits for, unless that is being done."""
        if self._busy:
            return
        self._busy = True
        try:
            while waiting := [x for x in self.listeners if x.reader.pending]:
                for listener in waiting:
                    listener.tell()
                    if listener.reader.closed and not listener.reader.pending:
                        self.listeners = [x for x in self.listeners if x is not listener]
        finally:
            self._busy = False


def telling(method: Callable[Concatenate[E, P], T]) -> Callable[Concatenate[E, P], T]:
    """A method of the engine at whose end functions are told what it brought."""

    @wraps(method)
    def call(self: E, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not self.listeners or self._busy:
            return method(self, *args, **kwargs)
        self._busy = True
        try:
            return method(self, *args, **kwargs)
        finally:
            self._busy = False
            self._tell()

    return call


class ChangesReader:
    """``async for changes in reader``, until the query ends."""

    def __init__(self, engine: Listening, query: str, start: int | None, conflate: bool) -> None:
        self._engine = engine
        self._came: asyncio.Event | None = None
        self._loop: Any = None
        self.reader = engine.subscribe(query, start, on_ready=self._ready, conflate=conflate)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Changes:
        """What has come since, as soon as something has.  Raises the error that ended the query, or
        this reader (DS620)."""
        self._loop = asyncio.get_running_loop()
        while not self.reader.pending and not self.reader.closed:
            self._came = asyncio.Event()
            await self._came.wait()
        if self.reader.pending:
            changes = self.take()
            if len(changes) or changes.snapshot is not None or changes.end is None:
                return changes
        raise StopAsyncIteration

    def take(self) -> Changes:
        """What has come since, perhaps nothing.  Raises the error that ended the query, once what
        came before has been taken."""
        changes = self.reader.take_changes()
        end = changes.end
        if end is not None and end.code is not None:
            raise UsageError(end.code, end.message or "the query has ended")
        return changes

    def close(self) -> None:
        """Give it up."""
        self._engine.unsubscribe(self.reader)
        self._ready()

    def _ready(self) -> None:
        if self._came is not None:
            self._loop.call_soon_threadsafe(self._came.set)
