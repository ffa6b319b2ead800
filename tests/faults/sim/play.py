"""Plays a scenario: its clients send and read, its faults come; then all is judged."""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms_client.aio import AsyncClient
from tests.faults.kill import Told, _plain, _reported
from tests.faults.sim.disk import Disk
from tests.faults.sim.host import Clock, Host, Log, simulated
from tests.faults.sim.loop import LIFE, SimLoop
from tests.faults.sim.net import Network
from tests.faults.sim.scenario import SECOND, Fault, Scenario, Stream

TABLE = "CREATE TABLE r (k STRING PRIMARY KEY, w INT); INSERT INTO r VALUES ('k0', 1), ('k2', 2)"
KEYS = 4
REFUSED = ("DS550", "DS551")  # nothing of such a frame was kept
UNKNOWN = ("DS552", "DS614")  # whether it was is not known
ENDED = ("DS409", "DS552", "DS611")  # of a subscription: begun again
AFTER = 7500.0  # seconds in which all must have come, once nothing fails any more
FOR_EVER = 1e9
END = 10_000 * SECOND  # of event time


class Wrong(AssertionError):
    """Something is not as it must be."""


@dataclass(slots=True)
class Frame:
    """What became of one: acknowledged in which life of the server, or its code."""

    rows: tuple[int, ...]
    life: int | None = None
    code: str | None = None


@dataclass(slots=True)
class Outcome:
    """`trace`: what happened, in order; `met`: faults that had something to spoil."""

    trace: list[str] = field(default_factory=list)
    deaths: list[tuple[int, str]] = field(default_factory=list)  # (life, kind)
    refused: int = 0
    lost: int = 0
    rows: int = 0
    met: int = 0


@dataclass(eq=False)
class Play:
    """One scenario, with its faults or some of them."""

    scenario: Scenario
    faults: tuple[Fault, ...]
    folder: str

    def __post_init__(self) -> None:
        seed = self.scenario.seed
        self.loop = SimLoop()
        self.net = Network(self.loop, Random(f"net {seed}"))
        self.weather: list[str] = []
        disk = Disk(self.loop, self.weather, Random(f"disk {seed}"))
        self.clock = Clock(self.loop)
        settings = {"checkpoint_bytes": self.scenario.checkpoint_bytes}
        self.host = Host(self.loop, self.net, disk, self.clock, self.folder, settings,
                         Random(f"host {seed}"))  # its parts  # fmt: skip
        self.outcome = Outcome()
        self.host.on_death = self._died
        self.sent: dict[str, list[Frame]] = {s.name: [] for s in self.scenario.streams}
        self.read: dict[str, list[Told]] = defaultdict(list)

    def run(self) -> Outcome:
        """Raises Wrong, or whatever it is that should not be raised."""
        with simulated(self.loop, self.clock, Random(f"parts {self.scenario.seed}")) as log:
            self.loop.set_exception_handler(self._unforeseen)
            self._unforeseen_said: list[str] = []
            try:
                asyncio.set_event_loop(None)
                self.loop.run_until_complete(self._all(log))
            finally:
                self.host.done()
                _end(self.loop)
        return self.outcome

    def _unforeseen(self, loop: Any, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        if problem is not None:
            self._unforeseen_said.append(f"{context['message']}: {problem!r}")

    def _say(self, text: str) -> None:
        self.outcome.trace.append(f"{self.loop.time():.4f} {text}")

    def _died(self, kind: str) -> None:
        self._say(f"died by {kind}")
        self.outcome.deaths.append((self.host.lives, kind))

    # -- what happens ------------------------------------------------------------------------------

    async def _all(self, log: Log) -> None:
        self.host.start()
        async with self._client("main") as main:
            await main.execute(TABLE)
            for stream in self.scenario.streams:
                await main.execute(stream.sql)
            for query in self.scenario.queries:
                await main.execute(query.declared)
            reader = await self._client("reader").connect()
            readers = [
                self.loop.create_task(self._read(reader, query.name))
                for query in self.scenario.queries
            ]
            began = self.loop.time()
            for fault in self.faults:
                self.loop.call_at(began + fault.at, self._strike, fault, context=Context())
            writers = [
                self.loop.create_task(self._write(stream, began))
                for stream in self.scenario.streams
            ]
            await asyncio.gather(*writers)
            last = max((f.at + abs(f.seconds) for f in self.faults if f.kind != "clock"), default=0)
            await asyncio.sleep(max(0.0, began + last + 1 - self.loop.time()))
            await self._calm(main)
            for stream in self.scenario.streams:
                if not stream.stamped:
                    await again(lambda s=stream.name: main.heartbeat(s, END))  # type: ignore[misc]
            await self._until_told()
            await self._judge(main, log)
            for task in readers:
                task.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
            await reader.close()

    def _client(self, name: str) -> AsyncClient:
        return AsyncClient("sim", 1, client=name, reconnect_seconds=FOR_EVER,
                             connect_seconds=FOR_EVER, seq=0,
                             data=Random(f"{name} {self.scenario.seed}").choice(
                                 ("rows", "arrow", "auto")))  # options  # fmt: skip

    def _strike(self, fault: Fault) -> None:
        self._say(f"fault {fault}")
        host = self.host
        match fault.kind:
            case "crash":
                host.keeps_dying = fault.number
                host.crash(fault.how)
            case "crash within":
                kind, when = fault.how.split()
                host.crash_within(fault.number, when == "after", kind)
            case "weather":
                self.weather.append(fault.how)
                self.loop.call_later(fault.seconds, self._fair, fault.how, context=Context())
            case "clock" if fault.how == "jump":
                self.clock.jump(fault.seconds)
            case "clock":
                self.clock.stop()
                self.loop.call_later(fault.seconds, self.clock.go, context=Context())
            case "net":
                self.net.troubles.append(fault.trouble())
                for end in sorted(self.net.ends, key=lambda end: end.number)[:1]:
                    end.trouble = end.peer.trouble = None
                    end.break_later(ConnectionResetError(104, "reset"))
                    end.peer.break_later(ConnectionResetError(104, "reset"))
            case "latency":
                self.net.slow_for += 1
                self.loop.call_later(fault.seconds, self._quick, context=Context())

    def _fair(self, what: str) -> None:
        if what in self.weather:
            self.weather.remove(what)

    def _quick(self) -> None:
        self.net.slow_for -= 1

    async def _write(self, stream: Stream, began: float) -> None:
        client = self._client(f"writer {stream.name}")
        room, spoke = asyncio.Semaphore(self.scenario.under_way), _lives(client)
        await client.connect()

        async def send(frame: Frame) -> None:
            try:
                await client.ingest(stream.name, [self._row(stream, n) for n in frame.rows])
                frame.life = spoke[-1]
                self._say(f"{stream.name} {frame.rows[0]} acknowledged")
            except DsmsError as problem:
                frame.code = problem.code
                self._say(f"{stream.name} {frame.rows[0]} {problem.code}")
                if problem.code not in REFUSED + UNKNOWN:
                    raise
            finally:
                room.release()

        async with asyncio.TaskGroup() as group:
            for at, rows in self.scenario.frames[stream.name]:
                await asyncio.sleep(max(0.0, began + at - self.loop.time()))
                await room.acquire()
                frame = Frame(rows)
                self.sent[stream.name].append(frame)
                group.create_task(send(frame))
        await client.close()

    def _row(self, stream: Stream, n: int) -> list[Any]:
        value: Any = n
        match stream.value:
            case "STRING":
                value = f"x{n}"
            case "FLOAT":
                value = n + 0.5
            case "DECIMAL(9,2)":
                value = f"{n}.25"
        row = [n, f"k{n * 7 % KEYS}", value]
        return row if stream.stamped else [*row, n * SECOND // 8]

    async def _read(self, client: AsyncClient, name: str) -> None:
        """All result rows; from 0 on again where the server says that they are others now."""
        rows = self.read[name]
        while True:
            try:
                async for push in await client.subscribe(name, len(rows)):
                    if push.kind in ("insert", "delete", "result"):
                        for k, (at, values) in enumerate(
                            zip(push.instants, push.rows, strict=True)
                        ):
                            rows.append((push.seq + k, push.kind, at, tuple(map(plain, values))))
            except DsmsError as problem:
                self._say(f"reader of {name}: {problem.code}")
                if problem.code not in ENDED:
                    raise
                if problem.code == "DS409":
                    rows.clear()
            await asyncio.sleep(1.0)

    # -- the end -----------------------------------------------------------------------------------

    async def _calm(self, main: AsyncClient) -> None:
        """Nothing fails any more; what takes no rows is helped by a restart."""
        self.weather.clear()
        self.net.troubles.clear()
        self.clock.go()
        self.host.keeps_dying = 0
        self._say("calm")
        while self.host.life is None or self.net.accept is None:
            await asyncio.sleep(0.1)
        self.host.disk.plan.at = None
        found = await again(lambda: main.query("SHOW STREAMS"))
        at = found.columns.index("durability")
        if any(str(row[at]) not in ("sync", "interval", "none") for row in found.rows):
            self._say("restart")
            self.host.crash("kill")
            while self.host.life is None or self.net.accept is None:
                await asyncio.sleep(0.1)

    async def _until_told(self) -> None:
        until = self.loop.time() + AFTER
        while self.loop.time() < until:
            await asyncio.sleep(1.0)
            if self._waiting() == 0 and all(
                len(self.read[q.name]) >= self._engine.next_seq(q.name)
                for q in self.scenario.queries
            ):
                await asyncio.sleep(2.0)
                return
        short = {q.name: (len(self.read[q.name]), self._engine.next_seq(q.name))
                 for q in self.scenario.queries}  # what is missing  # fmt: skip
        raise Wrong(f"results did not come: {short}, {self._waiting()} rows wait")

    @property
    def _engine(self) -> Engine:
        assert self.host.engine is not None
        return self.host.engine

    def _waiting(self) -> int:
        """Rows that wait behind a clock."""
        shown = self._engine.execute("SHOW STREAMS")[0].data.to_pylist()  # type: ignore[union-attr]
        return sum(row["waiting"] or 0 for row in shown)

    async def _judge(self, main: AsyncClient, log: Log) -> None:
        if log.said or self._unforeseen_said:
            raise Wrong(f"the server's own faults: {log.said + self._unforeseen_said}")
        there = {s.name: await self._there(main, s) for s in self.scenario.streams}
        for stream in self.scenario.streams:
            self._judge_rows(stream, there[stream.name])
        self._judge_results(there)
        self.outcome.rows = sum(map(len, there.values()))
        self.outcome.met = self.net.met + self.host.disk.met
        for frames in self.sent.values():
            self.outcome.refused += sum(frame.code is not None for frame in frames)

    async def _there(self, main: AsyncClient, stream: Stream) -> list[int]:
        if stream.stamped:
            return [values[0] for *_, values in self._log_of("stamps")]
        sql = f"SELECT n, k, v, t FROM {stream.name} [RANGE 1 DAY] ORDER BY n"
        found = await again(lambda: main.query(sql))
        rows = [list(map(plain, row)) for row in found.rows]
        for row in rows:
            want = self._row(stream, row[0])
            if [*map(str, row)] != [*map(str, want)]:
                raise Wrong(f"{stream.name}: {row} is not {want}")
        return [row[0] for row in rows]

    def _judge_rows(self, stream: Stream, there: list[int]) -> None:
        if len(set(there)) < len(there) or (stream.stamped and there != sorted(there)):
            raise Wrong(f"{stream.name} has rows twice, or not in order: {there}")
        known, frames = set(there), self.sent[stream.name]
        for frame in frames:
            kept = [n in known for n in frame.rows]
            if any(kept) and not all(kept):
                raise Wrong(f"{stream.name} has a part of frame {frame}")
            if frame.code in REFUSED and any(kept):
                raise Wrong(f"{stream.name} has rows of a frame that was refused: {frame}")
        lost = [frame for frame in frames if frame.life is not None and frame.rows[0] not in known]
        if lost:
            self._judge_loss(stream, lost, frames, known)
        self.outcome.lost += len(lost)

    def _judge_loss(
        self, stream: Stream, lost: list[Frame], frames: list[Frame], known: set[int]
    ) -> None:
        """Only the newest rows of a life may be lost, and only as their durability says."""
        deadly = self._deadly(stream)
        for life in {frame.life for frame in lost}:
            if not any(death >= life for death in deadly if life is not None):
                raise Wrong(f"{stream.name} has lost {lost}; deaths: {self.outcome.deaths}")
            kept = [f.rows[0] in known for f in frames if f.life == life]
            if stream.durability == "interval" and kept != sorted(kept, reverse=True):
                raise Wrong(f"{stream.name} has lost rows before others that it has: {lost}")

    def _deadly(self, stream: Stream) -> set[int]:
        """Lives whose end may have taken rows of the stream."""
        kinds = {"sync": (), "interval": ("power",), "none": ("power", "kill")}[stream.durability]
        return {life for life, kind in self.outcome.deaths if kind in kinds}

    def _may_lose(self, name: str) -> bool:
        """Whether it may have lost rows of which readers had results."""
        return any(self._deadly(s) for s in self.scenario.streams if s.name == name)

    def _log_of(self, query: str) -> list[Told]:
        return _told(self._engine, query)

    def _judge_results(self, there: dict[str, list[int]]) -> None:
        twin = self._undisturbed(there)
        for query in self.scenario.queries:
            got = self._log_of(query.name)
            if not any(self._may_lose(stream) for stream in query.streams):
                _same(f"{query.name}, read by its reader", got, self.read[query.name])
            if query.name == "stamps":
                ats = [at for _, _, at, _ in got if at is not None]
                if ats != sorted(ats):
                    raise Wrong(f"stamps go back: {ats}")
                continue
            _same(query.name, _told(twin, query.name), got)

    def _undisturbed(self, there: dict[str, list[int]]) -> Engine:
        """An engine to which nothing happens, and which gets what has been kept."""
        engine = Engine()
        engine.execute(TABLE)
        for stream in self.scenario.streams:
            engine.execute(stream.sql)
        for query in self.scenario.queries:
            engine.execute(query.declared)
        for stream in self.scenario.streams:
            if not stream.stamped:
                rows = [self._row(stream, n) for n in there[stream.name]]
                engine.ingest(stream.name, rows)
                engine.heartbeat(stream.name, END)
        return engine


def _lives(client: AsyncClient) -> list[int]:
    """The lives of the server whose words the client hears, the last one last."""
    heard, receive = [0], client._receive

    def note(message: dict[str, Any]) -> None:
        if client._link is not None:
            life = client._link._transport.peer.context[LIFE]
            heard.append(life.number)
        receive(message)

    client._receive = note  # type: ignore[method-assign]
    return heard


async def again(ask: Callable[[], Awaitable[Any]]) -> Any:
    """What may be asked twice, until it has an answer: a statement is not repeated by the
    client."""
    while True:
        try:
            return await ask()
        except DsmsError as problem:
            if problem.code != "DS611":
                raise


def plain(value: Any) -> Any:
    """As the wire has it in rows, which has decimals as text."""
    return str(value) if isinstance(value, Decimal) else _plain(value)


def _told(engine: Engine, query: str) -> list[Told]:
    reader = engine.subscribe(query, 0, 1 << 40)
    try:
        return [
            (seq, kind, at, tuple(map(plain, values)))
            for push in reader.take()
            for seq, kind, at, values in _reported(push)
        ]
    finally:
        engine.unsubscribe(reader)


def _same(what: str, want: list[Told], got: list[Told]) -> None:
    numbers = [seq for seq, *_ in got]
    if numbers != list(range(len(got))):
        raise Wrong(f"{what}: numbers are not consecutive: {numbers}")
    if list(map(str, want)) != list(map(str, got)):
        place = next(
            (i for i, (a, b) in enumerate(zip(want, got, strict=False)) if str(a) != str(b)),
            min(len(want), len(got)),
        )
        raise Wrong(
            f"{what}: {len(want)} and {len(got)} rows, first different at {place}: "
            f"{want[place : place + 2]} and {got[place : place + 2]}"
        )


def _end(loop: SimLoop) -> None:
    """Tasks of processes that are dead never end."""
    loop.set_exception_handler(lambda loop, context: None)
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.close()


def play(scenario: Scenario, faults: tuple[Fault, ...] | None = None) -> Outcome:
    """The scenario, with its faults or with those."""
    with tempfile.TemporaryDirectory() as folder:
        return Play(scenario, scenario.faults if faults is None else faults, folder).run()
