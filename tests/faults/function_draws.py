"""Texts of expressions by number: functions and operators over any number of arguments of any
types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from itertools import product
from random import Random

from dsms.sql.functions import FUNCTIONS, Function, FunctionError, resolve, scalar_names
from dsms.sql.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    INTERVAL,
    MAX_INSTANT,
    MIN_INSTANT,
    STRING,
    TIMESTAMP,
    Type,
    decimal,
)

LOW, HIGH = -(2**63), 2**63 - 1
DEC, WIDE = decimal(10, 2), decimal(38, 10)
COLUMNS: dict[str, Type] = {
    "b": BOOL, "i": INT, "j": INT, "f": FLOAT, "g": FLOAT, "d": DEC, "w": WIDE, "s": STRING,
    "u": STRING, "y": BYTES,
    "t": TIMESTAMP, "n": INTERVAL,
}  # a table  # fmt: skip
TEXTS = (
    "",
    "a",
    "aab",
    "ab,b,",
    "  a ",
    "414a",
    "é€😀",
    "%_",
    "12",
    "-1.5",
    "1e400",
    "2020-02-29 10:30",
    "1 h",
    '{"a": [1.50, "x"]}',
    "true",
    "q\ny",
)
EDGES: dict[Type, Sequence[object]] = {
    BOOL: (True, False),
    INT: (0, 1, -1, 2, 7, -12, 63, 10**6 + 1, LOW, LOW + 1, HIGH, 10**18),
    FLOAT: (
        0.0,
        -0.0,
        0.5,
        -1.5,
        2.5,
        math.nan,
        math.inf,
        -math.inf,
        1e308,
        5e-324,
        2.0**53,
        -(2.0**63),
        1.325,
        3.0,
    ),
    DEC: tuple(Decimal(f"{n}e-2") for n in (0, 1, -1, 50, 150, -250, 10**10 - 1, -(10**10) + 1)),
    WIDE: tuple(
        Decimal(f"{n}e-10") for n in (0, 1, -1, 5 * 10**9, 10**38 - 1, -(10**38) + 1, 10**10)
    ),
    STRING: TEXTS,
    BYTES: (b"", b"a", b"\xff", b"\x00\x01", b"ab"),
    TIMESTAMP: (0, -1, 1, MIN_INSTANT, MAX_INSTANT, 1616893200000000, 1635642000000000, 10**15),
    INTERVAL: (0, 1, -1, 3_600_000_000, -86_400_000_000, LOW, HIGH, 90_000_000),
}
LITERALS = (
    "NULL", "TRUE", "0", "1", "-1", "3", "1000000", "9223372036854775807", "0.5", "1e0",
    "CAST('nan' AS FLOAT)", "'a'",
    "''",
    "'%'", "'day'", "'UTC'", "'s'", "'x*'", "TIMESTAMP '1970-01-01 00:00:05'",
    "INTERVAL '1' SECOND", "DECIMAL '1.25'",
    "CAST('a' AS BYTES)", "CAST(NULL AS INT)", "CAST(NULL AS STRING)",
)  # a long list  # fmt: skip
CONSTANTS = {
    "unit": ("second", "Hours", "day", "week", "month", "quarter", "year", "fortnight"),
    "length_unit": ("microsecond", "minutes", "week", "month"),
    "epoch_unit": ("s", "ms", "us", "ns", "h"),
    "zone": (
        "UTC",
        "Europe/Berlin",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
        "+05:30",
        "-11",
        "Nowhere",
    ),
    "regex": ("a", "^a+$", "(b|é)", "x*", "(", "a()b|,"),
    "path": ("$", "$.a", "$[0]", "a"),
    "written": ("%Y-%m-%d", "%A %j %I%p|%G-%V", "%%", "", "%F %T.%f %z", "%Q"),
    "read": ("%Y-%m-%d %H:%M", "%y", "%b %Y", "%j%Y", "%H"),
    "text": ("", "-", "<\\1>", "zz"),
}
TYPES = (
    "BOOL",
    "INT",
    "FLOAT",
    "DECIMAL(10,2)",
    "DECIMAL(38,10)",
    "DECIMAL(3,3)",
    "STRING",
    "BYTES",
    "TIMESTAMP",
    "INTERVAL",
)
SIGNS = (
    "+",
    "-",
    "*",
    "/",
    "%",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "||",
    "AND",
    "OR",
    "IS DISTINCT FROM",
    "LIKE",
    "ILIKE",
)
_SIGNS_OF = {"add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "=", "ne": "<>", "lt": "<",
             "le": "<=", "gt": ">",
             "ge": ">=", "distinct_from": "IS DISTINCT FROM",
             "not_distinct_from": "IS NOT DISTINCT FROM", "and": "AND",
             "or": "OR", "like": "LIKE"}  # a table  # fmt: skip


def rows(number: int, count: int) -> list[tuple[object, ...]]:
    """Rows of edge values and NULLs in the order of COLUMNS."""
    d = Random(number)
    return [
        tuple(None if d.random() < 0.1 else d.choice(EDGES[t]) for t in COLUMNS.values())
        for _ in range(count)
    ]


def expression(number: int) -> str:
    """The text of expression `number`."""
    return _expr(Random(number), 2)


def _expr(d: Random, depth: int) -> str:
    if depth == 0 or d.random() < 0.1:
        return d.choice(list(COLUMNS)) if d.random() < 0.7 else d.choice(LITERALS)
    kind = d.random()
    if kind < 0.55:
        return _fitting(d, depth)
    if kind < 0.7:
        args = [_expr(d, depth - 1) for _ in range(d.choice((0, 1, 1, 2, 2, 3, 3, 4, 6)))]
        return f"{d.choice(_NAMES)}({', '.join(args)})"
    return _syntax(d, lambda: _expr(d, depth - 1))


def _syntax(d: Random, part) -> str:  # type: ignore[no-untyped-def]
    match d.randrange(8):
        case 0 | 1:
            cast = d.choice(("CAST", "TRY_CAST"))
            return f"{cast}({part()} AS {d.choice(TYPES)})"
        case 2 | 3 | 4:
            return f"({part()} {d.choice(SIGNS)} {part()})"
        case 5:
            if d.random() < 0.3:
                return f"IF({part()}, {part()}, {part()})"
            return f"CASE WHEN {part()} THEN {part()} ELSE {part()} END"
        case 6:
            return f"({part()} IN ({', '.join(part() for _ in range(d.randint(1, 3)))}))"
        case _:
            return d.choice(("(- {})", "(NOT {})", "({} IS NULL)", "({} IS NOT NULL)")).format(
                part()
            )


def _fitting(d: Random, depth: int) -> str:
    """A call whose arguments are of types that the function takes; mostly columns."""
    spec, types = d.choice(_signatures())
    args = [_argument(d, spec, k, t, depth) for k, t in enumerate(types)]
    if spec.name in _SIGNS_OF:
        return f"({f' {_SIGNS_OF[spec.name]} '.join(args)})"
    return f"{spec.name}({', '.join(args)})"


def _argument(d: Random, spec: Function, at: int, type_: Type, depth: int) -> str:
    if at in spec.constants:
        return "'" + d.choice(CONSTANTS[spec.constants[at]]) + "'"
    if spec.name.startswith("regexp_extract") and at == 2:
        return d.choice(("0", "1", "7"))
    if d.random() < 0.2:
        return f"CAST({_expr(d, depth - 1)} AS {type_})"
    return d.choice([name for name, t in COLUMNS.items() if t == type_])


@cache
def _signatures() -> list[tuple[Function, tuple[Type, ...]]]:
    """Of each function up to 40 lists of types that it takes."""
    out = []
    for name, spec in FUNCTIONS.items():
        if name in ("cast", "try_cast", "case", "in", "not", "neg", "is_null", "is_not_null"):
            continue
        found = [
            types
            for n in range(4)
            for types in product(dict.fromkeys(COLUMNS.values()), repeat=n)
            if _takes(name, types)
        ]
        if name in _SIGNS_OF:
            found = [types for types in found if len(types) == 2]
        out += [(spec, types) for types in found[:: max(1, len(found) // 40)]]
    return out


def _takes(name: str, types: tuple[Type, ...]) -> bool:
    try:
        resolve(name, types)
    except FunctionError:
        return False
    return True


_NAMES = [*scalar_names(operators=False), *(a for f in FUNCTIONS.values() for a in f.aliases)]
