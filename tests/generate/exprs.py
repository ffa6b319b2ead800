"""Scalar expressions of a wanted type over the columns in scope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsms.sql.types import BOOL, DATE, FLOAT, INT, STRING, TIME, TIMESTAMP, UUID, Type
from tests.generate import own
from tests.generate.draws import Draws
from tests.generate.world import LISTED, MONEY, PAIR

LITERALS = {
    INT: ("1", "0", "2", "-1", "CAST(NULL AS INT)"),
    FLOAT: ("0.5", "0.0", "2.0", "-1.5"),
    STRING: ("'a'", "''", "'b'", "'%'"),
    MONEY: ("DECIMAL '1.00'", "DECIMAL '0.25'"),
    BOOL: ("TRUE", "FALSE", "CAST(NULL AS BOOL)"),
    LISTED: ("[1, 2]", "CAST([] AS LIST(INT))", "[NULL, 0]", "CAST(NULL AS LIST(INT))"),
    TIMESTAMP: ("TIMESTAMP '1970-01-01 00:00:05'",),
    DATE: ("DATE '1970-01-02'", "DATE '0001-01-01'", "CAST(NULL AS DATE)"),
    TIME: ("TIME '12:00:00.5'", "TIME '00:00:00'"),
    PAIR: ("{'a': 1, 'b': 'a'}", "CAST(NULL AS STRUCT(a INT, b STRING))"),
    UUID: ("UUID 'ffffffff-ffff-ffff-ffff-ffffffffffff'",),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column in scope: how it is written there, and its type."""

    text: str
    type: Type


Scope = list[Column]


def columns(scope: Scope, type_: Type) -> list[str]:
    return [c.text for c in scope if c.type == type_]


def literal(d: Draws, type_: Type) -> str:
    return d.pick(LITERALS[type_])


def leaf(d: Draws, scope: Scope, type_: Type) -> str:
    """A column if there is one, rarely a literal."""
    found = columns(scope, type_)
    return d.pick(found) if found and not d.chance(10) else literal(d, type_)


def scalar(d: Draws, scope: Scope, type_: Type, depth: int = 1) -> str:
    """An expression of the type; plain columns mostly."""
    if depth <= 0 or d.chance(70):
        return leaf(d, scope, type_)
    if type_ in own.RESULTS and own.wanted(d, 30):
        return own.function(d, type_, lambda t: scalar(d, scope, t, depth - 1))
    return d.pick(_FORMS[type_])(d, lambda t: scalar(d, scope, t, depth - 1))


Part = Callable[[Type], str]


def _binary(type_: Type, *ops: str) -> Callable[[Draws, Part], str]:
    return lambda d, part: f"({part(type_)} {d.pick(ops)} {part(type_)})"


def _any(type_: Type) -> list[Callable[[Draws, Part], str]]:
    return [
        lambda d, part: f"CASE WHEN {part(BOOL)} THEN {part(type_)} ELSE {part(type_)} END",
        lambda d, part: f"IF({part(BOOL)}, {part(type_)}, {part(type_)})",
        lambda d, part: f"COALESCE({part(type_)}, {part(type_)})",
        lambda d, part: f"NULLIF({part(type_)}, {part(type_)})",
    ]


def _compared(d: Draws, part: Part) -> str:
    type_ = d.pick((INT, STRING, FLOAT, MONEY, DATE, TIME, UUID))
    if d.chance(15):
        type_ = d.pick((LISTED, PAIR))
        return f"({part(type_)} {d.pick(('=', '<>'))} {part(type_)})"
    return f"({part(type_)} {d.pick(('=', '<>', '<', '>='))} {part(type_)})"


_FORMS: dict[Type, list[Callable[[Draws, Part], str]]] = {
    INT: [
        _binary(INT, "+", "-", "*", "/", "%"),
        lambda d, part: f"ABS({part(INT)})",
        lambda d, part: f"LENGTH({part(STRING)})",
        lambda d, part: f"{d.pick(('CAST', 'TRY_CAST'))}({part(FLOAT)} AS INT)",
        lambda d, part: f"TRY_CAST({part(STRING)} AS INT)",
        lambda d, part: f"GREATEST({part(INT)}, {part(INT)})",
        lambda d, part: f"LENGTH({part(LISTED)})",
        lambda d, part: f"({part(DATE)} - {part(DATE)})",
        lambda d, part: f"({part(PAIR)}).a",
        lambda d, part: f"EXTRACT({d.pick(('DAY', 'YEAR', 'DOW'))} FROM {part(DATE)})",
        lambda d, part: f"EXTRACT({d.pick(('HOUR', 'SECOND'))} FROM {part(TIME)})",
        lambda d, part: f"{part(LISTED)}[{d.pick((1, 2, 3))}]",
        lambda d, part: f"{d.pick(('LIST_SUM', 'LIST_MIN', 'LIST_MAX'))}({part(LISTED)})",
        *_any(INT),
    ],
    FLOAT: [
        _binary(FLOAT, "+", "-", "*", "/"),
        lambda d, part: f"CAST({part(INT)} AS FLOAT)",
        *_any(FLOAT),
    ],
    STRING: [
        lambda d, part: f"({part(STRING)} || {part(STRING)})",
        lambda d, part: f"UPPER({part(STRING)})",
        lambda d, part: f"CAST({part(INT)} AS STRING)",
        lambda d, part: f"CAST({part(d.pick((DATE, TIME, UUID)))} AS STRING)",
        lambda d, part: f"({part(PAIR)}).b",
        lambda d, part: f"ARRAY_TO_STRING({part(LISTED)}, {part(STRING)})",
        *_any(STRING),
    ],
    MONEY: [lambda d, part: f"CAST({part(MONEY)} + {part(MONEY)} AS DECIMAL(6,2))", *_any(MONEY)],
    BOOL: [
        _compared,
        lambda d, part: f"({part(INT)} IS {d.pick(('NULL', 'NOT NULL'))})",
        lambda d, part: f"({part(BOOL)} {d.pick(('AND', 'OR'))} {part(BOOL)})",
        lambda d, part: f"(NOT {part(BOOL)})",
        lambda d, part: f"({part(INT)} {d.pick(('IN', 'NOT IN'))} ({part(INT)}, {part(INT)}))",
        lambda d, part: (
            f"({part(STRING)} LIKE {d.pick((chr(39) + 'a%' + chr(39), chr(39) + '_' + chr(39)))})"
        ),
        lambda d, part: f"({part(STRING)} ILIKE {d.pick(('A%', '_'))!r})",
        lambda d, part: f"({part(INT)} BETWEEN {part(INT)} AND {part(INT)})",
        lambda d, part: f"LIST_CONTAINS({part(LISTED)}, {part(INT)})",
        lambda d, part: f"({part(FLOAT)} IS DISTINCT FROM {part(FLOAT)})",
    ],
    PAIR: [lambda d, part: f"{{'a': {part(INT)}, 'b': {part(STRING)}}}", *_any(PAIR)],
    LISTED: [lambda d, part: f"[{part(INT)}, {part(INT)}]", *_any(LISTED)],
    TIMESTAMP: [
        lambda d, part: f"({part(TIMESTAMP)} + INTERVAL '1' SECOND)",
        lambda d, part: f"({part(DATE)} + {part(TIME)})",
        lambda d, part: f"CAST({part(DATE)} AS TIMESTAMP)",
    ],
    DATE: [
        lambda d, part: f"({part(DATE)} {d.pick('+-')} {part(INT)})",
        lambda d, part: f"CAST({part(TIMESTAMP)} AS DATE)",
        *_any(DATE),
    ],
    TIME: [
        lambda d, part: f"({part(TIME)} {d.pick('+-')} INTERVAL '23 h 1 us')",
        lambda d, part: f"CAST({part(TIMESTAMP)} AS TIME)",
        *_any(TIME),
    ],
    UUID: [lambda d, part: f"TRY_CAST({part(STRING)} AS UUID)", *_any(UUID)],
}


def condition(d: Draws, scope: Scope) -> str:
    """A BOOL expression that reads something, usually."""
    return d.pick(_FORMS[BOOL])(d, lambda t: scalar(d, scope, t, 1))
