"""An engine over files that may fail or be tampered with, with its writers and readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from dsms.api import Push
from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.settings import Settings
from dsms.storage import encrypted_files
from dsms.storage.log import HEAD, MAGIC
from tests.faults.simfiles import Crashed, Plan, SimFiles

STREAMS = """
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t SUBWINDOW 10 s RETAIN 1 min
    WITH (durability = {durability});
CREATE STREAM u (k STRING, w INT, t TIMESTAMP) TIMESTAMP BY t SLACK 2 s WITH (durability = {durability});
CREATE TABLE r (k STRING PRIMARY KEY, n INT);
INSERT INTO r VALUES ('a', 1), ('b', 2);
"""  # noqa: E501
QUERIES = {
    "sums": "SELECT k, SUM(v), COUNT(*) FROM s [RANGE UNBOUNDED] GROUP BY k",
    "since": "SELECT COUNT(*), MAX(v) FROM s [SINCE TIMESTAMP '1970-01-01' SLIDE 10 s]",
    "pairs": "SELECT s.k, v, w, n FROM s [RANGE 20 s], u [RANGE 10 s], r WHERE s.k = u.k AND s.k "
    "= r.k",
    "top": "SELECT k, SUM(v) AS x FROM s [RANGE 30 s SLIDE 10 s] GROUP BY k ORDER BY x DESC LIMIT "
    "2",
    "some": "SELECT APPROX_COUNT_DISTINCT(v), FREQUENT(k, 2) FROM s [RANGE 30 s SLIDE 5 s]",
}


@dataclass(slots=True)
class World:
    """An engine over files that may fail, with its writers and readers."""

    data: Path
    durability: str = "interval"
    checkpoint_bytes: int = 4000
    files: SimFiles = field(default_factory=SimFiles)
    rows: dict[str, list[tuple]] = field(default_factory=dict)  # what readers have got, by query
    sent: int = 0  # steps done and acknowledged
    engine: Engine = field(init=False)

    def open(self, *accept_loss: str) -> None:
        settings = Settings(checkpoint_bytes=self.checkpoint_bytes, accept_loss=accept_loss)
        self.engine = Engine(str(self.data), settings, self.files)
        self.engine.runtime.durable.least = 1

    def declare(self) -> None:
        self.engine.execute(STREAMS.format(durability=self.durability))
        for name, sql in QUERIES.items():
            self.engine.execute(f"CREATE QUERY {name} AS {sql}")

    def step(self, i: int) -> None:
        """The i-th thing that the outside does; done again if it was not acknowledged."""
        at = [(i * 700_000 + j * 1000) * 10 for j in range(5)]
        keys = ["abc"[(i + j) % 3] for j in range(5)]
        self.engine.ingest(
            "s", {"k": keys, "v": [i * j for j in range(5)], "t": at}, client="w", seq=i
        )
        self.engine.ingest("u", {"k": keys[:2], "w": [i, -i], "t": at[:2]}, client="w", seq=i)
        if i % 7 == 3:
            # also if it was not acknowledged
            there = count(self, "SELECT COUNT(*) FROM r WHERE k = 'c'")
            self.engine.execute(
                f"UPDATE r SET n = {i} WHERE k = 'c'"
                if there
                else f"INSERT INTO r VALUES ('c', {i})"
            )
        if i % 9 == 4:
            self.engine.heartbeat("u", at[-1])

    def read(self, name: str) -> None:
        reader = self.engine.subscribe(name, len(self.rows.setdefault(name, [])))
        for push in reader.take():
            self.rows[name] += told(push)
        self.engine.unsubscribe(reader)

    def crash(self, kind: str = "kill", seed: int = 0) -> None:
        if getattr(self, "engine", None) is not None and self.engine.saver is not None:
            self.engine.saver.catalog.close()
        self.files = self.files.crash(kind, Random(seed))
        self.files.plan = Plan()


def told(push: Push) -> Iterator[tuple]:
    if push.data is not None and push.kind != "snapshot":
        ats = [push.at] * push.data.num_rows if push.ats is None else push.ats.to_pylist()
        values = zip(*(c.to_pylist() for c in push.data.columns), strict=True)
        yield from ((push.kind, at, *v) for at, v in zip(ats, values, strict=True))


def run(world: World, steps: int) -> None:
    while world.sent < steps:
        world.step(world.sent)
        world.sent += 1
        if world.sent % 5 == 0:
            for name in QUERIES:
                world.read(name)


def finish(world: World, steps: int = 30) -> dict[str, list[tuple]]:
    run(world, steps)
    for name in QUERIES:
        world.read(name)
    return world.rows


def opened(
    data: Path, durability: str = "interval", checkpoint_bytes: int = 4000, steps: int = 0
) -> World:
    """A world with everything declared and so many steps done."""
    world = World(data, durability, checkpoint_bytes)
    world.open()
    world.declare()
    run(world, steps)
    return world


def crashed_at(
    tmp_path: Path, at: int, after: bool, kind: str, checkpoint_bytes: int = 4000
) -> dict[str, list[tuple]]:
    """The run, with a crash at one file operation, whichever it is, and a second life."""
    world = World(tmp_path, "sync", checkpoint_bytes)
    world.files.plan = Plan(at, None, after)
    try:
        world.open()
        world.declare()
        run(world, 30)
    except Crashed:
        pass
    world.crash(kind, at)
    world.open()
    if not world.engine.runtime.catalog.names():
        world.declare()
    else:  # the statement under way, and those behind it
        for statement in [
            *STREAMS.format(durability="sync").split(";"),
            *(f"CREATE QUERY {n} AS {q}" for n, q in QUERIES.items()),
        ]:
            if statement.strip() and not _there(world.engine, statement):
                world.engine.execute(statement)
    return finish(world)


def _there(engine: Engine, statement: str) -> bool:
    words = statement.split()
    if words[0] == "INSERT":
        return len(engine.runtime.tables["r"]) > 0
    return words[2].casefold() in {n.casefold() for n in engine.runtime.catalog.names()}


def flip(data: bytearray) -> None:
    """Change a bit."""
    data[len(data) // 3] ^= 0x20


def count(world: World, sql: str) -> int:
    """The number that a one-time query gives."""
    (found,) = world.engine.execute(sql)
    return found.data.column(0)[0].as_py()


def undisturbed_rows(data: Path) -> dict[str, list[tuple]]:
    """What readers get where nothing happens."""
    return finish(opened(data))


def stopped(world: World) -> None:
    """Killed, when all that was written was on the disk."""
    world.engine.saver.durable.journal.commit()
    world.crash()


def logs(world: World, stream: str) -> list[str]:
    return sorted(p for p in world.files.names if f"/streams/{stream}/" in p and p.endswith(".log"))


def ends(world: World, path: str) -> list[int]:
    """Where the records of a log end."""
    data, at, out = bytes(world.files.names[path].data), 0, []
    head = {MAGIC: HEAD, encrypted_files.MAGIC: encrypted_files.HEAD}
    while kind := head.get(data[at : at + 4]):
        at += kind.size + kind.unpack_from(data, at)[1]
        out.append(at)
    return out


def refuses(world: World, stream: str = "s", row: tuple = ("a", 1, 10**9)) -> None:
    why = rf"DS555: stream {stream} takes no rows: a log in .*/{stream} is damaged or gone"
    with pytest.raises(UsageError, match=why):
        world.engine.ingest(stream, [row])
    shown = {
        r["stream"]: r["durability"]
        for r in world.engine.execute("SHOW STREAMS")[0].data.to_pylist()
    }
    assert shown[stream].startswith("takes no rows: a log in ")
    others = {name: told for name, told in shown.items() if name != stream}
    assert set(others.values()) == {world.durability}
