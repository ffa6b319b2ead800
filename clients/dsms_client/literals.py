"""Values as literals of the language, which read back to the same values."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

from dsms.tabular.texts import cell

_EPOCH = dt.datetime(1970, 1, 1)


def literal(value: Any, sql: str) -> str:
    """A wire value of the type `sql` (`dsms_client.results`) as text."""
    if value is None:
        return "NULL"
    match sql.partition("(")[0]:
        case "BOOL":
            return "TRUE" if value else "FALSE"
        case "INT":
            return str(value)
        case "FLOAT":
            return repr(value) if math.isfinite(value) else f"CAST('{value}' AS FLOAT)"
        case "DECIMAL":
            return f"DECIMAL '{value}'"
        case "BYTES":
            return f"x'{bytes(value).hex()}'"
        case "TIMESTAMP":
            return f"TIMESTAMP '{_EPOCH + dt.timedelta(microseconds=value)}'"
        case "INTERVAL":
            return f"INTERVAL '{value} us'"
        case "DATE" | "TIME":
            return f"{sql} '{cell(value, sql)}'"
        case "UUID":
            return f"UUID '{value}'"
        case "LIST" | "STRUCT":
            return f"CAST({quoted(value)} AS {sql})"
        case _:
            return quoted(value)


def quoted(text: str) -> str:
    """``'text'``"""
    return "'" + text.replace("'", "''") + "'"


def name(text: str) -> str:
    """``"text"``, whatever stands in it."""
    return '"' + text.replace('"', '""') + '"'


def row(values: Sequence[Any], types: Sequence[str]) -> str:
    """``(1, 'a', NULL)``"""
    return f"({', '.join(map(literal, values, types))})"
