"""The server: listens, admits sessions, keeps the totals, stops gracefully."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from dsms.errors import UsageError
from dsms.rights.writers import bare
from dsms_server import clock, descriptors, gauges
from dsms_server.accepting import Bound, Plain, bind
from dsms_server.account import Account
from dsms_server.audit.file import AuditFile
from dsms_server.audit.trail import Trail
from dsms_server.audit.writer import AuditWriter
from dsms_server.bounded import BoundedClock
from dsms_server.config import Config
from dsms_server.connectors.manager import Manager
from dsms_server.connectors.starting import begin
from dsms_server.core import Core
from dsms_server.face import EngineFace
from dsms_server.guesses import Guesses
from dsms_server.identities import Identities
from dsms_server.machine import default_share
from dsms_server.memory import Memory
from dsms_server.metrics import Metrics
from dsms_server.parties import Peer
from dsms_server.quotas import Quotas
from dsms_server.quotas import parse as parse_quotas
from dsms_server.session import Session
from dsms_server.sessions import Sessions
from dsms_server.slices import some_at_once
from dsms_server.spark import Spark, worker_command
from dsms_server.stamps import warn_of_stamps
from dsms_server.strangers import Strangers, address_of
from dsms_server.tls import Door, context_of
from dsms_server.watchdog import SliceLimit, Watchdog
from dsms_server.worker import Lane, Steps

if TYPE_CHECKING:
    from dsms_server.http import Http
    from dsms_server.postgres.face import Postgres

log = logging.getLogger("dsms.server")
LAG_PERIOD = 0.1  # seconds between two looks at the loop's lag
HASHED_AT_ONCE = 2  # passwords, each of which takes memory and time
AUDIT_SECONDS = 5.0  # at the stop, for the audit log to be written
PUSH_SECONDS = 1.0  # at the stop, a peer that has taken nothing for so long gets no more


class Server:
    """`engine` is owned by the server from `start` on and closed by `stop`."""

    version = "dsms 0.1.0"

    def __init__(
        self,
        engine: EngineFace,
        config: Config,
        spark: Spark | None = None,
        take_ports: Callable[[], Bound] = Bound,
    ) -> None:
        """`spark`: the one that the engine's settings know of, if archives are to be updated;
        `take_ports`: gives what listens already, once the server can take over."""
        self.config = config
        self.spark = spark or Spark(worker_command(*config.for_spark))
        self.metrics = Metrics()
        self.run = uuid.uuid4().hex  # part of each hello: another one after each start
        self.sessions: set[Peer] = set()
        self.proven: set[Peer] = set()  # whose peers have shown who they are
        self.strangers: Strangers[Peer] = Strangers(config.max_strangers)
        self.identities = Identities(config, lambda: engine.rights)
        self.guesses = Guesses(config.guess_seconds, clock.elapsed)
        self.audit = Trail()
        self.quotas = Quotas(
            lambda: engine.rights,
            parse_quotas(config.quota),
            lambda: list(self.proven),
            clock.elapsed,
            lambda seconds, then: self.later(seconds, then),
        )
        self.held: set[Peer] = set()  # whose reading is stopped
        self.unprocessed = self.unread = 0
        limit = default_share() if config.memory is None else config.memory
        self.memory = Memory(limit or None, lambda: list(self.sessions))
        self.stopping = False
        self.port = 0
        self.http_port: int | None = None
        self.postgres_port: int | None = None
        self._engine = engine
        self._take_ports = take_ports
        self._lanes: WeakValueDictionary[str, Lane] = WeakValueDictionary()
        self._owners: dict[str, Peer] = {}
        self._numbers = itertools.count(1)

    async def start(self) -> None:
        """Listen; `port` and `http_port` tell where."""
        self.loop = asyncio.get_running_loop()
        self.later: Callable[..., asyncio.TimerHandle] = self.loop.call_later
        self.room = descriptors.Room(self._engine.log_files())
        self.pool = ThreadPoolExecutor(2, thread_name_prefix="dsms-codec")
        self.hashing = ThreadPoolExecutor(HASHED_AT_ONCE, thread_name_prefix="dsms-password")
        # the code that made the engine need not know what runs its archive queries
        self._engine.archive_with(runner=self.spark)
        self.core = Core(
            self._engine, self.loop, self.config.subscriber_bytes, self.config.max_selects
        )
        self.core.ticking.now = self.clock = self._system_time()
        self.audit = self.core.audit = self._begin_audit()
        if self.config.auth:
            self.core.intake.check_rows = self.quotas.check_rows
        self.roll = Sessions(self.loop, self.quotas.rate)
        self.connectors = Manager(self.loop)
        self._engine.serve_with(self.roll, self.memory, self.connectors)
        self.core.names.rights_changed = self._recheck
        self.core.worker.observe = self.metrics.observe_slice
        if self.config.max_slice_ms is not None:
            self.core.worker.limit = SliceLimit(self.config.max_slice_ms / 1000)
        self.watchdog = Watchdog(self.core.worker)
        await self.core.start()
        await self._warn_of_stamps()
        try:
            await self._listen()
        except BaseException:
            await self.core.stop()
            await self._end_audit()
            raise
        begin(self, self.connectors)
        self.spark.updates.observe = self.metrics.observe_update
        self.spark.start()
        self._memory_looked = self.core.worker.call(lambda: None)
        self._lag_due = self.loop.time() + LAG_PERIOD
        self._lag_timer = self.loop.call_at(self._lag_due, self._measure_lag)

    def _system_time(self) -> BoundedClock:
        step, patience = (
            int(s * 1e6) for s in (self.config.max_clock_step, self.config.clock_patience_seconds)
        )
        return BoundedClock(
            clock.now_us, clock.passed_us, step, patience, self.metrics.clock_steps.inc
        )

    def _begin_audit(self) -> Trail:
        """Raises DS640 if the file can't be written."""
        config = self.config
        if config.audit_log is None:
            return Trail()
        file = AuditFile(config.audit_log, config.audit_max_bytes, config.audit_keep)
        file.begin()
        run, sync = self.run[:12], config.audit_required
        writer = AuditWriter(file, run, sync, clock.elapsed, self.clock)
        trail = Trail(writer, self.clock, config.audit, sync, config.audit_seconds)
        trail.start(self.version)
        return trail

    async def _end_audit(self) -> None:
        for session in list(self.sessions):
            self.audit.logout(session.account)
        await self.loop.run_in_executor(None, self.audit.stop, AUDIT_SECONDS)

    def _warn_of_stamps(self) -> asyncio.Future[None]:
        self._steps = self.clock.steps
        return self.core.worker.call(partial(warn_of_stamps, self._engine, self.clock()))

    def _look_at_clock(self) -> None:
        """A jump is seen when it happens, whether anybody needs the time or not."""
        self.clock()
        if self.clock.steps != self._steps:
            self._warn_of_stamps()

    async def _listen(self) -> None:
        config = self.config
        where = f"{config.host}:{config.port}"
        self._http: Http | None = None
        self._postgres: Postgres | None = None
        bound = self._take_ports()
        try:
            self._listener = self._open_port(bound.port or bind(config.host, config.port))
            self.port = self._listener.port
            if config.http_port is not None:
                from dsms_server.http import start_http

                where = f"{config.host}:{config.http_port}"
                self._http = await start_http(self, bound.http)
                self.http_port = self._http.port
            if config.postgres_port is not None:
                from dsms_server.postgres.face import Postgres

                where = f"{config.host}:{config.postgres_port}"
                self._postgres = Postgres(self)
                self._postgres.open(bound.postgres)
                self.postgres_port = self._postgres.port
        except OSError as problem:
            why = problem.strerror or problem
            raise UsageError(
                "DS640", f"cannot listen on {where}: {why}", hint="is one running already?"
            ) from None

    def _open_port(self, sockets: list[socket.socket]) -> Plain | Door:
        if self.config.tls_cert is None:
            return Plain(self, lambda: Session(self), sockets)
        return Door(
            lambda stranger: Session(self, stranger), self, context_of(self.config), sockets
        )

    async def stop(self) -> None:
        """Accept nothing more, finish what was accepted, end the subscriptions, close the
        engine."""
        if self.stopping:
            return
        self.stopping = True
        self._lag_timer.cancel()
        self._listener.close()
        if self._postgres is not None:
            self._postgres.close()
        await self.connectors.stop()
        for session in list(self.sessions):
            session.regulate()  # nothing more is read
        await self._drain()
        for session in list(self.sessions):
            session.farewell(UsageError("DS641", "the server is stopping"))
        await self._flush()
        await self.loop.run_in_executor(None, self.spark.stop)
        await self._stop_core()
        await self._end_audit()
        for session in list(self.sessions):
            session.transport.abort()
        if self._http is not None:
            await self._http.close()
        if self._postgres is not None:
            self._postgres.end()
        self.pool.shutdown(wait=False)
        self.hashing.shutdown(wait=False, cancel_futures=True)

    async def _stop_core(self) -> None:
        """Statements that wait for the audit log do so no longer than while the server runs."""
        stopping = asyncio.ensure_future(self.core.stop())
        while not stopping.done():
            self.audit.sweep(clock.elapsed())
            await asyncio.wait({stopping}, timeout=LAG_PERIOD)
        await stopping

    async def _drain(self) -> None:
        until = clock.elapsed() + self.config.stop_seconds
        while any(s.unprocessed for s in self.sessions) and clock.elapsed() < until:
            await asyncio.sleep(0.005)
        for session in self.sessions:
            session.requests.cancel_all()
        # what this slice hands over is in the outboxes when it returns
        await self.core.worker.call(lambda: None)
        await self._while_readers_take(lambda: not all(s.quiet for s in self.sessions))

    async def _flush(self) -> None:
        await self._while_readers_take(lambda: bool(self.sessions))

    async def _while_readers_take(self, more: Callable[[], bool]) -> None:
        """As long as there is more for readers, and any of them takes something within
        `PUSH_SECONDS`."""
        latest = clock.elapsed() + self.config.stop_seconds
        until, before = 0.0, None
        while more() and clock.elapsed() < latest:
            taken = [s.written for s in self.sessions]
            if taken != before:
                until, before = min(latest, clock.elapsed() + PUSH_SECONDS), taken
            if clock.elapsed() >= until:
                return
            await asyncio.sleep(0.005)

    # -- sessions ----------------------------------------------------------------------------------

    def account_of(self, session: Peer) -> Account:
        """A new one."""
        name = session.transport.get_extra_info("peername")
        peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name or "")
        number, since = next(self._numbers), clock.now_us()
        return Account(number, peer, address_of(name), since, self.config.statement_timeout)

    def admit(self, session: Peer) -> UsageError | None:
        """Count a new session in, or say why not."""
        if self.stopping:
            return UsageError("DS641", "the server is stopping")
        self.sessions.add(session)
        self.metrics.sessions_total.inc()
        crowded_out = self.strangers.enter(session, session.threshold.address)
        if crowded_out is not None:
            self.metrics.let_go.labels("crowded").inc()
            crowded_out.dismiss(
                UsageError("DS621", "too many connections have not shown who they are")
            )
        if not self.room.left_by(session.transport.get_extra_info("socket").fileno()):
            self.metrics.let_go.labels("descriptors").inc()
            log.warning(descriptors.NONE_LEFT)
            return UsageError("DS621", "the server has no file descriptors for more sessions")
        return self._full()

    def prove(self, session: Peer) -> UsageError | None:
        """The peer has authenticated: give it a place, or say why not."""
        problem = self._full()
        if problem is None and self.strangers.leave(session):
            self.proven.add(session)
            self.roll.enter(session)
        return problem

    def _full(self) -> UsageError | None:
        if len(self.proven) < self.config.max_sessions:
            return None
        return UsageError(
            "DS621",
            f"all {self.config.max_sessions} sessions are taken",
            hint="close one, or start the server with a larger --max-sessions",
        )

    def gone(self, session: Peer) -> None:
        self.audit.logout(session.account)
        self.sessions.discard(session)
        self.proven.discard(session)
        self.roll.leave(session)
        self.strangers.leave(session)
        self.held.discard(session)
        if (
            session.requests.client is not None
            and self._owners.get(session.requests.client) is session
        ):
            del self._owners[session.requests.client]

    def lane_of(self, client: str, session: Peer) -> Lane:
        """The lane of a named writer.  A second session of that name takes over and the first is
        ended."""
        owner = self._owners.get(client)
        if owner is not None and owner is not session:
            owner.dismiss(
                UsageError(
                    "DS642", f"another session has taken over the writer's name {bare(client)}"
                )
            )
        self._owners[client] = session
        lane = self._lanes.get(client)
        if lane is None:
            lane = self._lanes[client] = Lane()
        return lane

    def _recheck(self) -> None:
        """Users or their rights have changed: who has lost his goes, or what he may not read any
        more is ended."""
        for session in list(self.sessions):
            if session.user is not None:
                session.requests.recheck()

    def relax(self) -> None:
        """Work was finished: sessions that wait because of the total may go on."""
        for session in list(self.held):
            session.regulate()

    # -- figures -----------------------------------------------------------------------------------

    def update_gauges(self) -> None:
        gauges.update(self)

    def _look_at_memory(self) -> None:
        self.memory.requests, self.memory.replies = self.unprocessed, self.unread
        if self._memory_looked.done() and self.memory.is_due(clock.elapsed()):
            self._memory_looked = self.core.worker.work(self._look_at_state)

    def _look_at_state(self) -> Steps:
        """In the engine's thread."""
        yield from some_at_once(self.memory.looking(self._engine.held, clock.elapsed))
        if self._engine.give_way(self.memory.pressing):
            yield from some_at_once(self.memory.looking(self._engine.held, clock.elapsed))
        if self.config.auth:
            self.quotas.full = yield from some_at_once(self._engine.minding_quotas())

    def _measure_lag(self) -> None:
        self.watchdog.look(clock.elapsed())
        self.audit.sweep(clock.elapsed())
        self.roll.sweep()
        self._look_at_memory()
        self._look_at_clock()
        self.core.sweep()
        self.metrics.observe_lag(max(0.0, self.loop.time() - self._lag_due))
        self._lag_due = self.loop.time() + LAG_PERIOD
        self._lag_timer = self.loop.call_at(self._lag_due, self._measure_lag)
