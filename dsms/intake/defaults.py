"""What stands in a column that rows do not bring: its default, or NULL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from dsms.errors import UsageError
from dsms.sql.types import Field, Schema


def filled(column: Field, rows: int) -> pa.Array:
    """The column of so many rows.  Raises DS703 for a DEFAULT that an earlier version took, and
    that is too large or has too many digits."""
    value = column.default.value if column.default is not None else None
    kind = column.type.arrow
    if value is None:
        return pa.nulls(rows, kind)
    try:
        one = pa.scalar(value, kind)
    except pa.ArrowInvalid:
        message = f"the DEFAULT of {column.name}, {value}, is no {column.type}"
        raise UsageError("DS703", message, hint=f"send {column.name}, too") from None
    return pa.repeat(one, rows)


def needed(column: Field) -> bool:
    """Whether rows must bring a value."""
    default = None if column.default is None else column.default.value
    return not column.nullable and default is None


def least(schema: Schema) -> int:
    """How many columns lists of rows have at least: those behind may be left out, which have
    defaults."""
    count = len(schema)
    while count and schema[count - 1].default is not None:
        count -= 1
    return count


def extended(row: Any, schema: Schema, fewest: int) -> Any:
    """A list of values with the defaults of the columns that it leaves out; anything else as it
    is."""
    if type(row) not in (list, tuple) or not fewest <= len(row) < len(schema):
        return row
    return [*row, *default_values(schema)[len(row) :]]


def default_values(schema: Schema) -> Sequence[Any]:
    """Of each column its default, or None."""
    return [None if f.default is None else f.default.value for f in schema]
