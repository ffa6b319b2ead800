"""Schemas and rows: few columns over tiny domains, so that keys meet, with every odd value that the
types have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import inf, nan
from typing import Any

from dsms.instants import MAX_INSTANT, MIN_INSTANT
from dsms.sql.types import (
    BOOL,
    DATE,
    FLOAT,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    UUID,
    Type,
    decimal,
    list_of,
    struct_of,
)
from tests.generate.draws import Draws

MONEY = decimal(6, 2)
LISTED = list_of(INT)
PAIR = struct_of((("a", INT), ("b", STRING)))
SECOND = 1_000_000
DAY = 86_400 * SECOND
COLUMNS: tuple[tuple[str, Type], ...] = (
    ("x", INT),
    ("c", STRING),
    ("f", FLOAT),
    ("d", MONEY),
    ("b", BOOL),
    ("l", LISTED),
    ("day", DATE),
    ("clock", TIME),
    ("id", UUID),
    ("p", PAIR),
)
DOMAIN: dict[Type, Sequence[Any]] = {
    INT: (0, 1, 2, None, -1, 3, 7),
    FLOAT: (0.5, 1.0, -0.0, 0.0, None, nan, -2.25, inf, 1e16, -inf),
    STRING: ("a", "b", "", None, "ab", "B", "é"),
    MONEY: (
        Decimal("1.00"),
        Decimal("0.25"),
        Decimal("-1.50"),
        None,
        Decimal("9999.99"),
        Decimal("0.00"),
    ),
    BOOL: (True, False, None),
    DATE: (0, DAY, None, -DAY, MIN_INSTANT, MAX_INSTANT // DAY * DAY),
    TIME: (0, 43_200_500_000, None, DAY - 1),
    UUID: (
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        None,
        "5a0e3b1c-0f2d-4c6e-9b7a-1d2e3f405162",
    ),
    PAIR: (
        '{"a": 1, "b": "a"}',
        '{"a": 2, "b": null}',
        None,
        '{"a": null, "b": "é, \\"}"}',
        '{"a": 1, "b": "b"}',
    ),
    LISTED: ("[1, 2]", "[]", "[1]", None, "[null, 0]", "[2, 1]"),
}
KEYS = (0, 1, None, 2)


@dataclass(frozen=True, slots=True)
class Source:
    """A stream or table: `columns` without the timestamp column `ts`, which streams have last."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    kind: str = "stream"  # stream | table | nrr
    slack: int = 0
    keyed: bool = False  # KEY (k)

    def ddl(self) -> str:
        columns = [f"{n} {t}" for n, t in self.columns]
        if self.kind != "stream":
            columns[0] += " PRIMARY KEY"
            kind = " NON RETROACTIVE" if self.kind == "nrr" else ""
            return f"CREATE TABLE {self.name} ({', '.join(columns)}){kind};"
        slack = f" SLACK {self.slack} SECONDS" if self.slack else ""
        return (
            f"CREATE STREAM {self.name} ({', '.join(columns)}, ts TIMESTAMP) TIMESTAMP BY "
            f"ts{' KEY (k)' if self.keyed else ''}{slack};"
        )


@dataclass(frozen=True, slots=True)
class World:
    """Everything declared."""

    sources: tuple[Source, ...]

    def of(self, kind: str) -> list[Source]:
        return [s for s in self.sources if s.kind == kind]

    def ddl(self) -> str:
        return "\n".join(s.ddl() for s in self.sources)


def world(d: Draws, slack: int = 0) -> World:
    """One to three streams, and perhaps a table of either kind."""
    streams = [
        Source(n, (("k", INT), *_columns(d)), "stream", slack)
        for n in ("s", "t", "u")[: d.number(1, 3)]
    ]
    tables = [
        Source(n, (("k", INT), ("y", INT), ("c", STRING)), kind)
        for n, kind in (("r", "table"), ("n", "nrr"))
    ]
    return World((*streams, *(t for t in tables if d.chance(35))))


def _columns(d: Draws) -> list[tuple[str, Type]]:
    return [COLUMNS[0], *d.some(COLUMNS[1:], 0, 2)]


def value(d: Draws, type_: Type) -> Any:
    if type_ == TIMESTAMP:
        return d.number(0, 20) * SECOND
    return d.pick(DOMAIN[type_])


def row(d: Draws, source: Source) -> tuple[Any, ...]:
    """Values of all columns but the timestamp."""
    keys = KEYS[:2] if source.keyed else KEYS
    return (d.pick(keys), *(value(d, t) for _, t in source.columns[1:]))


def with_keys(d: Draws, plain: World) -> World:
    """The first stream, the tables, and two streams that have a KEY."""
    streams = [Source(n, (("k", INT), *_columns(d)), keyed=True) for n in ("a", "b")]
    return World((*streams, *(s for s in plain.sources if s.name not in "tu")))


def arrival(d: Draws, source: Source, now: int) -> tuple[Any, ...]:
    """Values of all columns of a row of a stream."""
    values = (*row(d, source), now)
    return (*values, d.pick("UUD")) if source.keyed else values
