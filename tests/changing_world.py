"""An engine whose queries are paused, resumed and replaced while rows come, and what the oracle
says of them."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsms.engine import Engine
from dsms.running.beginning import partial
from dsms.running.paused import PausedQuery
from dsms.settings import Settings
from dsms.sql import ast
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_one
from tests.oracle import Oracle, Row
from tests.oracle.values import canons

S = 1_000_000
DECLARED = """
CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t {};
CREATE STREAM u (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
"""
# all with the columns k INT, n INT, as a view
QUERIES = (
    "SELECT k, COUNT(*) AS n FROM s [RANGE 5 s] GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 5 s] GROUP BY k HAVING COUNT(*) > 1",
    "SELECT k, SUM(v) AS n FROM s [RANGE 8 s] GROUP BY k",
    "SELECT Rstream(k, v AS n) FROM s [RANGE 4 s] WHERE v > 2",
    "SELECT Rstream(k, v AS n) FROM s [ROWS 3]",
    "SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k",
    "SELECT Rstream(s.k, u.v AS n) FROM s [RANGE 5 s], u [RANGE 3 s] WHERE s.k = u.k",
    "SELECT Rstream(DISTINCT k, v % 2 AS n) FROM s [RANGE 6 s]",
    "SELECT k, MAX(n) AS n FROM (SELECT k, v AS n FROM s [RANGE 5 s] UNION ALL "
    "SELECT k, v AS n FROM u [RANGE 5 s]) x GROUP BY k",
    "SELECT Rstream(k, v AS n) FROM s [RANGE 5 s] EXCEPT SELECT k, v FROM u [RANGE 9 s]",
)


@dataclass(slots=True)
class Reading:
    """A reader and the view that it keeps of what it is told."""

    reader: Any
    view: Counter[tuple] = field(default_factory=Counter)
    seq: int | None = None
    ended: str | None = None

    def take(self) -> None:
        for push in self.reader.take():
            if push.kind == "end":
                self.ended = push.code
                continue
            if push.data is None:
                continue
            rows = canons_of(push.data)
            if push.kind == "snapshot":
                self.view, self.seq = Counter(rows), push.seq
                continue
            assert self.seq in (None, push.seq), "results are numbered without gaps"
            self.seq = push.seq + len(rows)
            if push.kind == "insert":
                self.view.update(rows)
            else:
                self.view.subtract(rows)
            assert min(self.view.values()) >= 0, "only what is there can leave"
            self.view = +self.view


def canons_of(data: Any) -> list[tuple]:
    return [canons(row) for row in zip(*(c.to_pylist() for c in data.columns), strict=True)]


@dataclass(slots=True)
class World:
    """`q` is `pool[at]` or, while it is `paused`, what it was then."""

    folder: Path
    at: int = 0
    paused: Counter[tuple] | None = None
    rows: dict[str, list[Row]] = field(default_factory=lambda: {"s": [], "u": []})
    now: int = 0
    promised: int = -1  # up to there rows would be late
    copies: int = 0
    engine: Engine = field(init=False)
    reading: Reading = field(init=False)
    settings: Settings = field(default_factory=Settings)
    pool: tuple[str, ...] = QUERIES
    kept: str = "RETAIN 1 h"  # of s

    def __post_init__(self) -> None:
        self.engine = Engine(str(self.folder), self.settings)
        self.engine.execute(DECLARED.format(self.kept))
        self.engine.execute(f"CREATE QUERY q AS {self.pool[self.at]}")
        self.reading = Reading(self.engine.subscribe("q"))

    def come(self, stream: str, values: list[tuple[int, int]], step: int) -> None:
        """Rows, `step` seconds behind what came before."""
        self.now += max(step, self.now == self.promised) * S
        known = self.rows[stream]
        known += [Row(self.now, len(known) + i, (*v, self.now)) for i, v in enumerate(values)]
        self.engine.ingest(stream, [[*v, self.now] for v in values])

    def beat(self) -> None:
        self.promised = self.now
        for stream in self.rows:
            self.engine.heartbeat(stream, self.now)

    def pause(self) -> None:
        self.engine.execute("PAUSE QUERY q")
        if self.paused is None:
            self.paused = self.expected()

    def resume(self) -> None:
        self.engine.execute("RESUME QUERY q")
        self.paused = None

    def replace(self, at: int) -> None:
        self.engine.execute(f"CREATE OR REPLACE QUERY q AS {self.pool[at]}")
        self.at, self.paused = at, None

    def between(self, at: int, todo: list[tuple]) -> None:
        """The same, while other things happen: one between two slices each."""
        slices = self.engine.slices(f"CREATE OR REPLACE QUERY q AS {self.pool[at]}")
        before = self.engine.runtime.queries["q"].definition.sql
        for _ in slices:
            query = self.engine.runtime.queries["q"]
            self.at = at if query.definition.sql != before else self.at
            self.paused = self.paused if isinstance(query, PausedQuery) else None
            self.check()
            if todo:
                name, *given = todo.pop()
                getattr(self, name)(*given)
                self.check()
        self.at, self.paused = at, None

    def restart(self) -> None:
        """The engine dies, and another one goes on."""
        told = self.reading.seq
        self.copies += 1
        folder = self.folder.with_name(f"{self.folder.name}-{self.copies}")
        shutil.copytree(self.folder if self.copies == 1 else self._last(), folder)
        self.engine = Engine(str(folder), self.settings)
        assert self.engine.recovered is not None and not self.engine.recovered.notes
        self.reading.reader = self.engine.subscribe("q", told)

    def _last(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-{self.copies - 1}")

    def oracle(self) -> Oracle:
        statement = parse_one(self.pool[self.at])
        assert isinstance(statement, ast.SelectStatement)
        catalog = self.engine.runtime.catalog
        bound = bind_query(statement, type(catalog)(catalog.streams, catalog.tables))
        return Oracle(bound, self.rows)

    def expected(self) -> Counter[tuple]:
        """The answer at the clock of what it reads."""
        query = self.engine.runtime.queries["q"]
        clock = self.engine.runtime.clock_of(query.reads)
        return Counter(canons(fact.values) for fact in self.oracle().answer(clock))

    def check(self) -> None:
        """Whoever has followed, whoever asks now, and who begins where the first one began; of an
        answer that says it is partial only that they agree."""
        self.reading.take()
        expected = self.expected() if self.paused is None else self.paused
        runtime = self.engine.runtime
        if self.paused is None and partial(runtime, runtime.queries["q"]) is not None:
            expected = self.reading.view
        assert self.reading.view == expected
        fresh = Reading(self.engine.subscribe("q"))
        fresh.take()
        assert fresh.view == expected and fresh.seq == self.reading.seq
        net = Reading(self.engine.subscribe("q", conflate=True))
        net.take()
        assert net.view == expected
        whole = Reading(self.engine.subscribe("q", 0), seq=0)
        whole.take()
        assert whole.view == expected
        for one in (fresh, net, whole):
            self.engine.unsubscribe(one.reader)


def engine(query: str, clauses: str = "RETAIN 1 h", folder: str | None = None) -> Engine:
    db = Engine(folder)
    db.execute(f"CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t {clauses}")
    db.execute(f"CREATE QUERY q AS {query}")
    return db


def come(db: Engine, first: int, n: int) -> None:
    """One row a second, of which the last one's instant is over."""
    db.ingest("s", [[i % 2, i, i * S] for i in range(first, first + n)])
    db.heartbeat("s", (first + n - 1) * S)
