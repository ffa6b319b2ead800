"""An event loop whose time passes only when nothing is left to do, and processes that can end.

What is scheduled while a `Life` is at work belongs to it, and is not done any more once it has
ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any

from tests.faults.simfiles import Crashed


@dataclass(slots=True, eq=False)
class Life:
    """A process; `context`: in which all of it is done."""

    number: int
    alive: bool = True
    context: Context = field(default_factory=copy_context)

    def __post_init__(self) -> None:
        self.context.run(LIFE.set, self)


LIFE: ContextVar[Life | None] = ContextVar("life", default=None)


class Stuck(Exception):
    """Nothing is left that could happen."""


class _Selector:
    """Waits for nothing but time."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Stuck(f"nothing is left to happen at {self._loop.time():.3f}")
        self._loop.now += timeout
        return []

    def close(self) -> None: ...


class SimLoop(asyncio.BaseEventLoop):
    """`connect` makes connections; threads and executors are not there, what is given to them is
    done at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self._selector = _Selector(self)
        self.connect: Callable[..., Any]

    def time(self) -> float:
        return self.now

    def _process_events(self, events: list[Any]) -> None: ...

    def _write_to_self(self) -> None: ...

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        return super().call_soon(*_of_life(callback, args, context), context=context)

    def call_soon_threadsafe(
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        return super().call_at(when, *_of_life(callback, args, context), context=context)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as problem:
            future.set_exception(problem)
        return future

    async def create_connection(self, factory: Any, host: Any = None, port: Any = None,
                                **options: Any) -> Any:  # as asyncio has it  # fmt: skip
        return await self.connect(factory)


def _of_life(callback: Any, args: tuple[Any, ...], context: Context | None) -> tuple[Any, ...]:
    life = LIFE.get() if context is None else context.get(LIFE)
    return (callback, *args) if life is None else (_while_alive, life, callback, *args)


def _while_alive(life: Life, callback: Any, *args: Any) -> None:
    if life.alive:
        try:
            callback(*args)
        except Crashed:
            assert not life.alive
