"""Engines whose queries over joins share synopses, each with a twin whose queries are operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import dsms
from dsms.periodic.query import PeriodicQuery
from dsms.sharing.join_group import JoinGroup
from dsms.sharing.member import Member

S = 1_000_000


STREAMS = """CREATE STREAM a (k INT, s STRING, v INT, f FLOAT, t TIMESTAMP) TIMESTAMP BY t{more};
             CREATE STREAM b (k INT, s STRING, w INT, g FLOAT, t TIMESTAMP) TIMESTAMP BY t{more};"""


NUMBER, REAL = {"a": "v", "b": "w"}, {"a": "f", "b": "g"}


SHAPES = (
    "SELECT COUNT(*), SUM(v + w), MIN(f), MAX(g), AVG(w) FROM a {x}, b {y} WHERE a.k = b.k",
    "SELECT SUM(f), SUM(f * g), STDDEV(g), VAR_POP(f) FROM a {x}, b {y} WHERE a.k = b.k",
    "SELECT a.k, COUNT(*) AS n, SUM(v), MIN(b.s) FROM a {x}, b {y} WHERE a.k = b.k AND v > 0 "
    "GROUP BY a.k",
    "SELECT b.s, MEDIAN(v), COUNT(DISTINCT w), TOPK(a.s, 2) FROM b {y}, a {x} WHERE b.k = a.k "
    "GROUP BY b.s",
    "SELECT h, m / 2 FROM (SELECT v % 2 AS h, MAX(w) AS m, COUNT(*) AS n FROM a {x}, b {y} WHERE "
    "v < w GROUP BY v % 2) WHERE n > 1",
    "SELECT a.s, BOOL_OR(v > w), SUM(w) FILTER (WHERE g > 0) FROM a {x} JOIN b {y} ON a.k = b.k "
    "GROUP BY a.s HAVING COUNT(*) > 1 ORDER BY 1 DESC LIMIT 2",
    "SELECT x.k, COUNT(*), SUM(x.v - y.v) FROM a {x} AS x, a {y} AS y WHERE x.k = y.k AND x.v < "
    "y.v GROUP BY x.k",
    "SELECT Istream(a.k, COUNT(*)) FROM a {x}, b {y} WHERE a.k = b.k GROUP BY a.k",
)


def query(shape: str, x: float, y: float, slide: float, align: str = "") -> str:
    return shape.format(x=f"[RANGE {x} s SLIDE {slide} s{align}]", y=f"[RANGE {y} s]")


@dataclass
class Twins:
    """An engine with synopses, and one with operators alone."""

    ours: dsms.Engine
    theirs: dsms.Engine

    @staticmethod
    def fresh(more: str = "") -> Twins:
        both = dsms.Engine(), dsms.Engine()
        for engine in both:
            engine.execute(STREAMS.format(more=more))
        return Twins(*both)

    def register(self, name: str, sql: str, synopsis: str = "auto") -> None:
        self.ours.execute(f"CREATE QUERY {name} AS {sql} WITH (synopsis = '{synopsis}')")
        self.theirs.execute(f"CREATE QUERY {name} AS {sql} WITH (path = 'is')")
        evaluator = asked(self.ours, name).evaluator
        assert isinstance(evaluator, Member) and isinstance(evaluator.group, JoinGroup)
        assert asked(self.theirs, name).evaluator.path == "IS"

    def both(self, do: str, *args: Any) -> None:
        for engine in (self.ours, self.theirs):
            getattr(engine, do)(*args)

    def ingest(self, random: Random, stream: str, rows: dict[str, list[Any]]) -> None:
        """The same rows, cut differently."""
        for engine in (self.ours, self.theirs):
            left = rows
            while left["t"]:
                n = random.randint(1, len(left["t"]))
                engine.ingest(stream, {c: v[:n] for c, v in left.items()})
                left = {c: v[n:] for c, v in left.items()}

    def agree(self, names: Sequence[str], since: int = 0) -> int:
        """Whether all that was reported is the same, from that boundary on; how many rows."""
        count = 0
        for name in names:
            mine, twin = (told(engine, name, since) for engine in (self.ours, self.theirs))
            assert mine == twin, name
            assert asked(self.ours, name).answered == asked(self.theirs, name).answered
            count += len(mine)
        return count


def asked(engine: dsms.Engine, name: str) -> PeriodicQuery:
    found = engine.runtime.queries[name]
    assert isinstance(found, PeriodicQuery)
    found.check()
    return found


def told(engine: dsms.Engine, name: str, since: int = 0) -> list[tuple[Any, ...]]:
    """(boundary, values as they are written: -0.0 is not 0.0) of all result rows."""
    out = []
    for chunk in asked(engine, name).log.since(0):
        columns = [c.to_pylist() for c in chunk.data.columns]
        out += [
            tuple(map(repr, row))
            for row in zip(chunk.at.tolist(), *columns, strict=True)
            if row[0] >= since
        ]
    return out


def groups(engine: dsms.Engine) -> list[JoinGroup]:
    return list(engine.runtime.shared.joins.of(None))


def rows(random: Random, stream: str, start: int, n: int) -> dict[str, list[Any]]:
    ts = []
    for _ in range(n):
        start += random.choice([0, 0, 1, 200_000, 500_000, S, 2_500_000])
        ts.append(start)
    return {
        "k": random.choices([1, 1, 2, None], k=n),
        "s": random.choices(["x", "y", "", None], k=n),
        NUMBER[stream]: random.choices([None, -5, 2, 3, 7], k=n),
        REAL[stream]: random.choices(
            [None, 0.1, 1e300, -1e300, -2.5, 1 / 3, float("nan"), 3e-310], k=n
        ),
        "t": ts,
    }


def feed(twins: Twins, random: Random, steps: int) -> None:
    """Rows of both streams in turns, from where they are."""
    at = dict.fromkeys("ab", max(0, *(e.newest for e in twins.ours.runtime.inputs.values())))
    for _ in range(steps):
        stream = min(at, key=lambda k: at[k]) if random.random() < 0.7 else random.choice("ab")
        some = rows(random, stream, at[stream], random.randint(1, 8))
        at[stream] = some["t"][-1]
        twins.ingest(random, stream, some)


def end_period(twins: Twins, at: dict[str, int]) -> None:
    """A row of each stream, and nothing more until a second is over."""
    for stream, instant in at.items():
        row = {"k": [1], "s": ["x"], NUMBER[stream]: [2], REAL[stream]: [1.0], "t": [instant]}
        twins.both("ingest", stream, row)
    for stream, instant in at.items():
        twins.both("heartbeat", stream, instant + S - 1)


# ---------------------------------------------------------------- who shares


COUNT = SHAPES[0]
