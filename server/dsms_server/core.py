"""The engine and its thread: how they begin and end, scripts of statements, and work that nobody
waits for.

Methods named ``*_steps`` are generators that run in the engine thread (see worker.py); the rest
belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import math
import os
from concurrent.futures import ThreadPoolExecutor

from dsms.api import Cancel, Done
from dsms.errors import DsmsError
from dsms.secret_texts import without_secrets
from dsms.sql.parameters import Values
from dsms_server import clock
from dsms_server.account import Account, Work
from dsms_server.audit.script import Script
from dsms_server.audit.trail import Trail, unwritten
from dsms_server.commit import Committer
from dsms_server.delivery import Delivery
from dsms_server.face import EngineFace
from dsms_server.grouping import Grouping
from dsms_server.intake import Intake
from dsms_server.landing import LandingWriter
from dsms_server.names import Names
from dsms_server.shares import Shares
from dsms_server.slices import READ_SECONDS, TURN_SECONDS, nothing, whole
from dsms_server.ticking import Ticking
from dsms_server.worker import EngineJob, Steps, Urgency, Worker

LANDING_SECONDS = 1.0  # between two tries to write a landing file where nothing else goes on
RUNNERS = 4  # SELECTs whose plans run at once, beside the engine's thread, at least
ASKERS = 8  # ... and that wait for Spark
JOIN_SECONDS = 5.0  # at the stop, for a cancelled plan to end its stretch


class Core:
    """The engine and its thread."""

    def __init__(
        self,
        engine: EngineFace,
        loop: asyncio.AbstractEventLoop,
        subscriber_bytes: int,
        runners: int | None = None,
    ) -> None:
        self.engine = engine
        self.audit = Trail()
        self.loop = loop
        self.worker = Worker(loop)
        self.worker.after_slice = self._after_slice
        self.worker.query = engine.under_way
        self.committer = Committer(engine.commit)
        self.names = Names(engine, loop)
        self.ticking = Ticking(engine, self.worker, self.names, loop)
        self.intake = Intake(engine, self.worker, self.names, self.ticking, self.committer)
        self.grouping = Grouping(engine, self.worker, self.names, self.intake)
        self.delivery = Delivery(
            engine, self.worker, self.names, self.committer, loop, subscriber_bytes
        )
        self.read_seconds = READ_SECONDS
        self._sealer = ThreadPoolExecutor(1, thread_name_prefix="dsms-seal")
        self.runners = Shares(runners or max(RUNNERS, os.cpu_count() or 1), clock.elapsed)
        self.askers = Shares(ASKERS, clock.elapsed, math.inf)
        self._closing = False
        self._landing_later = False
        self._working = False  # a job that evaluates elastic queries is queued

    def sweep(self) -> None:
        """Let go of plans that nobody waits for, and see who has the next places."""
        self.runners.sweep()
        self.askers.sweep()

    # -- life --------------------------------------------------------------------------------------

    async def start(self) -> None:
        self.worker.start()
        if self.engine.is_stored:
            self.committer.start()
            self.engine.seal_with(self._sealer)
        self._landing = LandingWriter(self._landed)
        await self.worker.call(self._begin)
        self.ticking.start()

    async def stop(self) -> None:
        """Finish the jobs that wait, close the engine, end the thread."""
        self.ticking.stop()
        closed = self.worker.call(self._close_engine, Urgency.BULK)
        await self.worker.stop()
        await closed
        await self.loop.run_in_executor(None, self.runners.join, JOIN_SECONDS)

    def _begin(self) -> None:
        self.names.learn()
        self.engine.archive_with(writer=self._landing)
        self.engine.pause_with(self._turn_is_over)
        self.engine.tidy()

    def _turn_is_over(self) -> bool:
        return clock.elapsed() - self.worker.began >= TURN_SECONDS

    def _landed(self) -> None:
        """A landing file has been written, or not: the engine is to take note, and to give the next
        one."""
        if not self._closing:
            self.worker.submit(EngineJob(self._tidy_steps, nothing, Urgency.CONTROL, kind="landed"))

    def _land_again(self) -> None:
        self._landing_later = False
        self._landed()

    def _tidy_steps(self) -> Steps:
        yield from whole(self.engine)
        self.engine.tidy()
        if self.engine.archives_fail() and not self._landing_later:
            self._landing_later = True
            self.loop.call_soon_threadsafe(self.loop.call_later, LANDING_SECONDS, self._land_again)

    def _close_engine(self) -> None:
        self._closing = True
        self.committer.stop()
        self._sealer.shutdown()
        self.engine.seal_with(None)
        self.engine.close()
        self._landing.close()

    # -- jobs --------------------------------------------------------------------------------------

    def execute_steps(
        self,
        sql: str,
        cancel: Cancel,
        account: Account,
        user: str | None = None,
        params: Values | None = None,
    ) -> Steps:
        """Run a script of a session, with the rights of `user`.  Where it is shown or written down
        its parameters are, not their values.  The result is the list of results;
        an error has those before it in `done`.

        A SELECT reads for a few milliseconds at a time; its plan runs in another thread, at its
        session's turn.  What the audit log says of each stands there, or is on its way, before
        there is a result."""
        cancel.check()
        shown = without_secrets(sql)
        self.worker.about(shown)
        account.work = Work(shown, cancel, clock.elapsed())
        script = Script(self.audit, account, sql, clock.elapsed)
        account.follow = script.begins
        try:
            results = yield from self._script_steps(sql, script, cancel, account, user, params)
            if script.last is not None:
                yield script.last
            return results
        except Exception as problem:
            kept = script.failed(problem.code if isinstance(problem, DsmsError) else "DS900")
            if kept is not None:
                yield kept
            raise
        finally:
            account.work = account.follow = None

    def _script_steps(
        self,
        sql: str,
        script: Script,
        cancel: Cancel,
        account: Account,
        user: str | None,
        params: Values | None,
    ) -> Steps:
        work = account.work
        assert work is not None
        if self.names.clock_matters:
            yield from whole(self.engine, cancel)
        if not self.engine.copy_on():
            self.ticking.tick(cancel)
        slices = self.engine.slices(sql, cancel, caller=account, user=user, params=params)
        until = clock.elapsed() + self.read_seconds
        try:
            while True:
                statement = next(slices)
                if script.wait is not None:
                    wait, script.wait = script.wait, None
                    yield wait
                    if not wait.result():
                        statement = slices.throw(unwritten(self.audit.complaint))
                if statement.result is not None:
                    work.began = clock.elapsed()  # of the next one
                    script.over(statement.result)
                if isinstance(statement.result, Done):
                    self.names.learn()
                if statement.ready:
                    shares = self.askers if statement.elsewhere else self.runners
                    work.run = shares.submit(account.asking, statement.run, cancel)
                    yield work.run.future
                    work.run = None
                elif statement.waits is not None:
                    yield statement.waits.over
                elif clock.elapsed() >= until:
                    yield None
                else:
                    continue
                until = clock.elapsed() + self.read_seconds
        except StopIteration as end:
            return end.value
        finally:
            slices.close()

    def names_steps(self, user: str | None) -> Steps:
        """What the user may know of."""
        return self.engine.names(user)
        yield

    def _after_slice(self) -> None:
        self.delivery.hand_over()
        if not self._working and self.engine.has_work():
            self._working = True
            self.worker.submit(EngineJob(self._work_steps, nothing, Urgency.BULK, kind="refresh"))

    def _work_steps(self) -> Steps:
        try:
            while self.engine.work():
                yield None
        finally:
            self._working = False
