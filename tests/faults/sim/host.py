"""The server of a simulation: lives of it, one after the other, on the same disk."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import dsms_client.aio
from dsms.engine import Engine
from dsms.settings import Settings
from dsms_server import alive, clock, core, requests, server, ticking, worker
from dsms_server.commit import INTERVAL
from dsms_server.config import Config
from dsms_server.session import Session
from dsms_server.shares import Run
from tests.faults.sim.disk import Disk
from tests.faults.sim.loop import Life, SimLoop
from tests.faults.sim.net import Network
from tests.faults.simfiles import Crashed

START = 1_700_000_000.0  # the system clock when all begins, seconds
TICK = 0.5  # seconds between two looks at the clock


@dataclass(slots=True)
class Clock:
    """The system's clocks: `away`: how far somebody has set the one; it may be stopped, too."""

    loop: SimLoop
    away: float = START
    stopped: float | None = None

    def wall(self) -> int:
        now = self.loop.time() + self.away if self.stopped is None else self.stopped
        return int(now * 1e6)

    def passed(self) -> int:
        return int(self.loop.time() * 1e6)

    def jump(self, seconds: float) -> None:
        self.go()
        self.away += seconds

    def stop(self) -> None:
        self.stopped = self.wall() / 1e6

    def go(self) -> None:
        """It goes on from where it stands."""
        if self.stopped is not None:
            self.away, self.stopped = self.stopped - self.loop.time(), None


@dataclass(eq=False)
class Host:
    """`lives` so far; `notes`: what each has said of how it came back."""

    loop: SimLoop
    net: Network
    disk: Disk
    clock: Clock
    data: str
    settings: dict[str, Any]
    random: Random
    life: Life | None = None
    engine: Engine | None = None
    lives: int = 0
    notes: list[list[str]] = field(default_factory=list)
    downtime: float = 1.0
    on_death: Callable[[str], None] = lambda kind: None
    kind: str = "kill"  # of the next death
    keeps_dying: int = 0  # at how many starts more
    coming: bool = False  # it will be started

    def start(self) -> None:
        """A new life, if there is none."""
        self.coming = False
        if self.life is not None:
            return
        self.lives += 1
        self.life = life = Life(self.lives)
        self.disk.life, self.disk.died = life, self._died
        if self.keeps_dying:
            self.keeps_dying -= 1
            self.disk.die_at(self.random.randint(0, 60), self.random.random() < 0.5)
        try:
            life.context.run(self._open)
        except Crashed:
            return
        self.loop.create_task(self._serve(life), context=life.context)

    def _open(self) -> None:
        settings = Settings(timer=clock.elapsed, deferred=True, group_commit=True, **self.settings)
        engine = Engine(self.data, settings, self.disk)
        engine.runtime.durable.least = 1
        self.engine = engine
        self.notes.append(list(engine.saver.recovered.notes))

    async def _serve(self, life: Life) -> None:
        made = SimServer(self, Config(port=0, ping_seconds=5.0, memory=0))
        await made.start()
        self.net.accept = lambda: (Session(made), life.context)
        self.server = made

    def crash(self, kind: str) -> None:
        """The process ends now, by a kill or with the power."""
        if self.life is not None:
            self.kind = kind
            self.life.alive = False
            self.disk.dead = True
            self._died()

    def crash_within(self, operations: int, after: bool, kind: str) -> None:
        """It ends at one of the next operations on files."""
        if self.life is not None:
            self.kind = kind
            self.disk.die_at(operations, after)

    def _died(self) -> None:
        self.life = None
        self.net.accept = None
        self.net.server_died()
        self.on_death(self.kind)
        self.coming = True
        self.loop.call_soon(self._bury, context=Context())

    def _bury(self) -> None:
        if self.engine is not None:
            self.engine.saver.catalog.close()
            self.engine = None
        self.disk = self.disk.next_life(self.kind)
        self.kind = "kill"
        self.loop.call_later(self.downtime, self.start, context=Context())

    def done(self) -> None:
        """All is over."""
        if self.life is not None:
            self.life.alive = False
        if self.engine is not None:
            self.engine.saver.catalog.close()


class SimServer(server.Server):
    """A server without threads and sockets."""

    def __init__(self, host: Host, config: Config) -> None:
        updates = SimpleNamespace(observe=None, waiting=0)
        spark: Any = SimpleNamespace(
            updates=updates, start=lambda: None, stop=lambda: None, up=0, starts=0, deaths=0
        )
        assert host.engine is not None
        super().__init__(host.engine, config, spark)
        for name in ("sessions", "proven", "held"):
            setattr(self, name, InOrder())

    async def _listen(self) -> None:
        self._http = None
        self.core.delivery.ready = InOrder()


class InOrder(dict):  # type: ignore[type-arg]
    """A set in the order in which its members came, the same in every process."""

    def add(self, member: Any) -> None:
        self[member] = None

    def discard(self, member: Any) -> None:
        self.pop(member, None)


class SimWorker(worker.Worker):
    """Its slices are done by the event loop, a little later each."""

    random = Random(0)
    _planned = False

    def start(self) -> None: ...

    @property
    def alive(self) -> bool:
        return True

    def _push(self, job: Any, going_on: bool = False) -> None:
        super()._push(job, going_on)
        self._plan()

    def _plan(self) -> None:
        if self._heap and not self._planned:
            self._planned = True
            self._loop.call_later(self.random.choice((0, 0, 0.0005, 0.002)), self._one)

    def _one(self) -> None:
        self._planned = False
        if self._heap:
            job = heapq.heappop(self._heap)[2]
            if job.steps is None:
                job.steps = job.start()
            self.began = clock.elapsed()
            self.running = job
            self._slice(job)
            self._plan()


class SimCommitter:
    """As `dsms_server.commit.Committer`, in the event loop."""

    random = Random(0)

    def __init__(self, commit: Callable[[str | None], None]) -> None:
        self._commit, self._waiting = commit, list[Future[None]]()

    def start(self) -> None:
        asyncio.get_running_loop().call_later(INTERVAL, self._all)

    def stop(self) -> None:
        self._serve()

    def wait(self) -> Future[None]:
        future: Future[None] = Future()
        if not self._waiting:
            asyncio.get_running_loop().call_later(self.random.uniform(0, 0.02), self._serve)
        self._waiting.append(future)
        return future

    def _serve(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._commit("sync")
        for future in waiting:
            future.set_result(None)

    def _all(self) -> None:
        self._commit(None)
        self.start()


class Pool:
    """An executor whose jobs are done a little later."""

    random = Random(0)

    def __init__(self, *args: Any, **options: Any) -> None:
        self._jobs: list[Callable[[], None]] = []

    def submit(self, job: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def do() -> None:
            try:
                result = job(*args)
            except Exception as problem:
                future.set_exception(problem)
            else:
                future.set_result(result)

        self._jobs.append(do)
        delay = self.random.choice((0.0, 0.01, 0.5, 3.0))
        asyncio.get_running_loop().call_later(delay, self._one)
        return future

    def _one(self) -> None:
        if self._jobs:
            self._jobs.pop(0)()

    def shutdown(self, **options: Any) -> None:
        while self._jobs:
            self._one()


class Shares:
    """Places for all; each is done a little later."""

    running = waiting = 0

    def __init__(self, *args: Any) -> None:
        self._pool = Pool()

    def submit(self, asking: Any, work: Callable[[], None], cancel: Any) -> Run:
        run = Run(asking, work, cancel, began=clock.elapsed())
        run.future = self._pool.submit(work)
        return run

    def sweep(self) -> None: ...

    def join(self, seconds: float) -> None: ...


class Log(logging.Handler):
    """What the server logs as its own faults."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        problem = record.exc_info[1] if record.exc_info else None
        if not isinstance(problem, Crashed):
            self.said.append(f"{record.getMessage()}: {problem!r}")


@contextmanager
def simulated(loop: SimLoop, clocks: Clock, random: Random) -> Iterator[Log]:
    """Meanwhile the parts of server and client that know threads, sockets and clocks know the
    simulation's instead."""
    log = Log()
    parts: list[tuple[Any, str, Any]] = [
        (clock, "now_us", clocks.wall),
        (clock, "passed_us", clocks.passed),
        (clock, "elapsed", loop.time),
        (worker, "elapsed", loop.time),
        (requests, "elapsed", loop.time),
        (core, "Worker", SimWorker),
        (core, "Committer", SimCommitter),
        (core, "ThreadPoolExecutor", Pool),
        (core, "LandingWriter", lambda written: Pool()),
        (core, "Shares", Shares),
        (ticking, "IDLE_TICK", TICK),
        (server, "ThreadPoolExecutor", Pool),
        (server, "LAG_PERIOD", TICK),
        (alive, "unread", lambda line: sum(map(len, line.end.inbox))),
        (dsms_client.aio, "random", random),
    ]
    with pytest.MonkeyPatch.context() as patch:
        for module, name, part in parts:
            patch.setattr(module, name, part)
        for part in (SimWorker, SimCommitter, Pool):
            patch.setattr(part, "random", random)
        logging.getLogger("dsms").addHandler(log)
        try:
            yield log
        finally:
            logging.getLogger("dsms").removeHandler(log)


__all__ = ["Clock", "Host", "Log", "SimServer", "copy_context", "simulated"]
