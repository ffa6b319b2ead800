"""Values and instants as golden files write them, and when two of them count as equal."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from dsms.sql.types import ALWAYS, MAX_INSTANT, MIN_INSTANT, Kind, Type

UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
SHORT = re.compile(r"(-?\d+(?:\.\d+)?)(us|ms|s|min|h|d)")
BARE = re.compile(r"[^\W\d][\w./:-]*")
CELL = re.compile(r"'(?:[^']|'')*'|[^\s']+")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
RESERVED = {"null", "true", "false", "nan", "inf", "always"}


def instant(text: str) -> int:
    """µs of ``4s``, ``1.5min`` (since the epoch) or ``2013-01-01T10:00`` (UTC)."""
    if text == "always":
        return ALWAYS
    short = SHORT.fullmatch(text)
    if short:
        return int(Decimal(short[1]) * UNITS[short[2]])
    moment = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def shown_instant(at: int | None) -> str:
    """As seconds near the epoch, else as a date."""
    if at is None or at == ALWAYS:
        return "always"
    if abs(at) < 10**12:
        return f"{Decimal(at) / 1_000_000:f}".removesuffix(".0") + "s"
    if not MIN_INSTANT <= at <= MAX_INSTANT:
        return f"{at}us"
    return (EPOCH + dt.timedelta(microseconds=at)).replace(tzinfo=None).isoformat()


def sql_instant(at: int) -> str:
    """As a literal of the language."""
    moment = (EPOCH + dt.timedelta(microseconds=at)).replace(tzinfo=None)
    return f"TIMESTAMP '{moment.isoformat(' ')}'"


def words(line: str) -> list[str]:
    """The cells of a line; quoted text is one cell."""
    return CELL.findall(line)


def cell(text: str, type_: Type) -> Any:
    """The value that a cell of a column of this type stands for."""
    if text == "NULL":
        return None
    match type_.kind:
        case Kind.BOOL:
            return {"true": True, "false": False}[text]
        case Kind.INT:
            return int(text)
        case Kind.FLOAT:
            return float(text)
        case Kind.DECIMAL:
            return Decimal(text)
        case Kind.BYTES:
            return bytes.fromhex(text.removeprefix("0x"))
        case Kind.TIMESTAMP | Kind.INTERVAL:
            return instant(text)
        case Kind.DATE:
            return instant(f"{text}T00:00")
        case Kind.TIME:
            return instant(f"1970-01-01T{text}")
        case _:
            return text[1:-1].replace("''", "'") if text.startswith("'") else text


def shown(value: Any, type_: Type) -> str:
    """The cell for a value."""
    if value is None:
        return "NULL"
    match type_.kind:
        case Kind.BOOL:
            return "true" if value else "false"
        case Kind.FLOAT:
            return repr(float(value)).replace("nan", "NaN")
        case Kind.DECIMAL:
            return f"{value:f}"
        case Kind.BYTES:
            return "0x" + value.hex()
        case Kind.TIMESTAMP | Kind.INTERVAL:
            return shown_instant(value)
        case Kind.DATE:
            return str((EPOCH + dt.timedelta(microseconds=value)).date())
        case Kind.TIME:
            return str((EPOCH + dt.timedelta(microseconds=value)).time())
        case Kind.STRING | Kind.LIST | Kind.STRUCT | Kind.UUID:
            plain = BARE.fullmatch(value) and value.lower() not in RESERVED
            return value if plain else "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)


def row(texts: list[str], types: list[Type]) -> tuple[Any, ...]:
    if len(texts) != len(types):
        raise ValueError(f"{len(types)} values expected, not {len(texts)}: {' '.join(texts)}")
    return tuple(cell(c, t) for c, t in zip(texts, types, strict=True))


def shown_row(values: tuple[Any, ...], types: list[Type]) -> str:
    return " ".join(shown(v, t) for v, t in zip(values, types, strict=True))


def same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Equal rows; FLOATs may differ in the last digits (1e-9), -0.0 is 0.0, NaN is NaN."""
    return len(a) == len(b) and all(map(_same_value, a, b))


def _same_value(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return a == b and (a is None) == (b is None)


def without_comment(line: str) -> str:
    """The line up to a # that stands outside of quotes."""
    return "".join(_until_hash(line)).rstrip()


def _until_hash(line: str) -> Iterator[str]:
    quoted = False
    for c in line:
        if c == "#" and not quoted:
            return
        quoted ^= c == "'"
        yield c
