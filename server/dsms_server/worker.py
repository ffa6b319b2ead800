"""The one thread in which the engine runs, fed by lanes of jobs.

A lane keeps the order of one writer's requests; at most its first job competes for the thread.  A
job is a generator: each `next` is one slice of work, after which the job goes back and others may
pass, so a statement or a heartbeat never waits longer than a slice behind a big frame.  The next
job: arrival order with a handicap (`Urgency`), so that no lane starves.  What goes on after a slice
has no handicap any more.  A job that yields a future waits for it outside the thread, and its lane
with it.

Jobs that are `alike` (small frames of rows for one stream) and wait at the same time are one: the
first that has its turn takes with it those that follow in its lane, and those that are first in
theirs.  No job passes another of its own lane by that.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any

from dsms.api import Cancel
from dsms.errors import DsmsError, InternalError
from dsms_server.clock import elapsed
from dsms_server.watchdog import SliceLimit

log = logging.getLogger("dsms.server")
Steps = Generator[Future[Any] | None, None, Any]


class Urgency(IntEnum):
    """How many slices that came earlier a job may overtake."""

    BULK = 0
    STATEMENT = 64
    CONTROL = 256


@dataclass(frozen=True, slots=True)
class Alike:
    """What makes a job one of a group.

    key    jobs of the same key are applied as one
    size   rows of it, or a guess
    most   rows of a group, at most
    data   what the group's work is told of it
    start  the work of a group, given the `data` of each: the result is a list of results or
           errors"""

    key: str
    size: int
    most: int
    data: Any
    start: Callable[[list[Any]], Steps]


GROUP_JOBS = 512  # of one group, at most
WHAT = 200  # characters of a statement that the log shows


@dataclass(slots=True, eq=False)
class EngineJob:
    """Work for the engine thread; `done(result, error)` is called once, on the event loop."""

    start: Callable[[], Steps]
    done: Callable[[Any, BaseException | None], None]
    urgency: Urgency = Urgency.STATEMENT
    cancel: Cancel = field(default_factory=Cancel)
    kind: str = "job"
    replies: bool = False  # its lane goes on when `done` has been called, as the answer may be big
    what: str = ""  # for the log
    alike: Alike | None = None
    group: list[EngineJob] = field(default_factory=list)  # that go with it, itself among them
    steps: Steps | None = None
    lane: Lane | None = None


@dataclass(slots=True, eq=False, weakref_slot=True)
class Lane:
    """Jobs that run one after the other, as they were submitted; while it is `held` none begins."""

    jobs: deque[EngineJob] = field(default_factory=deque)
    held: bool = False


class Worker:
    """The engine thread.  `submit`, `call` and `stop` belong to the event loop; `idle` is run after
    each slice."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heap: list[tuple[int, int, EngineJob]] = []
        self._count = 0
        self._parked = 0  # jobs that wait for a future
        self._wake = threading.Condition()
        self._held: set[Lane] = set()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="dsms-engine", daemon=True)
        self.after_slice: Callable[[], None] = lambda: None
        self.busy_seconds = 0.0
        self.observe: Callable[[str, float], None] = lambda kind, seconds: None
        self.limit = SliceLimit(None)
        self.query: Callable[[], str] = lambda: ""  # the one that has its turn
        self.running: EngineJob | None = None
        self.began = 0.0  # when the slice under way began, or the last one
        self.slices = 0  # that have ended
        self.most = GROUP_JOBS  # jobs of a group; 1: there are none
        self.grouped = 0  # jobs that went with others

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def ident(self) -> int | None:
        """Of the thread."""
        return self._thread.ident

    def about(self, what: str) -> None:
        """What the job under way is about, for the log."""
        if self.running is not None:
            self.running.what = what[:WHAT]

    def doing(self, job: EngineJob) -> str:
        """What a job is at, in words."""
        query = self.query()
        return ", ".join(
            filter(None, (job.kind, job.what and repr(job.what), query and f"query {query}"))
        )

    @property
    def waiting(self) -> int:
        """Lanes that have work."""
        return len(self._heap)

    def submit(self, job: EngineJob, lane: Lane | None = None) -> EngineJob:
        """Queue a job at the end of its lane (None: of its own).  Any thread may call it."""
        with self._wake:
            job.lane = lane or Lane()
            job.lane.jobs.append(job)
            if len(job.lane.jobs) == 1:
                self._push(job)
                self._wake.notify()
        return job

    def call(
        self, function: Callable[[], Any], urgency: Urgency = Urgency.CONTROL
    ) -> asyncio.Future[Any]:
        """Run a short function in the engine thread; its result comes as a future of the loop."""

        def steps() -> Steps:
            return function()
            yield

        return self.work(steps, urgency)

    def work(
        self, steps: Callable[[], Steps], urgency: Urgency = Urgency.CONTROL
    ) -> asyncio.Future[Any]:
        """`call`, for what may take longer: a slice at a time."""
        future = self._loop.create_future()
        self.submit(EngineJob(steps, partial(_told, future), urgency))
        return future

    def drop(self, job: EngineJob) -> bool:
        """Take a job that has not begun out of its lane; False if it runs, or ran, already."""
        with self._wake:
            lane = job.lane
            if lane is None or job not in lane.jobs or job.steps is not None:
                return False
            first = lane.jobs[0] is job
            lane.jobs.remove(job)
            if first:
                self._heap = [entry for entry in self._heap if entry[2] is not job]
                heapq.heapify(self._heap)
                if lane.jobs:
                    self._push(lane.jobs[0])
            return True

    def hold(self, lane: Lane) -> None:
        """No job of the lane begins until `free`."""
        with self._wake:
            lane.held = True
            self._held.add(lane)
            if lane.jobs and lane.jobs[0].steps is None:
                self._heap = [entry for entry in self._heap if entry[2] is not lane.jobs[0]]
                heapq.heapify(self._heap)

    def free(self, lane: Lane) -> None:
        """The lane goes on."""
        with self._wake:
            if not lane.held:
                return
            lane.held = False
            self._held.discard(lane)
            if lane.jobs and lane.jobs[0].steps is None:
                self._push(lane.jobs[0])
                self._wake.notify()

    async def stop(self) -> None:
        """Finish what was submitted, then end the thread."""
        for lane in list(self._held):
            self.free(lane)
        with self._wake:
            self._stopping = True
            self._wake.notify()
        await self._loop.run_in_executor(None, self._thread.join)

    def _push(self, job: EngineJob, going_on: bool = False) -> None:
        if job.lane is not None and job.lane.held and job.steps is None:
            return
        self._count += 1
        handicap = Urgency.BULK if going_on else job.urgency
        heapq.heappush(self._heap, (self._count - handicap, self._count, job))

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._heap:
                    if self._stopping and not self._parked:
                        return
                    self._wake.wait()
                job = heapq.heappop(self._heap)[2]
                if job.steps is None:
                    self._begin(job)
                self.began = elapsed()
                self.running = job
            self._slice(job)

    def _begin(self, job: EngineJob) -> None:
        """Start a job, and those like it that wait."""
        if job.alike is not None and self.most > 1:
            group = self._gathered(job, job.alike)
            if len(group) > 1:
                job.group = group
                job.steps = job.alike.start([j.alike.data for j in group if j.alike])
                for other in group:
                    other.steps = job.steps
                self.grouped += len(group)
                return
        job.steps = job.start()

    def _gathered(self, job: EngineJob, like: Alike) -> list[EngineJob]:
        """The job and those like it that may go now, in the order in which they would have."""
        group: list[EngineJob] = []
        rows, taken = 0, set[EngineJob]()
        heads = [e[2] for e in sorted(self._heap, key=lambda e: e[:2]) if _is_like(e[2], like)]
        for head in (job, *heads):
            for one in _following(head, like):
                if group and (len(group) >= self.most or rows + _size(one) > like.most):
                    break
                group.append(one)
                rows += _size(one)
                taken.add(head)
        if len(taken) > 1:
            self._heap = [entry for entry in self._heap if entry[2] not in taken]
            heapq.heapify(self._heap)
        return group

    def _slice(self, job: EngineJob) -> None:
        began = self.began
        result, error, more, wait = _advance(job)
        try:
            self.after_slice()
        except Exception:
            log.exception("delivering results failed")
        self.running = None
        self.slices += 1
        took = elapsed() - began
        self.busy_seconds += took
        self.observe(job.kind, took)
        if self.limit.seconds is not None:
            self.limit.see(job.kind, self.doing(job), took)
        with self._wake:
            assert job.lane is not None
            if wait is not None:
                self._parked += 1
            elif more:
                self._push(job, going_on=True)
                return
            elif job.replies:
                self._parked += 1
            else:
                self._next_of(*(job.group or (job,)))
        if wait is not None:
            wait.add_done_callback(lambda future: self._unpark(job))
        elif job.replies:
            self._loop.call_soon_threadsafe(self._answer, job, result, error)
        elif job.group:
            group, job.group = job.group, []  # it must not hold itself, as a circle of objects
            self._loop.call_soon_threadsafe(_answer_all, group, result, error)
        else:
            self._loop.call_soon_threadsafe(job.done, result, error)

    def _answer(self, job: EngineJob, result: Any, error: BaseException | None) -> None:
        """The job's lane goes on once its session has the answer (and may have held the lane)."""
        try:
            job.done(result, error)
        finally:
            with self._wake:
                self._parked -= 1
                self._next_of(job)
                self._wake.notify()

    def _unpark(self, job: EngineJob) -> None:
        """What the job waited for is done (called in any thread)."""
        with self._wake:
            self._parked -= 1
            self._push(job)
            self._wake.notify()

    def _next_of(self, *jobs: EngineJob) -> None:
        """The jobs have ended: the next ones of their lanes compete."""
        lanes: dict[Lane, None] = {}
        for job in jobs:
            assert job.lane is not None
            job.lane.jobs.popleft()
            lanes[job.lane] = None
        for lane in (lane for lane in lanes if lane.jobs):
            self._push(lane.jobs[0])


def _is_like(job: EngineJob, like: Alike) -> bool:
    return job.steps is None and job.alike is not None and job.alike.key == like.key


def _size(job: EngineJob) -> int:
    return job.alike.size if job.alike is not None else 0


def _following(head: EngineJob, like: Alike) -> Iterator[EngineJob]:
    """The first job of a lane, and those like it behind it."""
    assert head.lane is not None
    for job in head.lane.jobs:
        if not _is_like(job, like) or (job is not head and head.lane.held):
            return
        yield job


def _told(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if error is None and not future.done():
        future.set_result(result)
    elif error is not None and not future.done():
        future.set_exception(error)


def _answer_all(
    group: list[EngineJob], results: list[Any] | None, error: BaseException | None
) -> None:
    """Each job of a group is told its own result, or the error that ended all."""
    outcomes = [error] * len(group) if results is None else results
    for job, outcome in zip(group, outcomes, strict=True):
        try:
            if isinstance(outcome, BaseException):
                job.done(None, outcome)
            else:
                job.done(outcome, None)
        except Exception:
            log.exception("the answer of %s failed", job.kind)


def _advance(job: EngineJob) -> tuple[Any, BaseException | None, bool, Future[Any] | None]:
    """One slice: (result, error, more to do, what must be waited for first)."""
    assert job.steps is not None
    try:
        return None, None, True, next(job.steps)
    except StopIteration as stop:
        return stop.value, None, False, None
    except Exception as problem:
        return None, expected(problem, job.kind), False, None


def expected(problem: BaseException, doing: str) -> DsmsError:
    """The error for the user: itself, or for an exception that should not have happened a DS900,
    and a line in the log.  Without its traceback and what it came from, which would keep alive all
    that was at hand then."""
    if isinstance(problem, DsmsError):
        problem.__context__ = problem.__cause__ = None
        return problem.with_traceback(None)
    log.error("%s failed", doing, exc_info=problem)
    return internal(problem, doing)


def internal(problem: BaseException, doing: str) -> InternalError:
    """DS900 for an exception that should not have happened."""
    return InternalError(
        "DS900",
        f"a fault of dsms while it was at work on {doing}: {type(problem).__name__}: {problem}",
        hint="please report this with the server's log",
    )
