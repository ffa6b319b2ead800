"""One source or sink at work: begun, watched, and begun anew after a fault, later each time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from dsms.errors import DsmsError
from dsms.sessions import ConnectorLine
from dsms.sql.catalog import ConnectorDef
from dsms_server.connectors import secrets
from dsms_server.connectors.backoff import Backoff
from dsms_server.connectors.protocol import Failed

log = logging.getLogger("dsms.connectors")
CLOSING_SECONDS = 10.0  # that one may take to let go of everything
LONGEST_ERROR = 500  # characters


@dataclass(frozen=True, slots=True)
class Time:
    """What a supervisor needs of clocks and chance; tests put their own in its stead.

    now     µs since the epoch;  sleep: for so many seconds;  chance: numbers in [0, 1)"""

    now: Callable[[], int]
    sleep: Callable[[float], Awaitable[Any]]
    chance: Callable[[], float]


Life = Callable[["Supervised"], Awaitable[None]]


class Supervised:
    """`life` runs until something fails; it says how it does by `works`, `took` and `stands`.

    Belongs to the event loop, but for `line`, which any thread may ask for."""

    def __init__(
        self, definition: ConnectorDef, life: Life, time: Time, before: Supervised | None = None
    ) -> None:
        """`before`: what had its place, which must have ended first."""
        self.definition = definition
        self.hidden: list[str] = []  # secrets, which no message shows
        self._life, self._time, self._before = life, time, before
        self._backoff = Backoff(time.chance)
        self._retry = asyncio.Event()
        self._line = ConnectorLine("waiting", since=time.now())
        if before is not None and before.definition.number == definition.number:
            self._line = replace(before._line, state="waiting", since=time.now(), error=None)
        self._lag: Callable[[], int | None] = lambda: None
        self._task: asyncio.Task[None] | None = None

    @property
    def what(self) -> str:
        return f"{self.definition.kind} {self.definition.name}"

    @property
    def position(self) -> str | None:
        """Where it stands."""
        return self._line.position

    def line(self) -> ConnectorLine:
        """How it does."""
        line = self._line
        return replace(line, lag=self._lag() if line.state == "running" else None)

    # -- what its life says ------------------------------------------------------------------------

    def works(self, lag: Callable[[], int | None]) -> None:
        """It has reached the other side."""
        self._lag = lag
        if self._line.error is not None:
            log.warning("%s works again", self.what)
        self._enter("running")

    def took(self, rows: int, rejected: int = 0, why: str | None = None) -> None:
        """Rows have got through; messages and rows were none, `why` not."""
        self._backoff.reset()
        line = self._line
        error = line.error if why is None else self._short(why)
        self._line = replace(
            line, rows=line.rows + rows, rejected=line.rejected + rejected, error=error
        )

    def stands(self, position: str | None) -> None:
        """It has got there."""
        self._line = replace(self._line, position=position)

    # -- its course --------------------------------------------------------------------------------

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End it; what does not let go is left behind."""
        if self._task is None or self._task.done():
            return
        self._task.cancel()
        done, _ = await asyncio.wait({self._task}, timeout=CLOSING_SECONDS)
        if not done:
            log.warning("%s does not end", self.what)

    def retry(self) -> None:
        """Try at once."""
        if self._line.state == "failed":
            self._enter("waiting")
        self._retry.set()

    async def _run(self) -> None:
        if self._before is not None:
            await self._before.stop()
            self._before = None
        if self.definition.paused:
            self._enter("paused")
            return
        while True:
            self._retry.clear()
            try:
                await self._life(self)
            except Failed as problem:
                self._failed(problem, "failed")
                await self._retry.wait()
                self._backoff.reset()
            except Exception as problem:
                self._failed(problem, "waiting")
                await self._pause(self._backoff.next())
            self._line = replace(self._line, restarts=self._line.restarts + 1)

    async def _pause(self, seconds: float) -> None:
        """Until so much time has passed, or somebody asks."""
        loop = asyncio.get_running_loop()
        waits = {
            loop.create_task(_done(self._time.sleep(seconds))),
            loop.create_task(_done(self._retry.wait())),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await wait

    def _enter(self, state: str) -> None:
        if state != self._line.state:
            self._line = replace(self._line, state=state, since=self._time.now())

    def _failed(self, problem: Exception, state: str) -> None:
        self._enter(state)
        error = self._short(told(problem))
        if error != self._line.error:
            log.warning("%s: %s", self.what, error)
        self._line = replace(self._line, error=error)

    def _short(self, text: str) -> str:
        """On one line, without secrets."""
        line = " ".join(secrets.without(text, self.hidden).split())
        return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 3] + "..."


async def _done(wait: Awaitable[Any]) -> None:
    await wait


def told(problem: BaseException) -> str:
    """A fault as users see it: its code first."""
    if isinstance(problem, DsmsError):
        hint = f" ({problem.hint})" if problem.hint else ""
        return f"{problem.code}: {problem.message}{hint}"
    kind = type(problem).__name__
    text = str(problem) or kind
    code = "DS664" if isinstance(problem, OSError | TimeoutError | EOFError) else "DS669"
    return f"{code}: {text if kind in text else f'{kind}: {text}'}"
