"""Everything that touches the engine: jobs for the engine thread, the tick of system time, the
hand-over of pushes.

Methods named ``*_steps`` are generators that run in the engine thread (see worker.py); the rest
belongs to the event loop.  What both sides read (`shapes`) is replaced, never changed.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from dsms.api import Cancel, Chunk, Done, IngestReport, Push
from dsms.errors import DsmsError, UsageError
from dsms.frames import Frame
from dsms.intake.convert import Converted
from dsms.secret_texts import without_secrets
from dsms.sql.catalog import Catalog
from dsms_client.protocol import nearest
from dsms_server import clock
from dsms_server.account import Account, Work
from dsms_server.audit.script import Script
from dsms_server.audit.trail import Trail, unwritten
from dsms_server.commit import Committer
from dsms_server.decode import Payload, StreamShape, fitted
from dsms_server.face import EngineFace
from dsms_server.feeds import SubscriptionFeed
from dsms_server.landing import LandingWriter
from dsms_server.pieces import part
from dsms_server.shares import Shares
from dsms_server.worker import Alike, EngineJob, Steps, Urgency, Worker

HOT_TICK = 0.001  # seconds until system time moves on after rows have come
IDLE_TICK = 0.05
SLICE_SECONDS = 0.01  # what one slice of an ingest should take
WHAT = 200  # characters of a statement that the log shows
TURN_SECONDS = 0.01  # of a slice after which queries leave what they are to do to the next one
READ_SECONDS = 0.003  # what one slice of a SELECT's reads should take
LANDING_SECONDS = 1.0  # between two tries to write a landing file where nothing else goes on
RUNNERS = 4  # SELECTs whose plans run at once, beside the engine's thread, at least
ASKERS = 8  # ... and that wait for Spark
JOIN_SECONDS = 5.0  # at the stop, for a cancelled plan to end its stretch
ALLOWED = 4096  # requests of users that are known to be allowed
MIN_SLICE, MAX_SLICE = 1024, 1 << 18  # rows


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
        # raises where a quota has no room for rows of a user for a stream
        self.check_rows: Callable[[str | None, str, int], None] = lambda user, stream, rows: None
        self.loop = loop
        self.worker = Worker(loop)
        self.worker.after_slice = self._after_slice
        self.worker.query = self.engine.under_way
        self.rights_changed: Callable[[], None] = lambda: None  # called in the event loop
        self._rights = engine.rights
        self.now: Callable[[], int] = clock.now_us
        self.shapes: dict[str, StreamShape] = {}
        self.names: dict[str, Any] = {}
        self.slow_readers = 0
        self.read_seconds = READ_SECONDS
        self._sealer = ThreadPoolExecutor(1, thread_name_prefix="dsms-seal")
        self.runners = Shares(runners or max(RUNNERS, os.cpu_count() or 1), clock.elapsed)
        self.askers = Shares(ASKERS, clock.elapsed, math.inf)
        self._subscriber_bytes = subscriber_bytes
        self.committer = Committer(engine.commit)
        self._ready: set[SubscriptionFeed] = set()  # feeds for which something waits
        self._flushing = False
        self._pace: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._hot = False
        self._ticking = False
        self._closing = False
        self._landing_later = False
        self._working = False  # a job that evaluates elastic queries is queued
        self._allowed: set[tuple[str, str, str]] = set()  # requests, under the rights as they are
        self._clock_matters = False  # some stream is stamped on arrival or may go idle

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
        self._plan_tick(IDLE_TICK)

    async def stop(self) -> None:
        """Finish the jobs that wait, close the engine, end the thread."""
        if self._timer is not None:
            self._timer.cancel()
        closed = self.worker.call(self._close_engine, Urgency.BULK)
        await self.worker.stop()
        await closed
        await self.loop.run_in_executor(None, self.runners.join, JOIN_SECONDS)

    def _begin(self) -> None:
        self._learn_names()
        self.engine.archive_with(writer=self._landing)
        self.engine.pause_with(self._turn_is_over)
        self.engine.tidy()

    def _turn_is_over(self) -> bool:
        return clock.elapsed() - self.worker.began >= TURN_SECONDS

    def _landed(self) -> None:
        """A landing file has been written, or not: the engine is to take note, and to give the next
        one."""
        if not self._closing:
            self.worker.submit(
                EngineJob(self._tidy_steps, _nothing, Urgency.CONTROL, kind="landed")
            )

    def _land_again(self) -> None:
        self._landing_later = False
        self._landed()

    def _tidy_steps(self) -> Steps:
        yield from self._whole()
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

    # -- system time -------------------------------------------------------------------------------

    def heat(self) -> None:
        """Rows have come: let system time move on soon, so that a row sent alone is answered."""
        if self._clock_matters and not self._hot:
            self._hot = True
            self._plan_tick(HOT_TICK)

    def _plan_tick(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(delay, self._submit_tick)

    def _submit_tick(self) -> None:
        self._hot = False
        if self._clock_matters and not self._ticking:
            self._ticking = True
            self.worker.submit(
                EngineJob(self._tick_steps, self._ticked, Urgency.CONTROL, kind="tick")
            )
        self._plan_tick(IDLE_TICK)

    def _tick_steps(self) -> Steps:
        yield from self._whole()
        self._tick()
        yield from self._caught_up()

    def _ticked(self, result: Any, error: BaseException | None) -> None:
        self._ticking = False

    def _tick(self, cancel: Cancel | None = None) -> None:
        self.engine.advance(self.now(), cancel)

    def _caught_up(self, cancel: Cancel | None = None) -> Steps:
        """Until queries are where they should be: the request that moved them is answered then, and
        others go in between."""
        while self.engine.catch_up():
            yield None
            if cancel is not None:
                cancel.check()

    def _whole(self, cancel: Cancel | None = None) -> Steps:
        """Until the state has been copied for a checkpoint, if it is: what changes it waits."""
        while self.engine.copy_on():
            yield None
            if cancel is not None:
                cancel.check()

    def _doing(self, what: str) -> None:
        """What the job under way is about, for the log."""
        if self.worker.running is not None:
            self.worker.running.what = what[:WHAT]

    # -- names -------------------------------------------------------------------------------------

    def shape_of(self, stream: str) -> StreamShape | None:
        """The columns of a stream by exact name, else in any case."""
        return self.shapes.get(stream) or self.shapes.get(stream.casefold())

    def _check(self, user: str | None, op: str, name: str) -> None:
        """Raises what `check_request` raises; what was allowed is until a statement has changed
        something."""
        if user is None:
            return
        asked = (user, op, name)
        if asked not in self._allowed or self.engine.rights is not self._rights:
            self.engine.check_request(user, op, name)
            if len(self._allowed) < ALLOWED:
                self._allowed.add(asked)

    def _learn_names(self) -> None:
        self.names = self.engine.names()
        self._allowed.clear()
        if self.engine.rights is not self._rights:
            self._rights = self.engine.rights
            self.loop.call_soon_threadsafe(self.rights_changed)
        shapes: dict[str, StreamShape] = {}
        for definition in self.engine.streams():
            stamped = definition.timestamp is None
            shape = StreamShape(
                definition.name, definition.schema, stamped, definition.idle_timeout is not None
            )
            shapes.setdefault(definition.name.casefold(), shape)
            shapes[definition.name] = shape
        self.shapes = shapes
        self._clock_matters = any(s.stamped or s.watched for s in shapes.values())

    def _known_shape(self, stream: str) -> StreamShape:
        shape = self.shape_of(stream)
        if shape is not None:
            return shape
        known = list(self.names["streams"])
        hint = nearest(stream, known) or f"streams are {', '.join(known) or 'none yet'}"
        raise UsageError("DS401", f"there is no stream `{stream}`", hint=hint)

    # -- jobs --------------------------------------------------------------------------------------

    def execute_steps(
        self, sql: str, cancel: Cancel, account: Account, user: str | None = None
    ) -> Steps:
        """Run a script of a session, with the rights of `user`.  The result is the list of results;
        an error has those before it in `done`.

        A SELECT reads for a few milliseconds at a time; its plan runs in another thread, at its
        session's turn.  What the audit log says of each stands there, or is on its way, before
        there is a result."""
        cancel.check()
        shown = without_secrets(sql)
        self._doing(shown)
        account.work = Work(shown, cancel, clock.elapsed())
        script = Script(self.audit, account, sql, clock.elapsed)
        account.follow = script.begins
        try:
            results = yield from self._script_steps(sql, script, cancel, account, user)
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
        self, sql: str, script: Script, cancel: Cancel, account: Account, user: str | None
    ) -> Steps:
        work = account.work
        assert work is not None
        if self._clock_matters:
            yield from self._whole(cancel)
        if not self.engine.copy_on():
            self._tick(cancel)
        slices = self.engine.slices(sql, cancel, caller=account, user=user)
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
                    self._learn_names()
                if statement.ready:
                    shares = self.askers if statement.elsewhere else self.runners
                    work.run = shares.submit(account.asking, statement.run, cancel)
                    yield work.run.future
                    work.run = None
                elif clock.elapsed() >= until:
                    yield None
                else:
                    continue
                until = clock.elapsed() + self.read_seconds
        except StopIteration as end:
            return end.value
        finally:
            slices.close()

    def ingest_steps(
        self,
        stream: str,
        payload: Payload,
        client: str | None,
        seq: int | None,
        cancel: Cancel,
        user: str | None = None,
    ) -> Steps:
        """Apply one frame of rows in slices; the result is its IngestReport."""
        cancel.check()
        self._doing(f"rows for {stream}")
        self._check(user, "ingest", stream)
        shape = self._known_shape(stream)
        rows = payload.fitted(shape)
        payload.converted = None
        self.check_rows(user, shape.stream, len(rows))
        reports: list[IngestReport] = []
        first = 0
        while True:
            yield from self._whole(cancel)
            piece = part(rows, first, self._pace.get(shape.stream, 4 * MIN_SLICE))
            last = first + len(piece) >= len(rows)
            reports.append(self._ingest_piece(shape, piece, client, seq, first, last, cancel))
            first += len(piece)
            yield from self._caught_up(cancel)
            if last:
                yield from self._kept(shape.stream)
                return _sum(reports)
            yield None
            cancel.check()

    def alike(self, frame: Waiting, cancel: Cancel) -> Alike | None:
        """What makes the frame one of a group; None: it goes by itself, as it is large, or its
        stream is stamped by the time at which each comes."""
        shape, size = self.shape_of(frame.stream), frame.payload.size
        if shape is None or shape.stamped or size > MIN_SLICE:
            return None
        most = self._pace.get(shape.stream, 4 * MIN_SLICE)
        frame.cancel = cancel
        return Alike(shape.stream, size, most, frame, self.together_steps)

    def together_steps(self, frames: list[Waiting]) -> Steps:
        """Apply small frames of one stream in one slice; the result is a list of what became of
        each, IngestReport or DsmsError."""
        stream = frames[0].stream
        together = Together([frame.cancel for frame in frames])
        self._doing(f"rows for {stream}")
        yield from self._whole(together)
        shape = self._known_shape(stream)
        out = self._converted(frames, shape)
        good = [k for k, found in enumerate(out) if isinstance(found, Frame)]
        began = clock.elapsed()
        done = self.engine.ingest_group(shape.stream, [out[k] for k in good])
        rows = sum(len(out[k].rows) for k in good)
        self._paced(shape.stream, rows, clock.elapsed() - began)
        for k, outcome in zip(good, done, strict=True):
            out[k] = outcome
        yield from self._caught_up(together)
        yield from self._kept(shape.stream)
        return out

    def _converted(self, frames: list[Waiting], shape: StreamShape) -> list[Any]:
        """Each frame as it goes to the engine, or why it does not."""
        out: list[Any] = [None] * len(frames)
        may: dict[str | None, DsmsError | None] = {}
        for k, frame in enumerate(frames):
            if frame.user not in may:
                may[frame.user] = self._may_ingest(frame)
            refused = may[frame.user]
            if frame.cancel.is_set:
                out[k] = UsageError("DS610", "the statement was cancelled")
            elif refused is not None:
                out[k] = copy(refused)
        left = [k for k, problem in enumerate(out) if problem is None]
        found = fitted([frames[k].payload for k in left], shape)
        for k, rows in zip(left, found, strict=True):
            frame = frames[k]
            out[k] = rows if isinstance(rows, DsmsError) else self._frame(frame, shape, rows)
        return out

    def _frame(self, frame: Waiting, shape: StreamShape, rows: Any) -> Frame | DsmsError:
        try:
            self.check_rows(frame.user, shape.stream, len(rows))
        except DsmsError as problem:
            return problem
        return Frame(rows, frame.client, frame.seq)

    def _may_ingest(self, frame: Waiting) -> DsmsError | None:
        try:
            self._check(frame.user, "ingest", frame.stream)
        except DsmsError as problem:
            return problem
        return None

    def _kept(self, stream: str) -> Steps:
        """Wait until what the stream was given is as safe as its durability says."""
        if self.engine.durability(stream) == "sync":
            yield self.committer.wait()
            self.engine.check_written(stream)

    def _ingest_piece(
        self,
        shape: StreamShape,
        piece: Converted,
        client: str | None,
        seq: int | None,
        first: int,
        last: bool,
        cancel: Cancel,
    ) -> IngestReport:
        if shape.stamped:
            self._tick(cancel)  # the rows bear the time of their arrival
        began = clock.elapsed()
        report = self.engine.ingest(
            shape.stream, piece, client=client, seq=seq, first=first, last=last, cancel=cancel
        )
        self._paced(shape.stream, len(piece), clock.elapsed() - began)
        return report

    def _paced(self, stream: str, rows: int, took: float) -> None:
        """So many rows took so long: how many the next slice should have."""
        if rows >= MIN_SLICE:
            ideal = int(rows * SLICE_SECONDS / max(took, 1e-6))
            self._pace[stream] = max(MIN_SLICE, min(MAX_SLICE, ideal))

    def heartbeat_steps(
        self, stream: str, ts: int, cancel: Cancel, user: str | None = None
    ) -> Steps:
        """MAX FUTURE holds for all but those who have ADMIN on the stream."""
        self._doing(f"a heartbeat of {stream}")
        yield from self._whole(cancel)
        self._check(user, "heartbeat", stream)
        name = self._known_shape(stream).stream
        if user is None or not self.engine.rights.owns(user, Catalog.key(name)):
            self.engine.check_heartbeat(name, ts)
        self.engine.heartbeat(name, ts, cancel)
        yield from self._caught_up(cancel)
        yield from self._kept(name)

    def end_steps(self, stream: str, cancel: Cancel, user: str | None = None) -> Steps:
        yield from self._whole(cancel)
        self._check(user, "end", stream)
        name = self._known_shape(stream).stream
        self.engine.end(name, cancel)
        yield from self._caught_up(cancel)
        yield from self._kept(name)

    # -- subscriptions -----------------------------------------------------------------------------

    def names_steps(self, user: str | None) -> Steps:
        """What the user may know of."""
        return self.engine.names(user)
        yield

    def subscribe_steps(
        self, feed: SubscriptionFeed, start: int | None, user: str | None = None
    ) -> Steps:
        """Attach the feed; no push is handed over before `grant`.

        What is given at once (a snapshot, the log from `start` on) is shared with the engine and
        may be of any size; the limit is for what comes after it.  As much again may wait in the
        session, hence half of it here.
        """
        yield from self._whole()
        self._check(user, "subscribe", feed.query)
        feed.next_seq = start or 0
        feed.sub = self.engine.subscribe(
            feed.query,
            start,
            1 << 62,
            on_ready=lambda: self._ready.add(feed),
            conflate=feed.conflate,
        )
        feed.sub.reported_limit = self._subscriber_bytes
        feed.snapshot = any(
            isinstance(item, Push) and item.kind == "snapshot" for item in feed.sub.waiting
        )
        if start is None:
            feed.next_seq = self.engine.next_seq(feed.sub.query)
        feed.sub.limit_bytes = feed.sub.pending_bytes + self._subscriber_bytes // 2
        feed.query = feed.sub.query
        feed.types = tuple(c.type for c in feed.sub.columns)
        return feed.sub

    def unsubscribe_steps(self, feed: SubscriptionFeed) -> Steps:
        yield from self._whole()
        self._ready.discard(feed)
        if feed.sub is not None:
            if not feed.sub.closed:
                self.engine.unsubscribe(feed.sub)
            feed.sub.on_ready = None  # which knows the feed, as the feed knows it

    def grant(self, feed: SubscriptionFeed) -> None:
        """The reader has room: hand over what waits now, or what comes next.

        The order matters: either the engine thread sees the credit, or we see that something waits.
        """
        feed.credit = True
        if feed in self._ready and not self._flushing:
            self._flushing = True
            self.worker.submit(
                EngineJob(self._flush_steps, _nothing, Urgency.CONTROL, kind="grant")
            )

    def _flush_steps(self) -> Steps:
        self._flushing = False  # the slice ends with `_hand_over`
        return
        yield

    def settled(self, feed: SubscriptionFeed) -> bool:
        """Whether all that the engine gave so far has gone to the reader's socket."""
        return feed.credit and feed not in self._ready

    def _after_slice(self) -> None:
        self._hand_over()
        if not self._working and self.engine.has_work():
            self._working = True
            self.worker.submit(EngineJob(self._work_steps, _nothing, Urgency.BULK, kind="refresh"))

    def _work_steps(self) -> Steps:
        try:
            while self.engine.work():
                yield None
        finally:
            self._working = False

    def _hand_over(self) -> None:
        if not self._ready:
            return
        for feed in self._ready:
            # ended for slowness while the reader had no room
            if feed.sub is not None and feed.sub.closed and not feed.credit and not feed.dropped:
                feed.dropped = True
                self.slow_readers += 1
        for feed in [f for f in self._ready if f.credit]:
            items = feed.sub.take_chunks() if feed.sub is not None else []
            if items and feed.sub is not None:
                feed.sub.limit_bytes = self._subscriber_bytes // 2
                feed.credit = False
            self._ready.discard(feed)  # after the credit: `settled` must not see it without both
            if items:
                self._deliver(feed, [feed.number(item) for item in items])

    def _deliver(self, feed: SubscriptionFeed, items: list[Push | Chunk]) -> None:
        """Hand items to the reader: at once, or when the rows that they come from are where `sync`
        wants them."""
        if not self.engine.uncommitted("sync"):
            self._give(feed, items)
        else:
            kept = self.committer.wait()
            kept.add_done_callback(lambda _: self._give(feed, items))

    def _give(self, feed: SubscriptionFeed, items: list[Push | Chunk]) -> None:
        """Unless they could not be kept: a reader that was told of them would be told others of
        those numbers after a restart."""
        problem = self.engine.untold(feed.query)
        if problem is None:
            self.loop.call_soon_threadsafe(feed.reader.deliver, feed, items)
        else:
            self.loop.call_soon_threadsafe(feed.reader.take_back, feed, problem, items[0].seq)


@dataclass(slots=True)
class Waiting:
    """A small frame of rows that waits for its turn: `Core.ingest_steps` has the same."""

    stream: str
    payload: Payload
    client: str | None
    seq: int | None
    user: str | None
    cancel: Cancel = field(init=False)


class Together(Cancel):
    """Set when all of these are: nobody waits for any of them any more."""

    __slots__ = ("_all",)

    def __init__(self, cancels: list[Cancel]) -> None:
        super().__init__()
        self._all = cancels

    @property
    def is_set(self) -> bool:
        """Whether somebody asked, for each of them."""
        return all(cancel.is_set for cancel in self._all)

    def check(self) -> None:
        """As `Cancel.check`."""
        if self.is_set:
            raise UsageError("DS610", "the statement was cancelled")


def _nothing(result: Any, error: BaseException | None) -> None:
    """For jobs whose end is not waited for."""


def _sum(reports: list[IngestReport]) -> IngestReport:
    if len(reports) == 1:
        return reports[0]
    return IngestReport(
        sum(r.accepted for r in reports),
        sum(r.late for r in reports),
        sum(r.refused for r in reports),
        int(all(r.repeated for r in reports)),
        reasons=tuple(dict.fromkeys(reason for r in reports for reason in r.reasons)),
    )
