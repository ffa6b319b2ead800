"""SQL values in Python form, and when two of them are equal or one is greater.

INT, TIMESTAMP, INTERVAL, DATE and TIME are int; FLOAT float; DECIMAL Decimal; STRING and UUID str;
BYTES bytes; BOOL bool; NULL None.
"""

from __future__ import annotations

import math
from functools import cmp_to_key
from typing import Any

Value = Any
NAN = "NaN, which equals itself"


def canon(value: Value) -> Value:
    """A hashable stand-in: two values have equal ones exactly if SQL's grouping calls them equal
    (NULL = NULL)."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0  # -0.0 + 0.0 is 0.0
    return value


def canons(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(canon(v) for v in values)


def compare(a: Value, b: Value) -> int:
    """-1, 0, 1 for two values of one type, neither NULL.  NaN is the greatest number; strings go by
    code point."""
    a, b = canon(a), canon(b)
    if a is NAN or b is NAN:
        return (a is NAN) - (b is NAN)
    return (a > b) - (a < b)


sort_key = cmp_to_key(compare)


def order_key(value: Value, descending: bool, nulls_first: bool) -> Any:
    """Sort key for ORDER BY."""

    def before(a: Value, b: Value) -> int:
        if a is None or b is None:
            return ((b is None) - (a is None)) * (1 if nulls_first else -1)
        return -compare(a, b) if descending else compare(a, b)

    return cmp_to_key(before)(value)


def fits_int(value: int) -> bool:
    return -(2**63) <= value < 2**63
