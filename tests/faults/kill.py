"""A real server, killed again and again under load; nothing acknowledged may be lost, no result row
reported twice.

    python -m tests.faults.kill --kills 200

Two writers send frames (several under way at once) to streams of every durability that promises
something, a reader per query resumes where it was after each restart.  The server is killed with
SIGKILL whenever a drawn number of frames has been acknowledged, and now and then while it recovers;
so where in its work it dies is left to the machine.  In the end everything must be as in an engine
in this process that was fed the same frames and never died: each result row, its number, kind and
instant; the windows; the tables.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from dsms.api import Push, Rows
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from dsms_client.aio import AsyncClient
from tests import forked
from tests.waiting import reserved

ROOT = Path(__file__).resolve().parents[2]
SECOND = 1_000_000
UNDER_WAY = 6
PATIENCE, PAUSE = 600.0, 0.02  # seconds for the last rows to come
A, B = "(k STRING, v INT, t TIMESTAMP)", "(k STRING, w FLOAT, t TIMESTAMP)"
DECLARED = f"""
CREATE STREAM IF NOT EXISTS a {A} TIMESTAMP BY t SUBWINDOW 5 s RETAIN 1 h WITH (durability = sync)
CREATE STREAM IF NOT EXISTS b {B} TIMESTAMP BY t SLACK 3 s RETAIN 1 h WITH (durability = interval)
CREATE TABLE IF NOT EXISTS r (k STRING PRIMARY KEY, n INT)
""".strip().split("\n")
QUERIES = {
    "total": "SELECT k, COUNT(*), SUM(v) FROM a [RANGE UNBOUNDED] GROUP BY k",
    "pairs": "SELECT a.k, v, w FROM a [RANGE 6 s], b [RANGE 4 s] WHERE a.k = b.k AND v % 3 = 0",
    "named": "SELECT a.k, v, n FROM a [RANGE 5 s], r WHERE a.k = r.k AND v % 5 = 0",
    "sums": "SELECT k, SUM(v) AS s, MEDIAN(v) FROM a [RANGE 20 s SLIDE 5 s] GROUP BY k ORDER BY s "
    "DESC, k",
    "once": "SELECT DISTINCT k FROM b [RANGE 8 s]",
    "last": "SELECT v FROM a [ROWS 7 SLIDE 5]",
    "since": "SELECT COUNT(*), MAX(w) FROM b [SINCE TIMESTAMP '1970-01-01' SLIDE 10 s]",
    "some": "SELECT APPROX_COUNT_DISTINCT(v), FREQUENT(k, 2) FROM a [RANGE 30 s SLIDE 10 s]",
    "big": "SELECT k, v FROM a [RANGE 3 s] WHERE v > 900",
}
CHECKS = [
    "SELECT k, v, t FROM a [RANGE 1 h] ORDER BY t, v, k",
    "SELECT k, w, t FROM b [RANGE 1 h] ORDER BY t, w, k",
    "SELECT k, n FROM r ORDER BY k",
]
Told = tuple[int, str, int | None, tuple]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sent: `frames` frames of `rows` rows to each stream, and when tables change (before
    which frame)."""

    frames: int
    rows: int
    seed: int = 1

    def frame(self, stream: str, i: int) -> dict[str, list]:
        """The i-th frame of a stream."""
        random = Random(f"{self.seed} {stream} {i}")
        late = 3 * SECOND if stream == "b" else 0
        keys, values, ats = [], [], []
        for j in range(self.rows):
            at = i * SECOND // 2 + j * SECOND // (2 * self.rows)
            # so that joins stay small, and result logs whole
            more = random.randrange(max(1, self.rows // 8))
            keys.append(f"{random.choice('abcde')}{more or ''}")
            values.append(random.randint(0, 999) if stream == "a" else random.randint(0, 99) / 4)
            ats.append(max(0, at - random.randint(0, late) // 2) if late else at)
        return {"k": keys, "v" if stream == "a" else "w": values, "t": ats}

    def changes(self, i: int) -> str | None:
        """What happens to the table before the i-th frames are sent."""
        if i % 40 != 20:
            return None
        at = i * SECOND // 2
        if i == 20:
            return f"INSERT INTO r VALUES ('a', {i}), ('b', {-i}) AT {_instant(at)}"
        return f"UPDATE r SET n = {i} WHERE k = 'a' AT {_instant(at)}"


def _instant(at: int) -> str:
    minutes, seconds = divmod(at // SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    return f"TIMESTAMP '1970-01-01 {hours:02d}:{minutes:02d}:{seconds:02d}'"


def queries() -> Iterator[tuple[str, str]]:
    for name, sql in QUERIES.items():
        yield name, f"CREATE QUERY IF NOT EXISTS {name} AS {sql} WITH (result_log = 10000000)"


# ---------------------------------------------------------------- without any kill


def undisturbed(plan: Plan) -> tuple[dict[str, list[Told]], list[list[tuple]]]:
    """What an engine that never dies tells, and what it holds in the end."""
    engine = Engine(settings=Settings())
    for statement in DECLARED:
        engine.execute(statement)
    for _, sql in queries():
        engine.execute(sql)
    readers = {name: engine.subscribe(name, 0, 1 << 40) for name in QUERIES}
    for i in range(plan.frames):
        change = plan.changes(i)
        if change is not None:
            engine.execute(change)
        for stream in "ab":
            engine.ingest(stream, plan.frame(stream, i))
    for stream in "ab":
        engine.heartbeat(stream, plan.frames * SECOND)
    reported = {
        name: [t for p in reader.take() for t in _reported(p)] for name, reader in readers.items()
    }
    return reported, [_values(engine.execute(sql)[0]) for sql in CHECKS]


def _reported(push: Push) -> Iterator[Told]:
    if push.kind in ("insert", "delete", "result") and push.data is not None:
        ats = [push.at] * push.data.num_rows if push.ats is None else push.ats.to_pylist()
        rows = zip(*(c.to_pylist() for c in push.data.columns), strict=True)
        for k, (at, values) in enumerate(zip(ats, rows, strict=True)):
            yield push.seq + k, push.kind, at, tuple(map(_plain, values))


def _values(rows: Any) -> list[tuple]:
    assert isinstance(rows, Rows)
    return [
        tuple(map(_plain, r)) for r in zip(*(c.to_pylist() for c in rows.data.columns), strict=True)
    ]


def _plain(value: Any) -> Any:
    """Instants as the wire has them."""
    return round(value.timestamp() * SECOND) if hasattr(value, "timestamp") else value


# ---------------------------------------------------------------- with kills


@dataclass(slots=True)
class Ordeal:
    """The server, its writers and readers, and how often it has died."""

    plan: Plan
    kills: int
    random: Random
    data: str
    expected: dict[str, int]  # result rows of each query
    port: int = 0
    process: subprocess.Popen[str] | None = None
    acknowledged: int = 0
    done: int = 0  # kills so far
    in_recovery: int = 0  # of them
    next_kill: int = 0  # at that number of acknowledged frames
    reported: dict[str, list[Told]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    repeated: int = 0
    restarts: asyncio.Event = field(default_factory=asyncio.Event)

    def every(self) -> int:
        """Frames between two kills, on average."""
        return max(1, 2 * self.plan.frames // (self.kills + 1))

    async def start(self) -> None:
        """A life of the server, which may be cut short while it recovers."""
        while True:
            command = [sys.executable, "-m", "dsms_client.cli", "serve", "--data", self.data,
                       "--port", str(self.port),
                       "--no-warmup"]  # a command  # fmt: skip
            process = forked.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
            early = self.done and self.done < self.kills and self.random.random() < 0.15
            if await asyncio.to_thread(self._listening, process, early):
                break
            process.wait()
            self.done += 1
            self.in_recovery += 1
        gap = self.random.randint(1, 2 * self.every() - 1) if self.every() > 1 else 1
        self.next_kill = self.acknowledged + gap
        self.process = process

    def _listening(self, process: subprocess.Popen[str], early: bool) -> bool:
        assert process.stderr is not None
        if early:
            process.stderr.readline()
            process.kill()
            return False
        said = []
        for line in process.stderr:
            said.append(line)
            if line.startswith("note:") or "Traceback" in line:
                self.notes.append(line.strip())
            if "listens on" in line:
                threading.Thread(target=self._drain, args=(process,), daemon=True).start()
                return True
        raise RuntimeError(f"the server did not start: exit code {process.wait()}: {''.join(said)}")

    def _drain(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        self.notes += [
            line.strip() for line in process.stderr if "Traceback" in line or "Error" in line
        ]

    async def watch(self) -> None:
        """Start the server again whenever it has died."""
        while True:
            await self.restarts.wait()
            self.restarts.clear()
            await self.start()

    def acked(self) -> None:
        """A frame has been acknowledged: is it time to die?"""
        self.acknowledged += 1
        process = self.process
        if self.acknowledged >= self.next_kill and self.done < self.kills and process is not None:
            process.kill()
            process.wait()
            self.process = None
            self.done += 1
            self.restarts.set()

    async def write(self, client: AsyncClient, stream: str, first: int, last: int) -> None:
        """Send frames, several under way at once."""
        room = asyncio.Semaphore(UNDER_WAY)

        async def send(i: int) -> None:
            try:
                report = await client.ingest(stream, self.plan.frame(stream, i))
                self.repeated += report.repeated
            finally:
                room.release()
            self.acked()

        async with asyncio.TaskGroup() as group:
            for i in range(first, last):
                await room.acquire()
                group.create_task(send(i))
                await asyncio.sleep(0)

    async def read(self, client: AsyncClient, name: str) -> None:
        """All result rows of a query, from the first on."""
        rows = self.reported.setdefault(name, [])
        async for push in await client.subscribe(name, 0):
            if push.kind in ("insert", "delete", "result"):
                for k, (at, values) in enumerate(zip(push.instants, push.rows, strict=True)):
                    rows.append((push.seq + k, push.kind, at, tuple(map(_plain, values))))

    async def statement(self, client: AsyncClient, sql: str) -> Any:
        """A statement whose fate may be unknown after a crash: asked again unless it was carried
        out."""
        while True:
            try:
                return await client.execute(sql)
            except DsmsError as error:
                if error.code not in ("DS611", "DS612"):
                    if sql.startswith("INSERT") and "r" in sql and error.code.startswith("DS5"):
                        return None  # it was: the key is there
                    raise

    async def run(self) -> list[list[tuple]]:
        """All of it; what the server holds in the end."""
        with reserved() as port:  # also while no server listens there
            self.port = port.getsockname()[1]
            return await self._run()

    async def _run(self) -> list[list[tuple]]:
        await self.start()
        async with asyncio.TaskGroup() as group:  # if the server does not come back, all of it ends
            watcher = group.create_task(self.watch())
            held = await self._with_clients(group)
            watcher.cancel()
        assert self.process is not None
        self.process.terminate()
        self.process.wait()
        return held

    async def _with_clients(self, group: asyncio.TaskGroup) -> list[list[tuple]]:
        async with self._clients() as (left, right, reader):
            for statement in DECLARED:
                await self.statement(left, statement)
            for _, sql in queries():
                await self.statement(left, sql)
            readers = [group.create_task(self.read(reader, name)) for name in QUERIES]
            for first, last in self._stretches():
                change = self.plan.changes(first)
                if change is not None:
                    await self.statement(left, change)
                await asyncio.gather(
                    self.write(left, "a", first, last), self.write(right, "b", first, last)
                )
            for stream in "ab":
                await left.heartbeat(stream, self.plan.frames * SECOND)
            held = [
                [tuple(map(_plain, r)) for r in (await self.statement(left, sql))[0].rows]
                for sql in CHECKS
            ]
            await self._until_all_told(reader)
            for task in readers:
                task.cancel()
        return held

    def _stretches(self) -> Iterator[tuple[int, int]]:
        cuts = [i for i in range(self.plan.frames) if self.plan.changes(i) is not None]
        edges = [0, *cuts, self.plan.frames]
        yield from pairwise(edges)

    async def _until_all_told(self, client: AsyncClient) -> None:
        """Until as many rows have come as there are (a commit may take the disk a while), and any
        beyond them."""
        wait = threading.Event()
        for _ in range(int(PATIENCE / PAUSE)):
            if all(len(self.reported[name]) >= n for name, n in self.expected.items()):
                break
            await asyncio.to_thread(wait.wait, PAUSE)
        for _ in range(20):
            await client.ping()

    @contextlib.asynccontextmanager
    async def _clients(self) -> AsyncIterator[tuple[AsyncClient, AsyncClient, AsyncClient]]:
        options: dict[str, Any] = {"reconnect_seconds": 600.0}
        async with (
            AsyncClient("127.0.0.1", self.port, **options) as left,
            AsyncClient("127.0.0.1", self.port, **options) as right,
            AsyncClient("127.0.0.1", self.port, **options) as reader,
        ):
            yield left, right, reader


def ordeal(plan: Plan, kills: int, seed: int = 1) -> Ordeal:
    """Run it, and compare.  Raises AssertionError with the first difference."""
    want, kept = undisturbed(plan)
    with tempfile.TemporaryDirectory() as data:
        made = Ordeal(
            plan,
            kills,
            Random(seed),
            data,
            {name: len(reported) for name, reported in want.items()},
        )
        try:
            held = asyncio.run(made.run())
        except BaseException as problem:
            problem.add_note(
                f"after {made.done} kills ({made.in_recovery} in recovery); the server said: "
                f"{made.notes}"
            )
            raise
    assert not made.notes, made.notes
    for name in QUERIES:
        _same(name, want[name], made.reported[name])
    for sql, a, b in zip(CHECKS, kept, held, strict=True):
        assert a == b, f"{sql}: {_difference(a, b)}"
    assert made.done >= kills, f"killed {made.done} times only"
    return made


def _same(name: str, want: list[Told], got: list[Told]) -> None:
    numbers = [t[0] for t in got]
    assert numbers == list(range(len(got))), (
        f"{name}: row numbers are not consecutive: {_difference(list(range(len(got))), numbers)}"
    )
    assert want == got, f"{name}: {_difference(want, got)}"


def _difference(want: list, got: list) -> str:
    place = next(
        (i for i, (a, b) in enumerate(zip(want, got, strict=False)) if a != b),
        min(len(want), len(got)),
    )
    there = slice(place, place + 2)
    return f"{len(want)} and {len(got)}, first different at {place}: {want[there]} and {got[there]}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--frames", type=int, default=700, help="per stream")
    parser.add_argument("--rows", type=int, default=8, help="per frame")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    made = ordeal(Plan(args.frames, args.rows), args.kills, args.seed)
    rows = 2 * args.frames * args.rows
    reported = sum(map(len, made.reported.values()))
    print(
        f"{made.done} kills ({made.in_recovery} of them while it recovered), {rows} rows in "
        f"{2 * args.frames} frames"
    )
    print(
        f"{made.repeated} frames repeated and applied once, {reported} result rows, each once and "
        "as without a kill"
    )


if __name__ == "__main__":
    main()
