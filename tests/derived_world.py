"""Streams derived from streams, by definition: what the oracle says of each query becomes the rows
of the next stream; and the same played in an engine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsms.engine import Engine
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_create_query, bind_create_stream, bind_derived_stream
from dsms.sql.catalog import Catalog
from dsms.sql.parser import parse_one
from dsms.sql.types import ALWAYS
from tests.oracle import Oracle, Periodic, Row

S = 1_000_000
BASES = {
    "s": "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t",
    "r": "CREATE STREAM r (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t SLACK 3 s",
}
X = "CREATE STREAM x (k INT, v INT, w FLOAT, t TIMESTAMP NOT NULL) TIMESTAMP BY t"
# queries with the columns k and v, over two streams
SELECTS = (
    "SELECT Istream(k, v) FROM {a} [RANGE 3 s]",
    "SELECT Dstream(k, v) FROM {a} [RANGE 3 s]",
    "SELECT Istream(k, COUNT(*) AS v) FROM {a} [RANGE 4 s] GROUP BY k",
    "SELECT Dstream(k, SUM(v) AS v) FROM {a} [ROWS 3] GROUP BY k",
    "SELECT k, v FROM {a} WHERE v > 0",
    "SELECT Istream(DISTINCT k, v) FROM {a} [RANGE 2 s]",
    "SELECT Dstream(a.k, b.v) FROM {a} [RANGE 2 s] a JOIN {b} [RANGE 3 s] b ON a.k = b.k",
    "SELECT Istream(k, v) FROM {a} [RANGE 3 s] a WHERE NOT EXISTS "
    "(SELECT 1 FROM {b} [RANGE 2 s] b WHERE a.k = b.k)",
    "SELECT Istream(COUNT(*) AS k, MAX(v) AS v) FROM {a} [RANGE 4 s]",
    "SELECT Istream(k, COUNT(*) AS v) FROM {a} [RANGE 4 s SLIDE 2 s] GROUP BY k",
    "SELECT Istream(COUNT(*) AS k, SUM(v) AS v) FROM {a} [RANGE 4 s SLIDE 2 s]",
    "SELECT Dstream(k, v) FROM {a} [RANGE 4 s SLIDE 2 s]",
    "SELECT Istream-restore(k, v) FROM {a} [RANGE 3 s SLIDE 2 s]",
    "SELECT Istream(MIN(k) AS k, MAX(v) AS v) FROM {a} [ROWS 3 SLIDE 2]",
)
READERS = (
    "SELECT Rstream(k, v) FROM {a} [RANGE 2 s]",
    "SELECT COUNT(*), SUM(v) FROM {a} [RANGE 3 s]",
    "SELECT k, COUNT(*) AS n FROM {a} [RANGE 3 s SLIDE 1 s] GROUP BY k",
    "SELECT Istream(a.k, b.v) FROM {a} [RANGE 3 s] a JOIN {b} [RANGE 3 s] b ON a.k = b.k",
    "SELECT Dstream(k) FROM {a} [ROWS 2]",
    "SELECT k FROM {a} WHERE k = 1",
)


@dataclass
class Definition:
    """The streams of a world, evaluated by the oracle.

    rows, clocks  of each stream, once it is complete up to its clock
    """

    catalog: Catalog = field(default_factory=Catalog)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    feeders: dict[str, list[tuple[lp.Output, tuple[int, ...]]]] = field(default_factory=dict)
    readers: dict[str, lp.Output] = field(default_factory=dict)

    def declare(self, sql: str) -> None:
        statement = parse_one(sql)
        match statement:
            case ast.CreateStream(query=None):
                made = bind_create_stream(statement, self.catalog)
                self.catalog.streams[made.name] = made
                self.feeders[made.name] = []
            case ast.CreateStream():
                made, feeder, plan = bind_derived_stream(statement, self.catalog, sql)
                assert feeder is not None and plan is not None
                self.catalog.streams[made.name] = made
                self.feeders[made.name] = [(plan, feeder.places)]
            case ast.CreateQuery():
                query, plan = bind_create_query(statement, self.catalog, sql)
                assert plan is not None
                self.catalog.queries[query.name] = query
                if query.feeds is None:
                    self.readers[query.name] = plan
                else:
                    self.feeders[query.feeds].append((plan, query.places))

    def told(self, given: dict[str, list[Row]], clock: int) -> dict[str, list[tuple]]:
        """What each reader is told, where the streams from outside are complete up to `clock`."""
        for name, rows in given.items():
            self.rows[name], self.clocks[name] = rows, clock
        return {name: list(self._told(plan)) for name, plan in self.readers.items()}

    def _of(self, name: str) -> list[Row]:
        """The rows of a stream: those of the queries that feed it."""
        if name in self.rows:
            return self.rows[name]
        found: list[tuple[int, int, int, tuple]] = []
        clocks = []
        for number, (plan, places) in enumerate(self.feeders[name]):
            came = list(self._entries(plan))
            clocks.append(self._clock(plan))
            found += [
                (at, number, place, tuple(_put(values, p, at) for p in places))
                for place, (at, values) in enumerate(came)
            ]
        self.clocks[name] = min(clocks)
        found = [f for f in sorted(found, key=lambda f: f[:3]) if f[0] <= self.clocks[name]]
        self.rows[name] = [Row(f[0], n, f[3]) for n, f in enumerate(found)]
        return self.rows[name]

    def _given(self, plan: lp.Output) -> tuple[dict[str, list[Row]], int]:
        names = sorted(
            leaf.stream.name for leaf in lp.leaves_of(plan) if isinstance(leaf, lp.StreamScan)
        )
        rows = {name: self._of(name) for name in names}
        return rows, min(self.clocks[name] for name in names)

    def _pushes(self, plan: lp.Output) -> Iterator[tuple[int, str, tuple]]:
        rows, clock = self._given(plan)
        if plan.slide is not None:
            for push in Periodic(plan, rows, {}, clock).pushes():
                yield from ((push.at, "=", values) for values in push.rows)
            return
        for delta in Oracle(plan, rows, {}).deltas(clock):
            yield delta.at, "+" if delta.kind == "insert" else "-", delta.values

    def _entries(self, plan: lp.Output) -> Iterator[tuple[int, tuple]]:
        return ((at, values) for at, _, values in self._pushes(plan) if at > ALWAYS)

    def _told(self, plan: lp.Output) -> Iterator[tuple]:
        return (
            (None if at == ALWAYS else at, sign, values) for at, sign, values in self._pushes(plan)
        )

    def _clock(self, plan: lp.Output) -> int:
        """A boundary that has been answered is behind the query."""
        rows, clock = self._given(plan)
        if plan.slide is None or plan.slide.by_rows:
            return clock
        bounds = Periodic(plan, rows, {}, clock).bounds
        return max(clock, bounds[-1]) if bounds else clock


def _put(values: tuple, place: int, at: int) -> Any:
    return at if place == -1 else None if place == -2 else values[place]


@dataclass(frozen=True)
class Event:
    """Rows for a stream, as they come."""

    stream: str
    rows: list[list[int]]


def played(
    declared: Sequence[str],
    events: Sequence[Event],
    clock: int,
    folder: Path | None = None,
    restarts: dict[int, str] | None = None,
    settings: Any = None,
    ends: bool = False,
) -> dict[str, list[tuple]]:
    """What an engine tells.  restarts: before which events it is `closed`, or `killed`, and comes
    back from its data folder."""
    place = None if folder is None else folder / "data"
    engine = Engine(None if place is None else str(place), settings)
    for sql in declared:
        engine.execute(sql)
    for number, event in enumerate(events):
        how = (restarts or {}).get(number)
        if how is not None and place is not None:
            if how == "closed":
                engine.close()
            else:
                engine.sync()
                engine.saver, old = None, place
                place = old.with_name(f"{old.name}{number}")
                shutil.copytree(old, place)
            engine = Engine(str(place), settings)
            assert engine.recovered is not None and not engine.recovered.notes
        engine.ingest(event.stream, event.rows)
        _work(engine)
    for name in BASES:
        if name in engine.runtime.inputs:
            engine.heartbeat(name, clock)
            if ends:
                engine.end(name)
            _work(engine)
    names = [n for n, q in engine.runtime.queries.items() if q.definition.feeds is None]
    return {name: list(_lines(engine, name)) for name in names}


def _work(engine: Engine) -> None:
    while engine.has_work():
        engine.work()


def _lines(engine: Engine, name: str) -> Iterator[tuple]:
    for push in engine.subscribe(name, 0).take():
        if push.data is None:
            continue
        sign = {"insert": "+", "delete": "-", "result": "="}[push.kind]
        rows = [tuple(row.values()) for row in push.data.to_pylist()]
        ats = push.ats.to_pylist() if push.ats is not None else [push.at] * len(rows)
        yield from zip(ats, [sign] * len(rows), rows, strict=True)
