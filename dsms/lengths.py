"""Texts of lengths of time: the one reader for literals, CAST, rows and columns that come in, and
files.

    terms   `1 h 30 min`, `-2 d`, `1.5 s`: numbers with units, each with its own sign; their sum
    clock   `26:03:04.5`: hours, minutes, and perhaps seconds; a sign in front holds for all of it

No number without a unit is a length.  What is finer than a microsecond is rounded down, as it is of
every length that comes in.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

LENGTH_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}

_DIGITS = 40  # of a number, at most
_CLOCK = re.compile(r"([+-]?)\s*([0-9]+):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]+))?)?", re.ASCII)
_TERM = re.compile(r"\s*([+-]?)\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]+)", re.ASCII)
_SHORT = {
    "us": 1, "usec": 1, "ms": 1_000, "msec": 1_000, "s": 1_000_000, "sec": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000, "hr": 3_600_000_000, "d": 86_400_000_000, "w": 604_800_000_000,
}  # a table  # fmt: skip
_LONG = LENGTH_UNITS | {
    name: size for name, size in _SHORT.items() if name in ("usec", "msec", "sec", "min", "hr")
}
_UNITS = _SHORT | _LONG | {name + "s": size for name, size in _LONG.items()}


def lengths(texts: pa.Array) -> pa.Array:
    """int64 microseconds, NULL for a NULL and for a text that is no length."""
    import pyarrow as pa  # a command line reads one length, and is to be quick

    encoded = texts.dictionary_encode()  # they are few and alike
    found = [interval_of(text.strip(" \t\n\v\f\r")) for text in encoded.dictionary.to_pylist()]
    return pa.array(found, pa.int64()).take(encoded.indices)


def interval_of(text: str) -> int | None:
    """Microseconds that a text like `1 h 30 min` or `26:03:04.5` stands for; None if it is none."""
    clock = _CLOCK.fullmatch(text)
    found = _clock(clock) if clock else _terms(text.lower())
    return found if found is not None and -(2**63) <= found < 2**63 else None


def _clock(match: re.Match[str]) -> int | None:
    sign, hours, minutes, seconds, fraction = match.groups()
    if len(hours) > _DIGITS or len(fraction or "") > _DIGITS:
        return None
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)
    value = (whole + Fraction(f"0.{fraction or 0}")) * 1_000_000
    return math.floor(-value if sign == "-" else value)


def _terms(text: str) -> int | None:
    total, at = Fraction(0), 0
    while at < len(text):
        term = _TERM.match(text, at)
        unit = term and _UNITS.get(term[3])
        if not term or not unit or len(term[2]) > _DIGITS:
            return None
        total += Fraction(term[1] + term[2]) * unit
        at = term.end()
    return math.floor(total) if text else None
