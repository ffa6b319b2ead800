"""System time moves on: soon after rows have come, and now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from dsms.api import Cancel
from dsms_server import clock
from dsms_server.face import EngineFace
from dsms_server.names import Names
from dsms_server.slices import caught_up, whole
from dsms_server.worker import EngineJob, Steps, Urgency, Worker

HOT_TICK = 0.001  # seconds until system time moves on after rows have come
IDLE_TICK = 0.05


class Ticking:
    """All but `tick` and the steps belongs to the event loop."""

    def __init__(
        self, engine: EngineFace, worker: Worker, names: Names, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._engine = engine
        self._worker = worker
        self._names = names
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._hot = False
        self._ticking = False
        self.now: Callable[[], int] = clock.now_us

    def start(self) -> None:
        self._plan_tick(IDLE_TICK)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def heat(self) -> None:
        """Rows have come: let system time move on soon, so that a row sent alone is answered."""
        if self._names.clock_matters and not self._hot:
            self._hot = True
            self._plan_tick(HOT_TICK)

    def _plan_tick(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay, self._submit_tick)

    def _submit_tick(self) -> None:
        self._hot = False
        if self._names.clock_matters and not self._ticking:
            self._ticking = True
            self._worker.submit(
                EngineJob(self._tick_steps, self._ticked, Urgency.CONTROL, kind="tick")
            )
        self._plan_tick(IDLE_TICK)

    def _tick_steps(self) -> Steps:
        yield from whole(self._engine)
        self.tick()
        yield from caught_up(self._engine)

    def _ticked(self, result: Any, error: BaseException | None) -> None:
        self._ticking = False

    def tick(self, cancel: Cancel | None = None) -> None:
        """System time is what it is now.  In the engine's thread."""
        self._engine.advance(self.now(), cancel)
