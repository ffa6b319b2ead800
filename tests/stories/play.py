"""Plays a story on the engine, in one of many ways that must not matter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any
from zlib import crc32

import pyarrow as pa

from dsms.api import Push, Subscription
from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from dsms.sql.types import ALWAYS
from tests.stories.declared import Declared
from tests.stories.edges import watched
from tests.stories.model import Arrival, Beat, Clock, End, Event, Line, Section, Statement, Story

STRATEGIES = ("upa", "direct", "nt")
CUTS = ("all", "rows", "random")


@dataclass(frozen=True, slots=True)
class Way:
    """strategy; how rows are cut into frames; rewrite rules on or off; `seed` of random cuts; other
    query options; `user`: who registers the queries."""

    strategy: str = "upa"
    cut: str = "all"
    optimize: bool = True
    seed: int = 0
    options: tuple[tuple[str, str], ...] = ()
    user: str | None = None

    def __str__(self) -> str:
        more = "".join(f", {k} = {v}" for k, v in self.options)
        return f"{self.strategy}, {self.cut}{'' if self.optimize else ', rules off'}{more}"


def all_ways(seed: int = 0) -> list[Way]:
    """Every strategy with every cut, rules on and off."""
    return [Way(s, c, o, seed) for s, c, o in product(STRATEGIES, CUTS, (True, False))]


def drawn_way(name: str) -> Way:
    """One of all ways, which the name of a story draws."""
    return Random(crc32(name.encode())).choice(all_ways())


def some_ways(seed: int = 0) -> list[Way]:
    """Every strategy, cut and setting of the rules at least once, and forced choices of the planner
    by the seed."""
    random = Random(seed)
    forced = {
        '"distinct"': random.choice(("auto", "input-storing", "delta-star", "counting")),
        "negation": random.choice(("auto", "up", "down")),
        "joins": random.choice(("auto", "tree", "pipeline", "adaptive")),
        "partitions": str(random.choice((1, 3, 50))),
    }
    return [
        Way("upa", "all"),
        Way(
            "upa",
            "random",
            True,
            seed,
            tuple((k, f"'{v}'" if "-" in v else v) for k, v in forced.items()),
        ),
        Way("upa", "rows", False),
        Way("direct", "random", True, seed + 1, (("joins", "pipeline"),)),
        Way("nt", "rows", True, 0, (("joins", "adaptive"),)),
        Way("nt", "random", False, seed + 2),
    ]


@dataclass(slots=True)
class Played:
    """What came of it: lines by query, of all its `pushes` sections; per section of the others what
    the engine said.

    progress: instants of `progress` pushes, by query; snapshots: (instant, rows) of the answer at
    the end"""

    pushes: dict[str, list[Line]] = field(default_factory=dict)
    sections: list[tuple[Section, Any]] = field(default_factory=list)
    snapshots: dict[str, list[tuple]] = field(default_factory=dict)
    progress: dict[str, list[int]] = field(default_factory=dict)


def play(story: Story, declared: Declared, way: Way) -> Played:
    """Run the story from a fresh engine; the edges of its plans must keep their promises."""
    with watched():
        return _play(story, declared, way)


def _play(story: Story, declared: Declared, way: Way) -> Played:
    engine, out, readers = Engine(settings=Settings()), Played(), {}
    for section in story.sections:
        match section.kind:
            case "sql":
                engine.execute(_expanded(section.body))
            case "query":
                sql = f"CREATE QUERY {section.name} AS {with_options(section.body, way)}"
                engine.execute(sql, user=way.user)
                readers[section.name] = engine.subscribe(section.name, 0)
                out.pushes[section.name], out.progress[section.name] = [], []
            case "input":
                feed(engine, declared, section.events, way)
            case "pushes":
                name = section.name
                lines = list(taken(readers[name], rows_in(out.pushes[name]), out.progress[name]))
                out.pushes[section.name] += lines
                out.sections.append((section, lines))
            case "rows" | "explain" | "fails":
                out.sections.append((section, _said(engine, section)))
    for name, reader in readers.items():
        out.pushes[name] += taken(reader, rows_in(out.pushes[name]), out.progress[name])
        if Line(None, "!", ("dropped",)) not in out.pushes[name]:
            out.snapshots[name] = snapshot(engine.subscribe(name))
    return out


def _expanded(sql: str) -> str:
    from tests.stories.text import expand

    return expand(sql)


def with_options(sql: str, way: Way) -> str:
    """The query with the options that make it run this way."""
    wanted = {"strategy": way.strategy, "optimize": str(way.optimize).lower(), **dict(way.options)}
    found = re.search(r"\bWITH\s*\(([^()]*)\)\s*;?\s*$", sql, re.IGNORECASE)
    if found:
        given = dict(o.split("=", 1) for o in found[1].split(","))
        wanted |= {k.strip(): v.strip() for k, v in given.items()}
        sql = sql[: found.start()]
    return f"{sql.rstrip().rstrip(';')} WITH ({', '.join(f'{k} = {v}' for k, v in wanted.items())})"


# ---------------------------------------------------------------- rows in


def feed(engine: Engine, declared: Declared, events: list[Event], way: Way) -> None:
    for event in framed(events, declared, way):
        match event:
            case (str(stream), list(rows)):
                engine.ingest(stream, rows)
            case Beat() | End():
                for name in [event.stream] if event.stream else event_streams(declared):
                    engine.heartbeat(name, event.upto) if isinstance(event, Beat) else engine.end(
                        name
                    )
            case Clock():
                engine.advance(event.now)
            case Statement():
                engine.execute(event.sql)


def event_streams(declared: Declared) -> list[str]:
    return [s.name for s in declared.catalog.streams.values() if s.timestamp is not None]


def framed(events: list[Event], declared: Declared, way: Way) -> Iterator[Any]:
    """Arrivals between other events become frames (stream, rows); the order across streams may
    change, since each stream numbers its own rows (but not where one takes late rows of
    another)."""
    random = Random(way.seed)
    run: list[Arrival] = []
    ordered = any(s.late_into is not None for s in declared.catalog.streams.values())
    for event in events:
        if ordered and run and (not isinstance(event, Arrival) or event.stream != run[-1].stream):
            yield from frames(run, way.cut, random)
            run = []
        if isinstance(event, Arrival) and declared.stream(event.stream).timestamp is not None:
            run.append(event)
            continue
        yield from frames(run, way.cut, random)
        run = []
        if isinstance(event, Arrival):
            yield Clock(event.at)
            yield event.stream, [list(event.values)]
        else:
            yield event
    yield from frames(run, way.cut, random)


def frames(rows: list[Arrival], cut: str, random: Random) -> Iterator[tuple[str, list[list]]]:
    if cut == "rows":
        yield from ((r.stream, [list(r.values)]) for r in rows)
        return
    waiting: dict[str, list[list]] = {}
    for r in rows:
        waiting.setdefault(r.stream, []).append(list(r.values))
    while waiting:
        name = next(iter(waiting)) if cut == "all" else random.choice(sorted(waiting))
        count = len(waiting[name]) if cut == "all" else random.randint(1, len(waiting[name]))
        yield name, waiting[name][:count]
        waiting[name] = waiting[name][count:]
        if not waiting[name]:
            del waiting[name]


# ---------------------------------------------------------------- results out


def rows_of(data: pa.RecordBatch) -> list[tuple]:
    """Rows as Python values."""
    return (
        [tuple(r) for r in zip(*(c.to_pylist() for c in data.columns), strict=True)]
        if data.num_columns
        else []
    )


SIGNS = {"insert": "+", "delete": "-", "result": "="}


def rows_in(lines: list[Line]) -> int:
    return sum(line.sign != "!" for line in lines)


def taken(reader: Subscription, seq: int, progress: list[int] | None = None) -> Iterator[Line]:
    """What a reader has got; its numbers must follow on `seq`.  `progress`: there go instants that
    had no rows."""
    for push in reader.take():
        match push:
            case Push(kind="progress"):
                assert push.at is not None and push.seq == seq, (
                    f"progress says {push.seq} after {seq} rows"
                )
                if progress is not None:
                    progress.append(push.at)
            case Push(kind="end"):
                yield Line(None, "!", (push.code or "dropped",))
            case Push(kind="insert" | "delete" | "result"):
                assert push.kind != "result" or push.ats is None, "one push per boundary"
                assert push.seq == seq, f"gap in seq: {push.seq} after {seq} rows"
                assert push.data is not None
                ats = [push.at] * push.data.num_rows if push.ats is None else push.ats.to_pylist()
                assert not ats or ats[-1] == push.at or push.at is None, (
                    "`at` is the instant of the last row"
                )
                for at, values in zip(ats, rows_of(push.data), strict=True):
                    yield Line(ALWAYS if at is None else at, SIGNS[push.kind], values)
                seq += len(ats)


def snapshot(reader: Subscription) -> list[tuple]:
    return [
        row
        for push in reader.take()
        if push.kind == "snapshot" and push.data
        for row in rows_of(push.data)
    ]


def _said(engine: Engine, section: Section) -> Any:
    try:
        return engine.execute(_expanded(section.body))[-1]
    except DsmsError as error:
        return error
