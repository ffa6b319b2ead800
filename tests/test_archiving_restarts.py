"""Archives of an engine that is stopped again and again are those of one that runs through."""

from __future__ import annotations

import random
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dsms
from dsms.errors import DsmsError
from dsms.settings import Settings
from tests.archives import Later, S, feed, fresh, full_disk, killed, landed, live
from tests.effort import examples, thinned

STREAM = (
    "CREATE STREAM {n} (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t {slack} {retain} ARCHIVE "
    "FOR 1 h UPDATE EVERY {d} s"
)
TABLES = """CREATE TABLE plain (k INT PRIMARY KEY, w INT);
            CREATE TABLE fixed (k INT PRIMARY KEY, w INT) NON RETROACTIVE;
            INSERT INTO plain VALUES (0, 1), (1, 2) AT '1970-01-01';
            INSERT INTO fixed VALUES (0, 1), (2, 3) AT '1970-01-01'"""
QUERIES = (
    "SELECT k, v FROM s [RANGE 4]",
    "SELECT k, v FROM s WHERE v > 2",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k",
    "SELECT DISTINCT k FROM s [RANGE 3]",
    "SELECT a.k, a.v AS x, b.v AS y FROM s [RANGE 3] a, r [RANGE 5] b WHERE a.k = b.k",
    "SELECT a.v AS x, b.v AS y FROM s [RANGE 3] a LEFT JOIN r [RANGE 3] b ON a.k = b.k",
    "SELECT v FROM s [ROWS 5]",
    "SELECT k FROM s [RANGE 5] EXCEPT SELECT k FROM r [RANGE 5]",
    "SELECT s.v AS x, plain.w AS y FROM s [RANGE 4], plain WHERE s.k = plain.k",
    "SELECT s.v AS x, fixed.w AS y FROM s [RANGE 4], fixed WHERE s.k = fixed.k",
    "SELECT Dstream(k, v) FROM s [RANGE 4]",
    "SELECT SUM(v) AS x, COUNT(*) AS n FROM s [RANGE 6 SLIDE 2]",
    "SELECT a.k, COUNT(*) AS n FROM s [RANGE 4 SLIDE 2] a, r [RANGE 4] b WHERE a.k = b.k GROUP BY "
    "a.k",
    "SELECT k, MAX(v) AS m FROM s [ROWS 6 SLIDE 3] GROUP BY k",
)


def reported_rows(engine: dsms.Engine, query: str) -> list[tuple[Any, ...]]:
    """The result rows of the query so far: kind, number, instant and values."""
    reader = engine.subscribe(query, 0)
    pushes = [(p, p.data.to_pylist()) for p in reader.take() if p.data is not None]
    engine.unsubscribe(reader)
    return [(p.kind, p.seq, p.at, *row.values()) for p, rows in pushes for row in rows]


@dataclass(slots=True)
class Restarted:
    """An engine that stops and goes on, and a twin that does not."""

    folder: Path
    pick: random.Random
    engine: dsms.Engine = field(init=False)
    twin: dsms.Engine = field(init=False)
    now: dict[str, int] = field(default_factory=lambda: {"s": S, "r": S})
    queries: list[str] = field(default_factory=list)
    made: int = 0
    retain: bool = True

    def __post_init__(self) -> None:
        self.twin = dsms.Engine(settings=Settings(archive=str(self.folder / "twin")))
        self.open()
        self.retain = self.pick.random() < 0.6
        slack = self.pick.choice(["", "SLACK 2 s"])
        for name in ("s", "r"):
            retain = "RETAIN 25 s" if self.retain else self.pick.choice(["", "SUBWINDOW 3 s"])
            self.execute(
                STREAM.format(n=name, slack=slack, retain=retain, d=self.pick.choice([3, 10, 40]))
            )
        self.execute(TABLES)

    def open(self) -> None:
        every, writer = (
            self.pick.choice([1, 3000, 1 << 30]),
            Later() if self.pick.random() < 0.5 else None,
        )
        asked = Settings(
            archive=str(self.folder / "ours"), checkpoint_bytes=every, archive_writer=writer
        )
        self.engine = dsms.Engine(str(self.folder / "data"), asked)
        assert self.engine.saver is not None and self.engine.saver.recovered.notes == []

    def restart(self) -> None:
        """Killed, with or without a checkpoint of the last moment, or stopped."""
        saver, reported = (
            self.engine.saver,
            {q: reported_rows(self.engine, q) for q in self.queries},
        )
        assert saver is not None
        match self.pick.choice(["kill", "kill", "save", "close"]):
            case "close":
                self.written()
                self.engine.close()
            case how:
                assert how == "kill" or saver.checkpoint()
                killed(self.engine)
        self.open()
        assert reported == {q: reported_rows(self.engine, q) for q in self.queries}

    def execute(self, sql: str) -> None:
        for engine in (self.twin, self.engine):
            engine.execute(sql)

    def rows(self, stream: str) -> None:
        start, n = self.now[stream], self.pick.randint(1, 6)
        stamps = [start + self.pick.choice([0, 0, 300_000, S, 3 * S]) for _ in range(n)]
        self.now[stream] = max(stamps)
        made: dict[str, list[Any]] = {
            "k": self.pick.choices(range(4), k=n),
            "v": self.pick.choices(range(6), k=n),
        }
        for engine in (self.twin, self.engine):
            engine.ingest(stream, made | {"t": stamps})

    def quiet(self, stream: str) -> None:
        self.now[stream] += self.pick.choice([S, 5 * S])
        for engine in (self.twin, self.engine):
            engine.heartbeat(stream, self.now[stream])

    def create(self) -> None:
        self.queries.append(f"q{self.made}")
        self.made += 1
        self.execute(
            f"CREATE QUERY {self.queries[-1]} AS {self.pick.choice(QUERIES)} ARCHIVE FOR 1 h "
            "UPDATE EVERY 7 s"
        )

    def drop(self) -> None:
        self.written()
        self.execute(f"DROP QUERY {self.queries.pop(self.pick.randrange(len(self.queries)))}")

    def anew(self, stream: str) -> None:
        """Its archive stays, and is that of the stream declared next."""
        while self.queries:
            self.drop()
            self.maybe()
        self.written()
        self.execute(f"DROP STREAM {stream}")
        self.maybe()
        self.execute(
            STREAM.format(n=stream, slack="", retain="RETAIN 25 s" if self.retain else "", d=10)
        )

    def written(self) -> None:
        """A writer that works later works now: the engine would wait for it."""
        writer = self.engine.runtime.settings.archive_writer
        if isinstance(writer, Later):
            object.__setattr__(self.engine.runtime.settings, "archive_writer", None)
            writer.work()

    def maybe(self) -> None:
        writer = self.engine.runtime.settings.archive_writer
        if isinstance(writer, Later) and self.pick.random() < 0.5:
            writer.work()
        if self.pick.random() < 0.3:
            self.restart()

    def step(self) -> None:
        stream, apart = min(self.now, key=lambda k: self.now[k]), abs(self.now["s"] - self.now["r"])
        if apart < 8 * S and self.pick.random() < 0.3:  # RETAIN reaches back to all windows
            stream = self.pick.choice("sr")
        with full_disk() if self.pick.random() < 0.1 else nullcontext():
            match self.pick.random():
                case x if x < 0.65:
                    self.rows(stream)
                case x if x < 0.75:
                    self.quiet(stream)
                case x if x < 0.8:
                    self.execute(f"UPDATE plain SET w = w + 1 WHERE k = {self.pick.randint(0, 1)}")
                case _:
                    self.create()
        if self.queries and self.pick.random() < 0.1:
            self.drop()
        elif self.pick.random() < 0.03:
            self.anew(stream)
        self.maybe()

    def check(self) -> None:
        """Landed and live rows of the streams are those of the twin."""
        for name in ("s", "r"):
            ours, theirs = (
                [
                    r["__id"]
                    for r in landed(folder, name)
                    if r["__ts"] <= engine.runtime.archivings[name].seam
                ]
                + live(engine, name)
                for engine, folder in (
                    (self.engine, self.folder / "ours"),
                    (self.twin, self.folder / "twin"),
                )
            )
            assert ours == theirs, name


def story(folder: Path, seed: int, steps: int = 60) -> int:
    """Play it; how many rows are in the archives at the end."""
    world = Restarted(folder, random.Random(seed))
    for _ in range(steps):
        world.step()
        world.check()
    while world.queries:
        world.drop()
        world.maybe()
    world.written()
    world.execute("DROP STREAM s")
    world.maybe()
    world.written()
    world.execute("DROP STREAM r")
    queries = [f"q{i}" for i in range(world.made)]
    for name in ["s", "r", *(queries if world.retain else [])]:
        assert landed(folder / "ours", name) == landed(folder / "twin", name), name
    return sum(len(landed(folder / "ours", name)) for name in ["s", "r", *queries])


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(8), deadline=None)
def test_archives_do_not_tell_of_restarts(tmp_path_factory, seed):
    assert story(tmp_path_factory.mktemp("restarts"), seed)


def test_a_query_begins_again_with_what_was_held_then(tmp_path):
    """Rows that had not landed when it was registered have landed when that comes out of the
    journal."""
    data, asked = str(tmp_path / "data"), Settings(archive=str(tmp_path / "archive"))
    engine = dsms.Engine(data, asked)
    engine.execute(STREAM.format(n="s", slack="", retain="", d=10))
    feed(engine, range(1, 16))
    engine.execute("CREATE QUERY q AS SELECT SUM(v) AS x FROM s [RANGE 8 SLIDE 2]")
    feed(engine, range(16, 40))
    reported = reported_rows(engine, "q")
    # of the rows from 10 to 15
    assert reported[0][2:] == (16 * S, 6) and engine.runtime.archivings["s"].seam > 20 * S
    killed(engine)
    assert reported_rows(dsms.Engine(data, asked), "q") == reported


def lived(engine: dsms.Engine, saved: bool) -> list[tuple[Any, ...]]:
    """It archives a stream and a query until it is killed; answers what the query has reported."""
    engine.execute(STREAM.format(n="s", slack="", retain="", d=10))
    engine.execute("CREATE QUERY Q AS SELECT k, v FROM s [RANGE 4] ARCHIVE UPDATE EVERY 10 s")
    feed(engine, range(1, 30))
    assert engine.saver is not None and (not saved or engine.saver.checkpoint())
    reported = reported_rows(engine, "q")
    killed(engine)
    return reported


@thinned()
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("instead", ["a file", "nothing"])
def test_an_archive_that_is_away_at_a_restart_keeps_nothing_from_coming_back(
    tmp_path, saved, instead
):
    """Nor is an empty one made in its place, where a volume is not mounted."""
    data, asked = str(tmp_path / "data"), Settings(archive=str(tmp_path / "archive"))
    reported = lived(dsms.Engine(data, asked), saved)
    (tmp_path / "archive").rename(tmp_path / "away")
    if instead == "a file":
        (tmp_path / "archive").write_text("not a folder")
    engine = dsms.Engine(data, asked)
    assert engine.saver.recovered.notes == [] and reported_rows(engine, "q") == reported
    assert all("there is no archive" in engine.runtime.archivings[name].error for name in "sq")
    feed(engine, range(30, 50))
    assert landed(tmp_path / "archive") == [] and live(engine)[-1] == 47
    with pytest.raises(DsmsError, match="can't be archived"):
        engine.execute("DROP QUERY q")
    engine.close()
    if instead == "a file":
        (tmp_path / "archive").unlink()
    (tmp_path / "away").rename(tmp_path / "archive")
    engine = dsms.Engine(data, asked)
    engine.execute("DROP QUERY q; DROP STREAM s")
    assert [r["__id"] for r in landed(tmp_path / "archive")] == list(range(49))
    twin = fresh(tmp_path / "twin", STREAM.format(n="s", slack="", retain="", d=10))
    twin.execute("CREATE QUERY q AS SELECT k, v FROM s [RANGE 4] ARCHIVE UPDATE EVERY 10 s")
    feed(twin, range(1, 50))
    twin.execute("DROP QUERY q")
    assert landed(tmp_path / "archive", "q") == landed(tmp_path / "twin", "q")


@pytest.mark.parametrize("saved", [False, True])
def test_an_archive_that_is_lost_is_begun_anew_if_that_was_accepted(tmp_path, saved):
    data, asked = str(tmp_path / "data"), Settings(archive=str(tmp_path / "archive"))
    reported = lived(dsms.Engine(data, asked), saved)
    (tmp_path / "archive").rename(tmp_path / "lost")
    (tmp_path / "archive").write_text("not a folder")
    engine = dsms.Engine(data, replace(asked, accept_loss=("s", "q")))
    assert engine.saver.recovered.notes == []
    assert all(archiving.error is not None for archiving in engine.runtime.archivings.values())
    killed(engine)
    (tmp_path / "archive").unlink()
    engine = dsms.Engine(data, replace(asked, accept_loss=("S", "q")))
    notes = [
        f"the archive of {name} is begun anew, as was asked" for name in ("stream s", "query Q")
    ]
    assert engine.saver.recovered.notes == notes and reported_rows(engine, "q") == reported
    feed(engine, range(30, 50))
    engine.close()
    engine = dsms.Engine(data, asked)
    engine.execute("DROP QUERY q; DROP STREAM s")
    kept = [r["__id"] for r in landed(tmp_path / "archive")]
    # those before it had landed in the other one
    assert kept == list(range(19 if saved else 0, 49))
    # the last row was not complete
    assert len(landed(tmp_path / "archive", "q")) == (29 if saved else 48)
